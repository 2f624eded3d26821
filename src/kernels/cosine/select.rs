//! Candidates of each query: a small buffer that is cut down to what can still belong to the answer.

use std::sync::atomic::{AtomicU32, Ordering};

/// A threshold that every finite upper bound reaches, and minus infinity (a row that is never offered) does not.
pub(super) const LOWEST: f32 = f32::MIN;

/// Maps f32 to u32 so that the order is kept (-0 below +0, NaN above infinity or below minus infinity).
#[inline(always)]
fn orderable(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 }
}

fn from_orderable(value: u32) -> f32 {
    f32::from_bits(if value >> 31 == 1 { value & 0x7fff_ffff } else { !value })
}

/// A row that may belong to the answer, and the interval that its score is known to lie in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    lower: f32,
    upper: f32,
    pub(super) row: u32,
}

impl Candidate {
    const NONE: Self = Self { lower: f32::NEG_INFINITY, upper: f32::NEG_INFINITY, row: u32::MAX };
}

/// Cuts a list down to the rows whose upper bound reaches the k-th largest lower bound; gives that bound.
/// The order of the list is kept. With fewer than `k` rows nothing is cut.
pub(super) fn cut(list: &mut Vec<Candidate>, k: usize) -> f32 {
    let (kept, threshold) = cut_slice(list, k, LOWEST, &mut Vec::new());
    list.truncate(kept);
    threshold
}

/// `lowers` is scratch space. The bounds are ordered apart from the rows: integers of 4 bytes are quick to partition.
fn cut_slice(list: &mut [Candidate], k: usize, floor: f32, lowers: &mut Vec<u32>) -> (usize, f32) {
    let mut threshold = floor;
    if list.len() >= k {
        lowers.clear();
        lowers.extend(list.iter().map(|candidate| orderable(candidate.lower)));
        let (_, kth, _) = lowers.select_nth_unstable(list.len() - k);
        threshold = threshold.max(from_orderable(*kth));
    }
    let mut kept = 0;
    for at in 0..list.len() {
        let candidate = list[at];
        list[kept] = candidate;
        kept += usize::from(candidate.upper >= threshold);
    }
    (kept, threshold)
}

/// What the threads tell each other: for each query a bound that the k-th best row is known, or was guessed, to reach.
pub(super) struct Floors(Vec<AtomicU32>);

impl Floors {
    /// One for each query, to start from.
    pub(super) fn new(bounds: &[f32]) -> Self {
        Self(bounds.iter().map(|&bound| AtomicU32::new(orderable(bound))).collect())
    }

    fn get(&self, query: usize) -> f32 {
        from_orderable(self.0[query].load(Ordering::Relaxed))
    }

    fn raise(&self, query: usize, threshold: f32) -> f32 {
        let bits = orderable(threshold);
        from_orderable(self.0[query].fetch_max(bits, Ordering::Relaxed).max(bits))
    }
}

/// One thread's candidates of all queries.
pub(super) struct Selection {
    k: usize,
    capacity: usize,
    lists: Vec<Candidate>,
    lengths: Vec<usize>,
    lowers: Vec<u32>,
    /// A row is offered when its upper bound reaches its query's threshold. One entry per lane of the packed queries:
    /// lanes without a query have infinity, which no bound of a finite row reaches.
    pub(super) thresholds: Vec<f32>,
}

/// What became of a full list.
pub(super) enum Cut {
    /// There is room again.
    Room,
    /// More rows than fit cannot be told apart by their intervals.
    Crowded,
}

impl Selection {
    /// For queries `0..active.len()`, of which those with `false` take no rows; `lanes` is the padded number of queries.
    /// Wide intervals leave many rows undecided for a while.
    pub(super) fn new(k: usize, active: &[bool], lanes: usize, wide_intervals: bool) -> Self {
        // Few enough to stay in cache, enough to make cutting rare.
        let capacity = k + if wide_intervals { 8 * k + 246 } else { (k / 2).max(12) };
        let mut thresholds = vec![f32::INFINITY; lanes];
        for (threshold, &active) in thresholds.iter_mut().zip(active) {
            if active {
                *threshold = LOWEST;
            }
        }
        let queries = active.len();
        let lists = vec![Candidate::NONE; queries * capacity];
        Self { k, capacity, lists, lengths: vec![0; queries], lowers: Vec::new(), thresholds }
    }

    /// Adds a row; `true` when the list is full and has to be [`cut`](Self::cut) before the next.
    #[inline(always)]
    pub(super) fn push(&mut self, query: usize, lower: f32, upper: f32, row: u32) -> bool {
        let length = self.lengths[query];
        self.lists[query * self.capacity + length] = Candidate { lower, upper, row };
        self.lengths[query] = length + 1;
        length + 1 == self.capacity
    }

    #[inline(never)]
    pub(super) fn cut(&mut self, query: usize, floors: &Floors) -> Cut {
        let floor = floors.get(query).max(self.thresholds[query]);
        let list = &mut self.lists[query * self.capacity..][..self.lengths[query]];
        let (kept, threshold) = cut_slice(list, self.k, floor, &mut self.lowers);
        self.lengths[query] = kept;
        self.thresholds[query] = floors.raise(query, threshold);
        if kept > self.k + (self.capacity - self.k) / 2 { Cut::Crowded } else { Cut::Room }
    }

    /// Takes what other threads found out since the last time.
    pub(super) fn refresh(&mut self, floors: &Floors) {
        for query in 0..self.lengths.len() {
            // Infinity marks a query that takes no rows.
            if self.thresholds[query] < f32::INFINITY {
                self.thresholds[query] = self.thresholds[query].max(floors.get(query));
            }
        }
    }

    pub(super) fn list(&self, query: usize) -> &[Candidate] {
        &self.lists[query * self.capacity..][..self.lengths[query]]
    }

    /// Replaces a crowded list by its `k` best rows, with the intervals of their exact scores.
    pub(super) fn replace(&mut self, query: usize, rows: impl IntoIterator<Item = (f32, f32, u32)>, floors: &Floors) {
        self.lengths[query] = 0;
        for (lower, upper, row) in rows {
            let full = self.push(query, lower, upper, row);
            debug_assert!(!full, "at most k rows");
        }
        self.cut(query, floors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orderable_keeps_the_order_and_comes_back() {
        let values = [f32::NEG_INFINITY, f32::MIN, -1.0, -f32::MIN_POSITIVE, 0.0, 1e-40, 1.0, f32::MAX, f32::INFINITY];
        for pair in values.windows(2) {
            assert!(orderable(pair[0]) < orderable(pair[1]), "{pair:?}");
        }
        for value in values {
            assert_eq!(from_orderable(orderable(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn a_cut_keeps_every_row_that_can_still_win() {
        // Lower bounds 5, 4, 3; the fourth row's interval reaches above the second best lower bound, the third's does not.
        let mut list = vec![
            Candidate { lower: 3.0, upper: 3.5, row: 2 },
            Candidate { lower: 5.0, upper: 5.5, row: 0 },
            Candidate { lower: 1.0, upper: 4.0, row: 3 },
            Candidate { lower: 4.0, upper: 4.5, row: 1 },
        ];
        assert_eq!(cut(&mut list, 2), 4.0);
        let mut rows: Vec<_> = list.iter().map(|candidate| candidate.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 3]);
    }

    #[test]
    fn fewer_rows_than_k_are_all_kept() {
        let mut list = vec![Candidate { lower: -1.0, upper: -0.5, row: 7 }];
        assert_eq!(cut(&mut list, 2), LOWEST);
        assert_eq!(list[0].row, 7);
    }
}
