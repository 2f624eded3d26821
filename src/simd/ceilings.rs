//! What this CPU can do at most: multiply-adds per second, and bytes read from memory per second.
//!
//! A kernel's rate means little alone; as a share of these it says how much is left to win. Each ceiling is measured in
//! many short bursts. The best burst is the ceiling (something else may disturb a burst, nothing can speed it up), the
//! median says how quiet the machine was.

// `#[simd]` expands to paths of this crate.
use super::implementation as fearless_simd;
use super::{Level, Simd, SimdBase, SimdFloat, simd};
use crate::dispatch;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A rate per second over several bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The fastest burst.
    pub best: f64,
    /// The median burst.
    pub median: f64,
}

/// Independent sums in flight. A multiply-add takes about 4 cycles and a core starts 2 (Apple: 4) in each, so at least 8
/// (16) must be independent; more than the registers hold would go through memory.
const SUMS_32_REGISTERS: usize = 24;
const SUMS_16_REGISTERS: usize = 12;

/// f32 multiply-adds x 2 per second on this many threads at once, with all operands in registers.
///
/// Takes about `bursts` x 10 ms. At least one burst and one thread are run.
pub fn multiply_add(level: Level, threads: usize, bursts: usize) -> Rate {
    let flops_per_iteration = burst_of_multiply_adds(level, 0).1;
    let mut iterations: u64 = 1 << 12;
    while elapsed(|| burst_of_multiply_adds(level, iterations)) < Duration::from_millis(5) {
        iterations *= 2;
    }
    let flops = flops_per_iteration * iterations as f64;
    rate_of_bursts(threads, bursts, flops, |_, _| {
        black_box(burst_of_multiply_adds(level, iterations));
    })
}

/// Runs multiply-adds; gives a value that depends on all of them, and the floating-point operations of one iteration.
fn burst_of_multiply_adds(level: Level, iterations: u64) -> (f32, f64) {
    match level.name() {
        "avx512" | "neon" => {
            dispatch!(level, simd => multiply_adds::<_, SUMS_32_REGISTERS>(simd, black_box(iterations), black_box(0.999)))
        }
        _ => {
            dispatch!(level, simd => multiply_adds::<_, SUMS_16_REGISTERS>(simd, black_box(iterations), black_box(0.999)))
        }
    }
}

#[simd]
fn multiply_adds<S: Simd, const N: usize>(simd: S, iterations: u64, factor: f32) -> (f32, f64) {
    let factor_lanes = S::f32s::splat(simd, factor);
    let addend_lanes = S::f32s::splat(simd, 1.0 - factor);
    // Different starting values: equal chains would be computed once.
    let mut sums: [S::f32s; N] = std::array::from_fn(|i| S::f32s::splat(simd, i as f32));
    for _ in 0..iterations {
        for sum in &mut sums {
            *sum = sum.mul_add(factor_lanes, addend_lanes);
        }
    }
    let total = sums.iter().fold(S::f32s::splat(simd, 0.0), |total, sum| total + *sum);
    (total.as_slice().iter().sum(), (2 * N * S::f32s::LEN) as f64)
}

/// Bytes per second read from `buffer`, each thread its own part, each burst a sixteenth of it in turn, for `rounds` rounds.
///
/// The buffer has to be written before (untouched pages share one page of zeros) and much larger than the last-level
/// cache: a part is read again only after all the others. Rounds alternate between one stream and eight, because it
/// depends on the CPU's prefetchers which of them gets more out of the memory.
pub fn read(level: Level, threads: usize, rounds: usize, buffer: &[f32]) -> Rate {
    const PARTS: usize = 16;
    let threads = threads.max(1);
    let share = buffer.len() / PARTS / threads;
    let bytes = (share * size_of::<f32>()) as f64;
    rate_of_bursts(threads, rounds.max(1) * PARTS, bytes, |thread, burst| {
        let first = (burst % PARTS * threads + thread) * share;
        let part = &buffer[first..first + share];
        black_box(if (burst / PARTS).is_multiple_of(2) {
            sum_in_one_stream(level, part)
        } else {
            sum_in_eight_streams(level, part)
        });
    })
}

/// Sum of all elements, front to back, with eight vectors in flight.
fn sum_in_one_stream(level: Level, values: &[f32]) -> f32 {
    dispatch!(level, simd => sum::<_, 1, 8>(simd, values))
}

/// Sum of all elements, read at eight places at once, two vectors at each.
fn sum_in_eight_streams(level: Level, values: &[f32]) -> f32 {
    dispatch!(level, simd => sum::<_, 8, 2>(simd, values))
}

