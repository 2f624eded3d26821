//! Pairs: each lane has a pattern and a text of its own.
//!
//! Symbols are compared bit by bit. `planes` of a string hold one bit of each symbol; a pattern's places that hold the
//! text's symbol are those where no plane differs:
//!
//! ```text
//! equal = ~((pattern0 ^ text0) | (pattern1 ^ text1) | ..)      textb: all bits are bit b of the symbol
//! ```
//!
//! Only bits that are needed to tell the symbols at hand apart are compared: two for DNA, five for lower-case letters, as
//! they stand in ASCII, without renaming anything.

use super::lanes::{Carry, Column, Word};
use crate::data::{Symbols, Text, Texts};
use crate::simd::{Level, Simd, SimdBase, SimdMask, simd};

/// The most bits that a symbol has.
const MOST_BITS: usize = 32;

/// Bits of symbols that tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u32>);

impl Bits {
    /// Those that differ among the symbols of some texts, or, for more work, the fewest of them that a greedy choice finds.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a Texts> + Clone, fewest: bool) -> Self {
        if !fewest {
            let (mut all, mut any) = (u32::MAX, 0);
            for texts in texts {
                let (of_all, of_any) = match texts.symbols() {
                    Symbols::Narrow(symbols) => {
                        let (all, any) =
                            symbols.iter().fold((u8::MAX, 0), |(all, any), &symbol| (all & symbol, any | symbol));
                        (u32::from(all), u32::from(any))
                    }
                    Symbols::Wide(symbols) => {
                        symbols.iter().fold((u32::MAX, 0), |(all, any), symbol| (all & symbol, any | symbol))
                    }
                };
                if texts.total() > 0 {
                    (all, any) = (all & of_all, any | of_any);
                }
            }
            return Self((0..32).filter(|bit| (any & !all) >> bit & 1 == 1).collect());
        }
        let mut seen = vec![false; 256];
        let mut wide = std::collections::HashSet::new();
        for texts in texts {
            match texts.symbols() {
                Symbols::Narrow(symbols) => symbols.iter().for_each(|&symbol| seen[usize::from(symbol)] = true),
                Symbols::Wide(symbols) => wide.extend(symbols.iter().copied()),
            }
        }
        wide.extend((0_u32..).zip(seen).filter(|(_, seen)| *seen).map(|(symbol, _)| symbol));
        let symbols: Vec<u32> = wide.into_iter().collect();
        let (all, any) = symbols.iter().fold((u32::MAX, 0), |(all, any), symbol| (all & symbol, any | symbol));
        let mut mask = any & !all;
        let mut projected = Vec::with_capacity(symbols.len());
        for bit in (0..32).rev() {
            let fewer = mask & !(1 << bit);
            if fewer == mask {
                continue;
            }
            projected.clear();
            projected.extend(symbols.iter().map(|symbol| symbol & fewer));
            projected.sort_unstable();
            projected.dedup();
            if projected.len() == symbols.len() {
                mask = fewer;
            }
        }
        Self((0..32).filter(|bit| mask >> bit & 1 == 1).collect())
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

/// A pair to be compared: the shorter one is the pattern.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) pattern: Text<'a>,
    pub(super) text: Text<'a>,
}

impl<'a> Pair<'a> {
    pub(super) fn new(a: Text<'a>, b: Text<'a>) -> Self {
        if a.len() <= b.len() { Self { pattern: a, text: b } } else { Self { pattern: b, text: a } }
    }

    /// Of the lengths.
    pub(super) fn difference(&self) -> usize {
        self.text.len() - self.pattern.len()
    }

    /// Whether a result of a band of this half-width is the distance: a path that leaves the band goes `band` + 1 diagonals
    /// away and comes back to the last cell, each by one edit at least.
    pub(super) fn is_decided(&self, band: usize, found: u32) -> bool {
        band >= self.text.len() || found as usize + self.difference() <= 2 * band + 1
    }

    /// The band that decides whether the distance is at most this.
    pub(super) fn band(&self, distance: u32) -> usize {
        (distance as usize + self.difference()).div_ceil(2)
    }
}

/// Memory that a thread keeps from batch to batch.
#[derive(Default)]
pub(super) struct Scratch {
    narrow: Vec<u8>,
    wide: Vec<u32>,
    /// Planes of the patterns: for each block of symbols, for each bit, a word of each lane.
    patterns: Vec<u64>,
    /// Vertical differences of each word of each lane: what increased, what decreased.
    columns: Vec<u64>,
}

impl Scratch {
    fn make_room(&mut self, symbols: usize) {
        if self.narrow.len() < symbols {
            self.narrow.resize(symbols, 0);
            self.wide.resize(64, 0);
        }
    }
}

/// Where symbols are staged, side by side.
struct Stage<'s> {
    narrow: &'s mut Vec<u8>,
    wide: &'s mut Vec<u32>,
}

