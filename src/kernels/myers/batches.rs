//! Pairs in batches: which of them are compared side by side, and how often.

use super::lanes::Word;
use super::long_pairs::{Scratch, of_words};
use super::pairs::{Bits, Pair, Pairs, Symbol, of_one_word};
use super::{BEYOND, cut, length};
use crate::simd::Level;

/// Patterns of up to 8, 16, 32 and 64 symbols, longer ones, and pairs whose lengths say it all.
const CLASSES: usize = 6;
/// The class of longer patterns.
const LONG: usize = 4;
/// The class of pairs that need not be compared.
const DECIDED: usize = 5;
/// Texts from here on are sorted apart.
const SHORT: usize = 128;

/// The class of a pattern: the place of the narrowest word that holds it, or [`LONG`].
pub(super) fn class(length: usize) -> usize {
    const CLASS: [u8; 65] = {
        let mut classes = [0; 65];
        let mut length = 9;
        while length <= 64 {
            classes[length] = 1 + (length > 16) as u8 + (length > 32) as u8;
            length += 1;
        }
        classes
    };
    CLASS.get(length).map_or(LONG, |&class| class.into())
}

/// The distances of some pairs, as many as there are places.
pub(super) fn distances<T: Symbol>(
    level: Level,
    pairs: &Pairs<'_, T, impl Fn(usize) -> (usize, usize)>,
    bits: &Bits,
    cutoff: Option<u32>,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    let order = in_order(distances.len(), |index| {
        let pair = pairs.get(index);
        let is_decided = pair.pattern.length == 0 || cutoff.is_some_and(|cutoff| pair.difference() > cutoff as usize);
        let class = if is_decided { DECIDED } else { class(pair.pattern.length) };
        class * SHORT + pair.text.length.min(SHORT - 1)
    });
    let Order { mut order, ends } = order;
    let mut batches = Batches { level, bits, cutoff, distances };
    for class in 0..CLASSES {
        let (start, end) = (ends[class * SHORT] as usize, ends[(class + 1) * SHORT] as usize);
        let longer = ends[(class + 1) * SHORT - 1] as usize;
        if class < LONG {
            order[longer..end].sort_by_key(|&index| pairs.get(index).text.length);
        }
        let members = &order[start..end];
        match class {
            0 => batches.of_one_word::<u8, T>(members, pairs),
            1 => batches.of_one_word::<u16, T>(members, pairs),
            2 => batches.of_one_word::<u32, T>(members, pairs),
            3 => batches.of_one_word::<u64, T>(members, pairs),
            LONG => batches.of_long(members.iter().map(|&index| (index, pairs.get(index))), scratch),
            _ => members.iter().for_each(|&index| batches.put(index, of_lengths(&pairs.get(index)))),
        }
    }
}

/// The distance from an empty pattern, or else one that is beyond.
fn of_lengths<T: Symbol>(pair: &Pair<'_, T>) -> u32 {
    if pair.pattern.length == 0 { length(pair.text.length) } else { BEYOND }
}

/// Patterns from here on are worth a look at what both begin and end with, which takes some 45 nanoseconds.
const TRIMMED: usize = 256;
/// What the first band adds to the difference of the lengths.
const NARROW: usize = 32;

/// Numbers of pairs, by class and then by the length of the text, as far as it is short.
struct Order {
    order: Vec<u32>,
    /// Where the pairs of each key begin, and where the last ones end.
    ends: [u32; CLASSES * SHORT + 1],
}

/// Sorts by counting. The two halves are counted apart: pairs of one kind follow each other, and a counter that has just
/// been written is slow to read.
fn in_order(count: usize, key: impl Fn(u32) -> usize) -> Order {
    let half = count / 2;
    let mut keys = vec![0_u16; count];
    let mut counts = [[0_u32; CLASSES * SHORT]; 2];
    let (first, second) = keys.split_at_mut(half);
    for (index, of_second) in second.iter_mut().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 6 times 128")]
        let mut counted = |index: usize, part: usize| {
            let key = key(length(index));
            counts[part][key] += 1;
            key as u16
        };
        if let Some(of_first) = first.get_mut(index) {
            *of_first = counted(index, 0);
        }
        *of_second = counted(half + index, 1);
    }
    let mut ends = [0_u32; CLASSES * SHORT + 1];
    let [of_first, of_second] = &mut counts;
    for (key, (of_first, of_second)) in of_first.iter_mut().zip(of_second).enumerate() {
        let start = ends[key];
        ends[key + 1] = start + *of_first + *of_second;
        (*of_first, *of_second) = (start, start + *of_first);
    }
    let mut order = vec![0_u32; count];
    let (first, second) = keys.split_at(half);
    for (number, &of_second) in (0_u32..).zip(second) {
        let mut put = |key: u16, part: usize, number: u32| {
            let place = &mut counts[part][usize::from(key)];
            order[*place as usize] = number;
            *place += 1;
        };
        if let Some(&of_first) = first.get(number as usize) {
            put(of_first, 0, number);
        }
        put(of_second, 1, number + super::length(half));
    }
    Order { order, ends }
}

