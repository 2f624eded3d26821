//! The recurrence, in lanes: each lane of a vector holds one word of the vertical differences of one table.
//!
//! For a pattern p of m symbols and a text t, D\[i, j\] is the distance of the first i symbols of p to the first j of t. Bit
//! i - 1 of `increased` says that D\[i, j\] - D\[i - 1, j\] is +1, that of `decreased` that it is -1. A column of the table
//! follows from the one before and from `equal`, the places of p that hold the symbol t\[j\].
//!
//! In Hyyrö's notation, with horizontal differences complemented where they are +1 (Q is not HP) so that a shift brings in
//! what row 0 says:
//!
//! ```text
//! D0 = (((Eq & VP) + VP) ^ VP) | Eq | VN
//! Q  = (D0 | VP) & ~VN        HN = VP & D0
//! Q  = Q << 1                 HN = HN << 1
//! VP = HN | (~D0 & Q)         VN = D0 & ~Q
//! ```
//!
//! Ten instructions on AVX-512, where any function of three bits is one. No score is kept: D\[m, n\] is n and the sum of
//! the vertical differences of the last column.

use crate::simd::blocks::zip_within_blocks;
use crate::simd::{Bytes, Select, Simd, SimdBase, SimdInt, SimdIntElement};

/// A word of differences: `u8`, `u16`, `u32` or `u64`.
pub(super) trait Word: SimdIntElement + bytemuck::Pod + Default {
    /// As many vectors of words hold one word for every byte of a vector of bytes.
    const BYTES: usize = size_of::<Self>();

    /// The bytes of words, from the lowest on.
    fn bytes<S: Simd>(words: Self::Native<S>) -> S::u8s;

    /// Words from their bytes: `planes[b]` holds byte b of each. Every block of 16 bytes of the planes becomes one of each
    /// of [`BYTES`](Self::BYTES) vectors; [`LowestBytes`] goes the other way.
    fn spread<S: Simd>(simd: S, planes: &[S::u8s], words: &mut [Self::Native<S>]);

    /// The first `count` bits, at most all.
    fn ones(count: usize) -> Self;

    /// One bit, counted from the lowest.
    fn bit(place: usize) -> Self;

    /// The lowest bits of a larger word.
    fn low(word: u64) -> Self;

    /// The lowest byte.
    fn byte(self) -> u8;

    /// As a number with a sign.
    fn signed(self) -> i32;

    /// 0, 1, 2 and so on: for every lane of the widest vector.
    const NUMBERS: [Self; 64];

    /// All bits in all lanes but the first `ended`.
    #[inline(always)]
    fn alive<S: Simd>(simd: S, ended: usize) -> Self::Native<S> {
        let zero = Self::Native::<S>::splat(simd, Self::default());
        let numbers = Self::Native::<S>::from_slice(simd, &Self::NUMBERS[..Self::Native::<S>::LEN]);
        let ended = Self::Native::<S>::splat(simd, Self::low(ended as u64));
        Self::choose(numbers.simd_ge(ended), !zero, zero)
    }

    /// The words of the one or of the other.
    fn choose<S: Simd>(
        mask: <Self::Native<S> as SimdBase<S>>::Mask,
        set: Self::Native<S>,
        unset: Self::Native<S>,
    ) -> Self::Native<S>;
}

macro_rules! word {
    ($type:ty, $signed:ty, |$simd:ident, $planes:ident, $words:ident| $spread:block) => {
        impl Word for $type {
            const NUMBERS: [Self; 64] = {
                let mut numbers = [0; 64];
                let mut lane = 1;
                while lane < 64 {
                    numbers[lane] = numbers[lane - 1] + 1;
                    lane += 1;
                }
                numbers
            };

            #[inline(always)]
            fn bytes<S: Simd>(words: Self::Native<S>) -> S::u8s {
                words.bitcast()
            }

            #[inline(always)]
            fn spread<S: Simd>($simd: S, $planes: &[S::u8s], $words: &mut [Self::Native<S>]) $spread

            #[inline(always)]
            fn ones(count: usize) -> Self {
                if count == 0 { 0 } else { <$type>::MAX >> (8 * size_of::<Self>() - count) }
            }

            #[inline(always)]
            fn bit(place: usize) -> Self {
                1 << place
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "only for the narrow types: as asked for")]
            fn low(word: u64) -> Self {
                word as Self
            }

            #[inline(always)]
            fn choose<S: Simd>(
                mask: <Self::Native<S> as SimdBase<S>>::Mask,
                set: Self::Native<S>,
                unset: Self::Native<S>,
            ) -> Self::Native<S> {
                mask.select(set, unset)
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "as asked for")]
            fn byte(self) -> u8 {
                self as u8
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, reason = "lossless for the narrow types only")]
            fn signed(self) -> i32 {
                self.cast_signed() as i32
            }
        }
    };
}

