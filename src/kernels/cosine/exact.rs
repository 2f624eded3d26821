//! The canonical score: f64, one order of summation, the same bits everywhere.
//!
//! A product of two f32 is exact in f64, so whether the CPU fuses the multiply-add makes no difference; what is left to
//! fix is the order of the sum. It runs in 16 lanes (element `i` goes to lane `i % 16`), which are then added in halves.

use super::Metric;
use crate::simd::{Level, Simd, simd};

const LANES: usize = 16;

/// A vector widened to f64, with its squared norm in the canonical order of summation.
#[derive(Default, Clone)]
pub(super) struct Wide {
    values: Vec<f64>,
    pub(super) norm2: f64,
}

impl Wide {
    pub(super) fn new(level: Level, values: &[f32]) -> Self {
        let mut wide = Self::default();
        wide.set(level, values);
        wide
    }

    /// Takes another vector, keeping the allocation.
    pub(super) fn set(&mut self, level: Level, values: &[f32]) {
        self.values.resize(values.len(), 0.0);
        self.norm2 = crate::dispatch!(level, simd => widen(simd, values, &mut self.values));
    }
}

/// The score by which rows are ordered, larger first: cosine, dot product, or minus the squared distance.
/// Zero is positive zero, so that equal scores have equal bits.
pub(super) fn score(level: Level, metric: Metric, query: &Wide, row: &Wide) -> f64 {
    debug_assert_eq!(query.values.len(), row.values.len(), "checked by the caller");
    let score = match metric {
        Metric::Cosine if query.norm2 == 0.0 || row.norm2 == 0.0 => 0.0,
        Metric::Cosine => {
            let dot = crate::dispatch!(level, simd => dot(simd, &query.values, &row.values));
            (dot / (query.norm2.sqrt() * row.norm2.sqrt())).clamp(-1.0, 1.0)
        }
        Metric::Dot => crate::dispatch!(level, simd => dot(simd, &query.values, &row.values)),
        Metric::L2 => -crate::dispatch!(level, simd => distance2(simd, &query.values, &row.values)),
    };
    score + 0.0
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
fn widen<S: Simd>(_simd: S, values: &[f32], wide: &mut [f64]) -> f64 {
    for (wide, &value) in wide.iter_mut().zip(values) {
        *wide = f64::from(value);
    }
    sum(wide, wide, |a, b| a * b)
}

#[simd]
fn dot<S: Simd>(_simd: S, a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |a, b| a * b)
}

#[simd]
fn distance2<S: Simd>(_simd: S, a: &[f64], b: &[f64]) -> f64 {
    // Rust never fuses `d * d + sum`, so this too has the same bits on every CPU.
    sum(a, b, |a, b| (a - b) * (a - b))
}

#[inline(always)]
fn sum(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (a_whole, a_rest) = a.as_chunks::<LANES>();
    let (b_whole, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_whole.iter().zip(b_whole) {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += term(a, b);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
