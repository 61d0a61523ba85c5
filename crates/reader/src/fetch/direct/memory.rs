//! The memory that an epoch reads into: an arena of buffers of equal size, and notifications when a buffer is free.
//!
//! Buffers that are borrowed without a copy belong to the user for an unlimited time. At most half of them may be
//! borrowed, so that reading can continue without them.

use packds_system::{lock, to_u64};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use packds_format::BlockItems;

use super::buffer::Buffer;
use crate::arena::Arena;
use crate::available::check_available;

/// Counts events that may have freed memory. An event between checking and waiting is not missed.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    pub(super) fn rings(&self) -> u64 {
        *lock(&self.rings)
    }

    pub(super) fn ring(&self) {
        let mut rings = lock(&self.rings);
        *rings = rings.wrapping_add(1);
        self.rung.notify_all();
    }

    /// Waits until the bell has rung more than `seen` times.
    pub(super) fn wait(&self, seen: u64) {
        let rings = lock(&self.rings);
        drop(self.rung.wait_while(rings, |rings| *rings == seen));
    }
}

/// Rings the bell when it is dropped.
#[derive(Debug)]
pub(super) struct Ring(pub(super) Arc<Bell>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// The memory of one epoch. The next epoch reuses it.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) arena: Arc<Arena>,
    pub(super) bell: Arc<Bell>,
    /// Number of buffers that the user holds.
    pinned: AtomicUsize,
    /// Number of bytes that decompressed blocks may still use outside the arena.
    decoded_left: AtomicU64,
    /// Memory of released blocks, for reuse.
    spare: Mutex<Vec<BlockItems>>,
}

impl Memory {
    pub(super) fn new(n_slots: usize, slot_bytes: usize, decoded_bytes: u64) -> io::Result<Self> {
        check_available(slot_bytes.saturating_mul(n_slots))?;
        Ok(Self {
            arena: Arena::new(n_slots, slot_bytes)?,
            bell: Arc::default(),
            pinned: AtomicUsize::new(0),
            decoded_left: AtomicU64::new(decoded_bytes),
            spare: Mutex::default(),
        })
    }

    pub(super) fn ring(&self) -> Ring {
        Ring(Arc::clone(&self.bell))
    }

    /// Memory for a block's items, reused if possible.
    pub(super) fn place(&self) -> BlockItems {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Keeps a block's items if the memory limit for decompressed blocks allows it.
    pub(super) fn keep(self: &Arc<Self>, items: BlockItems) -> Option<Block> {
        let bytes = to_u64(items.capacity());
        self.decoded_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).ok()?;
        let memory = Arc::clone(self);
        Some(Block { memory, bytes, items })
    }
}

/// A decompressed block. Its memory is reused after it is dropped.
#[derive(Debug)]
pub(super) struct Block {
    memory: Arc<Memory>,
    bytes: u64,
    pub(super) items: BlockItems,
}

impl Drop for Block {
    fn drop(&mut self) {
        let memory = &self.memory;
        lock(&memory.spare).push(std::mem::take(&mut self.items));
        memory.decoded_left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// A buffer that the user holds.
#[derive(Debug)]
pub(super) struct Pin {
    pub(super) buffer: Arc<Buffer>,
    memory: Arc<Memory>,
}

impl Pin {
    /// `None` if too many buffers are already borrowed.
    pub(super) fn new(buffer: &Arc<Buffer>, memory: &Arc<Memory>) -> Option<Arc<Self>> {
        let most = memory.arena.n_slots() / 2;
        memory
            .pinned
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |pinned| (pinned < most).then_some(pinned + 1))
            .ok()?;
        Some(Arc::new(Self { buffer: Arc::clone(buffer), memory: Arc::clone(memory) }))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.memory.pinned.fetch_sub(1, Ordering::AcqRel);
    }
}
