//! `lodestar verify`: every number of a result, recomputed from its raw samples.

use super::{Exit, Io};
use crate::gate::verify::verify;
use crate::results::{load, samples};
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

/// Recompute every number of a result from its raw samples
///
/// Statistics, intervals, flags and verdicts are computed again from the samples file beside the result, and compared
/// bit for bit. Exit code 2 with the first difference.
///
/// Example: lodestar verify results/*/cosine/*.json
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Result files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    for path in &arguments.files {
        let result = load(path)?;
        let raw = samples::read(&path.with_file_name(&result.samples.path), &result.samples.sha256)?;
        let verified = verify(&result, &raw).with_context(|| path.display().to_string())?;
        if io.json {
            let line = serde_json::json!({
                "path": path, "rows": verified.rows, "gates": verified.gates, "values": verified.values,
                "samples": verified.samples,
            });
            writeln!(io.out, "{line}")?;
        } else {
            writeln!(
                io.out,
                "{}: {} rows, {} gates and the verdict follow from {} samples ({} values compared)",
                path.display(),
                verified.rows,
                verified.gates,
                verified.samples,
                verified.values
            )?;
        }
    }
    Ok(0)
}
