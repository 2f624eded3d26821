//! Many patterns against each of many texts: a pattern of at most a word in each lane, and the text's symbols shared.
//!
//! A table says for every symbol of the patterns in which places each of them has it; one load finds that for all lanes. It is
//! made when it is first needed, for all texts if they are many. Texts come in order, so that what one begins with like
//! the text before has been computed already.

use super::lanes::{Column, Word};
use super::sums::Out;
use crate::data::{Symbols, Text, Texts};
use crate::simd::ops::LINE;
use crate::simd::{Level, Simd, SimdBase, simd};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// What the symbols of patterns are called: numbers from 0 on.
pub(super) enum Alphabet {
    /// All are below 256: their own numbers.
    Narrow,
    /// In the order in which they come, from 1 on: of those below 65,536, and of all others.
    Wide { low: Vec<u32>, high: HashMap<u32, u32>, count: u32 },
}

impl Alphabet {
    /// For the symbols of some texts.
    pub(super) fn of(texts: &Texts, indices: Range<usize>) -> Self {
        let Symbols::Wide(symbols) = texts.symbols() else { return Self::Narrow };
        let (mut low, mut high, mut count) = (vec![0; 65_536], HashMap::new(), 0);
        for &symbol in &symbols[texts.offsets()[indices.start]..texts.offsets()[indices.end]] {
            let number = match low.get_mut(symbol as usize) {
                Some(number) => number,
                None => high.entry(symbol).or_default(),
            };
            if *number == 0 {
                count += 1;
                *number = count;
            }
        }
        Self::Wide { low, high, count }
    }

    /// The number of a symbol. All that have none share one that no pattern has.
    #[inline(always)]
    fn number(&self, symbol: u32) -> u32 {
        match self {
            Self::Narrow => symbol.min(256),
            Self::Wide { low, high, .. } => {
                low.get(symbol as usize).copied().unwrap_or_else(|| high.get(&symbol).copied().unwrap_or(0))
            }
        }
    }

    /// All numbers are below.
    fn count(&self) -> usize {
        match self {
            Self::Narrow => 257,
            Self::Wide { count, .. } => *count as usize + 1,
        }
    }

    fn numbers(&self, text: Text<'_>, mut each: impl FnMut(u32)) {
        match text {
            Text::Narrow(symbols) => symbols.iter().for_each(|&symbol| each(self.number(symbol.into()))),
            Text::Wide(symbols) => symbols.iter().for_each(|&symbol| each(self.number(symbol))),
        }
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

/// Texts, their symbols by number, of which each is known to begin like the one before.
pub(super) struct Ordered {
    numbers: Vec<u32>,
    offsets: Vec<usize>,
    /// How many symbols each text shares with the one before, as far as that is kept; and none after the last.
    shared: Vec<usize>,
}

impl Ordered {
    /// Columns that are kept at most.
    const KEPT: usize = 64;

    pub(super) fn new(alphabet: &Alphabet, texts: &Texts, indices: impl ExactSizeIterator<Item = usize>) -> Self {
        let common = |a: &[u32], b: &[u32]| a.iter().zip(b).take(Self::KEPT).take_while(|(a, b)| a == b).count();
        let (mut numbers, mut offsets, mut shared) = (Vec::new(), vec![0], Vec::with_capacity(indices.len() + 1));
        let mut before = 0;
        for index in indices {
            let start = numbers.len();
            alphabet.numbers(texts.get(index), |number| numbers.push(number));
            offsets.push(numbers.len());
            let (earlier, text) = numbers.split_at(start);
            shared.push(common(&earlier[before..], text));
            before = start;
        }
        shared.push(0);
        Self { numbers, offsets, shared }
    }

    fn get(&self, index: usize) -> &[u32] {
        &self.numbers[self.offsets[index]..self.offsets[index + 1]]
    }
}

/// Words of three vectors at once are enough work to wait for none of them.
const VECTORS: usize = 3;

/// Patterns that fit into a word, in groups of a few vectors each.
pub(super) struct Patterns<W> {
    members: Vec<u32>,
    lanes: usize,
    groups: usize,
    /// One for each group, or none if each call makes its own.
    tables: Vec<OnceLock<Table<W>>>,
}

/// A list that patterns come from: those from `first` on, by number.
pub(super) struct ListOfPatterns<'a> {
    pub(super) texts: &'a Texts,
    pub(super) first: usize,
    pub(super) alphabet: &'a Alphabet,
}

/// The table of a group.
#[derive(Default)]
pub(super) struct Table<W> {
    /// For each number: where its row begins; the first row is of symbols that no pattern of the group has.
    rows: Vec<u32>,
    /// Rows of the words of all lanes.
    places: Vec<W>,
    /// The bits that each pattern has.
    masks: Vec<W>,
}

impl<W: Word> Patterns<W> {
    /// Patterns by number. Tables that are shared are made once, and are all there until the end; others are made for each
    /// call, one after the other in the same place.
    pub(super) fn new(level: Level, members: Vec<u32>, is_shared: bool) -> Self {
        let lanes = level.bytes() / W::BYTES;
        let groups = members.len().div_ceil(lanes).div_ceil(VECTORS);
        let tables = (0..if is_shared { groups } else { 0 }).map(|_| OnceLock::new()).collect();
        Self { members, lanes, groups, tables }
    }

