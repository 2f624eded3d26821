//! `lodestar gate`: measures, keeps the result, shows the verdict.

mod child;
mod header;
mod resume;
mod table;

use super::{Exit, Io, Progress, interrupt};
use crate::gate::process::Processes;
use crate::gate::protocol::{self, Protocol};
use crate::gate::run::{Ended, Keeper, Settings, measure};
use crate::gate::verdict::{exit_code, gravest};
use crate::kernels::{Case, KERNELS, Kernel, kernel};
use crate::machine::Machine;
use crate::results::schema::{Mode, ResultFile, Sample, Verdict};
use crate::results::store::{self, Lock, Writer};
use crate::units::{Bytes, in_words};
use anyhow::Context;
use resume::Begun;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measure whether a kernel deserves a GPU, on this machine, at your sizes
///
/// Times the GPU arm (transfers included) and our SIMD arm in the same processes, in balanced
/// order, and judges the interval of their ratio against the protocol's gate. The result and its
/// raw samples go to the results folder.
///
/// What is finished is on disk after every size. An interrupted run goes on with --resume and the
/// same options; without it, the next run of the same kernel first records the unfinished one as
/// it is, undecided.
///
/// Exit code: 0 PASS, 1 FAIL, 2 usage, protocol or file error, 3 INCONCLUSIVE, 4 INVALID,
/// 5 NO-GPU, 130 interrupted.
///
/// Examples:
///   lodestar gate cosine --dry-run
///   lodestar gate cosine --sizes my-sizes.toml
///   lodestar gate cosine --sizes my-sizes.toml --resume
///   lodestar gate --null cosine
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Kernels, by id
    #[arg(required_unless_present_any = ["all", "launch"], conflicts_with = "all")]
    kernels: Vec<String>,
    /// Every kernel
    #[arg(long)]
    all: bool,
    /// Protocol to follow [default: protocols/<kernel>.toml, else the built-in one]
    #[arg(long, value_name = "FILE")]
    sizes: Option<PathBuf>,
    /// Device of the GPU arm: auto, cpu, gpu, software, or the name or number of an adapter
    #[arg(long, default_value = "auto")]
    device: String,
    /// A shorter plan, for trying out; never published
    #[arg(long)]
    quick: bool,
    /// Look at the data three times, at 8, 12 and 16 launches, each at a third of the error rate
    #[arg(long, conflicts_with_all = ["quick", "null"])]
    extend: bool,
    /// The CPU arm against itself: must not find a difference. Exit code 0 unless it does
    #[arg(long)]
    null: bool,
    /// Go on with the interrupted run: what it had finished stays, what is missing is measured. Protocol, code, machine
    /// and options must be those it began with
    #[arg(long, conflicts_with = "dry_run")]
    resume: bool,
    /// Only kernels that a change since this git revision concerns
    #[arg(long, value_name = "REV")]
    changed_since: Option<String>,
    /// Show the plan, its memory and its duration, and measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Exit code 0 where there is no GPU
    #[arg(long)]
    allow_no_gpu: bool,
    /// One launch of a run, which starts it itself
    #[arg(long, hide = true)]
    launch: Option<u32>,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    if arguments.launch.is_some() {
        return child::run(io);
    }
    let protocols = protocols(arguments)?;
    let protocols = changed(arguments, protocols)?;
    if protocols.is_empty() {
        io.note("No kernel is concerned by these changes.");
        return Ok(0);
    }
    let platform = super::platform_for_checks(&arguments.device)?;
    let machine = header::machine(&platform);
    for (kernel, protocol) in &protocols {
        fits(*kernel, protocol, &machine)?;
    }
    if arguments.dry_run {
        return dry_run(&protocols, &machine, arguments.null, io);
    }
    let _lock = Lock::take(&header::now())?;
    let threads = platform.threads;
    let mut runs = Vec::new();
    for (kernel, protocol) in protocols {
        let begun = if arguments.resume { begun(arguments, kernel, &protocol, &machine, threads)? } else { None };
        runs.push((kernel, protocol, begun));
    }
    let machine = if arguments.resume {
        // Kernels that have nothing to resume are there only with --all.
        runs.retain(|(_, _, begun)| begun.is_some());
        machine
    } else {
        for (kernel, _, _) in &runs {
            for path in store::recover(&arguments.results, &machine.machine_id, kernel.id())? {
                io.note(format_args!("{}: what an interrupted run had finished, recorded as it is", path.display()));
            }
        }
        header::with_ceilings(machine, &platform, io)?
    };
    // The device is opened again by each launch; here it would only hold memory.
    drop(platform);
    let settings = Settings { device: arguments.device.clone(), threads };
    interrupt::cooperate();
    let mut codes = Vec::new();
    for (kernel, protocol, begun) in &runs {
        let run = match begun {
            Some(path) => resume::take_up(&arguments.results, path)?,
            None => fresh(arguments, *kernel, protocol, &machine)?,
        };
        match one(arguments, protocol, run, &settings, io)? {
            Some(code) => codes.push(code),
            None => return Ok(interrupt::EXIT),
        }
    }
    Ok(gravest(codes))
}

