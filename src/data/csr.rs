//! [`Csr`]: a sparse matrix in compressed sparse row form, checked once when it is made.

use crate::error::Error;

/// A sparse matrix: row `i` holds `values[indptr[i]..indptr[i + 1]]` at the columns
/// `indices[indptr[i]..indptr[i + 1]]`. Columns of a row may be unsorted or repeated (repeated entries add up).
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<T = f32> {
    rows: usize,
    cols: usize,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T> Csr<T> {
    /// Takes the three arrays and checks them.
    ///
    /// # Errors
    /// [`Error::Shape`] when lengths disagree, [`Error::Argument`] when `indptr` does not start at 0, decreases, or
    /// does not end at the number of entries, or when a column index is out of range (its position is named).
    pub fn new(rows: usize, cols: usize, indptr: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Result<Self, Error> {
        if indptr.len() != rows + 1 {
            return Err(Error::Shape { what: "csr: indptr".into(), expected: rows + 1, found: indptr.len() });
        }
        if indices.len() != values.len() {
            return Err(Error::Shape { what: "csr: values".into(), expected: indices.len(), found: values.len() });
        }
        if indptr[0] != 0 {
            return Err(Error::argument("csr: indptr[0]", "0", indptr[0]));
        }
        if let Some(i) = (0..rows).find(|&i| indptr[i] > indptr[i + 1]) {
            return Err(Error::argument(
                format!("csr: indptr[{}]", i + 1),
                format!("at least {}", indptr[i]),
                indptr[i + 1],
            ));
        }
        if indptr[rows] != indices.len() {
            return Err(Error::argument(format!("csr: indptr[{rows}]"), indices.len().to_string(), indptr[rows]));
        }
        if let Some(at) = indices.iter().position(|&column| column as usize >= cols) {
            return Err(Error::argument(format!("csr: indices[{at}]"), format!("a column below {cols}"), indices[at]));
        }
        Ok(Self { rows, cols, indptr, indices, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries, explicit zeros included.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// Columns and values of one row, in stored order. Panics if there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(indptr: &[usize], indices: &[u32]) -> String {
        let values = vec![1.0; indices.len()];
        Csr::<f32>::new(2, 3, indptr.to_vec(), indices.to_vec(), values).unwrap_err().to_string()
    }

    #[test]
    fn rows_are_read_back() {
        let csr = Csr::new(2, 3, vec![0, 0, 2], vec![2, 0], vec![5.0f32, 7.0]).unwrap();
        assert_eq!((csr.rows(), csr.cols(), csr.entries()), (2, 3, 2));
        assert_eq!(csr.row(0), (&[][..], &[][..]));
        assert_eq!(csr.row(1), (&[2, 0][..], &[5.0, 7.0][..]));
    }

    #[test]
    fn each_broken_array_is_named() {
        assert_eq!(message(&[0, 1], &[0]), "csr: indptr: expected 3, found 2");
        assert_eq!(message(&[1, 1, 1], &[0]), "csr: indptr[0]: expected 0, found 1");
        assert_eq!(message(&[0, 2, 1], &[0]), "csr: indptr[2]: expected at least 2, found 1");
        assert_eq!(message(&[0, 1, 1], &[0, 1]), "csr: indptr[2]: expected 2, found 1");
        assert_eq!(message(&[0, 1, 2], &[0, 3]), "csr: indices[1]: expected a column below 3, found 3");
    }
}
