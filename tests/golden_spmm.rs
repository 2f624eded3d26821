//! Products that scipy computed (`tests/golden/make_spmm.py`), of every layout that it saves.
#![cfg(feature = "cli")]

use lodestar::data::{Csr, Matrix};
use lodestar::formats::{DenseMatrix, DenseOptions, Dtype, SparseMatrix, SparseOptions, read_dense, read_sparse};
use lodestar::kernels::Platform;
use lodestar::kernels::spmm::{Value, multiply};
use lodestar::simd::Level;
use std::path::{Path, PathBuf};

fn golden(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder)
}

/// The sparse matrices of a letter. Text in array format is dense.
fn matrices(folder: &str, letter: char) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(golden(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let sparse = [".npz", ".mtx", ".mtx.gz"].iter().any(|extension| name.ends_with(extension));
            sparse && name.starts_with(&format!("{letter}_")) && !name.ends_with("_array.mtx")
        })
        .collect();
    paths.sort();
    paths
}

fn dense(path: &Path, dtype: Dtype) -> DenseMatrix {
    read_dense(path, &DenseOptions { dtype: Some(dtype), ..DenseOptions::default() }).unwrap().matrix
}

fn expected(path: &Path) -> Matrix<f64> {
    match dense(path, Dtype::F64) {
        DenseMatrix::F64(matrix) => matrix,
        DenseMatrix::F32(_) => panic!("{}: f64 was asked for", path.display()),
    }
}

/// What is wrong with C, if anything: NaN and infinities are where they should be, every other element is within its bound.
fn disagreement<T: Value>(a: &Csr<T>, b: &Matrix<T>, c: &Matrix<T>, expected: &Matrix<f64>) -> Option<String> {
    if (c.rows(), c.cols()) != (expected.rows(), expected.cols()) {
        return Some(format!("{} x {}", c.rows(), c.cols()));
    }
    for row in 0..c.rows() {
        let (columns, values) = a.row(row);
        for (j, (&found, &expected)) in c.row(row).iter().zip(expected.row(row)).enumerate() {
            let found: f64 = found.into();
            let products = columns.iter().zip(values).map(|(&column, &value)| {
                let (value, other): (f64, f64) = (value.into(), b.row(column as usize)[j].into());
                (value * other).abs()
            });
            let bound = (values.len() + 2) as f64 * T::EPSILON * products.sum::<f64>();
            let agrees = if expected.is_finite() {
                (found - expected).abs() <= bound
            } else {
                found == expected || (found.is_nan() && expected.is_nan())
            };
            if !agrees {
                return Some(format!("row {row}, column {j}: {found}, scipy has {expected}, bound {bound}"));
            }
        }
    }
    None
}

fn check_values<T: Value>(name: &str, a: &Csr<T>, b: &Matrix<T>, expected: &Matrix<f64>) {
    for level in Level::available() {
        for threads in [1, 3] {
            let platform = Platform::cpu(level, threads);
            let c = multiply(a, b, &platform).unwrap();
            let wrong = disagreement(a, b, &c, expected);
            assert_eq!(wrong, None, "{name} in {}, {}, {threads} threads", T::NAME, level.name());
        }
    }
}

fn check(a: &Path, b: &Path, c: &Path, dtypes: &[Dtype]) {
    let name = a.file_name().unwrap().to_str().unwrap();
    let c = expected(c);
    for &dtype in dtypes {
        let options = SparseOptions { dtype: Some(dtype), ..SparseOptions::default() };
        let input = read_sparse(a, &options).unwrap_or_else(|error| panic!("{error}"));
        match (&input.matrix, &dense(b, dtype)) {
            (SparseMatrix::F32(a), DenseMatrix::F32(b)) => check_values(name, a, b, &c),
            (SparseMatrix::F64(a), DenseMatrix::F64(b)) => check_values(name, a, b, &c),
            _ => panic!("{name}: {} was asked for", dtype.name()),
        }
    }
}

