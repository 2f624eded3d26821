//! Pairs: each lane has a pattern and a text of its own.
//!
//! Symbols are compared bit by bit. The planes of a string hold one bit of each symbol; the places of a pattern that hold
//! the text's symbol are those where no plane differs:
//!
//! ```text
//! equal = ~((pattern0 ^ text0) | (pattern1 ^ text1) | ..)      textb: all bits are bit b of the symbol
//! ```
//!
//! Only bits that are needed to tell the symbols at hand apart are compared: two for DNA, five for lower-case letters, as
//! they stand in ASCII, without renaming anything.

use super::lanes::{Carry, Column, Word};
use crate::data::{Symbols, Texts};
use crate::simd::{Level, Simd, SimdBase, SimdMask, simd};
use std::hint::select_unpredictable;

/// The most bits that a symbol has.
const MOST_BITS: usize = 32;

/// Bits of symbols that tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u32>);

impl Bits {
    /// Those that differ among the symbols of some texts, or, for more work, the fewest of them that a greedy choice finds.
    pub(super) fn of(texts: &[&Texts], fewest: bool) -> Self {
        let (mut all, mut any) = (u32::MAX, 0);
        for texts in texts.iter().filter(|texts| texts.total() > 0) {
            let (of_all, of_any) = match texts.symbols() {
                Symbols::Narrow(symbols) => {
                    let both = symbols.iter().fold((u8::MAX, 0), |(all, any), &symbol| (all & symbol, any | symbol));
                    (both.0.into(), both.1.into())
                }
                Symbols::Wide(symbols) => {
                    symbols.iter().fold((u32::MAX, 0), |(all, any), &symbol| (all & symbol, any | symbol))
                }
            };
            (all, any) = (all & of_all, any | of_any);
        }
        let mut mask = any & !all;
        if fewest {
            mask = Self::fewest(texts, mask);
        }
        Self((0..32).filter(|bit| mask >> bit & 1 == 1).collect())
    }

    /// Leaves out one bit after the other, from the highest on, as long as no two symbols become the same.
    fn fewest(texts: &[&Texts], mut mask: u32) -> u32 {
        let mut seen = vec![false; 256];
        let mut symbols = std::collections::HashSet::new();
        for texts in texts {
            match texts.symbols() {
                Symbols::Narrow(symbols) => symbols.iter().for_each(|&symbol| seen[usize::from(symbol)] = true),
                Symbols::Wide(wide) => symbols.extend(wide.iter().copied()),
            }
        }
        symbols.extend((0_u32..).zip(seen).filter(|(_, seen)| *seen).map(|(symbol, _)| symbol));
        let mut left = Vec::with_capacity(symbols.len());
        for bit in (0..32).rev().filter(|bit| mask >> bit & 1 == 1).collect::<Vec<_>>() {
            let fewer = mask & !(1 << bit);
            left.clear();
            left.extend(symbols.iter().map(|symbol| symbol & fewer));
            left.sort_unstable();
            left.dedup();
            if left.len() == symbols.len() {
                mask = fewer;
            }
        }
        mask
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    /// As many as that, the last one again and again; any, where no bit differs.
    fn padded<const BITS: usize>(&self) -> [u32; BITS] {
        let last = self.0.last().copied().unwrap_or(0);
        std::array::from_fn(|plane| self.0.get(plane).copied().unwrap_or(last))
    }
}

/// A symbol as it is stored: `u8` or `u32`.
pub(super) trait Symbol: bytemuck::Pod {
    /// Bits of a symbol that are told apart in code of their own: a few, or [`MOST_BITS`].
    const IS_NARROW: bool;

    /// Planes of one block of symbols of some strings, from symbol `from` on: for each bit, a word of each lane. Past the
    /// end of a string is anything.
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = String<'t, Self>>,
        from: usize,
        bits: &[u32],
        planes: &mut [W],
    );
}

