//! Matrix Market files (.mtx), after Boisvert, Pozo and Remington, "The Matrix Market Exchange Formats: Initial Design"
//! (NISTIR 5935, 1996).
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general      banner: layout, field, symmetry; case does not matter
//! % any number of comments and blank lines
//! 3 4 2                                              rows, columns, entries
//! 1 2 0.5                                            row and column from 1 on, value
//! 3 4 -1e-3
//! ```
//!
//! - `coordinate` is sparse, `array` dense: one value a line, column after column, its size line without a count.
//! - Fields: `real` (or `double`), `integer`, `pattern` (no values: all are 1). `complex` is refused.
//! - Symmetry: `general`, `symmetric`, `skew-symmetric`. The latter two give one triangle; the other is its mirror image.
//!   `hermitian` is refused: it means conjugates, and there are no complex values here.
//!
//! Read as well, because such files exist: CRLF, tabs, leading blanks, a byte-order mark, comments and blank lines
//! among the entries, a size over two lines, Fortran's exponents (`1.2D-02`, `1.2-102`), the upper triangle instead of the
//! lower one. Refused, because the values would be guesses: entries on both sides of the diagonal of a symmetric file,
//! further columns, fractions under `integer`, numbers beyond f64, a count that is not that of the entries.
//!
//! The text is read in blocks whose lines are parsed in parallel; no line becomes a `String`.

mod entries;
mod header;
mod number;
mod write;

pub use header::Banner;
pub(super) use write::{write_array, write_coordinate};

use super::sparse::{Counts, Loaded, SparseMatrix};
use super::text;
use crate::data::{Buffer, Csr, Matrix};
use crate::error::Error;
use entries::Rules;
use header::{Field, Layout, Lines, Symmetry};
use std::io::BufRead;
use std::path::Path;

/// The largest row pointers that a small file can ask for: 2^27 rows, 1 GiB.
const ROWS_OF_ANY_FILE: u64 = 1 << 27;
/// From then on, rows for each byte of the file.
const ROWS_A_BYTE: u64 = 64;

/// Reads a matrix of either layout as a sparse one. Zeros of an `array` are no entries.
pub(super) fn read_sparse(path: &Path, assume: Option<Banner>) -> Result<Loaded, Error> {
    let file_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let (original, path) = (path, &text::named(path));
    let mut lines = Lines::new(path, text::open(original)?);
    let banner = header::banner(&mut lines, assume)?;
    match banner.layout {
        Layout::Coordinate => coordinate(lines, banner, file_bytes),
        Layout::Array => {
            let (matrix, rounded) = array(lines, banner)?;
            from_dense(path, &matrix, rounded)
        }
    }
}

/// A dense matrix, and how many of its values are integers that f64 cannot hold.
pub(super) fn read_dense(path: &Path) -> Result<(Matrix<f64>, u64), Error> {
    let (original, path) = (path, &text::named(path));
    let mut lines = Lines::new(path, text::open(original)?);
    let banner = header::banner(&mut lines, None)?;
    if banner.layout == Layout::Coordinate {
        return Err(lines.error("array, which is dense", "coordinate, which is sparse"));
    }
    array(lines, banner)
}

