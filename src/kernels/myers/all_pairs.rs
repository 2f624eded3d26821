//! All of some rows with all of some columns, in blocks.

use super::many_patterns::{self, Alphabet, ListOfPatterns, Ordered, Patterns, Table};
use super::simd::{MOST_A_TASK, SYMBOLS_A_TASK, Sides, Which, check_length, worth};
use super::sums::{Classes, Layout, Sums};
use super::{BEYOND, Texts, filter, length, long_pairs};
use crate::data::Symbols;
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::Level;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

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
    // Tables of symbols that are many are large: to have them all in memory pays for many rows only.
    let are_bytes = matches!(column_texts.symbols(), Symbols::Narrow(_));
    let is_shared = rows.len() >= if are_bytes { 256 } else { 768 };
    let symbols = (of_rows / rows.len() * words).max(1);
    let (height, width) = block(rows.len(), columns.len(), symbols, is_shared, threads);
    let order = many_patterns::in_order(row_texts, rows.clone());
    let down = order.len().div_ceil(height);
    let bands: Vec<_> = tiles(columns.clone(), width).map(Band::new).collect();
    let mut parts: Vec<Vec<&mut [u32]>> = (0..bands.len() * down).map(|_| Vec::with_capacity(height)).collect();
    let mut by_row: Vec<_> =
        distances.chunks_exact_mut(columns.len()).map(|distances| distances.chunks_mut(width)).collect();
    for (place, &row) in order.iter().enumerate() {
        let blocks = parts[place / height..].iter_mut().step_by(down);
        blocks.zip(&mut by_row[row as usize - rows.start]).for_each(|(block, part)| block.push(part));
    }
    let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
    let sides = Sides::new(row_texts, column_texts, cutoff);
    share(threads, parts.len(), Scratch::default, |scratch, task| {
        let (band, block) = (&bands[task / down], task % down);
        let mut distances = parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let columns = scratch.columns.take().filter(|columns| columns.range == band.columns);
        let columns = columns.unwrap_or_else(|| band.prepared(is_shared));
        let rows = &order[block * height..order.len().min((block + 1) * height)];
        Block { sides: &sides, rows, columns: &columns, turn: task }.compute(platform.level, scratch, &mut distances);
        scratch.columns = Some(columns);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Rows and columns of a block: as many columns as can be, for the last vector of each class is not full; and enough blocks
/// for all threads. Where tables are shared rows may be few, so that their sums stay near; else a block makes its own, and
/// many rows pay for them. `symbols` says what a pair costs that is compared by itself.
fn block(rows: usize, columns: usize, symbols: usize, is_shared: bool, threads: usize) -> (usize, usize) {
    const COLUMNS: usize = 2048;
    let (most_rows, fewest_rows) = if is_shared { (128, 32) } else { (256, 256) };
    let (down, across) = (rows.div_ceil(most_rows), columns.div_ceil(COLUMNS));
    if threads == 1 {
        return (rows.div_ceil(down), columns.div_ceil(across));
    }
    let wanted = 8 * threads;
    let least = SYMBOLS_A_TASK / symbols;
    let (fewest_rows, fewest_columns) = (least.clamp(1, fewest_rows), least.clamp(8, COLUMNS / 2));
    let across = across.max((wanted / down).min(columns.div_ceil(fewest_columns)));
    let down = down.max((wanted / across).min(rows.div_ceil(fewest_rows)));
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
    tables: (Table<u8>, Table<u16>, Table<u32>, Table<u64>),
    columns: Option<Arc<Columns>>,
}

/// Columns that are compared with all rows, and what is made of them for that: there as long as some thread is at them.
struct Band {
    columns: Range<usize>,
    prepared: Mutex<Weak<Columns>>,
}

impl Band {
    fn new(columns: Range<usize>) -> Self {
        Self { columns, prepared: Mutex::default() }
    }

    fn prepared(&self, is_shared: bool) -> Arc<Columns> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.upgrade().unwrap_or_else(|| {
            let range = self.columns.clone();
            let columns =
                Arc::new(Columns { range, is_shared, signatures: OnceLock::new(), by_class: OnceLock::new() });
            *prepared = Arc::downgrade(&columns);
            columns
        })
    }
}

/// What is made of some columns, once it is needed.
struct Columns {
    range: Range<usize>,
    /// Whether tables are.
    is_shared: bool,
    signatures: OnceLock<Vec<u64>>,
    by_class: OnceLock<ByClass>,
}

/// Columns by the words that they fit into.
struct ByClass {
    alphabet: Alphabet,
    layout: Layout,
    words: (Patterns<u8>, Patterns<u16>, Patterns<u32>, Patterns<u64>),
    long: Vec<u32>,
}

impl ByClass {
    fn new(level: Level, texts: &Texts, columns: Range<usize>, is_shared: bool) -> Self {
        let classes = Classes::of(columns.clone().map(|column| texts.length(column)));
        let layout = Layout::new(level, &classes, columns.len());
        let Classes { words: [a, b, c, d], long } = classes;
        let words = (
            Patterns::new(level, a, is_shared),
            Patterns::new(level, b, is_shared),
            Patterns::new(level, c, is_shared),
            Patterns::new(level, d, is_shared),
        );
        Self { alphabet: Alphabet::of(texts, columns), layout, words, long }
    }
}

/// Some rows against some columns: what one task does.
struct Block<'a, 's> {
    sides: &'a Sides<'s>,
    rows: &'a [u32],
    columns: &'a Columns,
    turn: usize,
}

impl Block<'_, '_> {
    fn compute(&self, level: Level, scratch: &mut Scratch, distances: &mut [&mut [u32]]) {
        if let Some(cutoff) = self.sides.cutoff.filter(|&cutoff| cutoff <= FEW_EDITS)
            && let Some(near) = self.near(level, cutoff)
        {
            distances.iter_mut().for_each(|distances| distances.fill(BEYOND));
            return self.some(level, &near, &mut scratch.long, distances);
        }
        let Sides { left, right, cutoff, .. } = *self.sides;
        let columns = &self.columns.range;
        let ByClass { alphabet, layout, words, long } =
            self.columns.by_class.get_or_init(|| ByClass::new(level, right, columns.clone(), self.columns.is_shared));
        if long.len() < columns.len() {
            let texts = Ordered::new(alphabet, left, self.rows.iter().map(|&row| row as usize));
            let mut sums = Sums::new(level, layout, self.rows.len(), &mut scratch.sums);
            let patterns = ListOfPatterns { texts: right, first: columns.start, alphabet };
            let tables = &mut scratch.tables;
            words.0.differences(level, &patterns, &texts, self.turn, &mut tables.0, &mut sums.of_class(0));
            words.1.differences(level, &patterns, &texts, self.turn, &mut tables.1, &mut sums.of_class(1));
            words.2.differences(level, &patterns, &texts, self.turn, &mut tables.2, &mut sums.of_class(2));
            words.3.differences(level, &patterns, &texts, self.turn, &mut tables.3, &mut sums.of_class(3));
            for (text, distances) in distances.iter_mut().enumerate() {
                let length = length(left.length(self.rows[text] as usize));
                crate::dispatch!(level, simd => sums.distances(simd, text, length, cutoff, distances));
            }
        }
        if !long.is_empty() {
            let of_row = |row| long.iter().map(move |&column| (row, column));
            let pairs: Vec<_> = (0..length(self.rows.len())).flat_map(of_row).collect();
            self.some(level, &pairs, &mut scratch.long, distances);
        }
    }

    /// Rows and columns, by their numbers in the block, that may be within the cutoff; none if those are too many for
    /// comparing them one by one.
    fn near(&self, level: Level, cutoff: u32) -> Option<Vec<(u32, u32)>> {
        let columns = self.columns;
        let of_columns = columns.signatures.get_or_init(|| filter::signatures(self.sides.right, columns.range.clone()));
        let of_rows = filter::signatures(self.sides.left, self.rows.iter().map(|&row| row as usize));
        let mut near = Vec::new();
        for (row, &of_row) in (0..).zip(&of_rows) {
            let found = |column| near.push((row, length(column)));
            crate::dispatch!(level, simd => filter::near(simd, of_row, of_columns, 2 * cutoff, found));
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
            let rows: Vec<_> = pairs.iter().map(|&(row, _)| self.rows[row as usize]).collect();
            let first = length(self.columns.range.start);
            let columns: Vec<_> = pairs.iter().map(|&(_, column)| first + column).collect();
            let found = &mut found[..pairs.len()];
            self.sides.compare((Which::These(&rows), Which::These(&columns)), level, scratch, found);
            for (&(row, column), &found) in pairs.iter().zip(&*found) {
                distances[row as usize][column as usize] = found;
            }
        }
    }
}
