//! The K nearest of many.

use super::super::BEYOND;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Distances that are looked at together.
const PIECE: usize = 64;

/// Which share of the longer string differs: of equal shares none is smaller, whatever the lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    distance: u64,
    longer: u64,
}

impl Share {
    /// Nothing of two empty strings differs.
    pub(super) fn new(distance: u32, longer: usize) -> Self {
        Self { distance: distance.into(), longer: (longer as u64).max(1) }
    }
}

impl Ord for Share {
    /// Both are below 2^32, so that products are exact.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.distance * other.longer).cmp(&(other.distance * self.longer))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

/// The smallest so far.
struct Best<Key> {
    k: usize,
    /// The worst of them on top. Places only grow, so an equal key never replaces another.
    heap: BinaryHeap<(Key, usize)>,
}

impl<Key: Ord + Copy> Best<Key> {
    fn new(k: usize) -> Self {
        Self { k, heap: BinaryHeap::new() }
    }

    fn offer(&mut self, key: Key, at: usize) {
        if self.heap.len() < self.k {
            self.heap.push((key, at));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && key < worst.0
        {
            *worst = (key, at);
        }
    }

    /// What a key has to be below to be among them, once there are enough.
    fn limit(&self) -> Option<Key> {
        if self.heap.len() < self.k { None } else { self.heap.peek().map(|&(key, _)| key) }
    }

    fn places(self) -> Vec<usize> {
        self.heap.into_sorted_vec().into_iter().map(|(_, at)| at).collect()
    }
}

/// The places of the `k` smallest distances, smallest first and of equal ones those that come earlier; without the own one
/// and those beyond a cutoff. Cost: a vector operation for as many distances as it holds, and more only where some of them
/// are among the `k` smallest so far.
pub(super) fn smallest_distances(k: usize, own: Option<usize>, distances: &[u32]) -> Vec<usize> {
    let mut best = Best::new(k);
    for (piece, distances) in distances.chunks(PIECE).enumerate() {
        let limit = best.limit().unwrap_or(BEYOND);
        if distances.iter().fold(BEYOND, |least, &distance| least.min(distance)) >= limit {
            continue;
        }
        for (at, &distance) in (piece * PIECE..).zip(distances) {
            if distance != BEYOND && Some(at) != own {
                best.offer(distance, at);
            }
        }
    }
    best.places()
}

/// As [`smallest_distances`], by the share of the longer string that differs; `longer` says how long it is. Cost: two
/// multiplications for each distance, and more only as above.
pub(super) fn smallest_shares(
    k: usize,
    own: Option<usize>,
    distances: &[u32],
    longer: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut best: Best<Share> = Best::new(k);
    for (piece, distances) in distances.chunks(PIECE).enumerate() {
        let places = piece * PIECE..;
        let is_near = |limit: Share| {
            let of = |(at, &distance): (usize, &u32)| Share::new(distance, longer(at)) < limit;
            places.clone().zip(distances).fold(false, |any, one| any | of(one))
        };
        if best.limit().is_some_and(|limit| !is_near(limit)) {
            continue;
        }
        for (at, &distance) in places.zip(distances) {
            if distance != BEYOND && Some(at) != own {
                best.offer(Share::new(distance, longer(at)), at);
            }
        }
    }
    best.places()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_come_first_and_of_equal_ones_the_earlier() {
        let keys = [5, 3, 9, 3, 1, 5, 3];
        let all = [4, 1, 3, 6, 0, 5, 2];
        for k in 0..=9 {
            assert_eq!(smallest_shares(k, None, &keys, |_| 9), all[..k.min(7)], "{k}");
            assert_eq!(smallest_distances(k, None, &keys), all[..k.min(7)], "{k}");
            let without: Vec<_> = all.into_iter().filter(|&at| at != 3).take(k).collect();
            assert_eq!(smallest_distances(k, Some(3), &keys), without, "{k}");
        }
    }

    #[test]
    fn pieces_that_are_passed_over_hold_nothing_nearer() {
        let distances: Vec<u32> = (0..1_000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 27).collect();
        let cut = |cutoff: u32| distances.iter().map(|&d| if d > cutoff { BEYOND } else { d }).collect::<Vec<_>>();
        for cutoff in [0, 3, 31] {
            let distances = cut(cutoff);
            let mut sorted: Vec<_> = (0..1_000).filter(|&at| distances[at] != BEYOND && at != 70).collect();
            sorted.sort_by_key(|&at| (distances[at], at));
            for k in [1, 2, 10, 63, 64, 65, 900, 2_000] {
                assert_eq!(smallest_distances(k, Some(70), &distances), sorted[..k.min(sorted.len())], "{cutoff} {k}");
            }
            let longer = |at: usize| 40 + at * 7 % 50;
            sorted.sort_by_key(|&at| (Share::new(distances[at], longer(at)), at));
            for k in [1, 2, 10, 63, 64, 65, 900, 2_000] {
                let found = smallest_shares(k, Some(70), &distances, longer);
                assert_eq!(found, sorted[..k.min(sorted.len())], "shares, {cutoff} {k}");
            }
        }
    }

    #[test]
    fn equal_shares_are_equal_and_two_empty_strings_do_not_differ() {
        assert_eq!(Share::new(1, 2), Share::new(3, 6));
        assert_eq!(Share::new(0, 0), Share::new(0, 7));
        assert!(Share::new(1, 10) < Share::new(1, 2));
        // Farther apart than f64 can tell.
        assert!(Share::new(4_294_967_293, 4_294_967_294) > Share::new(4_294_967_292, 4_294_967_293));
    }
}
