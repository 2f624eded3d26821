//! The device layer: the only module that names wgpu.
//!
//! - [`adapters`] and [`Choice`]: which adapters there are and which one is taken; a computer without any is a normal one.
//! - [`Device`]: an open adapter. Data lives in [`DeviceBuffer`]s and moves only in visible calls
//!   ([`Device::upload`], [`Device::download`], [`Commands`]).
//! - [`Shader`] becomes a [`Pipeline`]; [`Commands`] record dispatches, a [`Submission`] is waited for.
//!
//! Nothing here panics on what a driver does, and nothing returns zeros for a result that is not there: a lost device
//! answers `Ok` to almost every call, so one sticky fault is set by the driver's callbacks and read after every step.

mod adapter;
mod buffer;
mod fault;
mod shader;
mod submit;
mod timing;
mod transfer;

pub use adapter::{AdapterInfo, AdapterKind, Choice, adapter_hint, adapters, choose};
pub use buffer::{Binding, DeviceBuffer, Uniforms};
pub use shader::{Field, Params, Pipeline, Shader};
pub use submit::{BindGroup, Commands, Download, Pass, Submission, fold};
pub use timing::{Ceilings, Timer};

pub(crate) use shader::params;

use crate::error::DeviceError;
use fault::Fault;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The largest piece of one operand in one buffer: 1 GiB. Beyond, Metal has miscomputed (wgpu issue 10305), and no
/// adapter binds more than 2 GiB at once.
const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// The workgroup memory that every adapter has, in bytes. wgpu does not check it, so the device layer does.
pub const MAX_WORKGROUP_BYTES: u32 = 16 * 1024;

/// Iterations after which a driver with the loop cap leaves a loop in silence, and what the kernels stay under.
const LOOP_CAP: u32 = 65_535;

/// How a device is opened, beside its [`Choice`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Cut operands into segments of at most this many bytes, so that small tests take the path of large corpora.
    pub segment_bytes: Option<u64>,
    /// Fault injection: replace a text in every shader before it is compiled, to prove that a wrong shader is caught.
    pub shader_patch: Option<ShaderPatch>,
}

/// A deliberate fault: every `from` in every shader becomes `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderPatch {
    /// Text to find.
    pub from: String,
    /// Text to put in its place.
    pub to: String,
}

impl ShaderPatch {
    /// Reads `from=>to`. `None` where there is no arrow or nothing before it.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("=>")?;
        (!from.is_empty()).then(|| Self { from: from.to_owned(), to: to.to_owned() })
    }
}

/// An open adapter. Shared between threads; dropped with its last user.
pub struct Device {
    raw: wgpu::Device,
    queue: wgpu::Queue,
    info: AdapterInfo,
    limits: wgpu::Limits,
    options: Options,
    fault: Arc<Fault>,
    loop_cap: Option<u32>,
    timestamps: OnceLock<bool>,
    pipelines: Mutex<HashMap<shader::Key, Arc<Pipeline>>>,
    staging: transfer::Staging,
    open_ns: u64,
    compile_ns: AtomicU64,
    allocations: AtomicU64,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("info", &self.info).field("options", &self.options).finish_non_exhaustive()
    }
}

impl Device {
    /// Opens what `choice` takes. [`Choice::Auto`] is the best GPU here: whether to use one is the caller's decision.
    ///
    /// # Errors
    /// [`DeviceError::NoAdapter`] where there is none (a normal situation: CPU work goes on), [`DeviceError::Request`]
    /// where the adapter does not open.
    pub fn open(choice: &Choice) -> Result<Arc<Self>, DeviceError> {
        Self::open_with(choice, Options::default())
    }

