//! Handles SIGBUS. The kernel raises it on access to a memory mapping if the file was truncated or its disk failed.
//!
//! A process has a single handler for this signal, so this module has a single one too. If the address is in guarded
//! memory, the handler maps pages of zeros there, counts them, and lets the read continue. The reader checks the guard
//! afterwards and rejects the data. All other signals go to the previous handler, or get their previous default action.
//!
//! Other code may install its own handler later. PyTorch does so in its workers, and so does Python's `faulthandler`
//! when it is enabled. Therefore [`protect`] checks before a read whether this handler is still installed, and
//! installs it again if it is not. This is done when a pack is opened, in every step of a loader, and for each single
//! sample or chunk that is read. The check also detects a handler that a forked process inherited.
//!
//! This module only handles SIGBUS. It does not restore data: lost memory stays lost until it is unmapped.

use packds_system::lock;
use std::io;
use std::mem;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use libc::{c_int, c_void, siginfo_t};

/// Number of guards per block of the table.
const BLOCK_SLOTS: usize = 64;

/// A guarded range of memory. The handler may read it while other slots are changed, so all fields are atomic.
#[derive(Debug)]
struct Slot {
    /// Odd while the range is being changed.
    version: AtomicUsize,
    /// The first address, or 0 while the slot is free.
    start: AtomicUsize,
    /// One past the last address.
    end: AtomicUsize,
    /// Number of times that pages were lost.
    lost: AtomicU64,
    /// The address of the first lost page.
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

    /// The range, if it is guarded. A thread that faults keeps its own range guarded, so a slot that is being changed
    /// belongs to another range.
    fn range(&self) -> Option<(usize, usize)> {
        let before = self.version.load(Ordering::Acquire);
        let range = (self.start.load(Ordering::Acquire), self.end.load(Ordering::Acquire));
        let same = self.version.load(Ordering::Acquire) == before;
        (before.is_multiple_of(2) && same && range.0 != 0).then_some(range)
    }

