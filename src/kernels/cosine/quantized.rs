//! Scores from 8-bit integers: a quarter of the bytes, four multiply-adds per lane and instruction, and a proven bound on
//! what the rounding costs.
//!
//! A row x becomes s i with i in -127..=127 and s = max |x| / 127; a query likewise. With e = |x - s i| in the Euclidean
//! norm, and |s i| <= |x| + e,
//!
//! |q.x - s_q s (i_q . i)| <= |q| e + e_q |s i|
//!
//! The integer product is exact. So each score comes with an interval, as that of the f32 tile does, only a wider one: a few
//! times more rows stay candidates until their canonical scores decide. [`bounds`](super::bounds) makes the intervals.

use super::tile::Ahead;
use crate::data::Matrix;
use crate::error::Error;
use crate::simd::ops;
use crate::simd::{Level, Simd, SimdBase, SimdCvtFloat, simd};

/// Products that one lane of one instruction adds up.
const GROUP: usize = 4;
/// What is added to a query's integers, since the instruction wants one operand without a sign.
const OFFSET: u8 = 128;
/// Largest integer.
const LIMIT: f32 = 127.0;

/// Bytes of a row of `dim` values.
pub(super) fn stride(dim: usize) -> usize {
    dim.next_multiple_of(GROUP)
}

/// Groups of a row.
pub(super) fn groups(dim: usize) -> usize {
    dim.div_ceil(GROUP)
}

/// Rows as integers.
#[derive(Debug, Default)]
pub(super) struct QuantizedRows {
    /// Row after row, each padded with zeros to whole groups.
    pub(super) values: Vec<i8>,
    /// For each row what its products with [`OFFSET`] add up to.
    pub(super) offsets: Vec<i32>,
}

/// What rounding has made of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding {
    /// What one unit of the integers is worth.
    pub(super) scale: f32,
    /// Euclidean norm of the difference, rounded up, but for the rounding of f32 itself, which the bounds allow for.
    pub(super) error: f32,
}

impl QuantizedRows {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.offsets.clear();
    }

    pub(super) fn extend(&mut self, next: Self) {
        self.values.extend(next.values);
        self.offsets.extend(next.offsets);
    }

    /// Appends a row that is zeros, whatever it is.
    pub(super) fn push_nothing(&mut self, dim: usize) {
        self.values.resize(self.values.len() + stride(dim), 0);
        self.offsets.push(0);
    }
}

/// Appends a row of finite values, not all of them zero.
#[inline(always)]
pub(super) fn push<S: Simd>(simd: S, row: &[f32], rows: &mut QuantizedRows) -> Rounding {
    let start = rows.values.len();
    rows.values.resize(start + stride(row.len()), 0);
    let (scale, square, sum) = round(simd, row, &mut rows.values[start..]);
    rows.offsets.push(-i32::from(OFFSET) * sum);
    Rounding { scale, error: square.sqrt() * 1.001 }
}

/// Rounds a row to integers; gives the unit, the square of the error, and the sum of the integers.
#[simd]
fn round<S: Simd>(_simd: S, row: &[f32], integers: &mut [i8]) -> (f32, f32, i32) {
    const LANES: usize = 16;
    /// Added to a small number, leaves it rounded to an integer in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut largest = [0.0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane].abs();
            largest[lane] = if value > largest[lane] { value } else { largest[lane] };
        }
    }
    let largest = largest.into_iter().chain(rest.iter().map(|value| value.abs())).fold(0.0, f32::max);
    let (scale, inverse) = (largest / LIMIT, LIMIT / largest);
    let (mut squares, mut sums) = ([0.0f32; LANES], [0i32; LANES]);
    let mut one = |value: f32, integer: &mut i8, lane: usize| {
        let shifted = value * inverse + SHIFT;
        // The low byte of the bits is the integer in two's complement.
        #[expect(clippy::cast_possible_truncation, reason = "the low byte is what is wanted")]
        let rounded = shifted.to_bits() as i8;
        *integer = rounded;
        sums[lane] += i32::from(rounded);
        let difference = value - scale * (shifted - SHIFT);
        squares[lane] += difference * difference;
    };
    let (integer_chunks, integer_rest) = integers.as_chunks_mut::<LANES>();
    for (chunk, integers) in chunks.iter().zip(&mut *integer_chunks) {
        for lane in 0..LANES {
            one(chunk[lane], &mut integers[lane], lane);
        }
    }
    // The padding may complete another chunk of integers.
    let integer_rest = integer_chunks.get_mut(chunks.len()).map_or(integer_rest, |chunk| &mut chunk[..]);
    for (lane, (&value, integer)) in rest.iter().zip(integer_rest).enumerate() {
        one(value, integer, lane);
    }
    (scale, squares.iter().sum(), sums.iter().sum())
}

