//! A disk that the test controls. It reads short or out of order, fails, or blocks until it is released.

#![cfg(test)]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::fetch::direct::engine::{Done, Engine, Request, Source};

/// The faults of the disk.
#[derive(Debug, Default)]
pub(in crate::fetch::direct) struct Faults {
    /// Reads return at most this many bytes. 0 means no limit.
    pub(in crate::fetch::direct) short: usize,
    /// Reads that cover this byte fail.
    pub(in crate::fetch::direct) bad_byte: Option<u64>,
    /// Every other read is interrupted or would block.
    pub(in crate::fetch::direct) interrupted: bool,
    /// Reads that bypass the page cache are rejected.
    pub(in crate::fetch::direct) refuses_direct: bool,
    /// The engine itself fails after this many reads.
    pub(in crate::fetch::direct) dies_after: Option<u64>,
    /// The thread panics after this many reads.
    pub(in crate::fetch::direct) panics_after: Option<u64>,
    /// Reads wait until the gate is opened.
    pub(in crate::fetch::direct) closed: Mutex<bool>,
    pub(in crate::fetch::direct) opened: Condvar,
    pub(in crate::fetch::direct) reads: AtomicU64,
    /// Whether a read is waiting at the gate.
    pub(in crate::fetch::direct) waiting: AtomicBool,
}

impl Faults {
    pub(in crate::fetch::direct) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }
}

pub(in crate::fetch::direct) struct Faulty {
    source: Arc<Source>,
    faults: Arc<Faults>,
    under_way: Vec<Request>,
}

impl Faulty {
    pub(in crate::fetch::direct) fn new(source: &Arc<Source>, faults: &Arc<Faults>) -> Self {
        Self { source: Arc::clone(source), faults: Arc::clone(faults), under_way: Vec::new() }
    }

    fn read(&self, request: &mut Request) -> io::Result<usize> {
        let faults = &self.faults;
        let n = faults.reads.fetch_add(1, Ordering::SeqCst);
        assert!(faults.panics_after.is_none_or(|after| n < after), "the test requested this panic");
        if faults.interrupted && n.is_multiple_of(2) {
            let kinds = [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock];
            return Err(kinds[usize::try_from(n / 2 % 2).unwrap()].into());
        }
        if faults.refuses_direct && !request.buffered {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let from = request.offset + u64::try_from(request.filled).unwrap();
        let to = request.offset + u64::try_from(request.piece.len()).unwrap();
        if faults.bad_byte.is_some_and(|bad| (from..to).contains(&bad)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let read = self.source.read(request)?;
        if faults.short > 0 && read > faults.short {
            let filled = request.filled;
            // Overwrite the bytes that a short read did not return.
            request.piece[filled + faults.short..].fill(0xee);
            return Ok(faults.short);
        }
        Ok(read)
    }
}

impl Engine for Faulty {
    fn depth(&self) -> usize {
        5
    }

    fn submit(&mut self, request: Request) {
        assert!(self.under_way.len() < self.depth());
        self.under_way.push(request);
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        let mut closed = self.faults.closed.lock().unwrap();
        while *closed {
            self.faults.waiting.store(true, Ordering::SeqCst);
            closed = self.faults.opened.wait(closed).unwrap();
        }
        drop(closed);
        let reads = self.faults.reads.load(Ordering::SeqCst);
        if self.faults.dies_after.is_some_and(|after| reads >= after) {
            return Err(io::Error::other("the ring is gone"));
        }
        // Completes the last request first, because the order must not matter.
        let mut request = self.under_way.pop().expect("a request is in progress");
        let result = self.read(&mut request);
        done.push((request, result));
        Ok(())
    }
}
