//! From an interval and its flags to a verdict, from verdicts to an exit code.

use super::statistics::Interval;
use crate::results::schema::{Flag, FlagEffect, Gate, KernelVerdict, Verdict};
use crate::units::in_words;

/// The interval that is judged: widened on both sides by the largest bias bound among the flags. Log scale.
pub fn widened(interval: Interval, flags: &[Flag]) -> Interval {
    let bound = flags.iter().filter(|flag| flag.effect == FlagEffect::Widens).filter_map(|flag| flag.bound);
    let bound = bound.fold(0.0, f64::max);
    Interval { lo: interval.lo - bound, hi: interval.hi + bound }
}

/// The verdict for a gate, from the judged interval of the *ratio* (not its logarithm), with a reason in a word.
///
/// A flag that caps makes the measurement unable to decide either way, so it turns a failure into `Inconclusive` too.
pub fn judge(gate: f64, judged: Option<Interval>, flags: &[Flag]) -> (Verdict, Option<String>) {
    if let Some(cap) = flags.iter().find(|flag| flag.effect == FlagEffect::Caps) {
        return (Verdict::Inconclusive, Some(cap.name.clone()));
    }
    let Some(judged) = judged else {
        return (Verdict::Inconclusive, Some("too_few".into()));
    };
    if judged.lo >= gate {
        (Verdict::Pass, None)
    } else if judged.hi < gate {
        let reason = if judged.lo > 1.0 {
            "below_gate"
        } else if judged.hi < 1.0 {
            "slower"
        } else {
            "parity"
        };
        (Verdict::Fail, Some(reason.into()))
    } else {
        (Verdict::Inconclusive, Some("straddles".into()))
    }
}

/// The verdict over all gates of a run: wrong output anywhere spoils everything; else the deciding gates must all pass.
/// "All must pass" needs no correction for multiplicity.
pub fn kernel_verdict(gates: &[Gate], complete: bool) -> KernelVerdict {
    let verdict = |verdict, reason: Option<String>| KernelVerdict { verdict, reason };
    let place = |gate: &Gate| {
        let reason = gate.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{} at {}, {}{reason}", gate.row, gate.size, in_words(&gate.context))
    };
    if let Some(invalid) = gates.iter().find(|gate| gate.verdict == Verdict::Invalid) {
        return verdict(Verdict::Invalid, Some(place(invalid)));
    }
    let deciding: Vec<&Gate> = gates.iter().filter(|gate| gate.decides).collect();
    let count = |wanted| deciding.iter().filter(|gate| gate.verdict == wanted).count();
    if count(Verdict::NoGpu) > 0 {
        return verdict(Verdict::NoGpu, deciding.iter().find_map(|gate| gate.reason.clone()));
    }
    if !complete {
        return verdict(Verdict::Inconclusive, Some("incomplete".into()));
    }
    let (all, failed) = (deciding.len(), count(Verdict::Fail));
    if all > 0 && count(Verdict::Pass) == all {
        verdict(Verdict::Pass, None)
    } else if let Some(first) = deciding.iter().find(|gate| gate.verdict == Verdict::Fail) {
        verdict(Verdict::Fail, Some(format!("{failed} of {all} gates, first {}", place(first))))
    } else {
        let undecided = deciding.iter().find(|gate| gate.verdict == Verdict::Inconclusive);
        verdict(Verdict::Inconclusive, Some(undecided.map_or_else(|| "no_gates".into(), |gate| place(gate))))
    }
}

/// The exit code of one verdict.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::Fail => 1,
        Verdict::Inconclusive => 3,
        Verdict::Invalid => 4,
        Verdict::NoGpu => 5,
    }
}

