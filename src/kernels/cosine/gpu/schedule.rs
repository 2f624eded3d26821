//! Which rows are scored in which dispatch, and when thresholds are raised: decided on the host before anything runs.
//!
//! A sample of the rows gives the first threshold; then ranges of rows follow, each as long as the threshold of the rows
//! seen so far keeps its candidates well below the room there is. All of it goes to the device in one submission.

/// The most neighbours per query; beyond, candidates take more memory than they save time.
pub(super) const MAX_K: usize = 2_048;

/// Queries of one batch at most.
const MAX_QUERIES: usize = 4_096;

/// Words of one candidate: lower bound, upper bound, row.
pub(super) const CANDIDATE_WORDS: usize = 3;

/// Queries that the narrow kernel takes.
pub(super) const NARROW: usize = 8;

/// Rows of one workgroup of the narrow kernel.
const NARROW_ROWS: u32 = 64;

/// Operations of one dispatch at most: under the 2 seconds after which Windows resets a GPU, on a slow one too.
const MAX_OPERATIONS: f64 = 1e11;

/// Candidates that a query has room for.
pub(super) fn capacity(k: usize) -> usize {
    (32 * k).max(4_096)
}

/// Row numbers per query that are read back at once; what is beyond is read afterwards.
pub(super) fn room(k: usize) -> usize {
    k + (k / 4).max(64)
}

/// Queries of one batch, so that their candidates fit into `bytes`.
pub(super) fn batch(k: usize, bytes: u64) -> usize {
    let per_query = (capacity(k) * CANDIDATE_WORDS * 4) as u64;
    usize::try_from(bytes / per_query).unwrap_or(usize::MAX).clamp(1, MAX_QUERIES)
}

/// How a workgroup is shaped for a number of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One pass over the rows for up to [`NARROW`] queries.
    Narrow {
        /// Queries.
        queries: u32,
    },
    /// Tiles of 8 `y` rows and 8 `x` queries, `slab` elements staged at a time.
    Tile {
        /// Invocations along the queries.
        x: u32,
        /// Invocations along the rows.
        y: u32,
        /// Elements of a row staged at once.
        slab: u32,
    },
}

impl Shape {
    /// Every shape, for the tests that compile them all.
    pub(super) const ALL: [Self; 7] = [
        Self::Narrow { queries: 1 },
        Self::Narrow { queries: 3 },
        Self::Narrow { queries: 8 },
        Self::Tile { x: 2, y: 32, slab: 8 },
        Self::Tile { x: 4, y: 32, slab: 8 },
        Self::Tile { x: 8, y: 16, slab: 16 },
        Self::Tile { x: 16, y: 16, slab: 16 },
    ];

    /// The shape that wastes the fewest lanes on queries that are not there.
    pub(super) fn of(queries: usize) -> Self {
        match queries {
            0..=NARROW => Self::Narrow { queries: u32::try_from(queries.max(1)).unwrap_or(1) },
            9..=16 => Self::Tile { x: 2, y: 32, slab: 8 },
            17..=32 => Self::Tile { x: 4, y: 32, slab: 8 },
            33..=64 => Self::Tile { x: 8, y: 16, slab: 16 },
            _ => Self::Tile { x: 16, y: 16, slab: 16 },
        }
    }

    /// Rows of one workgroup.
    pub(super) fn rows(self) -> u32 {
        match self {
            Self::Narrow { .. } => NARROW_ROWS,
            Self::Tile { y, .. } => 8 * y,
        }
    }

    /// Workgroups along the queries.
    pub(super) fn query_groups(self, queries: u32) -> u32 {
        match self {
            Self::Narrow { .. } => 1,
            Self::Tile { x, .. } => queries.div_ceil(8 * x).max(1),
        }
    }

    /// Loop iterations of one invocation in the worst case, all loops counted, before unrolling.
    pub(super) fn iterations(self, quads: u64) -> u64 {
        match self {
            Self::Narrow { queries } => {
                let queries = u64::from(queries);
                16 * (1 + quads.div_ceil(16) * (1 + queries) + queries + 16)
            }
            Self::Tile { x, y, slab } => {
                let (x, y, slab) = (u64::from(x), u64::from(y), u64::from(slab));
                let loads = (2 * (x + y) * slab / 4).div_ceil(x * y);
                quads.div_ceil(slab / 4) * (1 + loads + slab)
            }
        }
    }
}

/// Loop iterations of one invocation of the merge.
pub(super) fn merge_iterations(capacity: usize) -> u64 {
    let turns = capacity.div_ceil(256) as u64;
    4 * (1 + turns + 8) + turns
}

/// One dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Scores `count` rows of a segment: `first`, `first + stride`, ...
    Score {
        /// Which segment.
        segment: usize,
        /// First row, within the segment.
        first: u32,
        /// Rows from one to the next.
        stride: u32,
        /// Number of rows.
        count: u32,
    },
    /// Raises thresholds; drops hopeless candidates, or all of them after a sample.
    Merge {
        /// Whether the candidates stay.
        keep: bool,
    },
}

