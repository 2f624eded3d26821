//! Sparse matrices: one function to read any of their files, one to write them.

use super::dense::DenseMatrix;
use super::matrix_market::Banner;
use super::npy::Target;
use super::source::Source;
use super::{Format, dotted, extension, matrix_market, npz, text};
use crate::atomic_file::AtomicFile;
use crate::data::{Csr, Matrix};
use crate::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;

/// How a sparse matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseFormat {
    /// Matrix Market text, coordinate or array; `.gz` and `.zst` are recognised by content.
    MatrixMarket,
    /// What `scipy.sparse.save_npz` writes: csr, csc, coo, bsr or dia.
    Npz,
}

impl SparseFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::MatrixMarket, Self::Npz];

    /// Its name on the command line, which is its extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::MatrixMarket => "mtx",
            Self::Npz => "npz",
        }
    }

    /// The format of a file by its extension (`.mtx`, `.mm`, `.npz`); `.gz` and `.zst` may follow. None for others.
    pub fn of(path: &Path) -> Option<Self> {
        match extension(path)?.as_str() {
            "mtx" | "mm" => Some(Self::MatrixMarket),
            "npz" => Some(Self::Npz),
            _ => None,
        }
    }
}

/// The type of the values in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl Dtype {
    /// `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// The same of a matrix of either type.
macro_rules! either {
    ($either:expr, $matrix:ident => $result:expr) => {
        match $either {
            Self::F32($matrix) => $result,
            Self::F64($matrix) => $result,
        }
    };
}
pub(super) use either;

/// A sparse matrix with values of either type.
#[derive(Debug, Clone, PartialEq)]
pub enum SparseMatrix {
    /// Values of 32 bits.
    F32(Csr<f32>),
    /// Values of 64 bits.
    F64(Csr<f64>),
}

impl SparseMatrix {
    /// The type of its values.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        either!(self, matrix => matrix.rows())
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        either!(self, matrix => matrix.cols())
    }

    /// Number of stored entries, explicit zeros included.
    pub fn entries(&self) -> usize {
        either!(self, matrix => matrix.entries())
    }

    /// With values of this type. f32 to f64 is exact; the second value counts the values that f64 to f32 changes.
    pub fn convert(self, dtype: Dtype) -> (Self, usize) {
        match (self, dtype) {
            (Self::F32(matrix), Dtype::F64) => (Self::F64(matrix.map(f64::from)), 0),
            (Self::F64(matrix), Dtype::F32) => {
                let mut changed = 0;
                let matrix = matrix.map(|value| narrow(value, &mut changed));
                (Self::F32(matrix), changed)
            }
            (matrix, _) => (matrix, 0),
        }
    }

    fn zeros(&self) -> usize {
        either!(self, matrix => matrix.values().iter().filter(|&&value| value == 0.0).count())
    }

    fn repeated(&self) -> usize {
        either!(self, matrix => matrix.repeated())
    }
}

/// Rounds to f32 and counts what that changes. NaN stays NaN.
#[expect(clippy::cast_possible_truncation, reason = "the rounding that the caller asked for, counted")]
pub(super) fn narrow(value: f64, changed: &mut usize) -> f32 {
    let narrow = value as f32;
    *changed += usize::from(f64::from(narrow) != value && !value.is_nan());
    narrow
}

/// Values that can be read and written: f32 and f64.
pub trait Real: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// Its name.
    const DTYPE: Dtype;
    /// A matrix with values of this type, and how many of them that changes.
    #[doc(hidden)]
    fn matrix(matrix: DenseMatrix) -> Result<(Matrix<Self>, usize), Error>;
    /// numpy's name for it.
    #[doc(hidden)]
    const DESCR: &'static str;
    /// Writes the shortest decimal that a reader of f64, rounding to this type, reads as the same value.
    #[doc(hidden)]
    fn write(self, out: &mut dyn Write) -> io::Result<()>;
}

mod sealed {
    #[expect(private_bounds, reason = "nobody outside can implement it, so nobody has to see what it needs")]
    pub trait Sealed: super::Target {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! real {
    ($type:ty, $dtype:ident, $name:literal, plain below $limit:literal, $matrix:expr) => {
        impl Real for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            fn matrix(matrix: DenseMatrix) -> Result<(Matrix<Self>, usize), Error> {
                $matrix(matrix)
            }
            const DESCR: &'static str =
                if cfg!(target_endian = "big") { concat!(">", $name) } else { concat!("<", $name) };
            fn write(self, out: &mut dyn Write) -> io::Result<()> {
                let magnitude = self.abs();
                if self.is_nan() {
                    out.write_all(b"nan")
                } else if magnitude == 0.0 || magnitude.is_infinite() || (1e-5..$limit).contains(&magnitude) {
                    write!(out, "{self}")
                } else {
                    write!(out, "{self:e}")
                }
            }
        }
    };
}
real!(f32, F32, "f4", plain below 1e9, DenseMatrix::into_f32);
real!(f64, F64, "f8", plain below 1e17, |matrix| Ok((DenseMatrix::into_f64(matrix)?, 0)));

/// How to read a sparse matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SparseOptions {
    /// The format; by extension, else by content, where none is given.
    pub format: Option<SparseFormat>,
    /// The type of the values; where none is given, the smaller one that holds the stored type: f32 for f32, f16, bool,
    /// patterns and integers of up to 16 bits, f64 for all else.
    pub dtype: Option<Dtype>,
    /// What a Matrix Market file without a banner holds. A file that has one has to say the same.
    pub assume: Option<Banner>,
}

