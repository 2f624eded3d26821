//! The inner loops of the CPU path, generic over the SIMD level.
//!
//! Lanes are queries; the rows' scalars are broadcast straight from the row-major corpus, which is never packed. A single
//! query has its lanes along k instead, four rows at a time, and runs at the speed of memory.
//!
//! A tile of R rows x V vectors keeps R x V accumulators in registers: 12 x 2 of the 32 registers of AVX-512, 6 x 2 of the
//! 16 of AVX2 and SSE, 8 x 2 of NEON's 32 (where a register holds 4 lanes, so that loads keep up). Per step of k it loads V
//! vectors and broadcasts R scalars for R x V multiply-adds, more than enough arithmetic to hide them.

use super::bounds::{self, Bounds, RowTerms};
use super::simd::{Scan, Unusual, Worker};
use crate::simd::ops::prefetch;
use crate::simd::{Simd, SimdBase, SimdFloat, SimdMask, simd};

/// Rows whose tiles are computed before the next panel: their values stay in L2, and their terms in L1.
pub(super) const BLOCK_ROWS: usize = 96;
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
    let lanes = S::f32s::LEN;
    let wide_registers = lanes == 16;
    match (scan.panels.width / lanes, wide_registers) {
        (0, _) => single(simd, scan, worker, first, block, known),
        (1, _) => blocks::<S, 12, 1>(simd, scan, worker, first, block, known),
        (_, true) => blocks::<S, 12, 2>(simd, scan, worker, first, block, known),
        (_, false) if cfg!(target_arch = "aarch64") => blocks::<S, 8, 2>(simd, scan, worker, first, block, known),
        (_, false) => blocks::<S, 6, 2>(simd, scan, worker, first, block, known),
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

#[expect(clippy::needless_range_loop, reason = "columns of a row-major array")]
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
    for j in 0..V {
        let lane = (panel * V + j) * lanes;
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[lane..][..lanes]);
        let norms = S::f32s::from_slice(simd, &scan.panels.norms[lane..][..lanes]);
        let mut any = <S::f32s as SimdBase<S>>::Mask::splat(simd, false);
        for i in 0..R {
            let bias = S::f32s::splat(simd, terms[i].bias);
            let value = scores[i][j].mul_add(S::f32s::splat(simd, terms[i].scale), bias);
            let upper = norms.mul_add(S::f32s::splat(simd, terms[i].error), value);
            any |= upper.simd_ge(thresholds);
        }
        if any.any_true() {
            let mut vectors = [S::f32s::splat(simd, 0.0); R];
            for i in 0..R {
                vectors[i] = scores[i][j];
            }
            offer_lanes(simd, &vectors, terms, scan, worker, lane, first_row);
        }
    }
}

/// The lanes of one vector of queries that reach their thresholds, row by row.
#[inline(never)]
#[simd]
fn offer_lanes<S: Simd, const R: usize>(
    simd: S,
    scores: &[S::f32s; R],
    terms: &[RowTerms],
    scan: &Scan<'_>,
    worker: &mut Worker,
    first_query: usize,
    first_row: usize,
) {
    let lanes = S::f32s::LEN;
    let norms = S::f32s::from_slice(simd, &scan.panels.norms[first_query..][..lanes]);
    for i in 0..R {
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[first_query..][..lanes]);
        let value = scores[i].mul_add(S::f32s::splat(simd, terms[i].scale), S::f32s::splat(simd, terms[i].bias));
        let upper = norms.mul_add(S::f32s::splat(simd, terms[i].error), value);
        let mut reached = upper.simd_ge(thresholds).to_bitmask();
        while reached != 0 {
            let lane = reached.trailing_zeros() as usize;
            reached &= reached - 1;
            offer_one(scan, worker, first_query + lane, scores[i].as_slice()[lane], &terms[i], first_row + i);
        }
    }
}

#[inline(always)]
fn offer_one(scan: &Scan<'_>, worker: &mut Worker, query: usize, score: f32, terms: &RowTerms, row: usize) {
    let error = scan.panels.norms[query] * terms.error;
    let upper = score * terms.scale + terms.bias + error;
    if upper >= worker.selection.thresholds[query] {
        let lower = upper - 2.0 * (error + terms.slack) - scan.query_terms[query].slack;
        worker.offer(scan, query, lower, upper, row);
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
                    offer_one(scan, worker, 0, scores[i], &known[at + i], first + at + i);
                }
            }
            None => {
                let (scores, norms) = stream::<S, ROWS, true>(simd, group, dim, query, rest);
                for i in 0..ROWS {
                    let (terms, kind) = scan.bounds.row(norms[i], &group[i * dim..(i + 1) * dim]);
                    worker.unusual.note(first + at + i, kind);
                    offer_one(scan, worker, 0, scores[i], &terms, first + at + i);
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
        offer_one(scan, worker, 0, scores[0], &terms, first + at);
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
