//! The process of one launch: the plan comes on stdin, events go to stdout.

use crate::cli::{Exit, Io, platform, platform_for_checks};
use crate::error::Error;
use crate::gate::canary::IntegerLoop;
use crate::gate::clock::SteadyClock;
use crate::gate::launch::{self, Event, OpenDevice, Stage, canary_median};
use crate::gate::plan::{Arm, LaunchPlan};
use crate::gate::state::Watch;
use crate::kernels::{Platform, kernel};
use crate::machine::Adapter;
use crate::results::schema::{LaunchState, Sample};
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
    send(io, &Event::Ready { adapter: adapter.map(Box::new), init_ns })?;
    let device = device(&platform);
    let (clock, canary) = (SteadyClock::start(), IntegerLoop::new(plan.threads));
    let stage = Stage {
        kernel: kernel(&plan.kernel)?,
        platform: &platform,
        device: device.as_deref(),
        clock: &clock,
        canary: &canary,
    };
    let watch = Watch::start();
    let mut canaries = Vec::new();
    launch::run(plan, &stage, &mut |event| {
        let gone = |error: std::io::Error| Error::file("standard output", error);
        let mut tell = |event: &Event| send(io, event).map_err(|error| gone(std::io::Error::other(error)));
        let cell = if let Event::Cell(cell) = &event { Some(cell) } else { None };
        if let Some(cell) = cell {
            canaries.extend(cell.samples.iter().filter(|sample| sample.phase == "canary").cloned());
            tell(&Event::State(Box::new(state(&watch, plan.launch, &canaries))))?;
        }
        tell(&event)?;
        if cell.is_some() {
            // Nothing may run while the parent writes, and nothing goes on without a parent.
            let mut answer = String::new();
            let read = std::io::stdin().lock().read_line(&mut answer).map_err(gone)?;
            if read == 0 {
                return Err(gone(std::io::ErrorKind::BrokenPipe.into()));
            }
        }
        Ok(())
    })?;
    send(io, &Event::Done(Box::new(state(&watch, plan.launch, &canaries))))
}

fn state(watch: &Watch, launch: u32, canaries: &[Sample]) -> LaunchState {
    let mut state = watch.so_far(launch);
    state.canary_1t_ns = canary_median(canaries, Arm::Simd1t);
    state.canary_ns = canary_median(canaries, Arm::Simd);
    state.canary_gpu_ns = canary_median(canaries, Arm::Gpu);
    state
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

/// The device of the platform, as the launch asks it about itself.
#[cfg(feature = "gpu")]
struct Opened {
    device: std::sync::Arc<crate::device::Device>,
    adapter: Adapter,
}

#[cfg(feature = "gpu")]
impl OpenDevice for Opened {
    fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    fn upload_path(&self) -> &str {
        self.device.upload_path()
    }

    fn wait_strategy(&self) -> &str {
        self.device.wait_strategy()
    }

    fn compile_ns(&self) -> u64 {
        self.device.compile_ns()
    }

    fn forget_pipelines(&self) {
        // Its first use compiles a probe, which is none of the kernel's pipelines.
        self.device.timestamps_hold();
        self.device.forget_pipelines();
    }
}

#[cfg(feature = "gpu")]
fn device(platform: &Platform) -> Option<Box<dyn OpenDevice>> {
    let device = platform.device.as_ref().map(std::sync::Arc::clone)?;
    Some(Box::new(Opened { adapter: Adapter::from(device.info()), device }))
}

#[cfg(not(feature = "gpu"))]
fn device(_: &Platform) -> Option<Box<dyn OpenDevice>> {
    None
}
