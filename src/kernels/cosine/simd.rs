//! The CPU path: a fused, blocked GEMM with the selection in its epilogue; queries x rows are never in memory.
//!
//! ```text
//! for chunk of rows                      one task of a thread; read once, from memory or a file
//!   for block of queries                 packed, at most 1 MiB: stays in L2
//!     for 48 rows of the chunk           the next 48 are being prefetched meanwhile
//!       for panel of queries             one to four vectors wide
//!         for tile of 6 rows             6 x 4 accumulators; one multiply-add chain per score
//!           offer the rows whose upper bound reaches the query's threshold
//! ```
//!
//! Where the CPU can multiply bytes, a larger batch of queries goes through the rows as 8-bit integers, with intervals
//! that are wider, and proven too ([`quantized`](super::quantized)); a row that passes is scored in f32 at once.
//!
//! This file holds the outer loop and the bookkeeping; [`tile`](super::tile) the four inner ones.
//! Cost: 2 x queries x rows x dim operations; each row is read once from memory per 1 MiB of packed queries. Memory
//! beyond the operands: the packed queries, 1 MiB of rows per thread where they are read or converted, and
//! 12 bytes x queries x max(1.5 k, k + 22) per thread (x (9 k + 246) for a corpus prepared as integers).

use super::bounds::{Bounds, QueryKind, QueryTerms, RowKind};
use super::exact::ExactQuery;
use super::pack::Panels;
use super::quantized::QuantizedPanels;
use super::rank::{keep_best, rank, row_values};
use super::select::{self, Candidate, Cut, Floors, Selection};
use super::tile::{self, Chunk, Digest, Known};
use super::{Neighbors, Search};
use crate::data::{Buffer, Matrix, Rows};
use crate::error::Error;
use crate::kernels::{Platform, parallel};
use crate::simd::{Level, ops};

/// Rows of a task when they lie in memory: enough to prefetch across blocks, few enough to share between threads.
const CHUNK_ROWS: usize = 40 * tile::BLOCK_ROWS;
/// Rank in the sample that a guess for a large `k` starts from: the larger, the nearer it comes, and the more it costs.
pub(super) const GUESS_RANK: usize = 32;
/// Queries from which on it pays to round rows to integers.
const QUANTIZED_QUERIES: usize = 64;
/// Nearest rows up to which it does, and where rows that pass get no second look.
const QUANTIZED_K: usize = 4_096;
const QUANTIZED_K_UNSEEN: usize = 64;
/// Columns: few enough for sums of products of bytes to fit into 32 bits.
const QUANTIZED_COLUMNS: std::ops::RangeInclusive<usize> = 16..=1 << 15;
/// A worker stops computing with integers when one list in so many was crowded in one chunk.
const CROWDED_SHARE: usize = 16;
/// The same for one score in so many that was computed again.
const REFINED_SHARE: usize = 10;
/// Bytes of a task's rows when they are read or converted into a thread's own buffer.
const CHUNK_BYTES: usize = 1 << 20;

/// What a resident corpus is prepared into.
pub(super) struct Prepared {
    plain: Digest,
    /// The same with the rows as integers, where searches are to use them.
    quantized: Option<Digest>,
    unusual: Unusual,
}

/// How the scores of the first pass are computed. The answer does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Float,
    /// Integers of 8 bits, until too many rows cannot be told apart.
    Quantized,
}

impl Arithmetic {
    /// What is likely to be faster for a corpus that is read once, or for one that is prepared.
    ///
    /// Rounding a row costs as much as about 40 queries save; where that is done already, even one query gains, as it reads a
    /// quarter of the bytes. A row whose interval reaches a threshold gets a second look where its values are at hand;
    /// elsewhere it stays a candidate, so that a large `k` eats up the gain.
    pub(super) fn choose(queries: usize, corpus: &dyn Rows, search: &Search, level: Level, prepared: bool) -> Self {
        let k = search.candidates(corpus.rows());
        let least_queries = if prepared { 1 } else { QUANTIZED_QUERIES };
        let second_look = !prepared || Scan::fetches_rows(queries, corpus);
        let most_k = if second_look { QUANTIZED_K } else { QUANTIZED_K_UNSEEN };
        let pays = queries >= least_queries && k <= most_k && 64 * k <= corpus.rows();
        if ops::has_add_products(level) && pays && QUANTIZED_COLUMNS.contains(&corpus.cols()) {
            Self::Quantized
        } else {
            Self::Float
        }
    }
}

