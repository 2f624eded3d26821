//! Canonical scores: candidate rows -> the k best, in f64, in one order of summation.

use super::exact::{self, ExactQuery};
use super::{Neighbors, Search};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::kernels::parallel;
use crate::simd::Level;
use crate::simd::ops::prefetch;

/// Queries of one task: their widened values stay in the second-level cache.
const TASK_QUERIES: usize = 256;
/// Bytes of rows that are read at once where a task wants a good part of all rows: with the queries' values they fit into
/// the second-level cache.
const BLOCK_BYTES: usize = 768 << 10;
/// f32 per cache line.
const LINE: usize = crate::simd::LINE / size_of::<f32>();
/// How far ahead of a pass over a block its rows are prefetched, in f32: two pages.
const STREAM_AHEAD: usize = 2_048;
/// How many candidates ahead a single row is prefetched.
const AHEAD: usize = 4;

/// One row of the corpus.
pub(super) fn row_values<'a>(corpus: &'a dyn Rows, row: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
    corpus.block(row, 1, scratch)
}

/// Scores each query's candidate rows in f64 and keeps the `search.k` best. `candidates[q]` holds distinct row numbers in
/// any order; it has to contain every row of the true answer. All rows are finite.
///
/// Cost: one canonical score per candidate. Where a task's candidates are a good part of all rows, it goes through the
/// corpus once, block by block, for all of its queries; otherwise it fetches single rows.
pub(super) fn rank(
    queries: &Matrix,
    corpus: &dyn Rows,
    search: &Search,
    candidates: &[Vec<u32>],
    level: Level,
    threads: usize,
) -> Result<Neighbors, Error> {
    let group = queries.rows().div_ceil(threads).clamp(1, TASK_QUERIES);
    let tasks = queries.rows().div_ceil(group);
    let ranked = parallel::share(threads, tasks, Vec::new, |done, task| {
        let mut part: Vec<_> = (task * group..queries.rows().min((task + 1) * group))
            .map(|query| Ranking::new(queries, query, &candidates[query], search, level))
            .collect();
        if part.iter().map(|ranking| ranking.rows.len()).sum::<usize>() > corpus.rows() / 4 {
            score_blocks(&mut part, corpus, level)?;
        } else {
            score_rows(&mut part, corpus)?;
        }
        part.iter_mut().for_each(|ranking| keep_best(&mut ranking.scored, search.k));
        done.push((task, part));
        Ok::<_, Error>(())
    })?;
    let mut ranked: Vec<_> = ranked.into_iter().flatten().collect();
    ranked.sort_unstable_by_key(|&(task, _)| task);
    let mut neighbors = Neighbors { offsets: vec![0], ..Neighbors::default() };
    for ranking in ranked.into_iter().flat_map(|(_, part)| part) {
        neighbors.rows.extend(ranking.scored.iter().map(|&(_, row)| row));
        neighbors.scores.extend(ranking.scored.iter().map(|&(score, _)| exact::printed(search.metric, score)));
        neighbors.offsets.push(neighbors.rows.len());
    }
    Ok(neighbors)
}

/// The candidates of one query on their way to an answer.
struct Ranking {
    query: ExactQuery,
    /// In ascending order.
    rows: Vec<u32>,
    scored: Vec<(f64, u32)>,
}

impl Ranking {
    fn new(queries: &Matrix, query: usize, candidates: &[u32], search: &Search, level: Level) -> Self {
        let own = search.exclude_self.then_some(query);
        let mut rows: Vec<_> = candidates.iter().copied().filter(|&row| own != Some(row as usize)).collect();
        // Stable on purpose: lists are made of a few ascending runs, which it merges.
        rows.sort();
        let scored = Vec::with_capacity(rows.len());
        Self { query: ExactQuery::new(level, search.metric, queries.row(query)), rows, scored }
    }
}

/// Reads the corpus once for all rankings.
fn score_blocks(part: &mut [Ranking], corpus: &dyn Rows, level: Level) -> Result<(), Error> {
    let (rows, dim) = (corpus.rows(), corpus.cols());
    let block_rows = (BLOCK_BYTES / (size_of::<f32>() * dim)).max(1);
    let (mut scratch, mut norms) = (Vec::new(), Vec::new());
    for first in (0..rows).step_by(block_rows) {
        let end = (first + block_rows).min(rows);
        let block = corpus.block(first, end - first, &mut scratch)?;
        // All norms at once, in order: this brings the block into the cache at the speed of memory, which fetching the
        // wanted rows one by one does not.
        norms.clear();
        for (at, row) in block.chunks_exact(dim).enumerate() {
            (0..dim).step_by(LINE).for_each(|column| prefetch(block, at * dim + column + STREAM_AHEAD));
            norms.push(exact::norm(level, row));
        }
        for Ranking { query, rows, scored } in &mut *part {
            // As many rows are scored as there are scores: what follows is the next candidate.
            let next = &rows[scored.len()..];
            let (fours, ones) = next[..next.partition_point(|&row| (row as usize) < end)].as_chunks::<4>();
            let values = |row: u32| &block[(row as usize - first) * dim..][..dim];
            let norm = |row: u32| norms[row as usize - first];
            for &four in fours {
                scored.extend(query.scores(four.map(values), four.map(norm)).into_iter().zip(four));
            }
            for &row in ones {
                let [score] = query.scores([values(row)], [norm(row)]);
                scored.push((score, row));
            }
        }
    }
    Ok(())
}

/// Fetches the rows one by one.
fn score_rows(part: &mut [Ranking], corpus: &dyn Rows) -> Result<(), Error> {
    let mut scratch = Vec::new();
    for Ranking { query, rows, scored } in part {
        for (at, &row) in rows.iter().enumerate() {
            if corpus.is_direct()
                && let Some(&ahead) = rows.get(at + AHEAD)
            {
                let mut unused = Vec::new();
                for line in corpus.block(ahead as usize, 1, &mut unused)?.chunks(LINE) {
                    prefetch(line, 0);
                }
            }
            scored.push((query.score(row_values(corpus, row as usize, &mut scratch)?), row));
        }
    }
    Ok(())
}

/// Keeps the `k` best by score, then by lower row.
pub(super) fn keep_best(scored: &mut Vec<(f64, u32)>, k: usize) {
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(k);
}
