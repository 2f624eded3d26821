//! Sparse matrices as `scipy.sparse.save_npz` writes them: a zip archive of .npy arrays. The layout is defined by scipy's
//! own reader and writer (`scipy/sparse/_matrix_io.py`, checked with scipy 1.17).
//!
//! | entry | csr, csc | bsr | coo | dia |
//! |---|---|---|---|---|
//! | `format` | its name, bytes or str | | | |
//! | `shape` | rows and columns | | | |
//! | `data` | entries | entries x block rows x block columns | entries | diagonals x columns |
//! | `indices` | column (csc: row) of each entry | of each block | | |
//! | `indptr` | where rows (csc: columns) begin | where rows of blocks begin | | |
//! | `row`, `col`, or `coords` | | | of each entry (`coords`: 2 x entries) | |
//! | `offsets` | | | | of each diagonal: column - row |
//!
//! `_is_array` (scipy array instead of matrix) changes nothing. Entries of the archive are stored or deflated, with or
//! without zip64. Arrays of Python objects are pickles, which can run code: they are refused.
//!
//! Repeated and unsorted entries of csr, csc and bsr are kept as they are, every zero of a block included; those of coo are
//! summed. Entries of csr, csc and bsr beyond the last row's end mean nothing and are left out. The zeros of dia are padding and left out, as scipy leaves them out.

mod archive;
mod write;

pub(super) use write::write;

use super::source::Source;
use super::sparse::{Counts, Loaded, SparseMatrix};
use crate::data::Csr;
use crate::error::Error;
use archive::{Archive, Values};
use std::ops::AddAssign;

/// The largest row pointers that a small file can ask for: 2^27 rows, 1 GiB.
const ROWS_OF_ANY_FILE: u64 = 1 << 27;
/// From then on, rows for each byte of the file.
const ROWS_A_BYTE: u64 = 64;