/// Rows that are not simply bounded.
#[derive(Default)]
pub(super) struct Unusual {
    /// Rows of the corpus that are finite, but beyond f32 arithmetic.
    exact: Vec<u32>,
    pub(super) zero_rows: u64,
    bad_rows: u64,
    /// The first row with a NaN or an infinity, and the column of it.
    first_bad: Option<(usize, usize)>,
}

impl Unusual {
    /// Notes what kind of row this is.
    #[inline(always)]
    pub(super) fn note(&mut self, row: usize, kind: RowKind) {
        if kind != RowKind::Usual {
            self.note_unusual(row, kind);
        }
    }

    #[cold]
    fn note_unusual(&mut self, row: usize, kind: RowKind) {
        match kind {
            RowKind::Usual => {}
            RowKind::Zero => self.zero_rows += 1,
            RowKind::Exact => self.exact.push(as_row(row)),
            RowKind::Bad { column } => {
                self.bad_rows += 1;
                self.first_bad = self.first_bad.or(Some((row, column)));
            }
        }
    }

    /// An error for the first bad row, unless such rows are to be skipped.
    fn refuse(&self, corpus: &dyn Rows, search: &Search) -> Result<(), Error> {
        let Some((row, column)) = self.first_bad.filter(|_| !search.skip_bad) else { return Ok(()) };
        let mut scratch = Vec::new();
        let value = corpus.block(row, 1, &mut scratch)?[column];
        Err(Error::NotFinite { what: corpus.name(), row, column, value })
    }

    fn add(&mut self, other: &Self) {
        self.exact.extend(&other.exact);
        self.zero_rows += other.zero_rows;
        self.bad_rows += other.bad_rows;
    }
}

/// The `search.k` nearest rows of `corpus` for each row of `queries`.
///
/// # Errors
/// [`Error::Shape`] when the numbers of columns differ, [`Error::Argument`] for `k` = 0 or an empty corpus,
/// [`Error::NotFinite`] with row and column, [`Error::Limit`] beyond 2^32 - 1 rows, and what reading the corpus reports.
pub fn top_k(queries: &Matrix, corpus: &dyn Rows, search: &Search, platform: &Platform) -> Result<Neighbors, Error> {
    let arithmetic = Arithmetic::choose(queries.rows(), corpus, search, platform.level, false);
    top_k_prepared(queries, corpus, None, search, arithmetic, platform.level, platform.threads)
}

/// [`top_k`] with what is known of a resident corpus.
pub(super) fn top_k_prepared(
    queries: &Matrix,
    corpus: &dyn Rows,
    prepared: Option<&Prepared>,
    search: &Search,
    arithmetic: Arithmetic,
    level: Level,
    threads: usize,
) -> Result<Neighbors, Error> {
    search.check(queries, corpus)?;
    let mut scan = Scan::new(queries, corpus, prepared, search, arithmetic, level, threads)?;
    let guess = scan.guess()?;
    scan.floors = Floors::new(&guess);
    let workers = scan.run()?;
    let mut candidates = scan.candidates(&workers, &guess)?;
    scan.search_again(&mut candidates)?;
    let candidates: Vec<_> = candidates.into_iter().map(Option::unwrap_or_default).collect();
    let mut neighbors = rank(queries, corpus, search, &candidates, level, threads)?;
    for unusual in workers.iter().map(|worker| &worker.unusual).chain(prepared.map(|prepared| &prepared.unusual)) {
        neighbors.zero_rows += unusual.zero_rows;
        neighbors.bad_rows += unusual.bad_rows;
    }
    neighbors.bad_queries =
        scan.query_terms.iter().filter(|terms| matches!(terms.kind, QueryKind::Bad { .. })).count() as u64;
    Ok(neighbors)
}

