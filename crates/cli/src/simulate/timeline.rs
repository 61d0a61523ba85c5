//! When chunks arrive, and how long training waits for them.

use std::collections::VecDeque;

use super::cluster::Read;

/// How one machine reaches the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Bytes per second.
    pub(super) bandwidth: f64,
    /// Seconds from a request to its first byte.
    pub(super) latency: f64,
    /// How far ahead of training chunks are requested, in bytes.
    pub(super) ahead: u64,
}

/// Seconds that each epoch takes, and seconds of it in which training waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    pub(super) seconds: f64,
    pub(super) waits: f64,
}

/// Runs the steps of one machine. `misses` are the chunks that come from the store, in the order of their steps. A step
/// starts when the step before has ended and all of its chunks are there, and takes `step_s`.
pub(super) fn run(
    misses: &[Read],
    chunk_bytes: u64,
    (steps_per_epoch, epochs): (u64, u32),
    step_s: f64,
    link: Link,
) -> Vec<Spent> {
    let transfer = chunk_bytes as f64 / link.bandwidth;
    let most = usize::try_from((link.ahead / chunk_bytes.max(1)).max(1)).unwrap_or(usize::MAX);
    let (mut spent, mut now, mut idle) = (Vec::new(), 0.0_f64, 0.0_f64);
    let (mut next, mut requested, mut free) = (0, 0, 0.0_f64);
    // When each requested chunk arrives that training has not used yet.
    let mut arriving: VecDeque<f64> = VecDeque::new();
    for epoch in 0..u64::from(epochs) {
        let (began, waited) = (now, idle);
        for step in epoch * steps_per_epoch..(epoch + 1) * steps_per_epoch {
            loop {
                while arriving.len() < most && requested < misses.len() {
                    // The latency of one request passes while others are transferred.
                    free = f64::max(free, now + link.latency) + transfer;
                    arriving.push_back(free);
                    requested += 1;
                }
                if misses.get(next).is_none_or(|read| read.step > step) {
                    break;
                }
                let arrived = arriving.pop_front().unwrap_or(now);
                idle += (arrived - now).max(0.0);
                now = now.max(arrived);
                next += 1;
            }
            now += step_s;
        }
        spent.push(Spent { seconds: now - began, waits: idle - waited });
    }
    spent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(steps: u64) -> Vec<Read> {
        (0..steps).map(|step| Read { step, chunk: step }).collect()
    }

    fn spent(n: u64, step_s: f64, link: Link) -> Spent {
        run(&misses(n), 100, (n, 1), step_s, link)[0]
    }

    #[test]
    fn training_waits_for_the_first_chunk_alone_if_the_link_is_faster() {
        let link = Link { bandwidth: 1000.0, latency: 0.5, ahead: 1000 };
        let found = spent(100, 0.2, link);
        assert!((found.waits - 0.6).abs() < 1e-9, "{found:?}");
        assert!((found.seconds - 20.6).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_slow_link_determines_the_time() {
        let link = Link { bandwidth: 100.0, latency: 0.0, ahead: 10_000 };
        let found = spent(100, 0.2, link);
        assert!((found.seconds - 100.2).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_latency_longer_than_a_step_shows_unless_more_is_read_ahead() {
        let link = Link { bandwidth: 1e12, latency: 0.5, ahead: 0 };
        let found = spent(100, 0.2, link);
        assert!((found.waits - (0.5 + 99.0 * 0.3)).abs() < 1e-6, "{found:?}");
        let found = spent(100, 0.2, Link { ahead: 400, ..link });
        assert!((found.waits - 0.5).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn nothing_is_waited_for_without_misses() {
        let link = Link { bandwidth: 1.0, latency: 1.0, ahead: 1 };
        assert_eq!(run(&[], 100, (10, 2), 0.5, link), vec![Spent { seconds: 5.0, waits: 0.0 }; 2]);
    }
}
