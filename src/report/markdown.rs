//! The text of the page, in a fixed order: verdicts, how to read them, the sweeps, what failed, the machines, what was
//! not measured, how to do it again.

mod kernel;
mod machines;

use super::judge::{Currency, Judgement};
use super::numbers::{self, grouped, short, short_hash};
use super::sweep::{Ratio, Sweep};
use super::{Record, Settings};
use crate::results::schema::{Crossover, Gate, Mode, ResultFile, Verdict};
use crate::units::{Nanos, in_words};

/// The whole text between the markers.
pub(super) fn page(records: &[Record], judgements: &[Judgement<'_>], settings: &Settings) -> String {
    let mut text = Text::default();
    text.line(&format!("<!-- Rendered by `{}`: do not edit between the markers. -->", settings.command));
    verdicts(&mut text, judgements, settings);
    how_to_read(&mut text, judgements);
    kernel::sections(&mut text, judgements, settings);
    not_passed(&mut text, records, settings);
    machines::section(&mut text, judgements);
    bias(&mut text, judgements);
    reproduce(&mut text, records, judgements, settings);
    text.0
}

/// Markdown being written.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn paragraph(&mut self, paragraph: &str) {
        self.line("");
        self.line(paragraph);
    }

    fn heading(&mut self, level: usize, heading: &str) {
        self.paragraph(&format!("{} {heading}", "#".repeat(level)));
    }

    fn list(&mut self, items: &[String]) {
        self.line("");
        for item in items {
            self.line(&format!("- {item}"));
        }
    }

    /// A table; a heading that begins with `>` has its column aligned to the right.
    fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let names: Vec<_> = headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        let rules: Vec<_> =
            headings.iter().map(|heading| if heading.starts_with('>') { "---:" } else { "---" }).collect();
        self.line("");
        self.line(&format!("| {} |", names.join(" | ")));
        self.line(&format!("| {} |", rules.join(" | ")));
        for row in rows {
            let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
            self.line(&format!("| {} |", cells.join(" | ")));
        }
    }

    /// Opens a part that a reader unfolds.
    fn fold(&mut self, summary: &str) {
        self.paragraph(&format!("<details><summary>{summary}</summary>"));
    }

    fn unfold(&mut self) {
        self.paragraph("</details>");
    }
}

const NONE: &str = "-";

fn verdicts(text: &mut Text, judgements: &[Judgement<'_>], settings: &Settings) {
    text.heading(2, "Verdicts");
    let headings = [
        "kernel",
        "machine",
        "gate",
        ">speed-up at gate size",
        "verdict",
        ">GPU wins from",
        ">gate met from",
        ">kernel-only (not a gate)",
        "measured",
    ];
    let mut rows: Vec<(String, Vec<String>)> = judgements
        .iter()
        .map(|judgement| {
            let result = judgement.result();
            let sweep = Sweep::of(judgement);
            let machine = &result.machine.machine_id;
            let kernel_only = sweep.deciding().first().and_then(|gate| {
                let timing = sweep.gpu(&gate.context, gate.size, "kernel_only")?;
                timing.median_ns.map(|ns| Nanos(ns).to_string())
            });
            let row = vec![
                format!("[{}](#{})", judgement.title, kernel::anchor(result)),
                format!("[{machine}](#{})", machines::anchor(machine)),
                gate_of(result),
                speed_up(&sweep),
                verdict(judgement),
                crossing(&sweep, 1.0),
                crossing(&sweep, result.protocol.gate),
                kernel_only.unwrap_or_else(|| NONE.to_owned()),
                format!("{} {}", day(&result.run.started_utc), file_link(judgement.shown, settings)),
            ];
            (judgement.title.clone(), row)
        })
        .collect();
    for kernel in &settings.kernels {
        if judgements.iter().all(|judgement| judgement.result().kernel != kernel.id) {
            let mut row = vec![NONE.to_owned(); headings.len()];
            row[0].clone_from(&kernel.title);
            "not measured".clone_into(&mut row[4]);
            rows.push((kernel.title.clone(), row));
        }
    }
    // A stable sort: the machines of a kernel stay in their order.
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    text.table(&headings, &rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
}

/// `5x at 100,000 rows`.
fn gate_of(result: &ResultFile) -> String {
    let protocol = &result.protocol;
    let sizes: Vec<_> = protocol.gate_sizes.iter().map(|size| grouped(*size)).collect();
    format!("{}x at {} {}", protocol.gate, sizes.join(", "), protocol.size_axis)
}

/// The smallest speed-up of all deciding gates: every one of them has to pass.
fn speed_up(sweep: &Sweep<'_>) -> String {
    let deciding = sweep.deciding();
    let Some((gate, ratio)) = deciding.iter().find_map(|gate| Some((*gate, sweep.ratio_of(gate)?))) else {
        return NONE.to_owned();
    };
    match deciding.len() {
        1 => interval(ratio),
        number => format!("{} (least of {number}: {})", interval(ratio), in_words(&gate.context)),
    }
}

fn interval(ratio: Ratio) -> String {
    numbers::interval(ratio.point, ratio.lo, ratio.hi)
}

fn verdict(judgement: &Judgement<'_>) -> String {
    let words = verdict_words(judgement.verdict, judgement.reason.as_deref());
    let commit = judgement.result().code.commit.as_deref().map_or("an unknown commit", short_hash);
    match judgement.currency {
        Currency::Current => words,
        Currency::OtherProtocol => format!("{words}, by {} only", judgement.result().protocol.path),
        Currency::Stale => format!("stale (measured at {commit}): was {words}"),
    }
}

fn verdict_words(verdict: Verdict, reason: Option<&str>) -> String {
    let word = match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "**FAIL**",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::Invalid => "**INVALID**",
        Verdict::NoGpu => "NO-GPU",
    };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word} {reason}"))
}

