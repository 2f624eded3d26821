//! Pairs whose patterns take several words: in a band around the diagonal, one pair in each lane.

use super::BEYOND;
use super::lanes::{Carry, Column, Word};
use super::pairs::{Bits, MOST_BITS, Pair, Symbol};
use crate::simd::{Level, Simd, SimdBase, SimdInt, SimdMask, simd};
use std::ops::Range;

/// Rows in a word.
const WORD: usize = u64::BITS as usize;

/// Memory that a thread keeps from batch to batch.
#[derive(Default)]
pub(super) struct Scratch {
    /// Planes of the patterns: for each block of symbols, for each bit, a word of each lane.
    patterns: Vec<u64>,
    /// Vertical differences of each word of each lane: what increased, what decreased.
    columns: Vec<u64>,
}

/// The distances of a batch of pairs, in order of the lengths of their texts, whose patterns take any number of words.
///
/// Only cells within `band` of the diagonal are computed, word by word (Ukkonen, *Algorithms for approximate string
/// matching*, Information and Control 64, 1985). Cells outside count as if each step led one further away, so what is
/// found is never less than the distance; [`Pair::is_decided`] says when it is the distance. What is above the cutoff may be
/// found as [`BEYOND`], as soon as it is.
pub(super) fn of_words<T: Symbol>(
    level: Level,
    pairs: &[Pair<'_, T>],
    bits: &Bits,
    band: usize,
    cutoff: Option<u32>,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    match bits.count() {
        0..=2 if T::IS_NARROW => {
            crate::dispatch!(level, simd => words::<_, T, 2>(simd, pairs, bits, band, cutoff, scratch, distances));
        }
        0..=5 if T::IS_NARROW => {
            crate::dispatch!(level, simd => words::<_, T, 5>(simd, pairs, bits, band, cutoff, scratch, distances));
        }
        0..=8 => crate::dispatch!(level, simd => words::<_, T, 8>(simd, pairs, bits, band, cutoff, scratch, distances)),
        _ => {
            crate::dispatch!(level, simd => words::<_, T, MOST_BITS>(simd, pairs, bits, band, cutoff, scratch, distances))
        }
    }
}

#[simd]
fn words<S: Simd, T: Symbol, const BITS: usize>(
    simd: S,
    pairs: &[Pair<'_, T>],
    bits: &Bits,
    band: usize,
    cutoff: Option<u32>,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    let lanes = S::u64s::LEN;
    let (zero, one) = (S::u64s::splat(simd, 0), S::u64s::splat(simd, 1));
    let used = bits.count().clamp(1, BITS);
    let bits: [u32; BITS] = bits.padded();
    let bits = if BITS == MOST_BITS { &bits[..used] } else { &bits[..] };
    let Scratch { patterns, columns } = scratch;
    let rows = pairs.iter().map(|pair| pair.pattern.length).max().unwrap_or(0);
    let words = rows.div_ceil(WORD).max(1);
    let stride = bits.len() * lanes;
    patterns.resize(words * stride, 0);
    for (word, planes) in patterns.chunks_exact_mut(stride).enumerate() {
        T::planes(simd, pairs.iter().map(|pair| (pair.pattern.symbols, word * WORD)), bits, planes);
    }
    columns.clear();
    columns.resize(words * 2 * lanes, 0);
    for column in columns.chunks_exact_mut(2 * lanes) {
        column[..lanes].fill(u64::MAX);
    }
    let (shortest, longest) = (pairs[0].text.length, pairs[pairs.len() - 1].text.length);
    let mut ended = 0;
    let mut planes = [[0_u64; 8]; BITS];
    let planes = &mut planes.as_flattened_mut()[..stride];
    let mut behind = Behind::default();
    for from in (0..longest).step_by(WORD) {
        if let Some(cutoff) = cutoff
            && (1..shortest).contains(&from)
        {
            let (first, last) = rows_of_band(from - 1, band, words);
            if all_are_beyond(simd, columns, first..last, from, &mut behind, pairs.len(), cutoff) {
                return distances.fill(BEYOND);
            }
        }
        T::planes(simd, pairs.iter().map(|pair| (pair.text.symbols, from)), bits, planes);
        for position in from..longest.min(from + WORD) {
            let at = u32::try_from(position - from).unwrap_or(0);
            let mut texts = [zero; BITS];
            for (text, plane) in texts.iter_mut().zip(planes.chunks_exact(lanes)) {
                *text = zero - ((S::u64s::from_slice(simd, plane) >> at) & one);
            }
            let alive = if position < shortest {
                None
            } else {
                while pairs[ended].text.length <= position {
                    ended += 1;
                }
                Some(u64::alive(simd, ended))
            };
            let (first, last) = rows_of_band(position, band, words);
            let mut carry = Carry { not_increased: zero, decreased: zero };
            let patterns = patterns[first * stride..last * stride].chunks_exact(stride);
            let columns = columns[first * 2 * lanes..last * 2 * lanes].chunks_exact_mut(2 * lanes);
            for (patterns, stored) in patterns.zip(columns) {
                let mut different = zero;
                for (pattern, text) in patterns.chunks_exact(lanes).zip(&texts) {
                    different |= S::u64s::from_slice(simd, pattern) ^ *text;
                }
                let (increased, decreased) = stored.split_at_mut(lanes);
                let column = Column {
                    increased: S::u64s::from_slice(simd, increased),
                    decreased: S::u64s::from_slice(simd, decreased),
                };
                let (mut next, below) = column.next_word(!different, carry);
                carry = below;
                if let Some(alive) = alive {
                    next = next.where_set(alive, column);
                }
                next.increased.store_slice(increased);
                next.decreased.store_slice(decreased);
            }
        }
    }
    let mut sums = zero;
    for (word, column) in columns.chunks_exact(2 * lanes).enumerate() {
        let mut masks = [0; 8];
        for (mask, pair) in masks.iter_mut().zip(pairs) {
            *mask = u64::ones(pair.pattern.length.saturating_sub(word * WORD).min(WORD));
        }
        sums += stored_column(simd, column).sum(S::u64s::from_slice(simd, &masks[..lanes]));
    }
    for ((distance, pair), sum) in distances.iter_mut().zip(pairs).zip(sums.as_slice()) {
        #[expect(clippy::cast_possible_truncation, reason = "a difference of at most 2^32, modulo 2^32")]
        (*distance = super::length(pair.text.length).wrapping_add(*sum as u32));
    }
}

/// The words with the rows of a band at the column to the right of a position: from column - band to column + band.
#[inline(always)]
fn rows_of_band(position: usize, band: usize, words: usize) -> (usize, usize) {
    (position.saturating_sub(band) / WORD, (position + 1 + band).div_ceil(WORD).min(words))
}

/// One word of each lane, of a column that is stored.
#[inline(always)]
fn stored_column<S: Simd>(simd: S, column: &[u64]) -> Column<S::u64s> {
    let (increased, decreased) = column.split_at(S::u64s::LEN);
    Column { increased: S::u64s::from_slice(simd, increased), decreased: S::u64s::from_slice(simd, decreased) }
}

/// Words that the band has left behind, and the sum of their differences in each lane.
#[derive(Default)]
struct Behind {
    words: usize,
    sum: [u64; 8],
}

/// Whether all values of the band at a column are above a cutoff, in each of some lanes: whatever path it takes, a distance
/// is not less than the least of them. Of the words in `columns`, those of `band` are the band's.
#[simd]
fn all_are_beyond<S: Simd>(
    simd: S,
    columns: &[u64],
    band: Range<usize>,
    column: usize,
    behind: &mut Behind,
    pairs: usize,
    cutoff: u32,
) -> bool {
    let lanes = S::u64s::LEN;
    let all = !S::u64s::splat(simd, 0);
    let mut sum = S::u64s::from_slice(simd, &behind.sum[..lanes]);
    while behind.words < band.start {
        sum += stored_column(simd, &columns[behind.words * 2 * lanes..][..2 * lanes]).sum(all);
        behind.words += 1;
    }
    sum.store_slice(&mut behind.sum[..lanes]);
    // Kept above zero by what is added to both sides.
    let mut limits = [0; 8];
    limits[..pairs].fill(u64::from(cutoff) + 1 + WORD as u64);
    let limits = S::u64s::from_slice(simd, &limits[..lanes]);
    let mut value = sum + S::u64s::splat(simd, (column + WORD) as u64);
    for word in band {
        let word = stored_column(simd, &columns[word * 2 * lanes..][..2 * lanes]);
        // Within a word the values decrease as often as it says, at most.
        if !(value - word.decreased.count_ones()).simd_ge(limits).all_true() {
            return false;
        }
        value += word.sum(all);
    }
    true
}