    /// Sets the range. The caller must hold the lock of the table.
    fn set(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

/// Slots, and a link to the next block. Blocks are never freed, because the handler may be reading them.
struct Block {
    slots: [Slot; BLOCK_SLOTS],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Self {
        Self { slots: [const { Slot::new() }; BLOCK_SLOTS], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&'static self) -> Option<&'static Self> {
        // SAFETY: the pointer is null or comes from `Box::leak` in `grow`. So it is aligned and initialized, it lives
        // forever, and nobody has a mutable reference to it. It is stored with release ordering and loaded here with
        // acquire ordering.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a block. The caller must hold the lock of the table.
    fn grow(&'static self) -> &'static Self {
        let block: &'static mut Self = Box::leak(Box::new(Self::new()));
        let block = ptr::from_mut(block);
        self.next.store(block, Ordering::Release);
        // SAFETY: as in `next`. The mutable reference ended where the pointer was made.
        unsafe { &*block }
    }
}

static TABLE: Block = Block::new();
static LOCK: Mutex<()> = Mutex::new(());
/// The page size, stored here so that the handler need not make a system call.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// The action that this handler replaced when it was first installed. Null until then, and never freed.
static FIRST: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// The action that this handler replaced most recently. Differs from `FIRST` once other code has installed a handler of
/// its own. Null until this handler is first installed, and never freed.
static LATEST: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// The ids of the threads that are passing on a signal. 0 marks an unused entry.
static PASSING: [AtomicI32; 16] = [const { AtomicI32::new(0) }; 16];

/// Keeps a range of mapped memory readable until it is dropped. Drop it before the memory is unmapped.
#[derive(Debug)]
pub(crate) struct Guard {
    slot: &'static Slot,
    start: usize,
}

impl Guard {
    /// Guards `bytes`, which must be mapped from a file and start at a page.
    ///
    /// # Safety
    /// - All pages that `bytes` touches must be a separate mapping. Once the file behind it cannot be read, these pages
    ///   may show zeros, and nothing else may be in them.
    /// - The guard must be dropped before any of it is unmapped.
    pub(crate) unsafe fn new(bytes: &[u8]) -> Self {
        let start = bytes.as_ptr().expose_provenance();
        // If the handler cannot be installed, readers compare the file's length before they read.
        let _ = protect();
        let _table = lock(&LOCK);
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

    /// Offset of the first lost page. `None` if all data read so far came from the file.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        // The count is incremented before zeros become visible, so any thread that read zeros sees the new count here.
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
        let _table = lock(&LOCK);
        self.slot.set(0, 0);
    }
}

/// Ensures that this handler is installed. If it is, this costs one system call. It does not take locks, so a forked
/// process can call it even if another thread held a lock during the fork.
///
/// # Errors
/// The system error if the signal cannot be handled.
pub(crate) fn protect() -> io::Result<()> {
    #[cfg(test)]
    if tests::IS_REFUSED.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let current = exchange(None)?;
    if is_ours(&current) {
        return Ok(());
    }
    // SAFETY: `sysconf` accepts any number and does not touch our memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
    PAGE.store(page, Ordering::Release);
    // Save the current action before the handler is installed, because the signal may arrive right after that.
    remember(&current);
    let mut ours = default_action();
    ours.sa_sigaction = address();
    // Use the alternate stack if the thread has one, because a stack overflow in other code may raise SIGBUS.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let before = exchange(Some(&ours))?;
    // Since `current` was read, another thread may have installed this handler, or other code may have installed its
    // own.
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

/// Saves a replaced action, so that signals can be passed on to it. If it equals the latest saved action, nothing is
/// allocated.
fn remember(action: &libc::sigaction) {
    // SAFETY: the pointer is null or from `Box::into_raw` below. It is never freed and never written again.
    let latest = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
    let same = |known: &libc::sigaction| (known.sa_sigaction, known.sa_flags) == (action.sa_sigaction, action.sa_flags);
    if latest.is_some_and(same) {
        return;
    }
    let kept = Box::into_raw(Box::new(*action));
    // Only the first action that is saved goes into `FIRST`.
    let null = ptr::null_mut();
    let _ = FIRST.compare_exchange(null, kept, Ordering::AcqRel, Ordering::Acquire);
    LATEST.store(kept, Ordering::Release);
}

/// Replaces the action of the signal with `new`, if there is one, and returns the previous action.
fn exchange(new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = default_action();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null, or an action whose handler has the signature that its flags declare and only does what a
    // handler may do (`handle` and the functions that it calls explain why). `old` is writable. Neither is used after
    // the call.
    let result = unsafe { libc::sigaction(libc::SIGBUS, new, &raw mut old) };
    if result == 0 { Ok(old) } else { Err(io::Error::last_os_error()) }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all fields are numbers, bit sets and an optional function, for which zeros are valid. They mean the
    // default action, no flags, and no blocked signals.
    unsafe { mem::zeroed() }
}

/// The signal handler. It must be async-signal-safe: it only reads and writes atomics and makes system calls. It does
/// not allocate, lock or panic.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: because of SA_SIGINFO, the kernel calls the handler with a valid siginfo that no other code uses.
    let fault = unsafe { &*info };
    // Codes up to 0 are signals that were sent. Only a fault has an address.
    if fault.si_code > 0 {
        // SAFETY: for a fault, the address is the field that is set.
        let address = unsafe { fault.si_addr() }.addr();
        if replace(address) {
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Maps zeros over the page at `address` if it is guarded.
fn replace(address: usize) -> bool {
    let page = PAGE.load(Ordering::Acquire);
    let mut block = Some(&TABLE);
    while let Some(current) = block {
        for slot in &current.slots {
            let Some((start, end)) = slot.range() else { continue };
            if !(start..end).contains(&address) {
                continue;
            }
            // Ranges start at a page boundary, and the page size is a power of two.
            let first = address & !page.wrapping_sub(1);
            // If this fails, an earlier lost page is already recorded.
            let _ = slot.first_lost.compare_exchange(0, address, Ordering::SeqCst, Ordering::SeqCst);
            slot.lost.fetch_add(1, Ordering::SeqCst);
            // Replace only this page, because the rest of the range may be intact. If this fails because the process
            // has too many mappings, replace the rest of the range, which merges many mappings into one.
            return map_zeros(first, page) || map_zeros(first, end.saturating_sub(first));
        }
        block = current.next();
    }
    false
}

/// Maps pages of zeros at `address`, which must be the start of a page. Returns whether it succeeded.
fn map_zeros(address: usize, len: usize) -> bool {
    let errno = errno();
    // SAFETY: this location belongs to this thread and is always valid.
    let saved = unsafe { *errno };
    // SAFETY: the range is in pages of a guarded mapping. Its owner allows these pages to show zeros (`Guard::new`),
    // and it stays mapped while a thread reads it. The old and the new contents are readable and not writable.
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
    // SAFETY: as above. The code that was interrupted must find the value that it left there.
    unsafe { *errno = saved };
    mapped != libc::MAP_FAILED
}

fn errno() -> *mut c_int {
    // SAFETY: the function has no safety conditions.
    unsafe { libc::__errno_location() }
}

/// Marks this thread as passing on a signal. The mark is removed on drop.
struct Passing(&'static AtomicI32);

impl Passing {
    /// `None` if this thread is already marked, or if too many threads are.
    fn begin() -> Option<Self> {
        // This is a plain system call, so a signal handler may make it. libc's function needs glibc 2.30.
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
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

/// The action to which a signal is passed on. Normally this is `LATEST`. That action's handler may pass the signal back
/// to this one, by a call or by raising it again as `faulthandler` does. In that case, this is `FIRST`. It is also
/// `FIRST` if too many threads are passing on signals. `None` if no action has been saved.
fn next_action(info: *mut siginfo_t, passing: Option<&Passing>) -> Option<&'static libc::sigaction> {
    // SAFETY: as in `handle`.
    let fault = unsafe { &*info };
    // SAFETY: the function has no safety conditions, and may be called in a signal handler.
    let own = unsafe { libc::getpid() };
    // SAFETY: the sender is set for a signal that was sent to a thread.
    let is_raised = fault.si_code == libc::SI_TKILL && unsafe { fault.si_pid() } == own;
    let latest = passing.filter(|_| !is_raised).map(|_| &LATEST);
    // SAFETY: the pointer is null or from `Box::into_raw` in `remember`. It is never freed and never written again.
    unsafe { latest.unwrap_or(&FIRST).load(Ordering::Acquire).as_ref() }
}

/// Does what would happen if this handler were not installed.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let passing = Passing::begin();
    let previous = next_action(info, passing.as_ref());
    let (action, flags) = previous.map_or((libc::SIG_DFL, 0), |p| (p.sa_sigaction, p.sa_flags));
    // SAFETY: as in `handle`.
    let sent = unsafe { (*info).si_code } <= 0;
    if action == libc::SIG_DFL || (action == libc::SIG_IGN && !sent) {
        // The default action ends the process, either with the same fault after the return or with the same signal sent
        // again. A fault cannot be ignored.
        let _ = exchange(Some(&default_action()));
        if sent {
            // SAFETY: the function has no safety conditions. The signal is blocked until this handler returns.
            unsafe { libc::raise(signal) };
        }
    } else if action == libc::SIG_IGN {
        // The signal was ignored before, so it is ignored here.
    } else if flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the flag says that the number is a function with this signature. It is neither of the two special
        // numbers (default and ignore). The code that installed it did so for this signal.
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
