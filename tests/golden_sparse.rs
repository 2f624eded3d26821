//! Sparse matrices that scipy wrote (`tests/golden/make_sparse.py`), in every layout, read without Python.
#![cfg(feature = "cli")]

use lodestar::data::{Csr, Matrix};
use lodestar::formats::{
    DenseFormat, DenseMatrix, DenseOptions, Dtype, SparseMatrix, SparseOptions, read_dense, read_sparse,
};
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sparse").join(name)
}

/// The files whose names begin so, without the plain text.
fn names(start: &str) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(start) && !name.ends_with(".csv"))
        .collect();
    names.sort();
    names
}

/// The plain text of a matrix, parsed here and by nothing of ours.
fn plain(name: &str) -> Matrix<f64> {
    let text = std::fs::read_to_string(golden(name)).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect();
    Matrix::new(rows.len(), rows[0].len(), rows.concat()).unwrap()
}

fn dense(matrix: &Csr<f64>) -> Matrix<f64> {
    let mut values = vec![0.0; matrix.rows() * matrix.cols()];
    for row in 0..matrix.rows() {
        let (columns, entries) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(entries) {
            values[row * matrix.cols() + column as usize] += value;
        }
    }
    Matrix::new(matrix.rows(), matrix.cols(), values).unwrap()
}

fn options(dtype: Dtype) -> SparseOptions {
    SparseOptions { dtype: Some(dtype), ..SparseOptions::default() }
}

fn read_f64(name: &str) -> Csr<f64> {
    match read_sparse(&golden(name), &options(Dtype::F64)).unwrap_or_else(|error| panic!("{error}")).matrix {
        SparseMatrix::F64(matrix) => matrix,
        SparseMatrix::F32(_) => panic!("{name}: f64 was asked for"),
    }
}

#[test]
fn every_layout_of_a_matrix_reads_as_the_same_values() {
    for (letter, files) in [("m", 43), ("i", 6), ("u", 4), ("b", 3), ("s", 2), ("k", 2), ("p", 1), ("z", 3)] {
        let expected = plain(&format!("{letter}_matrix.csv"));
        let names = names(&format!("{letter}_"));
        assert_eq!(names.len(), files, "{names:?}");
        for name in names {
            assert_eq!(dense(&read_f64(&name)), expected, "{name}");
        }
    }
}

#[test]
fn the_smallest_type_that_holds_what_is_stored_is_the_default() {
    let dtype = |name: &str| read_sparse(&golden(name), &SparseOptions::default()).unwrap().matrix.dtype();
    for name in [
        "m_csr_f2.npz",
        "m_csr_f4.npz",
        "m_csr_f4_big.npz",
        "i_csr_int8.npz",
        "i_csr_int16.npz",
        "u_csc_uint8.npz",
        "u_csc_uint16.npz",
        "b_csr_bool.npz",
        "b_general.mtx",
    ] {
        assert_eq!(dtype(name), Dtype::F32, "{name}");
    }
    for name in [
        "m_csr_i32_stored.npz",
        "m_csr_f8_big.npz",
        "i_csr_int32.npz",
        "i_csr_int64.npz",
        "u_csc_uint32.npz",
        "m_general.mtx",
        "i_general.mtx",
    ] {
        assert_eq!(dtype(name), Dtype::F64, "{name}");
    }
}

#[test]
fn rounding_to_f32_is_said_only_where_it_changes_values() {
    let read = |name: &str| read_sparse(&golden(name), &options(Dtype::F32)).unwrap();
    assert_eq!(read("m_general.mtx").note, None);
    let input = read("s_symmetric.mtx");
    assert_eq!(input.matrix.dtype(), Dtype::F32);
    let entries = input.matrix.entries();
    let expected = format!(
        "{}: f64 values are rounded to f32 ({entries} of {entries} change)",
        golden("s_symmetric.mtx").display()
    );
    assert_eq!(input.note, Some(expected));
}

