//! The machines: what each one is, what it can do at most, and how quiet it was.

use super::super::judge::{Judgement, has_gpu};
use super::super::numbers::{self, grouped};
use super::{NONE, Text};
use crate::results::schema::{Ceilings, LaunchState, Machine, ResultFile};
use crate::units::{Bytes, Nanos, PerSecond};
use std::collections::BTreeMap;

/// The block's name in links.
pub(super) fn anchor(machine_id: &str) -> String {
    format!("machine-{}", machine_id.replace('+', "-"))
}

pub(super) fn section(text: &mut Text, judgements: &[Judgement<'_>]) {
    text.heading(2, "Machines");
    let mut machines: BTreeMap<&str, &Judgement<'_>> = BTreeMap::new();
    for judgement in judgements {
        let newest = machines.entry(&judgement.result().machine.machine_id).or_insert(judgement);
        if judgement.result().run.started_utc > newest.result().run.started_utc {
            *newest = judgement;
        }
    }
    if machines.is_empty() {
        text.paragraph("None so far.");
    }
    for (machine_id, judgement) in machines {
        text.paragraph(&format!("<a id=\"{}\"></a>", anchor(machine_id)));
        text.heading(3, machine_id);
        let rows = block(judgement).into_iter().map(|(name, value)| vec![name.to_owned(), value]);
        text.table(&["what", "value"], &rows.collect::<Vec<_>>());
    }
}

fn block(judgement: &Judgement<'_>) -> Vec<(&'static str, String)> {
    let result = judgement.result();
    let machine = &result.machine;
    let cpu = &machine.cpu;
    let known = |value: Option<u64>| value.map_or_else(|| NONE.to_owned(), |bytes| Bytes(bytes).to_string());
    let cores = cpu.cores_physical.map_or_else(String::new, |cores| format!(", {cores} physical cores"));
    let mut rows = vec![
        ("CPU", format!("{}, {} threads{cores}", cpu.brand, cpu.cores_logical)),
        ("SIMD used", format!("{} (of {})", cpu.simd_used, cpu.simd_available.join(", "))),
        ("caches", format!("L1d {}, L2 {}, L3 {}", known(cpu.l1d_bytes), known(cpu.l2_bytes), known(cpu.l3_bytes))),
        ("memory", Bytes(machine.ram_bytes).to_string()),
        ("GPU", adapter(machine)),
        ("system", format!("{}, kernel {}{}", machine.os, machine.kernel, inside(machine))),
        ("environment", format!("`{}`", machine.env_id)),
        ("governor", governors(&result.state)),
    ];
    rows.extend(ceilings(&machine.ceilings, has_gpu(result)));
    rows.push(("null band", null_band(judgement.null.map(|record| &record.result))));
    rows.push(("canary drift", canaries(&result.state, has_gpu(result))));
    rows
}

fn adapter(machine: &Machine) -> String {
    let Some(adapter) = &machine.adapter else { return "none".to_owned() };
    let driver = format!("{} {}", adapter.driver, adapter.driver_info);
    if adapter.software {
        return format!("none (software adapter: {}, {})", adapter.name, driver.trim());
    }
    format!("{}, {}, {}, driver {}", adapter.name, adapter.device_type, adapter.backend, driver.trim())
}

fn inside(machine: &Machine) -> String {
    let parts = [("container", &machine.container), ("hypervisor", &machine.hypervisor)];
    let parts = parts.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!(", {name} {value}")));
    parts.collect()
}

fn governors(state: &[LaunchState]) -> String {
    let names: std::collections::BTreeSet<_> = state.iter().filter_map(|state| state.governor.as_deref()).collect();
    if names.is_empty() {
        "not told by the system".to_owned()
    } else {
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn ceilings(ceilings: &Ceilings, has_gpu: bool) -> Vec<(&'static str, String)> {
    let rate = |best: Option<f64>, median: Option<f64>, unit: &'static str| {
        let median = median.map_or_else(String::new, |median| format!(" (median {})", PerSecond(median, unit)));
        best.map_or_else(|| "not measured".to_owned(), |best| format!("{}{median}", PerSecond(best, unit)))
    };
    let pair = |one: String, all: String| format!("{one} on 1 thread, {all} on all");
    let buffer = ceilings.read_buffer_bytes.map_or_else(String::new, |bytes| format!(", buffer of {}", Bytes(bytes)));
    let mut rows = vec![
        (
            "f32 multiply-add",
            pair(
                rate(ceilings.fma_1t_flops, ceilings.fma_1t_median_flops, "FLOP"),
                rate(ceilings.fma_flops, ceilings.fma_median_flops, "FLOP"),
            ),
        ),
        (
            "memory read",
            pair(
                rate(ceilings.read_1t_bytes_per_s, ceilings.read_1t_median_bytes_per_s, "B"),
                rate(ceilings.read_bytes_per_s, ceilings.read_median_bytes_per_s, "B"),
            ) + &buffer,
        ),
    ];
    if has_gpu {
        let floor = ceilings.floor_ns.map_or_else(|| "not measured".to_owned(), |floor| Nanos(floor).to_string());
        rows.extend([
            ("upload", rate(ceilings.upload_bytes_per_s, None, "B")),
            ("download", rate(ceilings.download_bytes_per_s, None, "B")),
            ("empty submit and wait", floor),
        ]);
    }
    rows
}

/// How far from 1 the CPU arm is from itself: what this machine cannot tell apart.
fn null_band(null: Option<&ResultFile>) -> String {
    let Some(null) = null else { return "not measured (`lodestar gate --null`)".to_owned() };
    let ends = |end: fn(&crate::results::schema::Gate) -> Option<f64>| null.gates.iter().filter_map(end);
    let lo = ends(|gate| gate.lo).fold(f64::INFINITY, f64::min);
    let hi = ends(|gate| gate.hi).fold(0.0, f64::max);
    let number = null.gates.iter().filter(|gate| gate.lo.is_some()).count();
    if number == 0 {
        return "a null run without an interval".to_owned();
    }
    let day = null.run.started_utc.get(..10).unwrap_or_default();
    format!("{}, over {} comparisons of the CPU arm with itself ({day})", numbers::band(lo, hi), grouped(number as u64))
}

/// By how much the slowest launch's canary was slower than the fastest one's.
fn canaries(state: &[LaunchState], has_gpu: bool) -> String {
    let drift = |canary: fn(&LaunchState) -> Option<u64>| {
        let values = || state.iter().filter_map(canary).filter(|ns| *ns > 0);
        let (least, most) = (values().min()?, values().max()?);
        Some(numbers::percent(most as f64 / least as f64 - 1.0))
    };
    let mut parts = Vec::new();
    parts.extend(drift(|state| state.canary_1t_ns).map(|drift| format!("{drift} on 1 thread")));
    parts.extend(drift(|state| state.canary_ns).map(|drift| format!("{drift} on all")));
    if has_gpu {
        parts.extend(drift(|state| state.canary_gpu_ns).map(|drift| format!("{drift} on the GPU")));
    }
    if parts.is_empty() { "not measured".to_owned() } else { parts.join(", ") }
}
