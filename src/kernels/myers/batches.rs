//! Pairs in batches: which of them are compared side by side, and how often.

use super::lanes::Word;
use super::long_pairs::{Scratch, of_words};
use super::pairs::{Bits, Pair, Strings, Symbol};
use super::{BEYOND, cut, length, short_pairs};
use crate::simd::{Level, Simd, simd};
use std::ops::Range;

/// Patterns of up to 8, 16, 32 and 64 symbols, longer ones, and pairs whose lengths say it all.
const CLASSES: u16 = 6;
/// The class of longer patterns.
const LONG: u16 = 4;
/// The class of pairs that need not be compared.
const DECIDED: u16 = 5;
/// Texts from here on are sorted apart.
const SHORT: u16 = 128;
/// What a key is made of: the class, this if the pattern is on the right, and the length of the text, as far as it is short.
const TURNED: u16 = SHORT;
const OF_CLASS: u16 = 2 * SHORT;
const KEYS: usize = (CLASSES * OF_CLASS) as usize;

/// The class of a pattern: the place of the narrowest word that holds it, or [`LONG`].
#[inline]
pub(super) fn class(length: u32) -> u16 {
    u16::from(length > 8) + u16::from(length > 16) + u16::from(length > 32) + u16::from(length > 64)
}

/// Pairs that are looked at together, whether they are so much alike that they need not be put in order.
const RUN: usize = 256;

/// Pairs of strings at the same place on both sides.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'t, T> {
    pub(super) left: Strings<'t, T>,
    pub(super) right: Strings<'t, T>,
}

impl<'t, T: Symbol> Pairs<'t, T> {
    fn get(&self, index: u32) -> Pair<'t, T> {
        Pair::new(self.left.get(index as usize), self.right.get(index as usize))
    }
}

/// The distances of some pairs, as many as there are places.
pub(super) fn distances<T: Symbol>(
    level: Level,
    pairs: Pairs<'_, T>,
    bits: &Bits,
    cutoff: Option<u32>,
    scratch: &mut Scratch,
    distances: &mut [u32],
) {
    let mut keys = vec![0; distances.len()];
    let lengths = (pairs.left.lengths, pairs.right.lengths);
    crate::dispatch!(level, simd => keys_of(simd, lengths, cutoff, &mut keys));
    let mut batches = Batches { level, bits, cutoff, pairs, distances };
    let mut others = Vec::new();
    for (first, keys) in (0..).step_by(RUN).zip(keys.chunks(RUN)) {
        let run = first..first + keys.len();
        match class_of_all(keys) {
            Some(0) => batches.in_place::<u8>(run),
            Some(1) => batches.in_place::<u16>(run),
            Some(2) => batches.in_place::<u32>(run),
            Some(3) => batches.in_place::<u64>(run),
            _ => others.extend(run.map(length)),
        }
    }
    if others.is_empty() {
        return;
    }
    let Order { mut order, ends } = in_order(&others, &keys);
    for kind in (0..CLASSES * OF_CLASS).step_by(SHORT.into()) {
        let end = |length: u16| ends[usize::from(kind + length)] as usize;
        let (start, longer, end) = (end(0), end(SHORT - 1), end(SHORT));
        let class = kind / OF_CLASS;
        if class < LONG {
            order[longer..end].sort_by_key(|&index| pairs.get(index).text.length);
        }
        let members = &order[start..end];
        match class {
            0 => batches.in_order::<u8>(members),
            1 => batches.in_order::<u16>(members),
            2 => batches.in_order::<u32>(members),
            3 => batches.in_order::<u64>(members),
            LONG => batches.of_long(members.iter().map(|&index| (index, pairs.get(index))), scratch),
            _ => members.iter().for_each(|&index| batches.put(index, of_lengths(&pairs.get(index)))),
        }
    }
}

/// For each pair a number by which pairs that are best compared together are neighbours. Where all patterns are on one side,
/// that side is not read beyond a word.
#[simd]
fn keys_of<S: Simd>(_: S, (left, right): (&[u32], &[u32]), cutoff: Option<u32>, keys: &mut [u16]) {
    let cutoff = cutoff.unwrap_or(u32::MAX);
    for ((key, &left), &right) in keys.iter_mut().zip(left).zip(right) {
        let (pattern, text) = (left.min(right), left.max(right));
        let is_decided = (pattern == 0) | (text - pattern > cutoff);
        let class = if is_decided { DECIDED } else { class(pattern) };
        let turned = if (left > right) & (class < LONG) { TURNED } else { 0 };
        #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
        (*key = class * OF_CLASS + turned + text.min(u32::from(SHORT - 1)) as u16);
    }
}

/// The class of all pairs of these keys, if it is one and their texts are about as long: nothing is gained by putting them
/// in order.
fn class_of_all(keys: &[u16]) -> Option<u16> {
    let (least, most) =
        keys.iter().map(|key| key & !TURNED).fold((u16::MAX, 0), |(least, most), key| (least.min(key), most.max(key)));
    let class = least / OF_CLASS;
    let is_one_word = class < LONG && most < class * OF_CLASS + SHORT - 1;
    // A column too many costs the more, the fewer pairs share it.
    (is_one_word && most - least <= 4 * (LONG - class)).then_some(class)
}

/// The distance from an empty pattern, or else one that is beyond.
fn of_lengths<T: Symbol>(pair: &Pair<'_, T>) -> u32 {
    if pair.pattern.length == 0 { length(pair.text.length) } else { BEYOND }
}