/// A string among others: all symbols from its first one on, and how many of them are its own.
#[derive(Clone, Copy)]
pub(super) struct String<'t, T> {
    pub(super) symbols: &'t [T],
    pub(super) length: usize,
}

impl<T: Symbol> String<'_, T> {
    /// Symbols from `from` on, as far as there are any.
    #[inline(always)]
    fn copy(&self, from: usize, into: &mut [T]) {
        let symbols = self.symbols.get(from..).unwrap_or_default();
        match symbols.get(..into.len()) {
            // In pieces as large as they can be, which need no call.
            Some(symbols) if into.len().is_multiple_of(32) => copy_pieces::<T, 32>(symbols, into),
            Some(symbols) if into.len() == 16 => copy_pieces::<T, 16>(symbols, into),
            Some(symbols) => copy_pieces::<T, 8>(symbols, into),
            None => into[..symbols.len()].copy_from_slice(symbols),
        }
    }
}

#[inline(always)]
fn copy_pieces<T: Copy, const PIECE: usize>(from: &[T], into: &mut [T]) {
    for (into, from) in into.as_chunks_mut::<PIECE>().0.iter_mut().zip(from.as_chunks::<PIECE>().0) {
        *into = *from;
    }
}

impl Symbol for u8 {
    const IS_NARROW: bool = true;

    #[inline(always)]
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = String<'t, Self>>,
        from: usize,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let mut staged = [0; 64 * 8];
        let staged = &mut staged[..S::u8s::LEN * 8];
        for (into, string) in staged.chunks_exact_mut(W::BITS).zip(strings) {
            if from < string.length {
                string.copy(from, into);
            }
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(planes);
        let of_bit = bytes.len() / bits.len();
        for (at, symbols) in staged.chunks_exact(S::u8s::LEN).enumerate() {
            let symbols = S::u8s::from_slice(simd, symbols);
            for (plane, bit) in bits.iter().enumerate() {
                let set = (symbols & S::u8s::splat(simd, 1 << bit)).simd_ne(S::u8s::splat(simd, 0)).to_bitmask();
                let bytes = &mut bytes[plane * of_bit + at * S::u8s::LEN / 8..][..S::u8s::LEN / 8];
                bytes.copy_from_slice(&set.to_le_bytes()[..S::u8s::LEN / 8]);
            }
        }
    }
}

impl Symbol for u32 {
    const IS_NARROW: bool = false;

    #[inline(always)]
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = String<'t, Self>>,
        from: usize,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let lanes = W::Native::<S>::LEN;
        let mut staged = [0; 64];
        let staged = &mut staged[..W::BITS.max(S::u32s::LEN)];
        for (lane, string) in strings.enumerate().filter(|(_, string)| from < string.length) {
            string.copy(from, staged);
            for (plane, bit) in bits.iter().enumerate() {
                let mut word = 0_u64;
                for (at, symbols) in staged.chunks_exact(S::u32s::LEN).enumerate() {
                    let symbols = S::u32s::from_slice(simd, symbols);
                    let set = (symbols & S::u32s::splat(simd, 1 << bit)).simd_ne(S::u32s::splat(simd, 0)).to_bitmask();
                    word |= set << (at * S::u32s::LEN);
                }
                planes[plane * lanes + lane] = W::low(word);
            }
        }
    }
}

/// A pair to be compared: the shorter one is the pattern.
#[derive(Clone, Copy)]
pub(super) struct Pair<'t, T> {
    pub(super) pattern: String<'t, T>,
    pub(super) text: String<'t, T>,
}

impl<'t, T> Pair<'t, T> {
    #[inline(always)]
    pub(super) fn new(a: String<'t, T>, b: String<'t, T>) -> Self {
        // Which one is shorter is often as good as random: nothing to predict.
        let choose = |which: bool| String {
            symbols: select_unpredictable(which, a.symbols, b.symbols),
            length: select_unpredictable(which, a.length, b.length),
        };
        let shorter = a.length <= b.length;
        Self { pattern: choose(shorter), text: choose(!shorter) }
    }

