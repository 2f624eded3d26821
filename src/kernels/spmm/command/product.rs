//! Computing C, whole or block by block, and where it goes.

use super::super::{Value, multiply_into};
#[cfg(feature = "gpu")]
use super::super::{is_for_the_cpu, multiply_on_device};
use super::operands::{Dense, Operands};
use super::{Arguments, DENSE_FORMATS, is_stdin};
use crate::atomic_file::AtomicFile;
use crate::cli::Io;
use crate::data::{Csr, Matrix};
use crate::error::Error;
use crate::formats::{DenseFile, DenseFormat, Dtype, NpyWriter, Real, SparseMatrix, write_dense_to};
use crate::kernels::Platform;
use crate::units::Bytes;
use rayon::ThreadPool;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much of it B and C may take.
pub(super) struct Memory {
    /// For both together, where they can be cut into blocks.
    pub(super) budget: u64,
    /// For both together, where they cannot.
    limit: u64,
    /// Whether the person said so.
    given: bool,
}

impl Memory {
    pub(super) fn new(given: Option<u64>, io: &Io) -> Self {
        match given {
            Some(budget) => Self { budget, limit: budget, given: true },
            None => {
                let available = io.available_memory().unwrap_or(u64::MAX);
                Self { budget: available / 2, limit: available, given: false }
            }
        }
    }

    /// Bytes of a matrix.
    pub(super) fn of(rows: usize, cols: usize, dtype: Dtype) -> u64 {
        let bytes = if dtype == Dtype::F64 { 8 } else { 4 };
        (rows as u64).saturating_mul(cols as u64).saturating_mul(bytes)
    }

    /// Refuses what would have to be held whole and cannot be.
    fn check(&self, needed: u64) -> Result<(), Error> {
        let (needed_, limit) = (Bytes(needed), Bytes(self.limit));
        if needed <= self.limit {
            Ok(())
        } else if self.given {
            let expected = format!("at least {needed_} (B and C are cut into blocks only where both are .npy files)");
            Err(Error::argument("--memory", expected, limit))
        } else {
            let expected = format!("at most {limit} of memory (they are cut into blocks where both are .npy files)");
            Err(Error::argument("B and C", expected, needed_))
        }
    }
}

/// Where C goes.
pub(super) enum Sink {
    File { file: AtomicFile, path: PathBuf, format: DenseFormat },
    Stdout(DenseFormat),
}

impl Sink {
    /// Refuses what could only fail after the product.
    pub(super) fn new(arguments: &Arguments, io: &Io) -> Result<Self, Error> {
        let Some(path) = arguments.output.as_deref().filter(|path| !is_stdin(path)) else {
            let format = arguments.output_format.unwrap_or(DenseFormat::Csv);
            if io.json {
                return Err(Error::argument("--json", "--output FILE with it, as C would go to stdout too", "none"));
            }
            if format == DenseFormat::Npy && io.is_terminal() {
                return Err(Error::argument("--output-format", "a text format on a terminal", "npy"));
            }
            return Ok(Self::Stdout(format));
        };
        let compressed =
            path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz") || end.eq_ignore_ascii_case("zst"));
        let format = match arguments.output_format {
            Some(format) => format,
            None if compressed => {
                let expected = format!("one of {DENSE_FORMATS}, not compressed");
                let found = path.extension().unwrap_or_default().to_string_lossy();
                return Err(Error::format(path, "extension", expected, format!(".{found}")));
            }
            None => DenseFormat::of(path).map_err(|error| match error {
                Error::Format { path, position, found, .. } => {
                    let expected = format!("one of {DENSE_FORMATS} (or name the format with --output-format)");
                    Error::Format { path, position, expected, found }
                }
                other => other,
            })?,
        };
        Ok(Self::File { file: AtomicFile::create(path)?, path: path.to_owned(), format })
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Writes all of C.
    fn write<T: Real>(self, c: &Matrix<T>, io: &mut Io) -> Result<(), Error> {
        match self {
            Self::File { mut file, path, format } => {
                write_dense_to(&mut file, format, c).map_err(|error| Error::file(path, error))?;
                file.commit_without_sync()
            }
            Self::Stdout(format) => {
                let written = write_dense_to(&mut io.out, format, c).and_then(|()| io.out.flush());
                written.map_err(|error| Error::file("stdout", error))
            }
        }
    }
}

/// What was done.
pub(super) struct Done {
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) width: usize,
    pub(super) entries: usize,
    pub(super) dtype: Dtype,
    pub(super) blocks: usize,
    pub(super) place: String,
    pub(super) reading: Duration,
    pub(super) multiplying: Duration,
    pub(super) writing: Duration,
}

