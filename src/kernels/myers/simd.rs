//! The CPU path: which way is taken for which lengths, and who does what.
//!
//! | compared | way |
//! |---|---|
//! | one pattern of up to 64 symbols, many texts | [`one_pattern`]: texts in lanes, the pattern's places looked up |
//! | each of many with each of many ([`all_pairs`](super::all_pairs)), up to 64 symbols in a column | [`many_patterns`](super::many_patterns): patterns in lanes, the text's symbols shared |
//! | pairs, one string of up to 64 symbols | [`short_pairs`](super::short_pairs): a pair in each lane, compared bit by bit |
//! | longer ones | [`long_pairs`]: the same in several words, near the diagonal only |
//!
//! Under a small cutoff, [`filter`](super::filter) first leaves out pairs that cannot be within it.
//!
//! Lanes are as narrow as the patterns allow: 8, 16, 32 or 64 bits. Work is cut into tasks by its size; no result depends
//! on how, or on the number of threads.

use super::batches::Pairs;
use super::one_pattern::{self, LaidOut, Pattern, Run};
use super::pairs::{Bits, Strings, Symbol};
use super::{BEYOND, Text, Texts, batches, cut, length, long_pairs, tile};
use crate::data::Symbols;
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::{Level, Simd, simd};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Symbols of a task, about: some 50 microseconds of work at least.
pub(super) const SYMBOLS_A_TASK: usize = 1 << 18;
/// Pairs, or texts, of a task at most.
pub(super) const MOST_A_TASK: usize = 4096;
/// Texts that are read together: tiles begin at multiples of this.
const TOGETHER: usize = 256;

/// The distances of one pattern to all texts, in their order.
///
/// Cost: a few instructions for each symbol of the longer and every 64 symbols of the shorter string; reads the texts once.
///
/// # Errors
/// [`Error::Shape`] when `distances` has not as many places as there are texts.
pub fn one_to_many(
    pattern: Text<'_>,
    texts: &Texts,
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    check_length(texts.len(), distances)?;
    let Some(prepared) = Pattern::new(pattern) else {
        let pattern: Texts = [pattern.iter().collect::<Vec<_>>()].iter().collect();
        return compare(&pattern, texts, |first| (Which::Always(0), Which::From(first)), cutoff, distances, platform);
    };
    let a_task = per_task(texts.total(), texts.len()).next_multiple_of(TOGETHER);
    let parts: Vec<_> = distances.chunks_mut(a_task).map(Mutex::new).collect();
    let threads = worth(platform.threads, texts.total(), texts.len());
    share(threads, parts.len(), Default::default, |(scratch, sorted): &mut (Vec<u8>, Vec<u32>), task| {
        let mut distances = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let first = task * a_task;
        let run = first..first + distances.len();
        let order = tile::by_length(platform.level, texts, run.clone());
        let Some(order) = order else {
            let run = Run { texts, order: None, places: run, laid_out: None };
            compare_run(platform.level, &prepared, run, cutoff, scratch, &mut distances);
            return Ok::<_, Error>(());
        };
        sorted.resize(order.len(), 0);
        let run = Run { texts, order: Some(&order), places: 0..order.len(), laid_out: None };
        compare_run(platform.level, &prepared, run, cutoff, scratch, sorted);
        order.iter().zip(&*sorted).for_each(|(&index, &distance)| distances[index as usize - first] = distance);
        Ok(())
    })?;
    Ok(())
}

/// One pattern against some texts by length, from a whole tile on.
fn compare_run(
    level: Level,
    pattern: &Pattern,
    mut run: Run<'_>,
    cutoff: Option<u32>,
    scratch: &mut Vec<u8>,
    distances: &mut [u32],
) {
    let first = run.places.start;
    let reach = within_reach(&run, pattern, cutoff);
    // Texts that are laid out are read from a whole tile on.
    run.places = reach.start / level.bytes() * level.bytes()..reach.end;
    let (start, end) = (run.places.start - first, run.places.end - first);
    distances[..start].fill(BEYOND);
    distances[end..].fill(BEYOND);
    let distances = &mut distances[start..end];
    if !distances.is_empty() {
        one_pattern::distances(level, pattern, &run, scratch, distances);
        cut_all(distances, cutoff);
    }
}

/// Of places by length, those of texts that differ so little in length that they may be within the cutoff.
fn within_reach(run: &Run<'_>, pattern: &Pattern, cutoff: Option<u32>) -> Range<usize> {
    let Some(cutoff) = cutoff else { return run.places.clone() };
    let (length, cutoff) = (pattern.length(), cutoff as usize);
    let of = |place: usize| run.texts.length(run.order.map_or(place, |order| order[place] as usize));
    let start = partition_point(run.places.clone(), |place| of(place).saturating_add(cutoff) < length);
    start..partition_point(start..run.places.end, |place| of(place) <= length.saturating_add(cutoff))
}

/// The first of some numbers that is not so, as all before it are and none after.
fn partition_point(mut range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        if is_before(middle) { range.start = middle + 1 } else { range.end = middle }
    }
    range.start
}

