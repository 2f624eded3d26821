//! Dense matrices read by columns and written in blocks.

use super::*;
use crate::atomic_file::AtomicFile;
use std::path::PathBuf;

fn file(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

/// A matrix of small whole numbers, and every way to store it as .npy.
fn arrays() -> (Matrix<f64>, Vec<Vec<u8>>) {
    // More than one thread reads at a time, more than two tiles of rows, and not a whole number of either.
    let (rows, cols) = (40_001_usize, 7);
    let values: Vec<i8> = (0..rows * cols).map(|at| i8::try_from(at * 31 % 127).unwrap() - 50).collect();
    let matrix = Matrix::new(rows, cols, values.iter().map(|&value| f64::from(value)).collect()).unwrap();
    let mut arrays = Vec::new();
    for fortran in ["False", "True"] {
        let at = |place: usize| if fortran == "True" { place % rows * cols + place / rows } else { place };
        for descr in ["|i1", "<f2", "<f4", ">f4", "<f8", ">f8"] {
            let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({rows}, {cols})}}\n");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend(text.as_bytes());
            for value in (0..rows * cols).map(|place| values[at(place)]) {
                match descr {
                    "|i1" => bytes.extend(value.to_ne_bytes()),
                    "<f2" => bytes.extend(half::f16::from_f32(value.into()).to_le_bytes()),
                    "<f4" => bytes.extend(f32::from(value).to_le_bytes()),
                    ">f4" => bytes.extend(f32::from(value).to_be_bytes()),
                    "<f8" => bytes.extend(f64::from(value).to_le_bytes()),
                    _ => bytes.extend(f64::from(value).to_be_bytes()),
                }
            }
            arrays.push(bytes);
        }
    }
    (matrix, arrays)
}

#[test]
fn columns_of_an_array_are_those_of_the_whole() {
    let (_folder, path) = file("a.npy");
    let (matrix, arrays) = arrays();
    for bytes in arrays {
        std::fs::write(&path, bytes).unwrap();
        let whole = read_dense(&path, &DenseOptions::default()).unwrap().matrix;
        assert_eq!(whole.into_f64().unwrap(), matrix);
        let array = DenseFile::open(&path).unwrap();
        assert_eq!((array.rows(), array.cols()), (matrix.rows(), matrix.cols()));
        for columns in [0..7, 0..1, 6..7, 2..5, 3..3] {
            let expected: Vec<f64> =
                (0..matrix.rows()).flat_map(|row| matrix.row(row)[columns.clone()].to_vec()).collect();
            assert_eq!(array.columns::<f64>(columns.clone()).unwrap().values(), expected);
            let narrow = array.columns::<f32>(columns).unwrap();
            assert!(narrow.values().iter().map(|&value| f64::from(value)).eq(expected));
        }
    }
}

#[test]
fn columns_of_wide_rows_are_read_row_by_row() {
    // Rows of 24 kB, of which few columns are wanted.
    let matrix = Matrix::new(40, 3_000, (0..120_000).map(f64::from).collect()).unwrap();
    let (_folder, path) = file("a.npy");
    write_dense(&path, DenseFormat::Npy, &matrix).unwrap();
    let array = DenseFile::open(&path).unwrap();
    let read = array.columns::<f64>(2_990..2_993).unwrap();
    for row in 0..40 {
        assert_eq!(read.row(row), &matrix.row(row)[2_990..2_993]);
    }
}

#[test]
fn a_file_that_is_written_in_blocks_is_the_file_that_is_written_whole() {
    let matrix = Matrix::new(11, 7, (0..77).map(|value| f64::from(value) / 3.0).collect()).unwrap();
    let (folder, path) = file("whole.npy");
    write_dense(&path, DenseFormat::Npy, &matrix).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let other = folder.path().join("blocks.npy");
    for (high, wide) in [(1, 1), (4, 3), (11, 2), (3, 7), (11, 7)] {
        let mut writer = NpyWriter::<f64>::new(AtomicFile::create(&other).unwrap(), &other, 11, 7).unwrap();
        // The last block first.
        for col in (0..7).step_by(wide).rev() {
            for row in (0..11).step_by(high).rev() {
                let (rows, cols) = (row..11.min(row + high), col..7.min(col + wide));
                let values = rows.clone().flat_map(|row| matrix.row(row)[cols.clone()].to_vec()).collect();
                writer.block(row, col, &Matrix::new(rows.len(), cols.len(), values).unwrap()).unwrap();
            }
        }
        writer.commit().unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), whole, "{high} x {wide}");
    }
    let mut writer = NpyWriter::<f64>::new(AtomicFile::create(&other).unwrap(), &other, 11, 7).unwrap();
    matrix.values().chunks(5 * 7).for_each(|rows| writer.rows(rows).unwrap());
    writer.commit().unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), whole);
}
