//! The inner loops of the CPU path, generic over the SIMD level.
//!
//! Lanes are queries; the rows' scalars are broadcast straight from the row-major corpus, which is never packed. A single
//! query has its lanes along k instead, four rows at a time, and runs at the speed of memory.
//!
//! A tile of R rows x V vectors keeps R x V accumulators in registers: up to 24 of the 32 of AVX-512 and NEON, 12 of the 16
//! of AVX2 and SSE. Per step of k it loads V vectors and broadcasts R scalars for R x V multiply-adds; a core loads about as
//! often as it multiplies, so of the shapes with 24 accumulators the squarest is the fastest: 6 x 4 loads 10 times for 24
//! multiply-adds and reached 0.92-0.97 of the multiply-add peak where 12 x 2 (14 loads) reached 0.73-0.93.

use super::bounds::{self, Bounds, RowKind, RowTerms};
use super::quantized::{self, QuantizedRows};
use super::simd::{Scan, Unusual, Worker};
use crate::simd::ops::prefetch;
use crate::simd::{LINE, Simd, SimdBase, SimdFloat, SimdMask, simd};

/// Rows whose tiles are computed before the next panel: their values stay in L2, and their terms in L1.
pub(super) const BLOCK_ROWS: usize = 48;
/// Bytes of packed queries that are gone through with one chunk of rows.
const QUERY_BLOCK_BYTES: usize = 1 << 20;
/// Columns between two rounds of prefetching.
const STEP: usize = 8;
/// Rows of a tile for a single vector of queries, and the cache lines that so many rows of one step take up.
const NARROW_ROWS: usize = 12;
const NARROW_LINES: usize = NARROW_ROWS * STEP * size_of::<f32>() / LINE;
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

/// What a look at rows has found out about them.
#[derive(Default)]
pub(super) struct Digest {
    pub(super) terms: Vec<RowTerms>,
    /// The rows as integers, where they are rounded.
    pub(super) integers: QuantizedRows,
    /// Where rows are rounded, the terms of those that were not.
    pub(super) plain: Vec<RowTerms>,
}

impl Digest {
    pub(super) fn clear(&mut self) {
        self.terms.clear();
        self.integers.clear();
        self.plain.clear();
    }

    /// Appends what was found out about the rows that follow, but for what only a look at their values is worth.
    pub(super) fn extend(&mut self, next: Self) {
        self.terms.extend(next.terms);
        self.integers.extend(next.integers);
    }
}

/// Looks at the rows of a block and appends what it finds; `first` is the number of its first row in the corpus.
#[simd]
pub(super) fn digest<S: Simd, const QUANTIZED: bool>(
    simd: S,
    bounds: &Bounds,
    block: &[f32],
    dim: usize,
    first: usize,
    digest: &mut Digest,
    unusual: &mut Unusual,
) {
    for (row, values) in (first..).zip(block.chunks_exact(dim)) {
        let norm2 = bounds::norm2(simd, values);
        let (mut terms, kind) = bounds.row(norm2, values);
        if QUANTIZED {
            digest.plain.push(terms);
            if kind == RowKind::Usual {
                terms = bounds.quantized(terms, norm2, quantized::push(simd, values, &mut digest.integers));
            } else {
                digest.integers.push_nothing(dim);
            }
        }
        digest.terms.push(terms);
        unusual.note(row, kind);
    }
}

/// Rows of one chunk, as far as a pass knows them.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    /// Number of the first row in the corpus.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// The rows; empty where a prepared corpus has them as integers.
    pub(super) values: &'a [f32],
    /// What is known of a prepared corpus.
    pub(super) known: Option<Known<'a>>,
}

/// A digest of a chunk's rows.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) terms: &'a [RowTerms],
    pub(super) integers: &'a [i8],
    pub(super) offsets: &'a [i32],
    /// Terms of the rows that were not rounded, where their values are at hand.
    pub(super) plain: &'a [RowTerms],
}

impl<'a> Known<'a> {
    /// Of `rows` rows from row `first` of the digest on.
    pub(super) fn new(digest: &'a Digest, first: usize, rows: usize, dim: usize) -> Self {
        let Digest { terms, integers: QuantizedRows { values, offsets }, plain } = digest;
        let stride = if offsets.is_empty() { 0 } else { quantized::stride(dim) };
        let integers = &values[first * stride..(first + rows) * stride];
        let offsets = if stride == 0 { &[][..] } else { &offsets[first..first + rows] };
        Self { terms: &terms[first..first + rows], integers, offsets, plain }
    }
}