/// Computes C and writes it.
pub(super) fn write(
    operands: Operands,
    sink: Sink,
    memory: &Memory,
    platform: &Platform,
    threads: &ThreadPool,
    io: &mut Io,
) -> Result<Done, Error> {
    let Operands { a, b, reading } = operands;
    let done = Done {
        rows: a.rows(),
        inner: a.cols(),
        width: b.cols(),
        entries: a.entries(),
        dtype: a.dtype(),
        blocks: 1,
        place: String::new(),
        reading,
        multiplying: Duration::ZERO,
        writing: Duration::ZERO,
    };
    let run = Run { memory, platform, threads, on_device: true, done };
    match a {
        SparseMatrix::F32(a) => run.write(&a, b, sink, io),
        SparseMatrix::F64(a) => run.write(&a, b, sink, io),
    }
}

/// A product in progress.
struct Run<'a> {
    memory: &'a Memory,
    platform: &'a Platform,
    threads: &'a ThreadPool,
    /// Whether the device, if there is one, has taken all that it was given.
    on_device: bool,
    done: Done,
}

impl Run<'_> {
    fn write<T: Value + Real>(mut self, a: &Csr<T>, b: Dense, sink: Sink, io: &mut Io) -> Result<Done, Error> {
        let (rows, width) = (a.rows(), b.cols());
        let of_b = Memory::of(b.rows(), width, T::DTYPE);
        let of_c = Memory::of(rows, width, T::DTYPE);
        let (file, path) = match sink {
            Sink::File { file, path, format: DenseFormat::Npy } if of_b.saturating_add(of_c) > self.memory.budget => {
                (file, path)
            }
            sink => {
                self.memory.check(of_b.saturating_add(of_c))?;
                let b = self.whole(b)?;
                let c = self.multiply(a, &b, None, io)?;
                let started = Instant::now();
                sink.write(&c, io)?;
                self.done.writing += started.elapsed();
                return Ok(self.finish());
            }
        };
        match b {
            Dense::Whole(matrix) => {
                let b = T::matrix(matrix)?.0;
                let writer = NpyWriter::new(file, &path, rows, width)?;
                self.rows(a, &b, writer, io)?;
            }
            Dense::File(_) if !file.has_positions() => {
                let expected = "a file, as B and C are cut into blocks that are written at their positions";
                return Err(Error::argument("--output", expected, path.display()));
            }
            Dense::File(b) => {
                let writer = NpyWriter::new(file, &path, rows, width)?;
                self.columns(a, &b, writer, io)?;
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Done {
        let platform = self.platform;
        self.done.place =
            if self.on_device { platform.place() } else { Platform::cpu(platform.level, platform.threads).place() };
        self.done
    }

    fn whole<T: Value + Real>(&mut self, b: Dense) -> Result<Matrix<T>, Error> {
        match b {
            Dense::Whole(matrix) => Ok(T::matrix(matrix)?.0),
            Dense::File(file) => {
                let started = Instant::now();
                let whole = self.threads.install(|| file.columns(0..file.cols()));
                self.done.reading += started.elapsed();
                whole
            }
        }
    }

    /// B whole, C by rows, one block after the other.
    fn rows<T: Value + Real>(
        &mut self,
        a: &Csr<T>,
        b: &Matrix<T>,
        mut writer: NpyWriter<T>,
        io: &Io,
    ) -> Result<(), Error> {
        let (rows, width) = (a.rows(), b.cols());
        let budget = self.memory.budget;
        let left = budget.saturating_sub(Memory::of(b.rows(), width, T::DTYPE)).max(budget / 4);
        let at_a_time = fitting(left, Memory::of(1, width, T::DTYPE), rows);
        self.done.blocks = rows.div_ceil(at_a_time);
        let mut progress = io.progress("multiplying", self.done.blocks as u64);
        let mut c = None;
        for first in (0..rows).step_by(at_a_time) {
            let part = a.slice_rows(first..rows.min(first + at_a_time));
            let block = self.multiply(&part, b, c, io)?;
            let started = Instant::now();
            writer.rows(block.values())?;
            self.done.writing += started.elapsed();
            c = Some(block);
            progress.advance(1, "");
        }
        self.commit(writer)
    }

    /// B by columns, and of C the same columns, by rows where they do not fit either.
    fn columns<T: Value + Real>(
        &mut self,
        a: &Csr<T>,
        b: &DenseFile,
        mut writer: NpyWriter<T>,
        io: &Io,
    ) -> Result<(), Error> {
        let (rows, width) = (a.rows(), b.cols());
        let half = self.memory.budget / 2;
        let mut wide = fitting(half, Memory::of(b.rows(), 1, T::DTYPE), width);
        // Whole vectors and whole cache lines where there is a choice.
        if wide > 16 {
            wide -= wide % 16;
        }
        let high = fitting(half, Memory::of(1, wide, T::DTYPE), rows);
        self.done.blocks = width.div_ceil(wide) * rows.div_ceil(high);
        let mut progress = io.progress("multiplying", self.done.blocks as u64);
        let mut c = None;
        for col in (0..width).step_by(wide) {
            let started = Instant::now();
            let columns = self.threads.install(|| b.columns(col..width.min(col + wide)))?;
            self.done.reading += started.elapsed();
            for row in (0..rows).step_by(high) {
                let part = (high < rows).then(|| a.slice_rows(row..rows.min(row + high)));
                let block = self.multiply(part.as_ref().unwrap_or(a), &columns, c, io)?;
                let started = Instant::now();
                writer.block(row, col, &block)?;
                self.done.writing += started.elapsed();
                c = Some(block);
                progress.advance(1, "");
            }
        }
        self.commit(writer)
    }

    fn commit<T: Real>(&mut self, writer: NpyWriter<T>) -> Result<(), Error> {
        let started = Instant::now();
        let committed = writer.commit();
        self.done.writing += started.elapsed();
        committed
    }

    /// On the platform's device where it has one that takes this product, else on the CPU, into `c` if that has the shape.
    fn multiply<T: Value>(
        &mut self,
        a: &Csr<T>,
        b: &Matrix<T>,
        c: Option<Matrix<T>>,
        io: &Io,
    ) -> Result<Matrix<T>, Error> {
        let started = Instant::now();
        #[cfg(feature = "gpu")]
        if self.on_device && self.platform.device.is_some() {
            match self.threads.install(|| multiply_on_device(a, b, self.platform)) {
                Err(error) if is_for_the_cpu(&error) => {
                    io.note(format_args!("{}: {error}; the CPU multiplies instead", self.platform.place()));
                    self.on_device = false;
                }
                other => {
                    self.done.multiplying += started.elapsed();
                    return other;
                }
            }
        }
        #[cfg(not(feature = "gpu"))]
        let _ = io;
        let fits = |c: &Matrix<T>| (c.rows(), c.cols()) == (a.rows(), b.cols());
        let mut c = match c.filter(fits) {
            Some(c) => c,
            None => room(a.rows(), b.cols())?,
        };
        self.threads.install(|| multiply_into(a, b, &mut c, self.platform))?;
        self.done.multiplying += started.elapsed();
        Ok(c)
    }
}

/// How many things of so many bytes fit, at least one and at most all.
fn fitting(memory: u64, each: u64, all: usize) -> usize {
    usize::try_from(memory / each.max(1)).unwrap_or(usize::MAX).clamp(1, all.max(1))
}

/// Memory for C, or an error that says what it was for.
fn room<T: Value>(rows: usize, cols: usize) -> Result<Matrix<T>, Error> {
    let too_large = || {
        let found = format!("{rows} x {cols} values of {} bytes", size_of::<T>());
        Error::argument("C", "a matrix that fits into memory", found)
    };
    Matrix::zeroed(rows, cols).map_err(|_| too_large())
}
