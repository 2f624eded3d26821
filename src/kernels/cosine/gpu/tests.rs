//! The GPU arm on whatever adapter there is, byte for byte against the reference.

use super::super::tests::{noise, random};
use super::super::{Metric, Neighbors, Search, reference};
use super::*;
use crate::device::{Options, ShaderPatch, tests::device};
use half::f16;

fn settings(test: &str, storage: Storage, segment_bytes: Option<u64>) -> Option<Settings> {
    let device = device(test, Options { segment_bytes, ..Options::default() })?;
    Some(Settings { device, storage, level: Level::detect(), threads: 2 })
}

fn on(settings: &Settings, storage: Storage) -> Settings {
    Settings { storage, ..settings.clone() }
}

fn bits(neighbors: &Neighbors, query: usize) -> Vec<(u32, u32)> {
    let (rows, scores) = neighbors.query(query);
    rows.iter().zip(scores).map(|(&row, score)| (row, score.to_bits())).collect()
}

/// Compares an answer with the reference, bit by bit.
fn compare(found: &Neighbors, queries: &Matrix, corpus: &Matrix, search: &Search, case: &str) {
    assert_eq!(found.queries(), queries.rows(), "{case}");
    for query in 0..queries.rows() {
        let expected = reference::top_k(queries.row(query), corpus, search, query);
        let expected: Vec<_> = expected.into_iter().map(|(row, score)| (row, score.to_bits())).collect();
        assert!(bits(found, query) == expected, "{case}, query {query}:\n{:?}\n{expected:?}", bits(found, query));
    }
}

fn agree(settings: &Settings, queries: &Matrix, corpus: &Matrix, search: &Search) {
    let case = format!(
        "{} queries, {} x {} {}, {search:?}",
        queries.rows(),
        corpus.rows(),
        corpus.cols(),
        settings.storage.name()
    );
    let found = top_k(queries, corpus, search, settings).unwrap_or_else(|error| panic!("{case}: {error}"));
    compare(&found, queries, corpus, search, &case);
}

#[test]
fn every_metric_and_storage_agrees_with_the_reference_at_every_dimension() {
    let Some(settings) = settings("dimensions", Storage::F32, None) else { return };
    for dim in [1, 3, 4, 5, 17, 64, 67, 384, 1_000] {
        let corpus = random(150, dim, dim as u64);
        for queries in [1, 16, 65] {
            let queries = random(queries, dim, 7 + dim as u64);
            for metric in Metric::ALL {
                for storage in [Storage::F32, Storage::F16] {
                    agree(&on(&settings, storage), &queries, &corpus, &Search::new(10, metric));
                }
            }
        }
    }
}

#[test]
fn every_number_of_rows_around_a_tile_agrees_with_the_reference() {
    let Some(settings) = settings("rows", Storage::F32, None) else { return };
    for rows in [1, 63, 64, 65, 127, 128, 129, 256, 257] {
        let corpus = random(rows, 12, rows as u64);
        for queries in [1, 8, 9, 17, 33, 129] {
            agree(&settings, &random(queries, 12, 99), &corpus, &Search::new(5, Metric::Cosine));
        }
    }
}

#[test]
fn every_k_agrees_with_the_reference_also_beyond_the_rows() {
    let Some(settings) = settings("k", Storage::F32, None) else { return };
    let corpus = random(9_000, 8, 1);
    for k in [1, 2, 10, 100, 1_000, 2_048] {
        agree(&settings, &random(3, 8, 2), &corpus, &Search::new(k, Metric::L2));
        agree(&settings, &random(17, 8, 3), &corpus, &Search::new(k, Metric::Dot));
    }
    agree(&settings, &random(3, 8, 4), &random(40, 8, 5), &Search::new(2_048, Metric::Cosine));
}

#[test]
fn sampled_and_split_corpora_agree_with_the_reference() {
    let Some(one) = settings("one segment", Storage::F32, None) else { return };
    let Some(many) = settings("many segments", Storage::F32, Some(16_384)) else { return };
    let corpus = random(20_000, 6, 11);
    for settings in [&one, &many] {
        for storage in [Storage::F32, Storage::F16] {
            for queries in [2, 20] {
                for metric in Metric::ALL {
                    agree(&on(settings, storage), &random(queries, 6, 12), &corpus, &Search::new(10, metric));
                }
            }
        }
    }
    let mut uploaded = GpuCorpus::upload(&many, &corpus, &Search::new(10, Metric::Dot)).unwrap();
    assert!(uploaded.segments.len() >= 20_000 * 32 / 16_384, "{} segments", uploaded.segments.len());
    // Resident: other k, other numbers of queries, the same corpus.
    for (k, queries) in [(10, 4), (10, 30), (100, 30), (10, 1)] {
        let search = Search::new(k, Metric::Dot);
        let queries = random(queries, 6, k as u64);
        let found = uploaded.top_k(&queries, &corpus, &search).unwrap();
        compare(&found, &queries, &corpus, &search, "resident");
    }
}

