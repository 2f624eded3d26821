//! Which runs are judged together, and what they say together.
//!
//! *No re-running until green*: full runs that measured the same code by the same protocol on the same machine in the same
//! environment are one group. The group passes only if every run in it passed. Running once more can take a PASS away;
//! it can never turn a FAIL into a PASS.

use super::{CurrentKernel, Record};
use crate::results::schema::{Mode, ResultFile, Verdict};
use std::collections::BTreeMap;

/// What is known about one kernel on one machine.
#[derive(Debug)]
pub struct Judgement<'a> {
    /// Name of the kernel.
    pub title: String,
    /// The run whose figures are shown: the newest complete one of the group.
    pub shown: &'a Record,
    /// All runs that were judged together, newest first, interrupted ones included.
    pub runs: Vec<&'a Record>,
    /// What they say together.
    pub verdict: Verdict,
    /// Why, in a word or two.
    pub reason: Option<String>,
    /// Whether it measured what the program has now.
    pub currency: Currency,
    /// The newest run of the CPU arm against itself on this machine.
    pub null: Option<&'a Record>,
}

/// Whether a result speaks of the present kernel. The better comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Currency {
    /// The kernel, its baseline or its protocol has changed since: the verdict no longer counts.
    Stale,
    /// Present code, measured by a protocol of the user's own: a verdict at the user's sizes, not the kernel's.
    OtherProtocol,
    /// Present code, by the kernel's protocol.
    Current,
}

impl Judgement<'_> {
    /// The figures that are shown.
    pub fn result(&self) -> &ResultFile {
        &self.shown.result
    }

    /// Whether there was a GPU: without one nothing that the GPU arm took is printed or drawn.
    pub fn has_gpu(&self) -> bool {
        has_gpu(self.result())
    }
}

/// Whether a result may carry GPU figures. The adapter decides, and so does the verdict: either says no, it is no.
pub(super) fn has_gpu(result: &ResultFile) -> bool {
    result.machine.gpu().is_some() && result.verdict.verdict != Verdict::NoGpu
}

/// What `lodestar kernels` says of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No full run on this machine.
    NotMeasured,
    /// Judged.
    Judged {
        /// The verdict.
        verdict: Verdict,
        /// Why.
        reason: Option<String>,
        /// Whether it measured what the program has now.
        currency: Currency,
        /// Commit that was measured, 8 digits.
        commit: Option<String>,
        /// When.
        measured_utc: String,
        /// The file, relative to the results folder.
        path: String,
    },
}

impl State {
    /// In the words of the table: `not measured`, `passed`, `failed`, `inconclusive`, `invalid`, `no GPU`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotMeasured => "not measured",
            Self::Judged { verdict, .. } => match verdict {
                Verdict::Pass => "passed",
                Verdict::Fail => "failed",
                Verdict::Inconclusive => "inconclusive",
                Verdict::Invalid => "invalid",
                Verdict::NoGpu => "no GPU",
            },
        }
    }
}

/// The state of one kernel on one machine.
pub fn state(records: &[Record], kernels: &[CurrentKernel], kernel: &str, machine_id: &str) -> State {
    let judgements = judge(records, kernels);
    let found = judgements
        .into_iter()
        .find(|judgement| judgement.result().kernel == kernel && judgement.result().machine.machine_id == machine_id);
    found.map_or(State::NotMeasured, |judgement| State::Judged {
        verdict: judgement.verdict,
        reason: judgement.reason.clone(),
        currency: judgement.currency,
        commit: judgement.result().code.commit.as_deref().map(|commit| super::numbers::short_hash(commit).to_owned()),
        measured_utc: judgement.result().run.started_utc.clone(),
        path: judgement.shown.path.clone(),
    })
}

