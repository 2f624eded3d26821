//! Where results are kept: `results/<machine_id>/<kernel>/<utc>-<commit8>-<run8>.json` and `.samples.csv` beside it.
//!
//! Files never change. While a run goes on, both have `.partial` names and are brought up to date after every size, so
//! that a crash or an interrupt loses at most the size in progress. Such a run can be [resumed](Writer::resume); the next
//! one of the same kernel on the same machine that does not resume it [takes it in](recover) as it is, so that it cannot
//! be forgotten.

use super::schema::{READ, ResultFile, Sample};
use super::{hex, ledger, samples};
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

const PARTIAL: &str = ".partial";
const JSON: &str = ".json";
const CSV: &str = ".samples.csv";

/// Reads one result file.
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] with the line for a file that is not a result of a known schema.
pub fn load(path: &Path) -> Result<ResultFile, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
    #[derive(Deserialize)]
    struct Version {
        schema: String,
    }
    let malformed = |error: serde_json::Error| {
        Error::format(
            path,
            format!("line {}, column {}", error.line(), error.column()),
            "a result file",
            error.to_string(),
        )
    };
    let version: Version = serde_json::from_slice(&bytes).map_err(malformed)?;
    if !READ.contains(&version.schema.as_str()) {
        return Err(Error::format(path, "schema", READ.join(" or "), version.schema));
    }
    serde_json::from_slice(&bytes).map_err(malformed)
}

/// Reads every result below a folder, sorted by path relative to it. Empty where there is no such folder.
///
/// # Errors
/// As [`load`], for the first file that cannot be read.
pub fn load_all(results: &Path) -> Result<Vec<(String, ResultFile)>, Error> {
    ledger::result_files(results)?.into_iter().map(|(relative, path)| Ok((relative, load(&path)?))).collect()
}

/// Reads `withdrawn.toml`: the reason by the path of each withdrawn result. Withdrawn results stay and are shown as such.
///
/// # Errors
/// [`Error::File`] or [`Error::Format`].
pub fn withdrawn(results: &Path) -> Result<BTreeMap<String, String>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Withdrawn {
        #[serde(default)]
        withdrawn: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        path: String,
        reason: String,
    }
    let path = results.join("withdrawn.toml");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(Error::file(&path, error)),
    };
    let parsed: Withdrawn = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Error::format(&path, format!("line {line}"), "[[withdrawn]] with path and reason", error.message())
    })?;
    Ok(parsed.withdrawn.into_iter().map(|entry| (entry.path, entry.reason)).collect())
}

/// A result being written.
pub struct Writer {
    results: PathBuf,
    folder: PathBuf,
    stem: String,
    samples: File,
    hash: Sha256,
    rows: u64,
}

impl Writer {
    /// Starts a result. `stem` is `<utc>-<commit8>-<run8>`.
    ///
    /// # Errors
    /// [`Error::File`] when the folder cannot be made or written, or the result exists.
    pub fn create(results: &Path, machine_id: &str, kernel: &str, stem: &str) -> Result<Self, Error> {
        let folder = results.join(machine_id).join(kernel);
        std::fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
        let path = folder.join(format!("{stem}{CSV}{PARTIAL}"));
        for existing in [folder.join(format!("{stem}{JSON}")), folder.join(format!("{stem}{CSV}"))] {
            if existing.exists() {
                return Err(Error::file(existing, std::io::ErrorKind::AlreadyExists.into()));
            }
        }
        let samples =
            File::options().write(true).create_new(true).open(&path).map_err(|error| Error::file(&path, error))?;
        let mut writer =
            Self { results: results.to_owned(), folder, stem: stem.to_owned(), samples, hash: Sha256::new(), rows: 0 };
        // The header comes from the type, also when no sample will ever follow.
        let probe = Sample::default();
        let header = samples::to_csv(&[probe], true).map_err(|error| writer.csv_error(error))?;
        let end = header.iter().position(|byte| *byte == b'\n').map_or(header.len(), |at| at + 1);
        writer.write_samples(&header[..end])?;
        Ok(writer)
    }