#[test]
fn a_streamed_corpus_gives_the_same_answer() {
    let Some(settings) = settings("streamed", Storage::F32, Some(40_000)) else { return };
    let corpus = random(12_000, 7, 21);
    for metric in Metric::ALL {
        for queries in [1, 20] {
            let queries = random(queries, 7, 22);
            let search = Search::new(10, metric);
            let found = stream(&queries, &corpus, &search, &settings).unwrap();
            compare(&found, &queries, &corpus, &search, "streamed");
        }
    }
    let alike = Matrix::new(12_000, 2, [1.0, 2.0].repeat(12_000)).unwrap();
    let search = Search::new(10, Metric::Cosine);
    let queries = random(3, 2, 23);
    compare(&stream(&queries, &alike, &search, &settings).unwrap(), &queries, &alike, &search, "streamed, all alike");
}

#[test]
fn rows_that_get_better_and_better_agree_with_the_reference() {
    let Some(settings) = settings("sorted", Storage::F32, None) else { return };
    let rows = 15_000;
    let values = (0..rows).flat_map(|row| [1.0 + row as f32 / 100.0, 1.0]).collect();
    let corpus = Matrix::new(rows, 2, values).unwrap();
    for queries in [2, 12] {
        for k in [1, 100] {
            for metric in Metric::ALL {
                agree(&settings, &random(queries, 2, 31), &corpus, &Search::new(k, metric));
            }
        }
    }
}

#[test]
fn duplicates_overflow_the_candidates_and_ties_go_to_the_lower_row() {
    let Some(settings) = settings("duplicates", Storage::F32, None) else { return };
    // Every candidate list overflows: 20,000 rows of 3 kinds, all of the best kind tied.
    let kinds = [[0.5_f32, 1.0, 0.0], [1.0, 0.5, 0.25], [-1.0, 0.0, 1.0]];
    let rows = 20_000;
    let mut next = noise(5);
    let mut kind = || match next() {
        x if x < -0.4 => 0,
        x if x < 0.4 => 1,
        _ => 2,
    };
    let corpus = Matrix::new(rows, 3, (0..rows).flat_map(|_| kinds[kind()]).collect()).unwrap();
    for queries in [1, 20] {
        for metric in Metric::ALL {
            for k in [1, 50] {
                agree(&settings, &random(queries, 3, 41), &corpus, &Search::new(k, metric));
            }
        }
    }
    let Some(split) = self::settings("duplicates, split", Storage::F16, Some(65_536)) else { return };
    agree(&split, &random(9, 3, 42), &corpus, &Search::new(10, Metric::Cosine));
}

#[test]
fn zero_rows_zero_queries_and_own_rows_agree_with_the_reference() {
    let Some(settings) = settings("zeros", Storage::F32, None) else { return };
    let mut values = random(200, 5, 51).values().to_vec();
    values[0..10].fill(0.0);
    values[500..505].fill(0.0);
    let corpus = Matrix::new(200, 5, values).unwrap();
    let mut values = corpus.values()[..30 * 5].to_vec();
    values[50..55].fill(0.0);
    let queries = Matrix::new(30, 5, values).unwrap();
    for metric in Metric::ALL {
        for exclude_self in [false, true] {
            for k in [1, 7, 300] {
                let search = Search { exclude_self, ..Search::new(k, metric) };
                agree(&settings, &queries, &corpus, &search);
            }
        }
    }
    let found = top_k(&queries, &corpus, &Search::new(3, Metric::Cosine), &settings).unwrap();
    assert_eq!(found.zero_rows, 3);
}

