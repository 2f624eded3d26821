//! What turns an f32 dot product into a proven interval around the score.
//!
//! Let a = fl(q.x), summed in any order, fused or not. Then |a - q.x| <= gamma_n |q| |x| with gamma_n = n u / (1 - n u),
//! u = 2^-24, n = dim (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1). Each row gets some
//! numbers, so that one formula serves the three metrics:
//!
//! - upper = a * scale + bias + error * |q|
//! - lower = upper - 2 (error * |q| + slack) - slack_q
//!
//! A product of rounded integers (see [`quantized`](super::quantized)) has a larger error, and one more term: rounding * e_q.
//!
//! What is bounded is q.x / |x| for cosine, q.x for dot, and q.x - |x|^2 / 2 for L2: for a fixed query each of them orders
//! the rows as the score does. n is raised by dim / 16 + 32 to cover the f32 norm (at least 16 partial sums), its rounding,
//! and the rounding of these formulas themselves.

use super::quantized::Rounding;
use super::{Metric, exact};
use crate::simd::{Level, Simd, SimdBase, SimdFloat};

/// Squared norms outside of this range cannot be bounded in f32, where products would under- or overflow. A device may also
/// flush subnormal products to zero: at |q| |x| >= 1e-27 that is far below gamma.
const BOUNDED_NORM2: std::ops::RangeInclusive<f32> = 1e-24..=1e24;

/// The numbers of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowTerms {
    pub(super) scale: f32,
    pub(super) bias: f32,
    pub(super) error: f32,
    pub(super) slack: f32,
    /// What a query's own rounding error is multiplied with, where queries are rounded to integers.
    pub(super) rounding: f32,
}

impl RowTerms {
    /// A row that the fast pass never offers: its upper bound is below every threshold, or NaN.
    pub(super) const NEVER: Self = Self { scale: 0.0, bias: f32::NEG_INFINITY, error: 0.0, slack: 0.0, rounding: 0.0 };
    /// A row of zeros: q.x is 0 without any error.
    const ZERO: Self = Self { scale: 0.0, bias: 0.0, error: 0.0, slack: 0.0, rounding: 0.0 };
}

/// The width of an interval: `error` is the row's times |q|.
#[inline(always)]
pub(super) fn width<T: Copy + std::ops::Add<Output = T>>(error: T, slack: T, query_slack: T) -> T {
    let half = error + slack;
    half + half + query_slack
}

/// What kind of row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// Bounded by its terms.
    Usual,
    /// All zeros; bounded by its terms.
    Zero,
    /// Finite, but beyond f32 arithmetic: score it exactly.
    Exact,
    /// Holds a NaN or an infinity, at this column.
    Bad { column: usize },
}

/// gamma_n for this dimension, with the allowances described above.
#[expect(clippy::cast_precision_loss, reason = "a bound, rounded up below")]
fn gamma(n: usize) -> f32 {
    let nu = n as f64 / f64::from(1 << 24);
    // From 2^23 columns on the bound says nothing: everything is a candidate, which is slow and right.
    if nu >= 0.5 { f32::INFINITY } else { round_up(nu / (1.0 - nu)) }
}

/// A little above, so that the conversion to f32 cannot round a bound down.
#[expect(clippy::cast_possible_truncation, reason = "raised by more than the rounding")]
fn round_up(bound: f64) -> f32 {
    (bound * 1.000_001) as f32
}

/// What rows of one width have in common.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    metric: Metric,
    /// gamma of a dot product.
    dot: f32,
    /// gamma of a squared norm.
    norm: f32,
}

impl Bounds {
    pub(super) fn new(metric: Metric, dim: usize) -> Self {
        Self { metric, dot: gamma(dim + dim / 16 + 32), norm: gamma(dim / 16 + 32) }
    }

    /// The same for WGSL, whose operations may round either way: u = 2^-23.
    #[cfg(feature = "gpu")]
    pub(super) fn for_device(metric: Metric, dim: usize) -> Self {
        let (dot, norm) = (gamma(2 * (dim + dim / 16 + 32)), gamma(2 * (dim / 16 + 32)));
        Self { metric, dot, norm }
    }

    /// Terms and kind of a row with this squared norm.
    #[inline(always)]
    pub(super) fn row(&self, norm2: f32, row: &[f32]) -> (RowTerms, RowKind) {
        if BOUNDED_NORM2.contains(&norm2) {
            let (norm, rounding) = (norm2.sqrt(), 0.0);
            let terms = match self.metric {
                Metric::Cosine => RowTerms { scale: 1.0 / norm, bias: 0.0, error: self.dot, slack: 0.0, rounding },
                Metric::Dot => RowTerms { scale: 1.0, bias: 0.0, error: self.dot * norm, slack: 0.0, rounding },
                Metric::L2 => {
                    let slack = 0.5 * norm2 * self.norm;
                    RowTerms { scale: 1.0, bias: slack - 0.5 * norm2, error: self.dot * norm, slack, rounding }
                }
            };
            return (terms, RowKind::Usual);
        }
        unusual(row)
    }

