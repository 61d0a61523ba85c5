//! Runs work on several threads and takes the results in order. Memory use is bounded, the order is deterministic, and
//! deadlocks are impossible.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What to do after taking a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    /// Discard running tasks, then request tasks again, because later tasks depend on this result.
    Restart,
    /// Dispatch no more tasks and discard the running ones.
    Stop,
}

/// Runs `work` on the tasks from `task` and passes each result to `take` on the calling thread, in task order. Uses
/// `jobs` threads, or as many as the system can start. At most `window` tasks are running or waiting to be taken.
/// `state` creates the state of each thread. An error from `task` or `take` stops all work and is returned. A panic in
/// `work` is passed on to the caller after all threads have ended.
pub(crate) fn ordered<S, T: Send, R: Send, E>(
    jobs: usize,
    window: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
    mut task: impl FnMut() -> Result<Option<T>, E>,
    mut take: impl FnMut(R) -> Result<Next, E>,
) -> Result<(), E> {
    let (task_tx, task_rx) = mpsc::channel::<(u64, T)>();
    let (result_tx, result_rx) = mpsc::channel::<(u64, thread::Result<R>)>();
    let task_rx = Mutex::new(task_rx);
    thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..jobs.max(1) {
            let (task_rx, result_tx) = (&task_rx, result_tx.clone());
            let (state, work) = (&state, &work);
            let run = move || worker(task_rx, &result_tx, state(), work);
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
            started += 1;
        }
        drop(result_tx);
        let outcome = match started {
            0 => alone(state(), &work, &mut task, &mut take),
            _ => drive(window.max(1), &task_tx, &result_rx, &mut task, &mut take),
        };
        // This ends the threads. Otherwise they would keep waiting for tasks, and the scope would wait for the threads.
        drop(task_tx);
        outcome
    })
}

/// Runs all work on the calling thread if the system cannot start another thread.
fn alone<S, T, R, E>(
    mut state: S,
    work: &impl Fn(&mut S, T) -> R,
    task: &mut impl FnMut() -> Result<Option<T>, E>,
    take: &mut impl FnMut(R) -> Result<Next, E>,
) -> Result<(), E> {
    while let Some(next) = task()? {
        if take(work(&mut state, next))? == Next::Stop {
            break;
        }
    }
    Ok(())
}

fn worker<S, T, R>(
    tasks: &Mutex<Receiver<(u64, T)>>,
    results: &Sender<(u64, thread::Result<R>)>,
    mut state: S,
    work: &impl Fn(&mut S, T) -> R,
) {
    loop {
        // The lock is held only while waiting for a task. A poisoned lock still guards a valid receiver.
        let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, task)) = next else { return };
        // If a thread ended without a result, the caller would wait for it forever.
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut state, task)));
        let panicked = result.is_err();
        if results.send((number, result)).is_err() || panicked {
            return;
        }
    }
}

fn drive<T, R, E>(
    window: usize,
    tasks: &Sender<(u64, T)>,
    results: &Receiver<(u64, thread::Result<R>)>,
    task: &mut impl FnMut() -> Result<Option<T>, E>,
    take: &mut impl FnMut(R) -> Result<Next, E>,
) -> Result<(), E> {
    let (mut given, mut taken, mut finished) = (0_u64, 0_u64, false);
    // Results below this index were requested before a restart and are discarded.
    let mut valid_from = 0_u64;
    let mut waiting: BTreeMap<u64, R> = BTreeMap::new();
    let mut under_way = 0_usize;
    loop {
        while !finished && under_way + waiting.len() < window {
            let Some(next) = task()? else {
                finished = true;
                break;
            };
            // Sending fails only if all threads have panicked, and each panic is reported as a result.
            if tasks.send((given, next)).is_ok() {
                given += 1;
                under_way += 1;
            }
        }
        while let Some(result) = waiting.remove(&taken) {
            taken += 1;
            match take(result)? {
                Next::Continue => {}
                Next::Stop => return Ok(()),
                Next::Restart => {
                    waiting.clear();
                    (taken, valid_from, finished) = (given, given, false);
                    break;
                }
            }
        }
        if under_way == 0 {
            if finished && waiting.is_empty() {
                return Ok(());
            }
            continue;
        }
        if finished || under_way + waiting.len() >= window {
            let Ok((number, result)) = results.recv() else {
                return Ok(());
            };
            under_way -= 1;
            match result {
                Ok(result) if number >= valid_from => {
                    waiting.insert(number, result);
                }
                Ok(_) => {}
                Err(panic) => resume_unwind(panic),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(jobs: usize, window: usize, n: u32, restart_at: Option<u32>) -> Vec<u32> {
        let (mut next, mut out, mut restarted) = (0, Vec::new(), false);
        let next = std::cell::RefCell::new(&mut next);
        ordered(
            jobs,
            window,
            || (),
            |(), task: u32| {
                thread::sleep(std::time::Duration::from_micros(u64::from(task * 7919 % 50)));
                task
            },
            || {
                let mut next = next.borrow_mut();
                **next += 1;
                Ok::<_, ()>((**next <= n).then_some(**next))
            },
            |result| {
                if Some(result) == restart_at && !restarted {
                    restarted = true;
                    **next.borrow_mut() = result - 1;
                    return Ok(Next::Restart);
                }
                out.push(result);
                Ok(Next::Continue)
            },
        )
        .unwrap();
        out
    }

    #[test]
    fn results_come_in_task_order_at_any_number_of_threads() {
        for (jobs, window) in [(1, 1), (1, 4), (3, 2), (4, 16)] {
            assert!(run(jobs, window, 200, None).into_iter().eq(1..=200), "{jobs} jobs, window {window}");
        }
    }

    #[test]
    fn restart_throws_away_what_is_under_way_and_asks_again() {
        for at in [1, 17, 200] {
            assert!(run(3, 8, 200, Some(at)).into_iter().eq(1..=200), "restart at {at}");
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_instead_of_leaving_it_waiting() {
        let run = || {
            let mut n = 0;
            ordered(
                2,
                4,
                || (),
                |(), n: u32| assert!(n != 5, "five"),
                || {
                    n += 1;
                    Ok::<_, ()>(Some(n))
                },
                |()| Ok(Next::Continue),
            )
        };
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }

    #[test]
    fn an_error_ends_everything() {
        let result = ordered(2, 4, || (), |(), n: u32| n, || Ok(Some(1)), |_| Err::<Next, _>("no"));
        assert_eq!(result, Err("no"));
        let result = ordered(2, 4, || (), |(), n: u32| n, || Err::<Option<u32>, _>("no task"), |_| Ok(Next::Continue));
        assert_eq!(result, Err("no task"));
    }

    #[test]
    fn without_another_thread_the_calling_one_does_all_work() {
        let (next, mut out) = (std::cell::Cell::new(0), Vec::new());
        let mut restarted = false;
        alone(
            (),
            &|(), n: u32| n,
            &mut || {
                next.set(next.get() + 1);
                Ok::<_, ()>((next.get() <= 9).then_some(next.get()))
            },
            &mut |n| {
                if n == 5 && !restarted {
                    restarted = true;
                    next.set(4);
                    return Ok(Next::Restart);
                }
                out.push(n);
                Ok(if n == 7 { Next::Stop } else { Next::Continue })
            },
        )
        .unwrap();
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7]);
    }
}
