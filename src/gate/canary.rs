//! The canary: a fixed amount of work that has nothing to do with the kernel. When its time moves, the machine moved.

use rayon::prelude::*;

/// Runs fixed work; whoever calls it looks at the clock.
pub trait Canary {
    /// On one core.
    fn one_core(&self);
    /// On every core at once, the same on each.
    fn all_cores(&self);
}

/// A chain of integer operations: no memory, no vector unit, nothing to overlap.
pub struct IntegerLoop {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
}

/// Steps of the chain: a little under a millisecond at 3 GHz.
const STEPS: u64 = 400_000;

impl IntegerLoop {
    /// For this many cores.
    pub fn new(threads: usize) -> Self {
        // Without a pool of its own the loop runs on the shared one: the same cores.
        Self { pool: rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok(), threads }
    }
}

fn chain(seed: u64) -> u64 {
    (0..STEPS).fold(seed | 1, |state, step| (state ^ (state >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ step)
}

impl Canary for IntegerLoop {
    fn one_core(&self) {
        std::hint::black_box(chain(std::hint::black_box(1)));
    }

    fn all_cores(&self) {
        let work = || {
            (0..self.threads).into_par_iter().with_max_len(1).for_each(|core| {
                std::hint::black_box(chain(std::hint::black_box(core as u64)));
            });
        };
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}
