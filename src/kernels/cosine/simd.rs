//! The CPU path: a fused, blocked GEMM with the selection in its epilogue; queries x rows are never in memory.
//!
//! ```text
//! for chunk of rows                      one task of a thread; read once, from memory or a file
//!   for block of queries                 packed, at most 1 MiB: stays in L2
//!     for 96 rows of the chunk           the next 96 are being prefetched meanwhile
//!       for panel of queries             two vectors wide
//!         for tile of 12 rows            12 x 2 accumulators; one multiply-add chain per score
//!           offer the rows whose upper bound reaches the query's threshold
//! ```
//!
//! This file holds the outer loop and the bookkeeping; [`tile`](super::tile) the four inner ones.
//! Cost: 2 x queries x rows x dim operations; each row is read once from memory per 1 MiB of packed queries. Memory
//! beyond the operands: the packed queries, 1 MiB of rows per thread where they are read or converted, and
//! 16 bytes x queries x max(1.5 k, k + 22) per thread.

use super::bounds::{Bounds, QueryKind, QueryTerms, RowKind, RowTerms};
use super::exact::{self, Wide};
use super::pack::Panels;
use super::rank::{keep_best, rank, row_values};
use super::select::{self, Candidate, Cut, Floors, Selection};
use super::{Neighbors, Search, tile};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::kernels::{Platform, parallel};
use crate::simd::Level;

/// Rows of a task when they lie in memory: enough to prefetch across blocks, few enough to share between threads.
const CHUNK_ROWS: usize = 20 * tile::BLOCK_ROWS;
/// Bytes of a task's rows when they are read or converted into a thread's own buffer.
const CHUNK_BYTES: usize = 1 << 20;

/// What a resident corpus is prepared into: the terms of every row.
pub(super) struct Prepared {
    terms: Vec<RowTerms>,
    unusual: Unusual,
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
    top_k_prepared(queries, corpus, None, search, platform.level, platform.threads)
}

/// [`top_k`] with what is known of a resident corpus.
pub(super) fn top_k_prepared(
    queries: &Matrix,
    corpus: &dyn Rows,
    prepared: Option<&Prepared>,
    search: &Search,
    level: Level,
    threads: usize,
) -> Result<Neighbors, Error> {
    search.check(queries, corpus)?;
    let scan = Scan::new(queries, corpus, prepared, search, level, threads)?;
    let tasks = corpus.rows().div_ceil(scan.chunk);
    let workers = parallel::share(threads, tasks, || Worker::new(&scan), |worker, task| worker.chunk(&scan, task))?;
    let candidates = scan.candidates(&workers, threads)?;
    let mut neighbors = rank(queries, corpus, search, &candidates, level, threads)?;
    for unusual in workers.iter().map(|worker| &worker.unusual).chain(prepared.map(|prepared| &prepared.unusual)) {
        neighbors.zero_rows += unusual.zero_rows;
        neighbors.bad_rows += unusual.bad_rows;
    }
    neighbors.bad_queries =
        scan.query_terms.iter().filter(|terms| matches!(terms.kind, QueryKind::Bad { .. })).count() as u64;
    Ok(neighbors)
}

/// Prepares a corpus that stays: the terms of every row, so that a search reads nothing but the values.
///
/// # Errors
/// As [`top_k`].
pub(super) fn prepare(corpus: &dyn Rows, search: &Search, level: Level, threads: usize) -> Result<Prepared, Error> {
    let (rows, dim) = (corpus.rows(), corpus.cols());
    let bounds = Bounds::new(search.metric, dim);
    let chunk = chunk_rows(corpus, threads);
    #[derive(Default)]
    struct Part {
        scratch: Vec<f32>,
        terms: Vec<(usize, Vec<RowTerms>)>,
        unusual: Unusual,
    }
    let parts = parallel::share(threads, rows.div_ceil(chunk), Part::default, |part, task| {
        let first = task * chunk;
        let block = corpus.block(first, chunk.min(rows - first), &mut part.scratch)?;
        let mut terms = Vec::with_capacity(block.len() / dim);
        crate::dispatch!(level, simd => tile::terms(simd, &bounds, block, dim, first, &mut terms, &mut part.unusual));
        part.terms.push((first, terms));
        part.unusual.refuse(corpus, search)
    })?;
    let mut prepared = Prepared { terms: vec![RowTerms::NEVER; rows], unusual: Unusual::default() };
    for part in parts {
        for (first, terms) in part.terms {
            prepared.terms[first..first + terms.len()].copy_from_slice(&terms);
        }
        prepared.unusual.add(&part.unusual);
    }
    prepared.unusual.exact.sort_unstable();
    Ok(prepared)
}

