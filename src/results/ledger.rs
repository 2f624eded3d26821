//! The ledger: every result file ever recorded, in a chain of hashes, so that none can be dropped or changed quietly.

use super::{hex, sha256_of};
use crate::error::Error;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Its name in the results folder.
pub const FILE: &str = "ledger.csv";
const HEADER: &str = "utc,path,sha256,prev_line_sha256";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the file was recorded.
    pub utc: String,
    /// The result file, relative to the results folder, with `/`.
    pub path: String,
    /// Its checksum.
    pub sha256: String,
    /// Checksum of the line before this one, without its line break.
    pub prev_line_sha256: String,
}

/// What is wrong with a ledger or with the files it lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line does not follow from the one before it: a line was changed, dropped or put in.
    #[error("{FILE}: line {line}: the chain is broken: expected {expected}, found {found}")]
    Broken {
        /// Line, from 1.
        line: usize,
        /// Checksum of the line before.
        expected: String,
        /// What the line says.
        found: String,
    },
    /// A recorded file is gone.
    #[error("{path}: recorded in {FILE}, line {line}, and missing")]
    Missing {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
    },
    /// A recorded file is not what it was.
    #[error("{path}: changed since it was recorded in {FILE}, line {line}: expected {expected}, found {found}")]
    Changed {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// Its checksum then.
        expected: String,
        /// Its checksum now.
        found: String,
    },
    /// A result file that was never recorded.
    #[error("{path}: not recorded in {FILE}")]
    Unrecorded {
        /// The file.
        path: String,
    },
}

fn line_sha256(line: &str) -> String {
    hex(&Sha256::digest(line.as_bytes()))
}

fn lines(results: &Path) -> Result<Vec<String>, Error> {
    let path = results.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::file(&path, error)),
    }
}

/// Reads the ledger; empty where there is none.
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] for a line that is not an entry.
pub fn read(results: &Path) -> Result<Vec<Entry>, Error> {
    let path = results.join(FILE);
    let lines = lines(results)?;
    if let Some(header) = lines.first().filter(|header| *header != HEADER) {
        return Err(Error::format(&path, "line 1", HEADER, header));
    }
    let entries = lines.iter().enumerate().skip(1).map(|(index, line)| {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[..] {
            [utc, path, sha256, previous] => Ok(Entry {
                utc: utc.into(),
                path: path.into(),
                sha256: sha256.into(),
                prev_line_sha256: previous.into(),
            }),
            _ => Err(Error::format(&path, format!("line {}", index + 1), HEADER, line)),
        }
    });
    entries.collect()
}

/// Records a result file, given by its path relative to the results folder. Only ever appends.
///
/// # Errors
/// [`Error::File`].
pub fn append(results: &Path, relative: &str, utc: &str) -> Result<(), Error> {
    let path = results.join(FILE);
    let known = lines(results)?;
    let last = known.last().map_or(HEADER, String::as_str);
    let sha256 = sha256_of(&results.join(relative))?;
    let mut text = if known.is_empty() { format!("{HEADER}\n") } else { String::new() };
    text += &format!("{utc},{relative},{sha256},{}\n", line_sha256(last));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(&path).map_err(|error| Error::file(&path, error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| Error::file(&path, error))
}

/// Walks the chain and looks at every file: all that is wrong, in the order of the ledger.
///
/// # Errors
/// As [`read`], and [`Error::File`] for a file that exists and cannot be read.
pub fn check(results: &Path) -> Result<Vec<Fault>, Error> {
    let (lines, entries) = (lines(results)?, read(results)?);
    let mut faults = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let line = index + 2;
        let expected = line_sha256(&lines[index]);
        if entry.prev_line_sha256 != expected {
            faults.push(Fault::Broken { line, expected, found: entry.prev_line_sha256.clone() });
        }
        let path = results.join(&entry.path);
        if !path.exists() {
            faults.push(Fault::Missing { path: entry.path.clone(), line });
            continue;
        }
        let found = sha256_of(&path)?;
        if found != entry.sha256 {
            let expected = entry.sha256.clone();
            faults.push(Fault::Changed { path: entry.path.clone(), line, expected, found });
        }
    }
    let recorded: BTreeSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let unrecorded = result_files(results)?.into_iter().map(|(relative, _)| relative);
    let unrecorded = unrecorded.filter(|path| !recorded.contains(path.as_str()));
    faults.extend(unrecorded.map(|path| Fault::Unrecorded { path }));
    Ok(faults)
}

/// Every `.json` below `<machine>/<kernel>/`: relative path with `/`, and full path; sorted. Empty where there is no folder.
///
/// # Errors
/// [`Error::File`] for a folder that cannot be read.
pub fn result_files(results: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    if !results.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(results).min_depth(3).max_depth(3).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(results).to_owned();
            Error::file(path, error.into())
        })?;
        if entry.file_type().is_file() && entry.path().extension().is_some_and(|extension| extension == "json") {
            let relative = entry.path().strip_prefix(results).unwrap_or(entry.path());
            let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            files.push((parts.join("/"), entry.path().to_owned()));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("m/cosine")).unwrap();
        for name in ["a", "b", "c"] {
            let relative = format!("m/cosine/{name}.json");
            std::fs::write(folder.path().join(&relative), name).unwrap();
            append(folder.path(), &relative, "2026-01-01T00:00:00Z").unwrap();
        }
        folder
    }

    #[test]
    fn an_untouched_ledger_has_no_faults() {
        let folder = folder();
        assert_eq!(check(folder.path()).unwrap(), []);
        assert_eq!(read(folder.path()).unwrap().len(), 3);
        assert_eq!(check(&folder.path().join("none")).unwrap(), []);
    }

    #[test]
    fn a_deleted_result_is_missing_and_a_changed_one_is_named() {
        let folder = folder();
        std::fs::remove_file(folder.path().join("m/cosine/b.json")).unwrap();
        std::fs::write(folder.path().join("m/cosine/c.json"), "better").unwrap();
        let faults = check(folder.path()).unwrap();
        assert!(matches!(&faults[0], Fault::Missing { path, line: 3 } if path == "m/cosine/b.json"), "{faults:?}");
        assert!(matches!(&faults[1], Fault::Changed { path, line: 4, .. } if path == "m/cosine/c.json"), "{faults:?}");
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn a_line_taken_out_breaks_the_chain_and_leaves_its_file_unrecorded() {
        let folder = folder();
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text.lines().filter(|line| !line.contains("b.json")).collect();
        std::fs::write(&path, kept.join("\n") + "\n").unwrap();
        let faults = check(folder.path()).unwrap();
        assert!(matches!(faults[0], Fault::Broken { line: 3, .. }), "{faults:?}");
        assert_eq!(faults[1], Fault::Unrecorded { path: "m/cosine/b.json".into() });
    }

    #[test]
    fn a_line_that_is_no_entry_is_named() {
        let folder = folder();
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "rubbish\n").unwrap();
        let message = check(folder.path()).unwrap_err().to_string();
        assert!(message.contains("ledger.csv: line 5: expected utc,path,sha256"), "{message}");
    }
}
