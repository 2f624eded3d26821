//! Texts side by side: a tile holds as many texts as a vector has bytes, position by position.
//!
//! ```text
//! text 0   h a l l o          position 0   h w m ..      one byte for each text
//! text 1   w o r l d     ->   position 1   a o o ..
//! text 2   m o i              position 2   l r i ..
//! ```
//!
//! The texts of a tile are sorted by their lengths, so that those which have ended are the first lanes.

use crate::data::{Symbols, Texts};
use crate::simd::blocks::zip_within_blocks;
use crate::simd::ops::prefetch;
use crate::simd::{Level, Select, Simd, SimdBase, simd};
use std::ops::Range;

/// Positions that are laid out at a time: bytes of a block, and a step of the transposition.
pub(super) const BLOCK: usize = 16;

/// What symbols are called while they are compared: numbers below 256, 0 for all that have no other.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    /// For symbols below 256.
    narrow: Box<[u8; 256]>,
    /// For all others, by open addressing: symbol and code; code 0 is a free slot.
    wide: Vec<(u32, u8)>,
    count: usize,
}

impl Codes {
    /// Codes from 1 on for these symbols, in their order; none if there are more than 255.
    pub(super) fn new(symbols: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut codes = Self { narrow: Box::new([0; 256]), wide: Vec::new(), count: 0 };
        for symbol in symbols {
            if codes.get(symbol) > 0 {
                continue;
            }
            codes.count += 1;
            let code = u8::try_from(codes.count).ok()?;
            if let Ok(narrow) = u8::try_from(symbol) {
                codes.narrow[usize::from(narrow)] = code;
                continue;
            }
            if codes.wide.is_empty() {
                codes.wide = vec![(0, 0); 1024];
            }
            let slot = codes.slot(symbol);
            codes.wide[slot] = (symbol, code);
        }
        Some(codes)
    }

    /// Codes in use, that for all other symbols included.
    pub(super) fn count(&self) -> usize {
        self.count + 1
    }

    #[inline]
    pub(super) fn get(&self, symbol: u32) -> u8 {
        match u8::try_from(symbol) {
            Ok(narrow) => self.narrow[usize::from(narrow)],
            Err(_) if self.wide.is_empty() => 0,
            Err(_) => self.wide[self.slot(symbol)].1,
        }
    }

    /// Where a symbol is, or would be: at most a quarter of the slots are taken.
    #[inline]
    fn slot(&self, symbol: u32) -> usize {
        let mut slot = (symbol.wrapping_mul(0x9E37_79B1) >> 22) as usize;
        while self.wide[slot].1 != 0 && self.wide[slot].0 != symbol {
            slot = (slot + 1) % self.wide.len();
        }
        slot
    }
}

/// A lookup of bytes in a table of 256: two vectors of it at a time, those that are all zero left out.
#[derive(Clone, Copy)]
pub(super) struct Lookup<S: Simd> {
    parts: [S::u8s; 16],
    used: [bool; 8],
}

impl<S: Simd> Lookup<S> {
    /// A table of zeros.
    #[inline(always)]
    pub(super) fn nothing(simd: S) -> Self {
        Self { parts: [S::u8s::splat(simd, 0); 16], used: [false; 8] }
    }

    #[inline(always)]
    pub(super) fn new(simd: S, table: &[u8; 256]) -> Self {
        let mut lookup = Self::nothing(simd);
        for (part, bytes) in lookup.parts.iter_mut().zip(table.chunks_exact(S::u8s::LEN)) {
            *part = S::u8s::from_slice(simd, bytes);
        }
        for (used, bytes) in lookup.used.iter_mut().zip(table.chunks_exact(2 * S::u8s::LEN)) {
            *used = bytes.iter().any(|&byte| byte != 0);
        }
        lookup
    }

    #[inline(always)]
    pub(super) fn get(&self, simd: S, bytes: S::u8s) -> S::u8s {
        let at_once = 2 * S::u8s::LEN;
        let mut found = S::u8s::splat(simd, 0);
        for pair in 0..256 / at_once {
            if self.used[pair] {
                #[expect(clippy::cast_possible_truncation, reason = "at most 7 times 32, and 128")]
                let (first, at_once) = ((pair * at_once) as u8, at_once as u8);
                let within = bytes - S::u8s::splat(simd, first);
                let here = self.parts[2 * pair].concat_swizzle_dyn(self.parts[2 * pair + 1], within);
                found = within.simd_lt(S::u8s::splat(simd, at_once)).select(here, found);
            }
        }
        found
    }
}

/// What symbols are called, ready for looking many of them up.
pub(super) struct Called<'a, S: Simd> {
    codes: &'a Codes,
    narrow: Lookup<S>,
}

