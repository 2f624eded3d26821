//! Properties and edges: every variant against the reference, byte for byte.

use super::simd::{Arithmetic, GUESS_RANK, prepare, sampled_row, top_k_prepared};
use super::{Metric, Neighbors, Search, reference};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::simd::Level;
use half::f16;
use proptest::prelude::*;

/// A small seeded generator for tests: uniform in -1..1.
pub(super) fn noise(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

pub(super) fn random(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut next = noise(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| next()).collect()).unwrap()
}

fn bits(neighbors: &Neighbors, query: usize) -> Vec<(u32, u32)> {
    let (rows, scores) = neighbors.query(query);
    rows.iter().zip(scores).map(|(&row, score)| (row, score.to_bits())).collect()
}

const ARITHMETIC: [Arithmetic; 2] = [Arithmetic::Float, Arithmetic::Quantized];

/// A search as the library does it.
fn search_with(queries: &Matrix, corpus: &dyn Rows, search: &Search, threads: usize) -> Result<Neighbors, Error> {
    top_k_prepared(queries, corpus, None, search, Arithmetic::Float, Level::detect(), threads)
}

/// Compares every level, 1 and 3 threads, streamed and prepared, with the reference.
fn agree(queries: &Matrix, corpus: &Matrix, search: &Search) {
    let expected: Vec<Vec<(u32, u32)>> = (0..queries.rows())
        .map(|query| {
            let found = reference::top_k(queries.row(query), corpus, search, query);
            found.into_iter().map(|(row, score)| (row, score.to_bits())).collect()
        })
        .collect();
    for level in Level::available() {
        for (threads, arithmetic) in [1, 3].into_iter().flat_map(|n| ARITHMETIC.map(|arithmetic| (n, arithmetic))) {
            let prepared = prepare(corpus, search, arithmetic, level, threads).unwrap();
            for prepared in [None, Some(&prepared)] {
                let found = top_k_prepared(queries, corpus, prepared, search, arithmetic, level, threads).unwrap();
                for (query, expected) in expected.iter().enumerate() {
                    let case = format!(
                        "{level}, {threads} threads, {arithmetic:?}, prepared {}, query {query} of {}, {} x {}, {search:?}",
                        prepared.is_some(),
                        queries.rows(),
                        corpus.rows(),
                        corpus.cols()
                    );
                    assert_eq!(&bits(&found, query), expected, "{case}");
                }
            }
        }
    }
}

#[test]
fn every_size_around_every_tile_agrees_with_the_reference() {
    for dim in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67] {
        for rows in [1, 2, 5, 6, 7, 11, 12, 13, 95, 96, 97, 200] {
            let corpus = random(rows, dim, (rows * 1_000 + dim) as u64);
            for queries in [1, 2, 7, 8, 9, 16, 17, 33] {
                let queries = random(queries, dim, (queries * 77 + dim) as u64);
                let metric = Metric::ALL[(rows + dim + queries.rows()) % 3];
                agree(&queries, &corpus, &Search::new(3, metric));
            }
        }
    }
}

#[test]
fn every_width_of_a_panel_agrees_with_the_reference() {
    for dim in [1, 9, 40] {
        for rows in [1, 5, 6, 7, 8, 13, 47, 48, 49, 100] {
            let corpus = random(rows, dim, (rows * 1_000 + dim) as u64);
            for queries in [31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 130] {
                let queries = random(queries, dim, (queries * 77 + dim) as u64);
                let metric = Metric::ALL[(rows + dim + queries.rows()) % 3];
                agree(&queries, &corpus, &Search::new(4, metric));
            }
        }
    }
}

#[test]
fn a_large_k_agrees_whether_its_guess_is_right_or_too_high() {
    let (rows, dim, k) = (3_000, 20, 8 * GUESS_RANK);
    let queries = random(20, dim, 40);
    let mut values = random(rows, dim, 41).values().to_vec();
    for metric in Metric::ALL {
        agree(&queries, &Matrix::new(rows, dim, values.clone()).unwrap(), &Search::new(k, metric));
    }
    // Just the sampled rows are near some of the queries, so that the guess for these promises more than there is.
    let sample = GUESS_RANK * rows / k;
    for at in 0..sample {
        let row = sampled_row(at, rows / sample) * dim;
        let near = queries.row(at % 3).iter().map(|value| value * 1.5);
        values[row..row + dim].iter_mut().zip(near).for_each(|(value, near)| *value = 0.01 * *value + near);
    }
    for metric in Metric::ALL {
        agree(&queries, &Matrix::new(rows, dim, values.clone()).unwrap(), &Search::new(k, metric));
    }
}

