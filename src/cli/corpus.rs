//! `lodestar corpus`: the committed inputs, the generators of larger ones, and what makes matrices from text.

mod tfidf;

use super::{Exit, Io};
use crate::atomic_file::AtomicFile;
use crate::data::generate::{DISTRIBUTIONS, Generator};
use crate::error::Error;
use crate::formats::npy_f32_header;
use crate::units::Bytes;
use anyhow::Context;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What the committed files are; embedded, so that a binary knows what it was built with.
const MANIFEST: &str = include_str!("../../corpus/manifest.toml");
/// The most bytes of a generated matrix that are in memory at once, unless one block is larger.
const BATCH_BYTES: usize = 16 << 20;

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
    Make(Make),
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

const MAKE_HELP: &str = "\
Distributions:
  gaussian    independent standard normal values: no structure
  clustered   unit rows around 256 centres of different popularity, with a common direction: as real embeddings are
  duplicates  copies of 64 rows: ties everywhere
  sorted      each row nearer to one direction than the row before: the worst case for selection

Examples:
  lodestar corpus make clustered --rows 1000000 --cols 384 --output clustered.npy
  lodestar corpus make clustered --rows 256 --cols 384 --queries 0 --output queries.npy";

/// Make a matrix from a named distribution and a seed, as .npy
///
/// The same arguments give the same file everywhere. It is written block by block, so it may be larger than memory.
#[derive(clap::Args)]
#[command(after_long_help = MAKE_HELP)]
struct Make {
    /// gaussian, clustered, duplicates or sorted
    distribution: String,
    /// Number of rows
    #[arg(long, value_name = "N")]
    rows: usize,
    /// Number of columns
    #[arg(long, value_name = "N")]
    cols: usize,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Make queries instead: set number SET of those that belong to the matrix of this distribution, width and seed
    #[arg(long, value_name = "SET")]
    queries: Option<u64>,
    /// Where to write
    #[arg(long, short, value_name = "FILE.npy")]
    output: PathBuf,
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
        Action::Make(arguments) => make(arguments, io)?,
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
    writeln!(io.out, "\nLarger inputs: lodestar corpus make {}", DISTRIBUTIONS.join("|"))?;
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

fn make(arguments: &Make, io: &Io) -> anyhow::Result<()> {
    let Make { distribution, rows, cols, seed, queries, output } = arguments;
    let generator = match queries {
        None => Generator::new(distribution, *rows, *cols, *seed)?,
        Some(call) => Generator::queries(distribution, *rows, *cols, *seed, *call)?,
    };
    if output.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("npy")) {
        return Err(Error::format(output, "extension", ".npy", "another").into());
    }
    let mut file = AtomicFile::create(output)?;
    let mut progress = io.progress("making rows", generator.rows() as u64);
    let written = write(&generator, &mut file, |rows| progress.advance(rows as u64, ""));
    written.map_err(|error| Error::file(output, error))?;
    file.commit()?;
    io.note(format_args!("wrote {}: {rows} x {cols} f32, {distribution}, seed {seed}", output.display()));
    Ok(())
}

/// Makes and writes the blocks, several at a time on all threads, in order.
fn write(generator: &Generator, file: &mut AtomicFile, mut done: impl FnMut(usize)) -> io::Result<()> {
    file.write_all(&npy_f32_header(generator.rows(), generator.cols()))?;
    let block_values = generator.block_values().max(1);
    let at_once = (BATCH_BYTES / size_of::<f32>() / block_values).max(1);
    let mut values = Vec::new();
    for first in (0..generator.blocks()).step_by(at_once) {
        let last = (first + at_once).min(generator.blocks()) - 1;
        let (begin, _) = generator.block_rows(first);
        let (end, count) = generator.block_rows(last);
        let rows = end + count - begin;
        values.resize(rows * generator.cols(), 0.0);
        values
            .par_chunks_mut(block_values)
            .enumerate()
            .for_each(|(block, values)| generator.fill(first + block, values));
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|value: &mut f32| *value = f32::from_bits(value.to_bits().swap_bytes()));
        }
        file.write_all(bytemuck::cast_slice(&values))?;
        done(rows);
    }
    Ok(())
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
