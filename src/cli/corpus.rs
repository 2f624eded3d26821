//! `lodestar corpus`: the committed inputs, the generators of larger ones, and what makes matrices from text.

mod make;
mod tfidf;

use super::{Exit, Io};
use crate::data::generate::DISTRIBUTIONS;
use crate::data::generate_sparse::MATRICES;
use crate::error::Error;
use crate::formats::SparseFormat;
use crate::units::Bytes;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What the committed files are; embedded, so that a binary knows what it was built with.
const MANIFEST: &str = include_str!("../../corpus/manifest.toml");

/// The inputs: list and verify the committed ones, make larger ones
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// What the committed files are, where they come from, and under which licence
    List,
    Verify(Verify),
    Make(make::Arguments),
    Tfidf(tfidf::Arguments),
}

/// Compare the committed files with their checksums
///
/// Exits with 0 when every file is as the manifest says; else names the first that is not, and exits with 2.
#[derive(clap::Args)]
#[command(
    after_long_help = "Examples:\n  lodestar corpus verify\n  lodestar corpus verify --corpus-dir ../lodestar/corpus"
)]
struct Verify {
    /// The folder that holds the files
    #[arg(long, value_name = "DIR", default_value = "corpus")]
    corpus_dir: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    files: Vec<Entry>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    what: String,
    origin: String,
    licence: String,
    bytes: u64,
    sha256: String,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    match &arguments.action {
        Action::List => list(io)?,
        Action::Verify(arguments) => verify(arguments, io)?,
        Action::Make(arguments) => make::run(arguments, io)?,
        Action::Tfidf(arguments) => tfidf::run(arguments, io)?,
    }
    Ok(0)
}

fn manifest() -> anyhow::Result<Manifest> {
    toml::from_str(MANIFEST).context("corpus/manifest.toml")
}

fn list(io: &mut Io) -> anyhow::Result<()> {
    let files = manifest()?.files;
    if io.json {
        serde_json::to_writer_pretty(&mut io.out, &files)?;
        writeln!(io.out)?;
        return Ok(());
    }
    for file in &files {
        writeln!(io.out, "{}  ({})", file.path, Bytes(file.bytes))?;
        for (name, value) in [("what", &file.what), ("origin", &file.origin), ("licence", &file.licence)] {
            writeln!(io.out, "  {name:<7}  {value}")?;
        }
        writeln!(io.out, "  sha256   {}", file.sha256)?;
    }
    writeln!(
        io.out,
        "\nLarger inputs: lodestar corpus make {}",
        [DISTRIBUTIONS, MATRICES, make::LINES].concat().join("|")
    )?;
    Ok(())
}

fn verify(arguments: &Verify, io: &mut Io) -> anyhow::Result<()> {
    let files = manifest()?.files;
    for file in &files {
        compare(&arguments.corpus_dir, file)?;
        if !io.json {
            writeln!(io.out, "ok  {}", file.path)?;
        }
    }
    if io.json {
        let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
        writeln!(io.out, "{}", serde_json::json!({ "verified": paths }))?;
    }
    Ok(())
}

fn compare(folder: &Path, entry: &Entry) -> Result<(), Error> {
    let path = folder.join(&entry.path);
    let mut file = File::open(&path).map_err(|error| Error::file(&path, error))?;
    let (bytes, sha256) = checksum(&mut file).map_err(|error| Error::file(&path, error))?;
    if bytes != entry.bytes {
        return Err(Error::format(&path, "length", format!("{} bytes", entry.bytes), bytes.to_string()));
    }
    if sha256 != entry.sha256 {
        return Err(Error::format(&path, "sha256", &entry.sha256, sha256));
    }
    Ok(())
}

fn checksum(file: &mut File) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        bytes += count as u64;
    }
    let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, digits))
}

/// The format of a sparse matrix that is to be written.
fn sparse_format(output: &Path) -> Result<SparseFormat, Error> {
    let found = output.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    SparseFormat::ALL.into_iter().find(|format| found.as_deref() == Some(format.name())).ok_or_else(|| {
        let found = found.map_or("none".into(), |found| format!(".{found}"));
        Error::format(output, "extension", ".npz or .mtx", found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_whole_and_names_every_committed_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let files = manifest().unwrap().files;
        let mut listed: Vec<_> = files.iter().map(|file| folder.join(&file.path)).collect();
        listed.sort();
        let about = ["manifest.toml", "README.md"].map(|name| folder.join(name));
        let mut present: Vec<_> = walkdir::WalkDir::new(&folder)
            .into_iter()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().is_file())
            .map(walkdir::DirEntry::into_path)
            .filter(|path| !about.contains(path))
            .collect();
        present.sort();
        assert_eq!(listed, present);
    }

    #[test]
    fn every_committed_file_is_as_the_manifest_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for file in manifest().unwrap().files {
            compare(&folder, &file).unwrap();
        }
    }

    #[test]
    fn a_changed_file_is_named_with_both_checksums() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x"), b"abc").unwrap();
        let entry = |bytes, sha256: &str| Entry {
            path: "x".into(),
            what: String::new(),
            origin: String::new(),
            licence: String::new(),
            bytes,
            sha256: sha256.into(),
        };
        // The digest of "abc", from the standard that defines SHA-256.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        compare(folder.path(), &entry(3, digest)).unwrap();
        let message = compare(folder.path(), &entry(3, "00")).unwrap_err().to_string();
        assert!(message.ends_with(&format!("x: sha256: expected 00, found {digest}")), "{message}");
        let message = compare(folder.path(), &entry(4, digest)).unwrap_err().to_string();
        assert!(message.ends_with("x: length: expected 4 bytes, found 3"), "{message}");
    }
}
