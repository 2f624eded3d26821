//! Launches as processes: the program starts itself, writes the plan to it, and reads one line of JSON per event.
//!
//! After a finished cell the child waits until the parent has written it down, so that nobody else works while it measures.

use super::launch::Event;
use super::plan::{self, LaunchPlan};
use super::run::Launcher;
use crate::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Set for a launch: nothing reads it, its length shifts what lies above it in memory.
const PADDING: &str = "LODESTAR_PADDING";

/// Starts launches with the arguments `gate --launch <number>`.
pub struct Processes {
    /// The program.
    pub program: PathBuf,
    /// Seed of the padding.
    pub seed: u64,
}

/// Ends the child when it goes out of scope, however that happens.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // An ended child is no error, and nothing can be done about one that cannot be ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Launcher for Processes {
    fn launch(
        &mut self,
        plan: &LaunchPlan,
        stop: &dyn Fn() -> bool,
        report: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let failed = |error| Error::file(&self.program, error);
        let padding = plan::padding(&mut plan::generator(self.seed.rotate_left(33), plan.launch));
        let child = Command::new(&self.program)
            .args(["gate", "--launch", &plan.launch.to_string()])
            .env(PADDING, "x".repeat(padding))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut child = Ending(child);
        let (Some(mut stdin), Some(stdout)) = (child.0.stdin.take(), child.0.stdout.take()) else {
            return Err(ended_badly(plan.launch, "without its pipes"));
        };
        let text = serde_json::to_string(plan).map_err(|error| failed(error.into()))?;
        tell(&mut stdin, &text, plan.launch)?;
        let (lines, received) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let flow = follow(plan.launch, &received, &mut stdin, stop, report)?;
        if flow.is_break() {
            return Ok(flow);
        }
        drop(stdin);
        let status = child.0.wait().map_err(failed)?;
        if status.success() { Ok(flow) } else { Err(ended_badly(plan.launch, describe(status))) }
    }
}

fn follow(
    launch: u32,
    received: &Receiver<std::io::Result<String>>,
    stdin: &mut ChildStdin,
    stop: &dyn Fn() -> bool,
    report: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let mut done = false;
    loop {
        let line = match received.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => line.map_err(|error| ended_badly(launch, error))?,
            Err(RecvTimeoutError::Timeout) if stop() => return Ok(ControlFlow::Break(())),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) if done => return Ok(ControlFlow::Continue(())),
            Err(RecvTimeoutError::Disconnected) => return gone(launch, stop),
        };
        let event: Event = serde_json::from_str(&line).map_err(|error| ended_badly(launch, error))?;
        done |= matches!(event, Event::Done(_));
        let wants_answer = matches!(event, Event::Cell(_));
        if report(event)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if wants_answer && tell(stdin, "go on", launch).is_err() {
            return gone(launch, stop);
        }
    }
}

/// The child is gone too early. An interrupt from the keyboard reaches both processes, and the child's end may be seen
/// before our own interrupt is.
fn gone(launch: u32, stop: &dyn Fn() -> bool) -> Result<ControlFlow<()>, Error> {
    for _ in 0..20 {
        if stop() {
            return Ok(ControlFlow::Break(()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(ended_badly(launch, "before it was done"))
}

fn tell(stdin: &mut ChildStdin, text: &str, launch: u32) -> Result<(), Error> {
    let written = stdin.write_all(text.as_bytes()).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush());
    written.map_err(|error| ended_badly(launch, error))
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        // The usual reason for 9 that nobody asked for is the system running out of memory.
        return format!("by signal {signal}{}", if signal == 9 { " (out of memory?)" } else { "" });
    }
    format!("with {status}")
}

fn ended_badly(launch: u32, how: impl std::fmt::Display) -> Error {
    Error::argument(format!("launch {launch}"), "a process that measures to its end", format!("one that ended {how}"))
}
