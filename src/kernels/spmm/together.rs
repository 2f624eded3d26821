//! Waiting awake for the other threads: a narrow product takes a tenth of a millisecond, and a thread that is put to sleep
//! needs half of that to be woken.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a thread looks before it goes to sleep after all: for about as long as being woken takes.
const LOOKS: usize = 2_000;
/// For how many more looks the caller stays: the others leave at the same time, and are gone then.
const LAST_LOOKS: usize = 4;

/// Threads that have not begun and tasks that are not done. Only speed depends on it.
#[derive(Debug)]
pub(super) struct Together(AtomicUsize);

impl Together {
    pub(super) fn new(threads: usize, tasks: usize) -> Self {
        Self(AtomicUsize::new(threads + tasks))
    }

    /// A thread has begun, or a task is done.
    pub(super) fn count(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Returns when all threads have begun and all tasks are done, or after a while.
    pub(super) fn wait(&self) {
        for _ in 0..LOOKS {
            if self.0.load(Ordering::Acquire) == 0 {
                break;
            }
            spin_loop();
        }
        if rayon::current_thread_index().is_none() {
            (0..LAST_LOOKS).for_each(|_| spin_loop());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_all_is_done_and_also_when_it_never_is() {
        let together = Together::new(1, 1);
        together.wait();
        together.count();
        std::thread::scope(|scope| {
            scope.spawn(|| together.count());
            together.wait();
        });
        assert_eq!(together.0.into_inner(), 0, "one thread has begun and one task is done");
    }
}
