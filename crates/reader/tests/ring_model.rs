//! Tests the staging ring under many schedules of its threads. It uses the real arena, with models of the loader, a
//! device and the consumer. A slot is free, filled, ready, copied, and free again.
//!
//! The mirror and the events are small versions of those in `crates/cuda/src/staging`. The copy thread also does the
//! work of the reaper there: it releases slots. Shuttle runs all threads on a single one, decides at each lock which
//! one continues, and detects deadlocks.

#![cfg(test)]

/// The locks for `arena.rs`. They replace the library's `src/sync.rs`.
mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
}

#[path = "../src/arena.rs"]
#[expect(dead_code, unreachable_pub, reason = "the model uses only a part of the library")]
mod arena;

use std::collections::VecDeque;

use arena::{Arena, SlotRef};
use shuttle::thread;
use sync::{AtomicBool, Condvar, Mutex, Ordering};

const SLOTS: usize = 2;
const STEPS: u64 = 4;
const POISON: u8 = 0xDD;

/// The events: how many copies to each slot's mirror and how many reads of it were queued, and how many are done.
#[derive(Debug, Clone, Copy, Default)]
struct Events {
    uploads: u64,
    uploaded: u64,
    emits: u64,
    emitted: u64,
}

/// A queued copy.
struct Copy {
    slot: SlotRef,
    step: u64,
    /// Number of reads of the mirror that precede it.
    after: u64,
}

#[derive(Default)]
struct State {
    copies: VecDeque<Copy>,
    /// A queued read of a slot's mirror: the copy that precedes it, and the expected contents.
    readings: VecDeque<(usize, u64, u64)>,
    events: [Events; SLOTS],
    mirror: [u64; SLOTS],
    /// Batches that are ready for the consumer.
    ready: VecDeque<(SlotRef, u64)>,
    filled: u64,
    read: u64,
}

struct Ring {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

impl Ring {
    fn when<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(found) = ready(&mut state) {
                self.changed.notify_all();
                return found;
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    /// A thread of the loader. It fills slots in two pieces each, and passes them to the device and the consumer.
    fn load(&self, arena: &sync::Arc<Arena>) {
        loop {
            let Some(slot) = arena.take(&self.stop) else {
                return;
            };
            let Some(step) = self.when(|state| {
                state.filled += 1;
                Some((state.filled <= STEPS).then_some(state.filled))
            }) else {
                return;
            };
            let mut slot = slot;
            slot[..16].fill(POISON);
            let mut pieces = slot.split(&[8, 8]).unwrap();
            let mut second = pieces.pop().unwrap();
            let mut first = pieces.pop().unwrap();
            let other = thread::spawn(move || {
                second.copy_from_slice(&step.to_le_bytes());
                second.join()
            });
            first.copy_from_slice(&step.to_le_bytes());
            let mine = first.join();
            let slot = mine.xor(other.join().unwrap()).unwrap().freeze();
            self.when(|state| {
                let number = slot.number();
                state.events[number].uploads += 1;
                let after = state.events[number].emits;
                state.copies.push_back(Copy { slot: slot.clone(), step, after });
                state.ready.push_back((slot.clone(), step));
                Some(())
            });
        }
    }

    /// The copy stream. It makes copies in the order of the queue, each after earlier reads of the mirror.
    fn copy(&self) {
        for _ in 0..STEPS {
            let Copy { slot, step, .. } = self.when(|state| {
                let next = state.copies.front()?;
                let events = state.events[next.slot.number()];
                (events.emitted >= next.after).then(|| state.copies.pop_front())?
            });
            let number = slot.number();
            let halves = [&slot[..8], &slot[8..16]];
            let halves = halves.map(|half| u64::from_le_bytes(half.try_into().unwrap()));
            assert_eq!(halves, [step; 2], "a slot was written during its copy");
            self.when(|state| {
                state.mirror[number] = step;
                state.events[number].uploaded += 1;
                Some(())
            });
        }
    }

    /// The consumer. It queues a read of each batch's mirror and drops the batch immediately.
    fn consume(&self) {
        for _ in 0..STEPS {
            let (slot, step) = self.when(|state| state.ready.pop_front());
            self.when(|state| {
                let events = &mut state.events[slot.number()];
                events.emits += 1;
                let behind = events.uploads;
                state.readings.push_back((slot.number(), behind, step));
                Some(())
            });
        }
    }

    /// The consumer's stream. It reads mirrors in the order of the queue, after their copies.
    fn emit(&self) {
        for _ in 0..STEPS {
            self.when(|state| {
                let (number, behind, step) = *state.readings.front()?;
                if state.events[number].uploaded < behind {
                    return None;
                }
                assert_eq!(state.mirror[number], step, "a mirror was written too early");
                state.readings.pop_front();
                state.events[number].emitted += 1;
                state.read += 1;
                Some(())
            });
        }
    }
}

fn run() {
    let arena = Arena::new(SLOTS, 16).unwrap();
    let ring = sync::Arc::new(Ring { state: Mutex::default(), changed: Condvar::new(), stop: AtomicBool::new(false) });
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (ring, arena) = (ring.clone(), arena.clone());
        threads.push(thread::spawn(move || ring.load(&arena)));
    }
    for part in [Ring::copy, Ring::consume] {
        let ring = ring.clone();
        threads.push(thread::spawn(move || part(&ring)));
    }
    ring.emit();
    // Wake loaders that wait for a slot, as at the end of an epoch.
    ring.stop.store(true, Ordering::Release);
    arena.wake();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(arena.n_free(), SLOTS);
    assert_eq!(ring.state.lock().unwrap().read, STEPS);
}

#[test]
fn a_slot_goes_round_in_any_order_of_steps() {
    shuttle::check_random(run, 5000);
    shuttle::check_pct(run, 5000, 3);
}
