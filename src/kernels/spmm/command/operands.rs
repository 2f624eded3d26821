//! Reading A and B, at the same time where both are held whole.

use super::product::Memory;
use super::{Arguments, DENSE_FORMATS, SPARSE_FORMATS, is_stdin};
use crate::cli::Io;
use crate::error::Error;
use crate::formats::{
    self, DenseFile, DenseFormat, DenseInput, DenseMatrix, DenseOptions, Dtype, SparseFormat, SparseInput,
    SparseMatrix, SparseOptions,
};
use rayon::ThreadPool;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is multiplied. Shapes fit, and types are the same.
pub(super) struct Operands {
    pub(super) a: SparseMatrix,
    pub(super) b: Dense,
    pub(super) reading: Duration,
}

/// B, read or to be read block by block.
pub(super) enum Dense {
    Whole(DenseMatrix),
    File(DenseFile),
}

impl Dense {
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Whole(matrix) => matrix.rows(),
            Self::File(file) => file.rows(),
        }
    }

    pub(super) fn cols(&self) -> usize {
        match self {
            Self::Whole(matrix) => matrix.cols(),
            Self::File(file) => file.cols(),
        }
    }

    fn dtype(&self) -> Dtype {
        match self {
            Self::Whole(matrix) => matrix.dtype(),
            Self::File(file) => file.dtype(),
        }
    }
}

impl Operands {
    pub(super) fn read(arguments: &Arguments, memory: &Memory, threads: &ThreadPool, io: &Io) -> anyhow::Result<Self> {
        let started = Instant::now();
        let (a_path, b_path) = (arguments.a.as_path(), arguments.b.as_path());
        if is_stdin(a_path) && is_stdin(b_path) {
            return Err(Error::argument("-", "stdin for one matrix only", "it twice").into());
        }
        let sparse = sparse_options(arguments)?;
        let dense = dense_options(arguments)?;
        let read_a = || formats::read_sparse(a_path, &sparse).map_err(without_banner);
        let read_b = || formats::read_dense(b_path, &dense);
        let (a, b) = match too_large(b_path, &dense, memory)? {
            Some(file) => (threads.install(read_a)?, Ok(file)),
            None => {
                let (a, b) = threads.install(|| rayon::join(read_a, read_b));
                (a?, Err(b?))
            }
        };
        let SparseInput { matrix: a, note, .. } = a;
        note.into_iter().for_each(|note| io.note(note));
        let b = match b {
            Ok(file) => {
                if file.dtype() == Dtype::F64 && arguments.dtype == Some(Dtype::F32) {
                    io.note(format_args!("{}: f64 values are rounded to f32", name(b_path)));
                }
                Dense::File(file)
            }
            Err(DenseInput { matrix, note }) => {
                note.into_iter().for_each(|note| io.note(note));
                Dense::Whole(matrix)
            }
        };
        let a = if arguments.transpose_a { transposed(a)? } else { a };
        if b.rows() != a.cols() {
            let transposed = if arguments.transpose_a { " transposed" } else { "" };
            let a_is = format!("{}{transposed} is {} x {}", name(a_path), a.rows(), a.cols());
            let expected = format!("{} rows ({a_is})", a.cols());
            let found = format!("{} x {}", b.rows(), b.cols());
            return Err(Error::format(name(b_path), "shape", expected, found).into());
        }
        let (a, b) = promoted(a, b, arguments, io)?;
        Ok(Self { a, b, reading: started.elapsed() })
    }
}

/// A first line that is no banner may be meant to be none.
fn without_banner(error: Error) -> Error {
    match error {
        Error::Format { path, position, expected, found }
            if expected.starts_with("%%MatrixMarket") && found != "an empty file" && !found.starts_with("\"PK") =>
        {
            let found = format!("{found} (--assume says what a file without it holds)");
            Error::Format { path, position, expected, found }
        }
        other => other,
    }
}

fn sparse_options(arguments: &Arguments) -> Result<SparseOptions, Error> {
    let format = arguments.format_a.or_else(|| SparseFormat::of(&arguments.a));
    if format.is_none() && is_read_once(&arguments.a) {
        return Err(Error::argument("--format-a", format!("one of {SPARSE_FORMATS} for stdin or a pipe"), "none"));
    }
    if arguments.assume.is_some() && format == Some(SparseFormat::Npz) {
        return Err(Error::argument("--assume", "a Matrix Market file", format!("{}, an .npz", name(&arguments.a))));
    }
    Ok(SparseOptions { format, dtype: arguments.dtype, assume: arguments.assume })
}

fn dense_options(arguments: &Arguments) -> Result<DenseOptions, Error> {
    if arguments.format_b.is_none() && is_read_once(&arguments.b) {
        return Err(Error::argument("--format-b", format!("one of {DENSE_FORMATS} for stdin or a pipe"), "none"));
    }
    let format = match arguments.format_b {
        Some(format) => format,
        None => DenseFormat::of(&arguments.b)?,
    };
    Ok(DenseOptions { format: Some(format), dtype: arguments.dtype })
}

/// B as a file to be read block by block, where it would take more than half of the memory for B and C.
fn too_large(path: &Path, options: &DenseOptions, memory: &Memory) -> Result<Option<DenseFile>, Error> {
    if options.format != Some(DenseFormat::Npy) || is_read_once(path) {
        return Ok(None);
    }
    let file = DenseFile::open(path)?;
    let dtype = options.dtype.unwrap_or(file.dtype());
    Ok((Memory::of(file.rows(), file.cols(), dtype) > memory.budget / 2).then_some(file))
}

/// Stdin, a pipe or a device: what is read of it to look at it is gone.
fn is_read_once(path: &Path) -> bool {
    is_stdin(path) || std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn transposed(a: SparseMatrix) -> Result<SparseMatrix, Error> {
    Ok(match a {
        SparseMatrix::F32(a) => SparseMatrix::F32(a.transpose()?),
        SparseMatrix::F64(a) => SparseMatrix::F64(a.transpose()?),
    })
}

/// Both in the wider of their types, as numpy and scipy do it.
fn promoted(a: SparseMatrix, b: Dense, arguments: &Arguments, io: &Io) -> Result<(SparseMatrix, Dense), Error> {
    // What is asked for is read as that; of a file, every block is.
    let (of_a, of_b) = (a.dtype(), arguments.dtype.unwrap_or(b.dtype()));
    if of_a == of_b {
        return Ok((a, b));
    }
    let [a_name, b_name] = [&arguments.a, &arguments.b].map(|path| name(path));
    io.note(format_args!("{a_name} holds {} and {b_name} {}: computed in f64", of_a.name(), of_b.name()));
    let b = match b {
        Dense::Whole(matrix) => Dense::Whole(matrix.convert(Dtype::F64)?.0),
        file @ Dense::File(_) => file,
    };
    Ok((a.convert(Dtype::F64).0, b))
}

/// What messages call a file.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".into() } else { path.display().to_string() }
}
