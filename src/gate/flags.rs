//! What speaks against a measurement. Nothing is dropped because of a flag: a bounded one widens the interval, an
//! unbounded one leaves the gate undecided, the others inform.

use super::evaluate::Block;
use super::statistics::{
    far_outliers, hodges_lehmann, m_value, mean, median, signed_rank_interval, slope, spearman, student_interval,
};
use crate::results::schema::{Flag, FlagEffect, LaunchState, Sample};
use std::collections::BTreeMap;

/// Flags are looked for at 1%, whatever the error rate of the interval.
const ALPHA: f64 = 0.01;

fn widens(name: &str, bound: f64, detail: String) -> Flag {
    Flag { name: name.into(), effect: FlagEffect::Widens, bound: Some(bound), detail }
}

fn caps(name: &str, detail: String) -> Flag {
    Flag { name: name.into(), effect: FlagEffect::Caps, bound: None, detail }
}

fn informs(name: &str, detail: String) -> Flag {
    Flag { name: name.into(), effect: FlagEffect::Informs, bound: None, detail }
}

fn percent(log: f64) -> String {
    format!("{:.1}%", 100.0 * log.exp_m1())
}

/// Offset between the two slots that one arm has in each block; 0 where nothing is wrong.
pub fn null_offset(blocks: &[Block], arm: impl Fn(&Block) -> [f64; 2]) -> Option<f64> {
    hodges_lehmann(&differences(blocks, arm))
}

fn differences(blocks: &[Block], arm: impl Fn(&Block) -> [f64; 2]) -> Vec<f64> {
    blocks.iter().map(|block| arm(block)[0] - arm(block)[1]).collect()
}

/// `null`: an arm differs from itself.
pub fn null(blocks: &[Block], arms: [&str; 2]) -> Vec<Flag> {
    let offset = |name: &str, arm: fn(&Block) -> [f64; 2]| {
        let differences = differences(blocks, arm);
        let offset = hodges_lehmann(&differences)?;
        let interval = signed_rank_interval(&differences, ALPHA)?;
        (offset.abs() > 0.01 && !interval.contains(0.0)).then(|| {
            let detail = format!("first slot of {name} in a block differs from its second by {}", percent(offset));
            widens("null", offset.abs(), detail)
        })
    };
    [offset(arms[0], |block| block.a), offset(arms[1], |block| block.b)].into_iter().flatten().collect()
}

/// `drift`: the ratio changes along a launch.
pub fn drift(blocks: &[Block]) -> Option<Flag> {
    let index: Vec<f64> = blocks.iter().map(|block| f64::from(block.block)).collect();
    let ratio: Vec<f64> = blocks.iter().map(Block::log_ratio).collect();
    let (rho, p) = spearman(&index, &ratio)?;
    let last = index.iter().copied().fold(0.0, f64::max);
    let total = slope(&index, &ratio)? * last;
    (p < ALPHA).then(|| {
        widens(
            "drift",
            total.abs() / 2.0,
            format!("ratio moves by {} along a launch (Spearman {rho:.2})", percent(total)),
        )
    })
}

/// `order`: blocks that start with one arm give another ratio than those that start with the other.
pub fn order(blocks: &[Block]) -> Option<Flag> {
    let mut launches: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for block in blocks {
        launches.entry(block.launch).or_default()[usize::from(block.abba)].push(block.log_ratio());
    }
    let difference = launches.values().filter_map(|[baab, abba]| Some(mean(abba)? - mean(baab)?));
    let difference: Vec<f64> = difference.collect();
    let (centre, interval) = (mean(&difference)?, student_interval(&difference, ALPHA)?);
    (!interval.contains(0.0))
        .then(|| widens("order", centre.abs() / 2.0, format!("ABBA and BAAB blocks differ by {}", percent(centre))))
}

/// `throttle`: fixed work got slower or faster in the run.
pub fn throttle(canaries: &[&Sample], state: &[LaunchState]) -> Option<Flag> {
    let mut arms: BTreeMap<&str, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for canary in canaries {
        let launches = arms.entry(&canary.arm).or_default();
        launches.entry(canary.launch).or_default().push(super::evaluate::slot_ns(canary));
    }
    let change = |launches: &BTreeMap<u32, Vec<f64>>| {
        let medians: Vec<f64> = launches.values().filter_map(|times| median(times)).filter(|ns| *ns > 0.0).collect();
        let (low, high) = medians.iter().fold((f64::MAX, 0.0_f64), |(low, high), ns| (low.min(*ns), high.max(*ns)));
        if medians.is_empty() { 0.0 } else { (high / low).ln() }
    };
    let worst = arms.iter().map(|(arm, launches)| (*arm, change(launches)));
    let (arm, change) = worst.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("", 0.0));
    let told: Vec<&str> =
        state.iter().flat_map(|state| state.throttle_reasons.iter().flatten()).map(String::as_str).collect();
    if change <= 0.05_f64.ln_1p() && told.is_empty() {
        return None;
    }
    let told = if told.is_empty() { String::new() } else { format!("; the driver says {}", told.join(", ")) };
    Some(widens("throttle", change, format!("fixed work ({arm}) moves by {} between launches{told}", percent(change))))
}