/// The run to go on with. `None` only where a kernel of all has none.
fn begun(
    arguments: &Arguments,
    kernel: &dyn Kernel,
    protocol: &Protocol,
    machine: &Machine,
    threads: usize,
) -> anyhow::Result<Option<PathBuf>> {
    let now = expected(arguments, kernel, protocol, machine)?;
    let found = resume::find(&arguments.results, &now, threads)?;
    if found.is_none() && !arguments.all { Err(resume::nothing(&arguments.results, &now)) } else { Ok(found) }
}

type Chosen = (&'static dyn Kernel, Protocol);

fn protocols(arguments: &Arguments) -> anyhow::Result<Vec<Chosen>> {
    let kernels: Vec<&'static dyn Kernel> = if arguments.all {
        KERNELS.to_vec()
    } else {
        arguments.kernels.iter().map(|id| kernel(id)).collect::<Result<_, _>>()?
    };
    let mut chosen = Vec::new();
    for kernel in kernels {
        let found = match &arguments.sizes {
            Some(file) => protocol::read(file, KERNELS)?,
            None => {
                let file = Path::new("protocols").join(format!("{}.toml", kernel.id()));
                if file.exists() {
                    protocol::read(&file, KERNELS)?
                } else {
                    protocol::parse(&file.to_string_lossy(), kernel.protocol(), KERNELS)?
                }
            }
        };
        let of_kernel = found.into_iter().find(|protocol| protocol.kernel == kernel.id());
        let mut protocol = of_kernel.with_context(|| {
            let file = arguments.sizes.as_deref().unwrap_or(Path::new("protocol"));
            format!("{}: expected a section [{}], found none", file.display(), kernel.id())
        })?;
        protocol.path = header::public_path(&protocol.path);
        if arguments.null {
            protocol = protocol.null_control();
        }
        if arguments.quick {
            protocol = protocol.quick();
        }
        chosen.push((kernel, protocol));
    }
    Ok(chosen)
}

fn changed(arguments: &Arguments, protocols: Vec<Chosen>) -> anyhow::Result<Vec<Chosen>> {
    let Some(revision) = &arguments.changed_since else { return Ok(protocols) };
    let mut git = std::process::Command::new("git");
    let output = git.args(["diff", "--name-only", "--end-of-options", revision, "--"]).output();
    let output = output.context("--changed-since: git")?;
    anyhow::ensure!(
        output.status.success(),
        "--changed-since {revision}: {}",
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("git failed")
    );
    let files = String::from_utf8_lossy(&output.stdout);
    let concerned = |protocol: &Protocol| files.lines().any(|file| protocol.concerns(file));
    Ok(protocols.into_iter().filter(|(_, protocol)| concerned(protocol)).collect())
}

fn case(protocol: &Protocol, context: usize, size: u64) -> Case {
    Case {
        size,
        context: protocol.contexts[context].axes.clone(),
        seed: protocol.inputs.seed,
        ring: protocol.inputs.ring as usize,
        distribution: protocol.inputs.distribution.clone(),
    }
}

