//! Dense matrices whole and in either type, for kernels that run in f32 and in f64.

use super::npy_header::{self, Number};
use super::source::Source;
use super::sparse::{Dtype, Real, either, narrow};
use super::{delimited, dotted, extension, is_compressed, matrix_market, npy, text};
use crate::atomic_file::AtomicFile;
use crate::data::{Buffer, Matrix, Rows};
use crate::error::Error;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
        if extension == "mm" {
            return Ok(Self::MatrixMarket);
        }
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
        Ok(match (self, dtype) {
            (matrix @ Self::F32(_), Dtype::F64) => (Self::F64(matrix.into_f64()?), 0),
            (matrix @ Self::F64(_), Dtype::F32) => {
                let (matrix, changed) = matrix.into_f32()?;
                (Self::F32(matrix), changed)
            }
            (matrix, _) => (matrix, 0),
        })
    }

    /// With values of 32 bits, and how many that changes.
    ///
    /// # Errors
    /// As [`convert`](Self::convert).
    pub fn into_f32(self) -> Result<(Matrix<f32>, usize), Error> {
        match self {
            Self::F32(matrix) => Ok((matrix, 0)),
            Self::F64(matrix) => {
                let mut rounded = Buffer::zeroed(matrix.values().len())?;
                let mut changed = 0;
                rounded.iter_mut().zip(matrix.values()).for_each(|(to, &value)| *to = narrow(value, &mut changed));
                Ok((Matrix::from_buffer(matrix.rows(), matrix.cols(), rounded)?, changed))
            }
        }
    }

    /// With values of 64 bits.
    ///
    /// # Errors
    /// As [`convert`](Self::convert).
    pub fn into_f64(self) -> Result<Matrix<f64>, Error> {
        match self {
            Self::F64(matrix) => Ok(matrix),
            Self::F32(matrix) => {
                let mut wide = Buffer::zeroed(matrix.values().len())?;
                wide.iter_mut().zip(matrix.values()).for_each(|(wide, &value)| *wide = f64::from(value));
                Matrix::from_buffer(matrix.rows(), matrix.cols(), wide)
            }
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
            let npy = open_npy(path)?;
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

fn open_npy(path: &Path) -> Result<npy::Npy, Error> {
    if is_compressed(path) {
        let expected = "an uncompressed .npy (only text is read compressed)";
        return Err(Error::format(path, "extension", expected, "a compressed file"));
    }
    npy::Npy::open(Source::open(path)?)
}

/// A matrix in a .npy file that is read by columns.
pub struct DenseFile(npy::Npy);

impl DenseFile {
    /// Opens it: reads and checks its header. `-` is stdin, which is read whole.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Format`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self(open_npy(path)?))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.0.cols()
    }

    /// The type in which [`read_dense`] would read it.
    pub fn dtype(&self) -> Dtype {
        if self.0.number() == Number::F64 { Dtype::F64 } else { Dtype::F32 }
    }

    /// Some of its columns, row-major. f64 is rounded where f32 is wanted.
    ///
    /// # Errors
    /// [`Error::File`], and [`Error::Format`] when there is no memory for them. Panics where there are no such columns.
    pub fn columns<T: Real>(&self, columns: Range<usize>) -> Result<Matrix<T>, Error> {
        assert!(columns.end <= self.cols(), "columns {columns:?} of {}", self.cols());
        let mut matrix = self.0.room(columns.len())?;
        self.0.read_columns(columns.start, &mut matrix)?;
        Ok(matrix)
    }
}

/// A .npy file that is written part by part, in C order; it appears whole or not at all.
pub struct NpyWriter<T> {
    file: AtomicFile,
    path: PathBuf,
    cols: usize,
    start: u64,
    kind: PhantomData<T>,
}

impl<T: Real> NpyWriter<T> {
    /// Writes the header of `rows` x `cols` values into a file that was begun for `path`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn new(mut file: AtomicFile, path: &Path, rows: usize, cols: usize) -> Result<Self, Error> {
        let header = npy_header::write(T::DESCR, rows, cols);
        file.write_all(&header).map_err(|error| Error::file(path, error))?;
        Ok(Self { file, path: path.to_owned(), cols, start: header.len() as u64, kind: PhantomData })
    }

    /// Writes the next rows, where all of them come one after the other.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn rows(&mut self, rows: &[T]) -> Result<(), Error> {
        self.file.write_all(bytemuck::cast_slice(rows)).map_err(|error| Error::file(&self.path, error))
    }

    /// Writes a block whose first value stands at `row` and `col`, where the parts are blocks.
    ///
    /// # Errors
    /// [`Error::File`]; a pipe or a device has no positions.
    pub fn block(&mut self, row: usize, col: usize, block: &Matrix<T>) -> Result<(), Error> {
        let at = |row: usize| self.start + (row as u64 * self.cols as u64 + col as u64) * size_of::<T>() as u64;
        let written = if block.cols() == self.cols {
            self.file.write_all_at(bytemuck::cast_slice(block.values()), at(row))
        } else {
            (0..block.rows()).try_for_each(|i| self.file.write_all_at(bytemuck::cast_slice(block.row(i)), at(row + i)))
        };
        written.map_err(|error| Error::file(&self.path, error))
    }

    /// Gives the file its name, without waiting for the disk.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn commit(self) -> Result<(), Error> {
        self.file.commit_without_sync()
    }
}

/// Writes a dense matrix; the file appears whole or not at all.
///
/// # Errors
/// [`Error::File`].
pub fn write_dense<T: Real>(path: &Path, format: DenseFormat, matrix: &Matrix<T>) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    write_dense_to(&mut file, format, matrix).map_err(|error| Error::file(path, error))?;
    file.commit()
}

/// Writes a dense matrix to anything.
///
/// # Errors
/// What `out` says.
pub fn write_dense_to<T: Real>(out: &mut dyn Write, format: DenseFormat, matrix: &Matrix<T>) -> io::Result<()> {
    match format {
        DenseFormat::Npy => npy(matrix, out),
        DenseFormat::Csv => delimited(matrix, b",", out),
        DenseFormat::Tsv => delimited(matrix, b"\t", out),
        DenseFormat::MatrixMarket => matrix_market::write_array(matrix, out),
    }
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