#[test]
fn magnitudes_beyond_f32_arithmetic_agree_with_the_reference() {
    let Some(settings) = settings("magnitudes", Storage::F32, None) else { return };
    let mut values = random(500, 4, 61).values().to_vec();
    for (row, scale) in [(3, 1e-20), (4, 1e18), (5, 1e-38), (6, 3e37), (7, 1e-13), (8, 1e13)] {
        values[4 * row..4 * row + 4].iter_mut().for_each(|value| *value *= scale);
    }
    let corpus = Matrix::new(500, 4, values).unwrap();
    for scale in [1.0, 1e-9, 1e9, 1e-25] {
        let queries = random(5, 4, 62).values().iter().map(|value| value * scale).collect();
        let queries = Matrix::new(5, 4, queries).unwrap();
        for metric in Metric::ALL {
            for storage in [Storage::F32, Storage::F16] {
                agree(&on(&settings, storage), &queries, &corpus, &Search::new(20, metric));
            }
        }
    }
    let huge = Matrix::new(1, 4, vec![1e20; 4]).unwrap();
    let error = top_k(&huge, &corpus, &Search::new(5, Metric::L2), &settings).unwrap_err();
    assert!(is_for_the_cpu(&error), "{error}");
}

#[test]
fn halves_are_stored_without_loss_and_subnormal_ones_too() {
    let Some(settings) = settings("halves", Storage::F16, None) else { return };
    let mut next = noise(71);
    // A third of the elements are subnormal halves, which a device may flush to zero.
    let mut element =
        |i: usize| f16::from_f32(if i.is_multiple_of(3) { next() * 5e-5 } else { next() * 2e-4 }).to_f32();
    let corpus = Matrix::new(300, 9, (0..2_700).map(&mut element).collect()).unwrap();
    for metric in Metric::ALL {
        agree(&settings, &random(10, 9, 72), &corpus, &Search::new(10, metric));
    }
}

#[test]
fn bad_values_are_named_or_left_out() {
    let Some(settings) = settings("bad values", Storage::F32, None) else { return };
    let mut values = random(100, 3, 81).values().to_vec();
    values[3 * 40 + 1] = f32::NAN;
    values[3 * 70 + 2] = f32::INFINITY;
    let corpus = Matrix::new(100, 3, values).unwrap();
    let queries = random(4, 3, 82);
    for storage in [Storage::F32, Storage::F16] {
        let settings = on(&settings, storage);
        let error = top_k(&queries, &corpus, &Search::new(5, Metric::Dot), &settings).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 40, column: 1, .. }), "{error}");
        let skipping = Search { skip_bad: true, ..Search::new(100, Metric::Dot) };
        let found = top_k(&queries, &corpus, &skipping, &settings).unwrap();
        assert_eq!((found.bad_rows, found.bad_queries), (2, 0));
        compare(&found, &queries, &corpus, &skipping, "bad rows left out");
    }
    let bad_query = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0]).unwrap();
    let good = random(10, 3, 83);
    let error = top_k(&bad_query, &good, &Search::new(5, Metric::Cosine), &settings).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 1, column: 1, .. }), "{error}");
    let skipping = Search { skip_bad: true, ..Search::new(5, Metric::Cosine) };
    let found = top_k(&bad_query, &good, &skipping, &settings).unwrap();
    assert_eq!(found.bad_queries, 1);
    assert_eq!((found.query(0).0.len(), found.query(1).0.len()), (5, 0));
}

#[test]
fn what_the_device_cannot_do_is_left_to_the_cpu() {
    let Some(settings) = settings("limits", Storage::F32, None) else { return };
    let corpus = random(3_000, 2, 91);
    let queries = random(2, 2, 92);
    let error = top_k(&queries, &corpus, &Search::new(2_049, Metric::Dot), &settings).unwrap_err();
    assert!(is_for_the_cpu(&error), "{error}");
    let tiny = corpus.values().iter().map(|value| value * 1e-30).collect::<Vec<_>>().repeat(2);
    let tiny = Matrix::new(6_000, 2, tiny).unwrap();
    let error = top_k(&queries, &tiny, &Search::new(5, Metric::Dot), &settings).unwrap_err();
    assert!(is_for_the_cpu(&error), "{error}");
    if settings.device.loop_cap().is_some() {
        let wide = random(1, 120_000, 93);
        let error = top_k(&wide, &wide, &Search::new(1, Metric::Dot), &settings).unwrap_err();
        assert!(is_for_the_cpu(&error), "{error}");
    }
    let error = top_k(&random(1, 3, 1), &corpus, &Search::new(5, Metric::Dot), &settings).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }) && !is_for_the_cpu(&error), "{error}");
}

