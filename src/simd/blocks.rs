//! Moving bytes within blocks of 16: what the portable set lacks, two intrinsics each, with their portable twin.

use super::Simd;
use super::implementation::{Level, kernel};
use super::{Bytes, SimdBase};

/// Interleaves units of `WIDTH` bytes (1, 2 or 4) of two vectors within each block of 16 bytes: the first halves of all
/// blocks, and the second ones. `[a0 b0 a1 b1 ..]` in each block, where `a0` is the first unit of the block in `a`.
///
/// One instruction for each half on AVX2 and AVX-512; across whole vectors, as the portable set has it, it is a permutation of
/// single bytes by a table.
#[inline(always)]
pub fn zip_within_blocks<S: Simd, const WIDTH: usize>(simd: S, a: S::u8s, b: S::u8s) -> (S::u8s, S::u8s) {
    const { assert!(WIDTH == 1 || WIDTH == 2 || WIDTH == 4, "units of 1, 2 or 4 bytes") };
    #[cfg(target_arch = "x86_64")]
    match simd.level() {
        Level::Avx512(avx512) => return x86::zip64::<S, WIDTH>(avx512, simd, a, b),
        Level::Avx2(avx2) => return x86::zip32::<S, WIDTH>(avx2, simd, a, b),
        _ => {}
    }
    if S::u8s::LEN == 16 {
        match WIDTH {
            1 => return (a.zip_low(b), a.zip_high(b)),
            2 => {
                let (a, b): (S::u16s, S::u16s) = (a.bitcast(), b.bitcast());
                return (a.zip_low(b).bitcast(), a.zip_high(b).bitcast());
            }
            _ => {
                let (a, b): (S::u32s, S::u32s) = (a.bitcast(), b.bitcast());
                return (a.zip_low(b).bitcast(), a.zip_high(b).bitcast());
            }
        }
    }
    let half = |second: usize| {
        S::u8s::from_fn(simd, |lane| {
            let (block, byte) = (lane / 16 * 16, lane % 16);
            let (unit, within) = (byte / WIDTH, byte % WIDTH);
            let from = block + 8 * second + unit / 2 * WIDTH + within;
            if unit % 2 == 0 { a.as_slice()[from] } else { b.as_slice()[from] }
        })
    };
    (half(0), half(1))
}

/// The types of the generic code are those of these levels, which the compiler cannot know before it has inlined all this:
/// then the copies vanish.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::implementation::{Avx2, Avx512, u8x32, u8x64};
    use super::super::{SimdBase, SimdInto};
    use super::{Simd, kernel};
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpacklo_epi8,
        _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16,
        _mm512_unpackhi_epi32, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16, _mm512_unpacklo_epi32,
    };

    macro_rules! zips {
        ($level:ident, $vector:ty: $($name:ident $low:ident $high:ident),*) => {$(
            kernel!(
                #[inline]
                fn $name(level: $level, a: $vector, b: $vector) -> ($vector, $vector) {
                    ($low(a, b), $high(a, b))
                }
            );
        )*};
    }
    zips!(Avx512, __m512i:
        zip64_1 _mm512_unpacklo_epi8 _mm512_unpackhi_epi8,
        zip64_2 _mm512_unpacklo_epi16 _mm512_unpackhi_epi16,
        zip64_4 _mm512_unpacklo_epi32 _mm512_unpackhi_epi32
    );
    zips!(Avx2, __m256i:
        zip32_1 _mm256_unpacklo_epi8 _mm256_unpackhi_epi8,
        zip32_2 _mm256_unpacklo_epi16 _mm256_unpackhi_epi16,
        zip32_4 _mm256_unpacklo_epi32 _mm256_unpackhi_epi32
    );

    #[inline(always)]
    pub(super) fn zip64<S: Simd, const WIDTH: usize>(level: Avx512, simd: S, a: S::u8s, b: S::u8s) -> (S::u8s, S::u8s) {
        let (a, b) = (u8x64::from_slice(level, a.as_slice()), u8x64::from_slice(level, b.as_slice()));
        let (low, high) = match WIDTH {
            1 => zip64_1(level, a.into(), b.into()),
            2 => zip64_2(level, a.into(), b.into()),
            _ => zip64_4(level, a.into(), b.into()),
        };
        let (low, high): (u8x64<_>, u8x64<_>) = (low.simd_into(level), high.simd_into(level));
        (S::u8s::from_slice(simd, low.as_slice()), S::u8s::from_slice(simd, high.as_slice()))
    }

    #[inline(always)]
    pub(super) fn zip32<S: Simd, const WIDTH: usize>(level: Avx2, simd: S, a: S::u8s, b: S::u8s) -> (S::u8s, S::u8s) {
        let (a, b) = (u8x32::from_slice(level, a.as_slice()), u8x32::from_slice(level, b.as_slice()));
        let (low, high) = match WIDTH {
            1 => zip32_1(level, a.into(), b.into()),
            2 => zip32_2(level, a.into(), b.into()),
            _ => zip32_4(level, a.into(), b.into()),
        };
        let (low, high): (u8x32<_>, u8x32<_>) = (low.simd_into(level), high.simd_into(level));
        (S::u8s::from_slice(simd, low.as_slice()), S::u8s::from_slice(simd, high.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::simd;

    #[simd]
    fn zipped<S: Simd, const WIDTH: usize>(simd: S) -> (Vec<u8>, Vec<u8>) {
        let a = S::u8s::from_fn(simd, |lane| u8::try_from(lane).unwrap());
        let (low, high) = zip_within_blocks::<S, WIDTH>(simd, a, a + S::u8s::splat(simd, 100));
        (low.as_slice().to_vec(), high.as_slice().to_vec())
    }

    #[test]
    fn units_alternate_within_each_block_at_every_level() {
        for level in crate::simd::Level::available() {
            for width in [1, 2, 4] {
                let (low, high) = match width {
                    1 => crate::dispatch!(level, simd => zipped::<_, 1>(simd)),
                    2 => crate::dispatch!(level, simd => zipped::<_, 2>(simd)),
                    _ => crate::dispatch!(level, simd => zipped::<_, 4>(simd)),
                };
                for (half, found) in [low, high].into_iter().enumerate() {
                    for (lane, found) in found.into_iter().enumerate() {
                        let unit = lane % 16 / width;
                        let from = lane / 16 * 16 + 8 * half + unit / 2 * width + lane % width;
                        assert_eq!(usize::from(found), from + 100 * (unit % 2), "{level}, {width}, lane {lane}");
                    }
                }
            }
        }
    }
}
