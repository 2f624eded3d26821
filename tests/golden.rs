//! Files that Python peers made (`tests/golden/make_*.py`), read and answered without Python.
#![cfg(feature = "cli")]

use lodestar::data::{Matrix, Rows};
use lodestar::formats::{Options, open, read_matrix};
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/topk").join(name)
}

fn read(name: &str) -> Matrix {
    read_matrix(&golden(name), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The plain text of a matrix, parsed here and by nothing of ours.
fn plain(name: &str) -> Matrix {
    let text = std::fs::read_to_string(golden(name)).unwrap();
    let rows: Vec<Vec<f32>> =
        text.lines().map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect();
    Matrix::new(rows.len(), rows[0].len(), rows.concat()).unwrap()
}

#[test]
fn every_layout_of_a_matrix_reads_as_the_same_values() {
    let expected = plain("m_matrix.csv");
    assert_eq!((expected.rows(), expected.cols()), (37, 7));
    let mut names: Vec<_> = std::fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("m_"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 21, "{names:?}");
    for name in names {
        assert_eq!(read(&name), expected, "{name}");
    }
}

#[test]
fn bytes_read_as_their_numbers() {
    assert_eq!(read("u_c.npy"), plain("u_matrix.csv"));
    assert_eq!(read("u_records.bvecs"), plain("u_matrix.csv"));
    assert_eq!(read("i_fortran.npy"), plain("i_matrix.csv"));
}

#[test]
fn any_block_of_any_layout_holds_its_rows() {
    for name in [
        "m_c_le_f4.npy",
        "m_c_be_f2.npy",
        "m_fortran_le_f4.npy",
        "m_fortran_be_f8.npy",
        "m_records.fvecs",
        "m_matrix.csv",
    ] {
        let expected = plain("m_matrix.csv");
        let input = open(&golden(name), &Options::default()).unwrap();
        // One scratch for all: what an earlier block left in it must not matter.
        let mut scratch = Vec::new();
        for (first, count) in [(0, 37), (36, 1), (5, 0), (0, 1), (11, 13), (37, 0)] {
            let block = input.rows.block(first, count, &mut scratch).unwrap();
            assert_eq!(block, &expected.values()[first * 7..(first + count) * 7], "{name}: {first} + {count}");
        }
    }
}

#[test]
fn what_is_assumed_about_a_file_is_said() {
    let note = |name: &str| open(&golden(name), &Options::default()).unwrap().note.unwrap_or_default();
    assert!(note("m_c_le_f8.npy").ends_with("m_c_le_f8.npy: f64 values are rounded to f32"));
    assert!(note("m_pandas.csv").ends_with("line 1 (0, 1, 2, ...) is taken as the names of the columns, not as a row"));
    assert_eq!(note("m_c_le_f4.npy"), "");
    assert_eq!(note("m_windows.csv"), "");
}

#[test]
fn arrays_that_are_no_matrix_of_numbers_are_refused_in_one_line() {
    let numbers = "numbers of type float32, float16, float64, uint8 or int8";
    for (name, position, expected, found) in [
        ("bad_object.npy", "header, descr", numbers, "'|O' (Python objects)"),
        ("bad_complex.npy", "header, descr", numbers, "'<c8' (complex numbers)"),
        ("bad_int64.npy", "header, descr", numbers, "'<i8' (integers)"),
        ("bad_bool.npy", "header, descr", numbers, "'|b1' (booleans)"),
        ("bad_string.npy", "header, descr", numbers, "'<U1' (strings)"),
        ("bad_time.npy", "header, descr", numbers, "'<M8[D]' (times)"),
        ("bad_longdouble.npy", "header, descr", numbers, "'<f16' (floats of another size)"),
        ("bad_structured.npy", "header, descr", numbers, "a structured type"),
        ("bad_structured_names.npy", "header, descr", numbers, "a structured type"),
        ("bad_scalar.npy", "header, shape", "2 dimensions, (rows, columns)", "0: ()"),
        ("bad_1d.npy", "header, shape", "2 dimensions, (rows, columns)", "1: (7,)"),
        ("bad_3d.npy", "header, shape", "2 dimensions, (rows, columns)", "3: (37, 7, 1)"),
    ] {
        let error = open(&golden(name), &Options::default()).err().expect(name).to_string();
        let path = golden(name);
        assert_eq!(error, format!("{}: {position}: expected {expected}, found {found}", path.display()));
    }
}

#[test]
fn a_matrix_without_rows_is_read_as_that() {
    let matrix = read("empty_rows.npy");
    assert_eq!((Rows::rows(&matrix), Rows::cols(&matrix)), (0, 7));
}