    /// Of the lengths.
    pub(super) fn difference(&self) -> usize {
        self.text.length - self.pattern.length
    }

    /// Whether a result of a band of this half-width is the distance: a path that leaves the band goes `band` + 1 diagonals
    /// away and comes back to the last cell, each by one edit at least.
    pub(super) fn is_decided(&self, band: usize, found: u32) -> bool {
        band >= self.text.length || (found as usize).saturating_add(self.difference()) <= 2 * band + 1
    }

    /// The band that decides whether the distance is at most this.
    pub(super) fn band(&self, distance: u32) -> usize {
        (distance as usize + self.difference()).div_ceil(2)
    }
}

/// Memory that a thread keeps from batch to batch.
#[derive(Default)]
pub(super) struct Scratch {
    /// Planes of the patterns: for each block of symbols, for each bit, a word of each lane.
    patterns: Vec<u64>,
    /// Vertical differences of each word of each lane: what increased, what decreased.
    columns: Vec<u64>,
}

/// The distances of a batch of pairs, in order of the lengths of their texts, whose patterns fit into a word of `W`.
pub(super) fn of_one_word<W: Word, T: Symbol>(level: Level, pairs: &[Pair<'_, T>], bits: &Bits, distances: &mut [u32]) {
    match bits.count() {
        0..=2 if T::IS_NARROW => crate::dispatch!(level, simd => one_word::<_, W, T, 2>(simd, pairs, bits, distances)),
        0..=5 if T::IS_NARROW => crate::dispatch!(level, simd => one_word::<_, W, T, 5>(simd, pairs, bits, distances)),
        0..=8 => crate::dispatch!(level, simd => one_word::<_, W, T, 8>(simd, pairs, bits, distances)),
        _ => crate::dispatch!(level, simd => one_word::<_, W, T, MOST_BITS>(simd, pairs, bits, distances)),
    }
}

#[simd]
fn one_word<S: Simd, W: Word, T: Symbol, const BITS: usize>(
    simd: S,
    pairs: &[Pair<'_, T>],
    bits: &Bits,
    distances: &mut [u32],
) {
    let lanes = W::Native::<S>::LEN;
    let zero = W::Native::<S>::splat(simd, W::default());
    let used = bits.count().clamp(1, BITS);
    let bits: [u32; BITS] = bits.padded();
    let bits = if BITS == MOST_BITS { &bits[..used] } else { &bits[..] };
    let mut words = [[W::default(); 64]; BITS];
    let words = &mut words.as_flattened_mut()[..bits.len() * lanes];
    let (mut patterns, mut texts) = ([zero; BITS], [zero; BITS]);
    T::planes(simd, pairs.iter().map(|pair| pair.pattern), 0, bits, words);
    for (plane, words) in patterns.iter_mut().zip(words.chunks_exact(lanes)) {
        *plane = W::Native::<S>::from_slice(simd, words);
    }
    let mut masks = [W::default(); 64];
    masks[..lanes].iter_mut().zip(pairs).for_each(|(mask, pair)| *mask = W::ones(pair.pattern.length));
    let mask = W::Native::<S>::from_slice(simd, &masks[..lanes]);
    let (shortest, longest) = (pairs[0].text.length, pairs[pairs.len() - 1].text.length);
    let mut ended = 0;
    let mut column = Column::first(simd);
    for from in (0..longest).step_by(W::BITS) {
        T::planes(simd, pairs.iter().map(|pair| pair.text), from, bits, words);
        for (plane, words) in texts.iter_mut().zip(words.chunks_exact(lanes)) {
            *plane = W::Native::<S>::from_slice(simd, words);
        }
        let mut bit = W::Native::<S>::splat(simd, W::bit(0));
        for position in from..longest.min(from + W::BITS) {
            let mut different = zero;
            let planes = if BITS == MOST_BITS { used } else { BITS };
            for (pattern, text) in patterns[..planes].iter().zip(&texts) {
                let set = (*text & bit).simd_ne(zero);
                different |= W::choose::<S>(set, !*pattern, *pattern);
            }
            bit = bit + bit;
            let next = column.next(!different);
            if position < shortest {
                column = next;
                continue;
            }
            while pairs[ended].text.length <= position {
                ended += 1;
            }
            column = next.where_set(W::alive(simd, ended), column);
        }
    }
    let sums = column.sum(mask);
    for ((distance, pair), sum) in distances.iter_mut().zip(pairs).zip(sums.as_slice()) {
        *distance = super::length(pair.text.length).wrapping_add_signed(sum.signed());
    }
}

/// The distances of a batch of pairs, in order of the lengths of their texts, whose patterns take any number of words.
///
/// Only cells within `band` of the diagonal are computed, word by word (Ukkonen, *Algorithms for approximate string
/// matching*, Information and Control 64, 1985). Cells outside count as if each step led one further away, so what is
/// found is never less than the distance; [`Pair::is_decided`] says when it is the distance.
pub(super) fn of_words<T: Symbol>(
    level: Level,
    pairs: &[Pair<'_, T>],
    bits: &Bits,
    band: usize,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    match bits.count() {
        0..=2 if T::IS_NARROW => {
            crate::dispatch!(level, simd => words::<_, T, 2>(simd, pairs, bits, band, scratch, distances));
        }
        0..=5 if T::IS_NARROW => {
            crate::dispatch!(level, simd => words::<_, T, 5>(simd, pairs, bits, band, scratch, distances));
        }
        0..=8 => crate::dispatch!(level, simd => words::<_, T, 8>(simd, pairs, bits, band, scratch, distances)),
        _ => crate::dispatch!(level, simd => words::<_, T, MOST_BITS>(simd, pairs, bits, band, scratch, distances)),
    }
}

#[simd]
fn words<S: Simd, T: Symbol, const BITS: usize>(
    simd: S,
    pairs: &[Pair<'_, T>],
    bits: &Bits,
    band: usize,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    const WORD: usize = u64::BITS as usize;
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
        T::planes(simd, pairs.iter().map(|pair| pair.pattern), word * WORD, bits, planes);
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
    for from in (0..longest).step_by(WORD) {
        T::planes(simd, pairs.iter().map(|pair| pair.text), from, bits, planes);
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
            // Rows of the band at this column, the one to the right of position: from column - band to column + band.
            let first = position.saturating_sub(band) / WORD;
            let last = ((position + 1 + band).div_ceil(WORD)).min(words);
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
        let column = Column {
            increased: S::u64s::from_slice(simd, &column[..lanes]),
            decreased: S::u64s::from_slice(simd, &column[lanes..]),
        };
        sums += column.sum(S::u64s::from_slice(simd, &masks[..lanes]));
    }
    for ((distance, pair), sum) in distances.iter_mut().zip(pairs).zip(sums.as_slice()) {
        #[expect(clippy::cast_possible_truncation, reason = "a difference of at most 2^32, modulo 2^32")]
        (*distance = super::length(pair.text.length).wrapping_add(*sum as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_bits_tell_symbols_apart() {
        let of = |symbols: &[u32], fewest| Bits::of(&[&[symbols].iter().collect()], fewest).0;
        let dna: Vec<u32> = b"ACGT".map(u32::from).into();
        assert_eq!((of(&dna, false), of(&dna, true)), (vec![0, 1, 2, 4], vec![1, 2]));
        let letters: Vec<u32> = (97..123).collect();
        assert_eq!(of(&letters, false), [0, 1, 2, 3, 4]);
        assert_eq!((of(&[5], false), of(&[], true)), (vec![], vec![]));
        assert_eq!(of(&[1 << 31, 1 << 30], true), [30]);
    }
}
