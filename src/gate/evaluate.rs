//! From raw samples to every number of a result: one pure function, used when a result is written and when it is
//! verified, so that the two cannot drift apart.

use super::flags;
use super::statistics::{
    Interval, five_numbers, hodges_lehmann, mean, median, signed_rank_interval, standard_deviation, student_interval,
};
use super::verdict::{judge, kernel_verdict, widened};
use crate::results::schema::{Gate, ResultFile, Sample, TimingRow, Verdict};
use crate::units::Context;
use std::collections::BTreeMap;

/// The baseline is one of these.
const CPU_ARMS: [&str; 2] = ["simd", "simd_1t"];
/// How the reason of a row begins that a kernel cannot have on this device.
pub const NO_GPU_VERSION: &str = "no GPU version: ";
/// A gate exists where one of these arms has a row.
const SECOND_ARMS: [&str; 2] = ["gpu", "simd_again"];

/// What a slot says of one call, in nanoseconds: the median call, or the mean where there are fewer than five calls.
pub fn slot_ns(slot: &Sample) -> f64 {
    if slot.calls >= 5 { slot.median_ns as f64 } else { slot.total_ns as f64 / f64::from(slot.calls.max(1)) }
}

/// Four slots, two of each arm, as logarithms of their times; each arm's in the order they were run.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Which launch.
    pub launch: u32,
    /// Which block of the launch.
    pub block: u32,
    /// Whether the first arm was outside.
    pub abba: bool,
    /// The first arm: the baseline.
    pub a: [f64; 2],
    /// The second arm.
    pub b: [f64; 2],
}

impl Block {
    /// log(time of the first arm / time of the second); a linear drift over the block cancels.
    pub fn log_ratio(&self) -> f64 {
        0.5 * (self.a[0] + self.a[1]) - 0.5 * (self.b[0] + self.b[1])
    }
}

/// Samples by place: context, size and row.
type Place<'a> = (u32, u64, &'a str);

struct Index<'a>(BTreeMap<Place<'a>, Vec<&'a Sample>>);

impl<'a> Index<'a> {
    fn new(samples: &'a [Sample]) -> Self {
        let mut places: BTreeMap<Place<'a>, Vec<&Sample>> = BTreeMap::new();
        for sample in samples {
            places.entry((sample.context, sample.size, &sample.row)).or_default().push(sample);
        }
        Self(places)
    }

    fn of(&self, place: Place<'_>, phase: &str, arm: Option<&str>) -> Vec<&'a Sample> {
        let samples = self.0.get(&place).map_or(&[][..], Vec::as_slice);
        let wanted = |sample: &&&Sample| sample.phase == phase && arm.is_none_or(|arm| sample.arm == arm);
        samples.iter().filter(wanted).copied().collect()
    }
}

/// Fills in all that follows from the samples: statistics of `rows`, `gates`, and the `verdict`. What a row is and why it
/// was not to be timed is read from `rows` as they are; nothing else of them is.
pub fn evaluate(result: &mut ResultFile, samples: &[Sample]) {
    let index = Index::new(samples);
    let mut rows = std::mem::take(&mut result.rows);
    for row in &mut rows {
        fill(row, result, &index);
    }
    result.gates = rows
        .iter()
        .filter(|row| SECOND_ARMS.contains(&row.arm.as_str()) && matches!(row.row.as_str(), "resident" | "one_shot"))
        .map(|row| gate(row, result, &index))
        .collect();
    result.rows = rows;
    result.verdict = kernel_verdict(&result.gates, result.run.complete);
}

fn context_index(result: &ResultFile, context: &Context) -> u32 {
    let position = result.protocol.contexts.iter().position(|known| known == context);
    position.and_then(|position| u32::try_from(position).ok()).unwrap_or(u32::MAX)
}

/// The first thing that went wrong with an arm at a place.
fn mismatch<'a>(result: &'a ResultFile, row: &TimingRow, arm: &str) -> Option<&'a str> {
    let here = result.agreement.iter().filter(|agreement| {
        agreement.arm == arm
            && agreement.row == row.row
            && agreement.size == row.size
            && agreement.context == row.context
    });
    here.into_iter().find_map(|agreement| agreement.mismatch.as_deref())
}

fn is_debug_build(result: &ResultFile) -> bool {
    result.code.profile != "release"
}