/// Prepares a corpus that stays: the terms of every row, so that a search reads nothing but the values; and if asked for,
/// the rows as integers, a quarter of the values' size.
///
/// # Errors
/// As [`top_k`].
pub(super) fn prepare(
    corpus: &dyn Rows,
    search: &Search,
    arithmetic: Arithmetic,
    level: Level,
    threads: usize,
) -> Result<Prepared, Error> {
    let (plain, unusual) = digest::<false>(corpus, search, level, threads)?;
    let quantized = match arithmetic {
        Arithmetic::Float => None,
        Arithmetic::Quantized => Some(digest::<true>(corpus, search, level, threads)?.0),
    };
    Ok(Prepared { plain, quantized, unusual })
}

fn digest<const QUANTIZED: bool>(
    corpus: &dyn Rows,
    search: &Search,
    level: Level,
    threads: usize,
) -> Result<(Digest, Unusual), Error> {
    let (rows, dim) = (corpus.rows(), corpus.cols());
    let bounds = Bounds::new(search.metric, dim);
    let chunk = chunk_rows(corpus, threads);
    #[derive(Default)]
    struct Part {
        scratch: Vec<f32>,
        digests: Vec<(usize, Digest)>,
        unusual: Unusual,
    }
    let parts = parallel::share(threads, rows.div_ceil(chunk), Part::default, |part, task| {
        let first = task * chunk;
        let block = corpus.block(first, chunk.min(rows - first), &mut part.scratch)?;
        let mut digest = Digest::default();
        let unusual = &mut part.unusual;
        crate::dispatch!(level, simd => tile::digest::<_, QUANTIZED>(simd, &bounds, block, dim, first, &mut digest, unusual));
        part.digests.push((first, digest));
        part.unusual.refuse(corpus, search)
    })?;
    let (mut whole, mut unusual, mut digests) = (Digest::default(), Unusual::default(), Vec::new());
    for part in parts {
        digests.extend(part.digests);
        unusual.add(&part.unusual);
    }
    unusual.exact.sort_unstable();
    digests.sort_unstable_by_key(|&(first, _)| first);
    for (_, digest) in digests {
        whole.extend(digest);
    }
    Ok((whole, unusual))
}

/// Rows are numbered by u32; [`Search::check`] has refused larger corpora.
#[expect(clippy::cast_possible_truncation, reason = "checked at the public function")]
pub(super) fn as_row(row: usize) -> u32 {
    row as u32
}

/// The row that stands for the `at`-th stretch of `stride` rows in a sample. Not always the first of it: what repeats with
/// a period would be seen at one phase only.
pub(super) fn sampled_row(at: usize, stride: usize) -> usize {
    at * stride + at.wrapping_mul(0x9e37_79b9) % stride
}

fn chunk_rows(corpus: &dyn Rows, threads: usize) -> usize {
    let row_bytes = size_of::<f32>() * corpus.cols();
    let most = if corpus.is_direct() { CHUNK_ROWS } else { (CHUNK_BYTES / row_bytes).max(1) };
    let most = if most > tile::BLOCK_ROWS { most / tile::BLOCK_ROWS * tile::BLOCK_ROWS } else { most };
    // At least eight tasks a thread, so that a disturbed core does not hold up the others.
    most.min(corpus.rows().div_ceil(8 * threads).next_multiple_of(tile::BLOCK_ROWS)).max(1)
}

/// Everything that stays the same during one search.
pub(super) struct Scan<'a> {
    queries: &'a Matrix,
    pub(super) corpus: &'a dyn Rows,
    prepared: Option<&'a Prepared>,
    search: &'a Search,
    level: Level,
    pub(super) bounds: Bounds,
    /// Rows wanted per query, with one more where its own row will be left out.
    k: usize,
    /// Rows of a task.
    chunk: usize,
    threads: usize,
    pub(super) query_terms: Vec<QueryTerms>,
    pub(super) panels: Panels,
    /// The queries as integers, if that is how the first pass computes.
    pub(super) quantized: Option<QuantizedPanels>,
    /// Whether a row that passes as integers is scored in f32 at once: its values are at hand.
    second_look: bool,
    floors: Floors,
}

