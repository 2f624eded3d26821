//! How the work on a sparse matrix is cut: by entries, so that neither one huge row nor many empty ones cost more than
//! they have to.
//!
//! This is merge-path partitioning (Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*,
//! 2016) at the granularity of rows: a row weighs its entries and one more, for the row of C that is written. Rows beyond
//! [`LONG_ROW`] entries are cut into pieces of [`PIECE`].

use super::panel::Panel;
use super::{LONG_ROW, PIECE};
use crate::data::Csr;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

/// Tasks for each thread: enough that a thread that is disturbed can hand over work, few enough that a task is long.
const TASKS_PER_THREAD: usize = 16;

/// Rows whose columns are compared to see how many they share.
const WINDOW: usize = 8;
/// Windows that are looked at.
const WINDOWS: usize = 16;
/// Entries of a window that are looked at.
const WINDOW_ENTRIES: usize = 512;

/// A run of neighbouring rows, or a part of one long row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Rows that are written straight to C.
    Rows(Range<usize>),
    /// Entries of a long row, summed apart; `slot` numbers the pieces of all long rows.
    Piece { entries: Range<usize>, slot: usize },
}

/// A row that is summed from pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Long {
    pub(super) row: usize,
    /// Its pieces, in order.
    pub(super) slots: Range<usize>,
}

/// What is worked out once for a matrix that is multiplied again and again.
#[derive(Debug)]
pub(super) struct Plan {
    /// Together all rows, in order; pieces of a long row stand where the row does.
    pub(super) tasks: Vec<Task>,
    pub(super) long: Vec<Long>,
    /// Pieces of all long rows.
    pub(super) slots: usize,
    sharing: OnceLock<f64>,
    /// Panels that are not in use: the next product takes them, whose pages are there already.
    pub(super) panels: Mutex<Vec<Panel>>,
}

impl Plan {
    /// For `threads` threads. O(rows).
    pub(super) fn new<T>(a: &Csr<T>, threads: usize) -> Self {
        let indptr = a.indptr();
        let mut plan =
            Self { tasks: Vec::new(), long: Vec::new(), slots: 0, sharing: OnceLock::new(), panels: Mutex::default() };
        let weight = a.entries() + a.rows();
        let count = (threads.max(1) * TASKS_PER_THREAD).min(a.rows().max(1));
        let mut first = 0;
        for task in 1..=count {
            // The first row at which this task's share of the weight is reached.
            let share = weight / count * task + weight % count * task / count;
            let end = if task == count { a.rows() } else { boundary(indptr, share) };
            plan.add_rows(indptr, first..end);
            first = first.max(end);
        }
        plan
    }

    /// How often an entry's column is one that a row just before it has too: entries over distinct columns in windows of
    /// neighbouring rows. 1 where columns are all over the place, 3 for a stencil. Worked out when it is first asked for.
    pub(super) fn sharing<T>(&self, a: &Csr<T>) -> f64 {
        *self.sharing.get_or_init(|| sharing(a))
    }

    fn add_rows(&mut self, indptr: &[usize], rows: Range<usize>) {
        let mut first = rows.start;
        let mut long = Vec::new();
        find_long(indptr, rows.clone(), &mut long);
        for row in long {
            let entries = indptr[row]..indptr[row + 1];
            if first < row {
                self.tasks.push(Task::Rows(first..row));
            }
            first = row + 1;
            let before = self.slots;
            for start in entries.clone().step_by(PIECE) {
                let entries = start..entries.end.min(start + PIECE);
                self.tasks.push(Task::Piece { entries, slot: self.slots });
                self.slots += 1;
            }
            self.long.push(Long { row, slots: before..self.slots });
        }
        if first < rows.end {
            self.tasks.push(Task::Rows(first..rows.end));
        }
    }
}

/// The first row that begins at this weight or beyond: row i begins after `indptr[i]` entries and i rows.
fn boundary(indptr: &[usize], weight: usize) -> usize {
    let (mut low, mut high) = (0, indptr.len() - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if indptr[middle] + middle < weight { low = middle + 1 } else { high = middle }
    }
    low
}

/// Rows to be summed in pieces. Halves that have too few entries for one are not looked into: of 300,000 rows, nearly none.
fn find_long(indptr: &[usize], rows: Range<usize>, found: &mut Vec<usize>) {
    if rows.is_empty() || indptr[rows.end] - indptr[rows.start] <= LONG_ROW {
        return;
    }
    if rows.len() == 1 {
        return found.push(rows.start);
    }
    let middle = rows.start + rows.len() / 2;
    find_long(indptr, rows.start..middle, found);
    find_long(indptr, middle..rows.end, found);
}

