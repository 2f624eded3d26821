//! Seeded sparse matrices and the dense operands they are multiplied with; every kind has a name.
//!
//! | name | shape | what | why |
//! |---|---|---|---|
//! | `tf-idf` | rows x 20,000 | every place filled with probability 0.2%: about 40 entries a row | documents and their terms, in the sizes that others publish (5,000 and 50,000 rows); no row and no column stands out |
//! | `zipf` | rows x 20,000 | columns drawn with probability 1 / (rank + 2.7), rows of log-normal lengths: about 53 entries a row, all ranks in random order | what real text does to the above: few columns hold most entries, rows differ in length |
//! | `power-law` | square | R-MAT edges (.57, .19, .19, .05), vertices in random order: about 20 entries a row, about a third of the rows empty | graphs of people or pages: long rows, empty rows, no locality |
//! | `banded` | square | the 27 neighbours in a cube of side ⌊∛rows⌋; rows beyond the cube have their diagonal only | meshes: neighbouring rows share their columns, so everything is in cache |
//! | `skewed` | square | three rows in ten empty, the others 10 to 30 entries, but for one in the first half that holds a quarter of all entries | the worst case for splitting work by rows |
//!
//! Values are standard normal. The columns of a row increase, with one exception: the long row of `skewed` holds more
//! entries than there are columns, so it runs through all columns in order, again and again. It is there to be met by
//! everything that takes columns for sorted or distinct.
//!
//! Random numbers come in blocks of rows, of edges or of values, each with a stream of its own that is seeded from (seed,
//! purpose, block). So a matrix is made on all threads and is the same for any number of them. The streams are pinned by a
//! test: a change of a dependency cannot alter an input unnoticed.

use super::{Buffer, Csr, Matrix};
use crate::error::Error;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution as _, LogNormal, StandardNormal, StandardUniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

/// The names of all kinds of matrices; the first is the default.
pub const MATRICES: &[&str] = &["tf-idf", "zipf", "power-law", "banded", "skewed"];

/// Columns of `tf-idf` and `zipf`.
const TERMS: u32 = 20_000;
/// `tf-idf`: the share of the places that are filled.
const DENSITY: f64 = 0.002;
/// `tf-idf`: more entries than any row will have: the chance of one with more is below 1e-60.
const MOST_TERMS: u32 = 250;
/// `zipf`: what is added to the rank, as Mandelbrot did, so that the first ranks are not too frequent.
const ZIPF_SHIFT: f64 = 2.7;
/// `zipf`: the median of the numbers of draws of the rows, and the standard deviation of their logarithms.
const ZIPF_LENGTH: f64 = 48.5;
const ZIPF_SPREAD: f64 = 0.7;
/// `zipf`: the mean number of entries of a row, after the draws of one column have fallen together.
const ZIPF_ENTRIES: f64 = 53.3;
/// `power-law`: edges drawn for each row. Some meet: 20 remain of them at 100,000 rows.
const EDGES: f64 = 21.5;
/// `skewed`: the share of empty rows.
const EMPTY: f64 = 0.3;
/// `skewed`: the fewest and the most entries of a row that is neither empty nor the long one.
const SHORT: (u32, u32) = (10, 30);

/// Rows that share one random stream.
const BLOCK_ROWS: usize = 256;
/// Edges that share one random stream.
const BLOCK_EDGES: usize = 16_384;
/// Values that share one random stream.
const BLOCK_VALUES: usize = 16_384;

/// What the random numbers of a stream are for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// What all blocks share: the order of columns or vertices.
    Order,
    /// Which places hold entries.
    Pattern,
    /// The values of the entries.
    Values,
    /// The dense operand of this number.
    Dense(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    TfIdf,
    Zipf,
    PowerLaw,
    Banded,
    Skewed,
}

impl Kind {
    fn of(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "tf-idf" => Self::TfIdf,
            "zipf" => Self::Zipf,
            "power-law" => Self::PowerLaw,
            "banded" => Self::Banded,
            "skewed" => Self::Skewed,
            other => return Err(Error::argument("matrix", format!("one of {}", MATRICES.join(", ")), other)),
        })
    }

    fn cols(self, rows: usize) -> usize {
        match self {
            Self::TfIdf | Self::Zipf => TERMS as usize,
            Self::PowerLaw | Self::Banded | Self::Skewed => rows,
        }
    }

    /// Entries of a matrix of this kind, expected or exact.
    fn entries(self, rows: usize) -> f64 {
        let count = rows as f64;
        match self {
            Self::TfIdf => count * f64::from(TERMS) * DENSITY,
            Self::Zipf => count * ZIPF_ENTRIES,
            Self::PowerLaw => (count * EDGES).min(count * count),
            Self::Banded => {
                let side = side(rows) as f64;
                let in_cube = if side > 0.0 { (3.0 * side - 2.0).powi(3) } else { 0.0 };
                in_cube + (count - side * side * side)
            }
            Self::Skewed if rows == 0 => 0.0,
            Self::Skewed => {
                let mean = (SHORT.0..=SHORT.1).map(|length| f64::from(length).min(count)).sum::<f64>()
                    / f64::from(SHORT.1 - SHORT.0 + 1);
                let short = (count - 1.0) * (1.0 - EMPTY) * mean;
                short + (short / 3.0).max(1.0)
            }
        }
    }
}