/// Texts made ready to be compared with one pattern after another: sorted, and laid out as the vectors of this level read
/// them.
pub struct PreparedTexts {
    texts: Texts,
    order: Option<Vec<u32>>,
    laid_out: Option<LaidOut>,
}

impl PreparedTexts {
    /// Takes what it needs from the texts. Cost: reads and writes each symbol once.
    pub fn new(texts: &Texts, platform: &Platform) -> Self {
        let order = tile::by_length(platform.level, texts, 0..texts.len());
        let laid_out = LaidOut::new(platform.level, texts, order.as_deref());
        Self { texts: texts.clone(), order, laid_out }
    }

    /// As [`one_to_many`].
    ///
    /// # Errors
    /// As [`one_to_many`].
    pub fn distances(
        &self,
        pattern: Text<'_>,
        cutoff: Option<u32>,
        distances: &mut [u32],
        platform: &Platform,
    ) -> Result<(), Error> {
        check_length(self.texts.len(), distances)?;
        let laid_out = self.laid_out.as_ref().filter(|laid_out| laid_out.is_for(platform.level));
        let prepared = match laid_out {
            Some(laid_out) => Pattern::with_codes(pattern, laid_out.codes.clone()),
            None => Pattern::new(pattern),
        };
        let Some(prepared) = prepared else {
            return one_to_many(pattern, &self.texts, cutoff, distances, platform);
        };
        self.compare(&prepared, laid_out, cutoff, distances, platform)
    }

    fn compare(
        &self,
        pattern: &Pattern,
        laid_out: Option<&LaidOut>,
        cutoff: Option<u32>,
        distances: &mut [u32],
        platform: &Platform,
    ) -> Result<(), Error> {
        let Self { texts, order, .. } = self;
        let order = order.as_deref();
        let mut sorted = order.map(|_| vec![BEYOND; texts.len()]);
        let found = sorted.as_deref_mut().unwrap_or(&mut *distances);
        let a_task = per_task(texts.total(), texts.len()).next_multiple_of(TOGETHER);
        let parts: Vec<_> = found.chunks_mut(a_task).map(Mutex::new).collect();
        let threads = worth(platform.threads, texts.total(), texts.len());
        share(threads, parts.len(), Vec::new, |scratch, task| {
            let mut found = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
            let first = task * a_task;
            let run = Run { texts, order, places: first..first + found.len(), laid_out };
            compare_run(platform.level, pattern, run, cutoff, scratch, &mut found);
            Ok::<_, Error>(())
        })?;
        drop(parts);
        if let (Some(sorted), Some(order)) = (sorted, order) {
            order.iter().zip(sorted).for_each(|(&index, distance)| distances[index as usize] = distance);
        }
        Ok(())
    }
}

/// The distance of each text on the left to the one at its place on the right.
///
/// Cost: a few instructions for each symbol of the longer and every 64 symbols of the shorter one; where both
/// have more than 64, nothing is computed far apart from the diagonal that the distance allows.
///
/// # Errors
/// [`Error::Shape`] when there are not as many of both, or not as many places for distances.
pub fn pairs(
    left: &Texts,
    right: &Texts,
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    if left.len() != right.len() {
        return Err(Error::Shape { what: "pairs: right side".into(), expected: left.len(), found: right.len() });
    }
    check_length(left.len(), distances)?;
    compare(left, right, |first| (Which::From(first), Which::From(first)), cutoff, distances, platform)
}

/// Pairs of a string on the left and one on the right: as many as there are places. Which of them come at some place and
/// after it is said by number.
fn compare(
    left: &Texts,
    right: &Texts,
    from: impl Fn(usize) -> (Which<'static>, Which<'static>) + Sync,
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    let symbols = left.total() + right.total();
    let sides = Sides::new(left, right, cutoff);
    // Long ones cost more for each symbol.
    let (rows, columns) = (left.total() / left.len().max(1), right.total() / right.len().max(1));
    let work = symbols.saturating_mul(rows.min(columns).div_ceil(64).max(1));
    let a_task = per_task(work, distances.len());
    let threads = worth(platform.threads, work, distances.len());
    let parts: Vec<_> = distances.chunks_mut(a_task).map(Mutex::new).collect();
    share(threads, parts.len(), long_pairs::Scratch::default, |scratch, task| {
        let mut found = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        sides.compare(from(task * a_task), platform.level, scratch, &mut found);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Some strings of a list, by number.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    /// Neighbours, from this one on.
    From(usize),
    /// The same one again and again.
    Always(usize),
    These(&'a [u32]),
}

impl Which<'_> {
    /// Where the first `count` of them begin among all symbols, and how long they are.
    fn of<'o>(self, offsets: &'o [usize], count: usize, level: Level) -> (Cow<'o, [usize]>, Vec<u32>) {
        let of_one = |index: usize| offsets[index + 1] - offsets[index];
        match self {
            Self::From(first) => {
                let mut lengths = vec![0; count];
                let offsets = &offsets[first..=first + count];
                crate::dispatch!(level, simd => differences(simd, offsets, &mut lengths));
                (offsets[..count].into(), lengths)
            }
            Self::Always(one) => (vec![offsets[one]; count].into(), vec![length(of_one(one)); count]),
            Self::These(these) => {
                let starts: Vec<_> = these.iter().map(|&index| offsets[index as usize]).collect();
                (starts.into(), these.iter().map(|&index| length(of_one(index as usize))).collect())
            }
        }
    }
}

#[simd]
fn differences<S: Simd>(_: S, offsets: &[usize], differences: &mut [u32]) {
    for (difference, ends) in differences.iter_mut().zip(offsets.windows(2)) {
        #[expect(clippy::cast_possible_truncation, reason = "no text is longer")]
        (*difference = (ends[1] - ends[0]) as u32);
    }
}

/// Two lists of strings.
pub(super) struct Sides<'a> {
    pub(super) left: &'a Texts,
    pub(super) right: &'a Texts,
    pub(super) cutoff: Option<u32>,
    /// Made when the first pair is compared: all of many are compared without.
    symbols: OnceLock<Alike<'a>>,
    /// What tells all symbols apart; made where neighbours do not say it.
    bits: OnceLock<Bits>,
}

