//! Decides how many threads load and how many batches they prefetch: the smallest numbers that keep the consumer from
//! waiting. The tuner has no clock: it receives the times of each step and returns the settings.

use packds_system::{nanos, to_usize};
use std::time::Duration;

/// Number of steps that are evaluated together.
const ROUND: u32 = 64;
/// Initial number of rounds without waiting before a lower value is tried.
const PATIENCE: u32 = 8;
/// Maximum number of rounds without waiting before a lower value is tried.
const MOST_PATIENCE: u32 = 1024;
/// Maximum number of log entries. If the needs of a training run keep changing, the oldest entries are dropped.
const MOST_ENTRIES: usize = 1000;

/// A choice of the loader's tuner, and its reason. It is an entry of [`Loader::tuning`](super::Loader::tuning).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuned {
    /// Number of batches that were delivered before this choice.
    pub batches: u64,
    /// Number of active threads from then on.
    pub threads: usize,
    /// Number of prefetched batches from then on.
    pub prefetch: usize,
    /// The reason as a sentence with numbers.
    pub why: String,
}

/// How time was spent between two consecutive batches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// Elapsed time.
    pub(crate) passed: Duration,
    /// How long the consumer waited.
    pub(crate) waited: Duration,
    /// Working time of all threads.
    pub(crate) busy: Duration,
    /// Time that all threads waited for the disk.
    pub(crate) read: Duration,
}

impl Spent {
    /// Whether the consumer waited for more than 1% of the time.
    fn is_waiting(&self) -> bool {
        self.waited * 100 > self.passed
    }

    /// Whether the consumer hardly waited. The limit is well below that of `is_waiting`, so that the tuner does not
    /// oscillate.
    fn is_quiet(&self) -> bool {
        self.waited * 400 <= self.passed
    }

    /// Number of threads that could do this work without idle time, plus half as many.
    fn threads_needed(&self) -> usize {
        let occupied = nanos(self.busy + self.read).saturating_mul(3);
        let needed = occupied.div_ceil(nanos(self.passed).saturating_mul(2).max(1));
        to_usize(needed).max(1)
    }

    /// Whether this many threads were busy almost all of the time.
    fn occupies(&self, threads: usize) -> bool {
        let available = self.passed.as_nanos().saturating_mul(threads as u128);
        (self.busy + self.read).as_nanos().saturating_mul(10) >= available.saturating_mul(8)
    }
}

/// A setting that the tuner changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knob {
    Threads,
    Prefetch,
}

packds_system::named!(Knob { Threads = "threads", Prefetch = "batches ahead" });

/// A number that is tuned, unless it is fixed.
#[derive(Debug)]
pub(crate) struct Tunable {
    now: usize,
    most: usize,
    is_fixed: bool,
    /// Number of quiet rounds before a lower value is tried. It doubles after every failed attempt, so that the tuner
    /// settles.
    patience: u32,
}

impl Tunable {
    /// A number from 1 to `most` that starts at `first`.
    pub(crate) fn up_to(most: usize, first: usize) -> Self {
        let most = most.max(1);
        Self { now: first.clamp(1, most), most, is_fixed: false, patience: PATIENCE }
    }

    /// A fixed number.
    pub(crate) fn fixed(number: usize) -> Self {
        Self { is_fixed: true, ..Self::up_to(number, number) }
    }

    /// Doubles the number if possible.
    fn double(&mut self) -> bool {
        let before = self.now;
        if !self.is_fixed {
            self.now = before.saturating_mul(2).min(self.most);
        }
        self.now > before
    }

    /// Whether `number` is lower than the current number, and it is time to try it.
    fn may_try(&self, number: usize, quiet: u32) -> bool {
        !self.is_fixed && number < self.now && quiet >= self.patience
    }
}