/// A matrix of `rows` rows of a named kind, made on all threads of the current pool. O(entries).
///
/// # Errors
/// [`Error::Argument`] for an unknown name, and when memory for so many rows is not to be had; [`Error::Limit`] for more
/// than 2^32 columns.
pub fn matrix(kind: &str, rows: usize, seed: u64) -> Result<Csr<f64>, Error> {
    let kind_of = Kind::of(kind)?;
    let cols = kind_of.cols(rows);
    // Csr's own check of the columns, before anything is made.
    Csr::<f64>::new(0, cols, vec![0], Vec::new(), Vec::new())?;
    let expected = entries(kind, rows)?;
    let mut pattern = Pattern::with_room_for(kind, rows, expected)?;
    match kind_of {
        Kind::TfIdf => tf_idf(&mut pattern, rows, seed),
        Kind::Zipf => zipf(&mut pattern, rows, seed)?,
        Kind::PowerLaw => power_law(&mut pattern, rows, seed),
        Kind::Banded => banded(&mut pattern, rows),
        Kind::Skewed => skewed(&mut pattern, rows, seed),
    }
    let mut values = room(kind, rows, pattern.indices.len())?;
    values.resize(pattern.indices.len(), 0.0);
    normal(&mut values, seed, Purpose::Values);
    Csr::new(rows, cols, pattern.indptr, pattern.indices, values)
}

/// How many columns [`matrix`] has, at no cost.
///
/// # Errors
/// [`Error::Argument`] for an unknown name.
pub fn cols(kind: &str, rows: usize) -> Result<usize, Error> {
    Ok(Kind::of(kind)?.cols(rows))
}

