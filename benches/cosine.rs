//! What share of this machine's ceilings an exact search reaches. Ceilings and searches are measured in turn, round after
//! round, so that the ratio holds on a noisy machine: quote the ratio, never a single time.
//!
//! ```text
//! cargo bench --bench cosine                        the sizes that are compared with other libraries
//! cargo bench --bench cosine -- 100000 256 384 10   rows, queries, dimensions, k
//! LODESTAR_SIMD=avx2 cargo bench --bench cosine     at a lower SIMD level
//! ```
//!
//! A share of the FMA peak above 1 is no mistake: where the CPU multiplies bytes, a batch of queries is searched as
//! integers first.
//!
//! With `--corpus FILE --queries FILE --k K --threads N` it reads both into memory, searches twice, and prints the time of
//! the second search as JSON (`{"ms": 12.3}`): what `benches/peers_topk.py ab --cmd` sets beside other libraries, which
//! are called on rows in memory too.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use lodestar::data::{Matrix, generate};
use lodestar::formats;
use lodestar::kernels::Platform;
use lodestar::kernels::cosine::{Metric, Search, top_k};
use lodestar::simd::{Level, ceilings};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 9;
/// Rows, queries, dimensions, k.
const SIZES: [[usize; 4]; 8] = [
    [100_000, 1, 384, 10],
    [100_000, 16, 384, 10],
    [100_000, 256, 384, 10],
    [100_000, 256, 384, 1_000],
    [100_000, 2_048, 384, 10],
    [100_000, 256, 1_024, 10],
    [10_000, 256, 384, 10],
    [10_000, 1, 384, 10],
];

fn main() {
    let level = Level::from_environment().expect("LODESTAR_SIMD");
    if let Some(corpus) = option("--corpus") {
        return beside_peers(level, &corpus);
    }
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = match numbers[..] {
        [rows, queries, dim, k] => vec![[rows, queries, dim, k]],
        _ => SIZES.to_vec(),
    };
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!(
        "{level}; medians of {ROUNDS} rounds; the corpus is not normalised beforehand, its norms are computed in the search"
    );
    println!(
        "{:>8} {:>7} {:>5} {:>5} {:>7} {:>10} {:>10} {:>13} {:>9} {:>14}",
        "rows", "queries", "dim", "k", "threads", "ms", "GFLOP/s", "of FMA peak", "GB/s", "of read speed"
    );
    for [rows, queries, dim, k] in sizes {
        let corpus = generate::matrix("gaussian", rows, dim, 1).expect("memory for the corpus");
        let queries = generate::queries("gaussian", queries, dim, 1, 0).expect("memory for the queries");
        for threads in [1, all] {
            measure(&corpus, &queries, k, level, threads);
        }
    }
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// One search over rows in memory, as other libraries are called.
fn beside_peers(level: Level, corpus: &str) {
    let read = |path: &str| formats::read_matrix(Path::new(path), &formats::Options::default()).expect("a matrix");
    let number = |name| option(name).and_then(|value| value.parse().ok());
    let (corpus, queries) = (read(corpus), read(&option("--queries").expect("--queries FILE")));
    let search = Search::new(number("--k").unwrap_or(10), Metric::Cosine);
    let platform = Platform::cpu(level, number("--threads").unwrap_or(1));
    let timed = || {
        let start = Instant::now();
        black_box(top_k(black_box(&queries), &corpus, &search, &platform).expect("a valid search"));
        start.elapsed()
    };
    timed();
    println!("{{\"ms\": {}}}", timed().as_secs_f64() * 1e3);
}

fn measure(corpus: &Matrix, queries: &Matrix, k: usize, level: Level, threads: usize) {
    let platform = Platform::cpu(level, threads);
    let search = Search::new(k, Metric::Cosine);
    let operations = 2.0 * corpus.values().len() as f64 * queries.rows() as f64;
    let bytes = 4.0 * corpus.values().len() as f64;
    let (mut seconds, mut of_peak, mut of_read) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let peak_before = ceilings::multiply_add(level, threads, 3).median;
        // The same memory as the search reads, so the same caches and pages.
        let read = ceilings::read(level, threads, 2, corpus.values()).median;
        let start = Instant::now();
        black_box(top_k(black_box(queries), corpus, &search, &platform).expect("a valid search"));
        let elapsed = start.elapsed().as_secs_f64();
        let peak = 0.5 * (peak_before + ceilings::multiply_add(level, threads, 3).median);
        seconds.push(elapsed);
        of_peak.push(operations / elapsed / peak);
        of_read.push(bytes / elapsed / read);
    }
    let time = median(&mut seconds);
    println!(
        "{:>8} {:>7} {:>5} {:>5} {threads:>7} {:>10.2} {:>10.1} {:>13.2} {:>9.1} {:>14.2}",
        corpus.rows(),
        queries.rows(),
        corpus.cols(),
        k,
        time * 1e3,
        operations / time / 1e9,
        median(&mut of_peak),
        bytes / time / 1e9,
        median(&mut of_read),
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