impl<'a> Scan<'a> {
    fn new(
        queries: &'a Matrix,
        corpus: &'a dyn Rows,
        prepared: Option<&'a Prepared>,
        search: &'a Search,
        arithmetic: Arithmetic,
        level: Level,
        threads: usize,
    ) -> Result<Self, Error> {
        let query_terms: Vec<_> =
            (0..queries.rows()).map(|query| QueryTerms::new(level, search.metric, queries.row(query))).collect();
        for (row, terms) in query_terms.iter().enumerate() {
            if let QueryKind::Bad { column } = terms.kind
                && !search.skip_bad
            {
                let value = queries.row(row)[column];
                return Err(Error::NotFinite { what: "queries".into(), row, column, value });
            }
        }
        let (lanes, most) = crate::dispatch!(level, simd => (tile::lanes(simd), tile::most_vectors(simd)));
        let is_quantized =
            arithmetic == Arithmetic::Quantized && prepared.is_none_or(|prepared| prepared.quantized.is_some());
        // A single query has a pass of its own in f32; integers have it in a panel with nobody else.
        let sharing = if is_quantized { queries.rows().max(2) } else { queries.rows() };
        let width = Panels::width(sharing, lanes, most);
        let panels = Panels::new(queries, &query_terms, width);
        let factors: Vec<_> =
            query_terms.iter().map(|terms| (terms.kind == QueryKind::Usual).then_some(terms.factor)).collect();
        let quantized = if is_quantized { Some(QuantizedPanels::new(level, queries, &factors, width)?) } else { None };
        Ok(Self {
            queries,
            corpus,
            prepared,
            search,
            level,
            bounds: Bounds::new(search.metric, corpus.cols()),
            k: search.candidates(corpus.rows()),
            chunk: chunk_rows(corpus, threads),
            threads,
            query_terms,
            panels,
            quantized,
            second_look: prepared.is_none() || Self::fetches_rows(queries.rows(), corpus),
            floors: Floors::new(&vec![select::LOWEST; queries.rows()]),
        })
    }

    /// Whether a prepared corpus is read for the rows that pass as integers: for a larger batch each row is, by some query.
    fn fetches_rows(queries: usize, corpus: &dyn Rows) -> bool {
        queries >= QUANTIZED_QUERIES && corpus.is_direct()
    }

    fn arithmetic(&self) -> Arithmetic {
        if self.quantized.is_some() { Arithmetic::Quantized } else { Arithmetic::Float }
    }

    fn is_usual(&self, query: usize) -> bool {
        self.query_terms[query].kind == QueryKind::Usual
    }

    /// Goes through all rows.
    fn run(&self) -> Result<Vec<Worker>, Error> {
        let tasks = self.corpus.rows().div_ceil(self.chunk);
        parallel::share(self.threads, tasks, || Worker::new(self), |worker, task| worker.chunk(self, task))
    }

    /// For each query a bound that its k-th best row is likely to reach.
    ///
    /// Without one the first rows all pass, and k ln(rows / k) of the later ones; for a large k that costs as much as
    /// the multiplication. The guess is the score at k's share of a sample, moved down by four standard deviations.
    fn guess(&self) -> Result<Vec<f32>, Error> {
        let (rows, dim) = (self.corpus.rows(), self.corpus.cols());
        let sample = GUESS_RANK * rows / self.k;
        let lowest = vec![select::LOWEST; self.queries.rows()];
        if self.queries.rows() < 16 || self.k < 8 * GUESS_RANK || rows < 8 * self.k || !self.corpus.is_direct() {
            return Ok(lowest);
        }
        // What it costs against what it saves, in multiply-adds: an offer takes as long as about 2,000.
        if sample * dim > 1_000 * self.k * (rows / self.k).ilog2() as usize {
            return Ok(lowest);
        }
        let mut values = Buffer::zeroed(sample * dim)?;
        let stride = rows / sample;
        for (at, values) in values.chunks_exact_mut(dim).enumerate() {
            values.copy_from_slice(row_values(self.corpus, sampled_row(at, stride), &mut Vec::new())?);
        }
        let sample = Matrix::from_buffer(sample, dim, values)?;
        let k = GUESS_RANK + 4 * GUESS_RANK.isqrt() + 1;
        let search = Search { k, exclude_self: false, skip_bad: true, ..*self.search };
        let scan = Scan::new(self.queries, &sample, None, &search, Arithmetic::Float, self.level, self.threads)?;
        let workers = scan.run()?;
        Ok((0..lowest.len()).map(|query| scan.merged(&workers, query).1).collect())
    }