/// How many entries [`matrix`] makes, at no cost: exact for `banded`, else the expected number. For `power-law` edges are
/// counted before those that meet fall together: about a tenth more than there will be.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, and when the number does not fit.
pub fn entries(kind: &str, rows: usize) -> Result<u64, Error> {
    let entries = Kind::of(kind)?.entries(rows);
    if entries >= i64::MAX as f64 {
        return Err(too_large(kind, rows));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= entries < 2^63")]
    Ok(entries.round() as u64)
}

/// A dense matrix of standard normal values. `call` numbers independent ones of the same seed.
///
/// # Errors
/// [`Error::Limit`] when the size overflows or memory is not to be had.
pub fn dense(rows: usize, cols: usize, seed: u64, call: u64) -> Result<Matrix<f64>, Error> {
    let length = rows.checked_mul(cols).ok_or_else(|| Error::Limit {
        what: format!("matrix of {rows} x {cols}"),
        requested: u64::MAX,
        max: usize::MAX as u64,
    })?;
    let mut values = Buffer::zeroed(length)?;
    normal(&mut values, seed, Purpose::Dense(call));
    Matrix::from_buffer(rows, cols, values)
}

/// The places that hold entries: row after row.
struct Pattern {
    indptr: Vec<usize>,
    indices: Vec<u32>,
}

/// Neighbouring rows of a pattern: how long each is, and the columns of all of them.
#[derive(Default)]
struct Block {
    lengths: Vec<usize>,
    indices: Vec<u32>,
}

impl Pattern {
    fn with_room_for(kind: &str, rows: usize, entries: u64) -> Result<Self, Error> {
        let entries = usize::try_from(entries).map_err(|_| too_large(kind, rows))?;
        let mut indptr = room(kind, rows, rows.checked_add(1).ok_or_else(|| too_large(kind, rows))?)?;
        indptr.push(0);
        // What it takes in all is asked for at once, so that what cannot be had is known before any work is done.
        room::<f64>(kind, rows, entries)?;
        Ok(Self { indptr, indices: room(kind, rows, entries)? })
    }

    fn push_row(&mut self, columns: impl IntoIterator<Item = u32>) {
        self.indices.extend(columns);
        self.indptr.push(self.indices.len());
    }

    /// Makes all rows, block by block on all threads. `row` appends the columns of one row.
    fn fill(&mut self, rows: usize, seed: u64, row: impl Fn(usize, &mut Xoshiro256PlusPlus, &mut Vec<u32>) + Sync) {
        for block in blocks(rows, seed, row) {
            let mut end = self.indices.len();
            self.indices.extend_from_slice(&block.indices);
            self.indptr.extend(block.lengths.iter().map(|length| {
                end += length;
                end
            }));
        }
    }
}

fn blocks(rows: usize, seed: u64, row: impl Fn(usize, &mut Xoshiro256PlusPlus, &mut Vec<u32>) + Sync) -> Vec<Block> {
    (0..rows.div_ceil(BLOCK_ROWS))
        .into_par_iter()
        .map(|number| {
            let mut random = random(seed, Purpose::Pattern, number);
            let mut block = Block::default();
            let first = number * BLOCK_ROWS;
            for number in first..(first + BLOCK_ROWS).min(rows) {
                let before = block.indices.len();
                row(number, &mut random, &mut block.indices);
                block.lengths.push(block.indices.len() - before);
            }
            block
        })
        .collect()
}

fn tf_idf(pattern: &mut Pattern, rows: usize, seed: u64) {
    let lengths = binomial();
    pattern.fill(rows, seed, |_, random, indices| {
        let uniform: f64 = StandardUniform.sample(random);
        let length = lengths.partition_point(|&below| below <= uniform);
        distinct(length, TERMS, random, indices);
    });
}

/// The chances that a row of `tf-idf` has at most 0, at most 1, ... entries. By the four basic operations only, so that
/// they are the same numbers everywhere.
fn binomial() -> Vec<f64> {
    let mut chance = (0..TERMS).fold(1.0, |chance, _| chance * (1.0 - DENSITY));
    let mut below = chance;
    let mut cumulated = vec![below];
    for length in 0..MOST_TERMS {
        chance *= f64::from(TERMS - length) / f64::from(length + 1) * (DENSITY / (1.0 - DENSITY));
        below += chance;
        cumulated.push(below);
    }
    cumulated
}

/// Appends `length` columns below `cols`, increasing, each set of them equally likely. `length` is at most `cols`.
fn distinct(length: usize, cols: u32, random: &mut Xoshiro256PlusPlus, indices: &mut Vec<u32>) {
    let mut columns = Vec::with_capacity(length);
    while columns.len() < length {
        let missing = length - columns.len();
        columns.extend((0..missing).map(|_| random.random_range(0..cols)));
        columns.sort_unstable();
        columns.dedup();
    }
    indices.extend(columns);
}

fn zipf(pattern: &mut Pattern, rows: usize, seed: u64) -> Result<(), Error> {
    let mut term_of: Vec<u32> = (0..TERMS).collect();
    term_of.shuffle(&mut random(seed, Purpose::Order, 0));
    let weights = (0..TERMS).map(|rank| 1.0 / (f64::from(rank) + ZIPF_SHIFT)).collect();
    let ranks = WeightedAliasIndex::new(weights).map_err(|error| Error::argument("zipf", "weights", error))?;
    let lengths =
        LogNormal::new(ZIPF_LENGTH.ln(), ZIPF_SPREAD).map_err(|error| Error::argument("zipf", "a spread", error))?;
    pattern.fill(rows, seed, |_, random, indices| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; few hundreds at most")]
        let draws = (lengths.sample(random) as usize).max(1);
        let mut columns: Vec<u32> = (0..draws).map(|_| term_of[ranks.sample(random)]).collect();
        columns.sort_unstable();
        columns.dedup();
        indices.extend(columns);
    });
    Ok(())
}

