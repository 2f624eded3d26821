//! [`Clock`]: what time it is. The gate never asks the operating system itself, so that all of it runs on a scripted
//! clock in tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that never goes backwards.
pub trait Clock: Sync {
    /// Nanoseconds since the clock was made.
    fn now_ns(&self) -> u64;

    /// The smallest step the clock is seen to take, in nanoseconds; at least 1.
    fn resolution_ns(&self) -> u64;

    /// Does nothing for at least this long.
    fn sleep_ns(&self, ns: u64);
}

/// The operating system's steady clock.
pub struct SteadyClock {
    origin: Instant,
    resolution_ns: u64,
}

impl SteadyClock {
    /// Starts at 0 now; the resolution is measured.
    pub fn start() -> Self {
        let mut clock = Self { origin: Instant::now(), resolution_ns: 1 };
        let steps = (0..64).map(|_| {
            let before = clock.now_ns();
            loop {
                let step = clock.now_ns() - before;
                if step > 0 {
                    break step;
                }
            }
        });
        clock.resolution_ns = steps.min().unwrap_or(1);
        clock
    }
}

impl Clock for SteadyClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

/// A clock that stands still until it is told to go on: for tests, where whatever "takes time" says how much.
#[derive(Default)]
pub struct ScriptedClock {
    now_ns: AtomicU64,
}

impl ScriptedClock {
    /// Lets time pass.
    pub fn advance_ns(&self, by: u64) {
        self.now_ns.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ScriptedClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn resolution_ns(&self) -> u64 {
        1
    }

    fn sleep_ns(&self, ns: u64) {
        self.advance_ns(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_moves_and_knows_its_step() {
        let clock = SteadyClock::start();
        let before = clock.now_ns();
        while clock.now_ns() == before {}
        assert!(clock.resolution_ns() >= 1);
    }

    #[test]
    fn the_scripted_clock_moves_only_when_told() {
        let clock = ScriptedClock::default();
        assert_eq!(clock.now_ns(), clock.now_ns());
        clock.advance_ns(250);
        clock.sleep_ns(50);
        assert_eq!(clock.now_ns(), 300);
    }
}
