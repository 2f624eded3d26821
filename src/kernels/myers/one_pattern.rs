//! One pattern of at most a word against many texts: a text in each lane, and the pattern's words looked up by symbol.
//!
//! A symbol is a byte; the bytes of the word that says where the pattern has it come from as many tables as a word has
//! bytes, for all lanes at once, and are interleaved into words.

use super::lanes::{Column, LowestBytes, Word};
use super::tile::{BLOCK, Called, Codes, Lookup, Tile};
use crate::data::{Symbols, Text, Texts};
use crate::simd::{Level, Simd, SimdBase, SimdIntElement, simd};
use std::ops::Range;

/// Tiles that are read together, at most.
const MOST_TILES: usize = 4;
/// Positions that are laid out before they are used.
const AT_ONCE: usize = 16 * BLOCK;

/// A pattern, ready for comparing.
pub(super) struct Pattern {
    length: usize,
    /// Places of each code, byte by byte: 256 of the lowest byte, then those of the next.
    tables: Vec<[u8; 256]>,
    /// What its symbols are called.
    codes: Codes,
}

impl Pattern {
    /// With codes of its own; none for more symbols than a word has bits.
    pub(super) fn new(pattern: Text<'_>) -> Option<Self> {
        Self::is_short(pattern).then(|| Self::with_codes(pattern, Codes::new(pattern.iter())?)).flatten()
    }

    /// With the codes of texts that are laid out already.
    pub(super) fn with_codes(pattern: Text<'_>, codes: Codes) -> Option<Self> {
        if !Self::is_short(pattern) {
            return None;
        }
        let mut tables = vec![[0; 256]; pattern.len().div_ceil(8).max(1).next_power_of_two()];
        for (i, symbol) in pattern.iter().enumerate() {
            match codes.get(symbol) {
                0 => {}
                code => tables[i / 8][usize::from(code)] |= 1 << (i % 8),
            }
        }
        Some(Self { length: pattern.len(), tables, codes })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    fn is_short(pattern: Text<'_>) -> bool {
        pattern.len() <= 64
    }
}

/// Texts whose positions are laid out once and for all, tile after tile.
pub(super) struct LaidOut {
    /// Lanes of a tile.
    lanes: usize,
    pub(super) codes: Codes,
    rows: Vec<u8>,
    /// Where the rows of each tile begin.
    starts: Vec<usize>,
}

impl LaidOut {
    /// None where there are too many different symbols to give each a code, or where lengths differ so much that most of
    /// the rows would be empty.
    pub(super) fn new(level: Level, texts: &Texts, order: Option<&[u32]>) -> Option<Self> {
        let codes = match texts.symbols() {
            Symbols::Narrow(symbols) => Codes::new(symbols.iter().map(|&symbol| symbol.into()))?,
            Symbols::Wide(symbols) => Codes::new(symbols.iter().copied())?,
        };
        let lanes = level.bytes();
        let longest = |last: usize| {
            let last = last.min(texts.len() - 1);
            texts.length(order.map_or(last, |order| order[last] as usize))
        };
        // As long as the last of the tiles that may be read together with it.
        let bytes = |first: usize| longest(first + MOST_TILES * lanes - 1).next_multiple_of(BLOCK) * lanes;
        let firsts = || (0..texts.len()).step_by(lanes);
        let all = firsts().map(bytes).fold(0, usize::saturating_add);
        if all > 2 * texts.total() + 64 * lanes * MOST_TILES * BLOCK {
            return None;
        }
        let mut laid_out = Self { lanes, codes, rows: vec![0; all], starts: Vec::with_capacity(firsts().len()) };
        let mut tile = Tile::default();
        let mut start = 0;
        for first in firsts() {
            laid_out.starts.push(start);
            tile.fill(texts, order, first..texts.len().min(first + lanes), lanes);
            let (codes, rows) = (&laid_out.codes, &mut laid_out.rows[start..start + bytes(first)]);
            crate::dispatch!(level, simd => tile.lay_out(simd, texts, 0, &Called::new(simd, codes), rows));
            start += bytes(first);
        }
        Some(laid_out)
    }

