//! `lodestar kernels`: the kernels and what was measured of each one on this machine.

use super::{Exit, Io, current, machine};
use crate::kernels::KERNELS;
use crate::machine::{Build, Machine};
use crate::report::{Currency, Record, State, judge};
use crate::simd::Level;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// The kernels, and whether each one deserves a GPU on this machine
///
/// The state is read from the result files of this machine, never from a list: not measured, passed, failed,
/// inconclusive, invalid, no GPU. A result of code or of a protocol that has changed since is stale and says so.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  lodestar kernels\n  lodestar kernels --json")]
pub(super) struct Arguments {
    /// Folder of the result files [default: results]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    let records = current::records(arguments.results.as_deref())?;
    let kernels = current::kernels()?;
    let machine = Machine::detect(Level::from_environment()?, machine::adapter(), &Build::current());
    print(io, &records, &kernels, &machine.machine_id)?;
    Ok(0)
}

fn print(
    io: &mut Io,
    records: &[Record],
    current: &[crate::report::CurrentKernel],
    machine_id: &str,
) -> anyhow::Result<()> {
    let rows = KERNELS.iter().map(|kernel| (kernel, judge::state(records, current, kernel.id(), machine_id)));
    if io.json {
        let list: Vec<_> = rows
            .map(|(kernel, state)| {
                json!({
                    "id": kernel.id(),
                    "title": kernel.title(),
                    "computes": kernel.summary(),
                    "command": kernel.command().get_name(),
                    "state": state_json(&state),
                })
            })
            .collect();
        serde_json::to_writer_pretty(&mut io.out, &json!({ "machine_id": machine_id, "kernels": list }))?;
        writeln!(io.out)?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["id", "kernel", "computes", "command", "state"]);
    for (kernel, state) in rows {
        table.add_row([
            kernel.id().to_owned(),
            kernel.title().to_owned(),
            kernel.summary().to_owned(),
            format!("lodestar {}", kernel.command().get_name()),
            state_words(&state),
        ]);
    }
    for line in table.to_string().lines() {
        writeln!(io.out, "{}", line.trim_end())?;
    }
    io.note(format_args!("\nState on {machine_id}; `lodestar gate <id>` measures."));
    Ok(())
}

fn state_words(state: &State) -> String {
    let State::Judged { reason, currency, commit, measured_utc, .. } = state else { return state.word().to_owned() };
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let commit = commit.as_ref().map_or_else(String::new, |commit| format!(", {commit}"));
    let stale = match currency {
        Currency::Current => "",
        Currency::OtherProtocol => "; by another protocol than the kernel's",
        Currency::Stale => "; stale, measure again",
    };
    format!("{}{reason} ({}{commit}){stale}", state.word(), measured_utc.get(..10).unwrap_or(measured_utc))
}

fn state_json(state: &State) -> serde_json::Value {
    match state {
        State::NotMeasured => json!({ "state": state.word() }),
        State::Judged { verdict, reason, currency, commit, measured_utc, path } => json!({
            "state": state.word(),
            "verdict": verdict,
            "reason": reason,
            "stale": *currency == Currency::Stale,
            "own_protocol": *currency == Currency::OtherProtocol,
            "commit": commit,
            "measured_utc": measured_utc,
            "result": path,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::Verdict;

    #[test]
    fn a_state_says_why_when_and_whether_it_still_counts() {
        assert_eq!(state_words(&State::NotMeasured), "not measured");
        let judged = |verdict, reason: Option<&str>, currency| State::Judged {
            verdict,
            reason: reason.map(str::to_owned),
            currency,
            commit: Some("a1b2c3d4".into()),
            measured_utc: "2026-09-20T10:00:00Z".into(),
            path: "m/cosine/x.json".into(),
        };
        assert_eq!(state_words(&judged(Verdict::Pass, None, Currency::Current)), "passed (2026-09-20, a1b2c3d4)");
        assert_eq!(
            state_words(&judged(Verdict::Fail, Some("below_gate"), Currency::Stale)),
            "failed: below_gate (2026-09-20, a1b2c3d4); stale, measure again"
        );
        assert_eq!(state_words(&judged(Verdict::NoGpu, None, Currency::Current)), "no GPU (2026-09-20, a1b2c3d4)");
        assert_eq!(state_json(&judged(Verdict::NoGpu, None, Currency::Current))["verdict"], "no-gpu");
    }
}