fn sharing<T>(a: &Csr<T>) -> f64 {
    let (mut entries, mut distinct) = (0, 0);
    let mut columns = Vec::new();
    let step = (a.rows() / WINDOWS).max(WINDOW);
    for first in (0..a.rows()).step_by(step) {
        let last = a.rows().min(first + WINDOW);
        let (start, end) = (a.indptr()[first], a.indptr()[last]);
        columns.clear();
        columns.extend_from_slice(&a.indices()[start..end.min(start + WINDOW_ENTRIES)]);
        entries += columns.len();
        columns.sort_unstable();
        columns.dedup();
        distinct += columns.len();
    }
    if distinct == 0 { 1.0 } else { entries as f64 / distinct as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(lengths: &[usize]) -> Csr<f32> {
        let mut indptr = vec![0];
        lengths.iter().for_each(|length| indptr.push(indptr[indptr.len() - 1] + length));
        let entries = indptr[lengths.len()];
        Csr::new(lengths.len(), 1, indptr, vec![0; entries], vec![1.0; entries]).unwrap()
    }

    /// Rows and entries of all tasks, in order.
    fn covered(plan: &Plan, a: &Csr<f32>) -> (Vec<usize>, Vec<usize>) {
        let (mut rows, mut entries) = (Vec::new(), Vec::new());
        for task in &plan.tasks {
            match task {
                Task::Rows(range) => {
                    assert!(!range.is_empty(), "a task without rows");
                    rows.extend(range.clone());
                    entries.extend(a.indptr()[range.start]..a.indptr()[range.end]);
                }
                Task::Piece { entries: piece, slot } => {
                    if let Some(long) = plan.long.iter().find(|long| long.slots.start == *slot) {
                        rows.push(long.row);
                    }
                    entries.extend(piece.clone());
                }
            }
        }
        (rows, entries)
    }

    #[test]
    fn every_row_and_entry_is_in_one_task_and_in_order() {
        let long = LONG_ROW + 1;
        for lengths in [
            vec![],
            vec![0],
            vec![long],
            vec![0, 0, long, 0],
            vec![long, long],
            vec![3; 1_000],
            (0..1_000).map(|row| row % 7).collect(),
            [vec![0; 500], vec![100; 3], vec![0; 500]].concat(),
        ] {
            let a = matrix(&lengths);
            for threads in [1, 2, 3, 16] {
                let plan = Plan::new(&a, threads);
                let (rows, entries) = covered(&plan, &a);
                assert_eq!(rows, (0..a.rows()).collect::<Vec<_>>(), "{} rows, {threads} threads", a.rows());
                assert_eq!(entries, (0..a.entries()).collect::<Vec<_>>(), "{} rows, {threads} threads", a.rows());
            }
        }
    }

    #[test]
    fn no_task_weighs_more_than_its_share_and_one_row() {
        let mut lengths = vec![0; 5_000];
        lengths.extend(vec![40; 1_000]);
        lengths.extend([5_000, 0, 9_000]);
        lengths.extend((0..3_000).map(|row| row % 23));
        let a = matrix(&lengths);
        let plan = Plan::new(&a, 2);
        let share = (a.entries() + a.rows()) / (2 * TASKS_PER_THREAD);
        for task in &plan.tasks {
            let Task::Rows(rows) = task else { panic!("no row is long") };
            let longest = lengths[rows.clone()].iter().max().unwrap();
            let weight: usize = lengths[rows.clone()].iter().map(|length| length + 1).sum();
            assert!(weight <= share + longest + 2, "{rows:?} weigh {weight}, a share is {share}");
        }
        assert!(plan.tasks.len() > TASKS_PER_THREAD, "{} tasks", plan.tasks.len());
    }

    #[test]
    fn pieces_have_fixed_lengths_whatever_the_number_of_threads() {
        let a = matrix(&[7, LONG_ROW + PIECE / 2, 7]);
        for threads in [1, 2, 9] {
            let plan = Plan::new(&a, threads);
            let length = |task: &Task| match task {
                Task::Piece { entries, .. } => Some(entries.len()),
                Task::Rows(_) => None,
            };
            let pieces: Vec<_> = plan.tasks.iter().filter_map(length).collect();
            assert_eq!(pieces, [PIECE, PIECE, PIECE, PIECE, PIECE / 2]);
            assert_eq!((plan.slots, &plan.long[..]), (5, &[Long { row: 1, slots: 0..5 }][..]));
        }
    }

    #[test]
    fn sharing_tells_a_band_from_random_columns() {
        let band = |rows: u32| -> Csr<f32> {
            let indices: Vec<u32> = (0..rows).flat_map(|row| row..row + 9).collect();
            let entries = indices.len();
            let indptr = (0..=rows as usize).map(|row| 9 * row).collect();
            Csr::new(rows as usize, rows as usize + 9, indptr, indices, vec![1.0; entries]).unwrap()
        };
        let band = band(1_000);
        let sharing = Plan::new(&band, 1).sharing(&band);
        // Windows of 8 rows have 72 entries at 16 columns.
        assert!((sharing - 4.5).abs() < 1e-9, "{sharing}");
        let apart = Csr::new(3, 9, vec![0, 3, 6, 9], (0..9).collect(), vec![1.0_f32; 9]).unwrap();
        assert!((Plan::new(&apart, 1).sharing(&apart) - 1.0).abs() < 1e-9);
        let empty = matrix(&[0, 0]);
        assert!((Plan::new(&empty, 1).sharing(&empty) - 1.0).abs() < 1e-9);
    }
}