/// Rows are numbered by u32; [`Search::check`] has refused larger corpora.
#[expect(clippy::cast_possible_truncation, reason = "checked at the public function")]
pub(super) fn as_row(row: usize) -> u32 {
    row as u32
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
    pub(super) query_terms: Vec<QueryTerms>,
    pub(super) panels: Panels,
    floors: Floors,
}

impl<'a> Scan<'a> {
    fn new(
        queries: &'a Matrix,
        corpus: &'a dyn Rows,
        prepared: Option<&'a Prepared>,
        search: &'a Search,
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
        let panels = Panels::new(queries, &query_terms, crate::dispatch!(level, simd => tile::lanes(simd)));
        Ok(Self {
            queries,
            corpus,
            prepared,
            search,
            level,
            bounds: Bounds::new(search.metric, corpus.cols()),
            k: search.candidates(corpus.rows()),
            chunk: chunk_rows(corpus, threads),
            query_terms,
            panels,
            floors: Floors::new(queries.rows()),
        })
    }

    fn is_usual(&self, query: usize) -> bool {
        self.query_terms[query].kind == QueryKind::Usual
    }

    /// For every query the rows that can belong to its answer, as found by all threads together.
    fn candidates(&self, workers: &[Worker], threads: usize) -> Result<Vec<Vec<u32>>, Error> {
        let found = parallel::share(threads, self.queries.rows(), Vec::new, |found, query| {
            let rows = match self.query_terms[query].kind {
                QueryKind::Bad { .. } => Vec::new(),
                QueryKind::Exact => self.every_row(query)?,
                QueryKind::Usual => {
                    let mut list: Vec<Candidate> = Vec::new();
                    workers.iter().for_each(|worker| list.extend(worker.selection.list(query)));
                    select::cut(&mut list, self.k);
                    list.into_iter().map(Candidate::row).collect()
                }
            };
            found.push((query, rows));
            Ok::<_, Error>(())
        })?;
        let mut candidates = vec![Vec::new(); self.queries.rows()];
        for (query, rows) in found.into_iter().flatten() {
            candidates[query] = rows;
        }
        Ok(candidates)
    }

    /// The answer to a query beyond f32 arithmetic: every finite row is scored exactly.
    fn every_row(&self, query: usize) -> Result<Vec<u32>, Error> {
        let query = Wide::new(self.level, self.queries.row(query));
        let (mut scratch, mut wide) = (Vec::new(), Wide::default());
        let mut best: Vec<(f64, u32)> = Vec::new();
        for row in 0..self.corpus.rows() {
            let values = row_values(self.corpus, row, &mut scratch)?;
            if !values.iter().all(|value| value.is_finite()) {
                continue;
            }
            wide.set(self.level, values);
            best.push((exact::score(self.level, self.search.metric, &query, &wide), as_row(row)));
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
    /// Terms of the rows of the current chunk, where they are not prepared.
    pub(super) terms: Vec<RowTerms>,
    scratch: Vec<f32>,
    row_scratch: Vec<f32>,
    /// An error met in the middle of the inner loops.
    failed: Option<Error>,
}

impl Worker {
    fn new(scan: &Scan<'_>) -> Self {
        let active: Vec<_> = (0..scan.queries.rows()).map(|query| scan.is_usual(query)).collect();
        Self {
            selection: Selection::new(scan.k, &active, scan.panels.lanes()),
            unusual: Unusual::default(),
            terms: Vec::new(),
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
        let block = scan.corpus.block(first, rows, &mut scratch)?;
        let known = scan.prepared.map(|prepared| &prepared.terms[first..first + rows]);
        crate::dispatch!(scan.level, simd => tile::chunk(simd, scan, self, first, block, known));
        self.scratch = scratch;
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
        let wide_query = Wide::new(scan.level, scan.queries.row(query));
        let mut wide = Wide::default();
        let mut scored = Vec::new();
        for candidate in self.selection.list(query) {
            let row = candidate.row();
            wide.set(scan.level, row_values(scan.corpus, row as usize, &mut self.row_scratch)?);
            scored.push((exact::score(scan.level, scan.search.metric, &wide_query, &wide), row));
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
        let wide = Wide::new(scan.level, row_values(scan.corpus, row as usize, &mut self.row_scratch)?);
        for query in (0..scan.queries.rows()).filter(|&query| scan.is_usual(query)) {
            let wide_query = Wide::new(scan.level, scan.queries.row(query));
            let score = exact::score(scan.level, scan.search.metric, &wide_query, &wide);
            let (lower, upper) = scan.query_terms[query].interval(scan.search.metric, score);
            if upper >= self.selection.thresholds[query] {
                self.offer(scan, query, lower, upper, row as usize);
            }
        }
        Ok(())
    }
}
