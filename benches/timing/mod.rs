//! How long a call takes, the same way in every benchmark that is set beside other libraries.

use std::time::{Duration, Instant};

/// Calls before the clock starts, and calls that are timed.
const WARM_UP: Duration = Duration::from_millis(300);
const TIMED: Duration = Duration::from_millis(400);

/// The median time of a call, in seconds: of all that fit into some time, and of five at least.
pub(crate) fn median_seconds(mut call: impl FnMut()) -> f64 {
    let mut timed = || {
        let start = Instant::now();
        call();
        start.elapsed()
    };
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        timed();
    }
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < TIMED || times.len() < 5 {
        times.push(timed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}