/// What a gate says, in capitals only where it decides: the other sizes of a sweep show where the gate would be met.
fn gate_words(gate: Option<&Gate>) -> String {
    let Some(gate) = gate else { return NONE.to_owned() };
    if gate.decides {
        return verdict_words(gate.verdict, gate.reason.as_deref());
    }
    match gate.verdict {
        Verdict::Pass => "gate met".to_owned(),
        Verdict::Fail => gate.reason.as_deref().unwrap_or("below_gate").replace('_', " "),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::Invalid => "invalid".to_owned(),
        Verdict::NoGpu => NONE.to_owned(),
    }
}

/// Whether the second threshold, 10x, is met at every deciding gate.
fn ten_times(sweep: &Sweep<'_>) -> Option<&'static str> {
    let deciding = sweep.deciding();
    let ratios: Vec<Ratio> = deciding.iter().filter_map(|gate| sweep.ratio_of(gate)).collect();
    if ratios.is_empty() || ratios.len() < deciding.len() {
        return None;
    }
    Some(if ratios.iter().all(|ratio| ratio.lo >= 10.0) {
        "10x is met as well"
    } else if ratios.iter().any(|ratio| ratio.hi < 10.0) {
        "10x is not met"
    } else {
        "10x is neither proven nor excluded"
    })
}

/// Where a ratio is crossed on the gate row, over all contexts.
fn crossing(sweep: &Sweep<'_>, level: f64) -> String {
    let wanted = |crossover: &&Crossover| {
        crossover.row == sweep.gate_row() && (crossover.level - level).abs() < 1e-9 && sweep.has_gpu
    };
    let mut found: Vec<String> = Vec::new();
    for crossover in sweep.result.crossovers.iter().filter(wanted) {
        let words = crossover_words(crossover);
        if !found.contains(&words) {
            found.push(words);
        }
    }
    match found.as_slice() {
        [] => NONE.to_owned(),
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}, by context"),
    }
}

fn crossover_words(crossover: &Crossover) -> String {
    let size = |size: Option<u64>| size.map_or_else(|| "?".to_owned(), short);
    match crossover.status.as_str() {
        "censored_above" => format!("not reached (<= {})", size(crossover.lo)),
        "censored_below" => format!("<= {}", size(crossover.hi)),
        "ok" => format!("{}-{}", size(crossover.lo), size(crossover.hi)),
        other => format!("{}-{} ({other})", size(crossover.lo), size(crossover.hi)),
    }
}

