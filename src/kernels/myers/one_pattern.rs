//! One pattern of at most a word against many texts: a text in each lane, and the pattern's words looked up by symbol.
//!
//! A symbol is a byte; the bytes of the word that says where the pattern has it come from as many tables as a word has
//! bytes, for all lanes at once, and are interleaved into words.

use super::lanes::{Column, Word, places};
use super::tile::{BLOCK, Codes, Lookup, alive, lay_out};
use crate::data::{Text, Texts};
use crate::simd::{Level, Simd, SimdBase, simd};

/// Positions that are laid out before they are used.
const AT_ONCE: usize = 16 * BLOCK;

/// A pattern, ready for comparing.
pub(super) struct Pattern {
    length: usize,
    /// Places of each code, byte by byte: 256 of the lowest byte, then those of the next.
    tables: Vec<[u8; 256]>,
    /// What its symbols are called.
    pub(super) codes: Codes,
}

impl Pattern {
    /// None for more symbols than a word has bits.
    pub(super) fn new(pattern: Text<'_>) -> Option<Self> {
        if pattern.len() > 64 {
            return None;
        }
        let codes = Codes::new(pattern.iter())?;
        let mut tables = vec![[0; 256]; pattern.len().div_ceil(8).max(1).next_power_of_two()];
        for (i, symbol) in pattern.iter().enumerate() {
            tables[i / 8][usize::from(codes.get(symbol))] |= 1 << (i % 8);
        }
        Some(Self { length: pattern.len(), tables, codes })
    }

    /// Bytes of the words it takes.
    pub(super) fn word_bytes(&self) -> usize {
        self.tables.len()
    }
}

/// A run of tiles: which texts, and where their distances go.
pub(super) struct Run<'a> {
    pub(super) texts: &'a Texts,
    /// Texts by length, or none if all are as long as each other.
    pub(super) order: Option<&'a [u32]>,
    /// The first of them, and one past the last.
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Run<'_> {
    fn text(&self, place: usize) -> usize {
        self.order.map_or(place, |order| order[place] as usize)
    }
}

/// The distances of a run of texts, in their order by length.
pub(super) fn distances(level: Level, pattern: &Pattern, run: &Run<'_>, scratch: &mut Vec<u8>, found: &mut [u32]) {
    match pattern.word_bytes() {
        1 => crate::dispatch!(level, simd => of_words::<_, u8, 4>(simd, pattern, run, scratch, found)),
        2 => crate::dispatch!(level, simd => of_words::<_, u16, 2>(simd, pattern, run, scratch, found)),
        4 => crate::dispatch!(level, simd => of_words::<_, u32, 1>(simd, pattern, run, scratch, found)),
        _ => crate::dispatch!(level, simd => of_words::<_, u64, 1>(simd, pattern, run, scratch, found)),
    }
}

#[simd]
fn of_words<S: Simd, W: Word, const TILES: usize>(
    simd: S,
    pattern: &Pattern,
    run: &Run<'_>,
    scratch: &mut Vec<u8>,
    found: &mut [u32],
) {
    let lanes = S::u8s::LEN;
    let places = places::<S, W>(simd);
    scratch.resize(TILES * AT_ONCE * lanes, 0);
    for first in (run.first..run.last).step_by(TILES * lanes) {
        let members = |tile: usize, lane: usize| run.text((first + tile * lanes + lane).min(run.last - 1));
        let longest = run.texts.length(members(TILES - 1, lanes - 1));
        let mut columns = [[Column::<W::Native<S>>::first(simd); 8]; TILES];
        let mut ended = [0; TILES];
        for from in (0..longest).step_by(AT_ONCE) {
            let until = longest.min(from + AT_ONCE);
            for (tile, rows) in scratch.chunks_exact_mut(AT_ONCE * lanes).enumerate() {
                let rows = &mut rows[..(until - from).next_multiple_of(BLOCK) * lanes];
                lay_out(simd, run.texts, |lane| members(tile, lane), from, Some(&pattern.codes), rows);
            }
            let rows: [&[u8]; TILES] = std::array::from_fn(|tile| &scratch[tile * AT_ONCE * lanes..]);
            let length = |tile, lane| run.texts.length(members(tile, lane));
            advance::<S, W, TILES>(simd, pattern, rows, from..until, length, &mut ended, &mut columns);
        }
        store::<S, W, TILES>(simd, pattern, &columns, &places, first, run, found);
    }
}

