//! A pack in memory that fails in the way a test requests, at a chosen call.

#![cfg(test)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::{Memory, Storage, Version};

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Reads that cover this byte fail.
    BadByte(u64),
    /// A read returns at most this many bytes.
    Short(usize),
    /// The data ends before this byte.
    Cut(u64),
    /// The data was modified.
    Modified,
    /// The version cannot be determined.
    Untold,
    /// This byte reads as zero.
    Lost(u64),
    /// Nothing is in memory, and loading fails.
    Cold,
}

/// Works until call number `after`, and fails from then on.
#[derive(Debug)]
pub(crate) struct Faulty {
    memory: Memory,
    fault: Fault,
    after: u64,
    calls: AtomicU64,
}

impl Faulty {
    pub(crate) fn new(bytes: Vec<u8>, fault: Fault, after: u64) -> Self {
        Self { memory: Memory::new(bytes), fault, after, calls: AtomicU64::new(0) }
    }

    /// The active fault.
    fn fault(&self) -> Option<Fault> {
        let is_due = self.calls.load(Ordering::SeqCst) >= self.after;
        is_due.then_some(self.fault)
    }

    /// Like [`fault`](Self::fault), but counts one more call.
    fn call(&self) -> Option<Fault> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.fault()
    }
}

/// A disk error.
fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl Storage for Faulty {
    fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset + u64::try_from(out.len()).unwrap();
        let most = match self.call() {
            Some(Fault::BadByte(bad)) if (offset..end).contains(&bad) => return Err(broken()),
            Some(Fault::Short(most)) => most,
            Some(Fault::Cut(len)) => usize::try_from(len.saturating_sub(offset)).unwrap(),
            _ => out.len(),
        };
        let n = most.min(out.len());
        self.memory.read_at(&mut out[..n], offset)
    }

    fn version(&self) -> io::Result<Version> {
        let fault = self.call();
        let mut version = self.memory.version()?;
        match fault {
            Some(Fault::Untold) => return Err(broken()),
            Some(Fault::Cut(len)) => version.len = len,
            Some(Fault::Modified) => version.modified = Some(SystemTime::UNIX_EPOCH),
            _ => {}
        }
        Ok(version)
    }

    fn first_lost(&self) -> Option<u64> {
        match self.fault()? {
            Fault::Lost(offset) => Some(offset),
            _ => None,
        }
    }

    fn is_resident(&self, _offset: u64) -> Option<bool> {
        Some(self.fault() != Some(Fault::Cold))
    }

    fn load(&self, _offset: u64, _len: u64) -> io::Result<()> {
        match self.call() {
            Some(Fault::Cold) => Err(broken()),
            _ => Ok(()),
        }
    }
}