impl<'a, S: Simd> Called<'a, S> {
    #[inline(always)]
    pub(super) fn new(simd: S, codes: &'a Codes) -> Self {
        Self { codes, narrow: Lookup::new(simd, &codes.narrow) }
    }
}

/// The order of some texts by length, or none where all are as long as each other: then they are in order.
pub(super) fn by_length(level: Level, texts: &Texts, range: Range<usize>) -> Option<Vec<u32>> {
    if crate::dispatch!(level, simd => are_evenly_apart(simd, &texts.offsets()[range.start..=range.end])) {
        return None;
    }
    let numbers = super::length(range.start)..super::length(range.end);
    let longest = range.clone().map(|index| texts.length(index)).max().unwrap_or(0);
    if longest > 4 * range.len() + 4096 {
        let mut order: Vec<u32> = numbers.collect();
        order.sort_by_key(|&index| texts.length(index as usize));
        return Some(order);
    }
    let mut starts = vec![0_u32; longest + 2];
    range.clone().for_each(|index| starts[texts.length(index) + 1] += 1);
    (1..starts.len()).for_each(|length| starts[length] += starts[length - 1]);
    let mut order = vec![0; range.len()];
    for (index, number) in range.zip(numbers) {
        let place = &mut starts[texts.length(index)];
        order[*place as usize] = number;
        *place += 1;
    }
    Some(order)
}

#[simd]
fn are_evenly_apart<S: Simd>(_: S, offsets: &[usize]) -> bool {
    let [first, second, ..] = *offsets else { return true };
    let mut unlike = 0;
    for ends in offsets.windows(2) {
        unlike |= (ends[1] - ends[0]) ^ (second - first);
    }
    unlike == 0
}

/// The texts of a tile: where they begin among all symbols, and their lengths.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    starts: [usize; 64],
    pub(super) lengths: [usize; 64],
}

impl Default for Tile {
    fn default() -> Self {
        Self { starts: [0; 64], lengths: [0; 64] }
    }
}

impl Tile {
    /// Neighbours in an order; past the last one, that again.
    #[inline(always)]
    pub(super) fn fill(&mut self, texts: &Texts, order: Option<&[u32]>, places: Range<usize>, lanes: usize) {
        let (starts, lengths) = (&mut self.starts[..lanes], &mut self.lengths[..lanes]);
        let count = places.len().min(lanes);
        match order {
            // All are as long as each other.
            None => {
                starts[..count].copy_from_slice(&texts.offsets()[places.start..][..count]);
                lengths.fill(texts.length(places.start));
            }
            Some(order) => {
                for ((start, length), &text) in starts.iter_mut().zip(lengths.iter_mut()).zip(&order[places]) {
                    (*start, *length) = (texts.offsets()[text as usize], texts.length(text as usize));
                }
                let last = lengths[count - 1];
                lengths[count..].fill(last);
            }
        }
        let last = starts[count - 1];
        starts[count..].fill(last);
    }

    /// Lays out positions from `from` on: `rows` has as many bytes for each of them as a vector. Past the end of a text is
    /// anything.
    #[inline(always)]
    pub(super) fn lay_out<S: Simd>(&self, simd: S, texts: &Texts, from: usize, codes: &Called<'_, S>, rows: &mut [u8]) {
        let lanes = S::u8s::LEN;
        match texts.symbols() {
            Symbols::Narrow(symbols) => {
                let mut staged = [[[0; BLOCK]; 64]; 2];
                let mut position = from;
                for rows in rows.chunks_mut(2 * lanes * BLOCK) {
                    self.stage(lanes, symbols, position, &mut staged);
                    for (staged, rows) in staged.iter().zip(rows.chunks_mut(lanes * BLOCK)) {
                        transpose(simd, staged[..lanes].as_flattened(), &codes.narrow, rows);
                    }
                    position += 2 * BLOCK;
                }
            }
            Symbols::Wide(symbols) => {
                for (lane, (&start, &length)) in self.starts[..lanes].iter().zip(&self.lengths).enumerate() {
                    let text = &symbols[start..start + length];
                    let text = text.get(from..).unwrap_or_default();
                    for (place, &symbol) in rows.iter_mut().skip(lane).step_by(lanes).zip(text) {
                        *place = codes.codes.get(symbol);
                    }
                }
            }
        }
    }

