//! Many patterns against each of many texts: a pattern of at most a word in each lane, and the text's symbols shared.
//!
//! A table says for every symbol of the patterns in which places each of them has it; one load finds that for all lanes.

use super::lanes::{Column, Word};
use crate::data::{Text, Texts};
use crate::simd::{Simd, SimdBase, simd};

/// What the symbols of two lists are called: numbers from 0 on, without gaps.
pub(super) struct Numbered {
    numbers: Vec<u32>,
    offsets: Vec<usize>,
}

impl Numbered {
    fn get(&self, index: usize) -> &[u32] {
        &self.numbers[self.offsets[index]..self.offsets[index + 1]]
    }
}

/// Numbers for symbols, as they come.
#[derive(Default)]
pub(super) struct Alphabet {
    narrow: Vec<u32>,
    wide: std::collections::HashMap<u32, u32>,
    count: u32,
}

impl Alphabet {
    /// Numbers the symbols of some texts.
    pub(super) fn number(&mut self, texts: &Texts, range: std::ops::Range<usize>) -> Numbered {
        self.narrow.resize(65_536, u32::MAX);
        let mut numbers = Vec::with_capacity(texts.offsets()[range.end] - texts.offsets()[range.start]);
        let mut offsets = Vec::with_capacity(range.len() + 1);
        offsets.push(0);
        for index in range {
            match texts.get(index) {
                Text::Narrow(symbols) => numbers.extend(symbols.iter().map(|&symbol| self.of(symbol.into()))),
                Text::Wide(symbols) => numbers.extend(symbols.iter().map(|&symbol| self.of(symbol))),
            }
            offsets.push(numbers.len());
        }
        Numbered { numbers, offsets }
    }

    #[inline]
    fn of(&mut self, symbol: u32) -> u32 {
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

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }
}

/// What a thread keeps from group to group.
pub(super) struct Scratch<W> {
    /// For each number: its row in the table of places; row 0 is of symbols that no pattern has.
    rows: Vec<u32>,
    /// Rows of the words of all lanes.
    places: Vec<W>,
}

impl<W: Word> Scratch<W> {
    pub(super) fn new(alphabet: &Alphabet) -> Self {
        Self { rows: vec![0; alphabet.count()], places: Vec::new() }
    }
}

/// Words of three vectors at once are enough work to wait for none of them.
pub(super) const VECTORS: usize = 3;

/// Patterns of a group.
#[simd]
pub(super) fn group<S: Simd, W: Word>(_: S) -> usize {
    VECTORS * W::Native::<S>::LEN
}

/// The distances of a group of patterns to some texts: `found(text, differences)` gets, for each lane, what is to be added
/// to the length of the text.
#[simd]
pub(super) fn distances<S: Simd, W: Word>(
    simd: S,
    patterns: &Numbered,
    members: &[u32],
    texts: &Numbered,
    range: std::ops::Range<usize>,
    scratch: &mut Scratch<W>,
    mut found: impl FnMut(usize, &[W]),
) {
    let lanes = W::Native::<S>::LEN;
    let width = VECTORS * lanes;
    let Scratch { rows, places } = scratch;
    // The table.
    places.clear();
    places.resize(width, W::default());
    let mut masks = vec![W::default(); width];
    for (lane, &member) in members.iter().enumerate() {
        let pattern = patterns.get(member as usize);
        masks[lane] = W::ones(pattern.len());
        for (i, &number) in pattern.iter().enumerate() {
            let row = &mut rows[number as usize];
            if *row == 0 {
                *row = u32::try_from(places.len() / width).unwrap_or(u32::MAX);
                places.resize(places.len() + width, W::default());
            }
            places[*row as usize * width + lane] |= W::bit(i);
        }
    }
    let mask: [W::Native<S>; VECTORS] =
        std::array::from_fn(|vector| W::Native::<S>::from_slice(simd, &masks[vector * lanes..][..lanes]));
    let mut sums = vec![W::default(); width];
    for text in range {
        let mut columns = [Column::<W::Native<S>>::first(simd); VECTORS];
        for &number in texts.get(text) {
            let places = &places[rows[number as usize] as usize * width..][..width];
            for vector in 0..VECTORS {
                let equal = W::Native::<S>::from_slice(simd, &places[vector * lanes..][..lanes]);
                columns[vector] = columns[vector].next(equal);
            }
        }
        for vector in 0..VECTORS {
            columns[vector].sum(mask[vector]).store_slice(&mut sums[vector * lanes..][..lanes]);
        }
        found(text, &sums[..members.len()]);
    }
    for &member in members {
        for &number in patterns.get(member as usize) {
            rows[number as usize] = 0;
        }
    }
}
