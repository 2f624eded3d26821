//! The K nearest of many.

use std::collections::BinaryHeap;

/// The `k` smallest, smallest first; of equal ones those that come earlier. Cost: one comparison each, and a few more for
/// those that are among the `k` smallest so far.
pub(super) fn smallest<Key: Ord + Copy>(k: usize, candidates: impl Iterator<Item = (Key, usize)>) -> Vec<(Key, usize)> {
    // The worst of them on top. Places only grow, so an equal key never replaces another.
    let mut best: BinaryHeap<(Key, usize)> = BinaryHeap::new();
    for candidate in candidates {
        if best.len() < k {
            best.push(candidate);
        } else if let Some(mut worst) = best.peek_mut()
            && candidate.0 < worst.0
        {
            *worst = candidate;
        }
    }
    best.into_sorted_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_come_first_and_of_equal_ones_the_earlier() {
        let keys = [5, 3, 9, 3, 1, 5, 3];
        let of = |k| smallest(k, keys.into_iter().zip(0..)).into_iter().map(|(_, at)| at).collect::<Vec<_>>();
        let all = [4, 1, 3, 6, 0, 5, 2];
        for k in 0..=9 {
            assert_eq!(of(k), all[..k.min(7)], "{k}");
        }
    }
}