    /// Copies two blocks of each text: those of lanes 16 b + i, for all b, come together.
    #[inline(always)]
    fn stage(&self, lanes: usize, symbols: &[u8], position: usize, staged: &mut [[[u8; BLOCK]; 64]; 2]) {
        let across = lanes / BLOCK;
        let [first, second] = staged;
        for (i, (first, second)) in
            first.chunks_exact_mut(across).zip(second.chunks_exact_mut(across)).enumerate().take(BLOCK)
        {
            for (b, (first, second)) in first.iter_mut().zip(second).enumerate() {
                let lane = BLOCK * b + i;
                let start = self.starts[lane] + position;
                // Most texts lie in their order; then this is where those of the next tile are.
                prefetch(symbols, start + lanes * self.lengths[lane]);
                if let Some(symbols) = symbols.get(start..start + 2 * BLOCK) {
                    first.copy_from_slice(&symbols[..BLOCK]);
                    second.copy_from_slice(&symbols[BLOCK..]);
                } else {
                    let rest = symbols.get(start..).unwrap_or_default();
                    let (of_first, of_second) = rest.split_at(rest.len().min(BLOCK));
                    first[..of_first.len()].copy_from_slice(of_first);
                    second[..of_second.len()].copy_from_slice(of_second);
                }
            }
        }
    }
}

/// Sixteen rows of as many blocks as a vector has: bytes at the same place of all blocks of a column come together.
#[inline(always)]
fn transpose<S: Simd>(simd: S, staged: &[u8], lookup: &Lookup<S>, rows: &mut [u8]) {
    let lanes = S::u8s::LEN;
    let mut from = [S::u8s::splat(simd, 0); BLOCK];
    for (row, staged) in from.iter_mut().zip(staged.chunks_exact(lanes)) {
        *row = S::u8s::from_slice(simd, staged);
    }
    // Each round is a perfect shuffle of rows and columns; four of them exchange both.
    for _ in 0..4 {
        let mut into = from;
        for row in 0..BLOCK / 2 {
            (into[2 * row], into[2 * row + 1]) = zip_within_blocks::<S, 1>(simd, from[row], from[row + BLOCK / 2]);
        }
        from = into;
    }
    for (row, into) in from.into_iter().zip(rows.chunks_exact_mut(lanes)) {
        lookup.get(simd, row).store_slice(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[simd]
    fn laid_out<S: Simd>(simd: S, texts: &Texts, from: usize, positions: usize, codes: &Codes) -> Vec<Vec<u8>> {
        let lanes = S::u8s::LEN;
        let mut rows = vec![0; positions * lanes];
        let order: Vec<u32> = (0..lanes).map(|lane| u32::try_from(lane % texts.len()).unwrap()).collect();
        let mut tile = Tile::default();
        tile.fill(texts, Some(&order), 0..lanes, lanes);
        tile.lay_out(simd, texts, from, &Called::new(simd, codes), &mut rows);
        rows.chunks(lanes).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn each_lane_reads_its_text_downwards() {
        for wide in [0, 1_000] {
            let strings = (0..37_u32)
                .map(|i| (0..i).map(move |j| i * 100 + j + wide).map(|s| if wide == 0 { s % 256 } else { s }));
            let strings: Vec<Vec<u32>> = strings.map(Iterator::collect).collect();
            let texts: Texts = strings.iter().collect();
            let codes = Codes::new(strings.iter().flatten().copied().step_by(5)).unwrap();
            for level in Level::available() {
                for from in [0, 3, 16] {
                    let rows = crate::dispatch!(level, simd => laid_out(simd, &texts, from, 32, &codes));
                    for (position, row) in (from..).zip(rows) {
                        for (lane, found) in row.into_iter().enumerate() {
                            if let Some(&symbol) = strings[lane % 37].get(position) {
                                assert_eq!(found, codes.get(symbol), "{level}, position {position}, lane {lane}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn codes_are_told_apart_and_others_have_none() {
        let symbols: Vec<u32> = (0..200).map(|i| i * i * 77).collect();
        let codes = Codes::new(symbols.iter().copied().chain([0, 77])).unwrap();
        assert_eq!(codes.count(), 201);
        for (symbol, code) in symbols.iter().zip(1_u8..) {
            assert_eq!(codes.get(*symbol), code, "{symbol}");
        }
        assert_eq!((codes.get(1), codes.get(78), codes.get(u32::MAX)), (0, 0, 0));
        assert!(Codes::new(0..255).is_some() && Codes::new(0..256).is_none());
    }

    #[test]
    fn texts_are_ordered_by_length_and_stay_in_order_otherwise() {
        let of = |lengths: &[usize]| {
            let texts: Texts = lengths.iter().map(|&length| vec![7; length]).collect();
            by_length(Level::detect(), &texts, 0..texts.len())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3, 3, 3]), None);
        assert_eq!(of(&[3, 1, 3, 0, 1]), Some(vec![3, 1, 4, 0, 2]));
        assert_eq!(of(&[100_000, 0, 5]), Some(vec![1, 2, 0]));
    }
}
