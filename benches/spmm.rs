//! What a sparse times a dense matrix reaches of this machine's speed. Quote ratios taken in one run, never a single time.
//!
//! ```text
//! cargo bench --bench spmm                               seeded matrices of five kinds
//! cargo bench --bench spmm -- power-law 100000 64        kind, rows, width
//! LODESTAR_SIMD=avx2 cargo bench --bench spmm            at a lower SIMD level
//! ```
//!
//! With `--a FILE --b FILE --threads N` it reads both into memory, multiplies for a while, and prints the median time of a
//! call as JSON (`{"ms": 12.3}`): what `benches/peers_spmm.py` sets beside other libraries, which are called on operands in
//! memory too. C is there before the clock starts; the plan for A is made inside.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod timing;

use lodestar::data::{Buffer, Csr, Matrix, generate_sparse};
use lodestar::formats::{DenseMatrix, DenseOptions, SparseMatrix, SparseOptions, read_dense, read_sparse};
use lodestar::kernels::Platform;
use lodestar::kernels::spmm::{Value, multiply_into};
use lodestar::simd::{Level, ceilings};
use std::hint::black_box;
use std::path::Path;
use timing::median_seconds;

const SIZES: [(&str, usize, usize); 10] = [
    ("tf-idf", 5_000, 64),
    ("tf-idf", 5_000, 256),
    ("tf-idf", 50_000, 64),
    ("tf-idf", 50_000, 256),
    ("zipf", 50_000, 64),
    ("power-law", 100_000, 32),
    ("power-law", 100_000, 128),
    ("banded", 97_336, 64),
    ("skewed", 50_000, 64),
    ("tf-idf", 50_000, 1),
];

fn main() {
    let level = Level::from_environment().expect("LODESTAR_SIMD");
    if let Some(a) = option("--a") {
        return beside_peers(level, &a);
    }
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let sizes = match &arguments[..] {
        [kind, rows, width] => vec![(kind.as_str(), rows.parse().expect("rows"), width.parse().expect("width"))],
        _ => SIZES.to_vec(),
    };
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("{level}; gathered: a row of B and an entry of A for each entry");
    println!(
        "{:>10} {:>7} {:>5} {:>5} {:>7} {:>9} {:>9} {:>13} {:>15}",
        "matrix", "rows", "width", "type", "threads", "ms", "GFLOP/s", "of FMA peak", "gathered, GB/s"
    );
    for (kind, rows, width) in sizes {
        let a = generate_sparse::matrix(kind, rows, 1).expect("a matrix");
        let b = generate_sparse::dense(a.cols(), width, 1, 0).expect("memory for B");
        for threads in [1, all] {
            measure(kind, &a, &b, level, threads);
            let b = Matrix::new(b.rows(), width, b.values().iter().map(|&value| narrow(value)).collect()).expect("B");
            measure(kind, &a.clone().map(narrow), &b, level, threads);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn beside_peers(level: Level, a: &str) {
    let a = read_sparse(Path::new(a), &SparseOptions::default()).expect("a sparse matrix").matrix;
    let b = option("--b").expect("--b FILE");
    let b = read_dense(Path::new(&b), &DenseOptions { dtype: Some(a.dtype()), ..DenseOptions::default() });
    let threads = option("--threads").and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let seconds = match (a, b.expect("a dense matrix").matrix) {
        (SparseMatrix::F32(a), DenseMatrix::F32(b)) => time(&a, &b, level, threads),
        (SparseMatrix::F64(a), DenseMatrix::F64(b)) => time(&a, &b, level, threads),
        _ => panic!("one type for both"),
    };
    println!("{{\"ms\": {}}}", seconds * 1e3);
}

/// The median time of a call.
fn time<T: Value>(a: &Csr<T>, b: &Matrix<T>, level: Level, threads: usize) -> f64 {
    let platform = Platform::cpu(level, threads);
    let values = Buffer::zeroed(a.rows() * b.cols()).expect("memory for C");
    let mut c = Matrix::from_buffer(a.rows(), b.cols(), values).expect("C");
    median_seconds(|| {
        multiply_into(black_box(a), black_box(b), &mut c, &platform).expect("shapes that fit");
    })
}

fn measure<T: Value>(kind: &str, a: &Csr<T>, b: &Matrix<T>, level: Level, threads: usize) {
    let peak = ceilings::multiply_add(level, threads, 3).median * if T::NAME == "f64" { 0.5 } else { 1.0 };
    let seconds = time(a, b, level, threads);
    let operations = 2.0 * a.entries() as f64 * b.cols() as f64;
    let gathered = a.entries() * (b.cols() * size_of::<T>() + 4 + size_of::<T>());
    println!(
        "{kind:>10} {:>7} {:>5} {:>5} {threads:>7} {:>9.2} {:>9.1} {:>13.2} {:>15.1}",
        a.rows(),
        b.cols(),
        T::NAME,
        seconds * 1e3,
        operations / seconds / 1e9,
        operations / seconds / peak,
        gathered as f64 / seconds / 1e9,
    );
}
