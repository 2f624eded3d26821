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

use super::lanes::Word;
use crate::data::{Symbols, Texts};
use crate::simd::{Level, Simd, SimdBase, SimdMask, simd};
use std::ops::Range;

/// The most bits that a symbol has.
pub(super) const MOST_BITS: usize = 32;

/// Bits of symbols that tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u32>);

impl Bits {
    /// Those that differ among some symbols.
    pub(super) fn of<T: Symbol>(level: Level, symbols: [&[T]; 2]) -> Self {
        let (mut all, mut any) = (u32::MAX, 0);
        for symbols in symbols.into_iter().filter(|symbols| !symbols.is_empty()) {
            let (of_all, of_any) = T::all_and_any(level, symbols);
            (all, any) = (all & of_all, any | of_any);
        }
        Self::of_mask(any & !all)
    }

    fn of_mask(mask: u32) -> Self {
        Self((0..32).filter(|bit| mask >> bit & 1 == 1).collect())
    }

    /// The fewest of them that a greedy choice finds, for more work: symbols of all these texts stay apart.
    pub(super) fn fewest(self, texts: &[&Texts]) -> Self {
        let mask = self.0.into_iter().fold(0, |mask, bit| mask | 1 << bit);
        Self::of_mask(Self::fewest_of(texts, mask))
    }

    /// Leaves out one bit after the other, from the highest on, as long as no two symbols become the same.
    fn fewest_of(texts: &[&Texts], mut mask: u32) -> u32 {
        // Nearly all symbols of any text are below: a look at a place for each.
        let mut low = vec![false; 1 << 16];
        let mut symbols = std::collections::HashSet::new();
        for texts in texts {
            match texts.symbols() {
                Symbols::Narrow(narrow) => narrow.iter().for_each(|&symbol| low[usize::from(symbol)] = true),
                Symbols::Wide(wide) => {
                    for &symbol in wide {
                        match low.get_mut(symbol as usize) {
                            Some(seen) => *seen = true,
                            None => drop(symbols.insert(symbol)),
                        }
                    }
                }
            }
        }
        symbols.extend((0_u32..).zip(low).filter(|(_, seen)| *seen).map(|(symbol, _)| symbol));
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

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// As many as that, the last one again and again; any, where no bit differs.
    pub(super) fn padded<const BITS: usize>(&self) -> [u32; BITS] {
        let last = self.0.last().copied().unwrap_or(0);
        std::array::from_fn(|plane| self.0.get(plane).copied().unwrap_or(last))
    }
}

/// A symbol as it is stored: `u8` or `u32`.
pub(super) trait Symbol: bytemuck::Pod + PartialEq {
    /// Bits of a symbol that are told apart in code of their own: a few, or [`MOST_BITS`].
    const IS_NARROW: bool;

    /// Planes of symbols of some strings, as many as a word has bits, each from a place in a list on: for each bit, a word of
    /// each lane. Past the end of a string is anything.
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = (&'t [Self], usize)>,
        bits: &[u32],
        planes: &mut [W],
    );

    /// Which bits all symbols have, and which any has.
    fn all_and_any(level: Level, symbols: &[Self]) -> (u32, u32);
}

/// A string among others: all symbols from its first one on, and how many of them are its own.
#[derive(Clone, Copy)]
pub(super) struct String<'t, T> {
    pub(super) symbols: &'t [T],
    pub(super) length: usize,
}

impl<T: Symbol> String<'_, T> {
    fn own(&self) -> &[T] {
        &self.symbols[..self.length]
    }

    /// Leaves out the first ones.
    fn skip(&mut self, count: usize) {
        self.symbols = &self.symbols[count..];
        self.length -= count;
    }
}

/// Symbols from one on, as far as there are any.
#[inline(always)]
fn copy<T: Symbol>(symbols: &[T], first: usize, into: &mut [T]) {
    let Some(symbols) = symbols.get(first..) else { return };
    match symbols.get(..into.len()) {
        // In pieces as large as they can be, which need no call.
        Some(symbols) if into.len().is_multiple_of(32) => copy_pieces::<T, 32>(symbols, into),
        Some(symbols) if into.len() == 16 => copy_pieces::<T, 16>(symbols, into),
        Some(symbols) => copy_pieces::<T, 8>(symbols, into),
        None => copy_last(symbols, into),
    }
}

/// The last symbols of all. Apart, or the compiler makes this and the copies of a fixed length one, of any length: a call
/// for each string.
#[cold]
#[inline(never)]
fn copy_last<T: Copy>(from: &[T], into: &mut [T]) {
    into[..from.len()].copy_from_slice(from);
}

/// Symbols that are compared together.
const PIECE: usize = 64;

/// How many symbols both begin with.
fn shared<T: Symbol>(a: &[T], b: &[T]) -> usize {
    let pieces = a.chunks_exact(PIECE).zip(b.chunks_exact(PIECE)).take_while(|(a, b)| a == b).count() * PIECE;
    pieces + a[pieces..].iter().zip(&b[pieces..]).take_while(|(a, b)| a == b).count()
}