    /// The vectors of a group: as even as can be, for one vector by itself waits for itself.
    fn vectors(&self, group: usize) -> Range<usize> {
        let vectors = self.members.len().div_ceil(self.lanes);
        group * vectors / self.groups..(group + 1) * vectors / self.groups
    }

    fn table<'t>(&'t self, group: usize, list: &ListOfPatterns<'_>, own: &'t mut Table<W>) -> &'t Table<W> {
        let vectors = self.vectors(group);
        let members = &self.members[vectors.start * self.lanes..self.members.len().min(vectors.end * self.lanes)];
        let patterns = members.iter().map(|&member| list.texts.get(list.first + member as usize));
        let width = vectors.len() * self.lanes;
        let Some(shared) = self.tables.get(group) else {
            own.fill(width, list.alphabet, patterns);
            return own;
        };
        shared.get_or_init(|| {
            let mut table = Table::default();
            table.fill(width, list.alphabet, patterns);
            table
        })
    }

    /// The differences of all patterns from some texts: what is to be added to the length of the text. `turn` says which group
    /// comes first, so that threads that begin together do not wait for each other's tables; `own` is where tables are
    /// made that are not shared.
    pub(super) fn differences(
        &self,
        level: Level,
        list: &ListOfPatterns<'_>,
        texts: &Ordered,
        turn: usize,
        own: &mut Table<W>,
        out: &mut Out<'_>,
    ) {
        if !self.members.is_empty() {
            crate::dispatch!(level, simd => of_groups(simd, self, list, texts, turn, own, out));
        }
    }
}

#[simd]
fn of_groups<S: Simd, W: Word>(
    simd: S,
    patterns: &Patterns<W>,
    list: &ListOfPatterns<'_>,
    texts: &Ordered,
    turn: usize,
    own: &mut Table<W>,
    out: &mut Out<'_>,
) {
    let mut kept = vec![Column::first(simd); VECTORS * (Ordered::KEPT + 1)];
    let groups = patterns.groups;
    for group in 0..groups {
        let group = (group + turn * (5 * groups / 8).max(1)) % groups;
        let table = patterns.table(group, list, own);
        let vectors = patterns.vectors(group);
        let member = vectors.start * patterns.lanes;
        match vectors.len() {
            1 => differences::<S, W, 1>(simd, table, texts, &mut kept, member, out),
            2 => differences::<S, W, 2>(simd, table, texts, &mut kept, member, out),
            _ => differences::<S, W, VECTORS>(simd, table, texts, &mut kept, member, out),
        }
    }
}

impl<W: Word> Table<W> {
    fn fill<'t>(&mut self, width: usize, alphabet: &Alphabet, patterns: impl Iterator<Item = Text<'t>> + Clone) {
        let Self { rows, places, masks } = self;
        // Rows begin at cache lines, so that a vector is read from one of them: nothing may move while they are added. Each
        // is cleared when it is needed, and near then.
        let most = patterns.clone().map(|pattern| pattern.len()).sum::<usize>().min(alphabet.count()) + 1;
        places.clear();
        places.reserve(most * width + LINE);
        let nowhere = places.as_ptr().align_offset(LINE).min(LINE);
        places.resize(nowhere + width, W::default());
        rows.clear();
        rows.resize(alphabet.count(), super::length(nowhere));
        masks.clear();
        masks.resize(width, W::default());
        for (lane, pattern) in patterns.enumerate() {
            masks[lane] = W::ones(pattern.len());
            let mut place = 0;
            alphabet.numbers(pattern, |number| {
                let row = &mut rows[number as usize];
                if *row as usize == nowhere {
                    *row = super::length(places.len());
                    places.resize(places.len() + width, W::default());
                }
                places[*row as usize + lane] |= W::bit(place);
                place += 1;
            });
        }
    }
}

/// The differences of a group of patterns from all texts.
#[simd]
fn differences<S: Simd, W: Word, const VECTORS: usize>(
    simd: S,
    table: &Table<W>,
    texts: &Ordered,
    kept: &mut [Column<W::Native<S>>],
    member: usize,
    out: &mut Out<'_>,
) {
    let lanes = W::Native::<S>::LEN;
    let Table { rows, places, masks } = table;
    let mask: [W::Native<S>; VECTORS] =
        std::array::from_fn(|vector| W::Native::<S>::from_slice(simd, &masks[vector * lanes..][..lanes]));
    let (kept, _) = kept.as_chunks_mut::<VECTORS>();
    kept[0] = [Column::first(simd); VECTORS];
    let of_symbol = |&number: &u32| &places[rows[number as usize] as usize..][..VECTORS * lanes];
    let mut words = [W::default(); 64 * self::VECTORS];
    for index in 0..texts.offsets.len() - 1 {
        let text = texts.get(index);
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
        for (byte, word) in out.of(index, member, VECTORS * lanes).iter_mut().zip(&words[..VECTORS * lanes]) {
            *byte = word.byte();
        }
    }
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
