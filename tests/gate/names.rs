//! Contexts that pin names beside numbers: refused when unknown, kept through the whole gate.

use crate::scripted::{NAMES, PROTOCOL, QUIET, Scripted, Setup};
use crate::verdict;
use lodestar::gate::protocol;
use lodestar::gate::run::Ended;
use lodestar::gate::verify::verify;
use lodestar::results::schema::{ResultFile, Verdict};
use lodestar::units::in_words;

/// The protocol with two contexts that differ in a name.
pub(crate) fn with_names(text: &str) -> String {
    text.replace("{ dim = 8 }", "{ matrix = \"plain\", dim = 8 }, { matrix = \"knotted\", dim = 8 }")
}

/// The same run of the kernel that has names.
pub(crate) fn setup(mut setup: Setup<'_>) -> Setup<'_> {
    setup.script.axes = NAMES;
    setup
}

fn refused(from: &str, to: &str) -> String {
    let text = with_names(PROTOCOL);
    assert!(text.contains(from), "{from}");
    let kernel = Scripted::new(setup(Setup::new(8.0, QUIET, 1)).script, 1);
    protocol::parse("p.toml", &text.replace(from, to), &[&kernel]).unwrap_err().to_string()
}

#[test]
fn a_name_that_the_axis_does_not_have_is_refused_with_those_it_has() {
    let place = "p.toml: [scripted] contexts, entry 2";
    assert_eq!(
        refused("\"knotted\"", "\"twisted\""),
        format!("{place}, matrix: expected one of plain, knotted, found twisted")
    );
    assert_eq!(
        refused("\"knotted\"", "\"Knotted\""),
        format!("{place}, matrix: expected one of plain, knotted, found Knotted")
    );
    assert_eq!(refused("\"knotted\"", "3"), format!("{place}, matrix: expected one of plain, knotted, found 3"));
    assert_eq!(
        refused("\"knotted\", dim = 8", "\"knotted\", dim = \"8\""),
        format!("{place}, dim: expected a number, found \"8\"")
    );
    assert_eq!(refused("matrix = \"knotted\", ", ""), format!("{place}: expected the axes dim, matrix, found dim"));
    assert_eq!(
        refused("\"knotted\"", "\"plain\""),
        format!("{place}: expected each context once, found the same again")
    );
    let message = refused("\"knotted\"", "1.5");
    assert!(
        message.starts_with("p.toml: line 9: ") && message.contains("a whole number from 0 or a name"),
        "{message}"
    );
}

#[test]
fn contexts_of_names_are_measured_apart_and_their_result_reads_back() {
    let text = with_names(PROTOCOL);
    let outcome = setup(Setup { text: &text, ..Setup::new(8.0, QUIET, 21) }).run();
    assert_eq!(verdict(&outcome), Verdict::Pass);
    let json = serde_json::to_string_pretty(&outcome.result).unwrap();
    assert!(json.contains("\"matrix\": \"knotted\"") && json.contains("\"dim\": 8"));
    let result: ResultFile = serde_json::from_str(&json).unwrap();
    assert_eq!(result, outcome.result);
    assert!(verify(&result, &outcome.samples).unwrap().gates == 6);
    let gates: Vec<_> = result.gates.iter().map(|gate| (in_words(&gate.context), gate.size)).collect();
    let expected =
        ["dim 8, plain", "dim 8, knotted"].map(|words| [500, 1000, 2000].map(|size| (words.to_owned(), size)));
    assert_eq!(gates, expected.concat());
    let median = |context: &str| {
        let row = |row: &&lodestar::results::schema::TimingRow| {
            (in_words(&row.context).as_str(), row.size, row.arm.as_str(), row.row.as_str())
                == (context, 1000, "gpu", "resident")
        };
        result.rows.iter().find(row).unwrap().median_ns.unwrap() as f64
    };
    assert!((median("dim 8, knotted") / median("dim 8, plain") / 2.0 - 1.0).abs() < 0.02);
}

#[test]
fn a_failed_gate_says_at_which_name() {
    let text = with_names(PROTOCOL);
    let mut failing = setup(Setup { text: &text, ..Setup::new(3.0, QUIET, 22) });
    let outcome = failing.run();
    assert_eq!(verdict(&outcome), Verdict::Fail);
    assert_eq!(
        outcome.result.verdict.reason.as_deref(),
        Some("2 of 2 gates, first resident at 1000, dim 8, plain: below_gate")
    );
    failing.script.wrong = Some(lodestar::kernels::Variant::Gpu);
    let reason = failing.run().result.verdict.reason.unwrap();
    assert!(reason.starts_with("resident at 500, dim 8, plain: gpu: input 2"), "{reason}");
}

#[test]
fn an_interrupted_run_with_names_goes_on_where_it_was() {
    let text = with_names(PROTOCOL);
    let run = || setup(Setup { text: &text, ..Setup::new(8.0, QUIET, 23) });
    // The pilot's six cells and seven more.
    let left = setup(Setup { stop_after: Some(13), ..run() }).run();
    assert!(matches!(left.ended, Ok(Ended::Interrupted)));
    let before = left.samples.clone();
    // Through a file, as a resumed run comes.
    let result = serde_json::from_str(&serde_json::to_string(&left.result).unwrap()).unwrap();
    let outcome = run().go_on(Some((result, left.samples)));
    assert_eq!(verdict(&outcome), Verdict::Pass);
    assert_eq!(outcome.samples[..before.len()], before);
    assert!(outcome.result.gates.iter().all(|gate| gate.launches.len() == 8));
    assert!(verify(&outcome.result, &outcome.samples).is_ok());
}

#[test]
fn a_case_that_the_device_cannot_compute_is_undecided_and_says_why() {
    let text = with_names(PROTOCOL);
    let mut setup = setup(Setup { text: &text, ..Setup::new(8.0, QUIET, 24) });
    setup.script.no_gpu = Some("Scripted GPU has no knots");
    let outcome = setup.run();
    assert_eq!(verdict(&outcome), Verdict::Inconclusive);
    let reason = outcome.result.verdict.reason.as_deref();
    assert_eq!(reason, Some("resident at 1000, dim 8, knotted: no GPU version: Scripted GPU has no knots"));
    let passed = outcome.result.gates.iter().filter(|gate| gate.verdict == Verdict::Pass).count();
    assert_eq!(passed, 3, "what it can compute is decided");
    assert!(verify(&outcome.result, &outcome.samples).is_ok());
    let simd =
        |row: &&lodestar::results::schema::TimingRow| row.arm == "simd" && in_words(&row.context) == "dim 8, knotted";
    assert!(outcome.result.rows.iter().filter(simd).all(|row| row.median_ns.is_some()));
}