/// Adapts two values to the times of the steps. The order and contents of batches never depend on them.
#[derive(Debug)]
pub(crate) struct Tuner {
    threads: Tunable,
    prefetch: Tunable,
    batches: u64,
    /// Number of steps in the current round, and their total times.
    steps: u32,
    round: Spent,
    /// Number of rounds without waiting since the last change.
    quiet: u32,
    /// The knob that was lowered last, and its value before that. Cleared when a knob is raised.
    lowered: Option<(Knob, usize)>,
    /// Whether it has already been reported that both values are at their maximum. Reset when a value is lowered.
    is_spent: bool,
    log: Vec<Tuned>,
}

impl Tuner {
    pub(crate) fn new(threads: Tunable, prefetch: Tunable) -> Self {
        let mut tuner = Self {
            threads,
            prefetch,
            batches: 0,
            steps: 0,
            round: Spent::default(),
            quiet: 0,
            lowered: None,
            is_spent: false,
            log: Vec::new(),
        };
        let says = |number: &Tunable| if number.is_fixed { "fixed" } else { "tuned" };
        let (threads, prefetch) = (says(&tuner.threads), says(&tuner.prefetch));
        tuner.write(format!("initial values; threads are {threads}, and the number of batches ahead is {prefetch}"));
        tuner
    }

    /// Number of active threads.
    pub(crate) const fn threads(&self) -> usize {
        self.threads.now
    }

    /// Number of prefetched batches.
    pub(crate) const fn prefetch(&self) -> usize {
        self.prefetch.now
    }

    /// All choices so far, oldest first.
    pub(crate) fn log(&self) -> &[Tuned] {
        &self.log
    }

    /// Records that the first batch of an epoch was taken. Every consumer waits for the first batch, so it is not
    /// evaluated.
    pub(crate) fn begin(&mut self) {
        self.batches += 1;
    }

    /// Records the times since the last batch. Returns whether a setting changed.
    pub(crate) fn learn(&mut self, spent: Spent) -> bool {
        self.batches += 1;
        self.steps += 1;
        self.round.passed += spent.passed;
        self.round.waited += spent.waited;
        self.round.busy += spent.busy;
        self.round.read += spent.read;
        if self.steps < ROUND {
            return false;
        }
        self.steps = 0;
        let round = std::mem::take(&mut self.round);
        if round.is_quiet() {
            self.quiet += 1;
            return self.try_less(&round);
        }
        self.quiet = 0;
        round.is_waiting() && self.take_more(&round)
    }

    fn take_more(&mut self, round: &Spent) -> bool {
        let says = self.says(round);
        if let Some((knob, before)) = self.lowered.take() {
            let number = self.number(knob);
            number.now = before;
            number.patience = (number.patience * 2).min(MOST_PATIENCE);
            self.write(format!("{says}: back to the previous number of {knob}"));
            return true;
        }
        // If threads are always busy, more threads are needed. If threads are idle, more batches must be started.
        let knobs = if round.occupies(self.threads.now) {
            [Knob::Threads, Knob::Prefetch]
        } else {
            [Knob::Prefetch, Knob::Threads]
        };
        let more = knobs.into_iter().find(|knob| self.number(*knob).double());
        match more {
            // The preferred setting is at its maximum.
            Some(knob) if knob != knobs[0] => {
                self.write(format!("{says}: more {knob}, because {} are at their maximum", knobs[0]));
            }
            Some(knob) => self.write(format!("{says}: more {knob}")),
            None if !(self.is_spent || self.threads.is_fixed && self.prefetch.is_fixed) => {
                self.write(format!("{says}: {} and {} are at their maximum", knobs[0], knobs[1]))
            }
            None => {}
        }
        self.is_spent = more.is_none();
        more.is_some()
    }

    fn try_less(&mut self, round: &Spent) -> bool {
        // The number is never lowered by more than half at a time, even if there was little to do.
        let threads = round.threads_needed().max(self.threads.now.div_ceil(2));
        let (knob, number) = if self.threads.may_try(threads, self.quiet) {
            (Knob::Threads, threads)
        } else if self.prefetch.may_try((self.prefetch.now - 1).max(1), self.quiet) {
            (Knob::Prefetch, self.prefetch.now - 1)
        } else {
            return false;
        };
        self.quiet = 0;
        self.is_spent = false;
        let says = self.says(round);
        let before = std::mem::replace(&mut self.number(knob).now, number);
        self.lowered = Some((knob, before));
        self.write(format!("{says}: fewer {knob} should be enough"));
        true
    }

