//! A run that is interrupted and goes on.

use crate::scripted::{Outcome, QUIET, STORM, Setup};
use lodestar::gate::run::Ended;
use lodestar::gate::verify::verify;
use lodestar::results::schema::{Sample, Verdict};
use lodestar::results::{ledger, samples, store};
use std::path::{Path, PathBuf};

/// Which slots were timed, in order.
fn slots(samples: &[Sample]) -> Vec<(u32, u32, u64, String, String, u32, u32)> {
    let slots = samples.iter().filter(|sample| sample.phase == "slot" && sample.row != "cold_init");
    slots
        .map(|slot| (slot.launch, slot.context, slot.size, slot.row.clone(), slot.arm.clone(), slot.block, slot.pos))
        .collect()
}

fn resumed(setup: &Setup<'_>, left: &Outcome) -> Outcome {
    setup.go_on(Some((left.result.clone(), left.samples.clone())))
}

#[test]
fn an_interrupted_and_resumed_run_has_every_slot_of_an_uninterrupted_one_once_and_in_its_order() {
    let whole = Setup::new(8.0, QUIET, 71).run();
    // In the pilot, after it, at the end of a launch, in the middle of one, before the very last cell, after it.
    for stop_after in [1, 2, 3, 4, 3 + 3, 3 + 7 * 3 + 1, 3 + 8 * 3 - 1, 3 + 8 * 3] {
        let left = Setup { stop_after: Some(stop_after), ..Setup::new(8.0, QUIET, 71) }.run();
        let outcome = resumed(&Setup::new(8.0, QUIET, 71), &left);
        let at = format!("after {stop_after} cells");
        assert!(matches!(outcome.ended, Ok(Ended::Complete)), "{at}: {:?}", outcome.ended);
        assert_eq!(slots(&outcome.samples), slots(&whole.samples), "{at}");
        assert_eq!(outcome.samples[..left.samples.len()], left.samples, "{at}: what was finished is as it was");
        let result = &outcome.result;
        assert_eq!((result.verdict.verdict, result.run.complete), (Verdict::Pass, true), "{at}");
        assert_eq!(
            (result.planned.clone(), result.rows.len()),
            (whole.result.planned.clone(), whole.result.rows.len())
        );
        let checks = |outcome: &Outcome| {
            let rows = outcome.result.agreement.iter();
            rows.map(|row| (row.size, row.arm.clone(), row.launch, row.checks)).collect::<Vec<_>>()
        };
        assert_eq!(checks(&outcome), checks(&whole), "{at}");
        assert_eq!(result.run.resumed.len(), 1);
        assert_eq!(result.run.resumed[0].samples, left.samples.len() as u64);
        verify(result, &outcome.samples).unwrap();
    }
}

#[test]
fn a_run_can_be_interrupted_many_times_and_says_how_often() {
    let setup = Setup { stop_after: Some(5), ..Setup::new(8.0, QUIET, 72) };
    let mut outcome = setup.run();
    let mut times = 0;
    while matches!(outcome.ended, Ok(Ended::Interrupted)) {
        times += 1;
        outcome = resumed(&setup, &outcome);
    }
    assert_eq!((times, outcome.result.run.resumed.len()), (5, 5));
    assert_eq!(slots(&outcome.samples), slots(&Setup::new(8.0, QUIET, 72).run().samples));
    verify(&outcome.result, &outcome.samples).unwrap();
    // 27 cells; launches that were cut in two have the state of both parts.
    let of = |launch| outcome.result.state.iter().filter(|state| state.launch == launch).count();
    assert!((1..=8).all(|launch| of(launch) >= 1));
    assert!((1..=8).any(|launch| of(launch) == 2));
}

#[test]
fn a_look_that_was_taken_is_not_taken_again_on_more_data() {
    let setup = Setup { looks: 3, ..Setup::new(5.0, STORM, 83) };
    let whole = setup.run();
    let launches = |outcome: &Outcome| outcome.result.gates.iter().map(|gate| gate.launches.len()).collect::<Vec<_>>();
    assert_eq!(launches(&whole), [16, 16, 16], "undecided to the end");
    // In the tenth launch, and with samples on which the first look would decide now, had it not been taken already.
    let mut left = Setup { stop_after: Some(3 + 9 * 3 + 1), looks: 3, ..Setup::new(5.0, STORM, 83) }.run();
    for slot in left.samples.iter_mut().filter(|sample| sample.arm == "gpu" && sample.phase == "slot") {
        for time in [&mut slot.total_ns, &mut slot.min_ns, &mut slot.median_ns, &mut slot.max_ns] {
            *time /= 10;
        }
    }
    let outcome = resumed(&Setup { looks: 3, ..Setup::new(50.0, STORM, 83) }, &left);
    assert!(launches(&outcome).iter().all(|launches| *launches >= 12), "{:?}", launches(&outcome));
    verify(&outcome.result, &outcome.samples).unwrap();
}