#[test]
fn more_queries_than_a_batch_are_searched_in_batches() {
    let Some(settings) = settings("batches", Storage::F32, None) else { return };
    let corpus = random(3_000, 4, 101);
    let search = Search::new(2_000, Metric::Cosine);
    let size = Engine::batch_size(&settings.device, 2_000);
    assert!(size < 400, "{size}");
    let queries = random(size + 3, 4, 102);
    let found = top_k(&queries, &corpus, &search, &settings).unwrap();
    for query in [0, size - 1, size, size + 2] {
        let expected = reference::top_k(queries.row(query), &corpus, &search, query);
        assert!(expected.iter().map(|(row, _)| row).eq(found.query(query).0), "query {query}");
    }
    assert!(top_k(&random(0, 4, 1), &corpus, &search, &settings).unwrap().rows.is_empty());
}

#[test]
fn the_parts_of_a_call_run_by_themselves() {
    let Some(settings) = settings("parts", Storage::F32, None) else { return };
    let corpus = random(6_000, 16, 111);
    let search = Search::new(10, Metric::Cosine);
    let mut uploaded = GpuCorpus::upload(&settings, &corpus, &search).unwrap();
    assert_eq!(uploaded.corpus_bytes(), 6_000 * (64 + 16));
    let queries = random(12, 16, 112);
    let (up, down) = uploaded.call_bytes(12, &search);
    assert_eq!((up, down), (12 * (64 + 8), 12 * 75 * 4));
    uploaded.upload_queries(&queries, &search).unwrap();
    let time = uploaded.kernel_only().unwrap();
    assert!(time.is_none() || !settings.device.is_software(), "a software adapter gave a time");
    uploaded.download_found(12).unwrap();
    // A call after them, and another corpus in the same memory.
    compare(&uploaded.top_k(&queries, &corpus, &search).unwrap(), &queries, &corpus, &search, "after the parts");
    let other = random(6_000, 16, 113);
    uploaded.refill(&other).unwrap();
    compare(&uploaded.top_k(&queries, &other, &search).unwrap(), &queries, &other, &search, "refilled");
    assert!(uploaded.refill(&random(5, 16, 1)).is_err());
}

#[test]
fn the_device_finds_a_superset_and_little_more() {
    let Some(settings) = settings("superset", Storage::F32, None) else { return };
    let corpus = random(10_000, 64, 121);
    let queries = random(16, 64, 122);
    let search = Search::new(10, Metric::Cosine);
    let mut uploaded = GpuCorpus::upload(&settings, &corpus, &search).unwrap();
    let plan = QueryPlan::new(&queries, uploaded.layout, &search, settings.level).unwrap();
    for (query, rows) in uploaded.candidates_of(&plan, &queries, &corpus, &search).unwrap() {
        for (row, _) in reference::top_k(queries.row(query), &corpus, &search, query) {
            assert!(rows.contains(&row), "query {query}: row {row} is missing");
        }
        assert!(rows.len() < 30, "query {query}: {} candidates for 10", rows.len());
    }
}

#[test]
fn a_broken_shader_does_not_give_the_right_answer() {
    let corpus = random(2_000, 24, 131);
    let queries = random(20, 24, 132);
    let search = Search::new(10, Metric::Cosine);
    // Each fault either shows in the result, or is an error.
    for fault in [
        "acc[3] = fma(vec4<f32>(r.y), v=>acc[3] = fma(vec4<f32>(r.x), v",
        "upper >= threshold=>upper > 0xff7fffffu",
        "if (n >= p.k)=>if (n + 1000u >= p.k + p.k)",
        "p.base + local;=>p.base + local + 1u;",
        "slot < p.cap=>slot < 4u",
    ] {
        let patch = ShaderPatch::parse(fault).unwrap();
        assert!(shaders().iter().any(|shader| shader.source().contains(&patch.from)), "no shader contains {fault}");
        let options = Options { shader_patch: Some(patch), ..Options::default() };
        let Some(device) = device("broken shader", options) else { return };
        let settings = Settings { device, storage: Storage::F32, level: Level::detect(), threads: 1 };
        let broken = match top_k(&queries, &corpus, &search, &settings) {
            Err(_) => true,
            Ok(found) => (0..20).any(|query| {
                let expected = reference::top_k(queries.row(query), &corpus, &search, query);
                !expected.iter().map(|(row, _)| row).eq(found.query(query).0)
            }),
        };
        // A wrong threshold only costs candidates: the answer is still proven.
        if !fault.starts_with("if (n") {
            assert!(broken, "{fault}: nobody noticed");
        }
    }
}