/// One judgement for each kernel and machine that has a full run, sorted by the kernel's name, then by machine; never by
/// outcome. A group of the present code goes before older ones, then the newer before the older.
pub fn judge<'a>(records: &'a [Record], kernels: &[CurrentKernel]) -> Vec<Judgement<'a>> {
    let mut groups: BTreeMap<[&str; 6], Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.result.run.mode == Mode::Full && record.withdrawn.is_none()) {
        groups.entry(group_key(&record.result)).or_default().push(record);
    }
    let mut best: BTreeMap<(String, &str, &str), Judgement<'a>> = BTreeMap::new();
    for runs in groups.into_values() {
        let Some(judgement) = judge_group(runs, records, kernels) else { continue };
        let result = &judgement.shown.result;
        let key = (judgement.title.clone(), result.kernel.as_str(), result.machine.machine_id.as_str());
        let rank = |judgement: &Judgement<'_>| (judgement.currency, newest_key(judgement.shown));
        match best.get(&key) {
            Some(other) if rank(other) >= rank(&judgement) => {}
            _ => {
                best.insert(key, judgement);
            }
        }
    }
    best.into_values().collect()
}

fn group_key(result: &ResultFile) -> [&str; 6] {
    [
        &result.kernel,
        &result.machine.machine_id,
        &result.machine.env_id,
        &result.code.kernel_hash,
        &result.code.baseline_hash,
        &result.protocol.sha256,
    ]
}

fn newest_key(record: &Record) -> (String, String) {
    (record.result.run.started_utc.clone(), record.path.clone())
}

fn judge_group<'a>(
    mut runs: Vec<&'a Record>,
    records: &'a [Record],
    kernels: &[CurrentKernel],
) -> Option<Judgement<'a>> {
    runs.sort_by_key(|record| std::cmp::Reverse(newest_key(record)));
    let shown = *runs.iter().find(|record| record.result.run.complete).or_else(|| runs.first())?;
    let (verdict, reason) = together(&runs);
    let current = kernels.iter().find(|kernel| kernel.id == shown.result.kernel);
    let null = records
        .iter()
        .filter(|record| record.result.run.mode == Mode::Null && record.withdrawn.is_none())
        .filter(|record| record.result.machine.machine_id == shown.result.machine.machine_id)
        .max_by_key(|record| newest_key(record));
    Some(Judgement {
        title: current.map_or_else(|| shown.result.kernel.clone(), |kernel| kernel.title.clone()),
        shown,
        runs,
        verdict,
        reason,
        currency: current.map_or(Currency::Stale, |kernel| currency(&shown.result, kernel)),
        null,
    })
}

fn currency(result: &ResultFile, current: &CurrentKernel) -> Currency {
    let other_kernel = current.kernel_hash.as_ref().is_some_and(|hash| *hash != result.code.kernel_hash);
    if other_kernel || result.code.baseline_hash != current.baseline_hash {
        return Currency::Stale;
    }
    match &current.protocol_sha256 {
        Some(sha256) if *sha256 != result.protocol.sha256 => {
            if result.protocol.path == current.protocol_path {
                Currency::Stale
            } else {
                Currency::OtherProtocol
            }
        }
        _ => Currency::Current,
    }
}

/// PASS only if every run is PASS, FAIL if all are FAIL, INVALID if any is; else INCONCLUSIVE.
fn together(runs: &[&Record]) -> (Verdict, Option<String>) {
    let verdicts: Vec<(Verdict, Option<String>)> = runs.iter().filter_map(|record| of_run(&record.result)).collect();
    let number = verdicts.len();
    let having = |verdict: Verdict| verdicts.iter().filter(move |(found, _)| *found == verdict);
    let Some((first, reason)) = verdicts.first() else {
        return (Verdict::Inconclusive, Some("interrupted".to_owned()));
    };
    if let Some((_, reason)) = having(Verdict::Invalid).next() {
        let count = having(Verdict::Invalid).count();
        let of = if number > 1 { format!(" ({count} of {number} runs)") } else { String::new() };
        return (Verdict::Invalid, Some(format!("{}{of}", reason.as_deref().unwrap_or("invalid"))));
    }
    if verdicts.iter().all(|(verdict, _)| verdict == first) {
        return (*first, reason.clone());
    }
    (Verdict::Inconclusive, Some(format!("disagree {}/{number}", having(Verdict::Pass).count())))
}