/// The distances of one task.
struct Batches<'a> {
    level: Level,
    bits: &'a Bits,
    cutoff: Option<u32>,
    distances: &'a mut [u32],
}

impl Batches<'_> {
    fn put(&mut self, index: u32, distance: u32) {
        self.distances[index as usize] = cut(distance, self.cutoff);
    }

    /// Members in order of the lengths of their texts.
    fn of_one_word<W: Word, T: Symbol>(
        &mut self,
        members: &[u32],
        pairs: &Pairs<'_, T, impl Fn(usize) -> (usize, usize)>,
    ) {
        let mut found = [0; 64];
        let mut batch = Vec::with_capacity(64);
        for members in members.chunks(self.level.bytes() / size_of::<W>()) {
            batch.clear();
            batch.extend(members.iter().map(|&index| pairs.get(index)));
            let found = &mut found[..members.len()];
            of_one_word::<W, T>(self.level, &batch, self.bits, found);
            for (&index, &found) in members.iter().zip(&*found) {
                self.distances[index as usize] = cut(found, self.cutoff);
            }
        }
    }

    /// Pairs of long strings: what both begin or end with is left out first where that pays, and they may be short then.
    fn of_long<'t, T: Symbol>(&mut self, pairs: impl Iterator<Item = (u32, Pair<'t, T>)>, scratch: &mut Scratch) {
        let trimmed = |(index, pair): (u32, Pair<'t, T>)| {
            (index, if pair.pattern.length >= TRIMMED { pair.trimmed() } else { pair })
        };
        let (long, short): (Vec<_>, Vec<_>) =
            pairs.map(trimmed).partition(|(_, pair)| class(pair.pattern.length) == LONG);
        let mut found = [0];
        for (index, pair) in short {
            if pair.pattern.length == 0 {
                self.put(index, of_lengths(&pair));
            } else {
                of_one_word::<u64, T>(self.level, &[pair], self.bits, &mut found);
                self.put(index, found[0]);
            }
        }
        self.of_words(long.into_iter(), scratch);
    }

    /// Two passes at most: the first one in a narrow band, whose result is at least the distance and says how wide the
    /// second has to be.
    fn of_words<'t, T: Symbol>(&mut self, pairs: impl Iterator<Item = (u32, Pair<'t, T>)>, scratch: &mut Scratch) {
        let banded = |(index, pair): (u32, Pair<'t, T>)| Banded { band: pair.difference() + NARROW, index, pair };
        let mut again = Vec::new();
        self.in_bands(pairs.map(banded).collect(), scratch, |batches, member, band, found| {
            let Banded { index, pair, .. } = *member;
            if pair.is_decided(band, found) {
                batches.put(index, found);
            } else if batches.cutoff.is_some_and(|cutoff| pair.is_decided(band, cutoff)) {
                // Had the distance been within the cutoff, it would have been found.
                batches.put(index, BEYOND);
            } else {
                let wanted = batches.cutoff.map_or(found, |cutoff| found.min(cutoff));
                again.push(Banded { band: pair.band(wanted), index, pair });
            }
        });
        self.in_bands(again, scratch, |batches, member, _, found| batches.put(member.index, found));
    }

    /// Compares pairs of bands about as wide together, in order of the lengths of their texts, for a batch costs what its
    /// dearest pair does. `each` gets the band that was taken and what was found in it.
    fn in_bands<'t, T: Symbol>(
        &mut self,
        mut members: Vec<Banded<'t, T>>,
        scratch: &mut Scratch,
        mut each: impl FnMut(&mut Self, &Banded<'t, T>, usize, u32),
    ) {
        let at_once = self.level.bytes() / size_of::<u64>();
        let mut found = [0; 8];
        let mut batch = Vec::with_capacity(at_once);
        let kind = |member: &Banded<'_, T>| member.band.ilog2();
        members.sort_by_cached_key(|member| (kind(member), member.pair.text.length));
        for members in members.chunk_by(|a, b| kind(a) == kind(b)).flat_map(|alike| alike.chunks(at_once)) {
            batch.clear();
            batch.extend(members.iter().map(|member| member.pair));
            let band = members.iter().map(|member| member.band).max().unwrap_or(0);
            let found = &mut found[..members.len()];
            of_words(self.level, &batch, self.bits, band, self.cutoff, scratch, found);
            members.iter().zip(found).for_each(|(member, found)| each(self, member, band, *found));
        }
    }
}

/// A pair, where its distance goes, and how far from the diagonal it is computed.
#[derive(Clone, Copy)]
struct Banded<'t, T> {
    band: usize,
    index: u32,
    pair: Pair<'t, T>,
}
