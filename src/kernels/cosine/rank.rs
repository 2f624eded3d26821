//! Canonical scores: candidate rows -> the k best, in f64, in one order of summation.

use super::exact::{self, Wide};
use super::{Neighbors, Search};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::kernels::parallel;
use crate::simd::Level;
use crate::simd::ops::prefetch;
use rayon::slice::ParallelSliceMut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Candidates scored by one task: enough to share, few enough to be fair.
const TASK: usize = 2_048;

/// How many candidates ahead a row is prefetched.
const AHEAD: usize = 4;

/// Asks for a row that will be scored soon, where it lies in memory.
#[inline(always)]
fn prefetch_row(corpus: &dyn Rows, row: usize) -> Result<(), Error> {
    if corpus.is_direct() {
        let mut unused = Vec::new();
        for line in corpus.block(row, 1, &mut unused)?.chunks(16) {
            prefetch(line, 0);
        }
    }
    Ok(())
}

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
    let mut rows_of: Vec<Vec<(usize, u32)>> = candidates.iter().map(|rows| Vec::with_capacity(rows.len())).collect();
    for &(row, query, slot) in &wanted {
        rows_of[query as usize].push((slot, row));
    }
    if threads > 1 {
        wanted.par_sort_unstable()
    } else {
        wanted.sort_unstable()
    }
    let wide_queries: Vec<Wide> = (0..queries.rows()).map(|query| Wide::new(level, queries.row(query))).collect();
    let start = || (Vec::new(), Wide::default());
    parallel::share(threads, wanted.len().div_ceil(TASK), start, |(scratch, wide), task| {
        let mut current = None;
        for position in task * TASK..wanted.len().min((task + 1) * TASK) {
            let (row, query, slot) = wanted[position];
            if let Some(&(ahead, ..)) = wanted.get(position + AHEAD) {
                prefetch_row(corpus, ahead as usize)?;
            }
            if current != Some(row) {
                wide.set(level, row_values(corpus, row as usize, scratch)?);
                current = Some(row);
            }
            let score = exact::score(level, search.metric, &wide_queries[query as usize], wide);
            scores[slot].store(score.to_bits(), Ordering::Relaxed);
        }
        Ok::<_, Error>(())
    })?;
    let best = parallel::share(threads, queries.rows(), Vec::new, |best, query| {
        let score = |slot: usize| f64::from_bits(scores[slot].load(Ordering::Relaxed));
        let mut scored: Vec<_> = rows_of[query].iter().map(|&(slot, row)| (score(slot), row)).collect();
        keep_best(&mut scored, search.k);
        best.push((query, scored));
        Ok::<_, Error>(())
    })?;
    let mut answers: Vec<Vec<(f64, u32)>> = vec![Vec::new(); queries.rows()];
    for (query, scored) in best.into_iter().flatten() {
        answers[query] = scored;
    }
    let mut neighbors = Neighbors { offsets: vec![0], ..Neighbors::default() };
    for scored in &answers {
        neighbors.rows.extend(scored.iter().map(|&(_, row)| row));
        neighbors.scores.extend(scored.iter().map(|&(score, _)| exact::printed(search.metric, score)));
        neighbors.offsets.push(neighbors.rows.len());
    }
    Ok(neighbors)
}

/// Keeps the `k` best by score, then by lower row.
pub(super) fn keep_best(scored: &mut Vec<(f64, u32)>, k: usize) {
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(k);
}
