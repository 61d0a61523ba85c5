//! The memory that one epoch at a time reads into: an arena of buffers of one size, and who is told when one is free.
//!
//! Buffers that were handed out without a copy belong to the user for as long as the user likes. At most half of them
//! may be: reading must go on without them.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::buffer::Buffer;
use crate::arena::Arena;

/// Counts events that may have freed memory, so that none is missed between looking and waiting.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    pub(super) fn rings(&self) -> u64 {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ring(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        *rings = rings.wrapping_add(1);
        self.rung.notify_all();
    }

    /// Waits until it has rung after `seen` was asked for.
    pub(super) fn wait(&self, seen: u64) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.rung.wait_while(rings, |rings| *rings == seen));
    }
}

/// Rings when it is dropped.
#[derive(Debug)]
pub(super) struct Ring(pub(super) Arc<Bell>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// One epoch's memory, used again by the next epoch.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) arena: Arc<Arena>,
    pub(super) bell: Arc<Bell>,
    /// Buffers that the user has.
    pinned: AtomicUsize,
    /// Bytes that decompressed blocks may still take, outside the arena.
    decoded_left: AtomicU64,
}

impl Memory {
    pub(super) fn new(n_slots: usize, slot_bytes: usize, decoded_bytes: u64) -> io::Result<Self> {
        Ok(Self {
            arena: Arena::new(n_slots, slot_bytes)?,
            bell: Arc::default(),
            pinned: AtomicUsize::new(0),
            decoded_left: AtomicU64::new(decoded_bytes),
        })
    }

    pub(super) fn ring(&self) -> Ring {
        Ring(Arc::clone(&self.bell))
    }

    /// Allows `bytes` of decompressed items, if there is room for them.
    pub(super) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reserved> {
        let bytes = u64::try_from(bytes).ok()?;
        self.decoded_left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(bytes)
            })
            .ok()?;
        let memory = Arc::clone(self);
        Some(Reserved { memory, bytes })
    }
}

/// Room for decompressed items.
#[derive(Debug)]
pub(super) struct Reserved {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory
            .decoded_left
            .fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// A buffer that the user has.
#[derive(Debug)]
pub(super) struct Pin {
    pub(super) buffer: Arc<Buffer>,
    memory: Arc<Memory>,
}

impl Pin {
    /// None where too many buffers are out already.
    pub(super) fn new(buffer: &Arc<Buffer>, memory: &Arc<Memory>) -> Option<Arc<Self>> {
        let most = memory.arena.n_slots() / 2;
        memory
            .pinned
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |pinned| {
                (pinned < most).then_some(pinned + 1)
            })
            .ok()?;
        Some(Arc::new(Self {
            buffer: Arc::clone(buffer),
            memory: Arc::clone(memory),
        }))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.memory.pinned.fetch_sub(1, Ordering::AcqRel);
    }
}