word!(u8, i8, |_simd, planes, words| {
    words[0] = planes[0];
});
word!(u16, i16, |simd, planes, words| {
    let (low, high) = zip_within_blocks::<S, 1>(simd, planes[0], planes[1]);
    (words[0], words[1]) = (low.bitcast(), high.bitcast());
});
word!(u32, i32, |simd, planes, words| {
    let (low01, high01) = zip_within_blocks::<S, 1>(simd, planes[0], planes[1]);
    let (low23, high23) = zip_within_blocks::<S, 1>(simd, planes[2], planes[3]);
    let (a, b) = zip_within_blocks::<S, 2>(simd, low01, low23);
    let (c, d) = zip_within_blocks::<S, 2>(simd, high01, high23);
    (words[0], words[1], words[2], words[3]) = (a.bitcast(), b.bitcast(), c.bitcast(), d.bitcast());
});
word!(u64, i64, |simd, planes, words| {
    let (mut low, mut high) = ([planes[0]; 4], [planes[0]; 4]);
    for pair in 0..4 {
        (low[pair], high[pair]) = zip_within_blocks::<S, 1>(simd, planes[2 * pair], planes[2 * pair + 1]);
    }
    for (half, pairs) in [low, high].into_iter().enumerate() {
        let (a, b) = zip_within_blocks::<S, 2>(simd, pairs[0], pairs[1]);
        let (c, d) = zip_within_blocks::<S, 2>(simd, pairs[2], pairs[3]);
        let (e, f) = zip_within_blocks::<S, 4>(simd, a, c);
        let (g, h) = zip_within_blocks::<S, 4>(simd, b, d);
        let words = &mut words[4 * half..][..4];
        (words[0], words[1], words[2], words[3]) = (e.bitcast(), f.bitcast(), g.bitcast(), h.bitcast());
    }
});

/// What brings the lowest bytes of words back into the order that [`Word::spread`] found them in.
pub(super) struct LowestBytes<S: Simd> {
    /// For each vector of words: which of its bytes comes where, if any.
    which: [S::u8s; 8],
}

impl<S: Simd> LowestBytes<S> {
    #[inline(always)]
    pub(super) fn new<W: Word>(simd: S) -> Self {
        let mut which = [S::u8s::splat(simd, u8::MAX); 8];
        for (vector, which) in which[..W::BYTES].iter_mut().enumerate() {
            let mut bytes = [u8::MAX; 64];
            for (place, byte) in (0..).zip(&mut bytes) {
                let (block, within, words) = (place / 16 * 16, place % 16, 16 / W::BYTES);
                if within / words == vector {
                    #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
                    (*byte = (block + within % words * W::BYTES) as u8);
                }
            }
            *which = S::u8s::from_slice(simd, &bytes[..S::u8s::LEN]);
        }
        Self { which }
    }

    /// As many vectors of words as a word has bytes.
    #[inline(always)]
    pub(super) fn of<W: Word>(&self, simd: S, words: &[W::Native<S>]) -> S::u8s {
        let mut bytes = S::u8s::splat(simd, 0);
        for (words, which) in words.iter().zip(&self.which) {
            bytes |= W::bytes(*words).swizzle_dyn_precise(*which);
        }
        bytes
    }
}

/// The vertical differences of a column: bits of what increased and of what decreased, from one row to the next.
#[derive(Clone, Copy)]
pub(super) struct Column<V> {
    pub(super) increased: V,
    pub(super) decreased: V,
}

/// What leaves a word at its lower end: the horizontal differences of its last row, in the highest bit; complemented where
/// they are +1.
#[derive(Clone, Copy)]
pub(super) struct Carry<V> {
    pub(super) not_increased: V,
    pub(super) decreased: V,
}

impl<V> Column<V> {
    /// Column 0: each row is one more than the one above.
    #[inline(always)]
    pub(super) fn first<S: Simd>(simd: S) -> Self
    where
        V: SimdInt<S>,
    {
        let zero = V::splat(simd, V::Element::default());
        Self { increased: !zero, decreased: zero }
    }

    /// The next column of a table of one word.
    #[inline(always)]
    pub(super) fn next<S: Simd>(self, equal: V) -> Self
    where
        V: SimdInt<S>,
    {
        let Self { increased: vp, decreased: vn } = self;
        let d0 = (((equal & vp) + vp) ^ vp) | (equal | vn);
        let q = (d0 | vp) & !vn;
        let hn = vp & d0;
        let (q, hn) = (q + q, hn + hn);
        Self { increased: hn | (!d0 & q), decreased: d0 & !q }
    }

    /// The next column of one word of several, given what the word above hands down; in Myers' form, where a carry is a
    /// difference and not one of the addition.
    #[inline(always)]
    pub(super) fn next_word<S: Simd>(self, equal: V, above: Carry<V>) -> (Self, Carry<V>)
    where
        V: SimdInt<S>,
    {
        let Self { increased: vp, decreased: vn } = self;
        let top = u32::try_from(size_of::<V::Element>() * 8 - 1).unwrap_or(0);
        let (above_q, above_hn) = (above.not_increased >> top, above.decreased >> top);
        let vertical = equal | vn;
        let equal = equal | above_hn;
        let d0 = (((equal & vp) + vp) ^ vp) | equal;
        let q = (d0 | vp) & !vn;
        let hn = vp & d0;
        let below = Carry { not_increased: q, decreased: hn };
        let (q, hn) = ((q << 1) | above_q, (hn << 1) | above_hn);
        (Self { increased: hn | (!vertical & q), decreased: vertical & !q }, below)
    }

    /// This column in the lanes of the mask (all bits or none), the other one elsewhere.
    #[inline(always)]
    pub(super) fn where_set<S: Simd>(self, mask: V, other: Self) -> Self
    where
        V: SimdInt<S>,
    {
        Self {
            increased: (self.increased & mask) | (other.increased & !mask),
            decreased: (self.decreased & mask) | (other.decreased & !mask),
        }
    }

    /// The sum of the differences of the rows in the mask.
    #[inline(always)]
    pub(super) fn sum<S: Simd>(self, mask: V) -> V
    where
        V: SimdInt<S>,
    {
        (self.increased & mask).count_ones() - (self.decreased & mask).count_ones()
    }
}