#[test]
fn larger_searches_agree_for_every_metric_and_k() {
    let corpus = random(3_000, 100, 1);
    for metric in Metric::ALL {
        for k in [1, 10, 100, 2_999, 3_000, 5_000] {
            agree(&random(5, 100, 2), &corpus, &Search::new(k, metric));
        }
        agree(&random(70, 100, 3), &corpus, &Search::new(10, metric));
    }
}

#[test]
fn many_panels_of_queries_agree() {
    // 1 MiB of packed queries is 655 of them at 400 columns: this takes two blocks.
    agree(&random(700, 400, 4), &random(250, 400, 5), &Search::new(5, Metric::Cosine));
}

#[test]
fn ties_are_broken_by_lower_row() {
    // Five distinct rows, 400 copies of each: every answer is decided by row numbers.
    let distinct = random(5, 20, 6);
    let values = (0..2_000).flat_map(|row| distinct.row(row * 7 % 5).to_vec()).collect();
    let corpus = Matrix::new(2_000, 20, values).unwrap();
    for metric in Metric::ALL {
        for k in [1, 10, 500] {
            agree(&random(3, 20, 7), &corpus, &Search::new(k, metric));
        }
    }
}

#[test]
fn rows_that_get_better_and_better_agree() {
    // Adversarial for a selection by threshold: every row beats all before it.
    let mut next = noise(8);
    let values = (0..3_000)
        .flat_map(|row| (0..10).map(|column| if column == 0 { row as f32 } else { next() }).collect::<Vec<_>>())
        .collect();
    let corpus = Matrix::new(3_000, 10, values).unwrap();
    let query = Matrix::new(1, 10, (0..10).map(|column| if column == 0 { 1.0 } else { 0.0 }).collect()).unwrap();
    for metric in Metric::ALL {
        agree(&query, &corpus, &Search::new(10, metric));
    }
}

#[test]
fn every_k_is_a_prefix_of_a_larger_k() {
    let (queries, corpus) = (random(4, 30, 9), random(500, 30, 10));
    let all = search_with(&queries, &corpus, &Search::new(500, Metric::L2), 2).unwrap();
    for k in [1, 2, 17, 499] {
        let some = search_with(&queries, &corpus, &Search::new(k, Metric::L2), 2).unwrap();
        for query in 0..4 {
            assert_eq!(bits(&some, query), bits(&all, query)[..k]);
        }
    }
}

#[test]
fn a_row_of_zeros_has_cosine_zero_and_is_counted() {
    let corpus = Matrix::new(4, 2, vec![0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, -0.0]).unwrap();
    let queries = Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
    let search = Search::new(4, Metric::Cosine);
    agree(&queries, &corpus, &search);
    let found = search_with(&queries, &corpus, &search, 1).unwrap();
    assert_eq!(found.query(0), (&[2, 0, 3, 1][..], &[1.0, 0.0, 0.0, -1.0][..]));
    assert_eq!(found.query(1), (&[0, 1, 2, 3][..], &[0.0; 4][..]));
    assert_eq!(found.zero_rows, 2);
}

#[test]
fn magnitudes_beyond_f32_arithmetic_agree() {
    for (query_scale, row_scale) in [(1.0, 1e30), (1e30, 1.0), (1e-30, 1e-30), (1e30, 1e30), (1e-40, 1.0), (1.0, 1e-40)]
    {
        let mut next = noise(11);
        let queries = Matrix::new(3, 9, (0..27).map(|_| next() * query_scale).collect()).unwrap();
        // Usual rows between the unusual ones.
        let value = |i: usize, x: f32| if (i / 9).is_multiple_of(3) { x } else { x * row_scale };
        let corpus = Matrix::new(150, 9, (0..1_350).map(|i| value(i, next())).collect()).unwrap();
        for metric in Metric::ALL {
            agree(&queries, &corpus, &Search::new(7, metric));
        }
    }
}

#[test]
fn a_norm_far_from_the_others_does_not_hide_them() {
    // One huge row: an error bound taken from the largest norm would make every row a candidate.
    let mut values = random(500, 12, 12).values().to_vec();
    values[12 * 250..12 * 251].fill(1e6);
    let corpus = Matrix::new(500, 12, values).unwrap();
    for metric in Metric::ALL {
        agree(&random(20, 12, 13), &corpus, &Search::new(10, metric));
    }
}

