//! Computes the time per batch from the completion times of batches.

use crate::model::Time;

/// Maximum number of slices per run. The spread is computed from the slices.
const SLICES: usize = 5;
/// Minimum number of slices for a spread. A slice has at least two batches or one epoch.
const FEW: usize = 3;

/// The completion times of each epoch's batches, in milliseconds since the start of the run.
#[derive(Debug, Clone)]
pub struct Clock {
    epochs: Vec<Laps>,
    lead: usize,
}

/// The times of an epoch's batches.
#[derive(Debug, Clone, Default)]
struct Laps {
    /// The times from one batch to the next. The first time begins at the start of the epoch.
    spans: Vec<f64>,
    last: f64,
    is_whole: bool,
}

impl Clock {
    /// A clock for a loader that makes up to `lead` batches in parallel, so that they arrive together at the start of
    /// an epoch.
    pub fn new(lead: usize) -> Self {
        Self { epochs: Vec::new(), lead: lead.max(1) }
    }

    /// Records the start of an epoch.
    pub fn begin_epoch(&mut self, ms: f64) {
        self.epochs.push(Laps { last: ms, ..Laps::default() });
    }

    /// Records a complete batch.
    pub fn tick(&mut self, ms: f64) {
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.spans.push(ms - epoch.last);
            epoch.last = ms;
        }
    }

    /// Records the end of an epoch.
    pub fn end_epoch(&mut self) {
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.is_whole = true;
        }
    }

    /// Number of batches so far.
    pub fn batches(&self) -> usize {
        self.epochs.iter().map(|epoch| epoch.spans.len()).sum()
    }

    /// Number of complete epochs so far.
    pub fn whole_epochs(&self) -> usize {
        self.whole().count()
    }

    fn whole(&self) -> impl Iterator<Item = &Laps> {
        let is_whole = |epoch: &&Laps| epoch.is_whole && !epoch.spans.is_empty();
        self.epochs.iter().filter(is_whole)
    }

    /// The time per batch. It is a mean, because batches may come in bursts. If there are complete epochs, only these
    /// count, with their startup. The first of several complete epochs is a warm-up and does not count. If no epoch is
    /// complete, the result is the [steady time](Self::steady_time). `None` if there are no batches.
    pub fn time(&self) -> Option<Time> {
        let n = self.whole_epochs();
        if n == 0 {
            return self.steady_time();
        }
        let counted: Vec<&Laps> = self.whole().skip(usize::from(n > 1)).collect();
        if counted.len() >= FEW {
            let means = slices(counted.len()).map(|(from, to)| {
                let epochs = counted.get(from..to).unwrap_or(&[]);
                mean(epochs.iter().flat_map(|epoch| &epoch.spans))
            });
            let ms = mean(counted.iter().flat_map(|epoch| &epoch.spans));
            return Some(of_slices(ms, means.collect()));
        }
        let spans = counted.iter().flat_map(|epoch| &epoch.spans);
        Some(of_spans(&spans.copied().collect::<Vec<f64>>()))
    }

    /// The time per batch in the middle of an epoch. The first batches, which arrive together, only start the clock. If
    /// epochs are too short for that, all batches count except the very first, whose time includes starting the
    /// threads. `None` if there are no batches.
    pub fn steady_time(&self) -> Option<Time> {
        let behind = |epoch: &Laps| epoch.spans.get(self.lead..).unwrap_or(&[]).to_vec();
        let steady: Vec<f64> = self.epochs.iter().flat_map(behind).collect();
        if steady.len() >= 2 * FEW {
            return Some(of_spans(&steady));
        }
        let all: Vec<f64> = self.epochs.iter().flat_map(|epoch| epoch.spans.clone()).collect();
        match all.as_slice() {
            [] => None,
            [only] => Some(of_spans(&[*only])),
            [_, behind @ ..] => Some(of_spans(behind)),
        }
    }
}

