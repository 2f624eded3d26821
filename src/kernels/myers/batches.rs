//! Pairs in batches: which of them are compared side by side, and how often.

use super::lanes::Word;
use super::pairs::{Bits, Pair, Scratch, Symbol, of_one_word, of_words};
use super::{BEYOND, cut};
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
pub(super) fn distances<'t, T: Symbol>(
    level: Level,
    pair: impl Fn(usize) -> Pair<'t, T>,
    bits: &Bits,
    cutoff: Option<u32>,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    let order = in_order(distances.len(), |index| {
        let pair = pair(index);
        let is_decided = pair.pattern.length == 0 || cutoff.is_some_and(|cutoff| pair.difference() > cutoff as usize);
        let class = if is_decided { DECIDED } else { class(pair.pattern.length) };
        class * SHORT + pair.text.length.min(SHORT - 1)
    });
    let Order { mut order, ends } = order;
    for class in 0..CLASSES {
        let pair = &pair;
        let (start, end) = (ends[class * SHORT] as usize, ends[(class + 1) * SHORT] as usize);
        let long = ends[(class + 1) * SHORT - 1] as usize;
        if class == LONG {
            order[start..end].sort_by_key(|&index| long_key(&pair(index as usize)));
        } else {
            order[long..end].sort_by_key(|&index| pair(index as usize).text.length);
        }
        let batches =
            Batches { level, pair: |index: u32| pair(index as usize), members: &order[start..end], bits, cutoff };
        match class {
            0 => batches.of_one_word::<u8>(distances),
            1 => batches.of_one_word::<u16>(distances),
            2 => batches.of_one_word::<u32>(distances),
            3 => batches.of_one_word::<u64>(distances),
            LONG => batches.of_words(scratch, distances),
            _ => {
                for &index in batches.members {
                    let pair = pair(index as usize);
                    let is_empty = pair.pattern.length == 0;
                    let found = if is_empty { super::length(pair.text.length) } else { BEYOND };
                    distances[index as usize] = cut(found, cutoff);
                }
            }
        }
    }
}

/// What the first band adds to the difference of the lengths.
const NARROW: usize = 32;

/// Long pairs are compared together with those of a band about as wide, then by the lengths of their texts: a batch costs
/// what its dearest pair does.
fn long_key<T>(pair: &Pair<'_, T>) -> (u32, usize) {
    ((pair.difference() + NARROW).ilog2(), pair.text.length)
}

/// Numbers of pairs, by class and then by the length of the text, as far as it is short.
struct Order {
    order: Vec<u32>,
    /// Where the pairs of each key begin, and where the last ones end.
    ends: [u32; CLASSES * SHORT + 1],
}

/// Sorts by counting. The two halves are counted apart: pairs of one kind follow each other, and a counter that has just
/// been written is slow to read.
fn in_order(count: usize, key: impl Fn(usize) -> usize) -> Order {
    let half = count / 2;
    let mut keys = vec![0_u16; count];
    let mut counts = [[0_u32; CLASSES * SHORT]; 2];
    let (first, second) = keys.split_at_mut(half);
    for (index, of_second) in second.iter_mut().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 6 times 128")]
        let mut counted = |index: usize, part: usize| {
            let key = key(index);
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

/// Pairs of one class, by the lengths of their texts.
struct Batches<'a, P> {
    level: Level,
    pair: P,
    members: &'a [u32],
    bits: &'a Bits,
    cutoff: Option<u32>,
}

impl<'t, T: Symbol, P: Fn(u32) -> Pair<'t, T>> Batches<'_, P> {
    fn of_one_word<W: Word>(&self, distances: &mut [u32]) {
        let mut found = [0; 64];
        let mut batch = Vec::with_capacity(64);
        for members in self.members.chunks(self.level.bytes() / size_of::<W>()) {
            batch.clear();
            batch.extend(members.iter().map(|&index| (self.pair)(index)));
            let found = &mut found[..members.len()];
            of_one_word::<W, T>(self.level, &batch, self.bits, found);
            for (&index, &found) in members.iter().zip(&*found) {
                distances[index as usize] = cut(found, self.cutoff);
            }
        }
    }

    /// Two passes at most: the first one in a narrow band, whose result is at least the distance and says how wide the
    /// second has to be.
    fn of_words(&self, scratch: &mut Scratch, distances: &mut [u32]) {
        let at_once = self.level.bytes() / size_of::<u64>();
        let mut found = [0; 8];
        let mut batch = Vec::with_capacity(8);
        // The band that decides a pair which has to be looked at again.
        let mut again: Vec<(usize, u32)> = Vec::new();
        let alike = |a: &u32, b: &u32| long_key(&(self.pair)(*a)).0 == long_key(&(self.pair)(*b)).0;
        for members in self.members.chunk_by(alike).flat_map(|members| members.chunks(at_once)) {
            batch.clear();
            batch.extend(members.iter().map(|&index| (self.pair)(index)));
            let band = batch.iter().map(Pair::difference).max().unwrap_or(0) + NARROW;
            let found = &mut found[..members.len()];
            of_words(self.level, &batch, self.bits, band, scratch, found);
            for ((&index, &found), pair) in members.iter().zip(&*found).zip(&batch) {
                if pair.is_decided(band, found) {
                    distances[index as usize] = cut(found, self.cutoff);
                } else if self.cutoff.is_some_and(|cutoff| pair.is_decided(band, cutoff)) {
                    // Had the distance been within the cutoff, it would have been found.
                    distances[index as usize] = BEYOND;
                } else {
                    let wanted = self.cutoff.map_or(found, |cutoff| found.min(cutoff));
                    again.push((pair.band(wanted), index));
                }
            }
        }
        again.sort_by_key(|&(band, index)| (band.ilog2(), (self.pair)(index).text.length));
        let alike = |a: &(usize, u32), b: &(usize, u32)| a.0.ilog2() == b.0.ilog2();
        for members in again.chunk_by_mut(alike).flat_map(|members| members.chunks_mut(at_once)) {
            batch.clear();
            batch.extend(members.iter().map(|&(_, index)| (self.pair)(index)));
            let band = members.iter().map(|&(band, _)| band).max().unwrap_or(0);
            let found = &mut found[..members.len()];
            of_words(self.level, &batch, self.bits, band, scratch, found);
            for (&mut (_, index), &mut found) in members.iter_mut().zip(found) {
                distances[index as usize] = cut(found, self.cutoff);
            }
        }
    }
}