/// Whether there is a GPU whose durations mean anything.
fn has_gpu(result: &ResultFile) -> bool {
    result.machine.adapter.as_ref().is_some_and(|adapter| !adapter.software)
}

fn fill(row: &mut TimingRow, result: &ResultFile, index: &Index<'_>) {
    let place = (context_index(result, &row.context), row.size, row.row.as_str());
    let slots = index.of(place, "slot", Some(&row.arm));
    let why_not = if mismatch(result, row, &row.arm).is_some() {
        Some("wrong output".to_owned())
    } else if is_debug_build(result) {
        Some("debug build".to_owned())
    } else if slots.is_empty() || (row.arm == "gpu" && !has_gpu(result)) {
        Some(row.reason.clone().unwrap_or_else(|| "not reached".into()))
    } else {
        None
    };
    let times: Vec<f64> = slots.iter().map(|slot| slot_ns(slot)).collect();
    let five = five_numbers(&times).filter(|_| why_not.is_none());
    #[expect(clippy::cast_possible_truncation, reason = "times of calls are far below 2^53 ns")]
    #[expect(clippy::cast_sign_loss, reason = "times are not negative")]
    let whole = |ns: f64| ns.round() as u64;
    row.calls_per_slot = slots.first().filter(|_| five.is_some()).map(|slot| slot.calls);
    row.slots = if five.is_some() { u32::try_from(slots.len()).unwrap_or(u32::MAX) } else { 0 };
    row.median_ns = five.map(|five| whole(five.median));
    row.p25_ns = five.map(|five| whole(five.p25));
    row.p75_ns = five.map(|five| whole(five.p75));
    row.min_ns = five.map(|five| whole(five.min));
    row.max_ns = five.map(|five| whole(five.max));
    row.reason = why_not;
}

/// The faster CPU arm of the pilot; the pilot's samples are used for nothing else.
pub fn baseline(pilot: &[&Sample]) -> &'static str {
    let time = |arm: &str| {
        let calls = pilot.iter().filter(|sample| sample.arm == arm);
        median(&calls.map(|sample| slot_ns(sample)).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    };
    if time(CPU_ARMS[1]) < time(CPU_ARMS[0]) { CPU_ARMS[1] } else { CPU_ARMS[0] }
}

fn blocks(slots: &[&Sample], first: &str, second: &str) -> Vec<Block> {
    let mut places: BTreeMap<(u32, u32), Vec<&Sample>> = BTreeMap::new();
    for slot in slots.iter().filter(|slot| slot.arm == first || slot.arm == second) {
        places.entry((slot.launch, slot.block)).or_default().push(slot);
    }
    let block = |((launch, block), mut slots): ((u32, u32), Vec<&Sample>)| {
        slots.sort_by_key(|slot| slot.pos);
        // A slot too short for the clock counts as half of its smallest step rather than as no time at all.
        let of = |arm: &str| -> Option<[f64; 2]> {
            let times = slots.iter().filter(|slot| slot.arm == arm).map(|slot| slot_ns(slot).max(0.5).ln());
            times.collect::<Vec<f64>>().try_into().ok()
        };
        Some(Block { launch, block, abba: slots.first()?.arm == first, a: of(first)?, b: of(second)? })
    };
    places.into_iter().filter_map(block).collect()
}

