//! Where the answer goes.

use super::arguments::{Arguments, OutputFormat};
use super::form::{Form, is_stdin};
use crate::atomic_file::AtomicFile;
use crate::cli::Io;
use crate::error::Error;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the answer goes.
pub(super) struct Sink {
    format: OutputFormat,
    /// stdout, where there is none.
    file: Option<(AtomicFile, PathBuf)>,
    /// Formatting and writing.
    pub(super) writing: Duration,
    /// What threads have formatted, to be written in order.
    parts: Vec<Vec<u8>>,
}

impl Sink {
    /// Refuses what could only fail after the work.
    pub(super) fn new(arguments: &Arguments, form: &Form, io: &Io) -> Result<Self, Error> {
        let path = arguments.output.as_deref().filter(|path| !is_stdin(path));
        let format = match (arguments.output_format, path) {
            (Some(format), _) => format,
            // What a file is called says what it holds; --json is about stdout.
            (None, Some(path)) => by_extension(path)?,
            (None, None) if io.json => OutputFormat::Jsonl,
            (None, None) => OutputFormat::Csv,
        };
        let refuse = |flag: &str, found: &str| {
            let expected = format!("csv, tsv or jsonl with it, as {} has one number for each pair", format.name());
            Err(Error::argument(flag, expected, found))
        };
        if matches!(format, OutputFormat::Npy | OutputFormat::Txt) {
            if arguments.nearest.is_some() {
                return refuse("--nearest", format.name());
            }
            if arguments.exclude_self {
                return refuse("--exclude-self", format.name());
            }
            if format == OutputFormat::Txt && arguments.max_distance.is_some() {
                return refuse("--max-distance", format.name());
            }
        }
        if format == OutputFormat::Npy && path.is_none() && io.is_terminal() {
            return Err(Error::argument("--output-format", "a text format on a terminal", "npy"));
        }
        // What is read must not be replaced while it is read; and rarely is it meant to be replaced at all.
        if let Some(path) = path
            && form.paths().into_iter().any(|input| same_file(input, path))
        {
            return Err(Error::argument("--output", "another file than the input", path.display()));
        }
        let file = path.map(|path| AtomicFile::create(path).map(|file| (file, path.to_owned()))).transpose()?;
        Ok(Self { format, file, writing: Duration::ZERO, parts: Vec::new() })
    }

    pub(super) fn format(&self) -> OutputFormat {
        self.format
    }

    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// What messages call it.
    pub(super) fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| "stdout".into(), |(_, path)| path.display().to_string())
    }

    pub(super) fn write(&mut self, bytes: &[u8], io: &mut Io) -> Result<(), Error> {
        match &mut self.file {
            Some((file, path)) => file.write_all(bytes).map_err(|error| Error::file(path, error)),
            None => io.out.write_all(bytes).map_err(|error| Error::file("stdout", error)),
        }
    }

    /// Writes what `format(part, bytes)` appends for each part, in order. The parts are formatted by all threads, so many at a
    /// time that they stay in cache.
    pub(super) fn write_parts<Part: Sync>(
        &mut self,
        mut parts: impl Iterator<Item = Part>,
        format: impl Fn(&Part, &mut Vec<u8>) + Sync,
        threads: &ThreadPool,
        io: &mut Io,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let at_a_time = threads.current_num_threads() * 2;
        let mut buffers = std::mem::take(&mut self.parts);
        buffers.resize_with(at_a_time, Vec::new);
        let work = |(buffer, part): (&mut Vec<u8>, &Part)| {
            buffer.clear();
            format(part, buffer);
        };
        let mut now = Vec::with_capacity(at_a_time);
        loop {
            now.clear();
            now.extend(parts.by_ref().take(at_a_time));
            match now.as_slice() {
                [] => break,
                [part] => work((&mut buffers[0], part)),
                now => threads.install(|| buffers.par_iter_mut().zip(now).for_each(work)),
            }
            for buffer in &buffers[..now.len()] {
                self.write(buffer, io)?;
            }
        }
        self.parts = buffers;
        self.writing += started.elapsed();
        Ok(())
    }

    /// Gives the file its name.
    pub(super) fn finish(self, io: &mut Io) -> Result<Duration, Error> {
        let started = Instant::now();
        match self.file {
            Some((file, _)) => file.commit_without_sync()?,
            None => io.out.flush().map_err(|error| Error::file("stdout", error))?,
        }
        Ok(self.writing + started.elapsed())
    }
}

fn same_file(input: &Path, output: &Path) -> bool {
    match (std::fs::canonicalize(input), std::fs::canonicalize(output)) {
        (Ok(input), Ok(output)) => input == output && input.is_file(),
        _ => false,
    }
}

fn by_extension(path: &Path) -> Result<OutputFormat, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    Ok(match extension.as_str() {
        "csv" => OutputFormat::Csv,
        "tsv" => OutputFormat::Tsv,
        "jsonl" | "ndjson" => OutputFormat::Jsonl,
        "txt" => OutputFormat::Txt,
        "npy" => OutputFormat::Npy,
        _ => {
            let expected = format!("one of {} (or name the format with --output-format)", OutputFormat::NAMES);
            let found = if extension.is_empty() { "none".to_owned() } else { format!(".{extension}") };
            return Err(Error::format(path, "extension", expected, found));
        }
    })
}