/// Rows of a chunk of which everything is known.
struct Seen<'a> {
    first: usize,
    values: &'a [f32],
    known: Known<'a>,
}

/// Offers the rows of a chunk to every query.
#[simd]
pub(super) fn chunk<S: Simd>(simd: S, scan: &Scan<'_>, worker: &mut Worker, chunk: &Chunk<'_>) {
    let most = most_vectors(simd);
    match (scan.panels.width / S::f32s::LEN, most, worker.quantized) {
        (0, ..) => single(simd, scan, worker, chunk),
        (1, _, false) => blocks::<S, NARROW_ROWS, 1, false>(simd, scan, worker, chunk),
        (1, _, true) => blocks::<S, NARROW_ROWS, 1, true>(simd, scan, worker, chunk),
        (2, 2, false) => blocks::<S, 6, 2, false>(simd, scan, worker, chunk),
        (2, 2, true) => blocks::<S, 6, 2, true>(simd, scan, worker, chunk),
        (2, _, false) => blocks::<S, 12, 2, false>(simd, scan, worker, chunk),
        (2, _, true) => blocks::<S, 12, 2, true>(simd, scan, worker, chunk),
        (3, _, false) => blocks::<S, 8, 3, false>(simd, scan, worker, chunk),
        (3, _, true) => blocks::<S, 8, 3, true>(simd, scan, worker, chunk),
        (_, _, false) => blocks::<S, 6, 4, false>(simd, scan, worker, chunk),
        (_, _, true) => blocks::<S, 6, 4, true>(simd, scan, worker, chunk),
    }
}

#[inline(always)]
fn blocks<S: Simd, const R: usize, const V: usize, const QUANTIZED: bool>(
    simd: S,
    scan: &Scan<'_>,
    worker: &mut Worker,
    chunk: &Chunk<'_>,
) {
    let (dim, panels) = (scan.corpus.cols(), &scan.panels);
    let bytes = if QUANTIZED { size_of::<i8>() } else { size_of::<f32>() };
    let at_once = (QUERY_BLOCK_BYTES / (bytes * dim * panels.width)).max(1);
    let steps = if QUANTIZED { quantized::groups(dim) } else { dim / STEP };
    // A single panel uses a tile's rows once, right after they were looked at: they are still in L1 then.
    let block_rows = if panels.count == 1 { R } else { BLOCK_ROWS };
    let mut own = std::mem::take(&mut worker.digest);
    own.clear();
    for first_panel in (0..panels.count).step_by(at_once) {
        let last_panel = (first_panel + at_once).min(panels.count);
        for start in (0..chunk.rows).step_by(block_rows) {
            let end = (start + block_rows).min(chunk.rows);
            let is_new = chunk.known.is_none() && first_panel == 0;
            if is_new {
                let (values, first) = (&chunk.values[start * dim..end * dim], chunk.first + start);
                digest::<S, QUANTIZED>(simd, &scan.bounds, values, dim, first, &mut own, &mut worker.unusual);
            }
            let known = chunk.known.unwrap_or_else(|| Known::new(&own, 0, own.terms.len(), dim));
            // The next block is prefetched meanwhile: as integers if it has been rounded already.
            let next = end..(end + block_rows).min(chunk.rows);
            let next: &[u8] = if QUANTIZED && !is_new {
                let stride = quantized::stride(dim);
                bytemuck::cast_slice(&known.integers[next.start * stride..next.end * stride])
            } else {
                bytemuck::cast_slice(&chunk.values[next.start * dim..next.end * dim])
            };
            let mut ahead = Ahead::new(next, (end - start).div_ceil(R) * (last_panel - first_panel) * steps);
            let seen = Seen { first: chunk.first, values: chunk.values, known };
            for panel in first_panel..last_panel {
                let mut row = start;
                while row + R <= end {
                    let scores = score::<S, R, V, QUANTIZED>(simd, scan, &seen, row, panel, ahead.take(steps));
                    offer::<S, R, V, QUANTIZED>(simd, &scores, scan, worker, &seen, row, panel);
                    row += R;
                }
                while row < end {
                    let scores = score::<S, 1, V, QUANTIZED>(simd, scan, &seen, row, panel, ahead.take(steps));
                    offer::<S, 1, V, QUANTIZED>(simd, &scores, scan, worker, &seen, row, panel);
                    row += 1;
                }
            }
        }
    }
    worker.digest = own;
}

