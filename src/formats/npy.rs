//! .npy matrices: C and Fortran order, either byte order, f32, f16, f64, u8 and i8.

use super::npy_header::{self, Header, Number};
use super::source::Source;
use crate::data::{Buffer, Matrix, Rows};
use crate::error::Error;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Bytes that are read at a time where they have to be converted: small enough to stay in the cache in between.
const PIECE: usize = 1 << 16;

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
        let (rows, cols) = (self.header.rows, self.header.cols);
        // The header was checked against the length of the file, so the product is one that a file can have.
        let mut values = Buffer::zeroed(rows * cols)?;
        self.fill(0, rows, &mut values)?;
        Matrix::from_buffer(rows, cols, values)
    }

    /// Reads `count` rows from row `first` on into `values`, row-major.
    fn fill<T: Target>(&self, first: usize, count: usize, values: &mut [T]) -> Result<(), Error> {
        let (rows, cols) = (self.header.rows, self.header.cols);
        let mut piece = Vec::new();
        if !self.header.fortran_order || rows <= 1 || count == 0 {
            return self.run(first * cols, values, &mut piece);
        }
        // Column after column: the values of these rows are neighbours within each.
        let mut column = vec![T::zeroed(); count];
        for col in 0..cols {
            self.run(col * rows + first, &mut column, &mut piece)?;
            for (value, &number) in values[col..].iter_mut().step_by(cols).zip(&column) {
                *value = number;
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
pub(super) trait Target: bytemuck::Pod {
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
        self.fill(first, count, scratch)?;
        Ok(scratch)
    }
}
