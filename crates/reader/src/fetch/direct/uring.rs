//! Reads with io_uring. A single thread has many requests in progress, and each request costs a few microseconds.
//!
//! # Why the kernel never writes to memory that is in use elsewhere
//!
//! A request owns its piece of the arena, so other code cannot access that memory, and the piece keeps the arena
//! mapped. The engine keeps every request in `under_way` from before its submission until its completion has arrived.
//! In between, it does not create references to the bytes. When the engine is dropped, it first waits for all requests.
//! If even that fails, the requests are leaked: their memory is lost, but it is never reused.

use packds_system::{to_u64, to_usize};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};

use super::engine::{Done, Engine, Request, Source};

/// Not a valid descriptor, so a read from it completes with an error.
const NO_FILE: RawFd = -1;
/// Maximum number of requests in progress.
const DEPTH: u32 = 64;

pub(super) struct Uring {
    ring: IoUring,
    source: Arc<Source>,
    /// Submitted requests. The `user_data` of a request is its index.
    under_way: Vec<Option<Request>>,
    /// Unused indices.
    free: Vec<usize>,
}

impl Uring {
    /// # Errors
    /// An error if the kernel does not have io_uring or does not allow it.
    pub(super) fn new(source: Arc<Source>) -> io::Result<Self> {
        let ring = IoUring::builder().setup_coop_taskrun().build(DEPTH).or_else(|_| IoUring::new(DEPTH))?;
        let depth = to_usize(DEPTH);
        Ok(Self { ring, source, under_way: (0..depth).map(|_| None).collect(), free: (0..depth).collect() })
    }

    /// Checks whether this process may use io_uring.
    ///
    /// # Errors
    /// The kernel's reason.
    pub(super) fn probe() -> io::Result<()> {
        IoUring::new(1).map(|_| ())
    }

    /// Moves all available completions to `done`.
    fn reap(&mut self, done: &mut Vec<Done>) {
        for completion in self.ring.completion() {
            let number = to_usize(completion.user_data());
            let request = self.under_way.get_mut(number).and_then(Option::take);
            let Some(request) = request else { continue };
            self.free.push(number);
            let result = usize::try_from(completion.result())
                .map_err(|_| io::Error::from_raw_os_error(completion.result().saturating_neg()));
            done.push((request, result));
        }
    }

    /// Submits the queue to the kernel and waits for one completion.
    fn enter(&self) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel accepts more requests only after completions have been collected.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Engine for Uring {
    fn depth(&self) -> usize {
        self.under_way.len()
    }

    fn submit(&mut self, request: Request) {
        let Some(number) = self.free.pop() else {
            debug_assert!(false, "more requests than the depth");
            return;
        };
        let (fd, start) = self.source.file(&request).map_or((NO_FILE, 0), |(file, start)| (file.as_raw_fd(), start));
        let offset = start + to_u64(request.filled);
        // Stored before it is submitted. From now on, the piece's bytes must not be accessed.
        let request = self.under_way.get_mut(number).map(|place| place.insert(request));
        let rest = request.and_then(|request| request.piece.get_mut(request.filled..));
        let Some(rest) = rest else { return };
        let len = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let read =
            opcode::Read::new(types::Fd(fd), rest.as_mut_ptr(), len).offset(offset).build().user_data(to_u64(number));
        // SAFETY: the buffer is the rest of a piece of the arena and has at least `len` bytes. The piece stays in
        // `under_way` until its completion has arrived, so it stays exclusive, mapped and in place (see the top of this
        // module). The file stays open as long as `self.source`.
        let pushed = unsafe { self.ring.submission().push(&read) };
        debug_assert!(pushed.is_ok(), "the queue has space for every request");
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        while done.is_empty() {
            self.enter()?;
            self.reap(done);
        }
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.under_way.iter().any(Option::is_some) {
            if self.enter().is_err() {
                Box::leak(Box::new(std::mem::take(&mut self.under_way)));
                return;
            }
            self.reap(&mut done);
        }
    }
}