/// `quantised`: a slot is not long compared with a tick of the clock.
pub fn quantised(slots: &[&Sample]) -> Option<Flag> {
    fn divisor(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    // What all times are multiples of is at least the tick.
    let tick = slots.iter().fold(0, |tick, slot| divisor(divisor(tick, slot.t_start_ns), slot.total_ns));
    let totals: Vec<f64> = slots.iter().map(|slot| slot.total_ns as f64).collect();
    let slot = median(&totals)?;
    let bound = tick as f64 / slot;
    (slot > 0.0 && bound > 1e-3).then(|| widens("quantised", bound, format!("a slot has {:.0} ticks", 1.0 / bound)))
}

/// `busy`: others used more than a tenth of the machine.
pub fn busy(state: &[LaunchState], cores: u32) -> Option<Flag> {
    let foreign = state.iter().filter_map(|state| state.foreign_cores).fold(0.0, f64::max);
    (foreign > 0.1 * f64::from(cores))
        .then(|| caps("busy", format!("other processes used {foreign:.2} of {cores} cores")))
}

/// `env`: on battery, or the hypervisor took time.
pub fn env(state: &[LaunchState]) -> Option<Flag> {
    if state.iter().any(|state| state.on_battery == Some(true)) {
        return Some(caps("env", "on battery".into()));
    }
    let steal = state.iter().filter_map(|state| state.steal).fold(0.0, f64::max);
    (steal > 0.01).then(|| caps("env", format!("the hypervisor took {:.1}% of the time", 100.0 * steal)))
}

/// `budget` and `too_few`: fewer launches or blocks than planned.
pub fn amount(launches: usize, blocks: usize, planned: (u32, u32), complete: bool) -> Option<Flag> {
    let detail = format!("{launches} launches of {blocks} blocks, planned {} of {}", planned.0, planned.1);
    let short = launches < planned.0 as usize || blocks < planned.1 as usize;
    if short && !complete && launches < planned.0 as usize {
        Some(caps("too_few", detail))
    } else if short && (launches < 5 || blocks < 4) {
        Some(caps("budget", detail))
    } else if short {
        Some(informs("budget", detail))
    } else if launches < 5 {
        Some(caps("too_few", detail))
    } else {
        None
    }
}

/// `warmup_capped`: calls were still getting faster when the warm-up had to end.
pub fn warmup_capped(warmups: &[&Sample]) -> Option<Flag> {
    let mut chunks: BTreeMap<(u32, &str), Vec<&Sample>> = BTreeMap::new();
    for chunk in warmups {
        chunks.entry((chunk.launch, &chunk.arm)).or_default().push(chunk);
    }
    let capped = chunks.values().filter(|chunks| !super::warmup::is_warm(chunks)).count();
    (capped > 0).then(|| informs("warmup_capped", format!("{capped} of {} warm-ups", chunks.len())))
}

/// `bimodal` and `outliers` of one arm's slots.
pub fn shape(arm: &str, slots: &[f64]) -> Vec<Flag> {
    let modes = m_value(slots).filter(|m| *m > 3.2).map(|m| informs("bimodal", format!("{arm}: m-value {m:.1}")));
    let far = far_outliers(slots);
    let far = (far > 0).then(|| informs("outliers", format!("{arm}: {far} of {} slots", slots.len())));
    modes.into_iter().chain(far).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 launches of 6 blocks; `time(launch, block, position, first arm)` gives log times.
    fn blocks(time: impl Fn(u32, u32, usize, bool) -> f64) -> Vec<Block> {
        let mut blocks = Vec::new();
        for launch in 1..=8 {
            for block in 0..6 {
                let abba = block % 2 == 0;
                let (a, b) = if abba { ([0, 3], [1, 2]) } else { ([1, 2], [0, 3]) };
                // A seeded wobble that follows neither launch nor block, so that no test sees ties everywhere.
                let wobble = |position: usize| {
                    let mixed = u64::from(launch * 1_000 + block * 10).wrapping_add(position as u64);
                    let mixed = mixed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    1e-4 * ((mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
                };
                let at = |position, first| time(launch, block, position, first) + wobble(position);
                blocks.push(Block {
                    launch,
                    block,
                    abba,
                    a: a.map(|at_| at(at_, true)),
                    b: b.map(|at_| at(at_, false)),
                });
            }
        }
        blocks
    }

    #[test]
    fn a_quiet_run_raises_no_flag() {
        let quiet = blocks(|_, _, _, first| if first { 1.6 } else { 0.0 });
        assert_eq!(null(&quiet, ["simd", "gpu"]), []);
        assert_eq!(drift(&quiet), None);
        assert_eq!(order(&quiet), None);
    }

    #[test]
    fn a_ramp_of_one_arm_is_drift_and_half_of_it_is_the_bound() {
        let ramp = blocks(|_, block, _, first| if first { 1.6 } else { 0.02 * f64::from(block) });
        let flag = drift(&ramp).unwrap();
        assert!((flag.bound.unwrap() - 0.05).abs() < 1e-3, "{flag:?}");
        assert_eq!(flag.effect, FlagEffect::Widens);
    }

    #[test]
    fn a_cost_of_the_first_slot_shows_as_order_and_as_null() {
        let first_slot = blocks(|_, _, position, _| if position == 0 { 0.06 } else { 0.0 });
        // The arm outside pays in one kind of block, the other arm in the other kind: +-0.03 each.
        let flag = order(&first_slot).unwrap();
        assert!((flag.bound.unwrap() - 0.03).abs() < 1e-3, "{flag:?}");
        let flags = null(&first_slot, ["simd", "gpu"]);
        assert_eq!(flags.len(), 2);
        assert!(flags[0].detail.contains("first slot of simd"), "{flags:?}");
    }

    fn canary(launch: u32, arm: &str, ns: u64) -> Sample {
        let (arm, phase, row) = (arm.into(), "canary".into(), "resident".into());
        Sample { launch, arm, phase, row, calls: 1, total_ns: ns, ..Sample::default() }
    }

    #[test]
    fn a_canary_that_moves_by_more_than_5_percent_widens_by_as_much() {
        let steady = [canary(1, "simd", 1000), canary(2, "simd", 1040)];
        assert_eq!(throttle(&steady.iter().collect::<Vec<_>>(), &[]), None);
        let moved = [canary(1, "simd", 1000), canary(2, "simd", 1200), canary(1, "gpu", 500), canary(2, "gpu", 500)];
        let flag = throttle(&moved.iter().collect::<Vec<_>>(), &[]).unwrap();
        assert!((flag.bound.unwrap() - 1.2_f64.ln()).abs() < 1e-12, "{flag:?}");
        assert!(flag.detail.contains("(simd) moves by 20.0%"), "{flag:?}");
    }

    fn state(foreign: f64, steal: f64, battery: bool) -> LaunchState {
        LaunchState {
            launch: 1,
            load1: None,
            foreign_cores: Some(foreign),
            steal: Some(steal),
            cpu_mhz: None,
            governor: None,
            on_battery: Some(battery),
            canary_1t_ns: None,
            canary_ns: None,
            canary_gpu_ns: None,
            gpu_clock_mhz: None,
            gpu_celsius: None,
            throttle_reasons: None,
        }
    }

    #[test]
    fn other_processes_steal_and_battery_leave_the_gate_undecided() {
        assert_eq!(busy(&[state(0.19, 0.0, false)], 2), None);
        assert_eq!(busy(&[state(0.0, 0.0, false), state(0.21, 0.0, false)], 2).unwrap().effect, FlagEffect::Caps);
        assert_eq!(env(&[state(0.0, 0.01, false)]), None);
        assert_eq!(env(&[state(0.0, 0.02, false)]).unwrap().effect, FlagEffect::Caps);
        assert_eq!(env(&[state(0.0, 0.0, true)]).unwrap().detail, "on battery");
    }

    #[test]
    fn fewer_launches_than_planned_are_told_apart_by_their_cause() {
        let name = |launches, blocks, complete| {
            amount(launches, blocks, (8, 6), complete).map(|flag| (flag.name, flag.effect))
        };
        assert_eq!(name(8, 6, true), None);
        assert_eq!(name(12, 6, true), None);
        assert_eq!(name(8, 4, true), Some(("budget".into(), FlagEffect::Informs)));
        assert_eq!(name(5, 4, true), Some(("budget".into(), FlagEffect::Informs)));
        assert_eq!(name(4, 4, true), Some(("budget".into(), FlagEffect::Caps)));
        assert_eq!(name(8, 2, true), Some(("budget".into(), FlagEffect::Caps)));
        assert_eq!(name(7, 6, false), Some(("too_few".into(), FlagEffect::Caps)));
        assert_eq!(amount(3, 6, (3, 6), true).unwrap().name, "too_few");
    }

    #[test]
    fn a_slot_of_few_ticks_is_quantised() {
        let slot = |ns: u64| Sample { t_start_ns: 7 * 100, calls: 1, total_ns: ns, ..Sample::default() };
        let (short, long) = ([slot(5_000), slot(5_100)], [slot(5_000_000), slot(5_000_100)]);
        assert!((quantised(&short.iter().collect::<Vec<_>>()).unwrap().bound.unwrap() - 100.0 / 5_050.0).abs() < 1e-9);
        assert_eq!(quantised(&long.iter().collect::<Vec<_>>()), None);
    }
}
