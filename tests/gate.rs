//! The whole gate on a scripted clock: the method's acceptance checks, without a process, a device or a second of waiting.

#[path = "gate/diagnostics.rs"]
mod diagnostics;
#[path = "gate/names.rs"]
mod names;
#[path = "gate/program.rs"]
mod program;
#[path = "gate/resume.rs"]
mod resume;
#[path = "gate/scripted.rs"]
mod scripted;

use lodestar::gate::evaluate::evaluate;
use lodestar::gate::run::Ended;
use lodestar::gate::statistics::{hodges_lehmann, signed_rank_interval, student_interval};
use lodestar::gate::verify::verify;
use lodestar::kernels::Variant;
use lodestar::results::schema::{Gate, Mode, ResultFile, Verdict};
use lodestar::results::{ledger, samples, store};
use scripted::{Noise, Outcome, QUIET, STORM, Setup, adapter, one_size};
use std::path::{Path, PathBuf};

fn gate_at(result: &ResultFile, size: u64) -> &Gate {
    result.gates.iter().find(|gate| gate.size == size && gate.row == "resident").unwrap()
}

fn verdict(outcome: &Outcome) -> Verdict {
    assert!(outcome.ended.is_ok(), "{:?}", outcome.ended);
    outcome.result.verdict.verdict
}

#[test]
fn a_clear_win_passes_and_the_interval_holds_the_true_ratio() {
    let outcome = Setup::new(8.0, QUIET, 11).run();
    assert_eq!(verdict(&outcome), Verdict::Pass);
    assert!(outcome.result.run.complete);
    let gate = gate_at(&outcome.result, 1000);
    assert!(gate.decides && !gate_at(&outcome.result, 500).decides);
    assert_eq!((gate.launches.len(), gate.baseline.as_str()), (8, "simd"));
    assert!(gate.lo.unwrap() < 8.0 && 8.0 < gate.hi.unwrap(), "{gate:?}");
    let row =
        outcome.result.rows.iter().find(|row| row.arm == "gpu" && row.size == 1000 && row.row == "resident").unwrap();
    assert_eq!((row.slots, row.calls_per_slot), (96, Some(3)));
    assert!((row.median_ns.unwrap() as f64 / 7.5e6 - 1.0).abs() < 0.02, "{row:?}");
}

#[test]
fn a_loss_fails_with_its_reason() {
    for (ratio, reason) in [(3.0, "below_gate"), (1.0, "parity"), (0.5, "slower")] {
        let outcome = Setup::new(ratio, QUIET, 12).run();
        assert_eq!(verdict(&outcome), Verdict::Fail);
        assert_eq!(gate_at(&outcome.result, 1000).reason.as_deref(), Some(reason));
    }
}

#[test]
fn the_null_control_never_passes_in_200_runs_in_a_storm() {
    let text = one_size();
    let mut covered = 0;
    for seed in 0..200 {
        let outcome = Setup { mode: Mode::Null, text: &text, ..Setup::new(1.0, STORM, seed) }.run();
        let found = verdict(&outcome);
        assert!(matches!(found, Verdict::Inconclusive | Verdict::Fail), "seed {seed}: {:?}", outcome.result.gates);
        let gate = gate_at(&outcome.result, 1000);
        covered += u32::from(gate.lo.unwrap() <= 1.0 && 1.0 <= gate.hi.unwrap());
        assert!(outcome.samples.iter().all(|sample| sample.arm != "gpu"));
    }
    assert!(covered >= 196, "1.00 was inside of the interval in {covered} of 200 runs");
}

#[test]
fn at_the_gate_a_storm_is_hardly_ever_called_a_pass() {
    let text = one_size();
    let passes = (0..200).filter(|seed| {
        let outcome = Setup { text: &text, ..Setup::new(5.0, STORM, 1000 + seed) }.run();
        verdict(&outcome) == Verdict::Pass
    });
    // The design's rate is 0.5%; five of 200 would be ten times too many.
    let passes = passes.count();
    assert!(passes < 5, "{passes} of 200");
}