    /// Goes on with an [unfinished] run: the result, and the samples it was saved with. What was written after
    /// that is dropped; the size it belongs to was never finished.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Format`] where one of the two files is damaged; they are left as they are then.
    pub fn resume(results: &Path, partial: &Path) -> Result<(Self, ResultFile, Vec<Sample>), Error> {
        let name = partial.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(PARTIAL).and_then(|name| name.strip_suffix(JSON));
        let (Some(stem), Some(folder)) = (stem, partial.parent()) else {
            return Err(Error::argument("unfinished run", format!("a name that ends in {JSON}{PARTIAL}"), name));
        };
        let result = load(partial)?;
        let path = folder.join(format!("{stem}{CSV}{PARTIAL}"));
        let (file, bytes) = cut_samples(&path, &result)?;
        let kept = samples::parse(&path, &bytes)?;
        let writer = Self {
            results: results.to_owned(),
            folder: folder.to_owned(),
            stem: stem.to_owned(),
            samples: file,
            hash: Sha256::new_with_prefix(&bytes),
            rows: result.samples.rows,
        };
        Ok((writer, result, kept))
    }

    /// Leaves what was saved for a later [`resume`](Self::resume). Returns the path of the unfinished result.
    pub fn leave(self) -> PathBuf {
        self.path(&format!("{JSON}{PARTIAL}"))
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}{suffix}", self.stem))
    }

    fn csv_error(&self, error: csv::Error) -> Error {
        Error::file(self.path(CSV), std::io::Error::other(error))
    }

    fn write_samples(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(&format!("{CSV}{PARTIAL}"));
        self.samples.write_all(bytes).map_err(|error| Error::file(path, error))?;
        self.hash.update(bytes);
        Ok(())
    }

    /// Adds samples; they become part of the result with the next [`save`](Self::save).
    ///
    /// # Errors
    /// [`Error::File`], a full disk included.
    pub fn append(&mut self, new: &[Sample]) -> Result<(), Error> {
        let bytes = samples::to_csv(new, false).map_err(|error| self.csv_error(error))?;
        self.write_samples(&bytes)?;
        self.rows += new.len() as u64;
        Ok(())
    }

    /// Brings the partial result up to date. Fills in `samples`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn save(&mut self, result: &mut ResultFile) -> Result<(), Error> {
        result.samples.path = format!("{}{CSV}", self.stem);
        result.samples.sha256 = hex(&self.hash.clone().finalize());
        result.samples.rows = self.rows;
        let path = self.path(&format!("{CSV}{PARTIAL}"));
        self.samples.sync_data().map_err(|error| Error::file(path, error))?;
        write_json(&self.path(&format!("{JSON}{PARTIAL}")), result)
    }

    /// Saves for the last time, gives both files their names and records the result in the ledger. Returns the path of
    /// the result.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn finish(mut self, result: &mut ResultFile) -> Result<PathBuf, Error> {
        self.save(result)?;
        publish(&self.results, &self.folder, &self.stem, &result.run.ended_utc)
    }

    /// Removes what was begun, when nothing was measured.
    pub fn discard(self) {
        for suffix in [CSV, JSON] {
            // Without a first save there is only one of them.
            let _ = std::fs::remove_file(self.path(&format!("{suffix}{PARTIAL}")));
        }
    }
}

fn write_json(path: &Path, result: &ResultFile) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    let written = serde_json::to_writer_pretty(&mut file, result).map_err(std::io::Error::from);
    written.and_then(|()| file.write_all(b"\n")).map_err(|error| Error::file(path, error))?;
    file.commit()
}

fn publish(results: &Path, folder: &Path, stem: &str, utc: &str) -> Result<PathBuf, Error> {
    // The samples first: a result must never point at nothing.
    for suffix in [CSV, JSON] {
        let (from, to) = (folder.join(format!("{stem}{suffix}{PARTIAL}")), folder.join(format!("{stem}{suffix}")));
        if to.exists() {
            return Err(Error::file(to, std::io::ErrorKind::AlreadyExists.into()));
        }
        std::fs::rename(&from, &to).map_err(|error| Error::file(&from, error))?;
    }
    let path = folder.join(format!("{stem}{JSON}"));
    let relative = path.strip_prefix(results).unwrap_or(&path);
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    ledger::append(results, &parts.join("/"), utc)?;
    Ok(path)
}

