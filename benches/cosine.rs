//! Share of the machine's FMA peak that a search reaches, both measured in turn: `cargo bench --bench cosine`.
use lodestar::data::Matrix;
use lodestar::dispatch;
use lodestar::kernels::{
    Platform,
    cosine::{Metric, Search, top_k},
};
use lodestar::simd::{Level, Simd, SimdBase, SimdFloat, simd};
use std::time::Instant;

#[simd]
fn fma<S: Simd>(simd: S, n: usize) -> f32 {
    const A: usize = 24;
    let mut acc = [S::f32s::splat(simd, 1.0); A];
    let (x, y) =
        (S::f32s::splat(simd, std::hint::black_box(0.999_999)), S::f32s::splat(simd, std::hint::black_box(1e-7)));
    if S::f32s::LEN == 16 {
        for _ in 0..n {
            for a in &mut acc {
                *a = a.mul_add(x, y);
            }
        }
    } else {
        for _ in 0..2 * n {
            for a in &mut acc[..12] {
                *a = a.mul_add(x, y);
            }
        }
    }
    acc.iter().map(|a| a.reduce_sum()).sum()
}
#[simd]
fn lanes<S: Simd>(_s: S) -> usize {
    S::f32s::LEN
}

fn peak(level: Level, threads: usize) -> f64 {
    let n = 400_000;
    let t = Instant::now();
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| std::hint::black_box(dispatch!(level, simd => fma(simd, n))));
        }
    });
    (threads * n * 24 * 2 * dispatch!(level, simd => lanes(simd))) as f64 / t.elapsed().as_secs_f64() / 1e9
}
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (n, q, d, k, threads, reps) = (a[0], a[1], a[2], a[3], a[4], a[5]);
    let level = Level::from_environment().unwrap();
    let mut s = 1u64;
    let mut next = || {
        let mut t = 0f32;
        for _ in 0..4 {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            t += ((s >> 40) as f32) / (1u64 << 24) as f32 - 0.5;
        }
        t
    };
    let corpus = Matrix::new(n, d, (0..n * d).map(|_| next()).collect()).unwrap();
    let queries = Matrix::new(q, d, (0..q * d).map(|_| next()).collect()).unwrap();
    let platform = Platform {
        level,
        threads,
        #[cfg(feature = "gpu")]
        device: None,
    };
    let search = Search::new(k, Metric::Cosine);
    let mut share = vec![];
    let mut ms = vec![];
    let mut peaks = vec![];
    for _ in 0..reps {
        let p = peak(level, threads);
        let t = Instant::now();
        std::hint::black_box(top_k(&queries, &corpus, &search, &platform).unwrap());
        let e = t.elapsed().as_secs_f64();
        let p = 0.5 * (p + peak(level, threads));
        ms.push(e * 1e3);
        peaks.push(p);
        share.push(2.0 * (n * q * d) as f64 / e / 1e9 / p);
    }
    let med = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        (v[v.len() / 2], v[0], v[v.len() - 1])
    };
    let (m, best, _) = med(&mut ms);
    let (sh, _, shb) = med(&mut share);
    println!(
        "{level} T={threads} n={n} q={q} d={d} k={k}: {m:.2} ms (best {best:.2}), {:.1} GFLOP/s, {:.1} GB/s, peak {:.1}, share {sh:.3} best {shb:.3}",
        2e-6 * (n * q * d) as f64 / m,
        4e-6 * (n * d) as f64 / m,
        med(&mut peaks).0
    );
}