/// Queries as integers, \[panel\]\[group of k\]\[lane\]\[k\], and their bounds.
pub(super) struct QuantizedPanels {
    values: Vec<u8>,
    panel_bytes: usize,
    /// The queries themselves, multiplied by their factors, for rows that deserve another look.
    plain: Matrix,
    /// What one unit is worth, for each lane.
    pub(super) scales: Vec<f32>,
    /// Euclidean norm of what rounding has cost, for each lane.
    pub(super) errors: Vec<f32>,
}

impl QuantizedPanels {
    /// For queries that are multiplied by their factors; `None` stands for one that takes no part.
    pub(super) fn new(level: Level, queries: &Matrix, factors: &[Option<f32>], width: usize) -> Result<Self, Error> {
        let (dim, panels) = (queries.cols(), queries.rows().div_ceil(width));
        let panel_bytes = stride(dim) * width;
        let mut values = vec![OFFSET; panels * panel_bytes];
        let (mut scales, mut errors) = (vec![0.0; panels * width], vec![0.0; panels * width]);
        let (mut plain, mut integers) = (vec![0.0; queries.rows() * dim], QuantizedRows::default());
        for (query, plain) in plain.chunks_exact_mut(dim).enumerate() {
            let Some(factor) = factors[query] else { continue };
            plain.iter_mut().zip(queries.row(query)).for_each(|(plain, value)| *plain = value * factor);
            if plain.iter().all(|&value| value == 0.0) {
                continue;
            }
            integers.clear();
            let rounding = crate::dispatch!(level, simd => push(simd, plain, &mut integers));
            (scales[query], errors[query]) = (rounding.scale, rounding.error);
            let panel = &mut values[query / width * panel_bytes..][..panel_bytes];
            let groups = panel.chunks_exact_mut(GROUP * width);
            for (group, integers) in groups.zip(integers.values.as_chunks::<GROUP>().0) {
                let unsigned = integers.map(|integer| integer.cast_unsigned().wrapping_add(OFFSET));
                group[query % width * GROUP..][..GROUP].copy_from_slice(&unsigned);
            }
        }
        let plain = Matrix::new(queries.rows(), dim, plain)?;
        Ok(Self { values, panel_bytes, plain, scales, errors })
    }

    /// A query as it is, multiplied by its factor.
    pub(super) fn plain(&self, query: usize) -> &[f32] {
        self.plain.row(query)
    }

    pub(super) fn panel(&self, panel: usize) -> &[u8] {
        &self.values[panel * self.panel_bytes..][..self.panel_bytes]
    }
}