/// Reads a whole archive. The large entries are read at the same time, each by a thread: inflating is what takes longest.
pub(super) fn read(source: &Source) -> Result<Loaded, Error> {
    let mut archive = Archive::open(source)?;
    let format = archive.text("format")?;
    let [rows, cols] = shape(&mut archive)?;
    let layout = format!("scipy {format}");
    let (matrix, counts) = match format.as_str() {
        "csr" | "csc" => {
            let (major, minor) = if format == "csr" { (rows, cols) } else { (cols, rows) };
            let indptr = indptr(&mut archive, major, "shape")?;
            let entries = indptr[indptr.len() - 1];
            let mut other = archive.clone();
            let (indices, data) =
                rayon::join(|| archive.first_indices("indices", entries, minor), || other.data("data"));
            let ((indices, stored), mut data) = (indices?, data?);
            let unused = unused(&archive, &data.shape, entries, stored)?;
            data.values.truncate(entries);
            let compressed = |matrix: SparseMatrix| if format == "csr" { Ok(matrix) } else { transpose(&matrix) };
            let matrix = match data.values {
                Values::F32(values) => SparseMatrix::F32(Csr::new(major, minor, indptr, indices, values)?),
                Values::F64(values) => SparseMatrix::F64(Csr::new(major, minor, indptr, indices, values)?),
            };
            (compressed(matrix)?, Counts { rounded: data.rounded, unused, ..Counts::default() })
        }
        "bsr" => {
            let data = archive.data("data")?;
            let [blocks, high, wide] = data.shape[..] else {
                return Err(archive.error("data", "shape", "3 dimensions", data.shape.len().to_string()));
            };
            if high == 0 || wide == 0 || !rows.is_multiple_of(high) || !cols.is_multiple_of(wide) {
                let expected = format!("blocks that divide {rows} x {cols}");
                return Err(archive.error("data", "shape", expected, format!("{high} x {wide}")));
            }
            let indptr = indptr(&mut archive, rows / high, "shape")?;
            let entries = indptr[indptr.len() - 1];
            let (indices, stored) = archive.first_indices("indices", entries, cols / wide)?;
            let unused = unused(&archive, &[blocks], entries, stored)?;
            let (shape, block) = ((rows, cols), (high, wide));
            let matrix = match data.values {
                Values::F32(values) => SparseMatrix::F32(blocked(shape, block, &indptr, &indices, &values)?),
                Values::F64(values) => SparseMatrix::F64(blocked(shape, block, &indptr, &indices, &values)?),
            };
            (matrix, Counts { rounded: data.rounded, unused, ..Counts::default() })
        }
        "coo" => {
            let entries = archive.length("data")?;
            let most = ROWS_OF_ANY_FILE.max(archive.bytes().saturating_mul(ROWS_A_BYTE));
            check_rows(&archive, rows, most)?;
            let (mut other, mut third) = (archive.clone(), archive.clone());
            let places = || {
                if archive.has("coords") {
                    return archive.coordinates("coords", entries, [rows, cols]);
                }
                let (row_of, indices) =
                    rayon::join(|| archive.indices("row", entries, rows), || third.indices("col", entries, cols));
                Ok((row_of?, indices?))
            };
            let (places, data) = rayon::join(places, || other.data("data"));
            let ((row_of, indices), data) = (places?, data?);
            let (matrix, summed) = match data.values {
                Values::F32(values) => {
                    let (matrix, summed) = Csr::from_coordinates(rows, cols, &row_of, indices, values)?;
                    (SparseMatrix::F32(matrix), summed)
                }
                Values::F64(values) => {
                    let (matrix, summed) = Csr::from_coordinates(rows, cols, &row_of, indices, values)?;
                    (SparseMatrix::F64(matrix), summed)
                }
            };
            (matrix, Counts { summed, rounded: data.rounded, ..Counts::default() })
        }
        "dia" => {
            let data = archive.data("data")?;
            let [diagonals, length] = data.shape[..] else {
                return Err(archive.error("data", "shape", "2 dimensions", data.shape.len().to_string()));
            };
            let offsets = archive.offsets("offsets", diagonals)?;
            let most = ROWS_OF_ANY_FILE.max(archive.bytes().saturating_mul(ROWS_A_BYTE));
            check_rows(&archive, rows, most)?;
            let (matrix, left_out) = match data.values {
                Values::F32(values) => {
                    let (matrix, left_out) = diagonal((rows, cols), &offsets, length, &values)?;
                    (SparseMatrix::F32(matrix), left_out)
                }
                Values::F64(values) => {
                    let (matrix, left_out) = diagonal((rows, cols), &offsets, length, &values)?;
                    (SparseMatrix::F64(matrix), left_out)
                }
            };
            (matrix, Counts { rounded: data.rounded, left_out, ..Counts::default() })
        }
        other => return Err(archive.error("format", "value", "csr, csc, coo, bsr or dia", format!("{other:?}"))),
    };
    Ok(Loaded { matrix, layout, counts })
}

/// How many entries there are beyond where the last row ends: room that whoever filled the arrays did not use.
fn unused(archive: &Archive<'_>, data: &[usize], entries: usize, stored: usize) -> Result<usize, Error> {
    let length = data.first().copied().unwrap_or(0);
    if length < entries || data.len() != 1 {
        archive.check_shape("data", data, &[entries])?;
    }
    if length != stored {
        let expected = format!("{stored} entries, as indices.npy has");
        return Err(archive.error("data", "shape", expected, length.to_string()));
    }
    Ok(stored - entries)
}

fn shape(archive: &mut Archive<'_>) -> Result<[usize; 2], Error> {
    let numbers = archive.integers("shape", "a size", |value| usize::try_from(value).ok())?;
    let Ok([rows, cols]) = <[usize; 2]>::try_from(numbers.as_slice()) else {
        return Err(archive.error("shape", "length", "2 numbers, rows and columns", numbers.len().to_string()));
    };
    if cols as u64 > 1 << 32 {
        let what = format!("{}: shape.npy: columns", archive.path().display());
        return Err(Error::Limit { what, requested: cols as u64, max: 1 << 32 });
    }
    Ok([rows, cols])
}

