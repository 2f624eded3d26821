//! The canonical score: f64, one order of summation, the same bits everywhere.
//!
//! A product of two f32 is exact in f64, so whether the CPU fuses the multiply-add makes no difference; what is left to
//! fix is the order of the sum. It runs in 16 lanes (element `i` goes to lane `i % 16`), which are then added in halves.

use super::Metric;
use crate::simd::{Level, Simd, simd};

const LANES: usize = 16;

/// A query as exact scores need it: widened to f64, with its norm.
pub(super) struct ExactQuery {
    values: Vec<f64>,
    norm: f64,
    metric: Metric,
    level: Level,
}

impl ExactQuery {
    pub(super) fn new(level: Level, metric: Metric, values: &[f32]) -> Self {
        let norm = norm(level, values);
        Self { values: values.iter().map(|&value| f64::from(value)).collect(), norm, metric, level }
    }

    /// The score by which rows are ordered, larger first: cosine, dot product, or minus the squared distance.
    /// Zero is positive zero, so that equal scores have equal bits.
    pub(super) fn score(&self, row: &[f32]) -> f64 {
        let norm = if self.metric == Metric::Cosine { norm(self.level, row) } else { 0.0 };
        self.scores([row], [norm])[0]
    }

    /// The scores of several rows at once, which read the query once; `norms` are those of the rows.
    #[inline(always)]
    pub(super) fn scores<const N: usize>(&self, rows: [&[f32]; N], norms: [f64; N]) -> [f64; N] {
        debug_assert!(rows.iter().all(|row| row.len() == self.values.len()), "checked by the caller");
        if self.metric == Metric::L2 {
            return crate::dispatch!(self.level, simd => distances2(simd, rows, &self.values)).map(|sum| 0.0 - sum);
        }
        let mut scores = crate::dispatch!(self.level, simd => dots(simd, rows, &self.values));
        for (score, norm) in scores.iter_mut().zip(norms) {
            if self.metric == Metric::Cosine {
                let norms = self.norm * norm;
                let zero = self.norm == 0.0 || norm == 0.0;
                *score = if zero { 0.0 } else { (*score / norms).clamp(-1.0, 1.0) };
            }
            *score += 0.0;
        }
        scores
    }
}

/// The norm, its squares added in the canonical order.
pub(super) fn norm(level: Level, values: &[f32]) -> f64 {
    crate::dispatch!(level, simd => squares(simd, values)).sqrt()
}

/// What is printed for a score.
#[expect(clippy::cast_possible_truncation, reason = "scores are printed as f32")]
pub(super) fn printed(metric: Metric, score: f64) -> f32 {
    match metric {
        Metric::Cosine | Metric::Dot => score as f32,
        Metric::L2 => (-score).sqrt() as f32,
    }
}

#[simd]
fn squares<S: Simd>(_simd: S, values: &[f32]) -> f64 {
    sums([values], values, |a, b| f64::from(a) * f64::from(b))[0]
}

#[simd]
fn dots<S: Simd, const N: usize>(_simd: S, rows: [&[f32]; N], query: &[f64]) -> [f64; N] {
    sums(rows, query, |a, b| f64::from(a) * b)
}

#[simd]
fn distances2<S: Simd, const N: usize>(_simd: S, rows: [&[f32]; N], query: &[f64]) -> [f64; N] {
    // Rust never fuses `d * d + sum`, so this too has the same bits on every CPU.
    sums(rows, query, |a, b| (b - f64::from(a)) * (b - f64::from(a)))
}

/// The sum of `term` over the elements of each row and of `other`, which are of one length.
#[inline(always)]
fn sums<T: Copy, const N: usize>(rows: [&[f32]; N], other: &[T], term: impl Fn(f32, T) -> f64) -> [f64; N] {
    let mut lanes = [[0.0f64; LANES]; N];
    let (whole, rest) = other.as_chunks::<LANES>();
    let rows = rows.map(|row| {
        let (chunks, rest) = row.as_chunks::<LANES>();
        (&chunks[..whole.len()], rest)
    });
    for (at, other) in whole.iter().enumerate() {
        for ((chunks, _), lanes) in rows.iter().zip(&mut lanes) {
            for lane in 0..LANES {
                lanes[lane] += term(chunks[at][lane], other[lane]);
            }
        }
    }
    for ((_, row), lanes) in rows.iter().zip(&mut lanes) {
        for ((lane, &value), &other) in lanes.iter_mut().zip(*row).zip(rest) {
            *lane += term(value, other);
        }
    }
    lanes.map(|mut lanes| {
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
            half /= 2;
        }
        lanes[0]
    })
}