/// Products of R rows with V vectors of queries, in units of the queries' scales.
///
/// As [`tile`](super::tile::tile): never inlined, so that nothing else is live in its loop.
#[inline(never)]
#[simd]
pub(super) fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &[i8],
    offsets: &[i32],
    packed: &[u8],
    mut ahead: Ahead<'_>,
    scales: &[f32],
    scores: &mut [[S::f32s; V]; R],
) {
    let (lanes, stride) = (S::f32s::LEN, rows.len() / R);
    let mut sums = [[S::i32s::splat(simd, 0); V]; R];
    let mut row: [&[[i8; GROUP]]; R] = [&[]; R];
    for i in 0..R {
        row[i] = rows[i * stride..(i + 1) * stride].as_chunks().0;
        sums[i] = [S::i32s::splat(simd, offsets[i]); V];
    }
    let mut row = std::hint::black_box(row);
    let groups = groups(stride);
    for row in &mut row {
        *row = &row[..groups];
    }
    for (group, packed) in (0..groups).zip(packed.chunks_exact(GROUP * V * lanes)) {
        ahead.step();
        let mut queries = [S::u8s::splat(simd, 0); V];
        for j in 0..V {
            queries[j] = S::u8s::from_slice(simd, &packed[j * GROUP * lanes..][..GROUP * lanes]);
        }
        for i in 0..R {
            let values = S::i32s::splat(simd, i32::from_le_bytes(row[i][group].map(|value| value.cast_unsigned())));
            for j in 0..V {
                sums[i][j] = ops::add_products(simd, sums[i][j], queries[j], values);
            }
        }
    }
    for j in 0..V {
        let scales = S::f32s::from_slice(simd, &scales[j * lanes..][..lanes]);
        for i in 0..R {
            scores[i][j] = S::f32s::float_from(sums[i][j]) * scales;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metric;
    use super::super::bounds::{self, Bounds, QueryTerms, RowKind};
    use super::super::simd::Unusual;
    use super::super::tile::{self, Ahead, Digest};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_the_nearest_and_their_error_is_theirs() {
        let row: Vec<f32> = (0..37).map(|i| ((i * 29 % 37) as f32 - 18.0) * 0.37).collect();
        for level in Level::available() {
            let mut rows = QuantizedRows::default();
            let rounding = crate::dispatch!(level, simd => push(simd, &row, &mut rows));
            assert_eq!(rows.values.len(), 40);
            assert_eq!(rows.values[37..], [0; 3]);
            let (mut square, mut sum) = (0.0, 0);
            for (&value, &integer) in row.iter().zip(&rows.values) {
                let exact = f64::from(value) / f64::from(rounding.scale);
                assert!((exact - f64::from(integer)).abs() <= 0.500_001, "{level}: {exact} became {integer}");
                square += (f64::from(value) - f64::from(rounding.scale) * f64::from(integer)).powi(2);
                sum += i32::from(integer);
            }
            assert_eq!(rows.offsets, [-i32::from(OFFSET) * sum]);
            let error = f64::from(rounding.error);
            assert!(error >= square.sqrt() && error <= 1.01 * square.sqrt(), "{level}: {error} for {}", square.sqrt());
        }
    }

    /// Scores of one row with a panel of queries at a level.
    #[simd]
    fn scores<S: Simd>(simd: S, digest: &Digest, panels: &QuantizedPanels) -> Vec<f32> {
        let mut scores = [[S::f32s::splat(simd, 0.0); 1]; 1];
        let (integers, offsets) = (&digest.integers.values, &digest.integers.offsets);
        let (packed, scales) = (panels.panel(0), &panels.scales[..]);
        tile::<S, 1, 1>(simd, integers, offsets, packed, Ahead::default(), scales, &mut scores);
        scores[0][0].as_slice().to_vec()
    }

    proptest! {
        /// The interval holds the exact value, whatever the row and the query look like.
        #[test]
        fn intervals_hold_the_exact_value(
            (row, query) in (1usize..80).prop_flat_map(|dim| {
                let value = prop_oneof![4 => -1.0f32..1.0, 1 => Just(0.0f32), 1 => -60.0f32..60.0];
                (prop::collection::vec(value.clone(), dim), prop::collection::vec(value, dim))
            }),
            row_exponent in -30..30,
            query_exponent in -30..30,
        ) {
            let scaled = |values: Vec<f32>, exponent: i32| -> Vec<f32> {
                values.into_iter().map(|value| value * 2f32.powi(exponent)).collect()
            };
            let (row, query) = (scaled(row, row_exponent), scaled(query, query_exponent));
            // And the worst case: what rounding takes off the one is the other.
            let (from_row, from_query) = (lost(&row), lost(&query));
            for (row, query) in [(&row, &query), (&row, &from_row), (&from_query, &query)] {
                holds(row, query)?;
            }
        }
    }

    /// What rounding takes off.
    fn lost(values: &[f32]) -> Vec<f32> {
        let scale = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs())) / LIMIT;
        values.iter().map(|value| if scale > 0.0 { value - scale * (value / scale).round() } else { 0.0 }).collect()
    }

    fn holds(row: &[f32], query: &[f32]) -> Result<(), TestCaseError> {
        let dim = row.len();
        let queries = Matrix::new(1, dim, query.to_vec()).unwrap();
        let exact = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        for (level, metric) in
            Level::available().into_iter().flat_map(|level| Metric::ALL.map(|metric| (level, metric)))
        {
            let (mut digest, mut unusual) = (Digest::default(), Unusual::default());
            let bounds = Bounds::new(metric, dim);
            crate::dispatch!(level, simd =>
                    tile::digest::<_, true>(simd, &bounds, row, dim, 0, &mut digest, &mut unusual));
            let norm2: f32 = row.iter().map(|value| value * value).sum();
            if bounds.row(norm2, row).1 != RowKind::Usual {
                continue;
            }
            let terms = QueryTerms::new(level, metric, query);
            let lanes = crate::dispatch!(level, simd => tile::lanes(simd));
            let panels = QuantizedPanels::new(level, &queries, &[Some(terms.factor)], lanes).unwrap();
            let score = crate::dispatch!(level, simd => scores(simd, &digest, &panels))[0];
            let of_row = digest.terms[0];
            let error = terms.norm * of_row.error + panels.errors[0] * of_row.rounding;
            let upper = score * of_row.scale + of_row.bias + error;
            let lower = upper - bounds::width(error, of_row.slack, terms.slack);
            let dot = exact(row, query) * f64::from(terms.factor);
            let value = match metric {
                Metric::Cosine => dot / exact(row, row).sqrt(),
                Metric::Dot => dot,
                Metric::L2 => dot - 0.5 * exact(row, row),
            };
            prop_assert!(
                f64::from(lower) <= value && value <= f64::from(upper),
                "{level} {metric:?}: {value} is not in {lower}..{upper}"
            );
        }
        Ok(())
    }
}
