//! The CPU path: which way is taken for which lengths, and who does what.
//!
//! | compared | way |
//! |---|---|
//! | one pattern of up to 64 symbols, many texts | [`one_pattern`]: texts in lanes, the pattern's places looked up |
//! | each of many with each of many, up to 64 symbols on one side | [`many_patterns`]: patterns in lanes, the text's symbols shared |
//! | pairs, and all that is longer | [`pairs`](super::pairs): a pair in each lane, compared bit by bit |
//!
//! Lanes are as narrow as the patterns allow: 8, 16, 32 or 64 bits. Work is cut into tasks by its size; no result depends
//! on how, or on the number of threads.

use super::lanes::Word;
use super::many_patterns::{self, Alphabet};
use super::one_pattern::{self, Pattern, Run};
use super::pairs::{self, Bits, Pair};
use super::{Text, Texts, batches, cut, tile};
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::{Level, Simd, simd};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Symbols of a task, about: some 50 microseconds of work at least.
const SYMBOLS_A_TASK: usize = 1 << 18;
/// Pairs, or texts, of a task at most.
const MOST_A_TASK: usize = 4096;

/// The distances of one pattern to all texts, in their order.
///
/// Cost: a few instructions for each symbol of the texts and every 64 symbols of the pattern; reads the texts once.
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
        let source = |index| Pair::new(pattern, texts.get(index));
        let of_pattern: Texts = [pattern.iter().collect::<Vec<_>>()].iter().collect();
        return compare(source, &[&of_pattern, texts], cutoff, distances, platform);
    };
    let order = tile::by_length(texts);
    let mut sorted = order.as_ref().map(|_| vec![0; texts.len()]);
    let found = sorted.as_deref_mut().unwrap_or(&mut *distances);
    let a_task = per_task(texts.total(), texts.len());
    let parts: Vec<_> = found.chunks_mut(a_task).map(Mutex::new).collect();
    let threads = worth(platform.threads, texts.total(), texts.len());
    share(threads, parts.len(), Vec::new, |scratch, task| {
        let mut found = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let first = task * a_task;
        let run = Run { texts, order: order.as_deref(), first, last: first + found.len() };
        one_pattern::distances(platform.level, &prepared, &run, scratch, &mut found);
        cut_all(&mut found, cutoff);
        Ok::<_, Error>(())
    })?;
    drop(parts);
    if let (Some(sorted), Some(order)) = (sorted, order) {
        order.iter().zip(sorted).for_each(|(&index, distance)| distances[index as usize] = distance);
    }
    Ok(())
}

/// Texts made ready to be compared with one pattern after another.
pub struct PreparedTexts {
    texts: Texts,
}

impl PreparedTexts {
    /// Takes what it needs from the texts. Cost: reads and writes each symbol once.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is no memory.
    pub fn new(texts: &Texts, _platform: &Platform) -> Result<Self, Error> {
        Ok(Self { texts: texts.clone() })
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
        one_to_many(pattern, &self.texts, cutoff, distances, platform)
    }
}

/// The distance of each text on the left to the one at its place on the right.
///
/// Cost: a few instructions for each symbol of the longer and every 64 symbols of the shorter one; far apart from the
/// diagonal that the distance allows, nothing is computed.
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
    let source = |index| Pair::new(left.get(index), right.get(index));
    compare(source, &[left, right], cutoff, distances, platform)
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
    let symbols = |texts: &Texts, range: &Range<usize>| texts.offsets()[range.end] - texts.offsets()[range.start];
    let work = symbols(row_texts, &rows).saturating_mul(columns.len()) / 16;
    let threads = worth(platform.threads, work, rows.len() * columns.len() / 16);
    let (height, width) = block(rows.len(), columns.len(), threads);
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
    share(threads, blocks.len(), pairs::Scratch::default, |scratch, task| {
        let mut block = blocks[task].lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns, parts) = &mut *block;
        let of_block = Block { row_texts, rows: rows.clone(), column_texts, columns: columns.clone(), cutoff };
        of_block.compute(platform.level, scratch, parts);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Rows and columns of a block: enough rows that making tables of the columns costs little, and enough blocks for all
/// threads.
fn block(rows: usize, columns: usize, threads: usize) -> (usize, usize) {
    const ROWS: usize = 512;
    const COLUMNS: usize = 4096;
    if threads == 1 {
        return (rows.min(ROWS), columns.min(COLUMNS));
    }
    let wanted = 8 * threads;
    let across = columns.div_ceil(COLUMNS).max((wanted / rows.div_ceil(ROWS)).min(columns.div_ceil(512))).max(1);
    let down = rows.div_ceil(ROWS).max((wanted / across).min(rows.div_ceil(128))).max(1);
    (rows.div_ceil(down), columns.div_ceil(across))
}

fn tiles(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    range.clone().step_by(length).map(move |start| start..range.end.min(start + length))
}

/// Some rows against some columns: what one task does.
struct Block<'a> {
    row_texts: &'a Texts,
    rows: Range<usize>,
    column_texts: &'a Texts,
    columns: Range<usize>,
    cutoff: Option<u32>,
}