/// Scores of R rows of a chunk, from row `row` on, with a panel of queries.
#[inline(always)]
fn score<S: Simd, const R: usize, const V: usize, const QUANTIZED: bool>(
    simd: S,
    scan: &Scan<'_>,
    seen: &Seen<'_>,
    row: usize,
    panel: usize,
    ahead: Ahead<'_>,
) -> [[S::f32s; V]; R] {
    let mut scores = [[S::f32s::splat(simd, 0.0); V]; R];
    if let (true, Some(panels)) = (QUANTIZED, &scan.quantized) {
        let stride = quantized::stride(scan.corpus.cols());
        let integers = &seen.known.integers[row * stride..(row + R) * stride];
        let scales = &panels.scales[panel * scan.panels.width..][..scan.panels.width];
        let offsets = &seen.known.offsets[row..row + R];
        quantized::tile(simd, integers, offsets, panels.panel(panel), ahead, scales, &mut scores);
    } else {
        let dim = scan.corpus.cols();
        tile(simd, &seen.values[row * dim..(row + R) * dim], dim, scan.panels.panel(panel), ahead, &mut scores);
    }
    scores
}

/// Cache lines that are prefetched while something else is computed: an even share per step.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead<'a> {
    bytes: &'a [u8],
    /// Bytes per step, whole cache lines.
    share: usize,
}

impl<'a> Ahead<'a> {
    fn new(bytes: &'a [u8], steps: usize) -> Self {
        Self { bytes, share: bytes.len().div_ceil(LINE).div_ceil(steps.max(1)).max(1) * LINE }
    }

    /// The part of the next `steps` steps.
    #[inline(always)]
    fn take(&mut self, steps: usize) -> Self {
        let (bytes, rest) = self.bytes.split_at((self.share * steps).min(self.bytes.len()));
        self.bytes = rest;
        Self { bytes, share: self.share }
    }

    /// Prefetches the next step's share.
    #[inline(always)]
    pub(super) fn step(&mut self) {
        self.take(1).bytes.chunks(LINE).for_each(|line| prefetch(line, 0));
    }

    /// The next step's share, to be prefetched one by one, where it is as much as a single panel needs.
    #[inline(always)]
    fn lines(&mut self) -> &'a [[u8; LINE]; NARROW_LINES] {
        self.take(1).bytes.as_chunks().0.first_chunk().unwrap_or(&[[0; LINE]; NARROW_LINES])
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
    mut ahead: Ahead<'_>,
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
    let mut packed_steps = packed.chunks_exact(STEP * V * lanes);
    for (step, packed) in (0..steps).zip(&mut packed_steps) {
        // A single panel needs a row's worth of memory for every row it computes: a burst of prefetches would hold up the
        // loads behind it.
        let narrow = V == 1 && R == NARROW_ROWS;
        let lines = if narrow { ahead.lines() } else { &[[0; LINE]; NARROW_LINES] };
        if !narrow {
            ahead.step();
        }
        for k in 0..STEP {
            if narrow && k < NARROW_LINES {
                prefetch(&lines[k], 0);
            }
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

/// Offers every score of a tile whose upper bound reaches the query's threshold: seldom any. The tile begins with row `row`
/// of the chunk.
#[inline(always)]
fn offer<S: Simd, const R: usize, const V: usize, const QUANTIZED: bool>(
    simd: S,
    scores: &[[S::f32s; V]; R],
    scan: &Scan<'_>,
    worker: &mut Worker,
    seen: &Seen<'_>,
    row: usize,
    panel: usize,
) {
    let lanes = S::f32s::LEN;
    let terms = &seen.known.terms[row..row + R];
    let mut reached = <S::f32s as SimdBase<S>>::Mask::splat(simd, false);
    for j in 0..V {
        let query = (panel * V + j) * lanes;
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[query..][..lanes]);
        let queries = Lanes::<S>::new::<QUANTIZED>(simd, scan, query);
        for (scores, terms) in scores.iter().zip(terms) {
            let (upper, _) = queries.interval::<QUANTIZED>(simd, scores[j], terms);
            reached |= upper.simd_ge(thresholds);
        }
    }
    if reached.any_true() {
        let dim = scan.corpus.cols();
        for (row, (scores, terms)) in (row..).zip(scores.iter().zip(terms)) {
            let again = match seen.known.plain.get(row) {
                Some(plain) if QUANTIZED => Some((&seen.values[row * dim..(row + 1) * dim], plain)),
                _ => None,
            };
            let row = Row { number: seen.first + row, terms, again };
            offer_row::<S, V, QUANTIZED>(simd, scores, &row, scan, worker, panel * V * lanes);
        }
    }
}

/// A row on offer.
struct Row<'a> {
    number: usize,
    terms: &'a RowTerms,
    /// Its values, and its terms before it was rounded: for a second look.
    again: Option<(&'a [f32], &'a RowTerms)>,
}

/// What the intervals of one vector of queries need.
struct Lanes<S: Simd> {
    norms: S::f32s,
    /// Rounding errors, where queries are rounded.
    errors: S::f32s,
}

impl<S: Simd> Lanes<S> {
    #[inline(always)]
    fn new<const QUANTIZED: bool>(simd: S, scan: &Scan<'_>, query: usize) -> Self {
        let norms = S::f32s::from_slice(simd, &scan.panels.norms[query..][..S::f32s::LEN]);
        let errors = match &scan.quantized {
            Some(panels) if QUANTIZED => S::f32s::from_slice(simd, &panels.errors[query..][..S::f32s::LEN]),
            _ => S::f32s::splat(simd, 0.0),
        };
        Self { norms, errors }
    }

