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
    if largest_a * largest_b * longest as f64 <= most / 2.0 {
        return Ok(());
    }
    let reached = (longest as f64).log2() + largest_a.log2() + largest_b.log2();
    #[expect(clippy::cast_possible_truncation, reason = "at most a few thousand")]
    #[expect(clippy::cast_sign_loss, reason = "above the largest exponent")]
    let requested = reached.ceil().max(0.0) as u64;
    let what = "sum of the largest products on the device, as a power of two".to_owned();
    Err(Error::Limit { what, requested, max: exponent - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_both(length: usize, at: usize, value: f64, expected: Option<f64>) {
        let mut values = vec![-0.5_f64; length];
        values[at] = value;
        assert_eq!(largest(&values), expected, "{value} at {at} of {length}");
        #[expect(clippy::cast_possible_truncation, reason = "small powers of two")]
        let narrow: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        assert_eq!(largest(&narrow), expected, "{value} at {at} of {length}, f32");
    }

    #[test]
    fn the_largest_magnitude_is_found_everywhere_and_so_is_what_is_not_finite() {
        for length in [1, 2, 31, 32, 33, 64, 100] {
            for at in [0, length / 2, length - 1] {
                check_both(length, at, -8.0, Some(8.0));
                check_both(length, at, 0.25, Some(if length == 1 { 0.25 } else { 0.5 }));
                for odd in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    check_both(length, at, odd, None);
                }
            }
        }
        assert_eq!(largest::<f32>(&[]), Some(0.0));
        assert_eq!(largest(&[f64::MAX, f64::MIN]), Some(f64::MAX));
    }

    #[test]
    fn a_sum_that_could_overflow_is_refused() {
        check_sum::<f32>(1, Some(1e19), 1e19).unwrap();
        check_sum::<f32>(0, Some(0.0), f32::MAX.into()).unwrap();
        check_sum::<f64>(100, Some(1e300), 0.0).unwrap();
        check_sum::<f64>(1 << 20, Some(1e150), 1e150).unwrap();
        let error = check_sum::<f32>(4, Some(1e19), 1e19).unwrap_err();
        assert!(super::super::is_for_the_cpu(&error));
        assert_eq!(
            error.to_string(),
            "sum of the largest products on the device, as a power of two: 129 requested, at most 126 possible"
        );
        assert!(check_sum::<f64>(1, Some(1e300), 1e300).is_err());
        assert!(check_sum::<f32>(1, None, 1.0).is_err());
    }

    #[test]
    fn the_place_of_what_is_not_finite_is_named() {
        let a = Csr::new(4, 9, vec![0, 0, 2, 2, 4], vec![3, 1, 8, 0], vec![1.0, 2.0, f32::INFINITY, 4.0]).unwrap();
        assert_eq!(not_finite_in_a(&a).to_string(), "A: row 3, column 8: expected a finite number, found inf");
        let b = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, f64::NAN, 6.0]).unwrap();
        assert_eq!(not_finite_in_b(&b).to_string(), "B: row 1, column 1: expected a finite number, found NaN");
    }
}
