//! [`Matrix`]: rows x columns, row-major; and [`Rows`], a matrix that is read block by block.

use super::Buffer;
use crate::error::Error;
use half::f16;

/// A number a matrix can hold; arithmetic is done after widening to `f32`, which is exact for both.
pub trait Element: bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug {
    /// Bytes per element.
    const BYTES: usize = size_of::<Self>();
    /// The name of this storage: `f32` or `f16`.
    const NAME: &'static str;
    /// Widens a run of elements. `wide` has the same length as `narrow`.
    fn widen(narrow: &[Self], wide: &mut [f32]);
    /// The values themselves where they already are `f32`.
    fn as_f32(_values: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    fn widen(narrow: &[Self], wide: &mut [f32]) {
        wide.copy_from_slice(narrow);
    }
    fn as_f32(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }
}

impl Element for f16 {
    const NAME: &'static str = "f16";
    fn widen(narrow: &[Self], wide: &mut [f32]) {
        // `half` uses F16C / AVX-512 / NEON conversions where the CPU has them.
        half::slice::HalfFloatSliceExt::convert_to_f32_slice(narrow, wide);
    }
}

/// A dense matrix, rows x columns, row-major, contiguous. Values may be anything the type holds,
/// NaN included: kernels that cannot work with such values say so and name the place.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T: bytemuck::Pod = f32> {
    rows: usize,
    cols: usize,
    values: Buffer<T>,
}

impl<T: bytemuck::Pod> Matrix<T> {
    /// Takes `rows * cols` values in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of values is another, [`Error::Limit`] if the product overflows.
    pub fn new(rows: usize, cols: usize, values: Vec<T>) -> Result<Self, Error> {
        Self::from_buffer(rows, cols, values.into())
    }

    /// As [`new`](Self::new), from a [`Buffer`]: the fast way for a large matrix.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_buffer(rows: usize, cols: usize, values: Buffer<T>) -> Result<Self, Error> {
        let expected = rows.checked_mul(cols).ok_or(Error::Limit {
            what: format!("matrix of {rows} x {cols}"),
            requested: u64::MAX,
            max: usize::MAX as u64,
        })?;
        if values.len() != expected {
            let what = format!("matrix of {rows} x {cols}: values");
            return Err(Error::Shape { what, expected, found: values.len() });
        }
        Ok(Self { rows, cols, values })
    }

    /// Zeros everywhere.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is not that much memory.
    pub fn zeroed(rows: usize, cols: usize) -> Result<Self, Error> {
        // Where their number is beyond what can be counted, as many as there cannot be.
        let values = Buffer::zeroed(rows.saturating_mul(cols))?;
        Self::from_buffer(rows, cols, values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, row after row, to be overwritten.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// One row. Panics if there is no such row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.cols..][..self.cols]
    }
}

/// A matrix that is read block by block: in memory, or in a file larger than memory.
///
/// Reading is thread-safe and has no cursor, so each thread asks for its own blocks.
pub trait Rows: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn cols(&self) -> usize;
    /// What to call this operand in an error: a path, or `corpus`.
    fn name(&self) -> String;
    /// Whether blocks come straight from memory, so that asking for a large one costs nothing.
    fn is_direct(&self) -> bool {
        false
    }
    /// The values of `count` rows from row `first` on, as `f32`, row-major: straight from memory where they
    /// already are that, else read or converted into `scratch`, which keeps its capacity between calls.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Format`] when reading fails.
    fn block<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error>;
}

impl<T: Element> Rows for Matrix<T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn name(&self) -> String {
        format!("matrix of {} x {} {}", self.rows, self.cols, T::NAME)
    }

    fn is_direct(&self) -> bool {
        T::as_f32(&[]).is_some()
    }

    fn block<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
        let narrow = &self.values[first * self.cols..(first + count) * self.cols];
        if let Some(values) = T::as_f32(narrow) {
            return Ok(values);
        }
        scratch.resize(narrow.len(), 0.0);
        T::widen(narrow, scratch);
        Ok(scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_as_many_as_asked_for_and_no_more_than_there_can_be() {
        let zeros = Matrix::<f64>::zeroed(2, 3).unwrap();
        assert_eq!((zeros.rows(), zeros.cols(), zeros.values()), (2, 3, &[0.0; 6][..]));
        assert!(matches!(Matrix::<f64>::zeroed(usize::MAX, 2), Err(Error::Limit { .. })));
    }
}