/// Refuses a plan with a size that this machine cannot hold, before anything is measured.
fn fits(kernel: &dyn Kernel, protocol: &Protocol, machine: &Machine) -> anyhow::Result<()> {
    for (context, size) in protocol.cells() {
        let case = case(protocol, context, size);
        let needs = kernel.footprint(&case)?.host_bytes;
        anyhow::ensure!(
            needs <= machine.ram_bytes,
            "{}: [{}] {} {size}, {}: expected a size that fits in memory ({}), found one that needs {}",
            protocol.path,
            protocol.kernel,
            protocol.size_axis,
            in_words(&case.context),
            Bytes(machine.ram_bytes),
            Bytes(needs)
        );
    }
    Ok(())
}

/// Seconds that a size may take on this machine.
fn seconds_per_size(protocol: &Protocol, machine: &Machine, null: bool) -> u64 {
    let paired = null || machine.gpu().is_some();
    if paired { protocol.plan.max_seconds_per_size } else { protocol.plan.cpu_only_seconds_per_size }
}

fn dry_run(protocols: &[Chosen], machine: &Machine, null: bool, io: &mut Io) -> anyhow::Result<Exit> {
    for (kernel, protocol) in protocols {
        let cells = protocol.cells();
        let seconds = seconds_per_size(protocol, machine, null) * cells.len() as u64;
        let mut rows = Vec::new();
        for (context, size) in &cells {
            let case = case(protocol, *context, *size);
            rows.push((case.clone(), kernel.footprint(&case)?, protocol.gate_sizes.contains(size)));
        }
        if io.json {
            let cells: Vec<_> = rows
                .iter()
                .map(|(case, footprint, decides)| {
                    serde_json::json!({
                        "size": case.size, "context": case.context, "decides": decides,
                        "host_bytes": footprint.host_bytes, "device_bytes": footprint.device_bytes,
                    })
                })
                .collect();
            let plan = serde_json::json!({
                "kernel": protocol.kernel, "protocol": protocol.path, "sha256": protocol.sha256,
                "launches": protocol.plan.launches, "blocks": protocol.plan.blocks, "gate": protocol.gate,
                "gate_row": protocol.gate_row.name(), "cells": cells, "at_most_seconds": seconds,
            });
            serde_json::to_writer_pretty(&mut io.out, &plan)?;
            writeln!(io.out)?;
            continue;
        }
        writeln!(io.out, "{}: {} ({})", protocol.kernel, protocol.path, &protocol.sha256[..8])?;
        writeln!(
            io.out,
            "gate {}x on {}: {} launches of {} blocks at each of {} sizes",
            protocol.gate,
            protocol.gate_row.name(),
            protocol.plan.launches,
            protocol.plan.blocks,
            cells.len()
        )?;
        writeln!(io.out, "{}", table::plan(&rows, &protocol.size_axis))?;
        let adapter = machine.adapter.as_ref();
        writeln!(
            io.out,
            "adapter: {}",
            adapter.map_or("none: CPU rows only".into(), |adapter| {
                let software = if adapter.software { ", software: checked, never timed; CPU rows only" } else { "" };
                format!("{}{software}", adapter.name)
            })
        )?;
        writeln!(io.out, "at most about {} minutes, and the time to build inputs", seconds.div_ceil(60))?;
    }
    Ok(0)
}

/// Writes the result as it grows, and shows how far it is.
struct ToDisk<'a> {
    writer: Option<Writer>,
    io: &'a Io,
    kernel: &'a str,
    progress: Option<(u64, u64, Progress)>,
}

impl Keeper for ToDisk<'_> {
    fn keep(&mut self, result: &mut ResultFile, new: &[Sample]) -> Result<(), crate::Error> {
        result.run.ended_utc = header::now();
        match &mut self.writer {
            Some(writer) => {
                writer.append(new)?;
                writer.save(result)
            }
            None => Ok(()),
        }
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64, detail: &str) {
        if self.progress.as_ref().is_none_or(|(of, at, _)| *of != total || *at > done) {
            self.progress = Some((total, 0, self.io.progress(self.kernel, total)));
        }
        if let Some((_, at, progress)) = &mut self.progress {
            let words = if detail.is_empty() { phase.to_owned() } else { format!("{phase}, {detail}") };
            progress.advance(done - *at, &words);
            *at = done;
        }
    }
}

