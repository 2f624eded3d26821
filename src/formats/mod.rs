//! Files <-> data; the only place that knows a byte layout.
//!
//! # Large files are read, not mapped
//!
//! A matrix in a file is a [`Rows`]: whoever works on it asks for a block of rows and brings the memory. The block is
//! read at its position in the file straight into that memory. Mapping the file instead would save this one copy, and
//! cost more than it saves:
//!
//! - a mapped file that somebody truncates kills the process (SIGBUS); a read returns an error with the position;
//! - a mapping needs `unsafe`, as nobody can promise that the bytes stay the same while they are borrowed;
//! - the copy ends in the core's own cache, where the kernel wants the block anyway, at any alignment of the data;
//! - memory is bounded by what is asked for, whatever the file's size, and does not depend on what the system evicts.
//!
//! Text (.csv, .tsv) has no positions and is read whole; so are stdin and pipes.
//!
//! Formats still to come are known by name ([`PLANNED`]), so that a file of theirs gets a clear answer.

mod delimited;
mod dense;
#[cfg(test)]
mod dense_tests;
mod lists;
mod matrix_market;
mod names;
mod npy;
mod npy_cells;
mod npy_header;
mod npz;
mod source;
mod sparse;
#[cfg(test)]
mod sparse_tests;
mod strings;
#[cfg(test)]
mod tests;
mod text;
mod vecs;

pub use dense::{
    DenseFile, DenseFormat, DenseInput, DenseMatrix, DenseOptions, NpyWriter, read_dense, write_dense, write_dense_to,
};
pub use lists::{ListFormat, RankedLists};
pub use matrix_market::Banner;
pub use names::Names;
pub use npy_cells::Cells;
pub use sparse::{Dtype, Real, SparseFormat, SparseInput, SparseMatrix, SparseOptions, read_sparse, write_sparse};
pub use strings::{Column, StringFormat, StringList, StringOptions, read_string_pairs, read_strings};

use crate::data::{Matrix, Rows};
use crate::error::Error;
use npy_header::Number;
use source::Source;
use std::path::Path;

/// How a matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// numpy's .npy: f32, f16, f64, u8, i8; C and Fortran order; either byte order.
    Npy,
    /// Records of a dimension and f32 values.
    Fvecs,
    /// Records of a dimension and u8 values.
    Bvecs,
    /// Numbers between commas, with or without a header.
    Csv,
    /// Numbers between tabs, with or without a header.
    Tsv,
}

/// Formats that are known and cannot be read yet, with their extensions. A reader for one of them becomes a variant of
/// [`Format`] and a [`Rows`] of its own.
pub const PLANNED: &[(&str, &[&str])] =
    &[("parquet", &["parquet"]), ("safetensors", &["safetensors"]), ("Arrow IPC", &["arrow", "feather", "ipc"])];

impl Format {
    /// All formats that can be read.
    pub const ALL: [Self; 5] = [Self::Npy, Self::Fvecs, Self::Bvecs, Self::Csv, Self::Tsv];

    /// Its name on the command line, which is its extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Fvecs => "fvecs",
            Self::Bvecs => "bvecs",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }

    /// The format of a file by its extension; `.gz` and `.zst` may follow.
    ///
    /// # Errors
    /// [`Error::Format`] when the extension is missing, unknown, or that of a format still to come.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let supported = || Self::ALL.map(Self::name).join(", ");
        if path == Path::new("-") {
            return Err(Error::argument("--format", format!("one of {} when reading stdin", supported()), "none"));
        }
        let extension = extension(path).unwrap_or_default();
        if let Some(format) = Self::ALL.into_iter().find(|format| format.name() == extension) {
            return Ok(format);
        }
        if let Some((name, _)) = PLANNED.iter().find(|(_, extensions)| extensions.contains(&extension.as_str())) {
            return Err(Error::format(
                path,
                "extension",
                format!("one of {}", supported()),
                format!("{name}, which is not supported yet"),
            ));
        }
        Err(Error::format(
            path,
            "extension",
            format!("one of {} (or name the format with --format)", supported()),
            dotted(&extension),
        ))
    }
}

