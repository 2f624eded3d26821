//! Dense matrices whole and in either type, for kernels that run in f32 and in f64.

use super::npy_header::{self, Number};
use super::source::Source;
use super::sparse::{Dtype, Real, either, narrow};
use super::{delimited, dotted, extension, matrix_market, npy, text};
use crate::atomic_file::AtomicFile;
use crate::data::{Buffer, Matrix};
use crate::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// How a dense matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenseFormat {
    /// numpy's .npy.
    Npy,
    /// Numbers between commas.
    Csv,
    /// Numbers between tabs.
    Tsv,
    /// Matrix Market `array`, column after column.
    MatrixMarket,
}

impl DenseFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Npy, Self::Csv, Self::Tsv, Self::MatrixMarket];

    /// Its name on the command line, which is its extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::MatrixMarket => "mtx",
        }
    }

    /// The format of a file by its extension; `.gz` and `.zst` may follow where it is text.
    ///
    /// # Errors
    /// [`Error::Format`] when the extension is missing or another, [`Error::Argument`] for `-`.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let supported = || Self::ALL.map(Self::name).join(", ");
        if path == Path::new("-") {
            return Err(Error::argument("--format", format!("one of {} for `-`", supported()), "none"));
        }
        let extension = extension(path).unwrap_or_default();
        let format = Self::ALL.into_iter().find(|format| format.name() == extension);
        let expected = || format!("a dense matrix: one of {}", supported());
        format.ok_or_else(|| Error::format(path, "extension", expected(), dotted(&extension)))
    }
}

/// A dense matrix with values of either type.
#[derive(Debug, Clone, PartialEq)]
pub enum DenseMatrix {
    /// Values of 32 bits.
    F32(Matrix<f32>),
    /// Values of 64 bits.
    F64(Matrix<f64>),
}

impl DenseMatrix {
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

    /// With values of this type. f32 to f64 is exact; the second value counts the values that f64 to f32 changes.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is no memory for it.
    pub fn convert(self, dtype: Dtype) -> Result<(Self, usize), Error> {
        let (rows, cols) = (self.rows(), self.cols());
        match (self, dtype) {
            (Self::F32(matrix), Dtype::F64) => {
                let mut wide = Buffer::zeroed(matrix.values().len())?;
                wide.iter_mut().zip(matrix.values()).for_each(|(wide, &value)| *wide = f64::from(value));
                Ok((Self::F64(Matrix::from_buffer(rows, cols, wide)?), 0))
            }
            (Self::F64(matrix), Dtype::F32) => {
                let mut rounded = Buffer::zeroed(matrix.values().len())?;
                let mut changed = 0;
                rounded.iter_mut().zip(matrix.values()).for_each(|(to, &value)| *to = narrow(value, &mut changed));
                Ok((Self::F32(Matrix::from_buffer(rows, cols, rounded)?), changed))
            }
            (matrix, _) => Ok((matrix, 0)),
        }
    }
}

/// How to read a dense matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DenseOptions {
    /// The format; by extension where none is given.
    pub format: Option<DenseFormat>,
    /// The type of the values; where none is given, f64 for .npy files of f64 and for text, else f32.
    pub dtype: Option<Dtype>,
}

/// A dense matrix and what its file said.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseInput {
    /// The matrix, row-major, on huge pages where it is large.
    pub matrix: DenseMatrix,
    /// What the person should know about how it was read, in one line.
    pub note: Option<String>,
}

/// Reads a whole dense matrix. `-` is stdin.
///
/// # Errors
/// [`Error::File`], [`Error::Format`] with path and position, [`Error::Limit`] when it does not fit into memory.
pub fn read_dense(path: &Path, options: &DenseOptions) -> Result<DenseInput, Error> {
    let format = match options.format {
        Some(format) => format,
        None => DenseFormat::of(path)?,
    };
    let mut notes = Vec::new();
    let matrix = match format {
        DenseFormat::Npy => {
            let npy = npy::Npy::open(Source::open(path)?)?;
            if npy.number() == Number::F64 { DenseMatrix::F64(npy.whole()?) } else { DenseMatrix::F32(npy.whole()?) }
        }
        DenseFormat::Csv | DenseFormat::Tsv => {
            let delimiter = if format == DenseFormat::Csv { b',' } else { b'\t' };
            let (matrix, note) = delimited::read(path, delimiter)?;
            notes.extend(note);
            DenseMatrix::F64(matrix)
        }
        DenseFormat::MatrixMarket => {
            let (matrix, rounded) = matrix_market::read_dense(path)?;
            if rounded > 0 {
                let name = text::named(path);
                notes.push(format!("{}: {rounded} integers beyond 2^53 are rounded to f64", name.display()));
            }
            DenseMatrix::F64(matrix)
        }
    };
    let values = matrix.rows() * matrix.cols();
    let (matrix, changed) = match options.dtype {
        Some(dtype) => matrix.convert(dtype)?,
        None => (matrix, 0),
    };
    if changed > 0 {
        let name = text::named(path);
        notes.push(format!("{}: f64 values are rounded to f32 ({changed} of {values} change)", name.display()));
    }
    Ok(DenseInput { matrix, note: (!notes.is_empty()).then(|| notes.join("; ")) })
}

/// Writes a dense matrix; the file appears whole or not at all.
///
/// # Errors
/// [`Error::File`].
pub fn write_dense<T: Real>(path: &Path, format: DenseFormat, matrix: &Matrix<T>) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    let written = match format {
        DenseFormat::Npy => npy(matrix, &mut file),
        DenseFormat::Csv => delimited(matrix, b",", &mut file),
        DenseFormat::Tsv => delimited(matrix, b"\t", &mut file),
        DenseFormat::MatrixMarket => matrix_market::write_array(matrix, &mut file),
    };
    written.map_err(|error| Error::file(path, error))?;
    file.commit()
}

fn npy<T: Real>(matrix: &Matrix<T>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&npy_header::write(T::DESCR, matrix.rows(), matrix.cols()))?;
    out.write_all(bytemuck::cast_slice(matrix.values()))
}

fn delimited<T: Real>(matrix: &Matrix<T>, delimiter: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for row in 0..matrix.rows() {
        for (column, &value) in matrix.row(row).iter().enumerate() {
            if column > 0 {
                out.write_all(delimiter)?;
            }
            value.write(out)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