/// Unfinished runs of a kernel on a machine, sorted by name, which begins with their time: the results, whose samples lie
/// beside them. While holding the [`Lock`] none of them is still going on.
///
/// # Errors
/// [`Error::File`] for a folder that cannot be read.
pub fn unfinished(results: &Path, machine_id: &str, kernel: &str) -> Result<Vec<PathBuf>, Error> {
    let folder = results.join(machine_id).join(kernel);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(&folder, error)),
    };
    let suffix = format!("{JSON}{PARTIAL}");
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::file(&folder, error))?.path();
        // Hidden ones are those of `AtomicFile`, which were never whole.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(&suffix) && !name.starts_with('.') {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Takes in the unfinished runs of a kernel on a machine that nobody resumes: sizes that were finished stay, as a run
/// that is not complete. Returns the paths of the results. To be called while holding the [`Lock`].
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] for a partial file that is damaged.
pub fn recover(results: &Path, machine_id: &str, kernel: &str) -> Result<Vec<PathBuf>, Error> {
    let mut recovered = Vec::new();
    for partial in unfinished(results, machine_id, kernel)? {
        let (writer, result, _) = Writer::resume(results, &partial)?;
        recovered.push(publish(results, &writer.folder, &writer.stem, &result.run.ended_utc)?);
    }
    Ok(recovered)
}

/// Samples are written before the result that speaks of them, so there may be more than it knows: those are cut off. The
/// file, at its end, and what it holds.
fn cut_samples(path: &Path, result: &ResultFile) -> Result<(File, Vec<u8>), Error> {
    let mut file = File::options().read(true).write(true).open(path).map_err(|error| Error::file(path, error))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| Error::file(path, error))?;
    let lines = usize::try_from(result.samples.rows).unwrap_or(usize::MAX).saturating_add(1);
    let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let (found, end) = whole.take(lines).fold((0, 0), |(count, end), line| (count + 1, end + line.len()));
    if found < lines {
        let expected = format!("{} samples after a header", result.samples.rows);
        return Err(Error::format(path, format!("line {}", found + 1), expected, "the end of the file"));
    }
    bytes.truncate(end);
    let found = hex(&Sha256::digest(&bytes));
    if found != result.samples.sha256 {
        return Err(Error::format(path, "checksum", &result.samples.sha256, found));
    }
    let cut = file.set_len(end as u64).and_then(|()| file.seek(std::io::SeekFrom::End(0)));
    cut.and_then(|_| file.sync_all()).map_err(|error| Error::file(path, error))?;
    Ok((file, bytes))
}

/// One gate at a time per machine: two would measure each other.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the machine's lock, or says who holds it.
    ///
    /// # Errors
    /// [`Error::Argument`] while another gate runs, [`Error::File`] when the lock file cannot be opened.
    pub fn take(utc: &str) -> Result<Self, Error> {
        Self::take_at(&std::env::temp_dir().join("lodestar-gate.lock"), utc)
    }

    /// As [`take`](Self::take), with a lock file of one's own.
    ///
    /// # Errors
    /// The same.
    pub fn take_at(path: &Path, utc: &str) -> Result<Self, Error> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(|error| Error::file(path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Without its words the holder stays unknown; that it exists is what matters.
                let _ = file.read_to_string(&mut holder);
                let holder =
                    if holder.trim().is_empty() { "an unknown process".into() } else { holder.trim().to_owned() };
                return Err(Error::argument("gate", "no other gate running on this machine", holder));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(Error::file(path, error)),
        }
        let words = format!("process {}, since {utc}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(words.as_bytes())).and_then(|()| file.flush());
        written.map_err(|error| Error::file(path, error))?;
        Ok(Self { _file: file })
    }
}