fn coordinate(mut lines: Lines<Box<dyn BufRead>>, banner: Banner, file_bytes: u64) -> Result<Loaded, Error> {
    let [rows, cols, claimed] = header::size(&mut lines)?;
    banner.check_square(&lines, rows, cols)?;
    let most = ROWS_OF_ANY_FILE.max(file_bytes.saturating_mul(ROWS_A_BYTE)).min(1 << 32);
    for (what, requested, max) in [("rows", rows, most), ("columns", cols, 1 << 32)] {
        if requested > max {
            let what = format!("{}: line {}: {what}", lines.path().display(), lines.line());
            return Err(Error::Limit { what, requested, max });
        }
    }
    let rules = Rules { banner, rows, cols };
    let parts = entries::read(&mut lines, &rules, claimed, file_bytes)?;
    let too_large =
        |_| Error::Limit { what: "rows or columns".into(), requested: rows.max(cols), max: usize::MAX as u64 };
    let (rows, cols) = (usize::try_from(rows).map_err(too_large)?, usize::try_from(cols).map_err(too_large)?);
    let layout = format!("Matrix Market coordinate {} {}", banner.field.name(), banner.symmetry.name());
    let entries::Entries { rows: row_of, columns, mut values, rounded, .. } = parts;
    let (matrix, summed) = if banner.field == Field::Pattern {
        let (matrix, summed) = Csr::from_coordinates(rows, cols, &row_of, columns, vec![1.0_f32; row_of.len()])?;
        (SparseMatrix::F32(matrix), summed)
    } else {
        values.shrink_to_fit();
        let (matrix, summed) = Csr::from_coordinates(rows, cols, &row_of, columns, values)?;
        (SparseMatrix::F64(matrix), summed)
    };
    Ok(Loaded { matrix, layout, counts: Counts { summed, rounded, ..Counts::default() } })
}

fn array(mut lines: Lines<Box<dyn BufRead>>, banner: Banner) -> Result<(Matrix<f64>, u64), Error> {
    if banner.field == Field::Pattern {
        return Err(lines.error("real or integer values (an array has all of them)", "pattern"));
    }
    let [rows, cols] = header::size(&mut lines)?;
    banner.check_square(&lines, rows, cols)?;
    let triangle = |side: u64| u128::from(side) * (u128::from(side) + 1) / 2;
    let claimed = match banner.symmetry {
        Symmetry::General => u128::from(rows) * u128::from(cols),
        Symmetry::Symmetric => triangle(rows),
        Symmetry::Skew => triangle(rows.saturating_sub(1)),
    };
    let (Ok(claimed), Ok(rows_), Ok(cols_)) = (u64::try_from(claimed), usize::try_from(rows), usize::try_from(cols))
    else {
        return Err(lines.error("a size that a file can have", format!("{rows} x {cols}")));
    };
    let rules = Rules { banner, rows, cols };
    let entries::Entries { values, rounded, .. } = entries::read(&mut lines, &rules, claimed, 0)?;
    let (rows, cols) = (rows_, cols_);
    // There are as many values as places, or half as many: so the size is one that memory can hold.
    let mut dense = Buffer::zeroed(rows.saturating_mul(cols))?;
    if banner.symmetry == Symmetry::General {
        // Tiles, so that neither side of this transposition strides through memory for long.
        for first in (0..rows).step_by(64) {
            for col in 0..cols {
                for row in first..rows.min(first + 64) {
                    dense[row * cols + col] = values[col * rows + row];
                }
            }
        }
    } else {
        let (first, sign) = if banner.symmetry == Symmetry::Skew { (1, -1.0) } else { (0, 1.0) };
        let places = (0..cols).flat_map(|col| (col + first..rows).map(move |row| (row, col)));
        for ((row, col), &value) in places.zip(&values) {
            dense[col * cols + row] = sign * value;
            dense[row * cols + col] = value;
        }
    }
    Ok((Matrix::from_buffer(rows, cols, dense)?, rounded))
}

fn from_dense(path: &Path, dense: &Matrix<f64>, rounded: u64) -> Result<Loaded, Error> {
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    if dense.cols() as u64 > 1 << 32 {
        let what = format!("{}: columns", path.display());
        return Err(Error::Limit { what, requested: dense.cols() as u64, max: 1 << 32 });
    }
    for row in 0..dense.rows() {
        for (column, &value) in (0..=u32::MAX).zip(dense.row(row)) {
            if value != 0.0 {
                indices.push(column);
                values.push(value);
            }
        }
        indptr.push(indices.len());
    }
    let left_out = dense.values().len() - values.len();
    let matrix = SparseMatrix::F64(Csr::new(dense.rows(), dense.cols(), indptr, indices, values)?);
    let counts = Counts { rounded, left_out, ..Counts::default() };
    Ok(Loaded { matrix, layout: "Matrix Market array".into(), counts })
}
