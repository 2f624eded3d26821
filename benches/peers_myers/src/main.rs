//! `peers_myers PEER MODE LEFT RIGHT CUTOFF THREADS`: the median time of a call of another crate on two lists of strings, as
//! JSON with the sum of the distances. MODE is one, pairs or all; CUTOFF is a number or `none`.
//!
//! What a crate can prepare for a pattern it prepares once per pattern, inside the call. Bytes for those that know no other
//! unit, so they are asked for ASCII only.

use rapidfuzz::distance::levenshtein::{Args, BatchComparator, distance, distance_with_args};
use rayon::prelude::*;
use std::time::{Duration, Instant};

const WARM_UP: Duration = Duration::from_millis(300);
const TIMED: Duration = Duration::from_millis(400);
/// A call that takes longer than this is not repeated.
const LONG: Duration = Duration::from_secs(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, mode, left, right, cutoff, threads] = &arguments[..] else { panic!("six arguments") };
    let (left, right) = (read(left), read(right));
    let cutoff: Option<usize> = (cutoff != "none").then(|| cutoff.parse().expect("a cutoff"));
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse().expect("threads")).build_global().expect("threads");
    let mut distances = vec![0_u32; if mode == "all" { left.len() * right.len() } else { right.len() }];
    let mut call = || {
        let start = Instant::now();
        match mode.as_str() {
            "one" => row(peer, &left[0], &right, cutoff, &mut distances),
            "all" => {
                let rows = distances.par_chunks_mut(right.len()).zip(&left);
                rows.for_each(|(distances, pattern)| row(peer, pattern, &right, cutoff, distances));
            }
            _ => {
                let pairs = distances.par_iter_mut().with_min_len(16).zip(left.par_iter().zip(&right));
                pairs.for_each(|(found, (a, b))| *found = pair(peer, a, b, cutoff));
            }
        }
        start.elapsed()
    };
    let first = call();
    let mut times = vec![first];
    if first < LONG {
        times.clear();
        let warm = Instant::now();
        while warm.elapsed() < WARM_UP {
            call();
        }
        let start = Instant::now();
        while start.elapsed() < TIMED || times.len() < 3 {
            times.push(call());
        }
        times.sort_unstable();
    }
    let sum: u64 = distances.iter().map(|&distance| u64::from(distance)).sum();
    println!("{{\"ms\": {}, \"sum\": {sum}}}", times[times.len() / 2].as_secs_f64() * 1e3);
}

struct Text {
    bytes: Vec<u8>,
    chars: Vec<char>,
}

fn read(path: &str) -> Vec<Text> {
    let text = std::fs::read_to_string(path).expect("a list of strings");
    text.lines().map(|line| Text { bytes: line.as_bytes().to_vec(), chars: line.chars().collect() }).collect()
}

fn row(peer: &str, pattern: &Text, texts: &[Text], cutoff: Option<usize>, distances: &mut [u32]) {
    let each = distances.par_iter_mut().with_min_len(64).zip(texts);
    if peer == "rapidfuzz" {
        let pattern = BatchComparator::new(pattern.chars.iter().copied());
        each.for_each(|(found, text)| {
            let text = text.chars.iter().copied();
            *found = match cutoff {
                None => short(pattern.distance(text)),
                Some(most) => within(pattern.distance_with_args(text, &Args::default().score_cutoff(most)), most),
            };
        });
    } else {
        each.for_each(|(found, text)| *found = pair(peer, pattern, text, cutoff));
    }
}

fn pair(peer: &str, a: &Text, b: &Text, cutoff: Option<usize>) -> u32 {
    match (peer, cutoff) {
        ("rapidfuzz", None) => short(distance(a.chars.iter().copied(), b.chars.iter().copied())),
        ("rapidfuzz", Some(most)) => {
            let found =
                distance_with_args(a.chars.iter().copied(), b.chars.iter().copied(), &Args::default().score_cutoff(most));
            within(found, most)
        }
        ("editdistancek", None) => short(editdistancek::edit_distance(&a.bytes, &b.bytes)),
        ("editdistancek", Some(most)) => within(editdistancek::edit_distance_bounded(&a.bytes, &b.bytes, most), most),
        ("triple_accel", None) => triple_accel::levenshtein_exp(&a.bytes, &b.bytes),
        ("triple_accel", Some(most)) => {
            let found = triple_accel::levenshtein::levenshtein_simd_k(&a.bytes, &b.bytes, short(most));
            found.unwrap_or(short(most) + 1)
        }
        _ => panic!("rapidfuzz, editdistancek or triple_accel, not {peer}"),
    }
}

/// Above the cutoff stands one more than that.
fn within(found: Option<usize>, most: usize) -> u32 {
    short(found.unwrap_or(most + 1))
}

fn short(distance: usize) -> u32 {
    u32::try_from(distance).expect("short strings")
}