/// A sparse matrix and what its file said.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseInput {
    /// The matrix.
    pub matrix: SparseMatrix,
    /// How the file stores it, e.g. `Matrix Market coordinate real general` or `scipy csr`.
    pub layout: String,
    /// Entries that were added to an earlier one at the same place.
    pub summed: usize,
    /// Entries at a place that has one already, kept: whoever multiplies adds them up.
    pub repeated: usize,
    /// Entries that are zero, kept.
    pub zeros: usize,
    /// What the person should know about how it was read, in one line.
    pub note: Option<String>,
}

/// What a reader hands over.
pub(super) struct Loaded {
    pub(super) matrix: SparseMatrix,
    pub(super) layout: String,
    pub(super) counts: Counts,
}

/// What a reader found worth telling.
#[derive(Default)]
pub(super) struct Counts {
    /// Entries that were added to another.
    pub(super) summed: usize,
    /// Integers that f64 cannot hold.
    pub(super) rounded: u64,
    /// Zeros of a dense layout, which became no entries.
    pub(super) left_out: usize,
    /// Entries beyond the last row's end.
    pub(super) unused: usize,
}

/// Reads a whole sparse matrix. `-` is stdin.
///
/// Matrix Market entries at the same place, and those of scipy's coo, are summed in stored order; those of csr, csc and bsr
/// are kept as they are stored. Text is read and summed in f64 and rounded to f32 once, at the end.
///
/// # Errors
/// [`Error::File`], [`Error::Format`] with path, line or entry, and [`Error::Limit`] for sizes beyond what can be held.
pub fn read_sparse(path: &Path, options: &SparseOptions) -> Result<SparseInput, Error> {
    let format = match options.format.or_else(|| SparseFormat::of(path)) {
        Some(format) => Some(format),
        None if path == Path::new("-") => {
            let expected =
                format!("one of {} when reading stdin", SparseFormat::ALL.map(SparseFormat::name).join(", "));
            return Err(Error::argument("--format", expected, "none"));
        }
        None => by_content(path)?,
    };
    let loaded = match format {
        Some(SparseFormat::MatrixMarket) => matrix_market::read_sparse(path, options.assume)?,
        Some(SparseFormat::Npz) => npz::read(&Source::open(path)?)?,
        None => {
            let extension = extension(path).unwrap_or_default();
            let dense = Format::ALL.iter().any(|format| format.name() == extension);
            let found = dotted(&extension);
            let found = if dense { format!("{found}, which is dense") } else { found };
            return Err(Error::format(path, "extension", "a sparse matrix: .mtx, .mtx.gz or .npz", found));
        }
    };
    let name = text::named(path).display().to_string();
    Ok(finish(loaded, options.dtype, &name))
}

fn by_content(path: &Path) -> Result<Option<SparseFormat>, Error> {
    let mut start = Vec::new();
    text::open(path)?.take(17).read_to_end(&mut start).map_err(|error| Error::file(path, error))?;
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&start);
    Ok(if start.starts_with(b"PK\x03\x04") {
        Some(SparseFormat::Npz)
    } else if start.get(..14).is_some_and(|start| start.eq_ignore_ascii_case(b"%%MatrixMarket")) {
        Some(SparseFormat::MatrixMarket)
    } else {
        None
    })
}

fn finish(loaded: Loaded, dtype: Option<Dtype>, name: &str) -> SparseInput {
    let Loaded { matrix, layout, counts: Counts { summed, rounded, left_out, unused } } = loaded;
    let entries = matrix.entries();
    let (matrix, changed) = match dtype {
        Some(dtype) => matrix.convert(dtype),
        None => (matrix, 0),
    };
    let (zeros, repeated) = rayon::join(|| matrix.zeros(), || matrix.repeated());
    let facts = [
        (summed as u64, format!("{summed} repeated entries were added up")),
        (repeated as u64, format!("{repeated} repeated entries are kept: they add up")),
        (zeros as u64, format!("{zeros} stored zeros are kept")),
        (left_out as u64, format!("{left_out} zeros of a dense layout are left out")),
        (unused as u64, format!("{unused} entries beyond the last row's end are left out")),
        (rounded, format!("{rounded} integers beyond 2^53 are rounded to f64")),
        (changed as u64, format!("f64 values are rounded to f32 ({changed} of {entries} change)")),
    ];
    let facts: Vec<_> = facts.into_iter().filter(|(count, _)| *count > 0).map(|(_, fact)| fact).collect();
    let note = (!facts.is_empty()).then(|| format!("{name}: {}", facts.join("; ")));
    SparseInput { matrix, layout, summed, repeated, zeros, note }
}

/// Writes a sparse matrix: as Matrix Market `coordinate real general` (one-based), or as scipy's csr in an uncompressed
/// .npz with int32 indices where they suffice. The file appears whole or not at all.
///
/// # Errors
/// [`Error::File`].
pub fn write_sparse<T: Real>(path: &Path, format: SparseFormat, matrix: &Csr<T>) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    let written = match format {
        SparseFormat::MatrixMarket => matrix_market::write_coordinate(matrix, &mut file),
        SparseFormat::Npz => npz::write(matrix, &mut file),
    };
    written.map_err(|error| Error::file(path, error))?;
    file.commit()
}
