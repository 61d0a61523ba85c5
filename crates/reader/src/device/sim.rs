//! A simulated device. It delays copies, overwrites recycled memory and records every slot that changes while it is
//! read.

use packds_system::{lock, nanos, wait};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use packds_format::mix64;

use super::{Device, DeviceError, Placement, Receiver, Transfer};
use crate::Pack;
use crate::arena::{SlotMut, SlotRef};

/// The fill value of recycled memory. It makes late reads visible.
const POISON: u8 = 0xDD;

/// A violation of the rules of the staging ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A slot was recycled while a transfer was still reading it.
    RecycledEarly {
        /// The slot.
        slot: usize,
    },
    /// A slot's bytes changed between the start and the end of a transfer.
    ChangedInFlight {
        /// The slot.
        slot: usize,
    },
}

/// A device for tests. A thread takes the place of its copy engine.
pub struct SimDevice {
    shared: Arc<Shared>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
    seed: u64,
    longest: Duration,
}

struct Shared {
    reading: Mutex<BTreeSet<usize>>,
    violations: Mutex<Vec<Violation>>,
    /// The device's own memory. It contains the bytes of the last transfer.
    memory: Mutex<Vec<u8>>,
}

struct Job {
    slot: SlotRef,
    len: usize,
    delay: Duration,
    checksum: u32,
    transfer: Arc<SimTransfer>,
}

#[derive(Debug, Default)]
struct SimTransfer {
    done: Mutex<bool>,
    wake: Condvar,
}

impl SimDevice {
    /// A device with transfers that take up to `longest`, randomized by `seed`.
    pub fn new(seed: u64, longest: Duration) -> Self {
        let shared =
            Arc::new(Shared { reading: Mutex::default(), violations: Mutex::default(), memory: Mutex::default() });
        let (sender, receiver) = channel::<Job>();
        let engine = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for job in receiver {
                engine.copy(job);
            }
        });
        Self { shared, jobs: Mutex::new(Some(sender)), thread: Some(thread), seed, longest }
    }

    /// The violations so far. Empty if the ring is correct.
    pub fn violations(&self) -> Vec<Violation> {
        lock(&self.shared.violations).clone()
    }

    /// The bytes of the last transfer.
    pub fn memory(&self) -> Vec<u8> {
        lock(&self.shared.memory).clone()
    }
}

impl Shared {
    fn copy(&self, job: Job) {
        thread::sleep(job.delay);
        let bytes = job.slot.get(..job.len).unwrap_or(&[]);
        lock(&self.memory).clear();
        lock(&self.memory).extend_from_slice(bytes);
        let index = job.slot.number();
        if packds_format::crc32c(bytes) != job.checksum {
            lock(&self.violations).push(Violation::ChangedInFlight { slot: index });
        }
        lock(&self.reading).remove(&index);
        drop(job.slot);
        *lock(&job.transfer.done) = true;
        job.transfer.wake.notify_all();
    }
}

impl Device for SimDevice {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(self)
    }
}

impl Receiver for SimDevice {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn recycle(&self, slot: &mut SlotMut) {
        if lock(&self.shared.reading).contains(&slot.number()) {
            lock(&self.shared.violations).push(Violation::RecycledEarly { slot: slot.number() });
        }
        slot.fill(POISON);
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        let index = slot.number();
        let transfer = Arc::new(SimTransfer::default());
        let checksum = packds_format::crc32c(slot.get(..len).unwrap_or(&[]));
        let draw = mix64(self.seed ^ u64::from(checksum));
        let micros = nanos(self.longest) / 1000;
        let delay = Duration::from_micros(draw % micros.saturating_add(1));
        lock(&self.shared.reading).insert(index);
        let job = Job { slot, len, delay, checksum, transfer: Arc::clone(&transfer) };
        let sent = lock(&self.jobs).as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(DeviceError { device: self.name(), reason: "its thread has ended".to_owned() });
        }
        Ok(Box::new(ArcTransfer(transfer)))
    }
}

impl Drop for SimDevice {
    fn drop(&mut self) {
        *lock(&self.jobs) = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread does not need to be reported here, because transfers would already have hung.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SimDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDevice").field("seed", &self.seed).field("longest", &self.longest).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct ArcTransfer(Arc<SimTransfer>);

impl Transfer for ArcTransfer {
    fn is_done(&self) -> bool {
        *lock(&self.0.done)
    }

    fn wait(&self) {
        let mut done = lock(&self.0.done);
        while !*done {
            done = wait(&self.0.wake, done);
        }
    }
}
