//! Canonical scores: candidate rows -> the k best, in f64, in one order of summation.

use super::exact::{self, Wide};
use super::{Neighbors, Search};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::kernels::parallel;
use crate::simd::Level;
use std::sync::atomic::{AtomicU64, Ordering};

/// Candidates scored by one task: enough to share, few enough to be fair.
const TASK: usize = 2_048;

/// One row of the corpus.
pub(super) fn row_values<'a>(corpus: &'a dyn Rows, row: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
    corpus.block(row, 1, scratch)
}

/// Scores each query's candidate rows in f64 and keeps the `search.k` best. `candidates[q]` holds distinct row numbers in
/// any order; it has to contain every row of the true answer. All rows are finite.
///
/// Candidates are scored in the order of rows, so that a row wanted by several queries is read and widened once.
pub(super) fn rank(
    queries: &Matrix,
    corpus: &dyn Rows,
    search: &Search,
    candidates: &[Vec<u32>],
    level: Level,
    threads: usize,
) -> Result<Neighbors, Error> {
    let mut wanted: Vec<(u32, u32, usize)> = Vec::with_capacity(candidates.iter().map(Vec::len).sum());
    for (query, rows) in (0u32..).zip(candidates) {
        for &row in rows {
            if !(search.exclude_self && row == query) {
                wanted.push((row, query, wanted.len()));
            }
        }
    }
    let scores: Vec<AtomicU64> = wanted.iter().map(|_| AtomicU64::new(0)).collect();
    let by_query: Vec<(u32, u32)> = wanted.iter().map(|&(row, query, _)| (query, row)).collect();
    wanted.sort_unstable();
    let wide_queries: Vec<Wide> = (0..queries.rows()).map(|query| Wide::new(level, queries.row(query))).collect();
    let start = || (Vec::new(), Wide::default());
    parallel::share(threads, wanted.len().div_ceil(TASK), start, |(scratch, wide), task| {
        let mut current = None;
        for &(row, query, slot) in &wanted[task * TASK..wanted.len().min((task + 1) * TASK)] {
            if current != Some(row) {
                wide.set(level, row_values(corpus, row as usize, scratch)?);
                current = Some(row);
            }
            let score = exact::score(level, search.metric, &wide_queries[query as usize], wide);
            scores[slot].store(score.to_bits(), Ordering::Relaxed);
        }
        Ok::<_, Error>(())
    })?;
    let mut scored: Vec<(f64, u32)> = Vec::new();
    let mut neighbors = Neighbors { offsets: vec![0], ..Neighbors::default() };
    let mut slot = 0;
    for query in (0u32..).take(queries.rows()) {
        scored.clear();
        while by_query.get(slot).is_some_and(|&(owner, _)| owner == query) {
            scored.push((f64::from_bits(scores[slot].load(Ordering::Relaxed)), by_query[slot].1));
            slot += 1;
        }
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.truncate(search.k);
        for &(score, row) in &scored {
            neighbors.rows.push(row);
            neighbors.scores.push(exact::printed(search.metric, score));
        }
        neighbors.offsets.push(neighbors.rows.len());
    }
    Ok(neighbors)
}
