//! `lodestar machine`: what this computer is, and what it can do at most.

use super::{Exit, Io};
use crate::machine::{Adapter, Build, Ceilings, Machine, measure_cpu_ceilings};
use crate::simd::Level;
use crate::units::{Bytes, Nanos, PerSecond};
use std::io::Write;

/// What this computer is, with measured ceilings
///
/// Names the CPU, its SIMD levels and caches, the memory, the adapter and the operating system, and measures the ceilings
/// that a kernel is held against: multiply-adds per second with all operands in registers, and bytes read per second
/// from a buffer larger than the caches. The best of many short bursts is shown, with the median behind it: a median
/// far below the best says that something else was running. LODESTAR_SIMD=avx2 measures at a lower level.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  lodestar machine\n  lodestar machine --no-measure --json")]
pub(super) struct Arguments {
    /// Only say what the computer is: measure nothing, take no time
    #[arg(long)]
    no_measure: bool,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    let level = Level::from_environment()?;
    let mut machine = Machine::detect(level, adapter(), &Build::current());
    if !arguments.no_measure {
        io.note("Measuring for about 3 seconds; anything else that runs now lowers the figures.");
        machine.ceilings = measure_cpu_ceilings(level, usize::try_from(machine.cpu.cores_logical)?);
        measure_device(&mut machine, io);
    }
    if io.json {
        serde_json::to_writer_pretty(&mut io.out, &machine)?;
        writeln!(io.out)?;
        return Ok(0);
    }
    let lines = lines(&machine);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        writeln!(io.out, "{name:width$}  {value}")?;
    }
    Ok(0)
}

/// The adapter that the GPU arm would take, without opening it: a GPU, else a software adapter, else none.
#[cfg(feature = "gpu")]
pub(super) fn adapter() -> Option<Adapter> {
    use crate::device::{Choice, adapters, choose};
    let found = adapters();
    let index = choose(&Choice::Gpu, &found).or_else(|_| choose(&Choice::Software, &found)).ok()?;
    found.get(index).map(Adapter::from)
}

#[cfg(not(feature = "gpu"))]
pub(super) fn adapter() -> Option<Adapter> {
    None
}

/// Adds what an open device tells and can do. A device that does not open is named and left out: the rest stands.
#[cfg(feature = "gpu")]
fn measure_device(machine: &mut Machine, io: &Io) {
    let measured = super::platform_for_checks("auto").and_then(|platform| {
        if let Some(device) = platform.device {
            machine.adapter = Some(Adapter::from(device.info()));
            machine.ceilings.measure_device(&device)?;
        }
        Ok(())
    });
    if let Err(error) = measured {
        io.note(format_args!("The adapter is there and does not work: {error:#}"));
    }
}

#[cfg(not(feature = "gpu"))]
fn measure_device(_machine: &mut Machine, _io: &Io) {}

fn lines(machine: &Machine) -> Vec<(&'static str, String)> {
    let cpu = &machine.cpu;
    let physical = cpu.cores_physical.map_or_else(String::new, |cores| format!(" ({})", count(cores, "physical core")));
    let caches = [("L1d", cpu.l1d_bytes), ("L2", cpu.l2_bytes), ("L3", cpu.l3_bytes)];
    let caches: Vec<_> =
        caches.iter().filter_map(|(name, bytes)| bytes.map(|bytes| format!("{name} {}", Bytes(bytes)))).collect();
    let mut lines = vec![
        ("machine", machine.machine_id.clone()),
        ("environment", machine.env_id.clone()),
        ("CPU", cpu.brand.clone()),
        ("threads", format!("{}{physical}", cpu.cores_logical)),
        ("SIMD", format!("{} (of {})", cpu.simd_used, cpu.simd_available.join(", "))),
        ("caches", if caches.is_empty() { "unknown".to_owned() } else { caches.join(", ") }),
        ("memory", Bytes(machine.ram_bytes).to_string()),
        ("system", format!("{}, kernel {}", machine.os, machine.kernel)),
    ];
    lines.extend(machine.container.clone().map(|container| ("container", container)));
    lines.extend(machine.hypervisor.clone().map(|hypervisor| ("hypervisor", hypervisor)));
    match &machine.adapter {
        None => lines.push(("adapter", "none".to_owned())),
        Some(adapter) => {
            let software = if adapter.software { ", software: right results, no GPU figures" } else { "" };
            lines.push((
                "adapter",
                format!("{} ({}, {}{software})", adapter.name, adapter.device_type, adapter.backend),
            ));
            lines.push(("driver", format!("{} {}", adapter.driver, adapter.driver_info).trim().to_owned()));
        }
    }
    lines.extend(ceiling_lines(&machine.ceilings));
    lines
}

fn ceiling_lines(ceilings: &Ceilings) -> Vec<(&'static str, String)> {
    let rate = |best: Option<f64>, median: Option<f64>, unit: &'static str| {
        let median = median.map_or_else(String::new, |median| format!(" (median {})", PerSecond(median, unit)));
        best.map(|best| format!("{}{median}", PerSecond(best, unit)))
    };
    let all = ceilings.threads.map_or_else(String::new, |threads| format!(" on {}", count(threads, "thread")));
    let buffer = ceilings.read_buffer_bytes.map_or_else(String::new, |bytes| format!(" of a {} buffer", Bytes(bytes)));
    let pair = |one: Option<String>, every: Option<String>, suffix: &str| {
        Some(format!("{} on 1 thread, {}{all}{suffix}", one?, every?))
    };
    let multiply_add = pair(
        rate(ceilings.fma_1t_flops, ceilings.fma_1t_median_flops, "FLOP"),
        rate(ceilings.fma_flops, ceilings.fma_median_flops, "FLOP"),
        "",
    );
    let read = pair(
        rate(ceilings.read_1t_bytes_per_s, ceilings.read_1t_median_bytes_per_s, "B"),
        rate(ceilings.read_bytes_per_s, ceilings.read_median_bytes_per_s, "B"),
        &buffer,
    );
    let candidates = [
        ("f32 multiply-add", multiply_add),
        ("memory read", read),
        ("upload", rate(ceilings.upload_bytes_per_s, None, "B")),
        ("download", rate(ceilings.download_bytes_per_s, None, "B")),
        ("empty submit", ceilings.floor_ns.map(|floor| Nanos(floor).to_string())),
    ];
    candidates.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// `1 thread`, `2 threads`.
fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_print_what_was_measured_and_nothing_else() {
        assert_eq!(ceiling_lines(&Ceilings::default()), []);
        let ceilings = Ceilings {
            fma_1t_flops: Some(152.6e9),
            fma_1t_median_flops: Some(150e9),
            fma_flops: Some(305e9),
            fma_median_flops: Some(299e9),
            read_1t_bytes_per_s: Some(13.1e9),
            read_bytes_per_s: Some(27.7e9),
            read_buffer_bytes: Some(2 << 30),
            threads: Some(2),
            floor_ns: Some(12_345),
            ..Ceilings::default()
        };
        let lines = ceiling_lines(&ceilings);
        assert_eq!(
            lines,
            [
                (
                    "f32 multiply-add",
                    "153 GFLOP/s (median 150 GFLOP/s) on 1 thread, 305 GFLOP/s (median 299 GFLOP/s) on 2 threads"
                        .into()
                ),
                ("memory read", "13.1 GB/s on 1 thread, 27.7 GB/s on 2 threads of a 2.00 GiB buffer".into()),
                ("empty submit", "12.3 us".into()),
            ]
        );
    }
}