    pub(super) fn is_for(&self, level: Level) -> bool {
        self.lanes == level.bytes()
    }
}

/// Neighbours among texts by length: which, and where their distances go.
pub(super) struct Run<'a> {
    pub(super) texts: &'a Texts,
    /// Texts by length, or none if all are as long as each other.
    pub(super) order: Option<&'a [u32]>,
    pub(super) places: Range<usize>,
    /// Their positions, if they are laid out already: from a whole tile on, with the codes of the pattern.
    pub(super) laid_out: Option<&'a LaidOut>,
}

/// The distances of a run of texts, in their order by length.
pub(super) fn distances(level: Level, pattern: &Pattern, run: &Run<'_>, scratch: &mut Vec<u8>, found: &mut [u32]) {
    macro_rules! of_words {
        ($word:ty, $vectors:literal, $tiles:literal) => {
            if pattern.codes.count() <= level.bytes() {
                crate::dispatch!(level, simd => {
                    of_words::<_, $word, $vectors, $tiles, true>(simd, pattern, run, scratch, found);
                });
            } else {
                crate::dispatch!(level, simd => {
                    of_words::<_, $word, $vectors, $tiles, false>(simd, pattern, run, scratch, found);
                });
            }
        };
    }
    // Four vectors of words at once are enough work to wait for none of them.
    match pattern.tables.len() {
        1 => of_words!(u8, 4, 4),
        2 => of_words!(u16, 4, 2),
        4 => of_words!(u32, 4, 1),
        _ => of_words!(u64, 8, 1),
    }
}

/// Vertical differences of the texts of some tiles, vector after vector.
type Columns<S, W, const VECTORS: usize> = [Column<<W as SimdIntElement>::Native<S>>; VECTORS];

#[simd]
fn of_words<S: Simd, W: Word, const VECTORS: usize, const TILES: usize, const FEW: bool>(
    simd: S,
    pattern: &Pattern,
    run: &Run<'_>,
    scratch: &mut Vec<u8>,
    found: &mut [u32],
) {
    let lanes = S::u8s::LEN;
    let lowest_bytes = LowestBytes::new::<W>(simd);
    let mask = W::Native::<S>::splat(simd, W::ones(pattern.length));
    scratch.resize(TILES * AT_ONCE * lanes, 0);
    let called = Called::new(simd, &pattern.codes);
    let mut tiles = [Tile::default(); TILES];
    for first in run.places.clone().step_by(TILES * lanes) {
        for (at, tile) in tiles.iter_mut().enumerate() {
            let start = (first + at * lanes).min(run.places.end - 1);
            tile.fill(run.texts, run.order, start..run.places.end.min(start + lanes), lanes);
        }
        let longest = tiles[TILES - 1].lengths[lanes - 1];
        let mut columns: Columns<S, W, VECTORS> = [Column::first(simd); VECTORS];
        let mut rows = [&[][..]; TILES];
        if let Some(laid_out) = run.laid_out {
            for (at, rows) in rows.iter_mut().enumerate() {
                let tile = (first / lanes + at).min(laid_out.starts.len() - 1);
                *rows = &laid_out.rows[laid_out.starts[tile]..];
            }
            advance::<S, W, VECTORS, TILES, FEW>(simd, pattern, rows, 0..longest, &tiles, &mut columns);
        } else {
            for from in (0..longest).step_by(AT_ONCE) {
                let until = longest.min(from + AT_ONCE);
                for (tile, rows) in tiles.iter().zip(scratch.chunks_exact_mut(AT_ONCE * lanes)) {
                    let rows = &mut rows[..(until - from).next_multiple_of(BLOCK) * lanes];
                    tile.lay_out(simd, run.texts, from, &called, rows);
                }
                let mut rows = rows;
                rows.iter_mut()
                    .zip(scratch.chunks_exact(AT_ONCE * lanes))
                    .for_each(|(rows, laid_out)| *rows = laid_out);
                advance::<S, W, VECTORS, TILES, FEW>(simd, pattern, rows, from..until, &tiles, &mut columns);
            }
        }
        for (at, (tile, columns)) in tiles.iter().zip(columns.chunks_exact(W::BYTES)).enumerate() {
            let mut sums = [W::Native::<S>::splat(simd, W::default()); 8];
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = column.sum(mask);
            }
            let sums = lowest_bytes.of::<W>(simd, &sums[..W::BYTES]);
            let start = (first + at * lanes).min(run.places.end);
            let found = &mut found[start - run.places.start..];
            for ((found, &length), sum) in found.iter_mut().zip(&tile.lengths[..lanes]).zip(sums.as_slice()) {
                *found = super::length(length).wrapping_add_signed(sum.cast_signed().into());
            }
        }
    }
}