/// The extension in lower case, without `.gz` or `.zst`.
pub(crate) fn extension(path: &Path) -> Option<String> {
    // The rest of a name need not be UTF-8.
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.rsplit_once('.').map(|(_, extension)| extension.to_owned())
}

/// An extension as a message shows it.
fn dotted(extension: &str) -> String {
    if extension.is_empty() { "none".to_owned() } else { format!(".{extension}") }
}

fn is_compressed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz") || extension.eq_ignore_ascii_case("zst"))
}

/// How to read a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The format; by extension where none is given.
    pub format: Option<Format>,
}

/// An opened matrix.
pub struct Input {
    /// The matrix. Its name is the path.
    pub rows: Box<dyn Rows + Send>,
    /// What the person should know about how it is read, in one line.
    pub note: Option<String>,
    /// Whether every value is stored as f16 or a byte, so that f16 holds all of them exactly.
    pub fits_f16: bool,
}

/// Opens a matrix: checks all that can be checked without reading the values. `-` is stdin.
///
/// # Errors
/// [`Error::File`] and [`Error::Format`], with path and position.
pub fn open(path: &Path, options: &Options) -> Result<Input, Error> {
    let format = match options.format {
        Some(format) => format,
        None => Format::of(path)?,
    };
    if matches!(format, Format::Npy | Format::Fvecs | Format::Bvecs) && is_compressed(path) {
        return Err(Error::format(
            path,
            "extension",
            format!("an uncompressed .{} (only text is read compressed)", format.name()),
            "a compressed file",
        ));
    }
    Ok(match format {
        Format::Npy => {
            let npy = npy::Npy::open(Source::open(path)?)?;
            let note = (npy.number() == Number::F64).then(|| format!("{}: f64 values are rounded to f32", npy.name()));
            let fits_f16 = matches!(npy.number(), Number::F16 | Number::U8 | Number::I8);
            Input { rows: Box::new(npy), note, fits_f16 }
        }
        Format::Fvecs => Input {
            rows: Box::new(vecs::Vecs::open(Source::open(path)?, vecs::Values::F32)?),
            note: None,
            fits_f16: false,
        },
        Format::Bvecs => Input {
            rows: Box::new(vecs::Vecs::open(Source::open(path)?, vecs::Values::U8)?),
            note: None,
            fits_f16: true,
        },
        Format::Csv | Format::Tsv => {
            let (rows, note) = delimited::open(path, if format == Format::Csv { b',' } else { b'\t' })?;
            Input { rows: Box::new(rows), note, fits_f16: false }
        }
    })
}

/// [`open`], without the note.
///
/// # Errors
/// As [`open`].
pub fn open_rows(path: &Path, options: &Options) -> Result<Box<dyn Rows + Send>, Error> {
    Ok(open(path, options)?.rows)
}

/// Reads a whole matrix into memory.
///
/// # Errors
/// As [`open`], and what reading the values finds.
pub fn read_matrix(path: &Path, options: &Options) -> Result<Matrix, Error> {
    matrix(open(path, options)?.rows.as_ref())
}

/// All rows in memory.
///
/// # Errors
/// What reading the values finds.
pub fn matrix(rows: &dyn Rows) -> Result<Matrix, Error> {
    let (count, cols) = (rows.rows(), rows.cols());
    let mut values = Vec::new();
    let needed = count.saturating_mul(cols);
    values.try_reserve_exact(needed).map_err(|_| {
        Error::argument(rows.name(), "a matrix that fits into memory", format!("{count} x {cols} values of 4 bytes"))
    })?;
    // In blocks, so that whatever a reader needs beside its block stays small.
    let at_a_time = ((1 << 20) / cols.max(1)).max(1);
    let mut scratch = Vec::new();
    for first in (0..count).step_by(at_a_time) {
        values.extend_from_slice(rows.block(first, at_a_time.min(count - first), &mut scratch)?);
    }
    Matrix::new(count, cols, values)
}

/// The bytes before the values of a .npy file of `rows` x `cols` little-endian f32 values in C order.
pub fn npy_f32_header(rows: usize, cols: usize) -> Vec<u8> {
    npy_header::write("<f4", rows, cols)
}