fn gate(row: &TimingRow, result: &ResultFile, index: &Index<'_>) -> Gate {
    let protocol = &result.protocol;
    let place = (context_index(result, &row.context), row.size, row.row.as_str());
    let second = row.arm.as_str();
    let first = if second == "gpu" { baseline(&index.of(place, "pilot", None)) } else { CPU_ARMS[0] };
    let mut gate = Gate {
        size: row.size,
        context: row.context.clone(),
        row: row.row.clone(),
        decides: protocol.gate_sizes.contains(&row.size) && protocol.gate_row == row.row,
        baseline: first.into(),
        point: None,
        lo: None,
        hi: None,
        i1: None,
        i2: None,
        launches: Vec::new(),
        launch_sd: None,
        null_cpu: None,
        null_gpu: None,
        flags: Vec::new(),
        verdict: Verdict::Inconclusive,
        reason: None,
    };
    let wrong = [CPU_ARMS[0], CPU_ARMS[1], second].into_iter().find_map(|arm| Some((arm, mismatch(result, row, arm)?)));
    if let Some((arm, mismatch)) = wrong {
        (gate.verdict, gate.reason) = (Verdict::Invalid, Some(format!("{arm}: {mismatch}")));
    } else if is_debug_build(result) {
        (gate.verdict, gate.reason) = (Verdict::Invalid, Some("debug_build".into()));
    } else if second == "gpu" && !has_gpu(result) {
        let adapter = result.machine.adapter.as_ref();
        let reason =
            adapter.map_or_else(|| "no adapter".into(), |adapter| format!("software adapter {}", adapter.name));
        (gate.verdict, gate.reason) = (Verdict::NoGpu, Some(reason));
    } else {
        let slots = index.of(place, "slot", None);
        let blocks = blocks(&slots, first, second);
        measure(&mut gate, result, &blocks);
        gate.flags = all_flags(result, index, place, &blocks, [first, second]);
        let interval = gate.i1.zip(gate.i2).map(|(i1, i2)| {
            let [i1, i2] = [i1, i2].map(|[lo, hi]| Interval { lo, hi });
            i1.hull(i2)
        });
        let judged = interval.map(|interval| widened(interval, &gate.flags));
        let judged = judged.map(|log| Interval { lo: log.lo.exp(), hi: log.hi.exp() });
        (gate.lo, gate.hi) = (judged.map(|interval| interval.lo), judged.map(|interval| interval.hi));
        (gate.verdict, gate.reason) = judge(protocol.gate, judged, &gate.flags);
        // That there is no such arm, and not the number of samples, is what keeps it undecided.
        if let Some(why) = row.reason.as_ref().filter(|why| blocks.is_empty() && why.starts_with(NO_GPU_VERSION)) {
            gate.reason = Some(why.clone());
        }
    }
    gate
}

/// The estimate and both intervals, before flags.
fn measure(gate: &mut Gate, result: &ResultFile, blocks: &[Block]) {
    let mut launches: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for block in blocks {
        launches.entry(block.launch).or_default().push(block.log_ratio());
    }
    let medians: Vec<f64> = launches.values().filter_map(|ratios| hodges_lehmann(ratios)).collect();
    // Several looks at the data share the error rate.
    let alpha = result.protocol.alpha / f64::from(result.run.looks.max(1));
    gate.point = mean(&medians).map(f64::exp);
    gate.launch_sd = standard_deviation(&medians);
    gate.null_cpu = flags::null_offset(blocks, |block| block.a);
    gate.null_gpu = flags::null_offset(blocks, |block| block.b);
    if medians.len() >= 5 {
        let all: Vec<f64> = blocks.iter().map(Block::log_ratio).collect();
        gate.i1 = student_interval(&medians, alpha).map(|interval| [interval.lo, interval.hi]);
        gate.i2 = signed_rank_interval(&all, alpha).map(|interval| [interval.lo, interval.hi]);
    }
    gate.launches = medians;
}

fn all_flags(
    result: &ResultFile,
    index: &Index<'_>,
    place: Place<'_>,
    blocks: &[Block],
    arms: [&str; 2],
) -> Vec<crate::results::schema::Flag> {
    let of_both = |phase| {
        let samples = index.of(place, phase, None).into_iter();
        samples.filter(|sample| arms.contains(&sample.arm.as_str())).collect::<Vec<_>>()
    };
    let slots = of_both("slot");
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for block in blocks {
        *counts.entry(block.launch).or_default() += 1;
    }
    let fewest = counts.values().copied().min().unwrap_or(0);
    let planned = (result.protocol.launches, result.protocol.blocks);
    let mut found = flags::null(blocks, arms);
    found.extend(flags::drift(blocks));
    found.extend(flags::order(blocks));
    found.extend(flags::throttle(&index.of(place, "canary", None), &result.state));
    found.extend(flags::quantised(&slots));
    found.extend(flags::busy(&result.state, result.machine.cpu.cores_logical));
    found.extend(flags::env(&result.state));
    found.extend(flags::amount(counts.len(), fewest, planned, result.run.complete));
    found.extend(flags::warmup_capped(&of_both("warmup")));
    for arm in arms {
        let times = slots.iter().filter(|slot| slot.arm == arm).map(|slot| slot_ns(slot));
        found.extend(flags::shape(arm, &times.collect::<Vec<_>>()));
    }
    found
}