#[test]
fn repeated_entries_and_zeros_are_counted() {
    let read = |name: &str| read_sparse(&golden(name), &SparseOptions::default()).unwrap();
    let entries = read("m_csr_i32_stored.npz").matrix.entries();
    assert!(entries > 10);
    for name in ["m_csr_repeated.npz", "m_csc_repeated.npz"] {
        let input = read(name);
        assert_eq!((input.matrix.entries(), input.summed, input.repeated), (2 * entries, 0, entries), "{name}");
        let note = input.note.unwrap();
        assert!(note.ends_with(&format!("{entries} repeated entries are kept: they add up")), "{note}");
    }
    for name in ["m_coo_repeated.npz", "m_repeated.mtx"] {
        let input = read(name);
        assert_eq!((input.matrix.entries(), input.summed, input.repeated), (entries, entries, 0), "{name}");
        assert!(input.note.unwrap().ends_with(&format!("{entries} repeated entries were added up")), "{name}");
    }
    for name in ["z_csr.npz", "z_coo.npz", "z_general.mtx"] {
        let input = read(name);
        assert_eq!((input.matrix.entries(), input.zeros), (3, 2), "{name}");
    }
    assert_eq!(read("m_csr_unsorted.npz").repeated, 0);
    assert_eq!(read("m_bsr_i32_stored.npz").layout, "scipy bsr");
    assert_eq!(read("i_general.mtx").layout, "Matrix Market coordinate integer general");
    // A block holds its zeros.
    assert!(read("m_bsr_i32_stored.npz").zeros > 0);
}

#[test]
fn matrices_without_entries_keep_their_shape() {
    let names = names("e_");
    assert_eq!(names.len(), 22, "{names:?}");
    for name in names {
        let shape = name.split('_').nth(1).unwrap().split_once('x').unwrap();
        let matrix = read_f64(&name);
        assert_eq!((matrix.rows().to_string(), matrix.cols().to_string()), (shape.0.into(), shape.1.into()), "{name}");
        assert_eq!(matrix.entries(), 0, "{name}");
    }
}

#[test]
fn arrays_of_matrix_market_are_dense_matrices() {
    for letter in ["m", "i", "s", "k"] {
        let path = golden(&format!("{letter}_array.mtx"));
        let input = read_dense(&path, &DenseOptions::default()).unwrap();
        assert_eq!(input.matrix, DenseMatrix::F64(plain(&format!("{letter}_matrix.csv"))), "{letter}");
    }
    let csv = read_dense(&golden("s_matrix.csv"), &DenseOptions::default()).unwrap();
    assert_eq!(csv.matrix, DenseMatrix::F64(plain("s_matrix.csv")));
    assert_eq!(DenseFormat::of(&golden("m_general.mtx.gz")).unwrap(), DenseFormat::MatrixMarket);
    let error = read_dense(&golden("m_general.mtx.gz"), &DenseOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("line 1: expected array, which is dense, found coordinate, which is sparse"), "{error}");
}

