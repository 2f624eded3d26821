//! Operations that the portable set lacks: one intrinsic each, with its portable twin.

use super::implementation::{Level, kernel};
use super::{Bytes, Simd, SimdBase};

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Asks for the cache line of `values[index]` to be brought into the second-level cache. A hint: it never faults, and an
/// index beyond the end is ignored. Other architectures than x86-64 rely on their own prefetcher.
#[inline(always)]
pub fn prefetch<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(index) {
        // SAFETY: SSE is part of the x86-64 baseline, and a prefetch of a valid reference's address reads nothing that
        // the program can see.
        #[expect(unsafe_code, reason = "measured: without it a corpus out of cache runs at 0.85 of the FMA peak")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}

/// Adds to each 32-bit sum the products of its four unsigned with its four signed bytes. `signed` holds bytes.
#[inline(always)]
pub fn add_products<S: Simd>(simd: S, sums: S::i32s, unsigned: S::u8s, signed: S::i32s) -> S::i32s {
    let signed: S::i8s = signed.bitcast();
    #[cfg(target_arch = "x86_64")]
    if let Level::Avx512(avx512) = simd.level() {
        return vnni(avx512, simd, sums, unsigned, signed);
    }
    S::i32s::from_fn(simd, |lane| {
        let products = (4 * lane..4 * lane + 4)
            .map(|byte| i32::from(unsigned.as_slice()[byte]) * i32::from(signed.as_slice()[byte]));
        sums.as_slice()[lane] + products.sum::<i32>()
    })
}

/// Whether [`add_products`] is one instruction at this level.
pub fn has_add_products(level: super::Level) -> bool {
    level.name() == "avx512"
}

/// The types of the generic code are those of this level, which the compiler cannot know before it has inlined all this:
/// then the copies vanish.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vnni<S: Simd>(
    avx512: super::implementation::Avx512,
    simd: S,
    sums: S::i32s,
    unsigned: S::u8s,
    signed: S::i8s,
) -> S::i32s {
    use super::SimdInto;
    use super::implementation::{i8x64, i32x16, u8x64};
    use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32};
    kernel!(
        #[inline]
        fn add(avx512: Avx512, sums: __m512i, unsigned: __m512i, signed: __m512i) -> __m512i {
            _mm512_dpbusd_epi32(sums, unsigned, signed)
        }
    );
    let sums = i32x16::from_slice(avx512, sums.as_slice());
    let (unsigned, signed) =
        (u8x64::from_slice(avx512, unsigned.as_slice()), i8x64::from_slice(avx512, signed.as_slice()));
    let sums: i32x16<_> = add(avx512, sums.into(), unsigned.into(), signed.into()).simd_into(avx512);
    S::i32s::from_slice(simd, sums.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, simd};

    #[simd]
    fn products<S: Simd>(simd: S, bytes: &[u8], four: [i8; 4]) -> Vec<i32> {
        let unsigned = S::u8s::from_slice(simd, &bytes[..S::u8s::LEN]);
        let signed = S::i32s::splat(simd, i32::from_le_bytes(four.map(i8::cast_unsigned)));
        add_products(simd, S::i32s::splat(simd, -7), unsigned, signed).as_slice().to_vec()
    }

    #[test]
    fn products_of_bytes_are_exact_at_every_level() {
        let bytes: Vec<u8> = (0..64u8).map(|i| 255 - i.wrapping_mul(37)).collect();
        for four in [[127; 4], [-128; 4], [1, -1, 127, -128], [0, 5, 0, -3]] {
            for level in Level::available() {
                let found = crate::dispatch!(level, simd => products(simd, &bytes, four));
                for (lane, found) in found.into_iter().enumerate() {
                    let expected: i32 = (0..4).map(|k| i32::from(bytes[4 * lane + k]) * i32::from(four[k])).sum();
                    assert_eq!(found, expected - 7, "{level}, lane {lane}, {four:?}");
                }
            }
        }
    }
}