/// What one run contributes. An interrupted run has no verdict of its own, but what it proved before it was stopped counts:
/// stopping a run that goes badly does not unmake it.
fn of_run(result: &ResultFile) -> Option<(Verdict, Option<String>)> {
    if result.run.complete {
        return Some((result.verdict.verdict, result.verdict.reason.clone()));
    }
    let invalid = result.gates.iter().find(|gate| gate.verdict == Verdict::Invalid);
    let failed = result.gates.iter().find(|gate| gate.decides && gate.verdict == Verdict::Fail);
    invalid.or(failed).map(|gate| (gate.verdict, gate.reason.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{self, Fixture};
    use super::*;

    fn verdict_of(records: &[Record]) -> (Verdict, Option<String>) {
        let judgements = judge(records, &fixtures::kernels());
        assert_eq!(judgements.len(), 1);
        (judgements[0].verdict, judgements[0].reason.clone())
    }

    fn run(verdict: Verdict, reason: Option<&str>, day: u32) -> Fixture {
        Fixture::new("cosine", fixtures::GPU_MACHINE).day(day).verdict(verdict, reason)
    }

    #[test]
    fn running_again_cannot_turn_a_fail_into_a_pass() {
        let fail = run(Verdict::Fail, Some("below_gate"), 1).record();
        let pass = run(Verdict::Pass, None, 2).record();
        assert_eq!(verdict_of(std::slice::from_ref(&fail)), (Verdict::Fail, Some("below_gate".into())));
        assert_eq!(verdict_of(&[fail.clone(), pass.clone()]), (Verdict::Inconclusive, Some("disagree 1/2".into())));
        let third = run(Verdict::Pass, None, 3).record();
        assert_eq!(verdict_of(&[fail, pass, third]), (Verdict::Inconclusive, Some("disagree 2/3".into())));
    }

    #[test]
    fn a_group_passes_or_fails_when_all_its_runs_do() {
        let pass = |day| run(Verdict::Pass, None, day).record();
        let fail = |day| run(Verdict::Fail, Some("slower"), day).record();
        assert_eq!(verdict_of(&[pass(1), pass(2)]), (Verdict::Pass, None));
        assert_eq!(verdict_of(&[fail(1), fail(2)]), (Verdict::Fail, Some("slower".into())));
    }

    #[test]
    fn one_wrong_output_makes_the_group_invalid() {
        let records = [run(Verdict::Invalid, Some("mismatch"), 1).record(), run(Verdict::Pass, None, 2).record()];
        assert_eq!(verdict_of(&records), (Verdict::Invalid, Some("mismatch (1 of 2 runs)".into())));
    }

    #[test]
    fn stopping_a_bad_run_does_not_unmake_what_it_proved() {
        let mut stopped = run(Verdict::Inconclusive, Some("interrupted"), 1).record();
        stopped.result.run.complete = false;
        let pass = run(Verdict::Pass, None, 2).record();
        assert_eq!(verdict_of(std::slice::from_ref(&stopped)), (Verdict::Inconclusive, Some("interrupted".into())));
        assert_eq!(verdict_of(&[stopped.clone(), pass.clone()]), (Verdict::Pass, None));
        let gate = stopped.result.gates.iter_mut().find(|gate| gate.decides).unwrap();
        gate.verdict = Verdict::Fail;
        gate.reason = Some("below_gate".into());
        assert_eq!(verdict_of(&[stopped.clone(), pass]), (Verdict::Inconclusive, Some("disagree 1/2".into())));
        assert_eq!(verdict_of(std::slice::from_ref(&stopped)), (Verdict::Fail, Some("below_gate".into())));
    }

    #[test]
    fn the_shown_run_is_the_newest_complete_one() {
        let first = run(Verdict::Pass, None, 1).record();
        let second = run(Verdict::Pass, None, 2).record();
        let mut third = run(Verdict::Inconclusive, None, 3).record();
        third.result.run.complete = false;
        let records = [second, third, first];
        let judgements = judge(&records, &fixtures::kernels());
        assert_eq!(judgements[0].shown, &records[0]);
        assert_eq!(judgements[0].runs.len(), 3);
    }

    #[test]
    fn other_code_protocol_machine_or_environment_is_another_group() {
        let base = run(Verdict::Fail, Some("below_gate"), 1).record();
        let changes: [fn(&mut ResultFile); 4] = [
            |result| result.code.kernel_hash = "00".into(),
            |result| result.code.baseline_hash = "00".into(),
            |result| result.protocol.sha256 = "00".into(),
            |result| result.machine.env_id = "00".into(),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut other = run(Verdict::Pass, None, 2).record();
            change(&mut other.result);
            let records = [base.clone(), other];
            let judgements = judge(&records, &fixtures::kernels());
            let stale = index < 3;
            // A group of the present code is shown even if another one is newer; of two such, the newer.
            let expected = if stale { Verdict::Fail } else { Verdict::Pass };
            assert_eq!((judgements.len(), judgements[0].verdict), (1, expected), "change {index}");
        }
        let mut other = run(Verdict::Pass, None, 2).record();
        other.result.machine.machine_id = "other-00000000".into();
        assert_eq!(judge(&[base, other], &fixtures::kernels()).len(), 2);
    }

    #[test]
    fn code_or_protocol_that_changed_since_makes_a_result_stale() {
        let records = [run(Verdict::Pass, None, 1).record()];
        let stale = |kernels: &[CurrentKernel]| judge(&records, kernels)[0].currency == Currency::Stale;
        let current = fixtures::kernels();
        assert!(!stale(&current));
        let changes: [fn(&mut CurrentKernel); 3] = [
            |kernel| kernel.kernel_hash = Some("00".into()),
            |kernel| kernel.baseline_hash = "00".into(),
            |kernel| kernel.protocol_sha256 = Some("00".into()),
        ];
        for change in changes {
            let mut kernels = fixtures::kernels();
            kernels.iter_mut().for_each(change);
            assert!(stale(&kernels));
        }
        let mut kernels = fixtures::kernels();
        kernels.iter_mut().for_each(|kernel| kernel.protocol_sha256 = None);
        assert!(!stale(&kernels), "no protocol to compare with");
        kernels.iter_mut().for_each(|kernel| kernel.kernel_hash = None);
        assert!(!stale(&kernels), "a program without GPU kernels");
        assert!(stale(&[]), "the kernel is gone");
    }

    #[test]
    fn a_protocol_of_the_users_own_is_not_stale_but_gives_way_to_the_kernels() {
        let mut own = run(Verdict::Pass, None, 2).record();
        own.result.protocol.path = "mine.toml".into();
        own.result.protocol.sha256 = "00".into();
        let mut records = vec![own];
        assert_eq!(judge(&records, &fixtures::kernels())[0].currency, Currency::OtherProtocol);
        records.push(run(Verdict::Fail, Some("below_gate"), 1).record());
        let judgements = judge(&records, &fixtures::kernels());
        assert_eq!((judgements[0].currency, judgements[0].verdict), (Currency::Current, Verdict::Fail));
    }

    #[test]
    fn quick_null_and_withdrawn_runs_are_never_judged() {
        let mut quick = run(Verdict::Pass, None, 1).record();
        quick.result.run.mode = Mode::Quick;
        let mut null = run(Verdict::Fail, None, 2).record();
        null.result.run.mode = Mode::Null;
        let mut withdrawn = run(Verdict::Pass, None, 3).record();
        withdrawn.withdrawn = Some("a browser was open".into());
        let mut records = vec![quick, null, withdrawn];
        assert!(judge(&records, &fixtures::kernels()).is_empty());
        assert_eq!(state(&records, &fixtures::kernels(), "cosine", fixtures::GPU_MACHINE), State::NotMeasured);
        records.push(run(Verdict::Fail, Some("parity"), 4).record());
        let judgements = judge(&records, &fixtures::kernels());
        assert_eq!((judgements[0].verdict, judgements[0].runs.len()), (Verdict::Fail, 1));
        assert_eq!(judgements[0].null, Some(&records[1]));
    }

    #[test]
    fn the_state_of_a_kernel_is_that_of_this_machine_only() {
        let records = [run(Verdict::Pass, None, 1).record()];
        let kernels = fixtures::kernels();
        assert_eq!(state(&records, &kernels, "cosine", "other-00000000"), State::NotMeasured);
        assert_eq!(state(&records, &kernels, "spmm", fixtures::GPU_MACHINE), State::NotMeasured);
        let found = state(&records, &kernels, "cosine", fixtures::GPU_MACHINE);
        assert_eq!(found.word(), "passed");
        assert!(
            matches!(found, State::Judged { currency: Currency::Current, commit: Some(commit), .. } if commit == "a1b2c3d4")
        );
    }
}
