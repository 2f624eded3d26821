//! The CPU path.

use super::{Value, check_shapes};
use crate::data::{Buffer, Csr, Matrix};
use crate::error::Error;
use crate::kernels::Platform;
use crate::simd::Level;

/// What is worked out once for a matrix that is multiplied again and again.
pub(super) struct Plan {}

impl Plan {
    /// For `a` on `threads` threads.
    pub(super) fn new<T: Value>(_a: &Csr<T>, _threads: usize) -> Self {
        Self {}
    }
}

/// A B, on the platform's CPU.
///
/// Cost: 2 entries x width operations; reads A once and, for each entry, a row of B; writes C once.
///
/// # Errors
/// [`Error::Shape`] when B has not as many rows as A has columns, [`Error::Limit`] when there is no memory for C.
pub fn multiply<T: Value>(a: &Csr<T>, b: &Matrix<T>, platform: &Platform) -> Result<Matrix<T>, Error> {
    let too_large = || Error::Limit { what: "C: values".into(), requested: u64::MAX, max: isize::MAX as u64 };
    let length = a.rows().checked_mul(b.cols()).ok_or_else(too_large)?;
    let mut c = Matrix::from_buffer(a.rows(), b.cols(), Buffer::zeroed(length)?)?;
    multiply_into(a, b, &mut c, platform)?;
    Ok(c)
}

/// As [`multiply`], into memory that is there already.
///
/// # Errors
/// [`Error::Shape`] when the three shapes do not fit.
pub fn multiply_into<T: Value>(a: &Csr<T>, b: &Matrix<T>, c: &mut Matrix<T>, platform: &Platform) -> Result<(), Error> {
    let plan = Plan::new(a, platform.threads);
    multiply_planned(a, &plan, b, c, platform.level, platform.threads)
}

/// As [`multiply_into`], with the plan made before.
pub(super) fn multiply_planned<T: Value>(
    a: &Csr<T>,
    _plan: &Plan,
    b: &Matrix<T>,
    c: &mut Matrix<T>,
    _level: Level,
    _threads: usize,
) -> Result<(), Error> {
    check_shapes(a, b, c)?;
    let width = b.cols();
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        let out = &mut c.values_mut()[row * width..][..width];
        out.fill(T::default());
        for (&column, &value) in columns.iter().zip(values) {
            for (out, &other) in out.iter_mut().zip(b.row(column as usize)) {
                *out = *out + value * other;
            }
        }
    }
    Ok(())
}