#[test]
fn a_slowdown_of_10_percent_never_stays_a_pass() {
    let text = one_size();
    let mut passes = 0;
    for seed in 0..40 {
        let mut setup = Setup { text: &text, ..Setup::new(5.0 * 1.05, QUIET, 2000 + seed) };
        passes += u32::from(verdict(&setup.run()) == Verdict::Pass);
        setup.script.gpu_ns *= 1.10;
        assert_ne!(verdict(&setup.run()), Verdict::Pass, "seed {seed}");
    }
    assert!(passes >= 30, "without the slowdown {passes} of 40 pass, so the test can fail");
}

#[test]
fn swapped_arms_give_the_reciprocal() {
    let outcome = Setup::new(5.0, STORM, 31).run();
    let mut swapped = outcome.samples.clone();
    for sample in &mut swapped {
        sample.arm = match sample.arm.as_str() {
            "simd" => "gpu".into(),
            "gpu" => "simd".into(),
            other => other.into(),
        };
    }
    // Canaries are not the arms'.
    let mut result = outcome.result.clone();
    evaluate(&mut result, &swapped);
    for size in [500, 1000, 2000] {
        let (there, back) = (gate_at(&outcome.result, size), gate_at(&result, size));
        let reciprocal = |a: Option<f64>, b: Option<f64>| {
            assert!((a.unwrap() * b.unwrap() - 1.0).abs() < 1e-12, "{a:?} and {b:?}");
        };
        reciprocal(there.point, back.point);
        reciprocal(there.lo, back.hi);
        reciprocal(there.hi, back.lo);
    }
}

#[test]
fn verify_reproduces_every_digit_after_a_round_trip_through_files() {
    let outcome = Setup::new(5.0, STORM, 41).run();
    let text = serde_json::to_string_pretty(&outcome.result).unwrap();
    let result: ResultFile = serde_json::from_str(&text).unwrap();
    assert_eq!(result, outcome.result);
    let csv = samples::to_csv(&outcome.samples, true).unwrap();
    let read = samples::parse(Path::new("s.csv"), &csv).unwrap();
    assert_eq!(read, outcome.samples);
    let verified = verify(&result, &read).unwrap();
    assert!(verified.values > 100 && verified.gates == 3, "{verified:?}");
}

#[test]
fn verify_finds_one_changed_digit() {
    let outcome = Setup::new(5.0, STORM, 41).run();
    let mut result = outcome.result.clone();
    let lo = result.gates[1].lo.unwrap();
    result.gates[1].lo = Some(f64::from_bits(lo.to_bits() + 1));
    assert_eq!(verify(&result, &outcome.samples).unwrap_err().place, "gates[1].lo");
    let mut result = outcome.result.clone();
    result.verdict.verdict = Verdict::Pass;
    assert_eq!(verify(&result, &outcome.samples).unwrap_err().place, "verdict.verdict");
    let mut samples = outcome.samples.clone();
    let fastest = samples.iter_mut().filter(|sample| sample.phase == "slot" && sample.arm == "gpu");
    fastest.min_by_key(|sample| sample.total_ns).unwrap().total_ns -= 1;
    assert!(verify(&outcome.result, &samples).is_err());
    samples.pop();
    assert_eq!(verify(&outcome.result, &samples).unwrap_err().place, "samples.rows");
}

#[test]
fn a_software_adapter_is_checked_and_never_timed() {
    let outcome = Setup { adapter: Some(adapter(true)), ..Setup::new(8.0, QUIET, 51) }.run();
    assert_eq!(verdict(&outcome), Verdict::NoGpu);
    let result = &outcome.result;
    assert!(outcome.samples.iter().all(|sample| sample.arm != "gpu"), "no sample of the adapter exists");
    for row in result.rows.iter().filter(|row| row.arm == "gpu") {
        let times = [row.median_ns, row.p25_ns, row.p75_ns, row.min_ns, row.max_ns];
        assert_eq!(times, [None; 5], "{row:?}");
        assert!(row.reason.as_ref().unwrap().starts_with("software adapter"), "{row:?}");
    }
    for gate in &result.gates {
        assert_eq!((gate.verdict, gate.point, gate.lo, gate.hi), (Verdict::NoGpu, None, None, None));
        assert!(gate.launches.is_empty() && gate.i1.is_none() && gate.null_gpu.is_none());
        assert_eq!(gate.reason.as_deref(), Some("software adapter llvmpipe (LLVM 19, 256 bits)"));
    }
    let checked: Vec<_> = result.agreement.iter().filter(|agreement| agreement.arm == "gpu").collect();
    assert_eq!(checked.len(), 3);
    assert!(checked.iter().all(|agreement| agreement.checks == 4 && agreement.mismatch.is_none()));
    // As many CPU slots as a paired run has.
    let cpu = result.rows.iter().find(|row| row.arm == "simd").unwrap();
    assert!(cpu.slots >= 96 && cpu.median_ns.is_some(), "{cpu:?}");
    assert!(verify(result, &outcome.samples).is_ok());
}

