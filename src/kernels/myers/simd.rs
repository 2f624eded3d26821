//! The CPU path: which way is taken for which lengths, and who does what.
//!
//! | compared | way |
//! |---|---|
//! | one pattern of up to 64 symbols, many texts | [`one_pattern`]: texts in lanes, the pattern's places looked up |
//! | each of many with each of many, up to 64 symbols in a column | [`many_patterns`]: patterns in lanes, the text's symbols shared |
//! | pairs, and all that is longer | [`pairs`](super::pairs): a pair in each lane, compared bit by bit |
//!
//! Under a small cutoff, [`filter`] first leaves out pairs that cannot be within it.
//!
//! Lanes are as narrow as the patterns allow: 8, 16, 32 or 64 bits. Work is cut into tasks by its size; no result depends
//! on how, or on the number of threads.

use super::lanes::Word;
use super::many_patterns::{self, Alphabet};
use super::one_pattern::{self, LaidOut, Pattern, Run};
use super::pairs::{Bits, Pairs, Strings};
use super::{BEYOND, Text, Texts, batches, cut, filter, length, long_pairs, tile};
use crate::data::Symbols;
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::{Level, Simd, simd};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Symbols of a task, about: some 50 microseconds of work at least.
const SYMBOLS_A_TASK: usize = 1 << 18;
/// Pairs, or texts, of a task at most.
const MOST_A_TASK: usize = 4096;

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
        return compare(&pattern, texts, |index| (0, index), cutoff, distances, platform);
    };
    let order = tile::by_length(texts);
    compare_one(&prepared, texts, order.as_deref(), None, cutoff, distances, platform)
}

/// One pattern against texts by length.
fn compare_one(
    pattern: &Pattern,
    texts: &Texts,
    order: Option<&[u32]>,
    laid_out: Option<&LaidOut>,
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    /// Tiles that are read together begin at multiples of this.
    const TOGETHER: usize = 256;
    let mut places = 0..texts.len();
    if let Some(cutoff) = cutoff {
        // Others differ too much in length.
        let (length, cutoff) = (pattern.length(), cutoff as usize);
        let of = |place: usize| texts.length(order.map_or(place, |order| order[place] as usize));
        let first = |is_below: &dyn Fn(usize) -> bool| partition_point(texts.len(), |place| is_below(of(place)));
        places.start = first(&|other| other.saturating_add(cutoff) < length) / TOGETHER * TOGETHER;
        places.end = first(&|other| other <= length.saturating_add(cutoff)).max(places.start);
    }
    let mut sorted = order.map(|_| vec![BEYOND; texts.len()]);
    let found = sorted.as_deref_mut().unwrap_or(&mut *distances);
    found[..places.start].fill(BEYOND);
    found[places.end..].fill(BEYOND);
    let a_task = per_task(texts.total(), texts.len()).next_multiple_of(TOGETHER);
    let parts: Vec<_> = found[places.clone()].chunks_mut(a_task).map(Mutex::new).collect();
    let threads = worth(platform.threads, texts.total(), texts.len());
    share(threads, parts.len(), Vec::new, |scratch, task| {
        let mut found = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let first = places.start + task * a_task;
        let run = Run { texts, order, places: first..first + found.len(), laid_out };
        one_pattern::distances(platform.level, pattern, &run, scratch, &mut found);
        cut_all(&mut found, cutoff);
        Ok::<_, Error>(())
    })?;
    drop(parts);
    if let (Some(sorted), Some(order)) = (sorted, order) {
        order.iter().zip(sorted).for_each(|(&index, distance)| distances[index as usize] = distance);
    }
    Ok(())
}

/// How many of the numbers below `count` come before the first that is not so, as they all do.
fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let mut range = 0..count;
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
        let order = tile::by_length(texts);
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
        compare_one(&prepared, &self.texts, self.order.as_deref(), laid_out, cutoff, distances, platform)
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
    compare(left, right, |index| (index, index), cutoff, distances, platform)
}

