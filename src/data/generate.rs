//! Seeded inputs; every distribution has a name.
//!
//! A matrix is made in blocks of [`BLOCK_ROWS`] rows. Each block has its own random stream, seeded from (seed, stream,
//! block), so that blocks can be made in parallel, alone, or one after the other straight into a file, and always hold
//! the same values. The streams are pinned by tests: a change of a dependency cannot alter an input unnoticed.
//!
//! | name | what | why |
//! |---|---|---|
//! | `gaussian` | independent standard normal values | no structure: scores concentrate, the plain case |
//! | `clustered` | unit rows around 256 centres that share a direction | real embeddings are: many near neighbours, a common mean |
//! | `duplicates` | copies of 64 rows | ties everywhere: order by row number decides |
//! | `sorted` | each row is nearer to one direction than the row before it | every row beats the best so far: worst case for selection |
//!
//! Queries come from their own streams ([`queries`]) but share the structure of the matrix with the same seed: the same
//! centres, the same repeated rows, the same direction.

use super::{Buffer, Matrix};
use crate::error::Error;
use rand_distr::{Distribution as _, StandardNormal, StandardUniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

/// The names of all distributions; the first is the default.
pub const DISTRIBUTIONS: &[&str] = &["gaussian", "clustered", "duplicates", "sorted"];

/// Rows that share one random stream.
pub const BLOCK_ROWS: usize = 256;

/// Centres of `clustered`. Cluster sizes differ: cluster `floor(256 u^2)` for a uniform u, so the first is the largest.
const CENTRES: usize = 256;
/// `clustered`: how much of a row all rows share, before the row is scaled to length 1. With these three shares the cosine
/// of two rows is about 0.16 across clusters and 0.64 within one.
const SHARED: f64 = 0.4;
/// `clustered`: how much of a row its cluster shares.
const CENTRE: f64 = 0.7;
/// `clustered`: how much of a row is its own.
const SPREAD: f64 = 0.6;
/// Distinct rows of `duplicates`.
const DISTINCT: usize = 64;
/// `sorted`: the cosine with the direction of the last row; the first row's is near 0.
const STEEPEST: f64 = 0.9;
/// `sorted`: how far queries are off the direction, as the tangent of the angle.
const ASTRAY: f64 = 0.01;

/// Stream numbers: what a block's random numbers are for. Calls of [`queries`] count up from `QUERIES`.
const STRUCTURE: u64 = 0;
const ROWS: u64 = 1;
const QUERIES: u64 = 2;

/// A matrix of `rows` x `cols` values from a named distribution, made on all threads of the current pool.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, and when the size overflows or memory is not to be had.
pub fn matrix(distribution: &str, rows: usize, cols: usize, seed: u64) -> Result<Matrix, Error> {
    Generator::new(distribution, rows, cols, seed)?.matrix()
}

/// `count` queries that belong to the matrix of the same distribution, `cols` and `seed`: near its centres, equal to its
/// repeated rows, along its direction. `call` numbers independent sets.
///
/// # Errors
/// As [`matrix`].
pub fn queries(distribution: &str, count: usize, cols: usize, seed: u64, call: u64) -> Result<Matrix, Error> {
    Generator::queries(distribution, count, cols, seed, call)?.matrix()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Gaussian,
    Clustered,
    Duplicates,
    Sorted,
}

/// A matrix that is made block by block.
#[derive(Debug, Clone)]
pub struct Generator {
    distribution: Distribution,
    rows: usize,
    cols: usize,
    seed: u64,
    stream: u64,
    /// What all blocks share: centres and their common direction, the repeated rows, or the direction; row-major.
    structure: Vec<f32>,
}

impl Generator {
    /// Prepares what all blocks share.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown name, and when the size overflows.
    pub fn new(distribution: &str, rows: usize, cols: usize, seed: u64) -> Result<Self, Error> {
        let distribution = match distribution {
            "gaussian" => Distribution::Gaussian,
            "clustered" => Distribution::Clustered,
            "duplicates" => Distribution::Duplicates,
            "sorted" => Distribution::Sorted,
            other => {
                return Err(Error::argument("distribution", format!("one of {}", DISTRIBUTIONS.join(", ")), other));
            }
        };
        size(rows, cols)?;
        let shared_rows = match distribution {
            Distribution::Gaussian => 0,
            Distribution::Clustered => CENTRES + 1,
            Distribution::Duplicates => DISTINCT,
            Distribution::Sorted => 1,
        };
        let mut structure = allocate(shared_rows, cols)?;
        for (number, row) in structure.chunks_exact_mut(cols.max(1)).enumerate() {
            let mut random = random(seed, STRUCTURE, number as u64);
            normal(&mut random, row);
            if distribution != Distribution::Duplicates {
                scale_to_one(row);
            }
        }
        Ok(Self { distribution, rows, cols, seed, stream: ROWS, structure })
    }

    /// Prepares queries instead: see [`queries`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn queries(distribution: &str, count: usize, cols: usize, seed: u64, call: u64) -> Result<Self, Error> {
        let generator = Self::new(distribution, count, cols, seed)?;
        Ok(Self { stream: QUERIES.wrapping_add(call), ..generator })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of blocks; the last one may be shorter than [`BLOCK_ROWS`].
    pub fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK_ROWS)
    }

    /// Values of a block that is not the last one.
    pub fn block_values(&self) -> usize {
        BLOCK_ROWS * self.cols
    }

    /// The rows of a block, as (first, count).
    pub fn block_rows(&self, block: usize) -> (usize, usize) {
        let first = block * BLOCK_ROWS;
        (first, BLOCK_ROWS.min(self.rows - first))
    }

    /// Makes one block.
    ///
    /// # Panics
    /// When there is no such block or `values` is not exactly as long as its rows.
    pub fn fill(&self, block: usize, values: &mut [f32]) {
        let (first, count) = self.block_rows(block);
        assert_eq!(values.len(), count * self.cols, "the length of block {block}");
        let mut random = random(self.seed, self.stream, block as u64);
        for (row, values) in values.chunks_exact_mut(self.cols.max(1)).enumerate() {
            self.fill_row(first + row, values, &mut random);
        }
    }

    fn fill_row(&self, row: usize, values: &mut [f32], random: &mut Xoshiro256PlusPlus) {
        match self.distribution {
            Distribution::Gaussian => normal(random, values),
            Distribution::Clustered => {
                let uniform: f64 = StandardUniform.sample(random);
                let centre = self.shared(index(uniform * uniform, CENTRES));
                let shared = self.shared(CENTRES);
                // The noise has length 1 on average, like the centres and the shared direction.
                let spread = SPREAD / (values.len() as f64).sqrt();
                for ((value, &centre), &shared) in values.iter_mut().zip(centre).zip(shared) {
                    let noise: f64 = StandardNormal.sample(random);
                    *value = narrow(SHARED * f64::from(shared) + CENTRE * f64::from(centre) + spread * noise);
                }
                scale_to_one(values);
            }
            Distribution::Duplicates => {
                let uniform: f64 = StandardUniform.sample(random);
                values.copy_from_slice(self.shared(index(uniform, DISTINCT)));
            }
            Distribution::Sorted => {
                let direction = self.shared(0);
                normal(random, values);
                let along = dot(values, direction);
                for (value, &direction) in values.iter_mut().zip(direction) {
                    *value = narrow(f64::from(*value) - along * f64::from(direction));
                }
                scale_to_one(values);
                let (cosine, sine) = if self.stream == ROWS {
                    let cosine = STEEPEST * (row + 1) as f64 / self.rows as f64;
                    (cosine, (1.0 - cosine * cosine).sqrt())
                } else {
                    (1.0, ASTRAY)
                };
                for (value, &direction) in values.iter_mut().zip(direction) {
                    *value = narrow(cosine * f64::from(direction) + sine * f64::from(*value));
                }
            }
        }
    }

    fn shared(&self, row: usize) -> &[f32] {
        &self.structure[row * self.cols..][..self.cols]
    }

    fn matrix(&self) -> Result<Matrix, Error> {
        let mut values = Buffer::zeroed(size(self.rows, self.cols)?)?;
        if !values.is_empty() {
            values.par_chunks_mut(self.block_values()).enumerate().for_each(|(block, values)| self.fill(block, values));
        }
        Matrix::from_buffer(self.rows, self.cols, values)
    }
}

