//! The inner loops of the CPU path, generic over the SIMD level.
//!
//! Lanes are queries; the rows' scalars are broadcast straight from the row-major corpus, which is never packed. A single
//! query has its lanes along k instead, four rows at a time, and runs at the speed of memory.
//!
//! A tile of R rows x V vectors keeps R x V accumulators in registers: up to 24 of the 32 of AVX-512 and NEON, 12 of the 16
//! of AVX2 and SSE. Per step of k it loads V vectors and broadcasts R scalars for R x V multiply-adds; a core loads about as
//! often as it multiplies, so of the shapes with 24 accumulators the squarest is the fastest: 6 x 4 loads 10 times for 24
//! multiply-adds and reached 0.92-0.97 of the multiply-add peak where 12 x 2 (14 loads) reached 0.73-0.93.

use super::bounds::{self, Bounds, RowTerms};
use super::simd::{Scan, Unusual, Worker};
use crate::simd::ops::prefetch;
use crate::simd::{Simd, SimdBase, SimdFloat, SimdMask, simd};

/// Rows whose tiles are computed before the next panel: their values stay in L2, and their terms in L1.
pub(super) const BLOCK_ROWS: usize = 48;
/// Bytes of packed queries that are gone through with one chunk of rows.
const QUERY_BLOCK_BYTES: usize = 1 << 20;
/// Steps of k between two rounds of prefetching.
const STEP: usize = 8;
/// f32 per cache line.
const LINE: usize = 16;
/// How far ahead of a single query's loads the rows are prefetched, in f32: two pages.
const STREAM_AHEAD: usize = 2_048;

/// Native lanes of f32.
#[simd]
pub(super) fn lanes<S: Simd>(_simd: S) -> usize {
    S::f32s::LEN
}

/// Vectors of the widest panel: 4 where there are 32 registers, 2 where there are 16.
#[simd]
pub(super) fn most_vectors<S: Simd>(_simd: S) -> usize {
    if S::f32s::LEN == 16 || cfg!(target_arch = "aarch64") { 4 } else { 2 }
}

/// Appends the terms of a block's rows; `first` is the number of its first row in the corpus.
#[simd]
pub(super) fn terms<S: Simd>(
    simd: S,
    bounds: &Bounds,
    block: &[f32],
    dim: usize,
    first: usize,
    terms: &mut Vec<RowTerms>,
    unusual: &mut Unusual,
) {
    for (row, values) in (first..).zip(block.chunks_exact(dim)) {
        let (row_terms, kind) = bounds.row(bounds::norm2(simd, values), values);
        terms.push(row_terms);
        unusual.note(row, kind);
    }
}

/// Offers the rows of a chunk to every query. `known` holds their terms where the corpus is prepared.
#[simd]
pub(super) fn chunk<S: Simd>(
    simd: S,
    scan: &Scan<'_>,
    worker: &mut Worker,
    first: usize,
    block: &[f32],
    known: Option<&[RowTerms]>,
) {
    match (scan.panels.width / S::f32s::LEN, most_vectors(simd)) {
        (0, _) => single(simd, scan, worker, first, block, known),
        (1, _) => blocks::<S, 12, 1>(simd, scan, worker, first, block, known),
        (2, 2) => blocks::<S, 6, 2>(simd, scan, worker, first, block, known),
        (2, _) => blocks::<S, 12, 2>(simd, scan, worker, first, block, known),
        (3, _) => blocks::<S, 8, 3>(simd, scan, worker, first, block, known),
        _ => blocks::<S, 6, 4>(simd, scan, worker, first, block, known),
    }
}

