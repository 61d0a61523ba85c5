//! Runs the same work on several threads, and locks what they share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Runs `work` on this thread and on up to `jobs - 1` others, and returns when all of them have returned.
///
/// `work` takes its tasks from shared state. If the system cannot start more threads, the existing ones do all the
/// work. A panic is passed on to the caller.
pub fn in_parallel(jobs: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..jobs {
            if thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Locks `mutex`, even if a thread panicked while it held the lock. The data must be consistent after every single
/// change.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `condvar` is notified. The lock is released meanwhile, and held again on return.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_work_is_done_by_any_number_of_threads() {
        for jobs in [0, 1, 3] {
            let next = AtomicUsize::new(0);
            let done = AtomicUsize::new(0);
            in_parallel(jobs, || {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 100);
        }
    }
}