/// The distances of some rows to some columns, row by row: `distances` has `rows.len()` x `columns.len()` places.
///
/// Cost: as [`pairs`]; with up to 64 symbols in a column, ten instructions for each symbol of a row and as many columns as
/// a vector has lanes.
///
/// # Errors
/// [`Error::Shape`] when it has not.
///
/// # Panics
/// When there are no such rows or columns.
pub fn all_pairs(
    row_texts: &Texts,
    rows: Range<usize>,
    column_texts: &Texts,
    columns: Range<usize>,
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    check_length(rows.len() * columns.len(), distances)?;
    if columns.is_empty() || rows.is_empty() {
        return Ok(());
    }
    if columns.len() < platform.level.bytes() && rows.len() > 8 * columns.len() {
        // Lanes hold columns: turned round, they are filled.
        let mut turned = vec![0; distances.len()];
        all_pairs(column_texts, columns.clone(), row_texts, rows.clone(), cutoff, &mut turned, platform)?;
        for (row, distances) in distances.chunks_exact_mut(columns.len()).enumerate() {
            let of_row = turned[row..].iter().step_by(rows.len());
            distances.iter_mut().zip(of_row).for_each(|(distance, turned)| *distance = *turned);
        }
        return Ok(());
    }
    let symbols = |texts: &Texts, range: &Range<usize>| texts.offsets()[range.end] - texts.offsets()[range.start];
    let (of_rows, of_columns) = (symbols(row_texts, &rows), symbols(column_texts, &columns));
    let words = (of_columns / columns.len()).div_ceil(64).max(1);
    let work = (of_rows.saturating_mul(columns.len()) + of_columns.saturating_mul(rows.len())) / 16;
    let threads = worth(platform.threads, work.saturating_mul(words), rows.len() * columns.len() / 16);
    let (height, width) = block(rows.len(), columns.len(), (of_rows / rows.len() * words).max(1), threads);
    let mut blocks: Vec<_> = tiles(rows.clone(), height)
        .flat_map(|rows| tiles(columns.clone(), width).map(move |columns| (rows.clone(), columns, Vec::new())))
        .collect();
    let across = columns.len().div_ceil(width);
    for (row, distances) in distances.chunks_exact_mut(columns.len()).enumerate() {
        for (column, part) in distances.chunks_mut(width).enumerate() {
            blocks[row / height * across + column].2.push(part);
        }
    }
    let blocks: Vec<_> = blocks.into_iter().map(Mutex::new).collect();
    let sides = Sides::new(row_texts, column_texts, cutoff);
    share(threads, blocks.len(), long_pairs::Scratch::default, |scratch, task| {
        let mut task = blocks[task].lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns, parts) = &mut *task;
        let block = Block { sides: &sides, rows: rows.clone(), columns: columns.clone() };
        block.compute(platform.level, scratch, parts);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Rows and columns of a block: enough rows that making tables of the columns costs little, and enough blocks for all
/// threads. `symbols` says what a pair costs that is compared by itself.
fn block(rows: usize, columns: usize, symbols: usize, threads: usize) -> (usize, usize) {
    const ROWS: usize = 512;
    const COLUMNS: usize = 4096;
    if threads == 1 {
        return (rows.min(ROWS), columns.min(COLUMNS));
    }
    let wanted = 8 * threads;
    let least = SYMBOLS_A_TASK / symbols;
    let (fewest_rows, fewest_columns) = (least.clamp(1, 128), least.clamp(8, 512));
    let across = columns.div_ceil(COLUMNS).max((wanted / rows.div_ceil(ROWS)).min(columns.div_ceil(fewest_columns)));
    let down = rows.div_ceil(ROWS).max((wanted / across.max(1)).min(rows.div_ceil(fewest_rows)));
    let (across, down) = (across.max(1), down.max(1));
    (rows.div_ceil(down), columns.div_ceil(across))
}

fn tiles(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    range.clone().step_by(length).map(move |start| start..range.end.min(start + length))
}

/// The largest cutoff for which pairs are looked at before they are compared.
const FEW_EDITS: u32 = 8;

/// Some rows against some columns: what one task does.
struct Block<'a> {
    sides: &'a Sides<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Block<'_> {
    fn compute(&self, level: Level, scratch: &mut long_pairs::Scratch, distances: &mut [&mut [u32]]) {
        if let Some(cutoff) = self.sides.cutoff.filter(|&cutoff| cutoff <= FEW_EDITS)
            && let Some(near) = self.near(level, cutoff)
        {
            distances.iter_mut().for_each(|distances| distances.fill(BEYOND));
            return self.some(level, &near, scratch, distances);
        }
        let column_texts = self.sides.right;
        let classes = Classes::of(self.columns.clone().map(|column| column_texts.length(column)));
        let mut alphabet = Alphabet::default();
        if classes.words.iter().any(|members| !members.is_empty()) {
            let patterns = alphabet.number(column_texts, self.columns.clone());
            let texts = alphabet.number(self.sides.left, self.rows.clone());
            macro_rules! of_words {
                ($word:ty, $members:expr) => {
                    crate::dispatch!(level, simd => {
                        self.of_words::<_, $word>(simd, &alphabet, $members, &patterns, &texts, distances);
                    })
                };
            }
            of_words!(u8, &classes.words[0]);
            of_words!(u16, &classes.words[1]);
            of_words!(u32, &classes.words[2]);
            of_words!(u64, &classes.words[3]);
        }
        if !classes.long.is_empty() {
            let of_row = |row| classes.long.iter().map(move |&column| (row, column));
            let pairs: Vec<_> = (0..length(self.rows.len())).flat_map(of_row).collect();
            self.some(level, &pairs, scratch, distances);
        }
        for distances in distances {
            cut_all(distances, self.sides.cutoff);
        }
    }

    /// Rows and columns, by their numbers in the block, that may be within the cutoff; none if those are too many for
    /// comparing them one by one.
    fn near(&self, level: Level, cutoff: u32) -> Option<Vec<(u32, u32)>> {
        let of_columns = filter::signatures(self.sides.right, self.columns.clone());
        let of_rows = filter::signatures(self.sides.left, self.rows.clone());
        let mut near = Vec::new();
        for (row, &of_row) in (0..).zip(&of_rows) {
            let found = |column| near.push((row, length(column)));
            crate::dispatch!(level, simd => filter::near(simd, of_row, &of_columns, 2 * cutoff, found));
            // A pair by itself costs some twenty times what it costs among all.
            let looked_at = (row as usize + 1) * of_columns.len();
            if near.len() > 64 + looked_at / 16 {
                return None;
            }
        }
        Some(near)
    }

    /// Some pairs, by their numbers in the block.
    fn some(
        &self,
        level: Level,
        pairs: &[(u32, u32)],
        scratch: &mut long_pairs::Scratch,
        distances: &mut [&mut [u32]],
    ) {
        let mut found = vec![0; pairs.len().min(MOST_A_TASK)];
        for pairs in pairs.chunks(MOST_A_TASK) {
            let which = |index: usize| {
                let (row, column) = pairs[index];
                (self.rows.start + row as usize, self.columns.start + column as usize)
            };
            let found = &mut found[..pairs.len()];
            self.sides.compare(which, level, scratch, found);
            for (&(row, column), &found) in pairs.iter().zip(&*found) {
                distances[row as usize][column as usize] = found;
            }
        }
    }

    #[simd]
    fn of_words<S: Simd, W: Word>(
        &self,
        simd: S,
        alphabet: &Alphabet,
        members: &[u32],
        patterns: &many_patterns::Numbered,
        texts: &many_patterns::Numbered,
        distances: &mut [&mut [u32]],
    ) {
        let mut scratch = many_patterns::Scratch::<W>::new(alphabet);
        for members in members.chunks(many_patterns::group::<S, W>(simd)) {
            let first = members[0] as usize;
            let is_run = members[members.len() - 1] as usize - first + 1 == members.len();
            many_patterns::distances::<S, W>(
                simd,
                patterns,
                members,
                texts,
                0..self.rows.len(),
                &mut scratch,
                |row, sums| {
                    let length = length(self.sides.left.length(self.rows.start + row));
                    let distances = &mut *distances[row];
                    if is_run {
                        let distances = &mut distances[first..][..sums.len()];
                        for (distance, sum) in distances.iter_mut().zip(sums) {
                            *distance = length.wrapping_add_signed(sum.signed());
                        }
                    } else {
                        for (&member, sum) in members.iter().zip(sums) {
                            distances[member as usize] = length.wrapping_add_signed(sum.signed());
                        }
                    }
                },
            );
        }
    }
}

/// Places of strings by the words that they fit into.
struct Classes {
    words: [Vec<u32>; 4],
    long: Vec<u32>,
}

impl Classes {
    fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let mut classes = Self { words: Default::default(), long: Vec::new() };
        for (index, length) in (0..).zip(lengths) {
            classes.words.get_mut(batches::class(length)).unwrap_or(&mut classes.long).push(index);
        }
        // A few that would fit into narrower words join the next: neighbours that stay together are stored together.
        for class in 0..3 {
            if 8 * classes.words[class].len() < classes.words[class + 1].len() {
                let few = std::mem::take(&mut classes.words[class]);
                classes.words[class + 1].extend(few);
                classes.words[class + 1].sort_unstable();
            }
        }
        classes
    }
}

/// Pairs of a string on the left and one on the right: as many as there are places, which of them is said by number.
fn compare(
    left: &Texts,
    right: &Texts,
    which: impl Fn(usize) -> (usize, usize) + Sync,
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
        let which = |index| which(task * a_task + index);
        sides.compare(which, platform.level, scratch, &mut found);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Two lists of strings.
struct Sides<'a> {
    left: &'a Texts,
    right: &'a Texts,
    cutoff: Option<u32>,
    /// Made when the first pair is compared: all of many are compared without.
    comparable: OnceLock<Comparable<'a>>,
}

/// What a pair is compared by.
struct Comparable<'a> {
    symbols: Alike<'a>,
    bits: Bits,
}