/// All files of a letter, of which there are at least so many.
fn check_letter(folder: &str, letter: char, files: usize, dtypes: &[Dtype]) {
    let paths = matrices(folder, letter);
    assert!(paths.len() >= files, "{paths:?}");
    let part = |part: &str| golden("spmm").join(format!("{letter}_{part}.npy"));
    for path in paths {
        check(&path, &part("b"), &part("c"), dtypes);
    }
}

const BOTH: &[Dtype] = &[Dtype::F32, Dtype::F64];

#[test]
fn products_of_every_file_of_every_layout_are_those_of_scipy() {
    for (letter, files) in [('m', 42), ('i', 5), ('u', 4), ('b', 3), ('p', 1), ('z', 3)] {
        check_letter("sparse", letter, files, BOTH);
    }
    // Their values have 53 bits: what f32 makes of them is another matrix.
    for letter in ['s', 'k'] {
        check_letter("sparse", letter, 1, &[Dtype::F64]);
    }
}

#[test]
fn empty_and_full_rows_repeated_unsorted_and_zero_entries_give_the_products_of_scipy() {
    check_letter("spmm", 'r', 11, BOTH);
    check_letter("spmm", 'd', 11, &[Dtype::F64]);
}

#[test]
fn whole_numbers_and_bools_give_the_products_of_scipy() {
    check_letter("spmm", 'w', 5, BOTH);
    check_letter("spmm", 't', 4, BOTH);
}

#[test]
fn nan_infinities_and_stored_zeros_come_out_where_scipy_has_them() {
    let paths = matrices("spmm", 'n');
    assert_eq!(paths.len(), 10, "{paths:?}");
    let b = golden("spmm").join("n_b.npy");
    for path in &paths {
        let product = path.with_file_name(format!("{}_c.npy", path.file_stem().unwrap().to_str().unwrap()));
        check(path, &b, &product, BOTH);
    }
    // The files can tell one treatment of zeros from another: none is stored, some are, or all of a block.
    let nans = |name: &str| expected(&golden("spmm").join(name)).values().iter().filter(|value| value.is_nan()).count();
    assert_eq!(["n_csr_c.npy", "n_csr_zeros_c.npy", "n_bsr_c.npy"].map(nans), [47, 51, 72]);
}

#[test]
fn matrices_without_entries_give_zeros() {
    let paths = matrices("sparse", 'e');
    assert!(paths.len() >= 22, "{paths:?}");
    for path in paths {
        let options = SparseOptions { dtype: Some(Dtype::F64), ..SparseOptions::default() };
        let SparseMatrix::F64(a) = read_sparse(&path, &options).unwrap().matrix else { panic!("f64 was asked for") };
        for width in [0, 1, 5] {
            let b = Matrix::new(a.cols(), width, vec![f64::NAN; a.cols() * width]).unwrap();
            let zeros = Matrix::new(a.rows(), width, vec![0.0; a.rows() * width]).unwrap();
            check_values(&path.display().to_string(), &a, &b, &zeros);
        }
    }
}

#[test]
fn a_product_that_is_wrong_is_noticed() {
    let a = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0f32, 2.0]).unwrap();
    let b = Matrix::new(2, 1, vec![1.0f32, 1.0]).unwrap();
    let noticed = |found: f32, expected: f64| {
        let c = Matrix::new(1, 1, vec![found]).unwrap();
        disagreement(&a, &b, &c, &Matrix::new(1, 1, vec![expected]).unwrap()).is_some()
    };
    // The bound is (2 + 2) 2^-24 3.
    assert!(!noticed(3.0, 3.0 + 7.1e-7) && noticed(3.0, 3.0 + 7.2e-7));
    assert!(noticed(f32::NAN, 3.0) && noticed(f32::INFINITY, 3.0) && noticed(0.0, 3.0));
    assert!(noticed(3.0, f64::NAN) && noticed(f32::INFINITY, f64::NAN) && noticed(f32::INFINITY, f64::NEG_INFINITY));
    assert!(!noticed(f32::NAN, f64::NAN) && !noticed(f32::NEG_INFINITY, f64::NEG_INFINITY));
}