#[inline(always)]
fn blocks<S: Simd, const R: usize, const V: usize>(
    simd: S,
    scan: &Scan<'_>,
    worker: &mut Worker,
    first: usize,
    block: &[f32],
    known: Option<&[RowTerms]>,
) {
    let dim = scan.corpus.cols();
    let rows = block.len() / dim;
    let panels = &scan.panels;
    let at_once = (QUERY_BLOCK_BYTES / (size_of::<f32>() * dim * panels.width)).max(1);
    let mut own_terms = std::mem::take(&mut worker.terms);
    own_terms.clear();
    for first_panel in (0..panels.count).step_by(at_once) {
        let last_panel = (first_panel + at_once).min(panels.count);
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let end = (start + BLOCK_ROWS).min(rows);
            let values = &block[start * dim..end * dim];
            let tiles = (end - start).div_ceil(R) * (last_panel - first_panel);
            let next = &block[end * dim..(end + BLOCK_ROWS).min(rows) * dim];
            let steps = dim / STEP;
            let mut ahead = Ahead::new(next, tiles * steps);
            for panel in first_panel..last_panel {
                let packed = panels.panel(panel);
                let mut row = 0;
                while row < end - start {
                    let tile_rows = if row + R <= end - start { R } else { 1 };
                    let tile_values = &values[row * dim..(row + tile_rows) * dim];
                    if known.is_none() && panel == 0 {
                        // Here, and not for the chunk at once: the rows have just been prefetched, and the tile needs
                        // them next.
                        terms(
                            simd,
                            &scan.bounds,
                            tile_values,
                            dim,
                            first + start + row,
                            &mut own_terms,
                            &mut worker.unusual,
                        );
                    }
                    let tile_terms = &known.unwrap_or(&own_terms)[start + row..][..tile_rows];
                    let (share, at) = (ahead.share, first + start + row);
                    if tile_rows == R {
                        let mut scores = [[S::f32s::splat(simd, 0.0); V]; R];
                        tile(simd, tile_values, dim, packed, ahead.take(steps), share, &mut scores);
                        offer(simd, &scores, tile_terms, scan, worker, panel, at);
                    } else {
                        let mut scores = [[S::f32s::splat(simd, 0.0); V]; 1];
                        tile(simd, tile_values, dim, packed, ahead.take(steps), share, &mut scores);
                        offer(simd, &scores, tile_terms, scan, worker, panel, at);
                    }
                    row += tile_rows;
                }
            }
        }
    }
    worker.terms = own_terms;
}

/// Cache lines of the next block, which are prefetched while this one is computed: an even share per step of a tile.
struct Ahead<'a> {
    values: &'a [f32],
    /// f32 per step, whole cache lines.
    share: usize,
}

impl<'a> Ahead<'a> {
    fn new(values: &'a [f32], steps: usize) -> Self {
        Self { values, share: values.len().div_ceil(LINE).div_ceil(steps.max(1)) * LINE }
    }

    /// The share of the next `steps` steps.
    #[inline(always)]
    fn take(&mut self, steps: usize) -> &'a [f32] {
        let (share, rest) = self.values.split_at((self.share * steps).min(self.values.len()));
        self.values = rest;
        share
    }
}

/// Inner products of R rows with V vectors of packed queries.
///
/// A function of its own, never inlined: the 12 row pointers, the packed queries' pointer and the counter are all the
/// general registers there are, so nothing else may be live in its loop.
#[inline(never)]
#[simd]
fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &[f32],
    dim: usize,
    packed: &[f32],
    ahead: &[f32],
    share: usize,
    scores: &mut [[S::f32s; V]; R],
) {
    let lanes = S::f32s::LEN;
    let steps = dim / STEP;
    let mut sums = [[S::f32s::splat(simd, 0.0); V]; R];
    let mut row: [&[[f32; STEP]]; R] = [&[]; R];
    for i in 0..R {
        row[i] = rows[i * dim..(i + 1) * dim].as_chunks().0;
    }
    // Independent pointers: left to itself the compiler derives each from the one before it, with an addition per row
    // and k that competes with the multiply-adds for ports.
    let mut row = std::hint::black_box(row);
    for row in &mut row {
        *row = &row[..steps];
    }
    let mut ahead = ahead.chunks(share.max(1));
    let mut packed_steps = packed.chunks_exact(STEP * V * lanes);
    for (step, packed) in (0..steps).zip(&mut packed_steps) {
        for line in ahead.next().unwrap_or(&[]).chunks(LINE) {
            prefetch(line, 0);
        }
        for k in 0..STEP {
            let mut queries = [S::f32s::splat(simd, 0.0); V];
            for j in 0..V {
                queries[j] = S::f32s::from_slice(simd, &packed[(k * V + j) * lanes..][..lanes]);
            }
            for i in 0..R {
                let value = S::f32s::splat(simd, row[i][step][k]);
                for j in 0..V {
                    sums[i][j] = value.mul_add(queries[j], sums[i][j]);
                }
            }
        }
    }
    for (k, packed) in (steps * STEP..dim).zip(packed_steps.remainder().chunks_exact(V * lanes)) {
        for j in 0..V {
            let queries = S::f32s::from_slice(simd, &packed[j * lanes..][..lanes]);
            for i in 0..R {
                sums[i][j] = S::f32s::splat(simd, rows[i * dim + k]).mul_add(queries, sums[i][j]);
            }
        }
    }
    *scores = sums;
}

