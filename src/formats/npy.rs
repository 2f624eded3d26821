//! .npy matrices: C and Fortran order, either byte order, f32, f16, f64, u8 and i8.

use super::npy_header::{self, Header, Number};
use super::source::Source;
use crate::data::{Buffer, Matrix, Rows};
use crate::error::Error;
use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes that are read at a time where they have to be converted: small enough to stay in the cache in between.
const PIECE: usize = 1 << 16;
/// Bytes that one thread reads at a time.
const SHARE: usize = 2 << 20;
/// Rows of a matrix in Fortran order that are read at a time: a page of a column of f64.
const TILE_ROWS: usize = 512;
/// Rows of up to so many bytes are read whole where only some of their columns are wanted.
const NEAR: usize = 1 << 14;

/// A matrix in a .npy file.
pub(super) struct Npy {
    source: Source,
    header: Header,
}

impl Npy {
    pub(super) fn open(source: Source) -> Result<Self, Error> {
        let header = npy_header::read(&source)?;
        Ok(Self { source, header })
    }

    pub(super) fn number(&self) -> Number {
        self.header.number
    }

    /// All of it in memory.
    pub(super) fn whole<T: Target>(&self) -> Result<Matrix<T>, Error> {
        let mut matrix = self.room(self.header.cols)?;
        self.read_columns(0, &mut matrix)?;
        Ok(matrix)
    }

    /// Memory for `width` of its columns.
    pub(super) fn room<T: Target>(&self, width: usize) -> Result<Matrix<T>, Error> {
        let rows = self.header.rows;
        let found = || format!("{rows} x {width} values of {} bytes", size_of::<T>());
        let too_large = || self.source.format("header, shape", "a matrix that fits into memory", found());
        let length = rows.checked_mul(width).ok_or_else(too_large)?;
        Matrix::from_buffer(rows, width, Buffer::zeroed(length).map_err(|_| too_large())?)
    }

    /// Fills a matrix of as many rows with the columns from `first` on; several threads read.
    pub(super) fn read_columns<T: Target>(&self, first: usize, into: &mut Matrix<T>) -> Result<(), Error> {
        let width = into.cols();
        if width == 0 {
            return Ok(());
        }
        let at_a_time = (SHARE / (width * size_of::<T>())).max(1);
        into.values_mut().par_chunks_mut(at_a_time * width).enumerate().try_for_each(|(share, values)| {
            let row = share * at_a_time;
            self.fill(row..row + values.len() / width, first..first + width, values)
        })
    }

    /// Reads a part of the matrix into `values`, row-major.
    fn fill<T: Target>(&self, rows: Range<usize>, columns: Range<usize>, values: &mut [T]) -> Result<(), Error> {
        let (all_rows, all_cols) = (self.header.rows, self.header.cols);
        let width = columns.len();
        let mut piece = Vec::new();
        if rows.is_empty() || width == 0 {
            return Ok(());
        }
        if self.header.fortran_order && all_rows > 1 {
            // Column after column: the values of neighbouring rows are neighbours within each. So few rows at a time that
            // those of the next column still find them in the cache.
            let mut column = vec![T::zeroed(); TILE_ROWS.min(rows.len())];
            for (first, values) in rows.step_by(TILE_ROWS).zip(values.chunks_mut(TILE_ROWS * width)) {
                let column = &mut column[..values.len() / width];
                for (at, col) in columns.clone().enumerate() {
                    self.run(col * all_rows + first, column, &mut piece)?;
                    for (value, &number) in values[at..].iter_mut().step_by(width).zip(&*column) {
                        *value = number;
                    }
                }
            }
            return Ok(());
        }
        if width == all_cols {
            return self.run(rows.start * all_cols, values, &mut piece);
        }
        let row_bytes = all_cols * size_of::<T>();
        if row_bytes > NEAR {
            let mut rows = rows.zip(values.chunks_mut(width));
            return rows.try_for_each(|(row, values)| self.run(row * all_cols + columns.start, values, &mut piece));
        }
        // The system reads what lies between anyway, and one call for many rows is faster than one for each.
        let at_a_time = (PIECE / row_bytes).clamp(1, rows.len());
        let mut whole = vec![T::zeroed(); at_a_time * all_cols];
        for (first, values) in rows.step_by(at_a_time).zip(values.chunks_mut(at_a_time * width)) {
            let whole = &mut whole[..values.len() / width * all_cols];
            self.run(first * all_cols, whole, &mut piece)?;
            for (values, row) in values.chunks_mut(width).zip(whole.chunks(all_cols)) {
                values.copy_from_slice(&row[columns.clone()]);
            }
        }
        Ok(())
    }