#[test]
fn without_an_adapter_the_cpu_rows_are_recorded() {
    let outcome = Setup { adapter: None, ..Setup::new(8.0, QUIET, 52) }.run();
    assert_eq!(verdict(&outcome), Verdict::NoGpu);
    assert_eq!(outcome.result.verdict.reason.as_deref(), Some("no adapter"));
    assert!(outcome.result.rows.iter().any(|row| row.arm == "simd" && row.median_ns.is_some()));
    assert!(outcome.result.rows.iter().all(|row| row.arm != "gpu" || row.reason.as_deref() == Some("no adapter")));
}

#[test]
fn a_wrong_result_is_invalid_and_has_no_ratio_on_any_adapter() {
    for software in [false, true] {
        let mut setup = Setup { adapter: Some(adapter(software)), ..Setup::new(8.0, QUIET, 61) };
        setup.script.wrong = Some(Variant::Gpu);
        let outcome = setup.run();
        assert_eq!(verdict(&outcome), Verdict::Invalid, "software: {software}");
        for gate in &outcome.result.gates {
            assert_eq!(gate.verdict, Verdict::Invalid);
            assert_eq!((gate.point, gate.lo, gate.hi, gate.launches.len()), (None, None, None, 0));
            let reason = gate.reason.as_deref().unwrap();
            assert_eq!(reason, "gpu: input 2: query 3, rank 7: expected 0.5, found 0.25");
        }
        let gpu = outcome.result.rows.iter().filter(|row| row.arm == "gpu" && row.row == "resident");
        assert!(gpu.clone().count() == 3 && gpu.clone().all(|row| row.median_ns.is_none()));
        assert!(verify(&outcome.result, &outcome.samples).is_ok());
    }
}

#[test]
fn a_wrong_cpu_result_is_invalid_too() {
    let mut setup = Setup::new(8.0, QUIET, 62);
    setup.script.wrong = Some(Variant::Simd { threads: 1 });
    assert_eq!(verdict(&setup.run()), Verdict::Invalid);
}

#[test]
fn a_lost_device_is_invalid_and_the_run_ends_by_itself() {
    let mut setup = Setup::new(8.0, QUIET, 63);
    setup.script.lost = true;
    let outcome = setup.run();
    assert_eq!(verdict(&outcome), Verdict::Invalid);
    let gate = gate_at(&outcome.result, 1000);
    assert_eq!(gate.reason.as_deref(), Some("gpu: device lost: fell off the bus"));
    assert_eq!(gate.point, None);
}

#[test]
fn a_debug_build_is_invalid_and_times_nothing() {
    let outcome = Setup { profile: "debug", ..Setup::new(8.0, QUIET, 64) }.run();
    assert_eq!(verdict(&outcome), Verdict::Invalid);
    assert!(
        outcome.result.gates.iter().all(|gate| gate.point.is_none() && gate.reason.as_deref() == Some("debug_build"))
    );
    assert!(outcome.result.rows.iter().all(|row| row.median_ns.is_none()));
    assert!(outcome.result.agreement.iter().all(|agreement| agreement.checks == 4));
}