    /// What all threads together have found for a query, and the k-th largest lower bound.
    fn merged(&self, workers: &[Worker], query: usize) -> (Vec<Candidate>, f32) {
        let mut list = Vec::with_capacity(workers.iter().map(|worker| worker.selection.list(query).len()).sum());
        workers.iter().for_each(|worker| list.extend(worker.selection.list(query)));
        let threshold = select::cut(&mut list, self.k);
        (list, threshold)
    }

    /// For every query the rows that can belong to its answer, or nothing if its guess was too high: rows below a guess
    /// are left out, which is right only if k rows have reached it.
    fn candidates(&self, workers: &[Worker], guess: &[f32]) -> Result<Vec<Option<Vec<u32>>>, Error> {
        let found = parallel::share(self.threads, self.queries.rows(), Vec::new, |found, query| {
            let rows = match self.query_terms[query].kind {
                QueryKind::Bad { .. } => Some(Vec::new()),
                QueryKind::Exact => Some(self.every_row(query)?),
                QueryKind::Usual => {
                    let (list, threshold) = self.merged(workers, query);
                    (threshold >= guess[query]).then(|| list.into_iter().map(|candidate| candidate.row).collect())
                }
            };
            found.push((query, rows));
            Ok::<_, Error>(())
        })?;
        let mut candidates = vec![None; self.queries.rows()];
        for (query, rows) in found.into_iter().flatten() {
            candidates[query] = rows;
        }
        Ok(candidates)
    }

    /// Searches once more, without a guess, for the queries whose guess was too high.
    fn search_again(&self, candidates: &mut [Option<Vec<u32>>]) -> Result<(), Error> {
        let again: Vec<_> = (0..candidates.len()).filter(|&query| candidates[query].is_none()).collect();
        if again.is_empty() {
            return Ok(());
        }
        let values = again.iter().flat_map(|&query| self.queries.row(query)).copied().collect();
        let queries = Matrix::new(again.len(), self.queries.cols(), values)?;
        let (arithmetic, level) = (self.arithmetic(), self.level);
        let scan = Scan::new(&queries, self.corpus, self.prepared, self.search, arithmetic, level, self.threads)?;
        let found = scan.candidates(&scan.run()?, &vec![select::LOWEST; again.len()])?;
        for (query, rows) in again.into_iter().zip(found) {
            candidates[query] = rows;
        }
        Ok(())
    }

    /// The answer to a query beyond f32 arithmetic: every finite row is scored exactly.
    fn every_row(&self, query: usize) -> Result<Vec<u32>, Error> {
        let query = ExactQuery::new(self.level, self.search.metric, self.queries.row(query));
        let mut scratch = Vec::new();
        let mut best: Vec<(f64, u32)> = Vec::new();
        for row in 0..self.corpus.rows() {
            let values = row_values(self.corpus, row, &mut scratch)?;
            if !values.iter().all(|value| value.is_finite()) {
                continue;
            }
            best.push((query.score(values), as_row(row)));
            if best.len() >= 2 * self.k + 1_024 {
                keep_best(&mut best, self.k);
            }
        }
        keep_best(&mut best, self.k);
        Ok(best.into_iter().map(|(_, row)| row).collect())
    }
}

/// One thread's part.
pub(super) struct Worker {
    pub(super) selection: Selection,
    pub(super) unusual: Unusual,
    /// Of the rows of the current chunk, where they are not prepared.
    pub(super) digest: Digest,
    /// Whether it computes with integers: until the intervals turn out to be too wide for this corpus.
    pub(super) quantized: bool,
    is_first: bool,
    /// Crowded lists in this chunk.
    crowded: usize,
    /// Scores of this chunk that were computed again in f32.
    pub(super) refined: usize,
    scratch: Vec<f32>,
    row_scratch: Vec<f32>,
    /// An error met in the middle of the inner loops.
    failed: Option<Error>,
}

impl Worker {
    fn new(scan: &Scan<'_>) -> Self {
        let active: Vec<_> = (0..scan.queries.rows()).map(|query| scan.is_usual(query)).collect();
        Self {
            selection: Selection::new(
                scan.k,
                &active,
                scan.panels.lanes(),
                scan.quantized.is_some() && !scan.second_look,
            ),
            unusual: Unusual::default(),
            digest: Digest::default(),
            quantized: scan.quantized.is_some(),
            is_first: true,
            crowded: 0,
            refined: 0,
            scratch: Vec::new(),
            row_scratch: Vec::new(),
            failed: None,
        }
    }