/// The generator of one block of one stream. Blocks are independent: each seed is mixed well before it is used.
fn random(seed: u64, stream: u64, block: u64) -> Xoshiro256PlusPlus {
    let mixed = mix(mix(mix(seed).wrapping_add(stream)).wrapping_add(block));
    Xoshiro256PlusPlus::seed_from_u64(mixed)
}

/// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn normal<R: Rng>(random: &mut R, values: &mut [f32]) {
    for value in values {
        *value = StandardNormal.sample(random);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// Divides by the length; a row of zeros (possible with one column only) stays.
fn scale_to_one(values: &mut [f32]) {
    let length = dot(values, values).sqrt();
    if length > 0.0 {
        for value in values {
            *value = narrow(f64::from(*value) / length);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to storage precision is what is wanted")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// `floor(uniform * count)`, for a uniform in \[0, 1).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 <= uniform * count < count, and count is small"
)]
fn index(uniform: f64, count: usize) -> usize {
    ((uniform * count as f64) as usize).min(count - 1)
}

fn size(rows: usize, cols: usize) -> Result<usize, Error> {
    let values = rows.checked_mul(cols).filter(|values| *values <= isize::MAX as usize / size_of::<f32>());
    values.ok_or_else(|| too_large(rows, cols))
}

fn allocate(rows: usize, cols: usize) -> Result<Vec<f32>, Error> {
    let count = size(rows, cols)?;
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| too_large(rows, cols))?;
    values.resize(count, 0.0);
    Ok(values)
}

fn too_large(rows: usize, cols: usize) -> Error {
    Error::argument("matrix", "a size that fits into memory", format!("{rows} x {cols} values of 4 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over the bits of all values: one number that changes when any bit does.
    fn hash(matrix: &Matrix) -> u64 {
        matrix
            .values()
            .iter()
            .flat_map(|value| value.to_bits().to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    fn cosine(a: &[f32], b: &[f32]) -> f64 {
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn the_streams_are_those_of_the_first_release() {
        let hashes: Vec<_> = DISTRIBUTIONS
            .iter()
            .map(|name| {
                (*name, hash(&matrix(name, 600, 24, 42).unwrap()), hash(&queries(name, 300, 24, 42, 0).unwrap()))
            })
            .collect();
        let expected = [
            ("gaussian", 1_358_332_764_757_202_571, 4_393_645_093_270_958_454),
            ("clustered", 15_730_229_659_546_039_596, 4_740_834_169_733_903_286),
            ("duplicates", 6_250_502_404_813_497_147, 5_193_383_962_295_673_878),
            ("sorted", 1_551_908_527_885_333_751, 1_215_933_827_613_512_175),
        ];
        assert_eq!(hashes, expected);
    }

    #[test]
    fn the_first_values_of_gaussian_are_pinned() {
        assert_eq!(
            matrix("gaussian", 1, 4, 42).unwrap().values(),
            [0.230_759_65, 0.371_254_5, 1.618_716_7, -2.086_897_1]
        );
    }

    #[test]
    fn a_block_made_alone_is_the_block_of_the_matrix() {
        for name in DISTRIBUTIONS {
            let whole = matrix(name, 2 * BLOCK_ROWS + 7, 5, 3).unwrap();
            let generator = Generator::new(name, 2 * BLOCK_ROWS + 7, 5, 3).unwrap();
            assert_eq!(generator.blocks(), 3);
            for block in [2, 0, 1] {
                let (first, count) = generator.block_rows(block);
                let mut values = vec![0.0; count * 5];
                generator.fill(block, &mut values);
                assert_eq!(values, whole.values()[first * 5..(first + count) * 5], "{name}, block {block}");
            }
        }
    }

    #[test]
    fn seeds_calls_and_blocks_give_different_values() {
        let base = matrix("gaussian", 512, 3, 1).unwrap();
        assert_ne!(base, matrix("gaussian", 512, 3, 2).unwrap());
        assert_ne!(base.values()[..768], base.values()[768..]);
        assert_ne!(base, queries("gaussian", 512, 3, 1, 0).unwrap());
        assert_ne!(queries("gaussian", 9, 3, 1, 0).unwrap(), queries("gaussian", 9, 3, 1, 1).unwrap());
    }

    #[test]
    fn gaussian_values_have_mean_0_and_variance_1() {
        let values = matrix("gaussian", 1000, 100, 5).unwrap();
        let count = values.values().len() as f64;
        let mean = values.values().iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = dot(values.values(), values.values()) / count - mean * mean;
        // Four standard errors of 100,000 values.
        assert!(mean.abs() < 0.0127 && (variance - 1.0).abs() < 0.018, "mean {mean}, variance {variance}");
    }

    #[test]
    fn clustered_rows_have_length_1_and_many_near_neighbours() {
        let corpus = matrix("clustered", 2000, 384, 9).unwrap();
        let queries = queries("clustered", 20, 384, 9, 0).unwrap();
        for row in 0..corpus.rows() {
            assert!((dot(corpus.row(row), corpus.row(row)) - 1.0).abs() < 1e-6);
        }
        let (mut near, mut sum) = (0, 0.0);
        for query in 0..20 {
            let cosines: Vec<_> = (0..2000).map(|row| cosine(queries.row(query), corpus.row(row))).collect();
            near += cosines.iter().filter(|&&c| c > 0.5).count();
            sum += cosines.iter().sum::<f64>();
        }
        let mean = sum / 40_000.0;
        // Within a cluster 0.64 +- 0.05, across 0.16 +- 0.05; a cluster has 8 rows on average, the largest 125.
        assert!((100..=2500).contains(&near), "{near} near pairs");
        assert!((0.12..0.22).contains(&mean), "mean cosine {mean}");
    }

    #[test]
    fn duplicates_have_few_distinct_rows_and_queries_are_among_them() {
        let corpus = matrix("duplicates", 5000, 8, 1).unwrap();
        let mut rows: Vec<Vec<u32>> =
            (0..5000).map(|row| corpus.row(row).iter().map(|value| value.to_bits()).collect()).collect();
        rows.sort();
        rows.dedup();
        assert_eq!(rows.len(), DISTINCT);
        let queries = queries("duplicates", 10, 8, 1, 4).unwrap();
        for query in 0..10 {
            let bits: Vec<_> = queries.row(query).iter().map(|value| value.to_bits()).collect();
            assert!(rows.binary_search(&bits).is_ok());
        }
    }

    #[test]
    fn sorted_rows_come_nearer_to_the_direction_row_by_row() {
        let generator = Generator::new("sorted", 3000, 64, 11).unwrap();
        let corpus = generator.matrix().unwrap();
        let cosines: Vec<_> = (0..3000).map(|row| cosine(generator.shared(0), corpus.row(row))).collect();
        assert!(cosines.is_sorted_by(|a, b| a < b));
        assert!(cosines[0] < 0.001 && (cosines[2999] - STEEPEST).abs() < 1e-6);
        let queries = queries("sorted", 4, 64, 11, 0).unwrap();
        assert!((0..4).all(|query| cosine(generator.shared(0), queries.row(query)) > 0.9999));
    }

    #[test]
    fn tiny_sizes_are_finite() {
        for name in DISTRIBUTIONS {
            for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 1), (1, 5)] {
                let matrix = matrix(name, rows, cols, 0).unwrap();
                assert_eq!((matrix.rows(), matrix.cols()), (rows, cols), "{name}");
                assert!(matrix.values().iter().all(|value| value.is_finite()), "{name} {rows} x {cols}");
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        assert_eq!(
            matrix("uniform", 1, 1, 0).unwrap_err().to_string(),
            "distribution: expected one of gaussian, clustered, duplicates, sorted, found uniform"
        );
    }

    #[test]
    fn a_size_that_overflows_is_an_error() {
        assert!(matches!(matrix("gaussian", usize::MAX / 2, 3, 0), Err(Error::Argument { .. })));
        assert!(matches!(matrix("gaussian", usize::MAX / 4, 1, 0), Err(Error::Argument { .. })));
    }
}