    /// The terms of a usual row after it has been rounded to integers.
    ///
    /// |q| e + e_q (|x| + e) bounds what rounding costs. The error of the f32 product, doubled, covers the rounding of
    /// everything here and in the multiplication by two scales; the product of the integers is exact.
    #[inline(always)]
    pub(super) fn quantized(&self, terms: RowTerms, norm2: f32, rounding: Rounding) -> RowTerms {
        let error = rounding.error * terms.scale;
        let length = if self.metric == Metric::Cosine { 1.0 } else { norm2.sqrt() };
        RowTerms {
            scale: rounding.scale * terms.scale,
            error: 2.0 * terms.error + 1.001 * error,
            rounding: 1.001 * (length + error),
            ..terms
        }
    }
}

#[cold]
#[inline(never)]
fn unusual(row: &[f32]) -> (RowTerms, RowKind) {
    if let Some(column) = row.iter().position(|value| !value.is_finite()) {
        (RowTerms::NEVER, RowKind::Bad { column })
    } else if row.iter().all(|&value| value == 0.0) {
        (RowTerms::ZERO, RowKind::Zero)
    } else {
        (RowTerms::NEVER, RowKind::Exact)
    }
}

/// The squared norm in f32.
#[inline(always)]
pub(super) fn norm2<S: Simd>(simd: S, row: &[f32]) -> f32 {
    dot(simd, row, row)
}

/// The dot product in f32, in 4 x native lanes.
#[inline(always)]
pub(super) fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let lanes = S::f32s::LEN;
    let mut sums = [S::f32s::splat(simd, 0.0); 4];
    let (mut a_quads, mut b_quads) = (a.chunks_exact(4 * lanes), b.chunks_exact(4 * lanes));
    for (a, b) in (&mut a_quads).zip(&mut b_quads) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.chunks_exact(lanes).zip(b.chunks_exact(lanes))) {
            *sum = S::f32s::from_slice(simd, a).mul_add(S::f32s::from_slice(simd, b), *sum);
        }
    }
    let (mut a_rest, mut b_rest) = (a_quads.remainder().chunks_exact(lanes), b_quads.remainder().chunks_exact(lanes));
    for (sum, (a, b)) in sums.iter_mut().zip((&mut a_rest).zip(&mut b_rest)) {
        *sum = S::f32s::from_slice(simd, a).mul_add(S::f32s::from_slice(simd, b), *sum);
    }
    let tail: f32 = a_rest.remainder().iter().zip(b_rest.remainder()).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[1]) + (sums[2] + sums[3])).reduce_sum() + tail
}

/// What kind of query it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryKind {
    /// Bounded: searched by the fast pass.
    Usual,
    /// Finite, but beyond f32 arithmetic: every row is scored exactly.
    Exact,
    /// Holds a NaN or an infinity, at this column.
    Bad { column: usize },
}

/// A query as the fast pass sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryTerms {
    /// Power of two that the query is multiplied with, so that its norm is within range. Order is not touched by it.
    pub(super) factor: f32,
    /// |q| after scaling, rounded up.
    pub(super) norm: f32,
    /// |q| after scaling.
    norm_f64: f64,
    /// Part of the interval that depends on the query alone.
    pub(super) slack: f32,
    pub(super) kind: QueryKind,
}

impl QueryTerms {
    #[expect(clippy::cast_possible_truncation, reason = "exponents and norms are in range, or the kind says so")]
    pub(super) fn new(level: Level, metric: Metric, values: &[f32]) -> Self {
        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
            let kind = QueryKind::Bad { column };
            return Self { factor: 0.0, norm: 0.0, norm_f64: 0.0, slack: 0.0, kind };
        }
        let norm = exact::norm(level, values);
        let usual = norm == 0.0 || (1e-15..=1e15).contains(&norm);
        let (exponent, kind) = match metric {
            _ if usual => (0, QueryKind::Usual),
            // A tiny query moves L2 scores by less than the rows' own slack; a huge one cannot be scaled alone.
            Metric::L2 if norm < 1.0 => (0, QueryKind::Usual),
            Metric::L2 => (0, QueryKind::Exact),
            Metric::Cosine | Metric::Dot => ((-norm.log2().floor()) as i32, QueryKind::Usual),
        };
        // A factor may be beyond f32 (2^149 for the smallest subnormals): it stops where f32 does, which is in range.
        let factor = 2f32.powi(exponent.clamp(-126, 127));
        let norm_f64 = norm * f64::from(factor);
        let slack = if metric == Metric::L2 { round_up(norm * norm * 2f64.powi(-48)) } else { 0.0 };
        Self { factor, norm: round_up(norm_f64), norm_f64, slack, kind }
    }

    /// The interval around an exact score, in the space of the fast pass.
    #[expect(clippy::cast_possible_truncation, reason = "clamped to f32, and widened by more than its rounding")]
    pub(super) fn interval(&self, metric: Metric, score: f64) -> (f32, f32) {
        let norm2 = self.norm_f64 * self.norm_f64;
        let (value, extra) = match metric {
            Metric::Cosine => (score * self.norm_f64, 0.0),
            Metric::Dot => (score * f64::from(self.factor), 0.0),
            Metric::L2 => (0.5 * (norm2 + score), 2f64.powi(-46) * (norm2 - score)),
        };
        let spread = value.abs() * 2f64.powi(-22) + extra + f64::from(f32::MIN_POSITIVE);
        let largest = f64::from(f32::MAX);
        ((value - spread).clamp(-largest, largest) as f32, (value + spread).max(-largest) as f32)
    }
}
