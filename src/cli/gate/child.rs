//! The process of one launch: the plan comes on stdin, events go to stdout.

use crate::cli::{Exit, Io, platform, platform_for_checks};
use crate::error::Error;
use crate::gate::canary::IntegerLoop;
use crate::gate::clock::SteadyClock;
use crate::gate::launch::{self, Event, Stage, canary_median};
use crate::gate::plan::{Arm, LaunchPlan};
use crate::gate::state::Watch;
use crate::kernels::{Platform, kernel};
use crate::machine::Adapter;
use anyhow::Context;
use std::io::{BufRead, Write};

pub(super) fn run(io: &mut Io) -> anyhow::Result<Exit> {
    // The environment was padded by the parent; the heap is shifted by a multiple of it.
    let padding = std::env::var("LODESTAR_PADDING").map_or(0, |padding| padding.len());
    let shift = std::hint::black_box(vec![0_u8; 16 * padding]);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("the plan of the launch")?;
    let plan: LaunchPlan = serde_json::from_str(&line).context("the plan of the launch")?;
    if let Err(error) = follow(&plan, io) {
        send(io, &Event::Failed(format!("{error:#}").replace('\n', " ")))?;
    }
    drop(shift);
    Ok(0)
}

fn send(io: &mut Io, event: &Event) -> anyhow::Result<()> {
    serde_json::to_writer(&mut io.out, event)?;
    writeln!(io.out)?;
    io.out.flush()?;
    Ok(())
}

fn follow(plan: &LaunchPlan, io: &mut Io) -> anyhow::Result<()> {
    let mut platform = if plan.null { platform("cpu")? } else { platform_for_checks(&plan.device)? };
    platform.threads = plan.threads;
    let (adapter, init_ns) = opened(&platform);
    send(io, &Event::Ready { adapter: adapter.clone().map(Box::new), init_ns })?;
    let (clock, canary) = (SteadyClock::start(), IntegerLoop::new(plan.threads));
    let stage = Stage {
        kernel: kernel(&plan.kernel)?,
        platform: &platform,
        adapter: adapter.as_ref(),
        clock: &clock,
        canary: &canary,
    };
    let watch = Watch::start();
    let mut canaries = Vec::new();
    launch::run(plan, &stage, &mut |event| {
        let wait = match &event {
            Event::Cell(cell) => {
                canaries.extend(cell.samples.iter().filter(|sample| sample.phase == "canary").cloned());
                true
            }
            _ => false,
        };
        let gone = |error: std::io::Error| Error::file("standard output", error);
        send(io, &event).map_err(|error| gone(std::io::Error::other(error)))?;
        if wait {
            // Nothing may run while the parent writes, and nothing goes on without a parent.
            let mut answer = String::new();
            let read = std::io::stdin().lock().read_line(&mut answer).map_err(gone)?;
            if read == 0 {
                return Err(gone(std::io::ErrorKind::BrokenPipe.into()));
            }
        }
        Ok(())
    })?;
    let mut state = watch.finish(plan.launch);
    state.canary_1t_ns = canary_median(&canaries, Arm::Simd1t);
    state.canary_ns = canary_median(&canaries, Arm::Simd);
    state.canary_gpu_ns = canary_median(&canaries, Arm::Gpu);
    send(io, &Event::Done(Box::new(state)))
}

#[cfg(feature = "gpu")]
pub(super) fn opened(platform: &Platform) -> (Option<Adapter>, Option<u64>) {
    let device = platform.device.as_ref();
    (device.map(|device| Adapter::from(device.info())), device.map(|device| device.open_ns()))
}

#[cfg(not(feature = "gpu"))]
pub(super) fn opened(_: &Platform) -> (Option<Adapter>, Option<u64>) {
    (None, None)
}