#[test]
fn what_is_refused_is_named_with_its_entry() {
    let cases = [
        ("bad_1d.npz", "shape.npy: length: expected 2 numbers, rows and columns, found 1"),
        ("bad_blocks.npz", "data.npy: shape: expected blocks that divide 3 x 4, found 2 x 2"),
        ("bad_checksum.npz", "data.npy: data: expected readable data, found Invalid checksum"),
        ("bad_column.npz", "indices.npy: value 1: expected an index from 0 to below 3, found 3"),
        (
            "bad_complex.mtx",
            "line 1: expected the field real, integer or pattern, found \"complex\": complex values are not supported",
        ),
        ("bad_complex.npz", "data.npy: header, descr: expected numbers or a text, found '<c16' (complex numbers)"),
        ("bad_coo_row.npz", "row.npy: value 0: expected an index from 0 to below 3, found 3"),
        ("bad_coords.npz", "coords.npy: row of entry 0: expected below 2, found 2"),
        ("bad_decreasing_indptr.npz", "indptr.npy: value 2: expected at least 2, found 1"),
        ("bad_first_indptr.npz", "indptr.npy: value 0: expected 0, found 1"),
        ("bad_float_indices.npz", "indices.npy: header, descr: expected whole numbers, found floats"),
        ("bad_format.npz", "format.npy: value: expected csr, csc, coo, bsr or dia, found \"lil\""),
        (
            "bad_hermitian.mtx",
            "line 1: expected the field real, integer or pattern, found \"complex\": complex values are not supported",
        ),
        ("bad_huge_column.npz", "indices.npy: value 1: expected an index from 0 to below 3, found 4294967296"),
        (
            "bad_longdouble.npz",
            "data.npy: header, descr: expected numbers or a text, found '<f16' (floats of another size)",
        ),
        ("bad_negative_column.npz", "indices.npy: value 1: expected an index from 0 to below 3, found -1"),
        ("bad_negative_indptr.npz", "indptr.npy: value 1: expected a position from 0 on, found -1"),
        (
            "bad_no_indices.npz",
            "archive: expected an entry indices.npy, found only data.npy, format.npy, indptr.npy, shape.npy",
        ),
        ("bad_not_sparse.npz", "archive: expected an entry format.npy, found only a.npy, b.npy"),
        (
            "bad_object_data.npz",
            "data.npy: header, descr: expected numbers or a text, found '|O' (Python objects: a pickle, which can run code)",
        ),
        (
            "bad_object_format.npz",
            "format.npy: header, descr: expected numbers or a text, found '|O' (Python objects: a pickle, which can run code)",
        ),
        ("bad_rows.npz", "shape.npy: rows: 1099511627776 requested, at most 134217728 possible"),
        ("bad_shape.npz", "shape.npy: value 1: expected a size, found -3"),
        ("bad_short_data.npz", "data.npy: shape: expected 3 entries, as indptr.npy says, found 2"),
        ("bad_short_indices.npz", "indices.npy: length: expected 3, as indptr.npy says, found 2"),
        ("bad_short_indptr.npz", "indptr.npy: length: expected 4 positions, as shape.npy says, found 3"),
        ("bad_truncated.npz", ""),
        ("bad_wide.npz", "shape.npy: columns: 4294967297 requested, at most 4294967296 possible"),
    ];
    let names = names("bad_");
    assert_eq!(names, cases.map(|(name, _)| name));
    for (name, expected) in cases {
        let message = read_sparse(&golden(name), &SparseOptions::default()).expect_err(name).to_string();
        let message = message.strip_prefix(&format!("{}: ", golden(name).display())).expect(name);
        if name == "bad_truncated.npz" {
            assert!(
                message.starts_with("the directory of the archive: expected a whole zip archive, found "),
                "{message}"
            );
        } else {
            assert_eq!(message, expected, "{name}");
        }
        assert!(!message.contains('\n'));
    }
}

#[test]
fn no_change_to_an_archive_makes_the_reader_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.npz");
    for name in ["m_csr_i32_stored.npz", "m_csr_i32_deflated.npz", "m_coo_i64_deflated.npz", "m_bsr_i32_stored.npz"] {
        let good = std::fs::read(golden(name)).unwrap();
        let expected = read_f64(name);
        for length in (0..good.len()).step_by(29) {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(read_sparse(&path, &options(Dtype::F64)).is_err(), "{name}: {length} bytes");
        }
        for position in (0..good.len()).step_by(5) {
            let mut changed = good.clone();
            changed[position] ^= 0x11;
            std::fs::write(&path, &changed).unwrap();
            // An error, or what the change does not concern; never other values, as every entry has a checksum.
            if let Ok(input) = read_sparse(&path, &options(Dtype::F64)) {
                assert_eq!(input.matrix, SparseMatrix::F64(expected.clone()), "{name}: byte {position}");
            }
        }
    }
}