/// Computes the time per batch and its spread from the times between batches.
fn of_spans(spans: &[f64]) -> Time {
    let means = slices(spans.len() / 2).map(|(from, to)| {
        // Slices consist of pairs of batches.
        let to = if to == spans.len() / 2 { spans.len() } else { 2 * to };
        mean(spans.get(2 * from..to).unwrap_or(&[]))
    });
    of_slices(mean(spans), means.collect())
}

fn of_slices(ms: f64, means: Vec<f64>) -> Time {
    Time {
        ms,
        low: means.iter().copied().fold(ms, f64::min),
        high: means.iter().copied().fold(ms, f64::max),
        is_short: means.len() < FEW,
    }
}

/// Divides `n` items into slices of nearly equal size.
fn slices(n: usize) -> impl Iterator<Item = (usize, usize)> {
    let slices = n.min(SLICES);
    (0..slices).map(move |slice| (n * slice / slices, n * (slice + 1) / slices))
}

fn mean<'a>(spans: impl IntoIterator<Item = &'a f64>) -> f64 {
    let (sum, n) = spans.into_iter().fold((0.0, 0.0), |(sum, n), span| (sum + span, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock after epochs with these times between batches. The flag marks a complete epoch.
    fn clock(lead: usize, epochs: &[(&[f64], bool)]) -> Clock {
        let (mut clock, mut now) = (Clock::new(lead), 0.0);
        for (spans, is_whole) in epochs {
            clock.begin_epoch(now);
            for span in *spans {
                now += span;
                clock.tick(now);
            }
            if *is_whole {
                clock.end_epoch();
            }
        }
        clock
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn batches_that_come_together_first_start_the_clock() {
        let time = clock(2, &[(&[90.0, 0.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0], false)]).time().unwrap();
        assert_eq!(time, Time::exactly(40.0));
    }

    #[test]
    fn batches_that_come_in_bursts_take_what_all_take() {
        // After each wait, three more batches are ready without waiting.
        let spans = [12.0, 0.0, 0.0, 0.0].repeat(5);
        near(clock(1, &[(&spans, false)]).time().unwrap().ms, 45.0 / 19.0 + 3.0 / 19.0);
    }

    #[test]
    fn whole_epochs_count_with_their_beginnings_but_for_the_first() {
        let epoch: &[f64] = &[10.0, 2.0, 2.0, 2.0];
        let first: &[f64] = &[500.0, 2.0, 2.0, 2.0];
        let time =
            clock(1, &[(first, true), (epoch, true), (epoch, true), (epoch, true), (&[1.0], false)]).time().unwrap();
        assert_eq!(time, Time::exactly(4.0));
        near(clock(1, &[(first, true)]).time().unwrap().ms, 506.0 / 4.0);
    }

    #[test]
    fn the_middle_of_epochs_is_without_their_beginnings() {
        let epoch: &[f64] = &[900.0, 0.0, 8.0, 8.0];
        let steady = clock(2, &[(epoch, true), (epoch, true), (epoch, true)]).steady_time().unwrap();
        assert_eq!(steady, Time::exactly(8.0));
    }

    #[test]
    fn few_batches_are_told_from_many() {
        for (spans, is_short) in [(6, true), (7, false)] {
            let spans = vec![3.0; spans];
            assert_eq!(clock(1, &[(&spans, false)]).time().unwrap().is_short, is_short);
        }
        let one = clock(4, &[(&[7.0], false)]).time().unwrap();
        assert_eq!((one.ms, one.is_short), (7.0, true));
        assert_eq!(Clock::new(1).time(), None);
    }

    #[test]
    fn what_gets_faster_differs() {
        let spans: Vec<f64> = (0..20).map(|n| if n < 4 { 100.0 } else { 1.0 }).collect();
        let time = clock(1, &[(&spans, true)]).time().unwrap();
        near(time.ms, 416.0 / 20.0);
        assert!(time.spread() > 1.0, "{time:?}");
    }
}