/// Symbols of both sides, stored alike.
enum Alike<'a> {
    Narrow(&'a [u8], &'a [u8]),
    Wide(Cow<'a, [u32]>, Cow<'a, [u32]>),
}

impl<'a> Sides<'a> {
    pub(super) fn new(left: &'a Texts, right: &'a Texts, cutoff: Option<u32>) -> Self {
        Self { left, right, cutoff, symbols: OnceLock::new(), bits: OnceLock::new() }
    }

    /// Distances of pairs on this thread, as many as there are places.
    pub(super) fn compare(
        &self,
        which: (Which<'_>, Which<'_>),
        level: Level,
        scratch: &mut long_pairs::Scratch,
        distances: &mut [u32],
    ) {
        let symbols = self.symbols.get_or_init(|| match (self.left.symbols(), self.right.symbols()) {
            (Symbols::Narrow(left), Symbols::Narrow(right)) => Alike::Narrow(left, right),
            _ => Alike::Wide(self.left.wide_symbols(), self.right.wide_symbols()),
        });
        match symbols {
            Alike::Narrow(left, right) => self.compare_alike(left, right, which, level, scratch, distances),
            Alike::Wide(left, right) => self.compare_alike(left, right, which, level, scratch, distances),
        }
    }

    fn compare_alike<T: Symbol>(
        &self,
        left: &[T],
        right: &[T],
        which: (Which<'_>, Which<'_>),
        level: Level,
        scratch: &mut long_pairs::Scratch,
        distances: &mut [u32],
    ) {
        let count = distances.len();
        let (offsets_left, offsets_right) = (self.left.offsets(), self.right.offsets());
        let (starts, lengths) = which.0.of(offsets_left, count, level);
        let (starts_right, lengths_right) = which.1.of(offsets_right, count, level);
        let pairs = Pairs {
            left: Strings { symbols: left, starts: &starts, lengths: &lengths },
            right: Strings { symbols: right, starts: &starts_right, lengths: &lengths_right },
        };
        // To look for the fewest bits of all pays where each symbol is compared with many.
        let is_long = self.left.total() + self.right.total() >= 64 * (self.left.len() + self.right.len());
        if let (Which::From(first), Which::From(first_right), false) = (which.0, which.1, is_long) {
            // Read here, they are near when they are compared.
            let left = &left[offsets_left[first]..offsets_left[first + count]];
            let right = &right[offsets_right[first_right]..offsets_right[first_right + count]];
            return batches::distances(level, pairs, &Bits::of(level, [left, right]), self.cutoff, scratch, distances);
        }
        let bits = self.bits.get_or_init(|| {
            let bits = Bits::of(level, [left, right]);
            if is_long { bits.fewest(&[self.left, self.right]) } else { bits }
        });
        batches::distances(level, pairs, bits, self.cutoff, scratch, distances);
    }
}

/// Texts or pairs of a task: whole tiles, or whole batches of long ones.
fn per_task(symbols: usize, count: usize) -> usize {
    let wanted = SYMBOLS_A_TASK / (symbols / count.max(1) + 1);
    if wanted < 64 { 8 } else { wanted.min(MOST_A_TASK) / 64 * 64 }
}

/// Threads that are worth waking for so many symbols.
pub(super) fn worth(threads: usize, symbols: usize, count: usize) -> usize {
    threads.min((symbols + 8 * count) / (SYMBOLS_A_TASK / 4)).max(1)
}

fn cut_all(distances: &mut [u32], cutoff: Option<u32>) {
    if cutoff.is_some() {
        distances.iter_mut().for_each(|distance| *distance = cut(*distance, cutoff));
    }
}

pub(super) fn check_length(expected: usize, distances: &[u32]) -> Result<(), Error> {
    if distances.len() == expected {
        return Ok(());
    }
    Err(Error::Shape { what: "distances".into(), expected, found: distances.len() })
}