/// The head of a result of these arguments, before anything is measured.
fn expected(
    arguments: &Arguments,
    kernel: &dyn Kernel,
    protocol: &Protocol,
    machine: &Machine,
) -> anyhow::Result<ResultFile> {
    let mode = match (arguments.null, arguments.quick) {
        (true, _) => Mode::Null,
        (false, true) => Mode::Quick,
        (false, false) => Mode::Full,
    };
    let seconds = seconds_per_size(protocol, machine, arguments.null);
    header::result(kernel, protocol, machine.clone(), mode, arguments.extend, seconds)
}

/// A run from its beginning.
fn fresh(arguments: &Arguments, kernel: &dyn Kernel, protocol: &Protocol, machine: &Machine) -> anyhow::Result<Begun> {
    let result = expected(arguments, kernel, protocol, machine)?;
    let stem = header::stem(&result);
    let writer = Writer::create(&arguments.results, &result.machine.machine_id, &result.kernel, &stem)?;
    Ok(Begun { writer, result, samples: Vec::new() })
}

/// One kernel. `None` when it was interrupted.
fn one(
    arguments: &Arguments,
    protocol: &Protocol,
    run: Begun,
    settings: &Settings,
    io: &mut Io,
) -> anyhow::Result<Option<u8>> {
    let Begun { writer, mut result, samples } = run;
    let kernel = result.kernel.clone();
    let program = std::env::current_exe().context("the path of this program")?;
    let mut launcher = Processes { program, seed: result.run.seed };
    let mut keeper = ToDisk { writer: Some(writer), io, kernel: &kernel, progress: None };
    let stop = &interrupt::interrupted;
    let ended = measure(protocol, settings, &mut result, samples, &mut launcher, &mut keeper, stop);
    let writer = keeper.writer.take();
    drop(keeper);
    let place = match writer {
        Some(writer) if result.rows.is_empty() => {
            writer.discard();
            "nothing was finished".to_owned()
        }
        Some(writer) if matches!(ended, Ok(Ended::Complete)) => writer.finish(&mut result)?.display().to_string(),
        // To be resumed, or recorded by the next run.
        Some(writer) => writer.leave().display().to_string(),
        None => String::new(),
    };
    let ended = ended.with_context(|| format!("{kernel} (finished sizes, for --resume: {place})"))?;
    if io.json {
        serde_json::to_writer_pretty(&mut io.out, &result)?;
        writeln!(io.out)?;
    } else if !result.rows.is_empty() {
        writeln!(io.out, "{}", table::gates(&result))?;
        writeln!(io.out, "{}", table::conclusion(&result))?;
    }
    io.note(&place);
    if ended == Ended::Interrupted {
        if !result.rows.is_empty() {
            io.note(
                "Interrupted: finished sizes are kept, nothing is decided. The same command with --resume goes on.",
            );
        }
        return Ok(None);
    }
    Ok(Some(code(arguments, &result, io)))
}

fn code(arguments: &Arguments, result: &ResultFile, io: &Io) -> u8 {
    let verdict = result.verdict.verdict;
    if arguments.null && verdict != Verdict::Invalid {
        let outside =
            |gate: &&crate::results::schema::Gate| gate.lo.zip(gate.hi).is_some_and(|(lo, hi)| lo > 1.0 || hi < 1.0);
        let (outside, all) = (result.gates.iter().filter(outside).count(), result.gates.len());
        let passed = result.gates.iter().filter(|gate| gate.verdict == Verdict::Pass).count();
        io.note(format_args!(
            "null control: {passed} of {all} gates passed, which none should; 1.00 lies outside of {outside} intervals"
        ));
        // One is one too many, also where the kernel as a whole did not pass.
        return u8::from(passed > 0);
    }
    if verdict == Verdict::NoGpu {
        let adapter = result.machine.adapter.as_ref();
        let what = adapter
            .map_or("there is no adapter".to_owned(), |adapter| format!("{} is a software adapter", adapter.name));
        io.note(format_args!("NO-GPU: {what}; CPU rows and agreement are recorded, no GPU duration"));
        return if arguments.allow_no_gpu { 0 } else { exit_code(verdict) };
    }
    exit_code(verdict)
}