/// The exit code of several kernels: the gravest of theirs, in the order 2, 4, 5, 1, 3, 0.
pub fn gravest(codes: impl IntoIterator<Item = u8>) -> u8 {
    const GRAVITY: [u8; 5] = [2, 4, 5, 1, 3];
    let codes: Vec<u8> = codes.into_iter().collect();
    GRAVITY.into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Context;

    fn flag(effect: FlagEffect, bound: Option<f64>) -> Flag {
        Flag { name: "busy".into(), effect, bound, detail: String::new() }
    }

    fn judged(lo: f64, hi: f64) -> (Verdict, Option<String>) {
        judge(5.0, Some(Interval { lo, hi }), &[])
    }

    #[test]
    fn the_lower_end_must_reach_the_gate_and_equality_passes() {
        assert_eq!(judged(5.0, 6.0), (Verdict::Pass, None));
        assert_eq!(judged(f64::from_bits(5.0_f64.to_bits() - 1), 6.0).0, Verdict::Inconclusive);
    }

    #[test]
    fn the_upper_end_must_miss_the_gate_to_fail() {
        assert_eq!(judged(4.0, 5.0), (Verdict::Inconclusive, Some("straddles".into())));
        assert_eq!(judged(4.0, 4.9), (Verdict::Fail, Some("below_gate".into())));
        assert_eq!(judged(0.9, 1.1), (Verdict::Fail, Some("parity".into())));
        assert_eq!(judged(1.0, 1.1), (Verdict::Fail, Some("parity".into())));
        assert_eq!(judged(0.8, 0.9), (Verdict::Fail, Some("slower".into())));
    }

    #[test]
    fn no_interval_never_passes() {
        assert_eq!(judge(5.0, None, &[]), (Verdict::Inconclusive, Some("too_few".into())));
    }

    #[test]
    fn a_capping_flag_leaves_nothing_decided() {
        let caps = [flag(FlagEffect::Informs, None), flag(FlagEffect::Caps, None)];
        for interval in [Interval { lo: 40.0, hi: 41.0 }, Interval { lo: 0.1, hi: 0.2 }] {
            assert_eq!(judge(5.0, Some(interval), &caps), (Verdict::Inconclusive, Some("busy".into())));
        }
    }

    #[test]
    fn the_largest_bound_widens_and_others_do_not_add_up() {
        let flags = [
            flag(FlagEffect::Widens, Some(0.01)),
            flag(FlagEffect::Widens, Some(0.03)),
            flag(FlagEffect::Informs, Some(9.0)),
        ];
        let wide = widened(Interval { lo: 1.0, hi: 2.0 }, &flags);
        assert_eq!((wide.lo, wide.hi), (0.97, 2.03));
        assert_eq!(widened(Interval { lo: 1.0, hi: 2.0 }, &[]), Interval { lo: 1.0, hi: 2.0 });
    }

    fn gate(decides: bool, verdict: Verdict) -> Gate {
        Gate {
            size: 1000,
            context: Context::from([("dim".into(), 384.into())]),
            row: "resident".into(),
            decides,
            baseline: "simd".into(),
            point: None,
            lo: None,
            hi: None,
            i1: None,
            i2: None,
            launches: vec![],
            launch_sd: None,
            null_cpu: None,
            null_gpu: None,
            flags: vec![],
            verdict,
            reason: None,
        }
    }

    #[test]
    fn a_kernel_passes_only_when_every_deciding_gate_does() {
        use Verdict::{Fail, Inconclusive, Invalid, NoGpu, Pass};
        let kernel = |verdicts: &[(bool, Verdict)], complete| {
            let gates: Vec<_> = verdicts.iter().map(|(decides, verdict)| gate(*decides, *verdict)).collect();
            kernel_verdict(&gates, complete).verdict
        };
        assert_eq!(kernel(&[(true, Pass), (true, Pass), (false, Fail)], true), Pass);
        assert_eq!(kernel(&[(true, Pass), (true, Fail), (true, Inconclusive)], true), Fail);
        assert_eq!(kernel(&[(true, Pass), (true, Inconclusive)], true), Inconclusive);
        assert_eq!(kernel(&[(true, Pass)], false), Inconclusive);
        assert_eq!(kernel(&[(true, NoGpu), (false, NoGpu)], true), NoGpu);
        assert_eq!(kernel(&[(true, NoGpu), (false, Invalid)], true), Invalid);
        assert_eq!(kernel(&[(true, Pass), (false, Invalid)], true), Invalid);
        assert_eq!(kernel(&[(false, Pass)], true), Inconclusive);
        assert_eq!(kernel(&[], true), Inconclusive);
    }

    #[test]
    fn a_failure_names_the_first_gate() {
        let verdict = kernel_verdict(&[gate(true, Verdict::Pass), gate(true, Verdict::Fail)], true);
        assert_eq!(verdict.reason.unwrap(), "1 of 2 gates, first resident at 1000, dim 384");
    }

    #[test]
    fn the_gravest_exit_code_wins() {
        assert_eq!(gravest([0, 3, 1]), 1);
        assert_eq!(gravest([1, 5]), 5);
        assert_eq!(gravest([5, 4, 1]), 4);
        assert_eq!(gravest([4, 2]), 2);
        assert_eq!(gravest([3, 0]), 3);
        assert_eq!(gravest([]), 0);
    }
}
