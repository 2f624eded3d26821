//! The specification: one product and one sum after the other, in f64.

use super::Value;
use crate::data::{Csr, Matrix};

/// Row `row` of C, and for each of its elements the sum of the magnitudes that were added: what its error is measured by.
pub fn row<T: Value>(a: &Csr<T>, b: &Matrix<T>, row: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut sums, mut magnitudes) = (vec![0.0; b.cols()], vec![0.0; b.cols()]);
    let (columns, values) = a.row(row);
    for (&column, &value) in columns.iter().zip(values) {
        for (j, &other) in b.row(column as usize).iter().enumerate() {
            let product: f64 = value.into() * other.into();
            sums[j] += product;
            magnitudes[j] += product.abs();
        }
    }
    (sums, magnitudes)
}
