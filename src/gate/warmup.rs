//! When an arm is warm.

use super::statistics::median;
use crate::results::schema::Sample;

/// Calls an arm makes at least before it can be warm.
pub const MIN_CALLS: u32 = 5;
/// Time an arm runs at least before it can be warm.
pub const MIN_NS: u64 = 500_000_000;
/// Time after which waiting ends, once two calls were made.
pub const MAX_NS: u64 = 5_000_000_000;
/// How many chunks must have stopped falling.
const CHUNKS: usize = 5;

/// Whether the chunks of one warm-up, in time order, show an arm that is warm: enough calls, enough time, and the last
/// five chunks did not get faster by more than 2% from first to last.
pub fn is_warm(chunks: &[&Sample]) -> bool {
    let calls: u32 = chunks.iter().map(|chunk| chunk.calls).sum();
    let ns: u64 = chunks.iter().map(|chunk| chunk.total_ns).sum();
    let Some(last) = chunks.len().checked_sub(CHUNKS).map(|first| &chunks[first..]) else { return false };
    let medians: Vec<f64> = last.iter().map(|chunk| chunk.median_ns as f64).collect();
    // The first against the median of the rest: one slow or fast chunk at the end proves nothing.
    let rest = median(&medians[1..]).unwrap_or(0.0);
    calls >= MIN_CALLS && ns >= MIN_NS && rest >= medians[0] * 0.98
}

/// Whether a warm-up has to end although the arm is not warm: 5 s or two calls, whichever is longer.
pub fn is_over(chunks: &[&Sample]) -> bool {
    let calls: u32 = chunks.iter().map(|chunk| chunk.calls).sum();
    let ns: u64 = chunks.iter().map(|chunk| chunk.total_ns).sum();
    calls >= 2 && ns >= MAX_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(medians: &[u64], calls: u32) -> Vec<Sample> {
        let chunk = |ns: &u64| Sample { calls, median_ns: *ns, total_ns: *ns * u64::from(calls), ..Sample::default() };
        medians.iter().map(chunk).collect()
    }

    fn warm(medians: &[u64], calls: u32) -> bool {
        is_warm(&chunks(medians, calls).iter().collect::<Vec<_>>())
    }

    #[test]
    fn calls_that_get_faster_are_not_warm() {
        const MS: u64 = 1_000_000;
        assert!(warm(&[100 * MS; 5], 1));
        assert!(!warm(&[100 * MS; 4], 1), "four calls are too few");
        assert!(!warm(&[99 * MS; 5], 1), "495 ms are too short");
        assert!(!warm(&[120 * MS, 115 * MS, 112 * MS, 109 * MS, 107 * MS], 1));
        assert!(warm(&[300 * MS, 110 * MS, 111 * MS, 110 * MS, 109 * MS, 111 * MS], 1));
    }

    #[test]
    fn warming_ends_after_5_s_and_two_calls() {
        let over = |medians: &[u64]| is_over(&chunks(medians, 1).iter().collect::<Vec<_>>());
        assert!(!over(&[9_000_000_000]));
        assert!(over(&[9_000_000_000; 2]));
        assert!(!over(&[1_000_000_000; 4]));
        assert!(over(&[1_000_000_000; 5]));
    }
}