impl Block<'_> {
    fn compute(&self, level: Level, scratch: &mut pairs::Scratch, distances: &mut [&mut [u32]]) {
        let classes = Classes::of(self.columns.clone().map(|column| self.column_texts.length(column)));
        let mut alphabet = Alphabet::default();
        if classes.words.iter().any(|members| !members.is_empty()) {
            let patterns = alphabet.number(self.column_texts, self.columns.clone());
            let texts = alphabet.number(self.row_texts, self.rows.clone());
            macro_rules! of_words {
                ($word:ty, $members:expr) => {
                    crate::dispatch!(level, simd => self.of_words::<_, $word>(simd, &alphabet, $members, &patterns, &texts, distances))
                };
            }
            of_words!(u8, &classes.words[0]);
            of_words!(u16, &classes.words[1]);
            of_words!(u32, &classes.words[2]);
            of_words!(u64, &classes.words[3]);
        }
        if !classes.long.is_empty() {
            self.long(level, &classes.long, scratch, distances);
        }
        for distances in distances {
            cut_all(distances, self.cutoff);
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
                    let length = length(self.row_texts.length(self.rows.start + row));
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

    fn long(&self, level: Level, columns: &[u32], scratch: &mut pairs::Scratch, distances: &mut [&mut [u32]]) {
        let pair = |index: usize| {
            let (row, column) = (index / columns.len(), columns[index % columns.len()] as usize);
            Pair::new(self.row_texts.get(self.rows.start + row), self.column_texts.get(self.columns.start + column))
        };
        let bits = Bits::of([self.row_texts, self.column_texts], true);
        let mut found = vec![0; columns.len() * self.rows.len()];
        for first in (0..found.len()).step_by(MOST_A_TASK) {
            let last = found.len().min(first + MOST_A_TASK);
            let pairs: Vec<_> = (first..last).map(pair).collect();
            batches::distances(level, &pairs, &bits, self.cutoff, scratch, &mut found[first..last]);
        }
        for (index, distance) in found.into_iter().enumerate() {
            distances[index / columns.len()][columns[index % columns.len()] as usize] = distance;
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
            match length {
                0..=8 => classes.words[0].push(index),
                9..=16 => classes.words[1].push(index),
                17..=32 => classes.words[2].push(index),
                33..=64 => classes.words[3].push(index),
                _ => classes.long.push(index),
            }
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

/// Pairs of any source: the distances of as many as there are places.
fn compare<'a>(
    pair: impl Fn(usize) -> Pair<'a> + Sync,
    texts: &[&Texts],
    cutoff: Option<u32>,
    distances: &mut [u32],
    platform: &Platform,
) -> Result<(), Error> {
    let symbols = texts.iter().map(|texts| texts.total()).sum::<usize>();
    let bits = Bits::of(texts.iter().copied(), symbols / distances.len().max(1) >= 128);
    // Long ones cost more for each symbol.
    let longest = (0..distances.len()).map(|index| pair(index).pattern.len()).max().unwrap_or(0);
    let work = symbols.saturating_mul(longest.div_ceil(64));
    let a_task = per_task(work, distances.len());
    let threads = worth(platform.threads, work, distances.len());
    let parts: Vec<_> = distances.chunks_mut(a_task).map(Mutex::new).collect();
    share(threads, parts.len(), pairs::Scratch::default, |scratch, task| {
        let mut found = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let first = task * a_task;
        let pairs: Vec<_> = (first..first + found.len()).map(&pair).collect();
        batches::distances(platform.level, &pairs, &bits, cutoff, scratch, &mut found);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Texts or pairs of a task.
fn per_task(symbols: usize, count: usize) -> usize {
    let each = symbols / count.max(1) + 1;
    (SYMBOLS_A_TASK / each).clamp(8, MOST_A_TASK).next_multiple_of(64.min(SYMBOLS_A_TASK / each).max(8))
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

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn check_length(expected: usize, distances: &[u32]) -> Result<(), Error> {
    if distances.len() == expected {
        return Ok(());
    }
    Err(Error::Shape { what: "distances".into(), expected, found: distances.len() })
}
