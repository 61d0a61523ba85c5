//! Memory for whole chunks and batches: one anonymous mapping, reserved once and divided into slots of equal size that
//! are reused.
//!
//! The mapping is aligned to 2 MiB and requests huge pages, so that the kernel zeroes, pins and walks one page instead
//! of 512 pages. Memory is allocated on first touch. Slots start at multiples of 4096, as required by reads that bypass
//! the page cache.
//!
//! # Why references never conflict
//!
//! Every access to the mapping goes through three types, and each byte is accessible through at most one of them at a
//! time:
//!
//! - The numbers of free slots are in one list. [`Arena::take`] removes a number. The number is put back only when
//!   the single `Owner` that was made for it is dropped. So a slot has at most one `Owner` at any time.
//! - [`SlotMut`] holds the `Owner` itself and lends its bytes by the rules of `&self` and `&mut self`.
//! - [`SlotMut::split`] moves the `Owner` into an `Arc` that only pieces hold. Their ranges do not overlap, and each
//!   piece only lends its own range. [`PieceMut::join`] makes a `SlotMut` again only from the last piece, when there
//!   are no other borrowers.
//! - [`SlotMut::freeze`] moves the `Owner` into an `Arc` that only [`SlotRef`]s hold. They lend shared references and
//!   cannot be converted back.
//!
//! Bytes are plain `u8` and the mapping starts as zeros, so every byte is always initialized. The mapping lives as long
//! as the `Arc<Arena>` in each `Owner`.

use packds_system::to_usize;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::OnceLock;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError};

/// Alignment and granularity of slots.
pub const SLOT_ALIGN: usize = 4096;
/// Size of a huge page. The mapping is aligned to it.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Maximum number of NUMA nodes.
const MOST_NODES: usize = 1024;

/// Slots of equal size in memory that is reserved once. See the [module](self).
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    /// Offset of the first slot in the mapping.
    start: usize,
    n_slots: usize,
    slot_bytes: usize,
    /// The numbers of free slots. The slot that was freed last is reused first, because its memory is most likely still
    /// cached.
    free: Mutex<Vec<usize>>,
    freed: Condvar,
    /// The NUMA node that was requested for the memory.
    node: OnceLock<u32>,
}