#[test]
fn an_interrupted_run_keeps_finished_sizes_and_decides_nothing() {
    // 3 cells of the pilot, 7 launches of 3 cells, and one cell of the last launch.
    let outcome = Setup { stop_after: Some(3 + 7 * 3 + 1), ..Setup::new(8.0, QUIET, 71) }.run();
    assert!(matches!(outcome.ended, Ok(Ended::Interrupted)));
    let result = &outcome.result;
    assert!(!result.run.complete);
    assert_eq!(result.verdict.verdict, Verdict::Inconclusive);
    assert_eq!(result.verdict.reason.as_deref(), Some("incomplete"));
    let full: Vec<_> = result.gates.iter().filter(|gate| gate.launches.len() == 8).collect();
    assert_eq!(full.len(), 1, "one size has all its launches");
    assert_eq!(full[0].verdict, Verdict::Pass);
    for gate in result.gates.iter().filter(|gate| gate.launches.len() < 8) {
        assert_eq!((gate.verdict, gate.reason.as_deref()), (Verdict::Inconclusive, Some("too_few")));
        assert!(gate.point.is_some(), "what was measured stays");
    }
    assert!(verify(result, &outcome.samples).is_ok());
}

#[test]
fn a_run_interrupted_in_the_pilot_is_valid() {
    let outcome = Setup { stop_after: Some(1), ..Setup::new(8.0, QUIET, 72) }.run();
    assert!(matches!(outcome.ended, Ok(Ended::Interrupted)));
    assert_eq!(outcome.result.gates.len(), 1);
    assert!(outcome.result.rows.iter().all(|row| row.reason.as_deref() == Some("not reached")));
    assert!(verify(&outcome.result, &outcome.samples).is_ok());
}

#[test]
fn a_quick_run_has_5_launches_of_4_blocks() {
    let outcome = Setup { mode: Mode::Quick, ..Setup::new(8.0, QUIET, 81) }.run();
    assert_eq!(verdict(&outcome), Verdict::Pass);
    assert_eq!(gate_at(&outcome.result, 1000).launches.len(), 5);
    assert_eq!((outcome.result.protocol.launches, outcome.result.protocol.blocks), (5, 4));
}

#[test]
fn an_extended_run_looks_three_times_at_a_third_of_the_error_rate() {
    let decided = Setup { looks: 3, ..Setup::new(8.0, QUIET, 82) }.run();
    assert_eq!(gate_at(&decided.result, 1000).launches.len(), 8, "decided at the first look");
    assert_eq!(verdict(&decided), Verdict::Pass);
    let once = Setup::new(8.0, QUIET, 82).run();
    let width = |gate: &Gate| gate.i1.unwrap()[1] - gate.i1.unwrap()[0];
    let (wide, narrow) = (width(gate_at(&decided.result, 1000)), width(gate_at(&once.result, 1000)));
    assert!((wide / narrow - 4.355 / 3.499).abs() < 1e-3, "{}", wide / narrow);
    let undecided = Setup { looks: 3, ..Setup::new(5.0, STORM, 83) }.run();
    assert_eq!(gate_at(&undecided.result, 1000).launches.len(), 16);
}

#[test]
fn a_size_beyond_its_budget_is_measured_in_part_and_not_decided() {
    let text = one_size().replace("[scripted]", "[plan]\nmax_seconds_per_size = 4\n[scripted]");
    let outcome = Setup { text: &text, ..Setup::new(8.0, QUIET, 91) }.run();
    assert_eq!(verdict(&outcome), Verdict::Inconclusive);
    let gate = gate_at(&outcome.result, 1000);
    assert_eq!(gate.reason.as_deref(), Some("budget"));
    assert!(gate.point.is_some() && gate.launches.len() < 5, "{gate:?}");
}

#[test]
fn fewer_than_five_launches_decide_nothing() {
    let text = one_size().replace("[scripted]", "[plan]\nlaunches = 4\n[scripted]");
    let outcome = Setup { text: &text, ..Setup::new(40.0, QUIET, 92) }.run();
    assert_eq!(gate_at(&outcome.result, 1000).reason.as_deref(), Some("too_few"));
}

#[test]
fn a_clock_without_noise_gives_no_interval() {
    let calm = scripted::Weather::default();
    let text = one_size();
    let outcome = Setup { text: &text, ..Setup::new(40.0, calm, 93) }.run();
    let gate = gate_at(&outcome.result, 1000);
    assert_eq!((gate.verdict, gate.reason.as_deref(), gate.i1), (Verdict::Inconclusive, Some("too_few"), None));
}