    /// Upper bounds of a row's scores, and half of the widths of their intervals but for slack; see [`bounds`].
    #[inline(always)]
    fn interval<const QUANTIZED: bool>(&self, simd: S, scores: S::f32s, terms: &RowTerms) -> (S::f32s, S::f32s) {
        let value = scores.mul_add(S::f32s::splat(simd, terms.scale), S::f32s::splat(simd, terms.bias));
        let mut error = self.norms * terms.error;
        if QUANTIZED {
            error = self.errors.mul_add(S::f32s::splat(simd, terms.rounding), error);
        }
        (value + error, error)
    }
}

/// Offers a row to the queries of a panel whose thresholds it reaches. A score from integers is computed `again` in f32
/// where the row's values are at hand, which they are while the corpus is read.
#[inline(never)]
#[simd]
fn offer_row<S: Simd, const V: usize, const QUANTIZED: bool>(
    simd: S,
    scores: &[S::f32s; V],
    row: &Row<'_>,
    scan: &Scan<'_>,
    worker: &mut Worker,
    first_query: usize,
) {
    let &Row { number, terms, again } = row;
    let lanes = S::f32s::LEN;
    let (mut lowers, mut uppers) = ([S::f32s::splat(simd, 0.0); V], [S::f32s::splat(simd, 0.0); V]);
    // All lanes in one word: one loop over the few bits that are set.
    let mut reached = 0;
    for j in 0..V {
        let query = first_query + j * lanes;
        let thresholds = S::f32s::from_slice(simd, &worker.selection.thresholds[query..][..lanes]);
        let slacks = S::f32s::from_slice(simd, &scan.panels.slacks[query..][..lanes]);
        let (upper, error) =
            Lanes::<S>::new::<QUANTIZED>(simd, scan, query).interval::<QUANTIZED>(simd, scores[j], terms);
        uppers[j] = upper;
        lowers[j] = upper - bounds::width(error, S::f32s::splat(simd, terms.slack), slacks);
        reached |= upper.simd_ge(thresholds).to_bitmask() << (j * lanes);
    }
    while reached != 0 {
        let lane = reached.trailing_zeros() as usize;
        reached &= reached - 1;
        if let (Some((values, plain)), Some(panels)) = (again, &scan.quantized) {
            worker.refined += 1;
            let score = bounds::dot(simd, values, panels.plain(first_query + lane));
            offer_one(scan, worker, first_query + lane, score, plain, number);
            continue;
        }
        let (lower, upper) =
            (lowers[lane / lanes].as_slice()[lane % lanes], uppers[lane / lanes].as_slice()[lane % lanes]);
        worker.offer(scan, first_query + lane, lower, upper, number);
    }
}

/// Offers a row to one query, if it reaches its threshold.
#[inline(always)]
fn offer_one(scan: &Scan<'_>, worker: &mut Worker, query: usize, score: f32, terms: &RowTerms, row: usize) {
    let error = scan.panels.norms[query] * terms.error;
    let upper = score * terms.scale + terms.bias + error;
    if upper >= worker.selection.thresholds[query] {
        let lower = upper - bounds::width(error, terms.slack, scan.panels.slacks[query]);
        worker.offer(scan, query, lower, upper, row);
    }
}

/// A single query: lanes along k, four rows at a time; norms in the same pass where they are not known.
#[inline(always)]
fn single<S: Simd>(simd: S, scan: &Scan<'_>, worker: &mut Worker, chunk: &Chunk<'_>) {
    const ROWS: usize = 4;
    let Chunk { first, values: block, .. } = *chunk;
    let known = chunk.known.map(|known| known.terms);
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
