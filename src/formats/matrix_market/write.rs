//! Writing: `coordinate real general` and `array real general`, each number as short as reads back the same.

use super::super::sparse::Real;
use crate::data::{Csr, Matrix};
use std::io::{self, Write};

const BANNER: &str = "%%MatrixMarket matrix";

/// Entries row after row in their stored order; repeated ones are repeated, zeros are written.
pub(in super::super) fn write_coordinate<T: Real>(matrix: &Csr<T>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BANNER} coordinate real general")?;
    writeln!(out, "{} {} {}", matrix.rows(), matrix.cols(), matrix.entries())?;
    for row in 0..matrix.rows() {
        let (columns, values) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            write!(out, "{} {} ", row + 1, u64::from(column) + 1)?;
            value.write(out)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Values column after column.
pub(in super::super) fn write_array<T: Real>(matrix: &Matrix<T>, out: &mut dyn Write) -> io::Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    writeln!(out, "{BANNER} array real general")?;
    writeln!(out, "{rows} {cols}")?;
    for col in 0..cols {
        for row in 0..rows {
            matrix.row(row)[col].write(out)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}