/// The hull of the two intervals for 8 launches of 6 blocks, on the simulator's model without the scheduler around it.
#[test]
fn the_hull_of_8_launches_of_6_blocks_holds_the_truth_in_a_storm() {
    let (mut covered, mut wrong, runs) = (0, 0, 1000);
    let truth = 5.0_f64.ln();
    let mut noise = Noise(42);
    for _ in 0..runs {
        let (mut all, mut medians) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            let offset = [STORM.launch * noise.normal(), STORM.launch * noise.normal()];
            let mut wander = 0.0;
            let mut ratios = Vec::new();
            for block in 0..6_usize {
                let order =
                    if (block + usize::from(noise.uniform() < 0.5)) % 2 == 0 { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
                let mut sums = [0.0; 2];
                for (pos, arm) in order.into_iter().enumerate() {
                    wander = 0.9 * wander + STORM.wander * noise.normal();
                    let spike = noise.uniform() < STORM.spikes;
                    let spike = if spike { -0.15 * noise.uniform().max(1e-12).ln() } else { 0.0 };
                    sums[arm] += if arm == 0 { truth } else { 0.0 }
                        + offset[arm]
                        + wander
                        + spike
                        + STORM.ramp * (4 * block + pos) as f64 / 24.0
                        + if pos == 0 { STORM.first } else { 0.0 }
                        + STORM.error * noise.normal();
                }
                ratios.push(0.5 * (sums[0] - sums[1]));
            }
            medians.push(hodges_lehmann(&ratios).unwrap());
            all.extend(ratios);
        }
        let hull = student_interval(&medians, 0.01).unwrap().hull(signed_rank_interval(&all, 0.01).unwrap());
        covered += i32::from(hull.contains(truth));
        wrong += i32::from(hull.lo >= truth);
    }
    assert!(covered >= 980, "{covered} of {runs}");
    assert!(wrong <= 15, "{wrong} of {runs} would pass at the gate");
}

fn written(results: &Path, outcome: &Outcome, stem: &str) -> store::Writer {
    let mut writer = store::Writer::create(results, "scripted-00000000", "scripted", stem).unwrap();
    writer.append(&outcome.samples).unwrap();
    writer.save(&mut outcome.result.clone()).unwrap();
    writer
}

#[test]
fn a_finished_result_is_loaded_verified_and_in_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = Setup::new(5.0, STORM, 41).run();
    let writer = written(folder.path(), &outcome, "20260101T000000Z-aaaaaaaa-0123abcd");
    assert_eq!(store::load_all(folder.path()).unwrap(), [], "nothing is there before the end");
    let mut result = outcome.result.clone();
    let path = writer.finish(&mut result).unwrap();
    let loaded = store::load_all(folder.path()).unwrap();
    assert_eq!(loaded[0].0, "scripted-00000000/scripted/20260101T000000Z-aaaaaaaa-0123abcd.json");
    assert_eq!(loaded[0].1, result);
    let samples = samples::read(&path.with_file_name(&result.samples.path), &result.samples.sha256).unwrap();
    assert!(verify(&result, &samples).is_ok());
    assert_eq!(ledger::check(folder.path()).unwrap(), []);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2, "no partial file stays");
    let again =
        store::Writer::create(folder.path(), "scripted-00000000", "scripted", "20260101T000000Z-aaaaaaaa-0123abcd");
    assert!(again.is_err(), "a result is never written over");
}

#[test]
fn a_crash_keeps_what_was_saved_and_the_next_run_takes_it_in() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = Setup { stop_after: Some(8), ..Setup::new(5.0, STORM, 42) }.run();
    let mut writer = written(folder.path(), &outcome, "20260101T000000Z-aaaaaaaa-0123abcd");
    // Samples of the next size reached the disk, their result did not.
    writer.append(&outcome.samples[..10]).unwrap();
    drop(writer);
    assert_eq!(store::load_all(folder.path()).unwrap(), []);
    let recovered = store::recover(folder.path(), "scripted-00000000", "scripted").unwrap();
    assert_eq!(recovered.len(), 1);
    let (_, result) = store::load_all(folder.path()).unwrap().remove(0);
    assert!(!result.run.complete);
    let samples = samples::read(&recovered[0].with_file_name(&result.samples.path), &result.samples.sha256).unwrap();
    assert!(verify(&result, &samples).is_ok());
    assert_eq!(ledger::check(folder.path()).unwrap(), []);
}

