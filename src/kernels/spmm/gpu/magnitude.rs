//! What a device may not see: NaN, infinity, and values so large that a sum of their products could overflow.

use super::super::Value;
use crate::data::{Csr, Matrix};
use crate::error::Error;

/// Values are looked at in blocks that stay in the cache until they are copied.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// Values looked at together: enough for every register width.
const LANES: usize = 32;

/// The largest magnitude; `None` where a value is not finite.
pub(super) fn largest<T: Value>(values: &[T]) -> Option<f64> {
    if size_of::<T>() == size_of::<f32>() {
        largest_f32(bytemuck::cast_slice(values))
    } else {
        largest_f64(bytemuck::cast_slice(values))
    }
}

/// The same loop for both types, written so that it becomes a maximum and a difference in vector registers.
macro_rules! largest {
    ($name:ident, $float:ty) => {
        fn $name(values: &[$float]) -> Option<f64> {
            let (mut most, mut odd) = ([0.0; LANES], [0.0; LANES]);
            let (blocks, rest) = values.as_chunks::<LANES>();
            let mut last = [0.0; LANES];
            last[..rest.len()].copy_from_slice(rest);
            for block in blocks.iter().chain([&last]) {
                for lane in 0..LANES {
                    let magnitude: $float = block[lane].abs();
                    most[lane] = if magnitude > most[lane] { magnitude } else { most[lane] };
                    // 0 for a finite value, else NaN, which stays.
                    odd[lane] += magnitude - magnitude;
                }
            }
            let most = most.into_iter().fold(0.0, <$float>::max);
            odd.iter().all(|&difference| difference == 0.0).then_some(f64::from(most))
        }
    };
}

largest!(largest_f32, f32);
largest!(largest_f64, f64);

fn not_finite<T: Value>(what: &str, row: usize, column: usize, value: T) -> Error {
    #[expect(clippy::cast_possible_truncation, reason = "NaN and infinity stay what they are")]
    let value = Into::<f64>::into(value) as f32;
    Error::NotFinite { what: what.into(), row, column, value }
}

fn is_odd<T: Value>(value: T) -> bool {
    !Into::<f64>::into(value).is_finite()
}

/// Names the first entry of A that is not finite.
pub(super) fn not_finite_in_a<T: Value>(a: &Csr<T>) -> Error {
    let at = a.values().iter().position(|&value| is_odd(value)).unwrap_or(0);
    let row = a.indptr().partition_point(|&start| start <= at).saturating_sub(1);
    not_finite("A", row, a.indices()[at] as usize, a.values()[at])
}

/// Names the first value of B that is not finite.
pub(super) fn not_finite_in_b<T: Value>(b: &Matrix<T>) -> Error {
    let at = b.values().iter().position(|&value| is_odd(value)).unwrap_or(0);
    not_finite("B", at / b.cols().max(1), at % b.cols().max(1), b.values()[at])
}

/// Refuses operands of which a sum could overflow: `longest` products of the largest magnitudes.
pub(super) fn check_sum<T: Value>(longest: usize, largest_a: Option<f64>, largest_b: f64) -> Result<(), Error> {
    let Some(largest_a) = largest_a else { return Err(super::wrong("A was not uploaded whole")) };
    let (most, exponent): (f64, u64) =
        if size_of::<T>() == size_of::<f32>() { (f32::MAX.into(), 127) } else { (f64::MAX, 1_023) };
    // Halved: rounding raises a sum by far less.
    if longest as f64 * largest_a * largest_b <= most / 2.0 {
        return Ok(());
    }
    let reached = (longest as f64).log2() + largest_a.log2() + largest_b.log2();
    #[expect(clippy::cast_possible_truncation, reason = "at most a few thousand")]
    #[expect(clippy::cast_sign_loss, reason = "above the largest exponent")]
    let requested = reached.ceil().max(0.0) as u64;
    let what = "sum of the largest products on the device, as a power of two".to_owned();
    Err(Error::Limit { what, requested, max: exponent - 1 })
}