/// How many symbols both end with.
fn shared_at_end<T: Symbol>(a: &[T], b: &[T]) -> usize {
    let pieces = a.rchunks_exact(PIECE).zip(b.rchunks_exact(PIECE)).take_while(|(a, b)| a == b).count() * PIECE;
    let (a, b) = (&a[..a.len() - pieces], &b[..b.len() - pieces]);
    pieces + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[inline(always)]
fn copy_pieces<T: Copy, const PIECE: usize>(from: &[T], into: &mut [T]) {
    for (into, from) in into.as_chunks_mut::<PIECE>().0.iter_mut().zip(from.as_chunks::<PIECE>().0) {
        *into = *from;
    }
}

/// Which bits all symbols have, and which any has.
#[simd]
fn all_and_any<
    S: Simd,
    T: Copy
        + Into<u32>
        + From<u8>
        + std::ops::BitAnd<Output = T>
        + std::ops::BitOr<Output = T>
        + std::ops::Not<Output = T>,
>(
    _: S,
    symbols: &[T],
) -> (u32, u32) {
    let (mut all, mut any) = (!T::from(0), T::from(0));
    for &symbol in symbols {
        (all, any) = (all & symbol, any | symbol);
    }
    (all.into(), any.into())
}

impl Symbol for u8 {
    const IS_NARROW: bool = true;

    fn all_and_any(level: Level, symbols: &[Self]) -> (u32, u32) {
        crate::dispatch!(level, simd => all_and_any(simd, symbols))
    }

    #[inline(always)]
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = (&'t [Self], usize)>,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let mut staged = [0; 64 * 8];
        let staged = &mut staged[..S::u8s::LEN * 8];
        for (into, (symbols, first)) in staged.chunks_exact_mut(W::BITS).zip(strings) {
            copy(symbols, first, into);
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

    fn all_and_any(level: Level, symbols: &[Self]) -> (u32, u32) {
        crate::dispatch!(level, simd => all_and_any(simd, symbols))
    }

    #[inline(always)]
    fn planes<'t, S: Simd, W: Word>(
        simd: S,
        strings: impl Iterator<Item = (&'t [Self], usize)>,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let lanes = W::Native::<S>::LEN;
        let mut staged = [0; 64];
        let staged = &mut staged[..W::BITS.max(S::u32s::LEN)];
        for (lane, (symbols, first)) in strings.enumerate() {
            copy(symbols, first, staged);
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

impl<'t, T: Symbol> Pair<'t, T> {
    pub(super) fn new(a: String<'t, T>, b: String<'t, T>) -> Self {
        if a.length <= b.length { Self { pattern: a, text: b } } else { Self { pattern: b, text: a } }
    }

    /// Without what both begin and end with, which changes no distance.
    pub(super) fn trimmed(mut self) -> Self {
        let shared = shared(self.pattern.own(), self.text.own());
        self.pattern.skip(shared);
        self.text.skip(shared);
        let shared = shared_at_end(self.pattern.own(), self.text.own());
        self.pattern.length -= shared;
        self.text.length -= shared;
        self
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

/// Strings side by side: where each begins among all symbols, and how many are its own.
#[derive(Clone, Copy)]
pub(super) struct Strings<'t, T> {
    pub(super) symbols: &'t [T],
    pub(super) starts: &'t [usize],
    pub(super) lengths: &'t [u32],
}

impl<'t, T: Symbol> Strings<'t, T> {
    pub(super) fn get(&self, index: usize) -> String<'t, T> {
        String { symbols: &self.symbols[self.starts[index]..], length: self.lengths[index] as usize }
    }

    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self { symbols: self.symbols, starts: &self.starts[range.clone()], lengths: &self.lengths[range] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_bits_tell_symbols_apart() {
        let of = |symbols: &[u32], fewest| {
            let bits = Bits::of(Level::detect(), [symbols, &[]]);
            if fewest { bits.fewest(&[&[symbols].iter().collect()]).0 } else { bits.0 }
        };
        let dna: Vec<u32> = b"ACGT".map(u32::from).into();
        assert_eq!((of(&dna, false), of(&dna, true)), (vec![0, 1, 2, 4], vec![1, 2]));
        let letters: Vec<u32> = (97..123).collect();
        assert_eq!(of(&letters, false), [0, 1, 2, 3, 4]);
        assert_eq!((of(&[5], false), of(&[], true)), (vec![], vec![]));
        assert_eq!(of(&[1 << 31, 1 << 30], true), [30]);
        assert_eq!(of(&[5, 1 << 31, 1 << 30], true), [0, 30]);
    }

    #[test]
    fn what_both_begin_and_end_with_is_trimmed_and_nothing_twice() {
        let trimmed = |a: &str, b: &str| {
            let of = |symbols: &'static [u8]| String { symbols, length: symbols.len() };
            let leak = |string: &str| -> &'static [u8] { Box::leak(string.as_bytes().into()) };
            let pair = Pair::new(of(leak(a)), of(leak(b))).trimmed();
            [pair.pattern.own(), pair.text.own()].map(|own| std::string::String::from_utf8(own.to_vec()).unwrap())
        };
        let long = "abcdefgh".repeat(20);
        assert_eq!(trimmed(&format!("{long}x{long}"), &format!("{long}yz{long}")), ["x", "yz"]);
        assert_eq!(trimmed(&long, &long), ["", ""]);
        assert_eq!(trimmed(&long, &format!("{long}{long}")), ["", &long]);
        assert_eq!(trimmed("aa", "aaa"), ["", "a"]);
        assert_eq!(trimmed("", "ab"), ["", "ab"]);
        assert_eq!(trimmed("xab", "yab"), ["x", "y"]);
    }
}
