//! Delivers batches in the order of the plan. Threads prefetch whole batches, like the workers of PyTorch's loader.

use packds_system::to_usize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use packds_reader::arena::Arena;

use super::candidate::{Batch, Open, Reader};
use super::order::{Planned, Rows, Schedule};
use crate::BenchError;
use crate::threads::start;

/// Maximum number of finished batches per thread.
const DEPTH: usize = 2;
/// Number of buffers per thread: finished batches, one that is being filled, and one that the consumer uses.
const BUFFERS: usize = DEPTH + 2;

/// Receives each batch's pixels and labels. Returns whether to continue.
pub(crate) type Take<'a> = dyn FnMut(&[u8], &[i64]) -> bool + 'a;

pub(crate) trait Feed {
    /// Passes the batches of an epoch to `take`, in order, until it stops.
    fn epoch(&mut self, epoch: u32, take: &mut Take<'_>) -> Result<(), BenchError>;
}

pub(crate) struct Lanes {
    readers: Vec<Box<dyn Reader>>,
    schedule: Schedule,
    sample_bytes: usize,
    arena: Arc<Arena>,
}

impl Lanes {
    pub(crate) fn open(open: &Open, schedule: Schedule, sample_bytes: usize) -> Result<Self, BenchError> {
        let readers = open(schedule.threads)?;
        let rows = to_usize(schedule.batch);
        let arena = Arena::new(readers.len() * BUFFERS, (rows * sample_bytes).max(1));
        Ok(Self { readers, schedule, sample_bytes, arena: arena.map_err(BenchError::io("memory for batches"))? })
    }
}

type Made = Result<Batch, BenchError>;

struct Work {
    rows: Vec<Rows>,
    free: Receiver<Batch>,
    ready: SyncSender<Made>,
}

impl Work {
    fn run(self, reader: &mut dyn Reader) {
        for rows in &self.rows {
            let Ok(mut batch) = self.free.recv() else {
                return;
            };
            batch.begin(rows.len());
            let made = reader.load(rows, &mut batch).map(|()| batch);
            let failed = made.is_err();
            if self.ready.send(made).is_err() || failed {
                return;
            }
        }
    }
}

impl Feed for Lanes {
    fn epoch(&mut self, epoch: u32, take: &mut Take<'_>) -> Result<(), BenchError> {
        let plan = self.schedule.epoch(epoch);
        let mut ends = Vec::new();
        let mut work = Vec::new();
        for lane in 0..self.readers.len() {
            let (to_free, free) = channel();
            let (ready, from_ready) = sync_channel(DEPTH);
            for _ in 0..BUFFERS {
                let rows = to_usize(self.schedule.batch);
                if let Some(batch) = Batch::take(&self.arena, self.sample_bytes, rows) {
                    // This cannot fail, because the receiver still exists.
                    let _ = to_free.send(batch);
                }
            }
            let mine = plan.iter().filter(|p| p.lane == lane);
            let rows = mine.map(|p| p.rows.clone()).collect();
            work.push(Work { rows, free, ready });
            ends.push((from_ready, to_free));
        }
        thread::scope(|scope| {
            for (reader, work) in self.readers.iter_mut().zip(work) {
                start(scope, move || work.run(reader.as_mut()))?;
            }
            // If the consumer stops early, it drops its ends of the channels, which stops the threads.
            consume(&plan, ends, take)
        })
    }
}

fn consume(
    plan: &[Planned],
    ends: Vec<(Receiver<Made>, Sender<Batch>)>,
    take: &mut Take<'_>,
) -> Result<(), BenchError> {
    for planned in plan {
        let ended = || BenchError::wrong("a reading thread", "a batch", "the end of the thread");
        let (ready, free) = ends.get(planned.lane).ok_or_else(ended)?;
        let batch = ready.recv().map_err(|_| ended())??;
        let go_on = take(batch.pixels(), batch.labels());
        // Sending fails only if the thread has finished and no longer needs the buffer.
        let _ = free.send(batch);
        if !go_on {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::candidate::readers;
    use super::super::order::OrderName;
    use super::*;

    /// Makes samples of 8 bytes, whose pixels and label are the sample's number. Can be made to fail at number 13.
    struct Numbers {
        fails: bool,
    }

    impl Reader for Numbers {
        fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
            if self.fails && rows.iter().any(|sample| sample == 13) {
                return Err(BenchError::io("sample 13")(std::io::ErrorKind::NotFound.into()));
            }
            for ((pixels, label), sample) in out.rows_mut().zip(rows.iter()) {
                pixels.copy_from_slice(&sample.to_le_bytes());
                *label = i64::try_from(sample).unwrap();
            }
            Ok(())
        }
    }

    fn lanes(threads: usize, order: OrderName, fails: bool) -> Lanes {
        let schedule = Schedule { order, n_samples: 40, batch: 4, threads, seed: 1, shard: None };
        let open: Open = Box::new(move |threads| readers(threads, || Numbers { fails }));
        Lanes::open(&open, schedule, 8).unwrap()
    }

    #[test]
    fn batches_come_in_the_order_of_the_plan_on_any_number_of_threads() {
        for order in OrderName::ALL {
            let mut all = Vec::new();
            for threads in [1, 2, 3] {
                let mut labels = Vec::new();
                let mut feed = lanes(threads, order, false);
                for epoch in 0..3 {
                    let mut take = |pixels: &[u8], batch: &[i64]| {
                        let whole: Vec<u8> = batch.iter().flat_map(|n| n.to_le_bytes()).collect();
                        assert_eq!(pixels, whole);
                        labels.extend_from_slice(batch);
                        true
                    };
                    feed.epoch(epoch, &mut take).unwrap();
                }
                all.push(labels);
            }
            assert_eq!(all[0].len(), 120);
            assert!(all.iter().all(|labels| *labels == all[0]), "{order}");
        }
    }

    #[test]
    fn a_consumer_that_has_enough_stops_the_threads() {
        let mut feed = lanes(2, OrderName::Sequential, false);
        for epoch in 0..5 {
            let mut n = 0;
            let mut take = |_: &[u8], _: &[i64]| {
                n += 1;
                n < 3
            };
            feed.epoch(epoch, &mut take).unwrap();
            assert_eq!(n, 3);
        }
    }

    #[test]
    fn an_error_of_a_reader_reaches_the_consumer_in_its_place() {
        let mut seen = Vec::new();
        let mut take = |_: &[u8], labels: &[i64]| {
            seen.extend_from_slice(labels);
            true
        };
        let error = lanes(2, OrderName::Sequential, true).epoch(0, &mut take);
        assert!(error.unwrap_err().to_string().starts_with("sample 13"));
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
    }
}
