//! Many patterns against each of many texts: a pattern of at most a word in each lane, and the text's symbols shared.
//!
//! A table says for every symbol of the patterns in which places each of them has it; one load finds that for all lanes.
//! Texts come in order, so that what one begins with like the text before has been computed already.

use super::lanes::{Column, Word};
use super::sums::Out;
use crate::data::{Symbols, Text, Texts};
use crate::simd::{Simd, SimdBase, simd};
use std::ops::Range;

/// What the symbols of two lists are called: numbers from 0 on.
pub(super) struct Numbered {
    numbers: Vec<u32>,
    offsets: Vec<usize>,
}

impl Numbered {
    fn get(&self, index: usize) -> &[u32] {
        &self.numbers[self.offsets[index]..self.offsets[index + 1]]
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// Numbers for symbols: themselves if all are bytes, else as they come.
pub(super) struct Alphabet {
    /// Of symbols that are small; empty if all symbols are bytes.
    narrow: Vec<u32>,
    wide: std::collections::HashMap<u32, u32>,
    count: u32,
}

impl Alphabet {
    /// For the symbols of two lists.
    pub(super) fn of(left: &Texts, right: &Texts) -> Self {
        let are_bytes = matches!((left.symbols(), right.symbols()), (Symbols::Narrow(_), Symbols::Narrow(_)));
        let (narrow, count) = if are_bytes { (Vec::new(), 256) } else { (vec![u32::MAX; 65_536], 0) };
        Self { narrow, wide: std::collections::HashMap::new(), count }
    }

    /// Numbers the symbols of some texts.
    pub(super) fn number(&mut self, texts: &Texts, indices: impl ExactSizeIterator<Item = usize>) -> Numbered {
        let mut numbers = Vec::new();
        let mut offsets = Vec::with_capacity(indices.len() + 1);
        offsets.push(0);
        for index in indices {
            match texts.get(index) {
                Text::Narrow(symbols) if self.narrow.is_empty() => {
                    numbers.extend(symbols.iter().map(|&symbol| u32::from(symbol)));
                }
                Text::Narrow(symbols) => numbers.extend(symbols.iter().map(|&symbol| self.of_symbol(symbol.into()))),
                Text::Wide(symbols) => numbers.extend(symbols.iter().map(|&symbol| self.of_symbol(symbol))),
            }
            offsets.push(numbers.len());
        }
        Numbered { numbers, offsets }
    }

    #[inline]
    fn of_symbol(&mut self, symbol: u32) -> u32 {
        let Some(number) = self.narrow.get_mut(symbol as usize) else {
            return *self.wide.entry(symbol).or_insert_with(|| {
                self.count += 1;
                self.count - 1
            });
        };
        if *number == u32::MAX {
            *number = self.count;
            self.count += 1;
        }
        *number
    }

    /// All numbers are below.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }
}

/// Texts, by number, in an order in which neighbours begin alike.
pub(super) fn in_order(texts: &Texts, range: Range<usize>) -> Vec<u32> {
    /// Numbers are sorted with what is behind them, in one word: as many bits as they need.
    const NUMBERS: u32 = 24;
    /// The lowest bits of the first symbols, as many as a word holds.
    fn beginning<T: Copy + Into<u64>>(symbols: &[T], bits: u32) -> u64 {
        let of_symbol =
            |(&symbol, place): (&T, u32)| (symbol.into() & ((1 << bits) - 1)) << (64 - bits) >> (place * bits);
        symbols.iter().zip(0..64 / bits).map(of_symbol).fold(0, |beginning, symbol| beginning | symbol)
    }
    let mut order = Vec::with_capacity(range.len());
    for first in range.clone().step_by(1 << NUMBERS) {
        let numbers = first..range.end.min(first + (1 << NUMBERS));
        let with_number = |index: usize| {
            let beginning = match texts.get(index) {
                Text::Narrow(symbols) => beginning(symbols, 8),
                Text::Wide(symbols) => beginning(symbols, 16),
            };
            beginning >> NUMBERS << NUMBERS | (index - first) as u64
        };
        let mut sorted: Vec<u64> = numbers.map(with_number).collect();
        sorted.sort_unstable();
        order.extend(sorted.into_iter().map(|sorted| super::length(first + (sorted & ((1 << NUMBERS) - 1)) as usize)));
    }
    order
}

/// Texts of which each is known to begin like the one before.
pub(super) struct Ordered {
    texts: Numbered,
    /// How many symbols each text shares with the one before, as far as that is kept; and none after the last.
    shared: Vec<usize>,
}

impl Ordered {
    /// Columns that are kept at most.
    const KEPT: usize = 64;

    pub(super) fn new(texts: Numbered) -> Self {
        let common = |a: &[u32], b: &[u32]| a.iter().zip(b).take(Self::KEPT).take_while(|(a, b)| a == b).count();
        let between = |index: usize| {
            if index == 0 || index == texts.len() { 0 } else { common(texts.get(index - 1), texts.get(index)) }
        };
        let shared = (0..=texts.len()).map(between).collect();
        Self { texts, shared }
    }
}

/// What a thread keeps from group to group.
pub(super) struct Scratch<S: Simd, W: Word> {
    /// For each number: where its row in the table of places begins; the first row is of symbols that no pattern has.
    rows: Vec<u32>,
    /// Rows of the words of all lanes.
    places: Vec<W>,
    /// Columns of what the text before begins with.
    kept: Vec<Column<W::Native<S>>>,
}

impl<S: Simd, W: Word> Scratch<S, W> {
    #[inline(always)]
    pub(super) fn new(simd: S, alphabet: &Alphabet) -> Self {
        let kept = vec![Column::first(simd); VECTORS * (Ordered::KEPT + 1)];
        Self { rows: vec![0; alphabet.count()], places: Vec::new(), kept }
    }

    /// The table of some patterns, and the bits that each of them has.
    #[inline(always)]
    fn tabulate(&mut self, patterns: &Numbered, members: &[u32], width: usize, masks: &mut [W]) {
        let Self { rows, places, .. } = self;
        rows.fill(0);
        places.clear();
        places.resize(width, W::default());
        for (lane, &member) in members.iter().enumerate() {
            let pattern = patterns.get(member as usize);
            masks[lane] = W::ones(pattern.len());
            for (i, &number) in pattern.iter().enumerate() {
                let row = &mut rows[number as usize];
                if *row == 0 {
                    *row = super::length(places.len());
                    places.resize(places.len() + width, W::default());
                }
                places[*row as usize + lane] |= W::bit(i);
            }
        }
    }
}

/// Words of three vectors at once are enough work to wait for none of them.
pub(super) const VECTORS: usize = 3;

/// The differences of a group of patterns from all texts: what is to be added to the length of the text.
#[simd]
pub(super) fn differences<S: Simd, W: Word, const VECTORS: usize>(
    simd: S,
    patterns: &Numbered,
    members: &[u32],
    texts: &Ordered,
    scratch: &mut Scratch<S, W>,
    out: &mut Out<'_>,
) {
    let lanes = W::Native::<S>::LEN;
    let mut masks = [W::default(); 64 * self::VECTORS];
    scratch.tabulate(patterns, members, VECTORS * lanes, &mut masks);
    let mask: [W::Native<S>; VECTORS] =
        std::array::from_fn(|vector| W::Native::<S>::from_slice(simd, &masks[vector * lanes..][..lanes]));
    let Scratch { rows, places, kept } = scratch;
    let (kept, _) = kept.as_chunks_mut::<VECTORS>();
    kept[0] = [Column::first(simd); VECTORS];
    let of_symbol = |&number: &u32| &places[rows[number as usize] as usize..][..VECTORS * lanes];
    let mut words = [W::default(); 64 * self::VECTORS];
    for index in 0..texts.texts.len() {
        let text = texts.texts.get(index);
        let (known, wanted) = (texts.shared[index], texts.shared[index + 1].max(texts.shared[index]));
        let mut columns = kept[known];
        for (number, kept) in text[known..wanted].iter().zip(&mut kept[known + 1..]) {
            columns = next(simd, columns, of_symbol(number));
            *kept = columns;
        }
        for number in &text[wanted..] {
            columns = next(simd, columns, of_symbol(number));
        }
        for vector in 0..VECTORS {
            columns[vector].sum(mask[vector]).store_slice(&mut words[vector * lanes..][..lanes]);
        }
        for (byte, word) in out.of(index, VECTORS * lanes).iter_mut().zip(&words[..VECTORS * lanes]) {
            *byte = word.byte();
        }
    }
    out.skip(VECTORS * lanes);
}

/// The next columns, given the places of the symbol in each pattern.
#[inline(always)]
fn next<S: Simd, W: Word, const VECTORS: usize>(
    simd: S,
    mut columns: [Column<W::Native<S>>; VECTORS],
    places: &[W],
) -> [Column<W::Native<S>>; VECTORS] {
    let lanes = W::Native::<S>::LEN;
    for vector in 0..VECTORS {
        let equal = W::Native::<S>::from_slice(simd, &places[vector * lanes..][..lanes]);
        columns[vector] = columns[vector].next(equal);
    }
    columns
}
