//! How a kernel that waits for memory speaks to it: what the portable set lacks, one intrinsic each, with its portable twin.

use super::implementation::{Level, kernel};
use super::{Simd, SimdBase};
use bytemuck::Pod;

/// Asks for the cache line of `values[index]` to be brought into the first-level cache. A hint: it never faults, and an
/// index beyond the end is ignored. Other architectures than x86-64 rely on their own prefetcher.
#[inline(always)]
pub fn prefetch_near<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(index) {
        // SAFETY: SSE is part of the x86-64 baseline, and a prefetch of a valid reference's address reads nothing that
        // the program can see.
        #[expect(
            unsafe_code,
            reason = "measured: rows of 33 numbers, gathered where they begin anywhere in a line, come 1.18 times as fast"
        )]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}

/// Rows of `width` values whose first ones are `stride` apart. One comparison finds a row, where slicing takes two and a
/// subtraction: where a row is gathered for each multiply-add, that is what the time goes to.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    values: &'a [T],
    stride: usize,
    width: usize,
    /// A row that begins before this one ends within `values`.
    end: usize,
}

impl<'a, T> Rows<'a, T> {
    /// The first row begins with the first of `values`.
    pub fn new(values: &'a [T], stride: usize, width: usize) -> Self {
        Self { values, stride, width, end: (values.len() + 1).saturating_sub(width) }
    }

    /// A row.
    ///
    /// # Panics
    /// When `values` end before it does.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [T] {
        let first = row * self.stride;
        assert!(first < self.end, "a row beyond the end");
        // SAFETY: `first < end` and `end = len + 1 - width`, so `first + width <= len`.
        #[expect(unsafe_code, reason = "measured: products of 33 columns with a stencil, 1.1 to 1.2 times as fast")]
        unsafe {
            self.values.get_unchecked(first..first + self.width)
        }
    }

    /// Asks for the lines of a row, as [`prefetch_near`] does.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        let first = row * self.stride;
        for value in (0..self.width).step_by(super::LINE / size_of::<T>()) {
            prefetch_near(self.values, first + value);
        }
    }
}

/// Stores a vector past the caches, where it is as long as the level has them and lies at a multiple of its size; else, and
/// below AVX2, an ordinary store.
/// Worth it for whole cache lines that are not read again soon: they need not be read before they are overwritten.
///
/// Such stores are seen by other threads only after [`fence`] on the thread that made them.
///
/// # Panics
/// When `into` is not as long as the vector.
#[inline(always)]
pub fn stream<S: Simd, V: SimdBase<S>>(simd: S, vector: V, into: &mut [V::Element])
where
    V::Element: Pod,
{
    assert_eq!(into.len(), V::LEN, "as many values as a vector has");
    #[cfg(target_arch = "x86_64")]
    if size_of::<V::Element>().is_multiple_of(4) && into.as_ptr().addr().is_multiple_of(size_of_val(into)) {
        let values: &[i32] = bytemuck::cast_slice(vector.as_slice());
        match (simd.level(), size_of::<V>()) {
            (Level::Avx512(avx512), 64) => return x86::stream64(avx512, values, bytemuck::cast_slice_mut(into)),
            (Level::Avx2(avx2), 32) => return x86::stream32(avx2, values, bytemuck::cast_slice_mut(into)),
            _ => {}
        }
    }
    vector.store_slice(into);
}

/// Makes what [`stream`] stored on this thread visible to whoever sees what the thread does next.
#[inline]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the x86-64 baseline; a fence touches no memory.
    #[expect(unsafe_code, reason = "streamed stores are not ordered by what orders all others")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::implementation::{i32x8, i32x16};
    use super::{SimdBase, kernel};
    use std::arch::x86_64::{__m256i, __m512i, _mm256_stream_si256, _mm512_stream_si512};

    kernel!(
        /// `into` holds 16 values and begins at a multiple of 64 bytes.
        #[inline]
        pub(super) fn stream64(avx512: Avx512, values: &[i32], into: &mut [i32]) {
            let vector: __m512i = i32x16::from_slice(avx512, values).into();
            assert!(into.len() == 16 && into.as_ptr().addr().is_multiple_of(64));
            // SAFETY: the line above: 64 bytes that we may write, at a multiple of 64.
            #[expect(
                unsafe_code,
                reason = "measured: a result larger than the caches is written 1.5 to 2 times as fast"
            )]
            unsafe {
                _mm512_stream_si512(into.as_mut_ptr().cast(), vector);
            }
        }
    );

    kernel!(
        /// `into` holds 8 values and begins at a multiple of 32 bytes.
        #[inline]
        pub(super) fn stream32(avx2: Avx2, values: &[i32], into: &mut [i32]) {
            let vector: __m256i = i32x8::from_slice(avx2, values).into();
            assert!(into.len() == 8 && into.as_ptr().addr().is_multiple_of(32));
            // SAFETY: the line above: 32 bytes that we may write, at a multiple of 32.
            #[expect(
                unsafe_code,
                reason = "measured: a result larger than the caches is written 1.5 to 2 times as fast"
            )]
            unsafe {
                _mm256_stream_si256(into.as_mut_ptr().cast(), vector);
            }
        }
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::f32x4;
    use crate::simd::{Level, SimdFloat, simd};

    #[simd]
    fn store<S: Simd, V: SimdFloat<S>>(simd: S, vector: V, into: &mut [V::Element])
    where
        V::Element: Pod,
    {
        stream(simd, vector, into);
        fence();
    }

    #[test]
    fn rows_are_found_up_to_the_last_one_that_is_whole() {
        let values: Vec<_> = (0..10).collect();
        let rows = Rows::new(&values, 4, 3);
        assert_eq!([rows.row(0), rows.row(1)], [[0, 1, 2], [4, 5, 6]]);
        assert_eq!(Rows::new(&values, 4, 2).row(2), [8, 9]);
        assert_eq!(Rows::new(&values, 0, 10).row(7), values);
        for (stride, width, row) in [(4, 3, 2), (4, 2, 3), (0, 11, 0), (1, 1, 10)] {
            let beyond = std::panic::catch_unwind(|| Rows::new(&values, stride, width).row(row).len());
            assert!(beyond.is_err(), "row {row} of {width}, {stride} apart");
        }
    }

    #[test]
    fn streamed_values_arrive_wherever_they_lie() {
        for level in Level::available() {
            let mut values = vec![0.0_f32; 100];
            for first in 0..40 {
                let lanes = crate::dispatch!(level, simd => {
                    fn run<S: Simd>(simd: S, values: &mut [f32], first: usize) -> usize {
                        let vector = S::f32s::from_fn(simd, |lane| (first + lane) as f32);
                        store(simd, vector, &mut values[first..][..S::f32s::LEN]);
                        S::f32s::LEN
                    }
                    run(simd, &mut values, first)
                });
                let expected: Vec<_> = (first..first + lanes).map(|value| value as f32).collect();
                assert_eq!(values[first..][..lanes], expected, "{level}, from {first} on");
                // Shorter than the level's own.
                crate::dispatch!(level, simd => store(simd, f32x4::splat(simd, -1.0), &mut values[first..][..4]));
                assert_eq!(values[first..][..4], [-1.0; 4], "{level}, from {first} on");
            }
        }
    }
}