    /// The same with [`Options`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(choice: &Choice, options: Options) -> Result<Arc<Self>, DeviceError> {
        let start = Instant::now();
        let instance = adapter::instance();
        let mut listed = adapter::enumerate(instance);
        let infos: Vec<_> = listed.iter().map(|(info, _)| info.clone()).collect();
        let (info, adapter) = listed.swap_remove(choose(choice, &infos)?);
        let wanted = (wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SHADER_F64) & adapter.features();
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("lodestar"),
            required_features: wanted,
            // All the adapter has: wgpu's defaults cap a binding at 128 MiB on every GPU.
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let (raw, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| DeviceError::Request { adapter: info.name.clone(), message: error.to_string() })?;
        let fault = Fault::watch(&raw);
        let mut device = Self {
            staging: transfer::Staging::new(info.kind),
            info,
            limits,
            options,
            fault,
            loop_cap: None,
            timestamps: OnceLock::new(),
            pipelines: Mutex::default(),
            open_ns: 0,
            compile_ns: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            raw,
            queue,
        };
        if wanted.contains(wgpu::Features::TIMESTAMP_QUERY) {
            device.info.timestamp_period = Some(f64::from(device.queue.get_timestamp_period()));
        }
        device.open_ns = nanos(start.elapsed());
        device.loop_cap = timing::probe_loop_cap(&device)?;
        if let Some(cap) = device.loop_cap {
            device.info.limits.insert("loop_iterations_per_invocation".to_owned(), cap.into());
        }
        device.check()?;
        Ok(Arc::new(device))
    }

    /// What this adapter is, its limits included.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// Whether it is a software adapter: right results, and no time of it is ever published.
    pub fn is_software(&self) -> bool {
        self.info.is_software()
    }

    /// Whether shaders may compute in f64: WGSL itself has none, Vulkan drivers of many GPUs do.
    pub fn has_f64(&self) -> bool {
        self.raw.features().contains(wgpu::Features::SHADER_F64)
    }

    /// How many loop iterations (all loops together, before unrolling) an invocation may make before the driver silently
    /// leaves the loop with a wrong result; `None` where there is no such cap. Found out by a probe, not by version.
    pub fn loop_cap(&self) -> Option<u32> {
        self.loop_cap
    }

    /// Refuses a kernel whose worst case of loop iterations in one invocation would run into the
    /// [cap](Self::loop_cap).
    ///
    /// # Errors
    /// [`DeviceError::Limit`].
    pub fn check_iterations(&self, what: &str, iterations: u64) -> Result<(), DeviceError> {
        // A little under the cap: compilers may add an iteration of their own.
        let max = u64::from(self.loop_cap.unwrap_or(u32::MAX)) * 9 / 10;
        if iterations <= max {
            return Ok(());
        }
        Err(DeviceError::Limit { what: format!("{what}: loop iterations"), requested: iterations, max })
    }

    /// Nanoseconds from looking for adapters to an open device.
    pub fn open_ns(&self) -> u64 {
        self.open_ns
    }

    /// Nanoseconds spent so far turning WGSL into pipelines.
    pub fn compile_ns(&self) -> u64 {
        self.compile_ns.load(Ordering::Relaxed)
    }

    /// Forgets all compiled pipelines: whoever holds one keeps it, whoever asks for one has it compiled again. The driver
    /// may have a cache of its own, which stays as it is.
    pub fn forget_pipelines(&self) {
        lock(&self.pipelines).clear();
    }

    /// Buffers allocated so far, those of the staging memory included.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    /// The most bytes of one operand that go into one buffer: what the adapter binds and allocates, at most 1 GiB,
    /// less where [`Options::segment_bytes`] says so.
    pub fn segment_bytes(&self) -> u64 {
        self.binding_bytes().min(MAX_SEGMENT_BYTES).min(self.options.segment_bytes.unwrap_or(u64::MAX))
    }

    /// The most bytes that one buffer can have and one binding can see.
    pub fn binding_bytes(&self) -> u64 {
        self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size)
    }

    /// Workgroups allowed in one dimension of a dispatch.
    pub fn max_workgroups(&self) -> u32 {
        self.limits.max_compute_workgroups_per_dimension
    }

    /// The first thing that went wrong on this device outside of a call of ours, if anything did. Sticky.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] and the like.
    pub fn check(&self) -> Result<(), DeviceError> {
        self.fault.check()
    }

    /// Runs a step under error scopes and reads the sticky fault after it, so that no failure passes in silence.
    fn scoped<T>(&self, what: &str, bytes: u64, step: impl FnOnce() -> T) -> Result<T, DeviceError> {
        fault::scoped(&self.raw, &self.fault, what, bytes, step)
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A thread that panicked while it held the lock left plain data behind; it is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device layer's own shaders, for the tests that validate every shader without a GPU.
pub fn shaders() -> Vec<Shader> {
    vec![timing::loop_probe()]
}

#[cfg(test)]
pub(crate) mod tests;
