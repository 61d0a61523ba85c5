//! Memory for whole chunks and batches: one anonymous map, reserved once, cut into equal slots that are handed out and
//! come back.
//!
//! The map is aligned to 2 MiB and asks for huge pages, so that the kernel zeroes, pins and walks one page where it
//! would have to do so for 512. Memory is only taken when it is touched. Slots start at multiples of 4096, as reads
//! that bypass the page cache want it.
//!
//! # Why no two references clash
//!
//! All access to the map goes through three types, and each byte belongs to exactly one of them:
//!
//! - The numbers of free slots are in one list. [`Arena::take`] removes a number, and it is put back only when the one
//!   `Owner` that was made for it is dropped. So at any time a slot has at most one `Owner`.
//! - [`SlotMut`] holds the `Owner` itself and lends its bytes by the rules of `&self` and `&mut self`.
//! - [`SlotMut::split`] moves the `Owner` behind an `Arc` that only pieces hold. Their ranges do not overlap, and each
//!   piece lends its own range only. [`PieceMut::join`] makes a `SlotMut` again only from the last piece: then no other
//!   lends anything.
//! - [`SlotMut::freeze`] moves the `Owner` behind an `Arc` that only [`SlotRef`]s hold. They lend shared references and
//!   have no way back.
//!
//! Bytes are plain `u8` and the map starts as zeros, so every byte always has a value. The map lives as long as the
//! `Arc<Arena>` in each `Owner`.

use packds_system::to_usize;
use std::fs;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::OnceLock;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError};

/// Slots start at multiples of this and have a multiple of it.
pub const SLOT_ALIGN: usize = 4096;
/// The bytes of a huge page: the map starts at a multiple of it.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// NUMA nodes that a mask has room for.
const MOST_NODES: usize = 1024;

/// Equal slots of memory, reserved once. See the [module](self).
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    /// Where the first slot starts in the map.
    start: usize,
    n_slots: usize,
    slot_bytes: usize,
    /// The numbers of free slots; the one freed last is taken first, because its memory is the most likely to be cached.
    free: Mutex<Vec<usize>>,
    freed: Condvar,
    /// Where its memory is to lie.
    node: OnceLock<u32>,
}

impl Arena {
    /// Reserves `n_slots` slots of at least `slot_bytes` each. No memory is taken yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where there would be nothing in it or more than the address space has, or the
    /// system's reason.
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
            // Advice alone: with small pages everything works, only slower.
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

    /// Slots, free or not.
    #[must_use]
    pub const fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// Bytes of each slot, a multiple of [`SLOT_ALIGN`].
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Slots that nobody holds.
    #[must_use]
    pub fn n_free(&self) -> usize {
        self.lock().len()
    }

    /// The address of the first slot and the bytes of all slots, for whoever registers the memory with a device. To
    /// read or write it, take a slot.
    #[must_use]
    pub fn address(&self) -> (*const u8, usize) {
        let base = self.map.as_ptr().wrapping_add(self.start);
        (base, self.n_slots.saturating_mul(self.slot_bytes))
    }