/// `2026-09-20` of an RFC 3339 stamp.
fn day(utc: &str) -> &str {
    utc.get(..10).unwrap_or(utc)
}

/// Link to a result file by its commit.
fn file_link(record: &Record, settings: &Settings) -> String {
    let code = &record.result.code;
    let commit = code.commit.as_deref().map_or("no commit", short_hash);
    let dirty = if code.dirty == Some(true) { ", changed" } else { "" };
    format!("[`{commit}`{dirty}]({}/{})", settings.results_link, record.path)
}

fn how_to_read(text: &mut Text, judgements: &[Judgement<'_>]) {
    text.heading(2, "How to read this page");
    let mut items = vec![
        "**What is timed.** From host data ready to host result ready: upload, kernel, download and every wait between \
         them. Both arms start from the same data and end with the same result. On row `resident` the operand that the \
         workload keeps is prepared by both arms outside the timed region; on `one_shot` nothing is."
            .to_owned(),
        "**The baseline** is our own SIMD path on as many threads as are fastest, never a scalar loop.".to_owned(),
        "**[lo, hi]** is the 99% interval of the ratio over separate processes and blocks, widened by whatever speaks \
         against the measurement; lo is printed rounded down, hi rounded up."
            .to_owned(),
        "**PASS**: lo reaches the gate, at every gate size and in every context. **FAIL**: hi stays below it. \
         **INCONCLUSIVE**: neither, or the runs of the same code disagree; running again can take a PASS away and cannot \
         make one of a FAIL. **INVALID**: a wrong result, and so no ratio at all. **stale**: code or protocol has changed \
         since, the verdict no longer counts. **by FILE only**: at the sizes of that protocol, which is not the kernel's."
            .to_owned(),
        "**Kernel-only** leaves the transfers out. It is not a gate and no speed-up is made of it.".to_owned(),
        "**rate** counts a multiply-add as two operations. **of ceiling** is the time at the machine's measured ceiling \
         (multiply-adds, or memory reads where the operands are larger than the last-level cache; the one that takes \
         longer) over the time taken. It is the ceiling of f32: \
         an arm that goes through 8-bit integers first can be above it."
            .to_owned(),
    ];
    if judgements.iter().any(|judgement| !judgement.has_gpu()) {
        items.push(
            "**NO-GPU**: the machine has none, or only a software adapter, whose times say nothing about a GPU. The CPU arm \
             is measured and the results of both arms are compared; no GPU time and no speed-up is printed or drawn."
                .to_owned(),
        );
    }
    text.list(&items);
}

/// Every full run that did not simply pass or lack a GPU, and every one that was withdrawn, oldest first.
fn not_passed(text: &mut Text, records: &[Record], settings: &Settings) {
    text.heading(2, "Failed, invalid, interrupted and withdrawn runs");
    let mut rows = Vec::new();
    for record in records.iter().filter(|record| record.result.run.mode == Mode::Full) {
        let result = &record.result;
        let bad = matches!(result.verdict.verdict, Verdict::Fail | Verdict::Invalid);
        let mut words = Vec::new();
        if bad || record.withdrawn.is_some() {
            words.push(verdict_words(result.verdict.verdict, result.verdict.reason.as_deref()));
        }
        if !result.run.complete {
            words.push("interrupted".to_owned());
        }
        words.extend(record.withdrawn.as_ref().map(|reason| format!("withdrawn: {reason}")));
        if !words.is_empty() {
            rows.push((
                result.run.started_utc.clone(),
                vec![
                    day(&result.run.started_utc).to_owned(),
                    title(&result.kernel, settings),
                    result.machine.machine_id.clone(),
                    words.join("; "),
                    file_link(record, settings),
                ],
            ));
        }
    }
    if rows.is_empty() {
        text.paragraph("None so far.");
        return;
    }
    rows.sort();
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    text.table(&["measured", "kernel", "machine", "what", "file"], &rows);
}

fn title(kernel: &str, settings: &Settings) -> String {
    let known = settings.kernels.iter().find(|known| known.id == kernel);
    known.map_or_else(|| kernel.to_owned(), |known| known.title.clone())
}

fn bias(text: &mut Text, judgements: &[Judgement<'_>]) {
    text.heading(2, "Not measured, and known bias");
    let mut items = vec![
        "Both arms of every kernel are written by the same people, who want the gate to be honest but also like their \
         kernels fast."
            .to_owned(),
        "Inputs are those named below, and no others; other data can behave differently.".to_owned(),
        "One process uses the machine at a time; a server that shares its GPU or its cores will see other ratios."
            .to_owned(),
        "Start-up, shader compilation and energy are not part of any ratio.".to_owned(),
    ];
    for judgement in judgements {
        let result = judgement.result();
        let inputs = &result.protocol.inputs;
        let item = format!(
            "{} on {}: {} inputs, seed {}, a ring of {}; {} contexts and {} sizes were planned, nothing between them was \
             measured.",
            judgement.title,
            result.machine.machine_id,
            inputs.distribution,
            inputs.seed,
            inputs.ring,
            result.protocol.contexts.len(),
            result.protocol.sizes.len()
        );
        items.push(item);
    }
    text.list(&items);
}

fn reproduce(text: &mut Text, records: &[Record], judgements: &[Judgement<'_>], settings: &Settings) {
    text.heading(2, "Reproduce");
    let mut rows = Vec::new();
    for judgement in judgements {
        let result = judgement.result();
        rows.push(vec![
            judgement.title.clone(),
            result.machine.machine_id.clone(),
            format!("`lodestar {}`", result.run.argv.join(" ")),
            duration(&result.run.started_utc, &result.run.ended_utc),
            format!("{} `{}`", result.protocol.path, short_hash(&result.protocol.sha256)),
            format!("`{}`", short_hash(&result.code.binary_sha256)),
            format!("{} {}, {}", result.code.version, result.code.profile, result.code.rustc),
        ]);
    }
    if rows.is_empty() {
        text.paragraph("Nothing has been measured yet: `lodestar gate --all`, then the command below.");
    } else {
        let headings = ["kernel", "machine", "command", "took", "protocol (sha256)", "binary (sha256)", "build"];
        text.table(&headings, &rows);
    }
    let schemas: std::collections::BTreeSet<_> = records.iter().map(|record| record.result.schema.as_str()).collect();
    let schemas: Vec<_> = schemas.into_iter().map(|schema| format!("`{schema}`")).collect();
    let kept = if schemas.is_empty() { String::new() } else { format!(" Result files: {}.", schemas.join(", ")) };
    text.paragraph(&format!(
        "This page: `{command}`, and `{command} --check` to see that it is what the result files say. Every number of a \
         result: `lodestar verify FILE`.{kept}",
        command = settings.command
    ));
    let count = |mode: Mode| records.iter().filter(|record| record.result.run.mode == mode).count();
    let (quick, null) = (count(Mode::Quick), count(Mode::Null));
    if quick + null > 0 {
        let runs = |number: usize, what: &str| format!("{number} {what} run{}", if number == 1 { "" } else { "s" });
        text.paragraph(&format!(
            "Kept, but never shown as verdicts: {}, {}.",
            runs(quick, "quick"),
            runs(null, "null")
        ));
    }
}

/// Whole minutes between two RFC 3339 stamps.
fn duration(from: &str, to: &str) -> String {
    let parse = |text: &str| text.parse::<jiff::Timestamp>().ok();
    match (parse(from), parse(to)) {
        (Some(from), Some(to)) if to >= from => {
            let seconds = to.as_second() - from.as_second();
            if seconds < 120 { format!("{seconds} s") } else { format!("{} min", (seconds + 30) / 60) }
        }
        _ => NONE.to_owned(),
    }
}

/// Names of a gate's flags, with what they did.
fn flags(gate: Option<&Gate>) -> String {
    use crate::results::schema::FlagEffect;
    let Some(gate) = gate else { return String::new() };
    let words = gate.flags.iter().map(|flag| match (flag.effect, flag.bound) {
        (FlagEffect::Widens, Some(bound)) => format!("{} (+{})", flag.name, numbers::percent(bound.exp_m1())),
        (FlagEffect::Caps, _) => format!("{} (caps)", flag.name),
        _ => flag.name.clone(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
