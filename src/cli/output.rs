//! Where a command's words go: data to stdout, everything else to stderr.
#![expect(clippy::print_stderr, reason = "this is the one place that writes to stderr")]

use crate::error::Error;
use crate::kernels::Platform;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

/// What a command is given to speak with.
pub struct Io {
    /// Data: stdout, buffered.
    pub out: Box<dyn Write>,
    /// Whether data is to be JSON.
    pub json: bool,
    quiet: bool,
}

impl Io {
    pub(super) fn new(json: bool, quiet: bool) -> Self {
        Self { out: Box::new(BufWriter::with_capacity(1 << 16, io::stdout())), json, quiet }
    }

    /// A message for the person, on stderr; nothing with `--quiet`.
    pub fn note(&self, message: impl std::fmt::Display) {
        if !self.quiet {
            eprintln!("{message}");
        }
    }

    /// Whether stdout is a terminal that wants colour (`NO_COLOR` is honoured).
    pub fn color(&self) -> bool {
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Width of the terminal's tables, where stdout is one.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Where a command on files computes that was given `--device device` and perhaps `--threads threads`; see
    /// [`platform`](super::platform()).
    ///
    /// # Errors
    /// No such adapter, no thread at all, or an environment variable with a bad value.
    pub fn platform(&self, device: &str, threads: Option<usize>) -> anyhow::Result<Platform> {
        if threads == Some(0) {
            return Err(Error::argument("--threads", "at least 1", 0).into());
        }
        // Without a result to go by, `auto` is the CPU: opening a device takes longer than most calls.
        let platform = super::platform(if device == "auto" { "cpu" } else { device })?;
        Ok(Platform { threads: threads.unwrap_or(platform.threads), ..platform })
    }

    /// As many threads as a platform has and no more, for what a command does beside computing.
    ///
    /// # Errors
    /// [`Error::Argument`] where the system cannot start so many.
    pub fn threads(&self, platform: &Platform) -> Result<rayon::ThreadPool, Error> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(platform.threads).build();
        threads.map_err(|_| Error::argument("--threads", "as many as the system can start", platform.threads))
    }

    /// Says where a command that was given `--device device` computes, and why there.
    pub fn explain(&self, device: &str, platform: &Platform) {
        let reason = if device == "auto" {
            "auto is the CPU, as results do not record yet from which size on a device is faster"
        } else {
            "as asked for"
        };
        self.note(format_args!("{}: {reason}", platform.place()));
    }

    /// Bytes of memory that a command may still take; `None` where the system does not say.
    pub fn available_memory(&self) -> Option<u64> {
        crate::machine::available_memory()
    }

    /// Progress over `total` steps: a bar on a terminal, a plain line every 10 seconds elsewhere.
    pub fn progress(&self, what: &str, total: u64) -> Progress {
        let plain = !io::stderr().is_terminal() || std::env::var_os("CI").is_some();
        let bar = if self.quiet || plain { ProgressBar::hidden() } else { ProgressBar::new(total) };
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {elapsed} (left: {eta})") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        let now = Instant::now();
        Progress { bar, plain: plain && !self.quiet, what: what.to_owned(), total, done: 0, started: now, said: now }
    }

    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }
}

/// See [`Io::progress`].
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    what: String,
    total: u64,
    done: u64,
    started: Instant,
    said: Instant,
}

impl Progress {
    /// `steps` more are done; `detail` says what is going on now.
    pub fn advance(&mut self, steps: u64, detail: &str) {
        self.done += steps;
        self.bar.inc(steps);
        self.bar.set_message(if detail.is_empty() { self.what.clone() } else { format!("{}: {detail}", self.what) });
        if self.plain && self.said.elapsed() >= Duration::from_secs(10) {
            self.said = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            let percent = 100 * self.done / self.total.max(1);
            eprintln!(
                "{}: {percent}% after {seconds} s{}{detail}",
                self.what,
                if detail.is_empty() { "" } else { ", " }
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One line on stderr.
pub(super) fn error(error: &anyhow::Error) {
    eprintln!("lodestar: {}", one_line(&message(error)));
}

/// The chain of causes, without those that the message before them ends with already.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

fn one_line(message: &str) -> String {
    message.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether an error is only the reader of our output going away (`lodestar ... | head`).
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::Error::from(Error::file("x.npy", io::ErrorKind::NotFound.into())).context("reading");
        assert_eq!(message(&error), "reading: x.npy: entity not found");
        assert_eq!(one_line("a\n  b\n"), "a b");
    }
}