    fn number(&mut self, knob: Knob) -> &mut Tunable {
        match knob {
            Knob::Threads => &mut self.threads,
            Knob::Prefetch => &mut self.prefetch,
        }
    }

    fn says(&self, round: &Spent) -> String {
        let percent = |part: Duration, whole: u128| part.as_nanos() * 100 / whole.max(1);
        let passed = round.passed.as_nanos();
        let of_threads = passed.saturating_mul(self.threads.now as u128);
        format!(
            "in {ROUND} steps, training waited for {} % of the time; the threads worked for {} % of their time and waited for the disk for {} %",
            percent(round.waited, passed),
            percent(round.busy, of_threads),
            percent(round.read, of_threads),
        )
    }

    fn write(&mut self, why: String) {
        if self.log.len() >= MOST_ENTRIES {
            self.log.remove(0);
        }
        self.log.push(Tuned { batches: self.batches, threads: self.threads.now, prefetch: self.prefetch.now, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn tuner(threads: usize, slots: usize) -> Tuner {
        Tuner::new(Tunable::up_to(threads, threads), Tunable::up_to(slots, 2))
    }

    /// A simulated training run. A step takes `step`, and a thread needs `work` per batch. One in `hiccup` batches
    /// takes 20 times as long.
    #[derive(Clone, Copy)]
    struct Training {
        step: Duration,
        work: Duration,
        hiccup: u64,
    }

    impl Training {
        fn of(step: Duration, work: Duration) -> Self {
            Self { step, work, hiccup: u64::MAX }
        }

        /// The times of a step. Prefetched batches hide some of the waiting.
        fn spent(self, number: u64, tuner: &Tuner) -> Spent {
            let is_slow = number % self.hiccup == self.hiccup - 1;
            let loading = self.work / u32::try_from(tuner.threads()).unwrap();
            let ahead = self.step * u32::try_from(tuner.prefetch()).unwrap();
            let waited = if is_slow { (loading * 20).saturating_sub(ahead) } else { loading.saturating_sub(self.step) };
            Spent {
                passed: self.step + waited,
                waited,
                busy: self.work * if is_slow { 20 } else { 1 },
                read: Duration::ZERO,
            }
        }

        fn go_on(self, tuner: &mut Tuner, steps: u64) {
            for number in 0..steps {
                tuner.learn(self.spent(number, tuner));
            }
        }
    }

    #[test]
    fn a_step_that_binds_gets_the_threads_that_it_needs_and_half_as_many_again() {
        let mut tuner = tuner(16, 8);
        Training::of(10 * MS, 19 * MS).go_on(&mut tuner, 20_000);
        assert_eq!((tuner.threads(), tuner.prefetch()), (3, 1));
        let last = tuner.log().last().unwrap();
        assert!(last.why.contains("0 % of the time"), "{}", last.why);
    }

    #[test]
    fn slow_decoding_gets_more_threads() {
        let mut tuner = tuner(16, 8);
        Training::of(10 * MS, 5 * MS).go_on(&mut tuner, 20_000);
        assert_eq!(tuner.threads(), 1);
        // Images become larger from here on.
        Training::of(10 * MS, 55 * MS).go_on(&mut tuner, 256);
        assert_eq!((tuner.threads(), tuner.prefetch()), (8, 2));
        let says = &tuner.log().last().unwrap().why;
        assert!(says.ends_with("more threads"), "{says}");
        Training::of(10 * MS, 1000 * MS).go_on(&mut tuner, 256);
        assert_eq!(tuner.threads(), 16);
    }

    #[test]
    fn a_slow_disk_is_a_reason_for_more_threads_too() {
        let mut tuner = tuner(8, 4);
        Training::of(10 * MS, MS).go_on(&mut tuner, 20_000);
        for _ in 0..128 {
            tuner.learn(Spent { passed: 20 * MS, waited: 10 * MS, busy: MS, read: 18 * MS });
        }
        assert_eq!(tuner.threads(), 2);
        let says = &tuner.log().last().unwrap().why;
        assert!(says.contains("waited for the disk for 90 %"), "{says}");
    }

    #[test]
    fn where_nothing_more_can_be_given_the_log_says_so_once() {
        let mut tuner = tuner(2, 4);
        Training::of(MS, 50 * MS).go_on(&mut tuner, 10_000);
        assert_eq!((tuner.threads(), tuner.prefetch()), (2, 4));
        let says: Vec<&str> = tuner.log().iter().map(|tuned| tuned.why.as_str()).collect();
        let [_, .., before, last] = says.as_slice() else {
            panic!("{says:?}");
        };
        assert!(before.ends_with("more batches ahead, because threads are at their maximum"), "{before}");
        assert!(last.ends_with("threads and batches ahead are at their maximum"), "{last}");
        assert_eq!(
            says.iter().filter(|why| why.ends_with("threads and batches ahead are at their maximum")).count(),
            1
        );
    }

    #[test]
    fn batches_that_come_unevenly_are_made_further_ahead() {
        let mut tuner = tuner(4, 16);
        let uneven = Training { hiccup: 50, ..Training::of(10 * MS, 8 * MS) };
        uneven.go_on(&mut tuner, 200);
        assert_eq!((tuner.threads(), tuner.prefetch()), (4, 4));
    }

    #[test]
    fn what_is_fixed_stays() {
        let mut tuner = Tuner::new(Tunable::fixed(3), Tunable::fixed(5));
        Training::of(10 * MS, MS).go_on(&mut tuner, 20_000);
        Training::of(MS, 10 * MS).go_on(&mut tuner, 20_000);
        assert_eq!((tuner.threads(), tuner.prefetch()), (3, 5));
        assert_eq!(tuner.log().len(), 1);
        assert!(tuner.log()[0].why.contains("threads are fixed"));
    }

    #[test]
    fn a_steady_training_settles_whatever_it_needs() {
        for work in (1..200).step_by(9) {
            for hiccup in [u64::MAX, 1000, 300, 70, 7] {
                let mut tuner = tuner(16, 16);
                let training = Training { step: 10 * MS, work: work * MS, hiccup };
                training.go_on(&mut tuner, 30_000);
                let changes = tuner.log().len();
                training.go_on(&mut tuner, 30_000);
                let later = tuner.log().len() - changes;
                // After each failed attempt, the tuner waits twice as long, so few attempts follow.
                assert!(later <= 8, "{work} ms, {hiccup}: {:#?}", tuner.log());
                assert!(changes <= 60, "{work} ms, {hiccup}: {:#?}", tuner.log());
            }
        }
    }

    #[test]
    fn the_first_batch_of_an_epoch_teaches_nothing() {
        let mut tuner = tuner(4, 8);
        for _ in 0..1000 {
            tuner.begin();
        }
        assert_eq!(tuner.log().len(), 1);
        Training::of(MS, 10 * MS).go_on(&mut tuner, 64);
        assert_eq!(tuner.log()[1].batches, 1064);
    }

    #[test]
    fn the_log_of_a_restless_training_keeps_its_end() {
        let mut tuner = tuner(8, 8);
        for number in 0..100_000 {
            let work = if number / 1000 % 2 == 0 { MS } else { 50 * MS };
            let training = Training::of(10 * MS, work);
            tuner.learn(training.spent(0, &tuner));
        }
        assert!(tuner.log().len() <= MOST_ENTRIES);
        let (threads, prefetch) = (tuner.threads(), tuner.prefetch());
        let last = tuner.log().last().unwrap();
        assert_eq!((last.threads, last.prefetch), (threads, prefetch));
    }
}