/// Columns for some positions, whose rows are laid out.
#[simd]
fn advance<S: Simd, W: Word, const VECTORS: usize, const TILES: usize, const FEW: bool>(
    simd: S,
    pattern: &Pattern,
    rows: [&[u8]; TILES],
    positions: Range<usize>,
    tiles: &[Tile; TILES],
    all_columns: &mut Columns<S, W, VECTORS>,
) {
    let lanes = S::u8s::LEN;
    let tables = Tables::<S, W, FEW>::new(simd, pattern);
    // As long as no text has ended. A copy, so that it stays in registers.
    let mut columns = *all_columns;
    let shortest = tiles[0].lengths[0].clamp(positions.start, positions.end);
    for at in 0..shortest - positions.start {
        let equal = tables.places::<VECTORS, TILES>(simd, &rows, at * lanes);
        for vector in 0..VECTORS {
            columns[vector] = columns[vector].next(equal[vector]);
        }
    }
    for position in shortest..positions.end {
        let mut masks = [W::Native::<S>::splat(simd, W::default()); VECTORS];
        for tile in 0..TILES {
            let ended = tiles[tile].lengths[..lanes].partition_point(|&length| length <= position);
            W::spread(simd, &[u8::alive(simd, ended); 8], &mut masks[tile * W::BYTES..]);
        }
        let equal = tables.places::<VECTORS, TILES>(simd, &rows, (position - positions.start) * lanes);
        for vector in 0..VECTORS {
            let column = columns[vector];
            columns[vector] = column.next(equal[vector]).where_set(masks[vector], column);
        }
    }
    *all_columns = columns;
}

/// The words of a pattern in registers, as far as they fit: the places of each code, byte by byte.
struct Tables<S: Simd, W, const FEW: bool> {
    few: [S::u8s; 8],
    all: [Lookup<S>; 8],
    word: std::marker::PhantomData<W>,
}

impl<S: Simd, W: Word, const FEW: bool> Tables<S, W, FEW> {
    #[inline(always)]
    fn new(simd: S, pattern: &Pattern) -> Self {
        let (mut few, mut all) = ([S::u8s::splat(simd, 0); 8], [Lookup::<S>::nothing(simd); 8]);
        for byte in 0..W::BYTES {
            if FEW {
                few[byte] = S::u8s::from_slice(simd, &pattern.tables[byte][..S::u8s::LEN]);
            } else {
                all[byte] = Lookup::new(simd, &pattern.tables[byte]);
            }
        }
        Self { few, all, word: std::marker::PhantomData }
    }

    /// Where the pattern has the symbols of one position, whose row begins at `at` in each tile.
    #[inline(always)]
    fn places<const VECTORS: usize, const TILES: usize>(
        &self,
        simd: S,
        rows: &[&[u8]; TILES],
        at: usize,
    ) -> [W::Native<S>; VECTORS] {
        let lanes = S::u8s::LEN;
        let mut places = [W::Native::<S>::splat(simd, W::default()); VECTORS];
        for tile in 0..TILES {
            let codes = S::u8s::from_slice(simd, &rows[tile][at..][..lanes]);
            let mut planes = [codes; 8];
            #[expect(clippy::needless_range_loop, reason = "by index, the vectors stay in registers")]
            for byte in 0..W::BYTES {
                planes[byte] = if FEW { self.few[byte].swizzle_dyn(codes) } else { self.all[byte].get(simd, codes) };
            }
            W::spread(simd, &planes, &mut places[tile * W::BYTES..]);
        }
        places
    }
}