    fn chunk(&mut self, scan: &Scan<'_>, task: usize) -> Result<(), Error> {
        let first = task * scan.chunk;
        let rows = scan.chunk.min(scan.corpus.rows() - first);
        self.selection.refresh(&scan.floors);
        // Taken out, so that the block may borrow it while the rest of the worker changes.
        let mut scratch = std::mem::take(&mut self.scratch);
        let exact_before = self.unusual.exact.len();
        let digest = scan.prepared.map(|prepared| match &prepared.quantized {
            Some(quantized) if self.quantized => quantized,
            _ => &prepared.plain,
        });
        let mut known = digest.map(|digest| Known::new(digest, first, rows, scan.corpus.cols()));
        let mut values = &[][..];
        if known.is_none() || !self.quantized || scan.second_look {
            values = scan.corpus.block(first, rows, &mut scratch)?;
        }
        if let (Some(known), Some(prepared), true) = (&mut known, scan.prepared, self.quantized && scan.second_look) {
            known.plain = &prepared.plain.terms[first..first + rows];
        }
        let chunk = Chunk { first, rows, values, known };
        crate::dispatch!(scan.level, simd => tile::chunk(simd, scan, self, &chunk));
        self.scratch = scratch;
        // Deciding by exact scores is worth it for a few lists, and a second look for a few rows; for more, narrower
        // intervals are. The first rows of all pass anyhow.
        let (crowded, refined) = (std::mem::take(&mut self.crowded), std::mem::take(&mut self.refined));
        let pays =
            CROWDED_SHARE * crowded <= scan.queries.rows() && REFINED_SHARE * refined <= rows * scan.queries.rows();
        self.quantized &= pays || std::mem::take(&mut self.is_first);
        self.unusual.refuse(scan.corpus, scan.search)?;
        let unbounded: Vec<u32> = match scan.prepared {
            Some(prepared) => {
                let all = &prepared.unusual.exact;
                let from = all.partition_point(|&row| (row as usize) < first);
                all[from..].iter().take_while(|&&row| (row as usize) < first + rows).copied().collect()
            }
            None => self.unusual.exact[exact_before..].to_vec(),
        };
        for row in unbounded {
            self.offer_exactly(scan, row)?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Adds a row to a query's candidates, and makes room when they are full.
    #[inline(never)]
    pub(super) fn offer(&mut self, scan: &Scan<'_>, query: usize, lower: f32, upper: f32, row: usize) {
        if self.selection.push(query, lower, upper, as_row(row))
            && let Cut::Crowded = self.selection.cut(query, &scan.floors)
            && let Err(error) = self.decide(scan, query)
        {
            self.failed.get_or_insert(error);
        }
    }

    /// Many rows whose intervals overlap, duplicates for instance: decides between them by their exact scores.
    #[cold]
    fn decide(&mut self, scan: &Scan<'_>, query: usize) -> Result<(), Error> {
        self.crowded += 1;
        let exact = ExactQuery::new(scan.level, scan.search.metric, scan.queries.row(query));
        let mut scored = Vec::new();
        for &Candidate { row, .. } in self.selection.list(query) {
            scored.push((exact.score(row_values(scan.corpus, row as usize, &mut self.row_scratch)?), row));
        }
        keep_best(&mut scored, scan.k);
        let terms = scan.query_terms[query];
        let bounded = scored.into_iter().map(|(score, row)| {
            let (lower, upper) = terms.interval(scan.search.metric, score);
            (lower, upper, row)
        });
        self.selection.replace(query, bounded, &scan.floors);
        Ok(())
    }

    /// Offers a row beyond f32 arithmetic to every query, by its exact score.
    #[cold]
    fn offer_exactly(&mut self, scan: &Scan<'_>, row: u32) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let values = row_values(scan.corpus, row as usize, &mut scratch)?;
        for query in (0..scan.queries.rows()).filter(|&query| scan.is_usual(query)) {
            let score = ExactQuery::new(scan.level, scan.search.metric, scan.queries.row(query)).score(values);
            let (lower, upper) = scan.query_terms[query].interval(scan.search.metric, score);
            if upper >= self.selection.thresholds[query] {
                self.offer(scan, query, lower, upper, row as usize);
            }
        }
        Ok(())
    }
}
