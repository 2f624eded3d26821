//! Dynamic work sharing over an exact number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `work(state, task)` for every task in `0..tasks` on `threads` threads, each with a state of its own from `start`,
/// and returns the states. Tasks are handed out in order, one at a time, so a disturbed core takes fewer of them. The calling
/// thread is one of them: it begins at once, while the others are still being woken.
///
/// # Errors
/// The error of the lowest task that failed; tasks after it may not have run.
pub(crate) fn share<State: Send, E: Send>(
    threads: usize,
    tasks: usize,
    start: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, usize) -> Result<(), E> + Sync,
) -> Result<Vec<State>, E> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let run = || {
        let mut state = start();
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return state;
            }
            if let Err(error) = work(&mut state, task) {
                // Later tasks are not started; earlier ones are running, and may still fail before this one.
                next.store(tasks, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(earlier, _)| task < *earlier) {
                    *failed = Some((task, error));
                }
                return state;
            }
        }
    };
    let threads = threads.min(tasks).max(1);
    let states = if threads == 1 {
        vec![run()]
    } else {
        let states = Mutex::new(Vec::with_capacity(threads));
        let run = || {
            let state = run();
            states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        };
        rayon::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| run());
            }
            run();
        });
        states.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(states),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            for tasks in [0, 1, 2, 7, 100] {
                let states = share(threads, tasks, Vec::new, |mine: &mut Vec<usize>, task| {
                    mine.push(task);
                    Ok::<_, ()>(())
                });
                let states = states.unwrap();
                assert_eq!(states.len(), threads.min(tasks).max(1), "{threads} threads, {tasks} tasks");
                let mut all: Vec<_> = states.into_iter().flatten().collect();
                all.sort_unstable();
                assert_eq!(all, (0..tasks).collect::<Vec<_>>(), "{threads} threads, {tasks} tasks");
            }
        }
    }

    #[test]
    fn the_calling_thread_works_beside_one_other() {
        // Each of the two tasks ends when the other has begun, so two threads must be there; one is the caller.
        let begun = std::sync::Barrier::new(2);
        let states = share(2, 2, Vec::new, |threads, _| {
            begun.wait();
            threads.push(std::thread::current().id());
            Ok::<_, ()>(())
        });
        let threads: Vec<_> = states.unwrap().into_iter().flatten().collect();
        assert!(threads.len() == 2 && threads[0] != threads[1], "{threads:?}");
        assert!(threads.contains(&std::thread::current().id()), "{threads:?}");
    }

    #[test]
    fn the_lowest_failing_task_is_reported() {
        for threads in [1, 2, 4] {
            let result = share(threads, 1_000, || (), |(), task| if task % 7 == 5 { Err(task) } else { Ok(()) });
            assert_eq!(result.map(|_| ()), Err(5), "{threads} threads");
        }
    }
}
