//! Where the bytes of a pack lie: a mapped file, or memory.
//!
//! [`Storage`] is all that the rest of the crate knows of it. Its virtual methods are called once a step, a chunk or a request,
//! never once a sample: samples are read from [`PackBytes`], whose address was looked up when the pack was opened.

#[cfg(test)]
pub(crate) mod faulty;
mod mapped_file;
mod memory;

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

pub(crate) use self::mapped_file::{MappedFile, open_past_cache};
pub(crate) use self::memory::Memory;

/// The bytes of one pack, which are expected not to change.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// All bytes, without a copy. Each call gives the same slice. A page that cannot be read shows zeros, and
    /// [`first_lost`](Self::first_lost) tells.
    fn bytes(&self) -> &[u8];

    /// Reads from `offset` on, not by way of [`bytes`](Self::bytes), and gives how many bytes came: fewer than `out` holds is no
    /// error, 0 is the end.
    ///
    /// # Errors
    /// The system could not read.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// What tells whether the bytes are still those that were opened.
    ///
    /// # Errors
    /// The system does not say.
    fn version(&self) -> io::Result<Version>;

    /// The file that has the same bytes at the same offsets, for reads by its descriptor.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Makes sure that a page which cannot be read shows zeros and does not end the process. Called before reading.
    ///
    /// # Errors
    /// The system refuses.
    fn protect(&self) -> io::Result<()> {
        Ok(())
    }

    /// The first byte of [`bytes`](Self::bytes) that could not be read and shows as zero since.
    fn first_lost(&self) -> Option<u64> {
        None
    }

    /// Whether the page of byte `offset` is in memory; none where the system does not say.
    fn is_resident(&self, _offset: u64) -> Option<bool> {
        Some(true)
    }

    /// Says that much will be [loaded](Self::load).
    ///
    /// # Errors
    /// The system refuses; loading works all the same.
    fn will_load(&self) -> io::Result<()> {
        Ok(())
    }

    /// Brings bytes into memory before they are read, and returns when they are there. A range may end behind the last byte.
    ///
    /// # Errors
    /// The system could not load them.
    fn load(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

/// What changes when somebody replaces the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    /// Bytes.
    pub(crate) len: u64,
    /// When they were last written to; none where the system does not say.
    pub(crate) modified: Option<SystemTime>,
}

/// All bytes of an opened pack, at an address that was looked up once.
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
