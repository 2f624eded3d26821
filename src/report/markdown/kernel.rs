//! The sections of the kernels: on each machine an overview by context, charts, and every size.

use super::super::chart;
use super::super::judge::Judgement;
use super::super::numbers::{self, grouped};
use super::super::sweep::Sweep;
use super::{NONE, Settings, Text, file_link, flags, gate_of, gate_words, interval, ten_times, verdict};
use crate::results::schema::{AgreementRow, ResultFile, TimingRow, Verdict};
use crate::units::{Context, Nanos, PerSecond, in_words};
use std::collections::BTreeMap;

/// The section's name in links.
pub(super) fn anchor(result: &ResultFile) -> String {
    format!("{}-on-{}", result.kernel, result.machine.machine_id.replace('+', "-"))
}

pub(super) fn sections(text: &mut Text, judgements: &[Judgement<'_>], settings: &Settings) {
    let mut last = None;
    for judgement in judgements {
        if last != Some(&judgement.title) {
            text.heading(2, &judgement.title);
            last = Some(&judgement.title);
        }
        section(text, judgement, settings);
    }
}

fn section(text: &mut Text, judgement: &Judgement<'_>, settings: &Settings) {
    let result = judgement.result();
    let sweep = Sweep::of(judgement);
    text.paragraph(&format!("<a id=\"{}\"></a>", anchor(result)));
    text.heading(3, &format!("On {}", result.machine.machine_id));
    let judged = match judgement.runs.len() {
        1 => format!("the run {}", file_link(judgement.shown, settings)),
        number => {
            let links: Vec<_> = judgement.runs.iter().map(|run| file_link(run, settings)).collect();
            format!("{number} runs of the same code, judged together ({})", links.join(", "))
        }
    };
    text.paragraph(&format!(
        "{}{}. Gate: {}, row `{}`: {}. From {judged}.",
        verdict(judgement),
        ten_times(&sweep).map_or_else(String::new, |words| format!("; {words}")),
        gate_of(result),
        result.protocol.gate_row,
        result.protocol.residency.trim_end_matches('.')
    ));
    // It explains a ratio: without one there is nothing to explain.
    if let Some(analysis) = result.protocol.analysis.as_ref().filter(|_| sweep.has_gpu) {
        text.paragraph(analysis.trim());
    }
    if let Some(why) = why_no_gpu_figures(judgement) {
        text.paragraph(&why);
    }
    overview(text, sweep);
    where_the_time_goes(text, sweep);
    outside_of_steady_state(text, sweep);
    for kind in chart::kinds(judgement) {
        let name = |theme: &str| format!("charts/{}", chart::file_name(judgement, kind, theme));
        text.line("");
        text.line("<picture>");
        text.line(&format!("  <source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">", name("dark")));
        let description = chart::description(judgement, kind);
        text.line(&format!("  <img alt=\"{}\" src=\"{}\">", attribute(&description), name("light")));
        text.line("</picture>");
    }
    for context in sweep.contexts() {
        text.fold(&format!("All sizes: {}", in_words(context)));
        sizes(text, sweep, context);
        text.unfold();
    }
    flag_details(text, sweep);
    agreement(text, sweep);
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

fn why_no_gpu_figures(judgement: &Judgement<'_>) -> Option<String> {
    let result = judgement.result();
    if judgement.verdict == Verdict::Invalid {
        let mismatch = judgement.runs.iter().flat_map(|run| &run.result.agreement).find_map(|row| {
            row.mismatch.as_ref().map(|mismatch| format!(" (arm {}, size {}: {mismatch})", row.arm, grouped(row.size)))
        });
        return Some(format!(
            "The run is invalid{}, so there is no ratio, no GPU time and no speed-up chart.",
            mismatch.unwrap_or_default()
        ));
    }
    if judgement.has_gpu() {
        return None;
    }
    Some(match &result.machine.adapter {
        Some(adapter) => format!(
            "There is no GPU on this machine. The only adapter is {}, a program on the CPU: its results count and are \
             compared below, its times say nothing about a GPU, so there is no GPU time and no speed-up chart.",
            adapter.name
        ),
        None => "There is no adapter on this machine, so the GPU arm did not run: there is no GPU time and no speed-up chart."
            .to_owned(),
    })
}

fn time(timing: Option<&TimingRow>) -> String {
    timing.and_then(|timing| timing.median_ns).map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string())
}

fn rate(timing: Option<&TimingRow>) -> String {
    let rate = timing.and_then(|timing| {
        let seconds = timing.median_ns.filter(|ns| *ns > 0)? as f64 / 1e9;
        (timing.operations > 0.0).then(|| PerSecond(timing.operations / seconds, "op").to_string())
    });
    rate.unwrap_or_else(|| NONE.to_owned())
}

fn share(sweep: Sweep<'_>, timing: Option<&TimingRow>) -> String {
    let share = timing.and_then(|timing| sweep.share_of_ceiling(timing));
    share.map_or_else(|| NONE.to_owned(), |(share, ceiling)| format!("{} of {ceiling}", numbers::percent(share)))
}

fn threads(timing: Option<&TimingRow>) -> String {
    timing.and_then(|timing| timing.threads).map_or_else(|| NONE.to_owned(), |threads| threads.to_string())
}

/// One line per context and gate size.
fn overview(text: &mut Text, sweep: Sweep<'_>) {
    let axis = format!(">{}", sweep.result.protocol.size_axis);
    let other = format!(">speed-up on {}", sweep.other_row());
    let (row, has_gpu) = (sweep.gate_row(), sweep.has_gpu);
    let mut headings = vec!["context", axis.as_str(), ">CPU best", ">threads", ">rate", ">of ceiling"];
    if has_gpu {
        headings.extend([">GPU", ">speed-up [lo, hi]", "verdict", other.as_str()]);
    } else {
        headings.extend([">1 thread", ">rate on 1", ">of ceiling on 1"]);
    }
    let mut rows = Vec::new();
    for context in sweep.contexts() {
        let measured = sweep.sizes(context);
        let mut sizes: Vec<u64> =
            sweep.result.protocol.gate_sizes.iter().copied().filter(|size| measured.contains(size)).collect();
        // A context whose sweep ends before the gate sizes: its largest size.
        if sizes.is_empty() {
            sizes.extend(measured.last());
        }
        for size in sizes {
            let (cpu, one) = (sweep.cpu(context, size, row), sweep.one_thread(context, size, row));
            let mut cells =
                vec![in_words(context), grouped(size), time(cpu), threads(cpu), rate(cpu), share(sweep, cpu)];
            if has_gpu {
                let gate = sweep.gate(context, size, row);
                cells.extend([
                    time(sweep.gpu(context, size, row)),
                    sweep.ratio(context, size, row).map_or_else(|| NONE.to_owned(), interval),
                    gate_words(gate),
                    sweep.ratio(context, size, sweep.other_row()).map_or_else(|| NONE.to_owned(), interval),
                ]);
            } else {
                cells.extend([time(one), rate(one), share(sweep, one)]);
            }
            rows.push(cells);
        }
    }
    if !rows.is_empty() {
        text.table(&headings, &rows);
    }
}

/// The parts of the call at the deciding gate with the smallest ratio.
fn where_the_time_goes(text: &mut Text, sweep: Sweep<'_>) {
    let deciding = sweep.deciding();
    let Some(gate) = deciding.first() else { return };
    let median = |row: &str| sweep.gpu(&gate.context, gate.size, row).and_then(|timing| timing.median_ns);
    let Some(total) = median(sweep.gate_row()).filter(|total| *total > 0) else { return };
    let mut rest = total;
    let mut parts = Vec::new();
    for (row, name) in [("upload", "upload"), ("kernel_only", "kernel"), ("download", "download")] {
        if let Some(ns) = median(row) {
            rest = rest.saturating_sub(ns);
            parts.push(format!("{name} {} ({})", Nanos(ns), numbers::percent(ns as f64 / total as f64)));
        }
    }
    if parts.is_empty() {
        return;
    }
    text.paragraph(&format!(
        "Where the time goes, at {} {} and {}: of {}, {}, the rest {} ({}). The parts are timed one by one and overlap \
         in a call.",
        grouped(gate.size),
        sweep.result.protocol.size_axis,
        in_words(&gate.context),
        Nanos(total),
        parts.join(", "),
        Nanos(rest),
        numbers::percent(rest as f64 / total as f64)
    ));
}

/// What a call costs that is not one of many, at the same place. None of it is in a ratio.
fn outside_of_steady_state(text: &mut Text, sweep: Sweep<'_>) {
    let deciding = sweep.deciding();
    let Some(gate) = deciding.first() else { return };
    let at = |row: &str| sweep.gpu(&gate.context, gate.size, row).and_then(|timing| timing.median_ns);
    // The device is opened once for all sizes; the time stands with the first one.
    let opened = || {
        let rows = sweep.result.rows.iter().filter(|row| row.row == "cold_init" && sweep.has_gpu);
        rows.filter_map(|row| row.median_ns).next()
    };
    let parts: Vec<_> = [
        ("with its buffers allocated in the call", at("e2e_fresh")),
        ("after half a second of rest", at("idle_start")),
        ("as the first call of a process", at("cold_first_call")),
        ("to compile the pipelines before it", at("cold_pipeline")),
        ("to open the device before that", opened()),
    ]
    .into_iter()
    .filter_map(|(words, ns)| ns.map(|ns| format!("{} {words}", Nanos(ns))))
    .collect();
    if !parts.is_empty() {
        let (size, context) = (grouped(gate.size), in_words(&gate.context));
        let axis = &sweep.result.protocol.size_axis;
        text.paragraph(&format!(
            "Outside of the steady state, at {size} {axis} and {context} on the GPU: {}. Not in any speed-up.",
            parts.join(", ")
        ));
    }
}

/// Every size of one context.
fn sizes(text: &mut Text, sweep: Sweep<'_>, context: &Context) {
    let axis = format!(">{}", sweep.result.protocol.size_axis);
    let (row, other_row) = (sweep.gate_row(), sweep.other_row());
    let other = format!(">speed-up on {other_row}");
    let other_cpu = format!(">CPU on {other_row}");
    let mut rows = Vec::new();
    for size in sweep.sizes(context) {
        let (cpu, one) = (sweep.cpu(context, size, row), sweep.one_thread(context, size, row));
        let gate = sweep.gate(context, size, row);
        let mut cells = vec![grouped(size), time(cpu), threads(cpu), rate(cpu), share(sweep, cpu), time(one)];
        if sweep.has_gpu {
            let gpu = sweep.gpu(context, size, row);
            let part = |row: &str| time(sweep.gpu(context, size, row));
            let one_to_gpu =
                one.and_then(|one| Some(one.median_ns? as f64 / gpu?.median_ns.filter(|ns| *ns > 0)? as f64));
            cells.extend([
                time(gpu),
                part("upload"),
                part("kernel_only"),
                part("download"),
                sweep.ratio(context, size, row).map_or_else(|| NONE.to_owned(), interval),
                gate_words(gate),
                one_to_gpu.map_or_else(|| NONE.to_owned(), numbers::ratio),
                sweep.ratio(context, size, other_row).map_or_else(|| NONE.to_owned(), interval),
                flags(gate),
            ]);
        } else {
            cells.extend([rate(one), share(sweep, one), time(sweep.cpu(context, size, other_row)), flags(gate)]);
        }
        rows.push(cells);
    }
    let mut headings = vec![axis.as_str(), ">CPU best", ">threads", ">rate", ">of ceiling", ">1 thread"];
    if sweep.has_gpu {
        headings.extend([
            ">GPU",
            ">upload",
            ">kernel",
            ">download",
            ">speed-up [lo, hi]",
            "verdict",
            ">against 1 thread",
            other.as_str(),
            "flags",
        ]);
    } else {
        headings.extend([">rate on 1", ">of ceiling on 1", other_cpu.as_str(), "flags"]);
    }
    text.table(&headings, &rows);
}

/// What the flags saw, in their words.
fn flag_details(text: &mut Text, sweep: Sweep<'_>) {
    let mut rows = Vec::new();
    for gate in &sweep.result.gates {
        for flag in &gate.flags {
            rows.push(vec![
                in_words(&gate.context),
                grouped(gate.size),
                gate.row.clone(),
                flag.name.clone(),
                flag.detail.clone(),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    text.fold(&format!("Flags ({}): what speaks against single measurements", rows.len()));
    text.table(&["context", &format!(">{}", sweep.result.protocol.size_axis), "row", "flag", "seen"], &rows);
    text.unfold();
}

/// How far each arm's results agree with the reference, over all sizes and contexts.
fn agreement(text: &mut Text, sweep: Sweep<'_>) {
    let mut groups: BTreeMap<(&str, &str), Vec<&AgreementRow>> = BTreeMap::new();
    for row in &sweep.result.agreement {
        groups.entry((&row.arm, &row.row)).or_default().push(row);
    }
    if groups.is_empty() {
        return;
    }
    let rows: Vec<_> = groups
        .into_iter()
        .map(|((arm, row), rows)| {
            let compared: u64 = rows.iter().map(|row| row.compared).sum();
            let exact: u64 = rows.iter().map(|row| row.exact).sum();
            let largest = rows.iter().map(|row| row.max_error).fold(0.0, f64::max);
            let allowed = rows.iter().map(|row| row.tolerance).fold(0.0, f64::max);
            let wrong = rows.iter().find_map(|row| row.mismatch.clone());
            vec![
                arm.to_owned(),
                row.to_owned(),
                grouped(compared),
                grouped(exact),
                number(largest),
                number(allowed),
                wrong.map_or_else(|| "agrees".to_owned(), |mismatch| format!("**wrong**: {mismatch}")),
            ]
        })
        .collect();
    let bounded = sweep.result.agreement.iter().any(|row| row.tolerance > 0.0);
    let unit = if bounded { "; a difference is a share of what rounding can do at its place" } else { "" };
    text.paragraph(&format!(
        "Results against the reference, before and after timing, over all sizes, contexts and inputs{unit}:"
    ));
    let headings =
        ["arm", "row", ">values compared", ">equal bit by bit", ">largest difference", ">allowed", "outcome"];
    text.table(&headings, &rows);
}

fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}