#[test]
fn own_rows_are_left_out() {
    let corpus = random(40, 8, 14);
    for metric in Metric::ALL {
        for k in [1, 5, 39, 40] {
            agree(&corpus, &corpus, &Search { exclude_self: true, ..Search::new(k, metric) });
        }
    }
}

#[test]
fn bad_values_are_refused_with_their_place_or_left_out() {
    let mut values = random(300, 10, 15).values().to_vec();
    values[10 * 217 + 4] = f32::NAN;
    values[10 * 299] = f32::INFINITY;
    let (corpus, queries) = (Matrix::new(300, 10, values).unwrap(), random(20, 10, 16));
    let search = Search::new(5, Metric::Cosine);
    for queries in [&queries, &random(1, 10, 17)] {
        for threads in [1, 3] {
            let error = search_with(queries, &corpus, &search, threads).unwrap_err();
            assert!(matches!(error, Error::NotFinite { row: 217, column: 4, .. }), "{error}");
        }
        assert!(prepare(&corpus, &search, Arithmetic::Float, Level::detect(), 2).is_err());
        let search = Search { skip_bad: true, ..search };
        agree(queries, &corpus, &search);
        let found = search_with(queries, &corpus, &search, 2).unwrap();
        assert_eq!((found.bad_rows, found.zero_rows), (2, 0));
    }
}

#[test]
fn a_bad_query_is_refused_with_its_place_or_answered_with_nothing() {
    let corpus = random(50, 3, 18);
    let queries = Matrix::new(2, 3, vec![1.0, 2.0, f32::NEG_INFINITY, 1.0, 2.0, 3.0]).unwrap();
    let search = Search::new(5, Metric::Dot);
    let error = search_with(&queries, &corpus, &search, 1).unwrap_err();
    assert_eq!(error.to_string(), "queries: row 0, column 2: expected a finite number, found -inf");
    let search = Search { skip_bad: true, ..search };
    let found = search_with(&queries, &corpus, &search, 1).unwrap();
    assert_eq!((found.query(0).0.len(), found.query(1).0.len(), found.bad_queries), (0, 5, 1));
}

#[test]
fn f16_storage_gives_the_scores_of_its_own_values() {
    let narrow: Vec<f16> = random(700, 50, 19).values().iter().map(|&value| f16::from_f32(value)).collect();
    let wide = Matrix::new(700, 50, narrow.iter().map(|value| value.to_f32()).collect()).unwrap();
    let narrow = Matrix::new(700, 50, narrow).unwrap();
    let queries = random(30, 50, 20);
    for metric in Metric::ALL {
        let search = Search::new(10, metric);
        let expected = search_with(&queries, &wide, &search, 1).unwrap();
        let found = search_with(&queries, &narrow, &search, 3).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn impossible_searches_are_refused() {
    let (queries, corpus) = (random(2, 3, 21), random(4, 3, 22));
    let run = |queries: &Matrix, corpus: &Matrix, k| {
        let search = Search::new(k, Metric::Cosine);
        search_with(queries, corpus, &search, 1).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(run(&queries, &corpus, 0), "k: expected at least 1, found 0");
    assert_eq!(run(&random(1, 4, 23), &corpus, 1), "queries: columns (the corpus has as many): expected 3, found 4");
    let empty = Matrix::new(0, 3, Vec::new()).unwrap();
    assert_eq!(
        run(&queries, &empty, 1),
        "matrix of 0 x 3 f32: expected at least one row of one column, found 0 rows of 3"
    );
    let none = search_with(&empty, &corpus, &Search::new(1, Metric::Dot), 1).unwrap();
    assert_eq!(none.queries(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_small_search_agrees(
        dim in 1usize..20,
        rows in 1usize..60,
        queries in 1usize..20,
        k in 1usize..70,
        metric in 0usize..3,
        exclude_self: bool,
        // Few distinct values, so that ties, zeros and cancellation are common.
        values in prop::collection::vec(prop::sample::select(vec![-2.0f32, -1.0, -0.0, 0.0, 0.5, 1.0, 1e-20, 3e18, 1e38]), 1600),
    ) {
        let corpus = Matrix::new(rows, dim, values[..rows * dim].to_vec()).unwrap();
        let queries = Matrix::new(queries, dim, values[1600 - queries * dim..].to_vec()).unwrap();
        agree(&queries, &corpus, &Search { exclude_self, ..Search::new(k, Metric::ALL[metric]) });
    }
}