/// The steps over `segments` (rows of each). `seen` rows have raised the threshold already.
pub(super) fn steps(segments: &[u32], seen: u64, k: usize, queries: usize, dim: usize) -> Vec<Step> {
    let capacity = capacity(k) as u64;
    let k = k as u64;
    let total: u64 = segments.iter().map(|&rows| u64::from(rows)).sum();
    let mut steps = Vec::new();
    let mut seen = seen;
    if seen == 0 && total > capacity {
        // Rounded up: the sample is at most as large as the room there is.
        let stride = total.div_ceil((total / 16).clamp((2 * k).max(1_024), capacity));
        let stride = u32::try_from(stride).unwrap_or(u32::MAX);
        for (segment, &rows) in segments.iter().enumerate() {
            // Rounded down: all segments together stay within the room there is.
            let count = rows / stride;
            if count > 0 {
                steps.push(Step::Score { segment, first: 0, stride, count });
                seen += u64::from(count);
            }
        }
        if seen > 0 {
            steps.push(Step::Merge { keep: false });
        }
    }
    let per_row = 2.0 * queries.max(1) as f64 * dim.max(1) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the clamp")]
    #[expect(clippy::cast_sign_loss, reason = "positive")]
    let most = (MAX_OPERATIONS / per_row).clamp(4_096.0, f64::from(u32::MAX / 2)) as u64;
    let (mut segment, mut first, mut done) = (0, 0_u32, 0_u64);
    while done < total {
        // Of rows in random order, k in `seen` reach the threshold: a quarter of the room is expected to fill. The first
        // range without a threshold fills it at most.
        let range = if seen < k { capacity } else { (seen * (capacity / 4) / k).max(capacity / 2) };
        let mut left = range.min(total - done);
        done += left;
        while left > 0 {
            let rows = u64::from(segments[segment] - first);
            let count = left.min(rows).min(most);
            // Fits: no more than the rows of a segment.
            let count_u32 = u32::try_from(count).unwrap_or(u32::MAX);
            if count > 0 {
                steps.push(Step::Score { segment, first, stride: 1, count: count_u32 });
            }
            left -= count;
            first += count_u32;
            if first == segments[segment] {
                segment += 1;
                first = 0;
            }
        }
        steps.push(Step::Merge { keep: true });
        seen = seen.max(done);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_scored_once_after_the_sample() {
        for segments in [
            &[1_u32][..],
            &[4_096],
            &[4_097],
            &[100_000],
            &[3, 5, 7],
            &[50_000, 1, 50_000, 20],
            &[u32::MAX / 4, u32::MAX / 4],
        ] {
            for k in [1, 10, 100, 2_048] {
                let mut next = vec![0_u32; segments.len()];
                let mut sampled = 0_u64;
                for step in steps(segments, 0, k, 256, 384) {
                    let Step::Score { segment, first, stride, count } = step else { continue };
                    assert!(count > 0);
                    let last = u64::from(first) + u64::from(stride) * u64::from(count - 1);
                    assert!(last < u64::from(segments[segment]), "{step:?} of {segments:?}");
                    if stride > 1 {
                        sampled += u64::from(count);
                        continue;
                    }
                    assert_eq!(first, next[segment], "{step:?} of {segments:?}");
                    next[segment] += count;
                }
                assert_eq!(next, segments, "k = {k}");
                assert!(sampled <= capacity(k) as u64, "{sampled} sampled of {segments:?}, k = {k}");
            }
        }
    }

    #[test]
    fn a_million_rows_take_few_rounds() {
        let merges =
            |k| steps(&[1_000_000], 0, k, 64, 384).iter().filter(|step| matches!(step, Step::Merge { .. })).count();
        assert!(merges(10) <= 4, "{}", merges(10));
        assert!(merges(2_048) <= 8, "{}", merges(2_048));
    }

    #[test]
    fn no_dispatch_is_longer_than_a_watchdog_allows() {
        for step in steps(&[2_000_000], 0, 10, 4_096, 1_024) {
            if let Step::Score { count, .. } = step {
                assert!(f64::from(count) * 2.0 * 4_096.0 * 1_024.0 <= MAX_OPERATIONS, "{step:?}");
            }
        }
    }

    #[test]
    fn every_loop_of_usual_dimensions_stays_under_the_loop_cap() {
        for shape in Shape::ALL {
            for dim in [1_u64, 384, 1_024, 4_096] {
                assert!(shape.iterations(dim.div_ceil(4)) < 58_000, "{shape:?}, dim {dim}");
            }
        }
        assert!(merge_iterations(capacity(MAX_K)) < 58_000);
    }

    #[test]
    fn every_number_of_queries_has_a_shape_that_covers_it() {
        for queries in 1..200_usize {
            match Shape::of(queries) {
                Shape::Narrow { queries: most } => assert_eq!(most as usize, queries),
                shape @ Shape::Tile { x, .. } => {
                    let groups = shape.query_groups(u32::try_from(queries).unwrap());
                    assert!((8 * x * groups) as usize >= queries && (8 * x * (groups - 1)) as usize <= queries);
                }
            }
        }
    }
}