#[test]
fn a_file_that_is_no_result_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m/cosine");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("x.json"), "{\"schema\": \"lodestar.result/9.0.0\"}").unwrap();
    let message = store::load_all(folder.path()).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "x.json: schema: expected lodestar.result/1.0.0 or lodestar.result/1.1.0 or lodestar.result/1.2.0, found \
             lodestar.result/9.0.0"
        ),
        "{message}"
    );
    std::fs::write(path.join("x.json"), "{\"schema\": \"lodestar.result/1.0.0\", \"kernel\": 3}").unwrap();
    let message = store::load_all(folder.path()).unwrap_err().to_string();
    assert!(message.contains("x.json: line 1, column "), "{message}");
}

#[test]
fn only_one_gate_runs_at_a_time_and_the_second_is_told_who_holds_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.lock");
    let first = store::Lock::take_at(&path, "2026-01-01T00:00:00Z").unwrap();
    let message = store::Lock::take_at(&path, "2026-01-01T00:01:00Z").err().unwrap().to_string();
    let holder = format!("found process {}, since 2026-01-01T00:00:00Z", std::process::id());
    assert!(message.ends_with(&holder), "{message}");
    drop(first);
    assert!(store::Lock::take_at(&path, "2026-01-01T00:02:00Z").is_ok());
}

/// The schema of this version of the types, and a result of it; those of older versions stay as they are.
const VERSION: &str = "1.2.0";

fn schema_file(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/lodestar.result-{version}.json"))
}

fn sample_folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(version)
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    assert_eq!(lodestar::results::schema::SCHEMA, format!("lodestar.result/{VERSION}"));
    if std::env::var_os("LODESTAR_RENEW_SCHEMA").is_some() {
        renew();
    }
    let committed = std::fs::read_to_string(schema_file(VERSION)).unwrap();
    let renew = "after a deliberate change: `LODESTAR_RENEW_SCHEMA=1 cargo test --test gate schema_is`";
    assert!(committed == lodestar::results::json_schema(), "{renew}");
}

#[test]
fn a_result_of_every_schema_so_far_is_read_verified_and_valid() {
    for version in ["1.0.0", "1.1.0", "1.2.0"] {
        let path = sample_folder(version).join("result.json");
        let result = store::load(&path).unwrap();
        assert_eq!((result.schema, result.verdict.verdict), (format!("lodestar.result/{version}"), Verdict::Pass));
        let result = store::load(&path).unwrap();
        let samples = samples::read(&path.with_file_name(&result.samples.path), &result.samples.sha256).unwrap();
        verify(&result, &samples).unwrap();
        let json = |path: &Path| -> serde_json::Value {
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let (schema, mut file) = (json(&schema_file(version)), json(&path));
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&file), "{version}");
        // What is read of an older version is written as it was: nothing is added to it.
        assert_eq!(serde_json::to_value(&result).unwrap(), file, "{version}");
        // What the next versions added is optional, so their schema holds for this one too.
        let newest = jsonschema::validator_for(&json(&schema_file(VERSION))).unwrap();
        assert!(newest.is_valid(&file), "{version}");
        file["gates"][0]["verdict"] = "splendid".into();
        assert!(!validator.is_valid(&file));
    }
}

/// Writes the schema and a sample of it.
fn renew() {
    std::fs::write(schema_file(VERSION), lodestar::results::json_schema()).unwrap();
    let text = names::with_names(&one_size());
    let setup = || names::setup(Setup { mode: Mode::Quick, text: &text, ..Setup::new(8.0, QUIET, 7) });
    // A resumed run with a named axis, so that every field and every kind of value is there.
    let left = Setup { stop_after: Some(3), ..setup() }.run();
    let mut outcome = setup().go_on(Some((left.result, left.samples)));
    let csv = samples::to_csv(&outcome.samples, true).unwrap();
    let folder = sample_folder(VERSION);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("result.samples.csv"), &csv).unwrap();
    outcome.result.samples.path = "result.samples.csv".into();
    outcome.result.samples.sha256 = lodestar::results::sha256_of(&folder.join("result.samples.csv")).unwrap();
    let json = serde_json::to_string_pretty(&outcome.result).unwrap() + "\n";
    std::fs::write(folder.join("result.json"), json).unwrap();
}