impl Stage<'_> {
    /// Planes of one block of symbols of some strings, from symbol `from` on: for each bit, a word of each lane. Past the
    /// end of a string is anything.
    #[inline(always)]
    fn planes<'t, S: Simd, W: Word>(
        &mut self,
        simd: S,
        strings: impl Iterator<Item = Text<'t>>,
        is_wide: bool,
        from: usize,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let lanes = W::Native::<S>::LEN;
        if is_wide {
            return self.wide_planes(simd, strings, from, bits, planes);
        }
        let staged = &mut self.narrow[..lanes * W::BITS];
        for (into, string) in staged.chunks_exact_mut(W::BITS).zip(strings) {
            if let Text::Narrow(symbols) = string {
                let symbols = symbols.get(from..).unwrap_or_default();
                match symbols.get(..W::BITS) {
                    Some(symbols) => into.copy_from_slice(symbols),
                    None => into[..symbols.len()].copy_from_slice(symbols),
                }
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

    #[inline(always)]
    fn wide_planes<'t, S: Simd, W: Word>(
        &mut self,
        simd: S,
        strings: impl Iterator<Item = Text<'t>>,
        from: usize,
        bits: &[u32],
        planes: &mut [W],
    ) {
        let lanes = W::Native::<S>::LEN;
        let staged = &mut self.wide[..W::BITS.max(S::u32s::LEN)];
        for (lane, string) in strings.enumerate() {
            let length = string.len().saturating_sub(from).min(W::BITS);
            match string {
                Text::Narrow(symbols) => {
                    staged
                        .iter_mut()
                        .zip(&symbols[from.min(symbols.len())..][..length])
                        .for_each(|(to, &s)| *to = s.into());
                }
                Text::Wide(symbols) => staged[..length].copy_from_slice(&symbols[from.min(symbols.len())..][..length]),
            }
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

/// The distances of a batch of pairs, in order of the lengths of their texts, whose patterns fit into a word of `W`.
pub(super) fn of_one_word<W: Word>(
    level: Level,
    pairs: &[Pair<'_>],
    bits: &Bits,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    match bits.count() {
        0..=2 => crate::dispatch!(level, simd => one_word::<_, W, 2>(simd, pairs, bits, scratch, distances)),
        3..=5 => crate::dispatch!(level, simd => one_word::<_, W, 5>(simd, pairs, bits, scratch, distances)),
        6..=8 => crate::dispatch!(level, simd => one_word::<_, W, 8>(simd, pairs, bits, scratch, distances)),
        _ => crate::dispatch!(level, simd => one_word::<_, W, MOST_BITS>(simd, pairs, bits, scratch, distances)),
    }
}

#[simd]
fn one_word<S: Simd, W: Word, const BITS: usize>(
    simd: S,
    pairs: &[Pair<'_>],
    bits: &Bits,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    let lanes = W::Native::<S>::LEN;
    let zero = W::Native::<S>::splat(simd, W::default());
    let bits: [u32; BITS] = bits.padded();
    let is_wide = pairs.iter().any(|pair| matches!((pair.pattern, pair.text), (Text::Wide(_), _) | (_, Text::Wide(_))));
    scratch.make_room(lanes * W::BITS);
    let mut stage = Stage { narrow: &mut scratch.narrow, wide: &mut scratch.wide };
    let mut planes = [W::default(); MOST_BITS * 64];
    let planes = &mut planes[..BITS * lanes];
    let load = |planes: &[W]| -> [W::Native<S>; BITS] {
        std::array::from_fn(|plane| W::Native::<S>::from_slice(simd, &planes[plane * lanes..][..lanes]))
    };
    stage.planes(simd, pairs.iter().map(|pair| pair.pattern), is_wide, 0, &bits, planes);
    let patterns = load(planes);
    let mask =
        W::Native::<S>::from_fn(simd, |lane| pairs.get(lane).map_or(W::default(), |pair| W::ones(pair.pattern.len())));
    let (shortest, longest) = (pairs[0].text.len(), pairs[pairs.len() - 1].text.len());
    let mut ended = 0;
    let mut column = Column::first(simd);
    for from in (0..longest).step_by(W::BITS) {
        stage.planes(simd, pairs.iter().map(|pair| pair.text), is_wide, from, &bits, planes);
        let texts = load(planes);
        let mut bit = W::Native::<S>::splat(simd, W::bit(0));
        for position in from..longest.min(from + W::BITS) {
            let mut different = zero;
            for plane in 0..BITS {
                let set = (texts[plane] & bit).simd_ne(zero);
                different |= W::choose::<S>(set, !patterns[plane], patterns[plane]);
            }
            bit = bit + bit;
            let next = column.next(!different);
            if position < shortest {
                column = next;
                continue;
            }
            while pairs[ended].text.len() <= position {
                ended += 1;
            }
            column = next.where_set(W::alive(simd, ended), column);
        }
    }
    let sums = column.sum(mask);
    for ((distance, pair), sum) in distances.iter_mut().zip(pairs).zip(sums.as_slice()) {
        *distance = length(pair.text).wrapping_add_signed(sum.signed());
    }
}

/// The distances of a batch of pairs, in order of the lengths of their texts, whose patterns take any number of words.
///
/// Only cells within `band` of the diagonal are computed, word by word (Ukkonen, *Algorithms for approximate string
/// matching*, Information and Control 64, 1985). Cells outside count as if each step led one further away, so what is
/// found is never less than the distance; and where it is at most the band, it is the distance, whose path cannot leave it.
pub(super) fn of_words(
    level: Level,
    pairs: &[Pair<'_>],
    bits: &Bits,
    band: usize,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    match bits.count() {
        0..=2 => crate::dispatch!(level, simd => words::<_, 2>(simd, pairs, bits, band, scratch, distances)),
        3..=5 => crate::dispatch!(level, simd => words::<_, 5>(simd, pairs, bits, band, scratch, distances)),
        6..=8 => crate::dispatch!(level, simd => words::<_, 8>(simd, pairs, bits, band, scratch, distances)),
        _ => crate::dispatch!(level, simd => words::<_, MOST_BITS>(simd, pairs, bits, band, scratch, distances)),
    }
}

#[simd]
fn words<S: Simd, const BITS: usize>(
    simd: S,
    pairs: &[Pair<'_>],
    bits: &Bits,
    band: usize,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    const WORD: usize = u64::BITS as usize;
    let lanes = S::u64s::LEN;
    let (zero, one) = (S::u64s::splat(simd, 0), S::u64s::splat(simd, 1));
    let bits: [u32; BITS] = bits.padded();
    let is_wide = pairs.iter().any(|pair| matches!((pair.pattern, pair.text), (Text::Wide(_), _) | (_, Text::Wide(_))));
    scratch.make_room(lanes * WORD);
    let Scratch { narrow, wide, patterns, columns } = scratch;
    let mut stage = Stage { narrow, wide };
    let rows = pairs.iter().map(|pair| pair.pattern.len()).max().unwrap_or(0);
    let words = rows.div_ceil(WORD).max(1);
    patterns.resize(words * BITS * lanes, 0);
    for (word, planes) in patterns.chunks_exact_mut(BITS * lanes).enumerate() {
        stage.planes(simd, pairs.iter().map(|pair| pair.pattern), is_wide, word * WORD, &bits, planes);
    }
    columns.clear();
    columns.resize(words * 2 * lanes, 0);
    for column in columns.chunks_exact_mut(2 * lanes) {
        column[..lanes].fill(u64::MAX);
    }
    let (shortest, longest) = (pairs[0].text.len(), pairs[pairs.len() - 1].text.len());
    let mut ended = 0;
    let mut planes = [0_u64; MOST_BITS * 8];
    let planes = &mut planes[..BITS * lanes];
    for from in (0..longest).step_by(WORD) {
        stage.planes(simd, pairs.iter().map(|pair| pair.text), is_wide, from, &bits, planes);
        for position in from..longest.min(from + WORD) {
            let at = u32::try_from(position - from).unwrap_or(0);
            let texts: [S::u64s; BITS] = std::array::from_fn(|plane| {
                let plane = S::u64s::from_slice(simd, &planes[plane * lanes..][..lanes]);
                zero - ((plane >> at) & one)
            });
            let alive = if position < shortest {
                None
            } else {
                while pairs[ended].text.len() <= position {
                    ended += 1;
                }
                Some(u64::alive(simd, ended))
            };
            // Rows of the band at this column, the one to the right of position: from column - band to column + band.
            let first = (position + 1).saturating_sub(band + 1) / WORD;
            let last = ((position + 1 + band).div_ceil(WORD)).min(words);
            let mut carry = Carry { not_increased: zero, decreased: zero };
            let patterns = patterns[first * BITS * lanes..last * BITS * lanes].chunks_exact(BITS * lanes);
            let columns = columns[first * 2 * lanes..last * 2 * lanes].chunks_exact_mut(2 * lanes);
            for (patterns, stored) in patterns.zip(columns) {
                let mut different = zero;
                for (plane, text) in texts.iter().enumerate() {
                    different |= S::u64s::from_slice(simd, &patterns[plane * lanes..][..lanes]) ^ *text;
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
        let mask = S::u64s::from_fn(simd, |lane| {
            pairs.get(lane).map_or(0, |pair| u64::ones(pair.pattern.len().saturating_sub(word * WORD).min(WORD)))
        });
        let column = Column {
            increased: S::u64s::from_slice(simd, &column[..lanes]),
            decreased: S::u64s::from_slice(simd, &column[lanes..]),
        };
        sums += column.sum(mask);
    }
    for ((distance, pair), sum) in distances.iter_mut().zip(pairs).zip(sums.as_slice()) {
        #[expect(clippy::cast_possible_truncation, reason = "a difference of at most 2^32, modulo 2^32")]
        (*distance = length(pair.text).wrapping_add(*sum as u32));
    }
}

fn length(text: Text<'_>) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