    /// Asks that memory which is touched from now on lies on a NUMA node, where that has room. Once for each arena.
    ///
    /// # Errors
    /// The system's reason, for example that it forbids the call or has no such node: everything works then too, only slower.
    pub fn prefer_node(&self, node: u32) -> io::Result<()> {
        let mut nodes = [0_u64; MOST_NODES / 64];
        let number = to_usize(node);
        let word = nodes.get_mut(number / 64).ok_or_else(|| {
            let text = format!("NUMA node {node} is beyond the {MOST_NODES} that are known");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        *word = 1 << (number % 64);
        let (base, len) = self.address();
        // SAFETY: the range is whole pages of the arena's own map, whose bytes the call leaves as they are; the mask has as
        // many bits as are told.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                base,
                len,
                libc::MPOL_PREFERRED,
                nodes.as_ptr(),
                MOST_NODES + 1,
                0,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = self.node.set(node);
        Ok(())
    }

    /// The NUMA node that its memory is to lie on; none where nobody asked, or the system refused.
    #[must_use]
    pub fn node(&self) -> Option<u32> {
        self.node.get().copied()
    }

    /// A free slot, if there is one. It holds whatever was last written to it.
    #[must_use]
    pub fn try_take(self: &Arc<Self>) -> Option<SlotMut> {
        let number = self.lock().pop()?;
        Some(self.slot(number))
    }

    /// Waits for a free slot; none once `stop` is true. Whoever sets `stop` then calls [`wake`](Self::wake).
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
            free = self
                .freed
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes everyone who waits in [`take`](Self::take) look at their `stop` again.
    pub fn wake(&self) {
        // Taken so that nobody is between looking at `stop` and waiting.
        let _free = self.lock();
        self.freed.notify_all();
    }

    /// Bytes of the arena that lie in huge pages now; 0 where the system does not say. Reads a file of the system's with
    /// a line for every page attribute of every map: for reports, not for every step.
    #[must_use]
    pub fn huge_page_bytes(&self) -> u64 {
        let first = self.map.as_ptr().addr();
        let range = first..first.saturating_add(self.map.len());
        fs::read_to_string("/proc/self/smaps").map_or(0, |smaps| huge_bytes_in(&smaps, &range))
    }

    fn slot(self: &Arc<Self>, number: usize) -> SlotMut {
        SlotMut {
            owner: Owner {
                arena: Arc::clone(self),
                number,
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        // A list of numbers is whole after every single operation.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one right to a slot's bytes. Dropping it frees the slot.
#[derive(Debug)]
struct Owner {
    arena: Arc<Arena>,
    number: usize,
}

impl Owner {
    /// Where the slot starts in the map.
    fn offset(&self) -> usize {
        // At most the length of the map, which was computed without overflow.
        self.arena.start + self.number * self.arena.slot_bytes
    }

    /// The slot's first byte.
    fn base(&self) -> *mut u8 {
        self.arena.map.as_mut_ptr().wrapping_add(self.offset())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.arena.lock().push(self.number);
        self.arena.freed.notify_one();
    }
}

/// A slot that nobody else can see: `&mut [u8]`.
#[derive(Debug)]
pub struct SlotMut {
    owner: Owner,
}

impl SlotMut {
    /// The slot's number in its arena, from 0.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.owner.number
    }

    /// Cuts the slot into pieces for several threads, from its first byte on. Each dereferences to `&mut [u8]`; what no
    /// piece covers is nobody's until they are joined. None, and the slot is free again, where the pieces are longer
    /// than the slot or there are none.
    #[must_use]
    pub fn split(self, lens: &[usize]) -> Option<Vec<PieceMut>> {
        let all = lens
            .iter()
            .try_fold(0_usize, |sum, len| sum.checked_add(*len));
        if lens.is_empty() || all.is_none_or(|all| all > self.owner.arena.slot_bytes) {
            return None;
        }
        let owner = Arc::new(self.owner);
        let mut end = 0;
        let piece = |len: &usize| {
            let start = end;
            end += *len;
            PieceMut {
                owner: Arc::clone(&owner),
                range: start..end,
            }
        };
        Some(lens.iter().map(piece).collect())
    }

    /// Makes the slot read-only and shared. It is free again when the last reference is dropped.
    #[must_use]
    pub fn freeze(self) -> SlotRef {
        SlotRef {
            owner: Arc::new(self.owner),
        }
    }

    /// Gives the slot's memory back to the system until it is written again; its bytes are then anything. Not for memory
    /// that is registered with a device or pinned otherwise.
    pub fn discard(&mut self) {
        if cfg!(miri) {
            return;
        }
        let (offset, len) = (self.owner.offset(), self.owner.arena.slot_bytes);
        let map = &self.owner.arena.map;
        // SAFETY: the pages lie in the map, are private and anonymous, and turn into zeros. Only this slot's bytes are
        // in them, since slots start and end at multiples of a page, and `&mut self` is the only reference to these.
        let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, len) };
    }
}

impl Deref for SlotMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the slot's bytes lie in the map, which the owner keeps, are always initialised, and nobody else has
        // the owner, so nobody writes to them while `self` is borrowed. Their number fits `isize`.
        unsafe { slice::from_raw_parts(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}

impl DerefMut for SlotMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively, so there is no other reference at all.
        unsafe { slice::from_raw_parts_mut(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}

/// A part of a slot that nobody else can see: `&mut [u8]`.
#[derive(Debug)]
pub struct PieceMut {
    owner: Arc<Owner>,
    /// Disjoint from those of all other pieces with this owner, and within the slot.
    range: Range<usize>,
}

impl PieceMut {
    /// Gives this piece up; the one who gives up the last one gets the whole slot.
    #[must_use]
    pub fn join(self) -> Option<SlotMut> {
        Arc::into_inner(self.owner).map(|owner| SlotMut { owner })
    }
}

impl Deref for PieceMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let base = self.owner.base().wrapping_add(self.range.start);
        // SAFETY: the range lies in the slot, so in the map, which the owner keeps; its bytes are initialised; no other
        // piece covers them, and there is no `SlotMut` or `SlotRef` as long as this piece shares the owner.
        unsafe { slice::from_raw_parts(base, self.range.len()) }
    }
}

impl DerefMut for PieceMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        let base = self.owner.base().wrapping_add(self.range.start);
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(base, self.range.len()) }
    }
}

/// A slot that nobody writes to any more: `&[u8]`, shared.
#[derive(Debug, Clone)]
pub struct SlotRef {
    owner: Arc<Owner>,
}

impl SlotRef {
    /// The slot's number in its arena, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.owner.number
    }
}

impl Deref for SlotRef {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the slot's bytes lie in the map, which the owner keeps, and are initialised; the owner was moved here
        // from a `SlotMut`, and nothing makes a writer from a `SlotRef`.
        unsafe { slice::from_raw_parts(self.owner.base(), self.owner.arena.slot_bytes) }
    }
}

/// The `AnonHugePages` of all maps of `smaps` that start within `range`.
pub(crate) fn huge_bytes_in(smaps: &str, range: &Range<usize>) -> u64 {
    let mut inside = false;
    let mut kilobytes = 0_u64;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "AnonHugePages:" && inside {
            kilobytes += words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if let Some((from, _)) = first.split_once('-') {
            inside = usize::from_str_radix(from, 16).is_ok_and(|from| range.contains(&from));
        }
    }
    kilobytes.saturating_mul(1024)
}
