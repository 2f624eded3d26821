//! All of some rows with all of some columns, in blocks.

use super::lanes::Word;
use super::many_patterns::{self, Alphabet, Numbered, Ordered, VECTORS};
use super::simd::{MOST_A_TASK, SYMBOLS_A_TASK, Sides, check_length, worth};
use super::sums::{Classes, Out, Sums};
use super::{BEYOND, Texts, filter, length, long_pairs};
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::{Level, Simd, SimdBase, simd};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The distances of some rows to some columns, row by row: `distances` has `rows.len()` x `columns.len()` places.
///
/// Cost: as [`pairs`](super::pairs); with up to 64 symbols in a column, ten instructions for each symbol of a row and as many
/// columns as a vector has lanes. What rows begin with alike is computed once.
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
    let order = many_patterns::in_order(row_texts, rows.clone());
    let mut blocks: Vec<_> = order
        .chunks(height)
        .flat_map(|rows| {
            tiles(columns.clone(), width).map(move |columns| (rows, columns, Vec::with_capacity(rows.len())))
        })
        .collect();
    let across = columns.len().div_ceil(width);
    let mut by_row: Vec<_> =
        distances.chunks_exact_mut(columns.len()).map(|distances| distances.chunks_mut(width)).collect();
    for (place, &row) in order.iter().enumerate() {
        let blocks = &mut blocks[place / height * across..];
        blocks.iter_mut().zip(&mut by_row[row as usize - rows.start]).for_each(|(block, part)| block.2.push(part));
    }
    let blocks: Vec<_> = blocks.into_iter().map(Mutex::new).collect();
    let sides = Sides::new(row_texts, column_texts, cutoff);
    share(threads, blocks.len(), Scratch::default, |scratch, task| {
        let mut task = blocks[task].lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns, parts) = &mut *task;
        Block { sides: &sides, rows, columns: columns.clone() }.compute(platform.level, scratch, parts);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Rows and columns of a block: enough rows that making tables of the columns costs little, as many columns as can be, for
/// the last vector of each class is not full, and enough blocks for all threads. `symbols` says what a pair costs that is
/// compared by itself.
fn block(rows: usize, columns: usize, symbols: usize, threads: usize) -> (usize, usize) {
    const ROWS: usize = 256;
    const COLUMNS: usize = 2048;
    if threads == 1 {
        return (rows.min(ROWS), columns.min(COLUMNS));
    }
    let wanted = 4 * threads;
    let least = SYMBOLS_A_TASK / symbols;
    let (fewest_rows, fewest_columns) = (least.clamp(1, 256), least.clamp(8, 512));
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

/// What a thread keeps from block to block.
#[derive(Default)]
struct Scratch {
    long: long_pairs::Scratch,
    sums: Vec<u8>,
}

/// Some rows against some columns: what one task does.
struct Block<'a> {
    sides: &'a Sides<'a>,
    rows: &'a [u32],
    columns: Range<usize>,
}

impl Block<'_> {
    fn compute(&self, level: Level, scratch: &mut Scratch, distances: &mut [&mut [u32]]) {
        if let Some(cutoff) = self.sides.cutoff.filter(|&cutoff| cutoff <= FEW_EDITS)
            && let Some(near) = self.near(level, cutoff)
        {
            distances.iter_mut().for_each(|distances| distances.fill(BEYOND));
            return self.some(level, &near, &mut scratch.long, distances);
        }
        let Sides { left, right, cutoff, .. } = *self.sides;
        let classes = Classes::of(self.columns.clone().map(|column| right.length(column)));
        if classes.words.iter().any(|members| !members.is_empty()) {
            let mut alphabet = Alphabet::of(left, right);
            let patterns = alphabet.number(right, self.columns.clone());
            let texts = Ordered::new(alphabet.number(left, self.rows.iter().map(|&row| row as usize)));
            let mut sums = Sums::new(level, &classes, self.columns.len(), self.rows.len(), &mut scratch.sums);
            macro_rules! of_words {
                ($class:literal, $word:ty) => {
                    crate::dispatch!(level, simd => of_words::<_, $word>(
                        simd, &alphabet, &classes.words[$class], &patterns, &texts, sums.of_class($class)
                    ))
                };
            }
            of_words!(0, u8);
            of_words!(1, u16);
            of_words!(2, u32);
            of_words!(3, u64);
            for (text, distances) in distances.iter_mut().enumerate() {
                let length = length(left.length(self.rows[text] as usize));
                crate::dispatch!(level, simd => sums.distances(simd, text, length, cutoff, distances));
            }
        }
        if !classes.long.is_empty() {
            let of_row = |row| classes.long.iter().map(move |&column| (row, column));
            let pairs: Vec<_> = (0..length(self.rows.len())).flat_map(of_row).collect();
            self.some(level, &pairs, &mut scratch.long, distances);
        }
    }

    /// Rows and columns, by their numbers in the block, that may be within the cutoff; none if those are too many for
    /// comparing them one by one.
    fn near(&self, level: Level, cutoff: u32) -> Option<Vec<(u32, u32)>> {
        let of_columns = filter::signatures(self.sides.right, self.columns.clone());
        let of_rows = filter::signatures(self.sides.left, self.rows.iter().map(|&row| row as usize));
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
                (self.rows[row as usize] as usize, self.columns.start + column as usize)
            };
            let found = &mut found[..pairs.len()];
            self.sides.compare(which, level, scratch, found);
            for (&(row, column), &found) in pairs.iter().zip(&*found) {
                distances[row as usize][column as usize] = found;
            }
        }
    }
}

/// The columns of one class, in groups of a few vectors each.
#[simd]
fn of_words<S: Simd, W: Word>(
    simd: S,
    alphabet: &Alphabet,
    members: &[u32],
    patterns: &Numbered,
    texts: &Ordered,
    mut out: Out<'_>,
) {
    let mut scratch = many_patterns::Scratch::<S, W>::new(simd, alphabet);
    let lanes = W::Native::<S>::LEN;
    let vectors = members.len().div_ceil(lanes);
    let groups = vectors.div_ceil(VECTORS);
    for group in 0..groups {
        // As even as can be: one vector by itself waits for itself.
        let group = group * vectors / groups..(group + 1) * vectors / groups;
        let members = &members[group.start * lanes..members.len().min(group.end * lanes)];
        match group.len() {
            1 => many_patterns::differences::<S, W, 1>(simd, patterns, members, texts, &mut scratch, &mut out),
            2 => many_patterns::differences::<S, W, 2>(simd, patterns, members, texts, &mut scratch, &mut out),
            _ => many_patterns::differences::<S, W, VECTORS>(simd, patterns, members, texts, &mut scratch, &mut out),
        }
    }
}
