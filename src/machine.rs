//! What this computer is: CPU, SIMD level, memory, adapter, operating system; its stable ids; its measured ceilings.
//!
//! Recorded when a measurement is taken, never before. No host name, user name, serial number or path.

#[cfg(feature = "gpu")]
mod adapter;
mod build;
mod host;
mod identity;

pub use build::Build;

use crate::data::Buffer;
use crate::simd::{Level, ceilings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes that this process may still take; `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    host::available_memory()
}

/// The machine at the time of the measurement. No host name, user name, serial number or path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Slug and 8 hex digits over hardware only.
    pub machine_id: String,
    /// 8 hex digits over OS, kernel, driver, backend, wgpu, rustc.
    pub env_id: String,
    /// The CPU.
    pub cpu: Cpu,
    /// Memory, in bytes.
    pub ram_bytes: u64,
    /// Operating system and its version.
    pub os: String,
    /// Kernel version.
    pub kernel: String,
    /// Container runtime, where one is recognised.
    pub container: Option<String>,
    /// Hypervisor, where one is recognised.
    pub hypervisor: Option<String>,
    /// The adapter of the GPU arm, also a software one; null when there is none.
    pub adapter: Option<Adapter>,
    /// Ceilings measured in this run, so that a rate can be given as a share of what the machine can do.
    pub ceilings: Ceilings,
}

/// The CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Brand string.
    pub brand: String,
    /// Physical cores, where known.
    pub cores_physical: Option<u32>,
    /// Logical cores usable by this process.
    pub cores_logical: u32,
    /// SIMD level that the CPU arm was dispatched to.
    pub simd_used: String,
    /// Every level this CPU has, the best first.
    pub simd_available: Vec<String>,
    /// L1 data cache per core, where known.
    pub l1d_bytes: Option<u64>,
    /// L2 cache per core, where known.
    pub l2_bytes: Option<u64>,
    /// L3 cache, where known.
    pub l3_bytes: Option<u64>,
}

/// A wgpu adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Name as the driver gives it.
    pub name: String,
    /// PCI vendor id.
    pub vendor: u32,
    /// PCI device id.
    pub device: u32,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub device_type: String,
    /// Whether it is a software adapter: then no GPU duration is recorded.
    pub software: bool,
    /// `vulkan`, `metal`, `dx12`.
    pub backend: String,
    /// Driver name.
    pub driver: String,
    /// Driver version.
    pub driver_info: String,
    /// Limits that shape the kernels, by wgpu's name.
    pub limits: BTreeMap<String, u64>,
    /// Nanoseconds per timestamp tick, where there are timestamps.
    pub timestamp_period: Option<f64>,
}

/// Measured ceilings; null where not measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// f32 multiply-adds x 2 per second, one thread: the best of many short bursts.
    pub fma_1t_flops: Option<f64>,
    /// Median of the same bursts: how far from idle the machine was.
    pub fma_1t_median_flops: Option<f64>,
    /// The same on all threads.
    pub fma_flops: Option<f64>,
    /// Median of the same bursts.
    pub fma_median_flops: Option<f64>,
    /// Bytes per second read from memory (beyond the last-level cache), one thread: the best of many short bursts.
    pub read_1t_bytes_per_s: Option<f64>,
    /// Median of the same bursts.
    pub read_1t_median_bytes_per_s: Option<f64>,
    /// The same on all threads.
    pub read_bytes_per_s: Option<f64>,
    /// Median of the same bursts.
    pub read_median_bytes_per_s: Option<f64>,
    /// Size of the buffer that was read.
    pub read_buffer_bytes: Option<u64>,
    /// How many threads "all threads" were.
    pub threads: Option<u32>,
    /// Bytes per second from host to device; null on software adapters.
    pub upload_bytes_per_s: Option<f64>,
    /// Bytes per second from device to host; null on software adapters.
    pub download_bytes_per_s: Option<f64>,
    /// Empty submit and wait; null on software adapters.
    pub floor_ns: Option<u64>,
}

impl Machine {
    /// This computer, with the SIMD level that the CPU arm runs at and the adapter of the GPU arm. Measures nothing:
    /// the ceilings are all null.
    pub fn detect(level: Level, adapter: Option<Adapter>, build: &Build) -> Self {
        let host = host::detect();
        let mut machine = Self {
            machine_id: String::new(),
            env_id: String::new(),
            cpu: Cpu {
                brand: host.brand,
                cores_physical: host.cores_physical,
                cores_logical: usable_cores(),
                simd_used: level.name().to_owned(),
                simd_available: Level::available().iter().map(|level| level.name().to_owned()).collect(),
                l1d_bytes: host.caches.l1d_bytes,
                l2_bytes: host.caches.l2_bytes,
                l3_bytes: host.caches.l3_bytes,
            },
            ram_bytes: host.ram_bytes,
            os: host.os,
            kernel: host.kernel,
            container: host.container,
            hypervisor: host.hypervisor,
            adapter,
            ceilings: Ceilings::default(),
        };
        machine.machine_id = identity::machine_id(&machine, host.cores_online);
        machine.env_id = identity::env_id(&machine, build);
        machine
    }

    /// The adapter, if it is a real GPU.
    pub fn gpu(&self) -> Option<&Adapter> {
        self.adapter.as_ref().filter(|adapter| !adapter.software)
    }
}

/// Logical cores that this process may use.
fn usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Measures what the CPU can do, in about three seconds: multiply-adds with operands in registers, and reads of a buffer
/// of at least 2 GiB and 4 times the last-level cache, but at most a quarter of the memory (and half of what is free).
/// What belongs to a device stays null.
pub fn measure_cpu_ceilings(level: Level, threads: usize) -> Ceilings {
    const BURSTS: usize = 30;
    const ROUNDS: usize = 4;
    let fma_1t = ceilings::multiply_add(level, 1, BURSTS);
    let fma = ceilings::multiply_add(level, threads, BURSTS);
    let mut measured = Ceilings {
        fma_1t_flops: Some(fma_1t.best),
        fma_1t_median_flops: Some(fma_1t.median),
        fma_flops: Some(fma.best),
        fma_median_flops: Some(fma.median),
        threads: u32::try_from(threads).ok(),
        ..Ceilings::default()
    };
    if let Some(buffer) = written_buffer(host::read_buffer_bytes(), threads) {
        let read_1t = ceilings::read(level, 1, ROUNDS, &buffer);
        let read = ceilings::read(level, threads, ROUNDS, &buffer);
        measured.read_1t_bytes_per_s = Some(read_1t.best);
        measured.read_1t_median_bytes_per_s = Some(read_1t.median);
        measured.read_bytes_per_s = Some(read.best);
        measured.read_median_bytes_per_s = Some(read.median);
        measured.read_buffer_bytes = Some(size_of_val(&*buffer) as u64);
    }
    measured
}

/// A buffer whose every page was written, by several threads; `None` when the memory cannot be had. It lies where matrices
/// lie, on huge pages if they do: a ceiling below what a kernel reaches would be none.
fn written_buffer(bytes: u64, threads: usize) -> Option<Buffer<f32>> {
    let length = usize::try_from(bytes).ok()? / size_of::<f32>();
    let mut buffer = Buffer::<f32>::zeroed(length).ok()?;
    let part = length.div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for part in buffer.chunks_mut(part) {
            scope.spawn(|| part.fill(1.0));
        }
    });
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_cores_and_memory() {
        let machine = Machine::detect(Level::detect(), None, &Build::current());
        assert!(!machine.cpu.brand.is_empty() && !machine.os.is_empty() && !machine.kernel.is_empty(), "{machine:?}");
        assert!(machine.cpu.cores_logical >= 1 && machine.ram_bytes > 1 << 27, "{machine:?}");
        assert_eq!(machine.cpu.simd_used, machine.cpu.simd_available[0]);
        assert_eq!(machine, Machine::detect(Level::detect(), None, &Build::current()));
    }

    #[test]
    fn a_machine_survives_json_and_unknown_fields_are_refused() {
        let machine = Machine::detect(Level::detect(), None, &Build::default());
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
        let error = serde_json::from_str::<Machine>(&json.replace("\"os\":", "\"host\":1,\"os\":")).unwrap_err();
        assert!(error.to_string().contains("unknown field `host`"), "{error}");
    }

    #[test]
    fn the_buffer_is_written_to_its_end_by_any_number_of_threads() {
        for threads in [0, 1, 3, 64] {
            let buffer = written_buffer(4_000 + 3, threads).unwrap();
            assert_eq!(*buffer, *vec![1.0; 1_000], "{threads} threads");
        }
        assert!(written_buffer(u64::MAX / 2, 2).is_none());
    }
}