/// Columns for some positions.
#[simd]
fn advance<S: Simd, W: Word, const TILES: usize>(
    simd: S,
    pattern: &Pattern,
    rows: [&[u8]; TILES],
    positions: std::ops::Range<usize>,
    length: impl Fn(usize, usize) -> usize,
    ended: &mut [usize; TILES],
    columns: &mut [[Column<W::Native<S>>; 8]; TILES],
) {
    let lanes = S::u8s::LEN;
    let zero = S::u8s::splat(simd, 0);
    let few = pattern.codes.count() <= lanes;
    let mut tables = [zero; 8];
    for (table, bytes) in tables.iter_mut().zip(&pattern.tables) {
        *table = S::u8s::from_slice(simd, &bytes[..lanes]);
    }
    let shortest = length(0, 0);
    let count = positions.len();
    let rows: [&[u8]; TILES] = rows.map(|rows| &rows[..count * lanes]);
    for (at, position) in positions.enumerate() {
        for tile in 0..TILES {
            let codes = S::u8s::from_slice(simd, &rows[tile][at * lanes..][..lanes]);
            let mut planes = [zero; 8];
            if few {
                for byte in 0..W::BYTES {
                    planes[byte] = tables[byte].swizzle_dyn(codes);
                }
            } else {
                for byte in 0..W::BYTES {
                    planes[byte] = Lookup::new(simd, &pattern.tables[byte]).get(simd, codes);
                }
            }
            let mut equal = [W::Native::<S>::splat(simd, W::default()); 8];
            W::spread(simd, &planes[..W::BYTES], &mut equal[..W::BYTES]);
            if position < shortest {
                for vector in 0..W::BYTES {
                    columns[tile][vector] = columns[tile][vector].next(equal[vector]);
                }
                continue;
            }
            while ended[tile] < lanes && length(tile, ended[tile]) <= position {
                ended[tile] += 1;
            }
            let mut masks = equal;
            W::spread(simd, &[alive(simd, ended[tile]); 8][..W::BYTES], &mut masks[..W::BYTES]);
            for vector in 0..W::BYTES {
                let column = columns[tile][vector];
                columns[tile][vector] = column.next(equal[vector]).where_set(masks[vector], column);
            }
        }
    }
}

/// Distances from last columns.
#[inline(always)]
fn store<S: Simd, W: Word, const TILES: usize>(
    simd: S,
    pattern: &Pattern,
    columns: &[[Column<W::Native<S>>; 8]; TILES],
    places: &[u8],
    first: usize,
    run: &Run<'_>,
    found: &mut [u32],
) {
    let lanes = S::u8s::LEN;
    let mask = W::Native::<S>::splat(simd, W::ones(pattern.length));
    for (tile, columns) in columns.iter().enumerate() {
        let mut sums = [0_i8; 64];
        let mut place = places.iter();
        for column in &columns[..W::BYTES] {
            for sum in column.sum(mask).as_slice() {
                #[expect(clippy::cast_possible_truncation, reason = "at most 64 rows")]
                (sums[usize::from(*place.next().expect("a place for each word"))] = sum.signed() as i8);
            }
        }
        let start = first + tile * lanes;
        for (place, sum) in (start..run.last.min(start + lanes)).zip(sums) {
            let length = u32::try_from(run.texts.length(run.text(place))).unwrap_or(u32::MAX);
            found[place - run.first] = length.wrapping_add_signed(sum.into());
        }
    }
}