    /// Whether the file holds exactly the bytes that memory would.
    fn is_native<T: Target>(&self) -> bool {
        self.header.number == T::NUMBER && self.header.big_endian == cfg!(target_endian = "big")
    }

    /// Reads `values.len()` neighbouring numbers, beginning with number `first` of the file.
    fn run<T: Target>(&self, first: usize, values: &mut [T], piece: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = self.header.number.bytes();
        let mut position = self.header.start + first as u64 * bytes as u64;
        if self.is_native::<T>() {
            return self.source.read_exact_at(bytemuck::cast_slice_mut(values), position);
        }
        for values in values.chunks_mut(PIECE / bytes) {
            piece.resize(values.len() * bytes, 0);
            self.source.read_exact_at(piece, position)?;
            T::convert(&self.header, piece, values);
            position += piece.len() as u64;
        }
        Ok(())
    }
}

/// What the numbers of a file become in memory.
pub(super) trait Target: bytemuck::Pod + Send + Sync {
    /// The number that is stored as it is held.
    const NUMBER: Number;
    /// Converts a run of stored numbers.
    fn convert(header: &Header, bytes: &[u8], values: &mut [Self]);
}

/// f16, u8 and i8 go through f32, which holds all of them.
impl Target for f64 {
    const NUMBER: Number = Number::F64;

    fn convert(header: &Header, bytes: &[u8], values: &mut [Self]) {
        let big = header.big_endian;
        if header.number == Number::F64 {
            return each(bytes, values, if big { Self::from_be_bytes } else { Self::from_le_bytes });
        }
        let mut narrow = vec![0.0_f32; values.len()];
        f32::convert(header, bytes, &mut narrow);
        values.iter_mut().zip(narrow).for_each(|(value, narrow)| *value = narrow.into());
    }
}

impl Target for f32 {
    const NUMBER: Number = Number::F32;

    fn convert(header: &Header, bytes: &[u8], values: &mut [Self]) {
        let big = header.big_endian;
        match header.number {
            Number::F16 => {
                // Through an array of known alignment; `half` converts it with the CPU's own instruction.
                let mut halves = [f16::ZERO; 1024];
                for (bytes, values) in bytes.chunks(2 * halves.len()).zip(values.chunks_mut(halves.len())) {
                    let halves = &mut halves[..values.len()];
                    bytemuck::cast_slice_mut::<f16, u8>(halves).copy_from_slice(bytes);
                    if big != cfg!(target_endian = "big") {
                        halves.iter_mut().for_each(|half| *half = f16::from_bits(half.to_bits().swap_bytes()));
                    }
                    halves.convert_to_f32_slice(values);
                }
            }
            Number::F32 => each(bytes, values, if big { f32::from_be_bytes } else { f32::from_le_bytes }),
            Number::F64 => each(
                bytes,
                values,
                if big { |bytes| narrow(f64::from_be_bytes(bytes)) } else { |bytes| narrow(f64::from_le_bytes(bytes)) },
            ),
            Number::U8 => each(bytes, values, |[byte]: [u8; 1]| f32::from(byte)),
            Number::I8 => each(bytes, values, |byte: [u8; 1]| f32::from(i8::from_ne_bytes(byte))),
        }
    }
}

fn each<T, const N: usize>(bytes: &[u8], values: &mut [T], number: impl Fn([u8; N]) -> T) {
    let (numbers, _) = bytes.as_chunks::<N>();
    for (value, &bytes) in values.iter_mut().zip(numbers) {
        *value = number(bytes);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted, and the user is told")]
fn narrow(value: f64) -> f32 {
    value as f32
}

impl Rows for Npy {
    fn rows(&self) -> usize {
        self.header.rows
    }

    fn cols(&self) -> usize {
        self.header.cols
    }

    fn name(&self) -> String {
        self.source.path().display().to_string()
    }

    fn block<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
        let (rows, cols) = (self.header.rows, self.header.cols);
        debug_assert!(first <= rows && count <= rows - first, "rows {first} + {count} of {rows}");
        scratch.resize(count * cols, 0.0);
        self.fill(first..first + count, 0..cols, scratch)?;
        Ok(scratch)
    }
}
