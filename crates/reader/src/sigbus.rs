//! Surviving SIGBUS: what a memory map raises where its file has become shorter or its disk fails.
//!
//! A process has one handler for this signal, so there is one here. Where the address lies in memory that has a guard, the
//! handler puts pages of zeros there, counts them, and lets the reading go on: the reader asks the guard afterwards, and
//! refuses what it read. All other signals go to the handler that was there before, or do what they would have done
//! without this one.
//!
//! Other code may install a handler of its own later, as PyTorch does in its workers and Python's `faulthandler` when it
//! is enabled. So [`protect`] looks, before memory is read, whether the handler in place is this one, and puts it back in
//! front if not: when a pack is opened, in every step of a loader, and for each sample or chunk that is looked at. A handler
//! inherited by a forked process is found there in the same way.
//!
//! Nothing here is for other signals, and nothing undoes the loss: memory that was lost stays lost until it is unmapped.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{c_int, c_void, siginfo_t};

/// Guards of one block of the table.
const BLOCK_SLOTS: usize = 64;

/// A range of memory that may be lost. The handler reads it while others are changed, so that all of it is atomic.
#[derive(Debug)]
struct Slot {
    /// Odd while the range is being changed.
    version: AtomicUsize,
    /// The first address; 0 while the slot is free.
    start: AtomicUsize,
    /// One past the last address.
    end: AtomicUsize,
    /// Times that pages were lost.
    lost: AtomicU64,
    /// The address of the first loss.
    first_lost: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Self {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            first_lost: AtomicUsize::new(0),
        }
    }

    /// The range, if it is guarded. Who faults in a range keeps it guarded meanwhile: a slot that is just being changed
    /// is another's.
    fn range(&self) -> Option<(usize, usize)> {
        let before = self.version.load(Ordering::Acquire);
        let range = (
            self.start.load(Ordering::Acquire),
            self.end.load(Ordering::Acquire),
        );
        let same = self.version.load(Ordering::Acquire) == before;
        (before.is_multiple_of(2) && same && range.0 != 0).then_some(range)
    }

    /// Called under the lock of the table.
    fn set(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

/// Slots, and more of them where these do not suffice. Blocks are never freed: the handler may be looking at them.
struct Block {
    slots: [Slot; BLOCK_SLOTS],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; BLOCK_SLOTS],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&'static self) -> Option<&'static Self> {
        // SAFETY: the pointer is null or comes from `Box::leak` in `grow`, so it is aligned, initialized and lives for
        // ever, and nobody has a mutable reference to it. Its store is a release, this load an acquire.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// A further block. Called under the lock of the table.
    fn grow(&'static self) -> &'static Self {
        let block: &'static mut Self = Box::leak(Box::new(Self::new()));
        let block = ptr::from_mut(block);
        self.next.store(block, Ordering::Release);
        // SAFETY: as in `next`; the mutable reference has ended where the pointer was made.
        unsafe { &*block }
    }
}

static TABLE: Block = Block::new();
static LOCK: Mutex<()> = Mutex::new(());
/// The page size, which the handler may not ask for.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// What was done about SIGBUS before this handler first came: null until it is known. Never freed.
static FIRST: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// What was done about it before the handler was put back in front: of several handlers the one installed last. Never freed.
static LATEST: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Threads in which a signal is being passed on; 0 is none.
static PASSING: [AtomicI32; 16] = [const { AtomicI32::new(0) }; 16];

/// Keeps a range of mapped memory readable until it is dropped: drop it before the memory is unmapped.
#[derive(Debug)]
pub(crate) struct Guard {
    slot: &'static Slot,
    start: usize,
}

impl Guard {
    /// Guards `bytes`, which are mapped from a file and start at a page.
    ///
    /// # Safety
    /// - All pages that `bytes` touches must be a mapping of their own, of which nothing but zeros may be seen once the
    ///   file behind it cannot be read.
    /// - The guard must be dropped before any of it is unmapped.
    pub(crate) unsafe fn new(bytes: &[u8]) -> Self {
        let start = bytes.as_ptr().expose_provenance();
        // Where the handler cannot be had, who reads compares the file's length before.
        let _ = protect();
        let _table = lock();
        let mut block = &TABLE;
        let slot = loop {
            let free = |slot: &&Slot| slot.start.load(Ordering::Relaxed) == 0;
            if let Some(slot) = block.slots.iter().find(free) {
                break slot;
            }
            block = block.next().unwrap_or_else(|| block.grow());
        };
        slot.lost.store(0, Ordering::Relaxed);
        slot.first_lost.store(0, Ordering::Relaxed);
        slot.set(start, start.saturating_add(bytes.len()));
        Self { slot, start }
    }

    /// Where the first page was lost, from the first byte; none where all that was read until now was the file's.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        // The count is raised before zeros can be seen. Whoever saw them, in any thread, sees it here.
        fence(Ordering::SeqCst);
        if self.slot.lost.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let address = self.slot.first_lost.load(Ordering::SeqCst);
        Some(address.saturating_sub(self.start))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _table = lock();
        self.slot.set(0, 0);
    }
}

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to it that the handler is in front of all others. One system call where it is; takes no lock, so that a process that was
/// forked while another thread had one can call it.
///
/// # Errors
/// The system's, where there is no handling this signal.
pub(crate) fn protect() -> io::Result<()> {
    #[cfg(test)]
    if tests::IS_REFUSED.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let current = exchange(None)?;
    if is_ours(&current) {
        return Ok(());
    }
    // SAFETY: `sysconf` takes any number and touches no memory of ours.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
    PAGE.store(page, Ordering::Release);
    // Known before the handler can be called: the signal may come in between.
    remember(&current);
    let mut ours = default_action();
    ours.sa_sigaction = address();
    // On the alternate stack where the thread has one: a foreign SIGBUS may be a stack that has run out.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let before = exchange(Some(&ours))?;
    // Another thread may have come first, or another handler.
    if !is_ours(&before) {
        remember(&before);
    }
    Ok(())
}

fn address() -> usize {
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = handle;
    handler as usize
}

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == address()
}

