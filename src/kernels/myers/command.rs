//! `lodestar distance`: arguments, and running on files.

mod answer;
mod arguments;
mod compare;
mod engine;
mod form;
mod inputs;
mod nearest;
mod records;

use crate::cli::Io;
use crate::kernels::Platform;
use answer::Sink;
use arguments::Arguments;
use clap::{Args, FromArgMatches};
use compare::{Compare, Done};
use inputs::Inputs;
use std::io::Write;
use std::time::Instant;

pub(super) fn command() -> clap::Command {
    Arguments::augment_args(
        clap::Command::new("distance")
            .about("Edit distances: one text to many, pairs, or all pairs")
            .long_about(arguments::LONG_ABOUT)
            .after_long_help(arguments::EXAMPLES)
            .after_help("Examples and all details: lodestar distance --help"),
    )
}

pub(super) fn run(arguments: &clap::ArgMatches, io: &mut Io) -> anyhow::Result<()> {
    let arguments = Arguments::from_arg_matches(arguments)?;
    arguments.check()?;
    let form = form::Form::of(&arguments)?;
    let sink = Sink::new(&arguments, &form, io)?;
    let platform = io.platform(&arguments.device, arguments.threads)?;
    if arguments.explain {
        io.note(form.reason());
        io.explain(&arguments.device, &platform);
    }
    let threads = io.threads(&platform)?;
    let started = Instant::now();
    let inputs = Inputs::read(&form, &arguments, sink.format(), io)?;
    let reading = started.elapsed();
    let is_file = sink.is_file();
    let done = Compare::new(&arguments, &inputs, &platform, &threads, io).write(sink, io)?;
    if arguments.timing {
        let line = timing(&inputs, &done, &arguments, reading.as_secs_f64(), &platform);
        if is_file {
            writeln!(io.out, "{line}")?;
        } else {
            io.out.flush()?;
            io.note(line);
        }
    }
    Ok(())
}

fn timing(inputs: &Inputs, done: &Done, arguments: &Arguments, reading: f64, platform: &Platform) -> String {
    let seconds = done.comparing.as_secs_f64();
    serde_json::json!({
        "form": inputs.form.name(),
        "left": inputs.left.len(),
        "right": inputs.right().len(),
        "pairs": done.pairs,
        "cells": done.cells,
        "unit": arguments.unit.name(),
        "ms": seconds * 1e3,
        "gcups": if seconds > 0.0 { done.cells / seconds / 1e9 } else { 0.0 },
        "read_ms": reading * 1e3,
        "write_ms": done.writing.as_secs_f64() * 1e3,
        "blocks": done.blocks,
        "device": done.place,
        "simd": platform.level.name(),
        "threads": platform.threads,
    })
    .to_string()
}
