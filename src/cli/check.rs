//! `lodestar check`: every variant of every kernel against its reference, at every SIMD level and on every adapter.

use super::{Exit, Io};
use crate::error::Error;
use crate::kernels::{Case, KERNELS, Kernel, Platform, Row, Variant, kernel};
use crate::simd::Level;
use crate::units::{Context, in_words};
use comfy_table::{Table, presets};
use serde::Serialize;
use std::io::Write;

/// Compare every variant of every kernel with its reference, on real and generated input
///
/// Every SIMD level of this CPU with one thread and with all, and every adapter that wgpu sees, software adapters
/// included, compute the same cases; each answer is compared with the reference. It says what was checked and what
/// could not be, by name. No times are taken. Exit code 0 when all agree, 1 when anything differs or fails.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lodestar check                     everything, on this machine
  lodestar check cosine              one kernel
  lodestar check --device software   the CPU, and of the adapters only the software one
  lodestar check --device cpu        the CPU alone

Run it from a checkout: the real input lies in corpus/.")]
pub(super) struct Arguments {
    /// Kernels to check; all when none is named
    kernels: Vec<String>,
    /// Adapters to check beside the CPU: all, or as elsewhere cpu (none), gpu, software, a name or a number
    #[arg(long, default_value = "all")]
    device: String,
}

/// What one variant did on one case.
#[derive(Serialize)]
struct Outcome {
    kernel: &'static str,
    distribution: String,
    size: u64,
    context: Context,
    /// Who computed: SIMD level and threads, or the adapter.
    variant: String,
    row: &'static str,
    /// Values compared with the reference.
    compared: u64,
    exact: u64,
    max_error: f64,
    /// Largest difference allowed, in the unit of `max_error`; 0 where results must be equal.
    tolerance: f64,
    /// Where it differs, or how it failed.
    failure: Option<String>,
    /// Why nothing was computed, where the kernel has no version for this device.
    not_run: Option<String>,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    let kernels: Vec<&'static dyn Kernel> = match arguments.kernels.as_slice() {
        [] => KERNELS.to_vec(),
        named => named.iter().map(|id| kernel(id)).collect::<Result<_, _>>()?,
    };
    let base = super::platform("cpu")?;
    let devices = devices(&arguments.device, io)?;
    let levels = Level::available();
    let mut outcomes = Vec::new();
    let cases: usize = kernels.iter().map(|kernel| kernel.check_cases().len()).sum();
    let mut progress = io.progress("checking", (cases * (levels.len() + devices.len())) as u64);
    for &kernel in &kernels {
        for case in kernel.check_cases() {
            for &level in &levels {
                let platform = Platform { level, ..base.clone() };
                check_case(kernel, &case, &platform, &mut outcomes);
                progress.advance(1, &format!("{} at {level}", kernel.id()));
            }
            for (name, platform) in &devices {
                check_case(kernel, &case, platform, &mut outcomes);
                progress.advance(1, &format!("{} on {name}", kernel.id()));
            }
        }
    }
    drop(progress);
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    let run = outcomes.iter().filter(|outcome| outcome.not_run.is_none()).count();
    print(io, &outcomes)?;
    let checked_on: Vec<&str> =
        levels.iter().map(|level| level.name()).chain(devices.iter().map(|d| d.0.as_str())).collect();
    io.note(format!("{} of {} checks agree with the reference ({})", run - failed, run, checked_on.join(", ")));
    Ok(Exit::from(failed > 0))
}

/// Platforms with a device, by the name of the adapter.
#[cfg(feature = "gpu")]
fn devices(flag: &str, io: &Io) -> anyhow::Result<Vec<(String, Platform)>> {
    use crate::device::{adapter_hint, adapters};
    let flags: Vec<String> = match flag {
        "all" => adapters().iter().map(|adapter| adapter.index.to_string()).collect(),
        "cpu" => return Ok(Vec::new()),
        other => vec![other.to_owned()],
    };
    if flags.is_empty() {
        io.note(format!("no adapter: the shaders are not checked; {}", adapter_hint()));
    }
    flags
        .iter()
        .map(|flag| {
            let platform = super::platform(flag)?;
            let name = platform.device.as_ref().map_or_else(|| flag.clone(), |device| device.info().name.clone());
            Ok((name, platform))
        })
        .collect()
}

#[cfg(not(feature = "gpu"))]
fn devices(flag: &str, io: &Io) -> anyhow::Result<Vec<(String, Platform)>> {
    anyhow::ensure!(
        matches!(flag, "all" | "cpu"),
        "--device {flag}: this lodestar was built without the feature `gpu`"
    );
    io.note("built without the feature `gpu`: there are no shaders to check");
    Ok(Vec::new())
}