/// Symbols of both sides, stored alike.
enum Alike<'a> {
    Narrow(&'a [u8], &'a [u8]),
    Wide(Cow<'a, [u32]>, Cow<'a, [u32]>),
}

impl<'a> Sides<'a> {
    fn new(left: &'a Texts, right: &'a Texts, cutoff: Option<u32>) -> Self {
        Self { left, right, cutoff, comparable: OnceLock::new() }
    }

    fn comparable(&self) -> &Comparable<'a> {
        self.comparable.get_or_init(|| {
            let symbols = match (self.left.symbols(), self.right.symbols()) {
                (Symbols::Narrow(left), Symbols::Narrow(right)) => Alike::Narrow(left, right),
                _ => Alike::Wide(self.left.wide_symbols(), self.right.wide_symbols()),
            };
            // To look for the fewest bits pays where each symbol is compared with many.
            let is_long = self.left.total() + self.right.total() >= 64 * (self.left.len() + self.right.len());
            Comparable { symbols, bits: Bits::of(&[self.left, self.right], is_long) }
        })
    }

    /// Distances of pairs on this thread.
    fn compare(
        &self,
        which: impl Fn(usize) -> (usize, usize),
        level: Level,
        scratch: &mut long_pairs::Scratch,
        distances: &mut [u32],
    ) {
        let (left, right) = (self.left.offsets(), self.right.offsets());
        let Comparable { symbols, bits } = self.comparable();
        match symbols {
            Alike::Narrow(of_left, of_right) => {
                let pairs = Pairs { left: Strings::new(of_left, left), right: Strings::new(of_right, right), which };
                batches::distances(level, &pairs, bits, self.cutoff, scratch, distances);
            }
            Alike::Wide(of_left, of_right) => {
                let pairs = Pairs { left: Strings::new(of_left, left), right: Strings::new(of_right, right), which };
                batches::distances(level, &pairs, bits, self.cutoff, scratch, distances);
            }
        }
    }
}

/// Texts or pairs of a task: whole tiles, or whole batches of long ones.
fn per_task(symbols: usize, count: usize) -> usize {
    let wanted = SYMBOLS_A_TASK / (symbols / count.max(1) + 1);
    if wanted < 64 { 8 } else { wanted.min(MOST_A_TASK) / 64 * 64 }
}

/// Threads that are worth waking for so many symbols.
fn worth(threads: usize, symbols: usize, count: usize) -> usize {
    threads.min((symbols + 8 * count) / (SYMBOLS_A_TASK / 4)).max(1)
}

fn cut_all(distances: &mut [u32], cutoff: Option<u32>) {
    if cutoff.is_some() {
        distances.iter_mut().for_each(|distance| *distance = cut(*distance, cutoff));
    }
}

fn check_length(expected: usize, distances: &[u32]) -> Result<(), Error> {
    if distances.len() == expected {
        return Ok(());
    }
    Err(Error::Shape { what: "distances".into(), expected, found: distances.len() })
}
