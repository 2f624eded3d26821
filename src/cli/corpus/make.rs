//! `lodestar corpus make`: larger inputs, from a name and a seed.

use super::super::Io;
use super::sparse_format;
use crate::atomic_file::AtomicFile;
use crate::data::generate::{DISTRIBUTIONS, Generator};
use crate::data::generate_sparse::{self, MATRICES};
use crate::data::generate_texts;
use crate::data::{Text, Texts};
use crate::error::Error;
use crate::formats::{npy_f32_header, write_sparse};
use rayon::prelude::*;
use std::io::{self, Write};
use std::path::PathBuf;

/// The most bytes of a generated matrix that are in memory at once, unless one block is larger.
const BATCH_BYTES: usize = 16 << 20;

/// Kinds of strings that fit on a line: all but those of any bytes.
pub(super) const LINES: &[&str] = &["letters", "dna", "cjk"];

const HELP: &str = "\
Dense, as .npy of f32, --cols wide:
  gaussian    independent standard normal values: no structure
  clustered   unit rows around 256 centres of different popularity, with a common direction: as real embeddings are
  duplicates  copies of 64 rows: ties everywhere
  sorted      each row nearer to one direction than the row before: the worst case for selection

Sparse, as .npz (scipy csr) or .mtx of f64; values are standard normal:
  tf-idf      20,000 columns, every place filled with probability 0.2%
  zipf        20,000 columns as frequent as words are, rows as long as texts are: about 53 entries a row
  power-law   square; R-MAT edges, about 20 a row, a third of the rows empty
  banded      square; 27-point stencil on a cube
  skewed      square; three rows in ten empty, one row with a quarter of all entries

Strings, as .txt in UTF-8, one a line, --cols symbols long:
  letters     a to z
  dna         A, C, G, T
  cjk         3,000 Han characters and 64 emoji

Examples:
  lodestar corpus make clustered --rows 1000000 --cols 384 --output clustered.npy
  lodestar corpus make clustered --rows 256 --cols 384 --queries 0 --output queries.npy
  lodestar corpus make tf-idf --rows 50000 --output tf-idf.npz
  lodestar corpus make dna --rows 1000 --cols 10000 --output genomes.txt
  lodestar corpus make dna --rows 1000 --cols 10000 --edits 5 --output mutants.txt";

/// Make a matrix or strings from a named distribution and a seed, as .npy, .npz, .mtx or .txt
///
/// The same arguments give the same file everywhere. A dense one is written block by block, so it may be larger than memory.
#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub(super) struct Arguments {
    /// gaussian, clustered, duplicates, sorted; tf-idf, zipf, power-law, banded, skewed; letters, dna or cjk
    distribution: String,
    /// Number of rows, or of strings
    #[arg(long, value_name = "N")]
    rows: usize,
    /// Number of columns of a dense matrix, of symbols of a string
    #[arg(long, value_name = "N")]
    cols: Option<usize>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Make queries instead: set number SET of those that belong to the matrix of this distribution, width and seed
    #[arg(long, value_name = "SET")]
    queries: Option<u64>,
    /// Edit the strings: each loses, gains or changes so many per cent of its symbols, at least one
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(..=100))]
    edits: Option<u64>,
    /// Where to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, io: &Io) -> anyhow::Result<()> {
    let name = arguments.distribution.as_str();
    if LINES.contains(&name) {
        return strings(arguments, io);
    }
    if let Some(edits) = arguments.edits {
        return Err(Error::argument("--edits", format!("none: {name} is a matrix"), edits).into());
    }
    if MATRICES.contains(&name) {
        sparse(arguments, io)
    } else if DISTRIBUTIONS.contains(&name) {
        dense(arguments, io)
    } else {
        let expected = format!("one of {}", [DISTRIBUTIONS, MATRICES, LINES].concat().join(", "));
        Err(Error::argument("distribution", expected, name).into())
    }
}

fn sparse(arguments: &Arguments, io: &Io) -> anyhow::Result<()> {
    let Arguments { distribution, rows, cols, seed, queries, output, .. } = arguments;
    let expected = || format!("none: {distribution} is a sparse matrix, which has its own width and no queries");
    if let Some(cols) = cols {
        return Err(Error::argument("--cols", expected(), cols).into());
    }
    if let Some(queries) = queries {
        return Err(Error::argument("--queries", expected(), queries).into());
    }
    let format = sparse_format(output)?;
    let matrix = generate_sparse::matrix(distribution, *rows, *seed)?;
    write_sparse(output, format, &matrix)?;
    let what = format_args!("{rows} x {} f64, {} entries", matrix.cols(), matrix.entries());
    io.note(format_args!("wrote {}: {what}, {distribution}, seed {seed}", output.display()));
    Ok(())
}

fn strings(arguments: &Arguments, io: &Io) -> anyhow::Result<()> {
    let Arguments { distribution, rows, cols, seed, queries, edits, output } = arguments;
    let Some(cols) = *cols else {
        let expected = format!("a number of symbols: {distribution} are strings of any length");
        return Err(Error::argument("--cols", expected, "none").into());
    };
    if let Some(queries) = queries {
        return Err(Error::argument("--queries", format!("none: {distribution} are strings"), queries).into());
    }
    if output.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("txt")) {
        return Err(Error::format(output, "extension", ".txt", "another").into());
    }
    let mut texts = generate_texts::texts(distribution, *rows, cols..=cols, *seed, 0)?;
    if let Some(percent) = edits {
        texts = generate_texts::edited(&texts, *percent, &generate_texts::alphabet(distribution)?, *seed, 0)?;
    }
    let mut file = AtomicFile::create(output)?;
    write_lines(&texts, &mut file).map_err(|error| Error::file(output, error))?;
    file.commit()?;
    let edits = edits.map(|percent| format!(", edits {percent}%")).unwrap_or_default();
    io.note(format_args!("wrote {}: {rows} strings, {distribution}, seed {seed}{edits}", output.display()));
    Ok(())
}

fn write_lines(texts: &Texts, file: &mut AtomicFile) -> io::Result<()> {
    let mut line = String::new();
    for text in texts.iter() {
        line.clear();
        line.extend(Text::iter(text).filter_map(char::from_u32));
        line.push('\n');
        file.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn dense(arguments: &Arguments, io: &Io) -> anyhow::Result<()> {
    let Arguments { distribution, rows, cols, seed, queries, output, .. } = arguments;
    let Some(cols) = cols else {
        let expected = format!("a number of columns: {distribution} is a dense matrix of any width");
        return Err(Error::argument("--cols", expected, "none").into());
    };
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