/// Runs what a platform adds: its device where it has one, else the CPU variants of its level.
fn check_case(kernel: &'static dyn Kernel, case: &Case, platform: &Platform, outcomes: &mut Vec<Outcome>) {
    let with_device = device_name(platform);
    let outcome = |variant: String, row: &'static str| Outcome {
        kernel: kernel.id(),
        distribution: case.distribution.clone(),
        size: case.size,
        context: case.context.clone(),
        variant,
        row,
        compared: 0,
        exact: 0,
        max_error: 0.0,
        tolerance: 0.0,
        failure: None,
        not_run: None,
    };
    let mut prepared = match kernel.prepare(case, platform) {
        Ok(prepared) => prepared,
        Err(error) => {
            let who = with_device.unwrap_or_else(|| platform.level.to_string());
            outcomes.push(Outcome { failure: Some(error.to_string()), ..outcome(who, "prepare") });
            return;
        }
    };
    if let Some(device) = with_device.as_ref().filter(|_| !prepared.variants().contains(&Variant::Gpu)) {
        let why = prepared.no_gpu().unwrap_or_else(|| "no GPU version".into());
        outcomes.push(Outcome { not_run: Some(why), ..outcome(device.clone(), "resident") });
    }
    for variant in prepared.variants() {
        let name = match (variant, &with_device) {
            (Variant::Simd { threads }, None) => format!("{}, {threads} thread{}", platform.level, plural(threads)),
            (Variant::Gpu, Some(name)) => name.clone(),
            // The CPU variants are checked without a device.
            _ => continue,
        };
        let rows = [Row::Resident, Row::OneShot].map(|row| prepared.has_row(variant, row).then_some(row));
        for row in rows.into_iter().flatten() {
            let mut done = outcome(name.clone(), row.name());
            for input in 0..case.ring {
                let checked = prepared.run(variant, row, input).map_err(|error: Error| error.to_string());
                match checked.and_then(|_| prepared.check(variant, row, input).map_err(|mismatch| mismatch.to_string()))
                {
                    Ok(agreement) => {
                        done.compared += agreement.compared;
                        done.exact += agreement.exact;
                        done.max_error = done.max_error.max(agreement.max_error);
                        done.tolerance = agreement.tolerance;
                    }
                    Err(failure) => {
                        done.failure.get_or_insert(format!("input {input}, {failure}"));
                    }
                }
            }
            outcomes.push(done);
        }
    }
}

#[cfg(feature = "gpu")]
fn device_name(platform: &Platform) -> Option<String> {
    platform.device.as_ref().map(|device| device.info().name.clone())
}

#[cfg(not(feature = "gpu"))]
fn device_name(_: &Platform) -> Option<String> {
    None
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn print(io: &mut Io, outcomes: &[Outcome]) -> anyhow::Result<()> {
    if io.json {
        serde_json::to_writer_pretty(&mut io.out, outcomes)?;
        writeln!(io.out)?;
        return Ok(());
    }
    // One line per kernel, input and variant: both rows of a variant together.
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["kernel", "input", "size", "computed by", "values", "result"]);
    for group in outcomes.chunk_by(|a, b| {
        (a.kernel, &a.distribution, a.size, &a.context, &a.variant)
            == (b.kernel, &b.distribution, b.size, &b.context, &b.variant)
    }) {
        let first = &group[0];
        let compared: u64 = group.iter().map(|outcome| outcome.compared).sum();
        let result =
            match group.iter().find_map(|outcome| outcome.failure.as_ref().map(|failure| (outcome.row, failure))) {
                Some((row, failure)) => format!("WRONG ({row}): {failure}"),
                None if first.not_run.is_some() => {
                    format!("not run: {}", first.not_run.as_deref().unwrap_or_default())
                }
                None if group.iter().all(|outcome| outcome.exact == outcome.compared) => "equal".to_owned(),
                None => {
                    let share = |outcome: &Outcome| outcome.max_error / outcome.tolerance.max(f64::MIN_POSITIVE);
                    let largest = group.iter().map(share).fold(0.0, f64::max);
                    format!("within {:.0}% of its error bound", (100.0 * largest).ceil())
                }
            };
        table.add_row([
            first.kernel.to_owned(),
            format!("{}, {}", first.distribution, in_words(&first.context)),
            first.size.to_string(),
            first.variant.clone(),
            compared.to_string(),
            result,
        ]);
    }
    writeln!(io.out, "{}", table.trim_fmt())?;
    Ok(())
}