impl Arena {
    /// Reserves `n_slots` slots of at least `slot_bytes` each. Memory is allocated later, on first touch.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the size is zero or exceeds the address space, or the system error.
    pub fn new(n_slots: usize, slot_bytes: usize) -> io::Result<Arc<Self>> {
        let sizes = slot_bytes
            .checked_next_multiple_of(SLOT_ALIGN)
            .filter(|slot| *slot > 0 && n_slots > 0)
            .and_then(|slot| Some((slot, slot.checked_mul(n_slots)?)))
            .and_then(|(slot, all)| {
                let all = all.checked_next_multiple_of(HUGE_PAGE)?;
                Some((slot, all, all.checked_add(HUGE_PAGE)?))
            })
            .filter(|(.., reserved)| isize::try_from(*reserved).is_ok());
        let (slot_bytes, len, reserved) = sizes.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{n_slots} slots of {slot_bytes} bytes cannot be reserved"),
            )
        })?;
        let mut options = MmapOptions::new();
        options.len(reserved);
        if !cfg!(miri) {
            options.no_reserve_swap();
        }
        let map = MmapRaw::from(options.map_anon()?);
        let start = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        if !cfg!(miri) {
            // This is only a hint. If it fails, the pages are small and access is slower.
            let _ = map.advise_range(Advice::HugePage, start, len);
        }
        Ok(Arc::new(Self {
            map,
            start,
            n_slots,
            slot_bytes,
            free: Mutex::new((0..n_slots).rev().collect()),
            freed: Condvar::new(),
            node: OnceLock::new(),
        }))
    }

    /// Number of slots, free or not.
    pub const fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// Size of each slot, a multiple of [`SLOT_ALIGN`].
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Number of free slots.
    pub fn n_free(&self) -> usize {
        self.lock().len()
    }

    /// The address of the first slot and the size of all slots, to register them with a device. To read or write, take
    /// a slot.
    pub fn address(&self) -> (*const u8, usize) {
        let base = self.map.as_ptr().wrapping_add(self.start);
        (base, self.n_slots.saturating_mul(self.slot_bytes))
    }

    /// Requests that memory touched from now on be placed on a NUMA node, if the node has space. Call it once per
    /// arena.
    ///
    /// # Errors
    /// The system error, for example if the call is not permitted or the node does not exist. The arena still works,
    /// but more slowly.
    pub fn prefer_node(&self, node: u32) -> io::Result<()> {
        let mut nodes = [0_u64; MOST_NODES / 64];
        let number = to_usize(node);
        let word = nodes.get_mut(number / 64).ok_or_else(|| {
            let text = format!("expected a NUMA node below {MOST_NODES}, found {node}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        *word = 1 << (number % 64);
        let (base, len) = self.address();
        // SAFETY: the range consists of whole pages of the arena's own mapping, and the call does not change their
        // bytes. The kernel reads one bit less than `MOST_NODES + 1`, which is the size of the mask.
        let result = unsafe {
            libc::syscall(libc::SYS_mbind, base, len, libc::MPOL_PREFERRED, nodes.as_ptr(), MOST_NODES + 1, 0)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // If this is a second call, the first node is kept.
        let _ = self.node.set(node);
        Ok(())
    }

    /// The requested NUMA node. `None` if it was not requested, or the system refused.
    pub fn node(&self) -> Option<u32> {
        self.node.get().copied()
    }

    /// Takes a free slot, if there is one. It still contains the bytes that were last written to it.
    #[must_use]
    pub fn try_take(self: &Arc<Self>) -> Option<SlotMut> {
        let number = self.lock().pop()?;
        Some(self.slot(number))
    }

    /// Waits for a free slot. `None` once `stop` is true. After setting `stop`, call [`wake`](Self::wake).
    #[must_use]
    pub fn take(self: &Arc<Self>, stop: &AtomicBool) -> Option<SlotMut> {
        let mut free = self.lock();
        loop {
            if stop.load(Ordering::Acquire) {
                return None;
            }
            if let Some(number) = free.pop() {
                drop(free);
                return Some(self.slot(number));
            }
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes all threads that wait in [`take`](Self::take) check `stop` again.
    pub fn wake(&self) {
        // The lock ensures that no thread is between checking `stop` and waiting.
        let _free = self.lock();
        self.freed.notify_all();
    }

    fn slot(self: &Arc<Self>, number: usize) -> SlotMut {
        SlotMut { owner: Owner { arena: Arc::clone(self), number } }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        // The list of slot numbers is consistent after every single operation.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ownership of a slot. Dropping it frees the slot.
#[derive(Debug)]
struct Owner {
    arena: Arc<Arena>,
    number: usize,
}

impl Owner {
    /// The slot's first byte.
    fn base(&self) -> *mut u8 {
        // No overflow: the offset is at most the length of the mapping.
        let offset = self.arena.start + self.number * self.arena.slot_bytes;
        self.arena.map.as_mut_ptr().wrapping_add(offset)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.arena.lock().push(self.number);
        self.arena.freed.notify_one();
    }
}

/// Exclusive access to a slot, as `&mut [u8]`.
#[derive(Debug)]
pub struct SlotMut {
    owner: Owner,
}

impl SlotMut {
    /// The slot's number in its arena, counted from 0.
    pub const fn number(&self) -> usize {
        self.owner.number
    }

    /// Divides the slot into pieces of these lengths for several threads, starting at its first byte. Each piece
    /// dereferences to `&mut [u8]`. Bytes outside all pieces are inaccessible until the pieces are joined. If `lens` is
    /// empty or its sum exceeds the slot, this frees the slot and returns `None`.
    #[must_use]
    pub fn split(self, lens: &[usize]) -> Option<Vec<PieceMut>> {
        let all = lens.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
        if lens.is_empty() || all.is_none_or(|all| all > self.owner.arena.slot_bytes) {
            return None;
        }
        let owner = Arc::new(self.owner);
        let mut end = 0;
        let piece = |len: &usize| {
            let start = end;
            end += *len;
            PieceMut { owner: Arc::clone(&owner), range: start..end }
        };
        Some(lens.iter().map(piece).collect())
    }

    /// Makes the slot read-only and shared. It is free again when the last reference is dropped.
    #[must_use]
    pub fn freeze(self) -> SlotRef {
        SlotRef { owner: Arc::new(self.owner) }
    }
}

impl Deref for SlotMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the slot's bytes are in the mapping, which the owner keeps, and are always initialized. No other code
        // has the owner, so no other code writes to them while `self` is borrowed. Their number fits in `isize`.
        unsafe { slice::from_raw_parts(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}

impl DerefMut for SlotMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`. In addition, `self` is borrowed exclusively, so there is no other reference.
        unsafe { slice::from_raw_parts_mut(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}

/// Exclusive access to a part of a slot, as `&mut [u8]`.
#[derive(Debug)]
pub struct PieceMut {
    owner: Arc<Owner>,
    /// Its range in the slot. It does not overlap other pieces with this owner.
    range: Range<usize>,
}

impl PieceMut {
    /// Gives up this piece. The last caller gets the whole slot.
    #[must_use]
    pub fn join(self) -> Option<SlotMut> {
        Arc::into_inner(self.owner).map(|owner| SlotMut { owner })
    }
}

impl Deref for PieceMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let base = self.owner.base().wrapping_add(self.range.start);
        // SAFETY: the range is in the slot, so it is in the mapping, which the owner keeps. Its bytes are initialized.
        // No other piece covers them, and there is no `SlotMut` or `SlotRef` as long as this piece shares the owner.
        unsafe { slice::from_raw_parts(base, self.range.len()) }
    }
}

impl DerefMut for PieceMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        let base = self.owner.base().wrapping_add(self.range.start);
        // SAFETY: as in `deref`. In addition, `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(base, self.range.len()) }
    }
}

/// Shared, read-only access to a slot, as `&[u8]`.
#[derive(Debug, Clone)]
pub struct SlotRef {
    owner: Arc<Owner>,
}

impl SlotRef {
    /// The slot's number in its arena, counted from 0.
    pub fn number(&self) -> usize {
        self.owner.number
    }
}

impl Deref for SlotRef {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the slot's bytes are in the mapping, which the owner keeps, and are initialized. The owner was moved
        // here from a `SlotMut`, and nothing makes a writer from a `SlotRef`.
        unsafe { slice::from_raw_parts(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}