/// Offers every score of a tile whose upper bound reaches the query's threshold: seldom any.
#[inline(always)]
fn offer<S: Simd, const R: usize, const V: usize>(
    simd: S,
    scores: &[[S::f32s; V]; R],
    terms: &[RowTerms],
    scan: &Scan<'_>,
    worker: &mut Worker,
    panel: usize,
    first_row: usize,
) {
    let lanes = S::f32s::LEN;
    let mut reached = <S::f32s as SimdBase<S>>::Mask::splat(simd, false);
    for j in 0..V {
        let lane = (panel * V + j) * lanes;
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[lane..][..lanes]);
        let norms = S::f32s::from_slice(simd, &scan.panels.norms[lane..][..lanes]);
        for (scores, terms) in scores.iter().zip(terms) {
            reached |= upper(simd, scores[j], norms, terms).simd_ge(thresholds);
        }
    }
    if reached.any_true() {
        for (i, (scores, terms)) in scores.iter().zip(terms).enumerate() {
            offer_row(simd, scores, terms, scan, worker, panel * V * lanes, first_row + i);
        }
    }
}

/// Upper bounds of a row's scores; see [`bounds`].
#[inline(always)]
fn upper<S: Simd>(simd: S, scores: S::f32s, norms: S::f32s, terms: &RowTerms) -> S::f32s {
    let value = scores.mul_add(S::f32s::splat(simd, terms.scale), S::f32s::splat(simd, terms.bias));
    norms.mul_add(S::f32s::splat(simd, terms.error), value)
}

/// Offers a row to the queries of a panel whose thresholds it reaches.
#[inline(never)]
#[simd]
fn offer_row<S: Simd, const V: usize>(
    simd: S,
    scores: &[S::f32s; V],
    terms: &RowTerms,
    scan: &Scan<'_>,
    worker: &mut Worker,
    first_query: usize,
    row: usize,
) {
    let lanes = S::f32s::LEN;
    let (mut lowers, mut uppers) = ([S::f32s::splat(simd, 0.0); V], [S::f32s::splat(simd, 0.0); V]);
    // All lanes in one word: one loop over the few bits that are set.
    let mut reached = 0;
    for j in 0..V {
        let first = first_query + j * lanes;
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[first..][..lanes]);
        let norms = S::f32s::from_slice(simd, &scan.panels.norms[first..][..lanes]);
        let slacks = S::f32s::from_slice(simd, &scan.panels.slacks[first..][..lanes]);
        uppers[j] = upper(simd, scores[j], norms, terms);
        lowers[j] = uppers[j] - bounds::width(norms * terms.error, S::f32s::splat(simd, terms.slack), slacks);
        reached |= uppers[j].simd_ge(thresholds).to_bitmask() << (j * lanes);
    }
    while reached != 0 {
        let lane = reached.trailing_zeros() as usize;
        reached &= reached - 1;
        let (lower, upper) =
            (lowers[lane / lanes].as_slice()[lane % lanes], uppers[lane / lanes].as_slice()[lane % lanes]);
        worker.offer(scan, first_query + lane, lower, upper, row);
    }
}

