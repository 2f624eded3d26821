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
use crate::simd::{Select, Simd, SimdBase, simd};

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

    /// The code of every symbol below 256.
    pub(super) fn narrow(&self) -> &[u8; 256] {
        &self.narrow
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

/// A lookup of bytes in a table of 256: as few instructions as the level allows.
#[derive(Clone, Copy)]
pub(super) struct Lookup<S: Simd> {
    parts: [S::u8s; 16],
}

impl<S: Simd> Lookup<S> {
    #[inline(always)]
    pub(super) fn new(simd: S, table: &[u8; 256]) -> Self {
        let lanes = S::u8s::LEN;
        let part = |part: usize| S::u8s::from_slice(simd, &table[part % (256 / lanes) * lanes..][..lanes]);
        Self { parts: std::array::from_fn(part) }
    }

    #[inline(always)]
    pub(super) fn get(&self, simd: S, bytes: S::u8s) -> S::u8s {
        let at_once = 2 * S::u8s::LEN;
        let mut found = self.parts[0].concat_swizzle_dyn(self.parts[1], bytes);
        for pair in 1..256 / at_once {
            #[expect(clippy::cast_possible_truncation, reason = "at most 7 times 32")]
            let first = S::u8s::splat(simd, (pair * at_once) as u8);
            let here = self.parts[2 * pair].concat_swizzle_dyn(self.parts[2 * pair + 1], bytes - first);
            found = bytes.simd_ge(first).select(here, found);
        }
        found
    }
}

/// The order of texts by length, or none where all are as long as each other: then they are in order.
pub(super) fn by_length(texts: &Texts) -> Option<Vec<u32>> {
    let first = if texts.is_empty() { 0 } else { texts.length(0) };
    if (1..texts.len()).all(|index| texts.length(index) == first) {
        return None;
    }
    let longest = (0..texts.len()).map(|index| texts.length(index)).max().unwrap_or(0);
    if longest > 4 * texts.len() + 4096 {
        let mut order: Vec<u32> = (0..).take(texts.len()).collect();
        order.sort_by_key(|&index| texts.length(index as usize));
        return Some(order);
    }
    let mut starts = vec![0_u32; longest + 2];
    (0..texts.len()).for_each(|index| starts[texts.length(index) + 1] += 1);
    (1..starts.len()).for_each(|length| starts[length] += starts[length - 1]);
    let mut order = vec![0; texts.len()];
    for (index, number) in (0..texts.len()).zip(0..) {
        let place = &mut starts[texts.length(index)];
        order[*place as usize] = number;
        *place += 1;
    }
    Some(order)
}

/// Lays out positions from `from` on of the texts of a tile: `rows` has as many bytes for each of them as a vector. Past
/// the end of a text is anything.
#[simd]
pub(super) fn lay_out<S: Simd>(
    simd: S,
    texts: &Texts,
    members: impl Fn(usize) -> usize,
    from: usize,
    codes: Option<&Codes>,
    rows: &mut [u8],
) {
    let lanes = S::u8s::LEN;
    match texts.symbols() {
        Symbols::Narrow(symbols) => {
            let lookup = codes.map(|codes| Lookup::new(simd, codes.narrow()));
            let mut staged = [0; 64 * BLOCK];
            let staged = &mut staged[..lanes * BLOCK];
            for (block, rows) in rows.chunks_mut(lanes * BLOCK).enumerate() {
                let position = from + block * BLOCK;
                for lane in 0..lanes {
                    let start = texts.offsets()[members(lane)] + position;
                    // Lane 16 b + i goes to block b of row i.
                    let into = &mut staged[(lane % BLOCK * (lanes / BLOCK) + lane / BLOCK) * BLOCK..][..BLOCK];
                    match symbols.get(start..).and_then(<[u8]>::first_chunk::<BLOCK>) {
                        Some(bytes) => into.copy_from_slice(bytes),
                        None => {
                            let rest = symbols.get(start..).unwrap_or_default();
                            into[..rest.len()].copy_from_slice(rest);
                        }
                    }
                }
                transpose(simd, staged, lookup.as_ref(), rows);
            }
        }
        Symbols::Wide(symbols) => {
            let codes = codes.expect("wide symbols are given codes");
            for lane in 0..lanes {
                let index = members(lane);
                let (start, end) = (texts.offsets()[index] + from, texts.offsets()[index + 1]);
                let text = symbols.get(start..end).unwrap_or_default();
                for (place, &symbol) in rows[lane..].iter_mut().step_by(lanes).zip(text) {
                    *place = codes.get(symbol);
                }
            }
        }
    }
}

/// Sixteen rows of as many blocks as a vector has: bytes at the same place of all blocks of a column come together.
#[inline(always)]
fn transpose<S: Simd>(simd: S, staged: &[u8], lookup: Option<&Lookup<S>>, rows: &mut [u8]) {
    let lanes = S::u8s::LEN;
    let mut from: [S::u8s; BLOCK] =
        std::array::from_fn(|row| S::u8s::from_slice(simd, &staged[row * lanes..][..lanes]));
    // Each round is a perfect shuffle of rows and columns; four of them exchange both.
    for _ in 0..4 {
        let mut into = from;
        for row in 0..BLOCK / 2 {
            (into[2 * row], into[2 * row + 1]) = zip_within_blocks::<S, 1>(simd, from[row], from[row + BLOCK / 2]);
        }
        from = into;
    }
    for (row, into) in from.into_iter().zip(rows.chunks_exact_mut(lanes)) {
        lookup.map_or(row, |lookup| lookup.get(simd, row)).store_slice(into);
    }
}

/// A byte of ones in all lanes but the first `ended`.
#[inline(always)]
pub(super) fn alive<S: Simd>(simd: S, ended: usize) -> S::u8s {
    #[expect(clippy::cast_possible_truncation, reason = "a vector has at most 64 bytes")]
    let (numbers, ended) = (S::u8s::from_fn(simd, |lane| lane as u8), ended as u8);
    let zero = S::u8s::splat(simd, 0);
    numbers.simd_ge(S::u8s::splat(simd, ended)).select(!zero, zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    #[simd]
    fn laid_out<S: Simd>(simd: S, texts: &Texts, from: usize, positions: usize, codes: Option<&Codes>) -> Vec<Vec<u8>> {
        let lanes = S::u8s::LEN;
        let mut rows = vec![0; positions * lanes];
        lay_out(simd, texts, |lane| lane % texts.len(), from, codes, &mut rows);
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
                    let rows = crate::dispatch!(level, simd => laid_out(simd, &texts, from, 32, Some(&codes)));
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
        let of = |lengths: &[usize]| by_length(&lengths.iter().map(|&length| vec![7; length]).collect());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3, 3, 3]), None);
        assert_eq!(of(&[3, 1, 3, 0, 1]), Some(vec![3, 1, 4, 0, 2]));
        assert_eq!(of(&[100_000, 0, 5]), Some(vec![1, 2, 0]));
    }
}
