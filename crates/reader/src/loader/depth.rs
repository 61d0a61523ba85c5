//! How many batches are made ahead: as few as keep the consumer from waiting.

use std::time::Duration;

/// Steps after which the waiting is judged.
const ROUND: u32 = 64;
/// Steps without waiting after which one batch less is made ahead.
const QUIET: u32 = 512;

/// Batches made ahead: doubled where the consumer waited for more than a hundredth of the time, one less after a long
/// time without waiting. The order of samples never depends on it.
#[derive(Debug)]
pub(crate) struct Depth {
    now: usize,
    most: usize,
    fixed: bool,
    steps: u32,
    quiet: u32,
    waited: Duration,
    passed: Duration,
}

impl Depth {
    /// At most `most` ahead; exactly `fixed` where that is given.
    pub(crate) fn new(most: usize, fixed: Option<usize>) -> Self {
        Self {
            now: fixed.unwrap_or(2).clamp(1, most.max(1)),
            most: most.max(1),
            fixed: fixed.is_some(),
            steps: 0,
            quiet: 0,
            waited: Duration::ZERO,
            passed: Duration::ZERO,
        }
    }

    /// Batches to make ahead now.
    pub(crate) const fn now(&self) -> usize {
        self.now
    }

    /// Learns that a batch was taken, `passed` after the last one, `waited` of it waiting.
    pub(crate) fn learn(&mut self, waited: Duration, passed: Duration) {
        if self.fixed {
            return;
        }
        self.steps += 1;
        self.waited += waited;
        self.passed += passed;
        let waits = |waited: Duration, passed: Duration| waited * 100 > passed;
        self.quiet = if waits(waited, passed) {
            0
        } else {
            self.quiet + 1
        };
        if self.quiet >= QUIET {
            self.quiet = 0;
            self.now = (self.now - 1).max(1);
        }
        if self.steps >= ROUND {
            if waits(self.waited, self.passed) {
                self.now = (self.now * 2).min(self.most);
            }
            self.steps = 0;
            self.waited = Duration::ZERO;
            self.passed = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn waiting_doubles_the_depth_up_to_the_ring() {
        let mut depth = Depth::new(7, None);
        for _ in 0..64 {
            depth.learn(MS, 10 * MS);
        }
        assert_eq!(depth.now(), 4);
        for _ in 0..640 {
            depth.learn(MS, 10 * MS);
        }
        assert_eq!(depth.now(), 7);
    }

    #[test]
    fn a_long_time_without_waiting_takes_one_off() {
        let mut depth = Depth::new(8, None);
        for _ in 0..512 {
            depth.learn(Duration::ZERO, MS);
        }
        assert_eq!(depth.now(), 1);
        for _ in 0..5000 {
            depth.learn(Duration::ZERO, MS);
        }
        assert_eq!(depth.now(), 1);
    }

    #[test]
    fn a_fixed_depth_stays() {
        let mut depth = Depth::new(8, Some(3));
        for _ in 0..1000 {
            depth.learn(MS, MS);
        }
        assert_eq!(depth.now(), 3);
        assert_eq!(Depth::new(2, Some(9)).now(), 2);
    }
}