/// Keeps an action to pass signals on to. A handler that is installed again and again takes no memory each time.
fn remember(action: &libc::sigaction) {
    // SAFETY: null or from `Box::into_raw` below, never freed and never written again.
    let latest = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
    let same = |known: &libc::sigaction| {
        (known.sa_sigaction, known.sa_flags) == (action.sa_sigaction, action.sa_flags)
    };
    if latest.is_some_and(same) {
        return;
    }
    let kept = Box::into_raw(Box::new(*action));
    // The first one is also the latest.
    let null = ptr::null_mut();
    let _ = FIRST.compare_exchange(null, kept, Ordering::AcqRel, Ordering::Acquire);
    LATEST.store(kept, Ordering::Release);
}

/// The action of a signal: what it was, and `new` from now on.
fn exchange(new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = default_action();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or an action whose handler has the signature that its flags say and does only what a handler
    // may (`handle` and what it calls say why); `old` is writable. Neither is used after the call.
    let result = unsafe { libc::sigaction(libc::SIGBUS, new, &raw mut old) };
    if result == 0 {
        Ok(old)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all fields are numbers, sets of bits and an optional function, for which zeros are valid. They mean: the
    // default action, no flags, no signals blocked.
    unsafe { mem::zeroed() }
}

/// The handler. It may only do what is safe in a signal: read and write atomics, and system calls. It allocates nothing,
/// takes no lock and cannot panic.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel calls a handler with SA_SIGINFO with a valid siginfo, which nobody else has.
    let fault = unsafe { &*info };
    // Only a fault has an address: numbers up to 0 are signals that were sent.
    if fault.si_code > 0 {
        // SAFETY: of a fault the address is the field that is set.
        let address = unsafe { fault.si_addr() }.addr();
        if replace(address) {
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Puts zeros over the page at `address`, where that is guarded.
fn replace(address: usize) -> bool {
    let page = PAGE.load(Ordering::Acquire);
    let mut block = Some(&TABLE);
    while let Some(current) = block {
        for slot in &current.slots {
            let Some((start, end)) = slot.range() else {
                continue;
            };
            if !(start..end).contains(&address) {
                continue;
            }
            // Ranges start at a page, and the page size is a power of two.
            let first = address & !page.wrapping_sub(1);
            let _ =
                slot.first_lost
                    .compare_exchange(0, address, Ordering::SeqCst, Ordering::SeqCst);
            slot.lost.fetch_add(1, Ordering::SeqCst);
            // A page at a time, because the rest may be fine. Where the process has too many mappings for that, all the
            // rest: it makes one of many.
            return map_zeros(first, page) || map_zeros(first, end.saturating_sub(first));
        }
        block = current.next();
    }
    false
}

/// Maps pages of zeros over what is mapped at `address`, the start of a page; says whether that went well.
fn map_zeros(address: usize, len: usize) -> bool {
    let errno = errno();
    // SAFETY: the location is this thread's own and always valid.
    let saved = unsafe { *errno };
    // SAFETY: the range lies in pages of a guarded mapping, whose owner allows that they show zeros (`Guard::new`), and
    // which stays mapped while a thread reads it. What is there before and after is readable and not writable.
    let mapped = unsafe {
        libc::mmap(
            ptr::with_exposed_provenance_mut(address),
            len,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    // SAFETY: as above. The code that was interrupted must find the value that it left.
    unsafe { *errno = saved };
    mapped != libc::MAP_FAILED
}

fn errno() -> *mut c_int {
    // SAFETY: has no conditions.
    unsafe { libc::__errno_location() }
}

/// Marks this thread as one that passes a signal on, until it is dropped.
struct Passing(&'static AtomicI32);

impl Passing {
    /// None where this thread does so already, or too many do.
    fn begin() -> Option<Self> {
        // SAFETY: has no conditions, and may be called in a signal.
        let thread = unsafe { libc::gettid() };
        let is_ours = |slot: &AtomicI32| slot.load(Ordering::Acquire) == thread;
        if PASSING.iter().any(is_ours) {
            return None;
        }
        let take = |slot: &&AtomicI32| {
            let taken = slot.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok()
        };
        PASSING.iter().find(take).map(Self)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The action to pass a signal on to: that of the handler that came last. It may pass on to this one, which was in front when it
/// came, by a call or by raising the signal again as `faulthandler` does; then it is that of the handler that came first.
fn next_action(
    info: *mut siginfo_t,
    passing: Option<&Passing>,
) -> Option<&'static libc::sigaction> {
    // SAFETY: as in `handle`.
    let fault = unsafe { &*info };
    // SAFETY: has no conditions, and may be called in a signal.
    let own = unsafe { libc::getpid() };
    // SAFETY: the sender is set for a signal that was sent to a thread.
    let is_raised = fault.si_code == libc::SI_TKILL && unsafe { fault.si_pid() } == own;
    let latest = passing.filter(|_| !is_raised).map(|_| &LATEST);
    // SAFETY: null or from `Box::into_raw` in `remember`, never freed and never written again.
    unsafe { latest.unwrap_or(&FIRST).load(Ordering::Acquire).as_ref() }
}

/// Does what would have been done without this handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let passing = Passing::begin();
    let previous = next_action(info, passing.as_ref());
    let (action, flags) = previous.map_or((libc::SIG_DFL, 0), |p| (p.sa_sigaction, p.sa_flags));
    // SAFETY: as in `handle`.
    let sent = unsafe { (*info).si_code } <= 0;
    if action == libc::SIG_DFL || (action == libc::SIG_IGN && !sent) {
        // The default ends the process: by the same fault again on return, or by the same signal sent again. A fault
        // cannot be ignored.
        let _ = exchange(Some(&default_action()));
        if sent {
            // SAFETY: has no conditions; the signal is blocked until this handler returns.
            unsafe { libc::raise(signal) };
        }
    } else if action == libc::SIG_IGN {
        // Ignored as before.
    } else if flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the flag says that the number is a function of this signature, and it is neither of the two that are
        // none. Whoever installed it did so for this signal.
        let handler: Handler = unsafe { mem::transmute(action) };
        handler(signal, info, context);
    } else {
        // SAFETY: as above, for a handler without the flag.
        let handler: extern "C" fn(c_int) = unsafe { mem::transmute(action) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests;
