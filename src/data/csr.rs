//! [`Csr`]: a sparse matrix in compressed sparse row form, checked once when it is made.

use crate::error::Error;
use std::ops::{AddAssign, Range};

/// The most columns there can be: as many as a `u32` can number.
const MOST_COLUMNS: u64 = 1 << 32;

/// A sparse matrix: row `i` holds `values[indptr[i]..indptr[i + 1]]` at the columns
/// `indices[indptr[i]..indptr[i + 1]]`.
///
/// Columns of a row may be unsorted or repeated (repeated entries add up). A stored zero is an entry like any other: it
/// is kept, and it multiplies, so that zero times infinity is NaN.
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
    /// does not end at the number of entries, or when a column index is out of range (its position is named),
    /// [`Error::Limit`] for more than 2^32 columns.
    pub fn new(rows: usize, cols: usize, indptr: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Result<Self, Error> {
        check_columns(cols)?;
        if indptr.len().checked_sub(1) != Some(rows) {
            let expected = rows.saturating_add(1);
            return Err(Error::Shape { what: "csr: indptr".into(), expected, found: indptr.len() });
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
        // The largest first: finding it takes a fraction of the time that looking for the first beyond takes.
        if indices.iter().max().is_some_and(|&column| column as usize >= cols)
            && let Some(at) = indices.iter().position(|&column| column as usize >= cols)
        {
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

    /// Where each row begins, and after them where the last one ends: `rows + 1` positions, from 0 on, never decreasing.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// The column of every entry, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The value of every entry, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Columns and values of one row, in stored order. Panics if there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.indptr[row]..self.indptr[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The same pattern with other values: each is what `convert` makes of the one at its place.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Csr<U> {
        let Self { rows, cols, indptr, indices, values } = self;
        Csr { rows, cols, indptr, indices, values: values.into_iter().map(convert).collect() }
    }

    /// How many entries come after another one at the same row and column. O(entries), where the columns do not
    /// increase with room for one number a column, or O(n log n) for a row of n entries where that would be more room than
    /// the matrix takes.
    pub fn repeated(&self) -> usize {
        let mut seen = Seen { last: Vec::new(), row: 0, sorted: Vec::new() };
        let marked = self.cols <= 2 * self.entries();
        let rows = self.indptr.windows(2).map(|range| &self.indices[range[0]..range[1]]);
        rows.filter(|columns| !increases(columns))
            .map(|columns| if marked { seen.repeated(columns, self.cols) } else { seen.repeated_by_sorting(columns) })
            .sum()
    }
}

/// Whether no column is below or at the one before it; without a branch for each, as nearly all rows are so.
fn increases(columns: &[u32]) -> bool {
    columns.windows(2).fold(true, |increases, pair| increases & (pair[0] < pair[1]))
}

/// The columns of a row that have been seen.
struct Seen {
    /// The row, counted from 1 on, in which each column was seen last.
    last: Vec<u32>,
    row: u32,
    sorted: Vec<u32>,
}

impl Seen {
    fn repeated(&mut self, columns: &[u32], cols: usize) -> usize {
        if self.last.is_empty() || self.row == u32::MAX {
            self.last = vec![0; cols];
            self.row = 0;
        }
        self.row += 1;
        let again = |&&column: &&u32| std::mem::replace(&mut self.last[column as usize], self.row) == self.row;
        columns.iter().filter(again).count()
    }

    fn repeated_by_sorting(&mut self, columns: &[u32]) -> usize {
        self.sorted.clear();
        self.sorted.extend_from_slice(columns);
        self.sorted.sort_unstable();
        self.sorted.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }
}

impl<T: Copy> Csr<T> {
    /// From one row number, column number and value per entry, in any order. The columns of each row increase in the
    /// result. Entries at the same place are summed in the order in which they are given; the second value says how many
    /// were added to an earlier one.
    ///
    /// O(entries + rows), and O(n log n) for a row of n entries whose columns do not come in order. Entries that come
    /// row by row, columns increasing, are taken as they are, without a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] when lengths disagree, [`Error::Argument`] when a row or column is out of range (its position is
    /// named), [`Error::Limit`] for more than 2^32 columns, or for more rows than there is memory for.
    pub fn from_coordinates<R: Copy + Into<u64>>(
        rows: usize,
        cols: usize,
        row_indices: &[R],
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<(Self, usize), Error>
    where
        T: AddAssign,
    {
        check_columns(cols)?;
        for (what, found) in [("columns", indices.len()), ("values", values.len())] {
            if found != row_indices.len() {
                let what = format!("coordinates: {what}");
                return Err(Error::Shape { what, expected: row_indices.len(), found });
            }
        }
        if let Some(at) = indices.iter().position(|&column| column as usize >= cols) {
            let expected = format!("a column below {cols}");
            return Err(Error::argument(format!("coordinates: columns[{at}]"), expected, indices[at]));
        }
        let mut indptr = zeros(rows, "rows")?;
        let mut in_order = true;
        let mut previous = 0;
        for (at, &row) in row_indices.iter().enumerate() {
            let row: u64 = row.into();
            match usize::try_from(row) {
                Ok(row) if row < rows => {
                    indptr[row + 1] += 1;
                    in_order &= row >= previous;
                    previous = row;
                }
                _ => {
                    let expected = format!("a row below {rows}");
                    return Err(Error::argument(format!("coordinates: rows[{at}]"), expected, row));
                }
            }
        }
        sum_up(&mut indptr);
        let (indices, values) = if in_order {
            (indices, values)
        } else {
            // Every row number was checked above to be below `rows`, so it is a usize.
            #[expect(clippy::cast_possible_truncation, reason = "checked above to be below a usize")]
            let rows_of = row_indices.iter().map(|&row| row.into() as usize);
            distribute(&indptr, rows_of, &indices, &values)
        };
        let mut matrix = Self { rows, cols, indptr, indices, values };
        let repeated = matrix.sort_and_sum();
        Ok((matrix, repeated))
    }

    /// Sorts the columns of each row and sums what is repeated, in stored order; the number of entries that went.
    fn sort_and_sum(&mut self) -> usize
    where
        T: AddAssign,
    {
        let mut scratch = Vec::new();
        let mut end = 0;
        for row in 0..self.rows {
            let range = self.indptr[row]..self.indptr[row + 1];
            self.indptr[row] = end;
            if self.indices[range.clone()].is_sorted_by(|a, b| a < b) {
                if end != range.start {
                    self.indices.copy_within(range.clone(), end);
                    self.values.copy_within(range.clone(), end);
                }
                end += range.len();
                continue;
            }
            scratch.clear();
            scratch.extend(range.map(|at| (self.indices[at], self.values[at])));
            // Stable: what is at the same column stays in its order.
            scratch.sort_by_key(|&(column, _)| column);
            let start = end;
            for &(column, value) in &scratch {
                if end > start && self.indices[end - 1] == column {
                    self.values[end - 1] += value;
                } else {
                    self.indices[end] = column;
                    self.values[end] = value;
                    end += 1;
                }
            }
        }
        let repeated = self.indices.len() - end;
        self.indptr[self.rows] = end;
        self.indices.truncate(end);
        self.values.truncate(end);
        repeated
    }

    /// Rows and columns exchanged, O(entries + rows + columns). Stable: entries of a row of the result come in the order
    /// of their rows here, those of one row in their stored order. So the columns of the result never decrease.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than 2^32 rows, which would be columns, or for more columns than there is memory for.
    pub fn transpose(&self) -> Result<Self, Error> {
        check_columns(self.rows)?;
        let mut indptr = zeros(self.cols, "columns")?;
        for &column in &self.indices {
            indptr[column as usize + 1] += 1;
        }
        sum_up(&mut indptr);
        let mut row_of = Vec::with_capacity(self.entries());
        // A row number fits: `check_columns` allows 2^32 of them.
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^32 rows")]
        (0..self.rows).for_each(|row| row_of.resize(self.indptr[row + 1], row as u32));
        let places = self.indices.iter().map(|&column| column as usize);
        let (indices, values) = distribute(&indptr, places, &row_of, &self.values);
        Ok(Self { rows: self.cols, cols: self.rows, indptr, indices, values })
    }

    /// A copy of neighbouring rows. Panics if there are no such rows.
    pub fn slice_rows(&self, rows: Range<usize>) -> Self {
        let indptr = &self.indptr[rows.start..=rows.end];
        let entries = indptr[0]..indptr[rows.len()];
        Self {
            rows: rows.len(),
            cols: self.cols,
            indptr: indptr.iter().map(|&position| position - entries.start).collect(),
            indices: self.indices[entries.clone()].to_vec(),
            values: self.values[entries].to_vec(),
        }
    }
}

fn check_columns(cols: usize) -> Result<(), Error> {
    if cols as u64 > MOST_COLUMNS {
        let what = "csr: columns (their numbers have 32 bits)".into();
        return Err(Error::Limit { what, requested: cols as u64, max: MOST_COLUMNS });
    }
    Ok(())
}

/// `count + 1` zeros, or an error where there is no memory for that many.
fn zeros(count: usize, of_what: &str) -> Result<Vec<usize>, Error> {
    let mut zeros = Vec::new();
    let too_many = || Error::Limit {
        what: format!("csr: memory for {of_what}"),
        requested: count as u64,
        max: (isize::MAX as usize / size_of::<usize>() - 1) as u64,
    };
    let length = count.checked_add(1).ok_or_else(too_many)?;
    zeros.try_reserve_exact(length).map_err(|_| too_many())?;
    zeros.resize(length, 0);
    Ok(zeros)
}

/// From the number of entries of each row, one place further on, to where each row begins.
fn sum_up(counts: &mut [usize]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

/// Puts entry after entry to the next place of its row.
fn distribute<T: Copy>(
    indptr: &[usize],
    rows: impl Iterator<Item = usize>,
    indices: &[u32],
    values: &[T],
) -> (Vec<u32>, Vec<T>) {
    let Some(&any) = values.first() else { return (Vec::new(), Vec::new()) };
    let mut next = indptr.to_vec();
    let mut moved = (vec![0; indices.len()], vec![any; values.len()]);
    for ((row, &index), &value) in rows.zip(indices).zip(values) {
        let place = &mut next[row];
        moved.0[*place] = index;
        moved.1[*place] = value;
        *place += 1;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn sum(rows: usize, cols: usize, entries: &[(u64, u32, f64)]) -> Result<(Csr<f64>, usize), Error> {
        let row_of: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
        let indices = entries.iter().map(|entry| entry.1).collect();
        Csr::from_coordinates(rows, cols, &row_of, indices, entries.iter().map(|entry| entry.2).collect())
    }

    #[test]
    fn coordinates_in_any_order_are_sorted_and_repeated_ones_summed_in_their_order() {
        // 1e16 + 1 - 1e16 is 0 in this order and 1 in another.
        let entries = [(2, 1, 1e16), (0, 2, 3.0), (2, 0, 4.0), (2, 1, 1.0), (0, 0, -0.0), (2, 1, -1e16), (0, 2, -3.0)];
        let (csr, repeated) = sum(3, 3, &entries).unwrap();
        assert_eq!(repeated, 3);
        assert_eq!(csr.indptr(), [0, 2, 2, 4]);
        assert_eq!(csr.indices(), [0, 2, 0, 1]);
        // What sums to zero stays an entry.
        assert_eq!(csr.values(), [-0.0, 0.0, 4.0, 0.0]);
        assert_eq!(csr.repeated(), 0);
    }

    #[test]
    fn coordinates_that_come_in_order_are_taken_as_they_are() {
        let (csr, repeated) = sum(2, 2, &[(0, 0, 1.0), (0, 1, 2.0), (1, 1, 3.0)]).unwrap();
        assert_eq!((csr.indptr(), csr.indices(), repeated), (&[0, 2, 3][..], &[0, 1, 1][..], 0));
        // Rows in order, but one of them with its columns out of order and repeated; the rows after it move up.
        let entries = [(0, 1, 1.0), (0, 0, 2.0), (0, 1, 4.0), (1, 0, 5.0), (1, 1, 6.0), (2, 1, 7.0), (2, 1, 8.0)];
        let (csr, repeated) = sum(3, 2, &entries).unwrap();
        assert_eq!((csr.indptr(), csr.indices(), repeated), (&[0, 2, 4, 5][..], &[0, 1, 0, 1, 1][..], 2));
        assert_eq!(csr.values(), [2.0, 5.0, 5.0, 6.0, 15.0]);
    }

    #[test]
    fn broken_coordinates_are_named() {
        let message = |rows, cols, entries: &[(u64, u32, f64)]| sum(rows, cols, entries).unwrap_err().to_string();
        assert_eq!(message(2, 3, &[(0, 2, 1.0), (2, 0, 1.0)]), "coordinates: rows[1]: expected a row below 2, found 2");
        assert_eq!(message(2, 3, &[(0, 3, 1.0)]), "coordinates: columns[0]: expected a column below 3, found 3");
        assert_eq!(
            message(2, 3, &[(u64::MAX, 0, 1.0)]),
            "coordinates: rows[0]: expected a row below 2, found 18446744073709551615"
        );
        let lengths = Csr::from_coordinates(2, 2, &[0_u32], vec![0, 1], vec![1.0]).unwrap_err();
        assert_eq!(lengths.to_string(), "coordinates: columns: expected 1, found 2");
        assert!(sum(0, 0, &[]).is_ok());
        assert!(matches!(sum(usize::MAX, 1, &[]), Err(Error::Limit { .. })));
        assert!(matches!(sum(usize::MAX / 8, 1, &[]), Err(Error::Limit { .. })));
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn columns_beyond_32_bits_are_a_limit() {
        let expected = "csr: columns (their numbers have 32 bits): 4294967297 requested, at most 4294967296 possible";
        let error = Csr::<f32>::new(0, (1 << 32) + 1, vec![0], vec![], vec![]).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let widest = Csr::new(1, 1 << 32, vec![0, 1], vec![u32::MAX], vec![1.0]).unwrap();
        assert_eq!(widest.row(0), (&[u32::MAX][..], &[1.0][..]));
    }

    #[test]
    fn the_smallest_matrices_work() {
        for rows in [0, 1] {
            for cols in [0, 1] {
                let (csr, repeated) = sum(rows, cols, &[]).unwrap();
                assert_eq!((csr.rows(), csr.cols(), csr.entries(), repeated), (rows, cols, 0, 0));
                let transposed = csr.transpose().unwrap();
                assert_eq!((transposed.rows(), transposed.cols()), (cols, rows));
                assert_eq!(transposed.indptr().len(), cols + 1);
                assert_eq!(csr.slice_rows(0..rows), csr);
            }
        }
        let (one, _) = sum(1, 1, &[(0, 0, 7.0)]).unwrap();
        assert_eq!(one.transpose().unwrap(), one);
    }

    #[test]
    fn transposing_keeps_the_order_of_what_is_repeated() {
        let csr = Csr::new(2, 3, vec![0, 3, 5], vec![2, 0, 2, 2, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let transposed = csr.transpose().unwrap();
        assert_eq!((transposed.rows(), transposed.cols()), (3, 2));
        assert_eq!(transposed.indptr(), [0, 1, 1, 5]);
        assert_eq!(transposed.indices(), [0, 0, 0, 1, 1]);
        assert_eq!(transposed.values(), [2.0, 1.0, 3.0, 4.0, 5.0]);
        assert_eq!((csr.repeated(), transposed.repeated()), (2, 2));
    }

    #[test]
    fn repeated_entries_are_counted_with_and_without_room_for_every_column() {
        let rows = [vec![3, 1, 3, 3], vec![0, 1, 2], vec![1, 1], vec![], vec![4, 3, 0], vec![3, 0, 3]];
        let indptr = std::iter::once(0)
            .chain(rows.iter().scan(0, |end, row| {
                *end += row.len();
                Some(*end)
            }))
            .collect::<Vec<_>>();
        for cols in [5, 1_000_000] {
            let indices = rows.concat();
            let values = vec![1.0_f32; indices.len()];
            assert_eq!(Csr::new(6, cols, indptr.clone(), indices, values).unwrap().repeated(), 4, "{cols} columns");
        }
    }

    #[test]
    fn slices_hold_their_rows() {
        let csr = Csr::new(3, 3, vec![0, 1, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0]).unwrap();
        let slice = csr.slice_rows(1..3);
        assert_eq!((slice.rows(), slice.cols(), slice.indptr()), (2, 3, &[0, 0, 2][..]));
        assert_eq!(slice.row(1), csr.row(2));
        assert_eq!(csr.slice_rows(3..3).entries(), 0);
        assert_eq!(csr.map(|value| value > 1.5).values(), [false, true, true]);
    }

    proptest! {
        #[test]
        fn coordinates_hold_the_sums_and_transposing_twice_changes_nothing(
            (rows, cols, entries) in (1..9_usize, 1..9_u32).prop_flat_map(|(rows, cols)| {
                let entry = (0..rows, 0..cols, -50..50_i32);
                (Just(rows), Just(cols as usize), proptest::collection::vec(entry, 0..60))
            })
        ) {
            let entries: Vec<_> = entries.iter().map(|&(row, column, value)| (row as u64, column, f64::from(value))).collect();
            let (csr, repeated) = sum(rows, cols, &entries).unwrap();
            let mut expected = std::collections::BTreeMap::new();
            for &(row, column, value) in &entries {
                *expected.entry((row, column)).or_insert(0.0) += value;
            }
            let found: Vec<_> = (0..rows)
                .flat_map(|row| {
                    let (columns, values) = csr.row(row);
                    let row = row as u64;
                    columns.iter().zip(values).map(move |(&column, &value)| ((row, column), value)).collect::<Vec<_>>()
                })
                .collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(repeated, entries.len() - csr.entries());
            let transposed = csr.transpose().unwrap();
            prop_assert_eq!(transposed.transpose().unwrap(), csr.clone());
            let parts = csr.clone();
            prop_assert_eq!(Csr::new(rows, cols, parts.indptr, parts.indices, parts.values).unwrap(), csr);
        }
    }
}