fn check_rows(archive: &Archive<'_>, rows: usize, max: u64) -> Result<(), Error> {
    if rows as u64 > max {
        let what = format!("{}: shape.npy: rows", archive.path().display());
        return Err(Error::Limit { what, requested: rows as u64, max });
    }
    Ok(())
}

/// Row pointers, which begin with 0, never decrease, and are one more than the rows.
fn indptr(archive: &mut Archive<'_>, rows: usize, says: &str) -> Result<Vec<usize>, Error> {
    let indptr = archive.integers("indptr", "a position from 0 on", |value| usize::try_from(value).ok())?;
    if indptr.len().checked_sub(1) != Some(rows) {
        let expected = format!("{} positions, as {says}.npy says", rows.saturating_add(1));
        return Err(archive.error("indptr", "length", expected, indptr.len().to_string()));
    }
    if indptr[0] != 0 {
        return Err(archive.error("indptr", "value 0", "0", indptr[0].to_string()));
    }
    if let Some(at) = indptr.windows(2).position(|pair| pair[0] > pair[1]) {
        let (expected, found) = (format!("at least {}", indptr[at]), indptr[at + 1].to_string());
        return Err(archive.error("indptr", format!("value {}", at + 1), expected, found));
    }
    Ok(indptr)
}

fn transpose(matrix: &SparseMatrix) -> Result<SparseMatrix, Error> {
    Ok(match matrix {
        SparseMatrix::F32(matrix) => SparseMatrix::F32(matrix.transpose()?),
        SparseMatrix::F64(matrix) => SparseMatrix::F64(matrix.transpose()?),
    })
}

/// Rows of blocks as rows: each block contributes its columns, zeros included.
fn blocked<T: Copy>(
    (rows, cols): (usize, usize),
    (high, wide): (usize, usize),
    indptr: &[usize],
    indices: &[u32],
    data: &[T],
) -> Result<Csr<T>, Error> {
    let mut row_ends = Vec::with_capacity(rows + 1);
    row_ends.push(0);
    let mut columns = Vec::with_capacity(data.len());
    let mut values = Vec::with_capacity(data.len());
    for block_row in indptr.windows(2) {
        for row in 0..high {
            for at in block_row[0]..block_row[1] {
                // Below the number of columns, which is at most 2^32, as the index was checked.
                let first = u64::from(indices[at]) * wide as u64;
                #[expect(clippy::cast_possible_truncation, reason = "below the number of columns")]
                columns.extend((first..first + wide as u64).map(|column| column as u32));
                values.extend_from_slice(&data[(at * high + row) * wide..][..wide]);
            }
            row_ends.push(values.len());
        }
    }
    Csr::new(rows, cols, row_ends, columns, values)
}

/// Diagonals as rows: value `j` of the diagonal at offset `d` is at row `j - d`, column `j`. Those outside of the matrix mean
/// nothing; zeros within are counted and left out.
fn diagonal<T: Copy + PartialEq + Default + AddAssign>(
    (rows, cols): (usize, usize),
    offsets: &[i64],
    length: usize,
    data: &[T],
) -> Result<(Csr<T>, usize), Error> {
    let (mut row_of, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut zeros = 0;
    for (&offset, diagonal) in offsets.iter().zip(data.chunks_exact(length.max(1))) {
        for (column, &value) in (0..=u32::MAX).zip(diagonal).take(cols) {
            let row = i64::from(column).checked_sub(offset).and_then(|row| u64::try_from(row).ok());
            let Some(row) = row.filter(|&row| row < rows as u64) else { continue };
            if value == T::default() {
                zeros += 1;
                continue;
            }
            row_of.push(row);
            columns.push(column);
            values.push(value);
        }
    }
    let (matrix, _) = Csr::from_coordinates(rows, cols, &row_of, columns, values)?;
    Ok((matrix, zeros))
}