#[simd]
fn sum<S: Simd, const STREAMS: usize, const VECTORS: usize>(simd: S, values: &[f32]) -> f32 {
    let step = VECTORS * S::f32s::LEN;
    let stream = values.len() / STREAMS / step * step;
    let (streams, rest) = values.split_at(stream * STREAMS);
    let streams: [&[f32]; STREAMS] = std::array::from_fn(|i| &streams[i * stream..(i + 1) * stream]);
    let mut sums = [[S::f32s::splat(simd, 0.0); VECTORS]; STREAMS];
    for position in (0..stream).step_by(step) {
        for (sums, stream) in sums.iter_mut().zip(streams) {
            let vectors = stream[position..position + step].chunks_exact(S::f32s::LEN);
            for (sum, vector) in sums.iter_mut().zip(vectors) {
                *sum += S::f32s::from_slice(simd, vector);
            }
        }
    }
    let total = sums.iter().flatten().fold(S::f32s::splat(simd, 0.0), |total, sum| total + *sum);
    total.as_slice().iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// Runs `burst(thread, index)` on all threads at once, `bursts` times. A burst lasts from the first thread's start to the
/// last one's end; each thread does `work` units of work in it.
fn rate_of_bursts(threads: usize, bursts: usize, work: f64, burst: impl Fn(usize, usize) + Sync) -> Rate {
    let (threads, bursts) = (threads.max(1), bursts.max(1));
    let barrier = Barrier::new(threads);
    let run = |thread: usize| -> Vec<(Instant, Instant)> {
        let times = (0..bursts).map(|index| {
            barrier.wait();
            let start = Instant::now();
            burst(thread, index);
            (start, Instant::now())
        });
        times.collect()
    };
    let times: Vec<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|thread| {
                scope.spawn({
                    let run = &run;
                    move || run(thread)
                })
            })
            .collect();
        let own = run(0);
        let others = others.into_iter().map(|other| other.join().expect("a burst does not panic"));
        std::iter::once(own).chain(others).collect()
    });
    let mut rates: Vec<f64> = (0..bursts)
        .map(|index| {
            let start = times.iter().map(|times| times[index].0).min().unwrap_or_else(Instant::now);
            let end = times.iter().map(|times| times[index].1).max().unwrap_or(start);
            work * threads as f64 / end.duration_since(start).as_secs_f64().max(1e-9)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    Rate { best: rates[bursts - 1], median: rates[bursts / 2] }
}

fn elapsed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_read_once_at_every_level_and_length() {
        for level in Level::available() {
            for length in [0, 1, 15, 16, 127, 128, 255, 256, 257, 1_000, 4_099] {
                // Small whole numbers: the sum is exact in any order.
                let values: Vec<f32> = (0..length).map(|i| (i % 7 + 1) as f32).collect();
                let expected = values.iter().sum::<f32>();
                assert_eq!(sum_in_one_stream(level, &values), expected, "{level}, {length} elements");
                assert_eq!(sum_in_eight_streams(level, &values), expected, "{level}, {length} elements");
            }
        }
    }

    #[test]
    fn multiply_adds_are_all_done_and_counted() {
        for level in Level::available() {
            let (start, flops) = burst_of_multiply_adds(level, 0);
            let (end, _) = burst_of_multiply_adds(level, 100_000);
            let lanes = dispatch!(level, simd => lanes(simd));
            let sums = match level.name() {
                "avx512" | "neon" => SUMS_32_REGISTERS,
                _ => SUMS_16_REGISTERS,
            };
            assert_eq!(flops, (2 * sums * lanes) as f64, "{level}");
            // Each chain starts at its index and tends to 1.
            assert_eq!(start, (lanes * sums * (sums - 1) / 2) as f32, "{level}");
            assert!((end - (lanes * sums) as f32).abs() < 1e-2 * end, "{level}: {end}");
        }
    }

    #[simd]
    fn lanes<S: Simd>(_: S) -> usize {
        S::f32s::LEN
    }

    #[test]
    fn every_thread_runs_every_burst_and_the_median_is_not_above_the_best() {
        let calls = std::sync::Mutex::new(Vec::new());
        let rate = rate_of_bursts(3, 4, 1.0, |thread, burst| calls.lock().unwrap().push((burst, thread)));
        let calls = calls.into_inner().unwrap();
        let calls: std::collections::BTreeSet<_> = calls.into_iter().collect();
        assert!(calls.iter().copied().eq((0..4).flat_map(|burst| (0..3).map(move |thread| (burst, thread)))));
        assert!(rate.median <= rate.best && rate.best.is_finite(), "{rate:?}");
    }
}