/// Patterns from here on are worth a look at what both begin and end with, which takes some 45 nanoseconds.
const TRIMMED: usize = 256;
/// What the first band adds to the difference of the lengths.
const NARROW: usize = 32;

/// Numbers of pairs in order of their keys.
struct Order {
    order: Vec<u32>,
    /// Where the pairs of each key begin, and where the last ones end.
    ends: [u32; KEYS + 1],
}

/// Sorts pairs by counting. The two halves are counted apart: pairs of one kind follow each other, and a counter that has
/// just been written is slow to read.
fn in_order(pairs: &[u32], keys: &[u16]) -> Order {
    let (first, second) = pairs.split_at(pairs.len() / 2);
    let key = |index: u32| usize::from(keys[index as usize]);
    let mut counts = [[0_u32; KEYS]; 2];
    for (place, &of_second) in second.iter().enumerate() {
        if let Some(&of_first) = first.get(place) {
            counts[0][key(of_first)] += 1;
        }
        counts[1][key(of_second)] += 1;
    }
    let mut ends = [0_u32; KEYS + 1];
    let [of_first, of_second] = &mut counts;
    for (key, (of_first, of_second)) in of_first.iter_mut().zip(of_second).enumerate() {
        let start = ends[key];
        ends[key + 1] = start + *of_first + *of_second;
        (*of_first, *of_second) = (start, start + *of_first);
    }
    let mut order = vec![0_u32; pairs.len()];
    let mut put = |pair: u32, half: usize| {
        let place = &mut counts[half][key(pair)];
        order[*place as usize] = pair;
        *place += 1;
    };
    for (place, &of_second) in second.iter().enumerate() {
        if let Some(&of_first) = first.get(place) {
            put(of_first, 0);
        }
        put(of_second, 1);
    }
    Order { order, ends }
}

/// The distances of one task.
struct Batches<'a, T> {
    level: Level,
    bits: &'a Bits,
    cutoff: Option<u32>,
    pairs: Pairs<'a, T>,
    distances: &'a mut [u32],
}

impl<'t, T: Symbol> Batches<'t, T> {
    fn put(&mut self, index: u32, distance: u32) {
        self.distances[index as usize] = cut(distance, self.cutoff);
    }

    /// Neighbours, as they come.
    fn in_place<W: Word>(&mut self, run: Range<usize>) {
        let lanes = self.level.bytes() / W::BYTES;
        let Pairs { left, right } = self.pairs;
        for (first, distances) in run.clone().step_by(lanes).zip(self.distances[run].chunks_mut(lanes)) {
            let batch = first..first + distances.len();
            short_pairs::distances::<W, T>(
                self.level,
                left.range(batch.clone()),
                right.range(batch),
                self.bits,
                distances,
            );
            distances.iter_mut().for_each(|distance| *distance = cut(*distance, self.cutoff));
        }
    }

    /// Members in order of the lengths of their texts.
    fn in_order<W: Word>(&mut self, members: &[u32]) {
        let (mut starts, mut lengths, mut found) = ([[0; 64]; 2], [[0; 64]; 2], [0; 64]);
        for members in members.chunks(self.level.bytes() / W::BYTES) {
            let sides = [self.pairs.left, self.pairs.right];
            for ((side, starts), lengths) in sides.iter().zip(&mut starts).zip(&mut lengths) {
                for ((&index, start), length) in members.iter().zip(starts).zip(lengths) {
                    (*start, *length) = (side.starts[index as usize], side.lengths[index as usize]);
                }
            }
            let side = |side: usize| {
                let (symbols, count) = (sides[side].symbols, members.len());
                Strings { symbols, starts: &starts[side][..count], lengths: &lengths[side][..count] }
            };
            let found = &mut found[..members.len()];
            short_pairs::distances::<W, T>(self.level, side(0), side(1), self.bits, found);
            for (&index, &found) in members.iter().zip(&*found) {
                self.put(index, found);
            }
        }
    }

    /// Pairs of long strings: what both begin or end with is left out first where that pays, and they may be short then.
    fn of_long(&mut self, pairs: impl Iterator<Item = (u32, Pair<'t, T>)>, scratch: &mut Scratch) {
        let trimmed = |(index, pair): (u32, Pair<'t, T>)| {
            (index, if pair.pattern.length >= TRIMMED { pair.trimmed() } else { pair })
        };
        let (long, short): (Vec<_>, Vec<_>) =
            pairs.map(trimmed).partition(|(_, pair)| class(length(pair.pattern.length)) == LONG);
        let mut found = [0];
        for (index, pair) in short {
            if pair.pattern.length == 0 {
                self.put(index, of_lengths(&pair));
            } else {
                let lengths = [pair.pattern.length, pair.text.length].map(length);
                let strings = |symbols, lengths| Strings { symbols, starts: &[0], lengths };
                let pattern = strings(pair.pattern.symbols, &lengths[..1]);
                let text = strings(pair.text.symbols, &lengths[1..]);
                short_pairs::distances::<u64, T>(self.level, pattern, text, self.bits, &mut found);
                self.put(index, found[0]);
            }
        }
        self.of_words(long.into_iter(), scratch);
    }

    /// Two passes at most: the first one in a narrow band, whose result is at least the distance and says how wide the
    /// second has to be.
    fn of_words(&mut self, pairs: impl Iterator<Item = (u32, Pair<'t, T>)>, scratch: &mut Scratch) {
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
    fn in_bands(
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
