//! Rows that explain a ratio and never are one.

use crate::scripted::{COMPILE_NS, Outcome, QUIET, Setup, adapter};
use lodestar::gate::launch::IDLE_NS;
use lodestar::gate::verify::verify;
use lodestar::results::schema::{Sample, TimingRow};

/// Those that exist on a GPU only.
pub(crate) const ROWS: [&str; 5] = ["e2e_fresh", "idle_start", "cold_init", "cold_pipeline", "cold_first_call"];

fn row<'a>(outcome: &'a Outcome, name: &str, size: u64) -> &'a TimingRow {
    let found: Vec<_> = outcome.result.rows.iter().filter(|row| row.row == name && row.size == size).collect();
    let [row] = found[..] else { panic!("{name} at {size}: {found:?}") };
    row
}

#[test]
fn every_launch_times_them_at_every_size_and_none_gets_a_gate() {
    let outcome = Setup::new(8.0, QUIET, 21).run();
    for size in [500, 1000, 2000] {
        assert_eq!(row(&outcome, "cold_pipeline", size).median_ns, Some(COMPILE_NS), "whichever size came first");
        for (name, slots) in [("cold_pipeline", 8), ("cold_first_call", 8), ("idle_start", 8), ("e2e_fresh", 96)] {
            let row = row(&outcome, name, size);
            assert_eq!((row.arm.as_str(), row.slots, row.method.as_deref()), ("gpu", slots, Some("host")), "{name}");
            assert!(row.reason.is_none() && row.median_ns.is_some(), "{row:?}");
        }
    }
    assert_eq!(row(&outcome, "cold_init", 500).median_ns, Some(150_000_000));
    assert!(outcome.result.gates.iter().all(|gate| gate.row == "resident"));
    verify(&outcome.result, &outcome.samples).unwrap();
}

#[test]
fn the_call_after_idling_comes_half_a_second_after_anything_else() {
    let outcome = Setup::new(8.0, QUIET, 22).run();
    let mut idle = 0;
    for pair in outcome.samples.windows(2).filter(|pair| pair[1].row == "idle_start") {
        let end = |sample: &Sample| sample.t_start_ns + sample.total_ns;
        assert_eq!(pair[1].t_start_ns - end(&pair[0]), IDLE_NS);
        assert_eq!((pair[1].calls, pair[1].phase.as_str()), (1, "slot"));
        idle += 1;
    }
    assert_eq!(idle, 8 * 3);
}

#[test]
fn how_bytes_go_up_and_how_the_host_waits_is_what_the_device_says() {
    let outcome = Setup::new(8.0, QUIET, 23).run();
    for row in &outcome.result.rows {
        let expected = if row.arm == "gpu" { (Some("scripted_path"), Some("scripted_wait")) } else { (None, None) };
        assert_eq!((row.upload_path.as_deref(), row.wait.as_deref()), expected, "{row:?}");
    }
}

#[test]
fn a_software_adapter_and_none_have_no_such_row_at_all() {
    for adapter in [Some(adapter(true)), None] {
        let outcome = Setup { adapter, ..Setup::new(8.0, QUIET, 24) }.run();
        let text = serde_json::to_string(&outcome.result).unwrap();
        for name in ROWS {
            assert!(!text.contains(name), "{name}");
            assert!(outcome.samples.iter().all(|sample| sample.row != name), "{name}");
        }
    }
}