/// Offers a row to the only query.
#[inline(always)]
fn offer_single(scan: &Scan<'_>, worker: &mut Worker, score: f32, terms: &RowTerms, row: usize) {
    let error = scan.panels.norms[0] * terms.error;
    let upper = score * terms.scale + terms.bias + error;
    if upper >= worker.selection.thresholds[0] {
        worker.offer(scan, 0, upper - bounds::width(error, terms.slack, scan.panels.slacks[0]), upper, row);
    }
}

/// A single query: lanes along k, four rows at a time; norms in the same pass where they are not known.
#[inline(always)]
fn single<S: Simd>(
    simd: S,
    scan: &Scan<'_>,
    worker: &mut Worker,
    first: usize,
    block: &[f32],
    known: Option<&[RowTerms]>,
) {
    const ROWS: usize = 4;
    let dim = scan.corpus.cols();
    let query = scan.panels.panel(0);
    let mut at = 0;
    let mut groups = block.chunks_exact(ROWS * dim);
    for group in &mut groups {
        let rest = &block[at * dim..];
        match known {
            Some(known) => {
                let (scores, _) = stream::<S, ROWS, false>(simd, group, dim, query, rest);
                for i in 0..ROWS {
                    offer_single(scan, worker, scores[i], &known[at + i], first + at + i);
                }
            }
            None => {
                let (scores, norms) = stream::<S, ROWS, true>(simd, group, dim, query, rest);
                for i in 0..ROWS {
                    let (terms, kind) = scan.bounds.row(norms[i], &group[i * dim..(i + 1) * dim]);
                    worker.unusual.note(first + at + i, kind);
                    offer_single(scan, worker, scores[i], &terms, first + at + i);
                }
            }
        }
        at += ROWS;
    }
    for row in groups.remainder().chunks_exact(dim) {
        let (scores, norms) = stream::<S, 1, true>(simd, row, dim, query, &[]);
        let terms = known.map_or_else(
            || {
                let (terms, kind) = scan.bounds.row(norms[0], row);
                worker.unusual.note(first + at, kind);
                terms
            },
            |known| known[at],
        );
        offer_single(scan, worker, scores[0], &terms, first + at);
        at += 1;
    }
}

/// Inner products of R rows with the query, and their squared norms if wanted. `stream` starts with the rows and goes on
/// with what follows them in memory.
#[inline(always)]
fn stream<S: Simd, const R: usize, const NORMS: bool>(
    simd: S,
    rows: &[f32],
    dim: usize,
    query: &[f32],
    stream: &[f32],
) -> ([f32; R], [f32; R]) {
    let lanes = S::f32s::LEN;
    let mut dots = [S::f32s::splat(simd, 0.0); R];
    let mut squares = [S::f32s::splat(simd, 0.0); R];
    let whole = dim / lanes * lanes;
    let mut row: [&[f32]; R] = [&[]; R];
    for i in 0..R {
        row[i] = &rows[i * dim..(i + 1) * dim];
    }
    let mut k = 0;
    while k + lanes <= dim {
        let query = S::f32s::from_slice(simd, &query[k..k + lanes]);
        for i in 0..R {
            prefetch(stream, i * dim + k + STREAM_AHEAD);
            let values = S::f32s::from_slice(simd, &row[i][k..k + lanes]);
            dots[i] = values.mul_add(query, dots[i]);
            if NORMS {
                squares[i] = values.mul_add(values, squares[i]);
            }
        }
        k += lanes;
    }
    let (mut dot, mut square) = ([0.0; R], [0.0; R]);
    for i in 0..R {
        dot[i] = dots[i].reduce_sum();
        square[i] = squares[i].reduce_sum();
        for k in whole..dim {
            dot[i] += row[i][k] * query[k];
            square[i] += row[i][k] * row[i][k];
        }
    }
    (dot, square)
}
