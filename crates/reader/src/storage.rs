//! Where the bytes of a pack are stored: in a mapped file or in memory.
//!
//! The rest of the crate only knows [`Storage`]. Its virtual methods are called once per step, chunk or request, but
//! never for each sample. Samples are read from [`PackBytes`], which keeps the address that was looked up when the pack
//! was opened.

#[cfg(test)]
#[path = "storage/tests/faulty.rs"]
pub(crate) mod faulty;
mod memory;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

pub(crate) use self::memory::Memory;

/// A storage backend. It lends the bytes of one pack as one slice. The bytes are expected not to change.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// All bytes, without a copy. Every call returns the same slice. A page that cannot be read appears as zeros, and
    /// [`first_lost`](Self::first_lost) reports it.
    fn bytes(&self) -> &[u8];

    /// Reads from `offset` without using [`bytes`](Self::bytes). Returns the number of bytes read. A short read is not
    /// an error. 0 means the end of the file.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The version of the bytes. It changes if they are replaced after opening.
    fn version(&self) -> io::Result<Version>;

    /// The file with the same bytes at the same offsets, for reads through its descriptor.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Makes an unreadable page appear as zeros instead of ending the process. Call it before reading.
    fn protect(&self) -> io::Result<()> {
        Ok(())
    }

    /// Offset of the first unreadable byte in [`bytes`](Self::bytes), which reads as zero. `None` if all bytes are
    /// readable.
    fn first_lost(&self) -> Option<u64> {
        None
    }

    /// Whether the page at `offset` is in memory. `None` if unknown.
    fn is_resident(&self, _offset: u64) -> Option<bool> {
        Some(true)
    }

    /// Announces that much data will be [loaded](Self::load).
    ///
    /// # Errors
    /// The system call failed. Loading still works.
    fn will_load(&self) -> io::Result<()> {
        Ok(())
    }

    /// Loads bytes into memory before they are read. Blocks until they are loaded. The range may end past the last
    /// byte.
    fn load(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

/// The version of the stored bytes. It changes if they are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) len: u64,
    /// Time of the last write. `None` if unknown.
    pub(crate) modified: Option<SystemTime>,
}

/// All bytes of an open pack. The address is looked up once.
#[derive(Clone)]
pub struct PackBytes(Bytes);

impl PackBytes {
    pub(crate) fn of(storage: &Arc<dyn Storage>) -> Self {
        struct Owner(Arc<dyn Storage>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                self.0.bytes()
            }
        }
        Self::owned(Owner(Arc::clone(storage)))
    }

    /// A part of the bytes. It keeps all of them alive. The range must be within them.
    pub(crate) fn slice(&self, range: Range<usize>) -> Bytes {
        self.0.slice(range)
    }

    fn owned(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(Bytes::from_owner(owner))
    }
}

impl AsRef<[u8]> for PackBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for PackBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackBytes({})", self.0.len())
    }
}
