//! The specification: score every row in f64, sort, keep k.
//!
//! Sums run in 16 lanes, element `i` in lane `i % 16`, then lanes are added in halves: part of the definition, since it
//! decides the last bits and with them the order of near-equal scores.

use super::{Metric, Search};
use crate::data::Matrix;

/// The nearest rows of one query: (row, printed score), best first.
pub fn top_k(query: &[f32], corpus: &Matrix, search: &Search, query_index: usize) -> Vec<(u32, f32)> {
    let mut scored: Vec<(f64, usize)> = (0..corpus.rows())
        .filter(|&row| !(search.exclude_self && row == query_index))
        .filter(|&row| corpus.row(row).iter().all(|value| value.is_finite()))
        .map(|row| (score(search.metric, query, corpus.row(row)), row))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(search.k);
    let row = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
    scored.into_iter().map(|(score, index)| (row(index), printed(search.metric, score))).collect()
}

fn score(metric: Metric, q: &[f32], x: &[f32]) -> f64 {
    let pairs = || q.iter().zip(x).map(|(&q, &x)| (f64::from(q), f64::from(x)));
    let dot = sum(pairs().map(|(q, x)| q * x));
    match metric {
        Metric::Dot => dot + 0.0,
        Metric::L2 => -sum(pairs().map(|(q, x)| (q - x) * (q - x))) + 0.0,
        Metric::Cosine => {
            let (q_norm, x_norm) = (sum(pairs().map(|(q, _)| q * q)).sqrt(), sum(pairs().map(|(_, x)| x * x)).sqrt());
            if q_norm == 0.0 || x_norm == 0.0 { 0.0 } else { (dot / (q_norm * x_norm)).clamp(-1.0, 1.0) + 0.0 }
        }
    }
}

fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 16];
    terms.enumerate().for_each(|(i, term)| lanes[i % 16] += term);
    for half in [8, 4, 2, 1] {
        (0..half).for_each(|lane| lanes[lane] += lanes[lane + half]);
    }
    lanes[0]
}

#[expect(clippy::cast_possible_truncation, reason = "scores are printed as f32")]
fn printed(metric: Metric, score: f64) -> f32 {
    if metric == Metric::L2 { (-score).sqrt() as f32 } else { score as f32 }
}