/// R-MAT: an edge is a walk down the quarters of the adjacency matrix of 2^scale vertices. These come in random order, and
/// as there are more of them than rows, some rows are two vertices.
fn power_law(pattern: &mut Pattern, rows: usize, seed: u64) {
    let scale = rows.max(1).next_power_of_two().ilog2();
    let mut shuffler = random(seed, Purpose::Order, 0);
    #[expect(clippy::cast_possible_truncation, reason = "checked: at most 2^32 columns")]
    let mut row_of: Vec<u32> = (0..rows).map(|row| row as u32).collect();
    row_of.shuffle(&mut shuffler);
    row_of.extend_from_within(..row_of.len().min((1 << scale) - row_of.len()));
    row_of.shuffle(&mut shuffler);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "memory for as many was asked for")]
    let edges = (rows as f64 * EDGES).round() as usize;
    let mut places = vec![0; edges];
    places.par_chunks_mut(BLOCK_EDGES).enumerate().for_each(|(number, places)| {
        let mut random = random(seed, Purpose::Pattern, number);
        for place in places {
            let (mut row, mut column) = (0, 0);
            for _ in 0..scale {
                let uniform: f64 = StandardUniform.sample(&mut random);
                // In the order of the quarters: upper left .57, upper right .19, lower left .19, lower right .05.
                let lower = uniform >= 0.76;
                let right = (0.57..0.76).contains(&uniform) | (uniform >= 0.95);
                row = 2 * row + usize::from(lower);
                column = 2 * column + usize::from(right);
            }
            *place = u64::from(row_of[row]) << 32 | u64::from(row_of[column]);
        }
    });
    places.par_sort_unstable();
    places.dedup();
    let mut places = places.as_slice();
    for row in 0..rows as u64 {
        let length = places.iter().take_while(|&&place| place >> 32 == row).count();
        let (of_row, rest) = places.split_at(length);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is the column")]
        pattern.push_row(of_row.iter().map(|&place| place as u32));
        places = rest;
    }
}

fn banded(pattern: &mut Pattern, rows: usize) {
    let side = side(rows);
    let neighbours = |at: usize| at.saturating_sub(1)..(at + 2).min(side);
    #[expect(clippy::cast_possible_truncation, reason = "checked: at most 2^32 columns")]
    for row in 0..rows {
        if row >= side.pow(3) {
            pattern.push_row([row as u32]);
            continue;
        }
        let (x, y, z) = (row / (side * side), row / side % side, row % side);
        pattern.push_row(neighbours(x).flat_map(|x| {
            neighbours(y).flat_map(move |y| neighbours(z).map(move |z| ((x * side + y) * side + z) as u32))
        }));
    }
}

/// The largest number whose cube is not above `rows`.
fn side(rows: usize) -> usize {
    let cube_is_within = |side: &usize| side.checked_pow(3).is_some_and(|cube| cube <= rows);
    // The cube root in floating point is off by one at most.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= root < 2^22")]
    let near = (rows as f64).cbrt() as usize;
    (near.saturating_sub(1)..=near + 1).rev().find(cube_is_within).unwrap_or(0)
}

fn skewed(pattern: &mut Pattern, rows: usize, seed: u64) {
    #[expect(clippy::cast_possible_truncation, reason = "2^32 columns, the most there can be, only lose the last one")]
    let cols = rows.min(u32::MAX as usize) as u32;
    let long = rows / 3;
    let blocks = blocks(rows, seed, |row, random, indices| {
        let uniform: f64 = StandardUniform.sample(random);
        let length = random.random_range(SHORT.0..=SHORT.1).min(cols);
        if uniform >= EMPTY && row != long {
            distinct(length as usize, cols, random, indices);
        }
    });
    let short: usize = blocks.iter().map(|block| block.indices.len()).sum();
    let mut row = 0;
    for block in blocks {
        let mut columns = block.indices.as_slice();
        for length in block.lengths {
            let (of_row, rest) = columns.split_at(length);
            if row == long {
                pattern.push_row((0..cols).cycle().take((short / 3).max(1)));
            } else {
                pattern.push_row(of_row.iter().copied());
            }
            columns = rest;
            row += 1;
        }
    }
}

/// Fills `values` with standard normal numbers, block by block on all threads.
fn normal(values: &mut [f64], seed: u64, purpose: Purpose) {
    values.par_chunks_mut(BLOCK_VALUES).enumerate().for_each(|(number, values)| {
        let mut random = random(seed, purpose, number);
        for value in values {
            *value = StandardNormal.sample(&mut random);
        }
    });
}

/// The generator of one block of one stream: its state is a digest of all three, so that no two are related.
fn random(seed: u64, purpose: Purpose, block: usize) -> Xoshiro256PlusPlus {
    let (purpose, number) = match purpose {
        Purpose::Order => (0, 0),
        Purpose::Pattern => (1, 0),
        Purpose::Values => (2, 0),
        Purpose::Dense(call) => (3, call),
    };
    let mut digest = Sha256::new();
    for part in [seed, purpose, number, block as u64] {
        digest.update(part.to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(digest.finalize().into())
}

/// An empty vector with room for `count`.
fn room<T>(kind: &str, rows: usize, count: usize) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| too_large(kind, rows))?;
    Ok(room)
}

fn too_large(kind: &str, rows: usize) -> Error {
    Error::argument("matrix", "a size that fits into memory", format!("{rows} rows of {kind}"))
}

#[cfg(test)]
#[path = "generate_sparse_tests.rs"]
mod tests;
