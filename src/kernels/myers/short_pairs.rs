//! Pairs of which one string fits into a word: a pair in each lane, in no order.

use super::lanes::{Column, Word};
use super::pairs::{Bits, MOST_BITS, Strings, Symbol};
use crate::simd::{Level, Simd, SimdBase, simd};
use std::hint::black_box;

/// The distances of at most as many pairs as a vector has lanes: of strings at the same place on both sides, of which the
/// shorter one, that is the pattern, fits into a word of `W`.
pub(super) fn distances<W: Word, T: Symbol>(
    level: Level,
    left: Strings<'_, T>,
    right: Strings<'_, T>,
    bits: &Bits,
    distances: &mut [u32],
) {
    macro_rules! of_bits {
        ($bits:expr) => {
            crate::dispatch!(level, simd => one_word::<_, W, T, { $bits }>(simd, left, right, bits, distances))
        };
    }
    match bits.count() {
        0..=2 if T::IS_NARROW => of_bits!(2),
        0..=5 if T::IS_NARROW => of_bits!(5),
        0..=8 => of_bits!(8),
        _ => of_bits!(MOST_BITS),
    }
}

#[simd]
fn one_word<S: Simd, W: Word, T: Symbol, const BITS: usize>(
    simd: S,
    left: Strings<'_, T>,
    right: Strings<'_, T>,
    bits: &Bits,
    distances: &mut [u32],
) {
    let lanes = W::Native::<S>::LEN;
    let zero = W::Native::<S>::splat(simd, W::default());
    let used = bits.count().clamp(1, BITS);
    let bits: [u32; BITS] = bits.padded();
    let bits = if BITS == MOST_BITS { &bits[..used] } else { &bits[..] };
    let used = if BITS == MOST_BITS { used } else { BITS };

    // Which one is the pattern is chosen lane by lane, once all are in planes.
    let count = distances.len();
    let (of_left, of_right) = (&left.lengths[..count], &right.lengths[..count]);
    let (mut ones, mut turned) = ([W::default(); 64], [W::default(); 64]);
    for ((turned, &left), &right) in turned.iter_mut().zip(of_left).zip(of_right) {
        *turned = W::low(u64::from(left > right));
    }
    for ((ones, &left), &right) in ones.iter_mut().zip(of_left).zip(of_right) {
        // In two steps, as there may be 64; vectorized, as those of Word::ones are not.
        let count = u64::from(left.min(right));
        *ones = W::low((1_u64 << (count / 2) << (count - count / 2)).wrapping_sub(1));
    }
    for ((longer, &left), &right) in distances.iter_mut().zip(of_left).zip(of_right) {
        *longer = left.max(right);
    }
    let mask = W::Native::<S>::from_slice(simd, &ones[..lanes]);
    let turned = W::Native::<S>::from_slice(simd, &turned[..lanes]).simd_ne(zero);
    let (longest_left, longest_right) = (longest(of_left), longest(of_right));
    let (shortest, longest) = (shortest(distances), longest(distances));

    let mut column = Column::first(simd);
    let (mut patterns, mut texts) = ([zero; BITS], [zero; BITS]);
    for from in (0..longest).step_by(W::BITS) {
        let (mut first, mut second) = ([zero; BITS], [zero; BITS]);
        if from < longest_left {
            planes::<S, W, T, BITS>(simd, left, count, from, bits, &mut first);
        }
        if from < longest_right {
            planes::<S, W, T, BITS>(simd, right, count, from, bits, &mut second);
        }
        for plane in 0..used {
            texts[plane] = W::choose(turned, first[plane], second[plane]);
            if from == 0 {
                patterns[plane] = W::choose(turned, second[plane], first[plane]);
            }
        }
        let until = longest.min(from + W::BITS);
        let whole = shortest.clamp(from, until);
        let mut bit = W::Native::<S>::splat(simd, W::bit(0));
        for _ in from..whole {
            column = column.next(!different::<S, W, BITS>(simd, &patterns, &texts, used, bit));
            bit = bit + bit;
        }
        if whole == until {
            continue;
        }
        // Some have ended.
        let mut left = [W::default(); 64];
        let (first, most) = (super::length(from), super::length(W::BITS));
        for (left, &length) in left.iter_mut().zip(&*distances) {
            *left = W::low(length.saturating_sub(first).min(most).into());
        }
        let left = W::Native::<S>::from_slice(simd, &left[..lanes]);
        for position in whole..until {
            let next = column.next(!different::<S, W, BITS>(simd, &patterns, &texts, used, bit));
            bit = bit + bit;
            let has_ended = W::Native::<S>::splat(simd, W::low((position - from) as u64)).simd_ge(left);
            column.increased = W::choose(has_ended, column.increased, next.increased);
            column.decreased = W::choose(has_ended, column.decreased, next.decreased);
        }
    }
    let sums = column.sum(mask);
    for (distance, sum) in distances.iter_mut().zip(sums.as_slice()) {
        *distance = distance.wrapping_add_signed(sum.signed());
    }
}

/// Places of the patterns that differ from the texts' symbols at one place.
#[inline(always)]
fn different<S: Simd, W: Word, const BITS: usize>(
    simd: S,
    patterns: &[W::Native<S>; BITS],
    texts: &[W::Native<S>; BITS],
    used: usize,
    bit: W::Native<S>,
) -> W::Native<S> {
    let zero = W::Native::<S>::splat(simd, W::default());
    if BITS == MOST_BITS {
        let mut different = zero;
        for (pattern, text) in patterns[..used].iter().zip(texts) {
            let set = (*text & bit).simd_ne(zero);
            different |= W::choose(set, !*pattern, *pattern);
        }
        return different;
    }
    // One kind of instruction after the other: only one port of the processor makes masks, and what comes between would be
    // bound to wait there too.
    let mut sets = [zero.simd_ne(zero); BITS];
    for plane in 0..BITS {
        sets[plane] = (texts[plane] & bit).simd_ne(zero);
    }
    let mut planes = *patterns;
    for plane in 0..BITS {
        planes[plane] = W::choose(sets[plane], !patterns[plane], patterns[plane]);
    }
    let mut different = planes[0];
    for &plane in &planes[1..] {
        different |= plane;
    }
    different
}

#[inline(always)]
fn planes<S: Simd, W: Word, T: Symbol, const BITS: usize>(
    simd: S,
    strings: Strings<'_, T>,
    count: usize,
    from: usize,
    bits: &[u32],
    planes: &mut [W::Native<S>; BITS],
) {
    let lanes = W::Native::<S>::LEN;
    let mut words = [[W::default(); 64]; BITS];
    let words = &mut words.as_flattened_mut()[..bits.len() * lanes];
    // Opaque, so that masks are stored as they come: joined in registers, they wait for the one port that makes them.
    let words = black_box(words);
    T::planes(simd, strings.starts[..count].iter().map(|&start| (strings.symbols, start + from)), bits, words);
    for (plane, words) in planes.iter_mut().zip(words.chunks_exact(lanes)) {
        *plane = W::Native::<S>::from_slice(simd, words);
    }
}

#[inline(always)]
fn longest(lengths: &[u32]) -> usize {
    lengths.iter().fold(0, |longest, &length| longest.max(length)) as usize
}

#[inline(always)]
fn shortest(lengths: &[u32]) -> usize {
    lengths.iter().fold(u32::MAX, |shortest, &length| shortest.min(length)) as usize
}