#[test]
fn verify_finds_a_slot_that_was_measured_twice_and_a_past_that_was_changed() {
    let left = Setup { stop_after: Some(9), ..Setup::new(8.0, QUIET, 73) }.run();
    let outcome = resumed(&Setup::new(8.0, QUIET, 73), &left);
    let mut twice = outcome.samples.clone();
    let slot = twice.iter().find(|sample| sample.phase == "slot" && sample.launch == 2).unwrap().clone();
    twice.push(slot);
    let mut result = outcome.result.clone();
    result.samples.rows += 1;
    let message = verify(&result, &twice).unwrap_err().to_string();
    assert!(message.starts_with("launch 2, ") && message.contains("two measurements"), "{message}");
    let mut changed = outcome.samples.clone();
    changed[0].total_ns += 1;
    assert_eq!(verify(&outcome.result, &changed).unwrap_err().place, "run.resumed[0].sha256");
}

fn saved(results: &Path, outcome: &Outcome) -> PathBuf {
    let stem = "20260101T000000Z-aaaaaaaa-0123abcd";
    let mut writer = store::Writer::create(results, "scripted-00000000", "scripted", stem).unwrap();
    writer.append(&outcome.samples).unwrap();
    writer.save(&mut outcome.result.clone()).unwrap();
    // Samples of the next size reached the disk, their result did not.
    writer.append(&outcome.samples[..10]).unwrap();
    writer.leave()
}

#[test]
fn what_was_saved_is_what_is_resumed_and_ends_as_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let left = Setup { stop_after: Some(8), ..Setup::new(5.0, STORM, 42) }.run();
    let partial = saved(folder.path(), &left);
    assert_eq!(
        store::unfinished(folder.path(), "scripted-00000000", "scripted").unwrap(),
        std::slice::from_ref(&partial)
    );
    assert!(store::unfinished(folder.path(), "scripted-00000000", "other").unwrap().is_empty());
    let (mut writer, result, kept) = store::Writer::resume(folder.path(), &partial).unwrap();
    assert_eq!(kept, left.samples);
    let outcome = Setup::new(5.0, STORM, 42).go_on(Some((result, kept)));
    writer.append(&outcome.samples[left.samples.len()..]).unwrap();
    let mut result = outcome.result.clone();
    let path = writer.finish(&mut result).unwrap();
    let read = samples::read(&path.with_file_name(&result.samples.path), &result.samples.sha256).unwrap();
    assert_eq!(read, outcome.samples);
    verify(&store::load(&path).unwrap(), &read).unwrap();
    assert_eq!(ledger::check(folder.path()).unwrap(), []);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2, "no partial file stays");
}

#[test]
fn a_damaged_partial_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let left = Setup { stop_after: Some(8), ..Setup::new(5.0, STORM, 42) }.run();
    let partial = saved(folder.path(), &left);
    let csv = partial.with_file_name("20260101T000000Z-aaaaaaaa-0123abcd.samples.csv.partial");
    let whole = std::fs::read(&csv).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&csv, bytes).unwrap();
        let message = store::Writer::resume(folder.path(), &partial).err().unwrap().to_string();
        assert_eq!(std::fs::read(&csv).unwrap(), bytes, "{message}");
        assert!(store::recover(folder.path(), "scripted-00000000", "scripted").is_err());
        assert_eq!(std::fs::read(&csv).unwrap(), bytes, "{message}");
        message
    };
    // In the middle of the fifth line, and in the middle of a number.
    let end = whole.split_inclusive(|byte| *byte == b'\n').take(5).map(<[u8]>::len).sum::<usize>() - 3;
    let message = refused(&whole[..end]);
    let expected =
        format!(": line 5: expected {} samples after a header, found the end of the file", left.samples.len());
    assert!(message.ends_with(&expected), "{message}");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    assert!(refused(&changed).contains(".samples.csv.partial: checksum: expected "));
    std::fs::write(&csv, &whole).unwrap();
    let json = std::fs::read(&partial).unwrap();
    std::fs::write(&partial, &json[..json.len() / 2]).unwrap();
    let message = store::Writer::resume(folder.path(), &partial).err().unwrap().to_string();
    assert!(message.contains(".json.partial: line "), "{message}");
    assert_eq!(std::fs::read(&partial).unwrap(), json[..json.len() / 2]);
}
