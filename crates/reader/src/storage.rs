//! Where the bytes of a pack lie: a mapped file, or memory.
//!
//! [`Storage`] is all that the rest of the crate knows of it. Hot paths read [`PackBytes`], which have their address in hand,
//! so a call through the trait is made for a step, a chunk or a request, never for a sample.

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

/// The bytes of one pack. They do not change: what tells that they did is an error for whoever reads them.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// All bytes, without a copy: the same slice at each call. A page that cannot be read shows zeros, see
    /// [`first_lost`](Self::first_lost).
    fn bytes(&self) -> &[u8];

    /// Copies bytes from `offset` on, not by way of [`bytes`](Self::bytes); gives how many. They may be fewer than `out` holds; none
    /// are there behind the end.
    ///
    /// # Errors
    /// The system could not read.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// What is there now.
    ///
    /// # Errors
    /// The system does not say.
    fn version(&self) -> io::Result<Version>;

    /// The file that all bytes lie in, at the same offsets.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Sees to it that a page which cannot be read shows zeros and does not end the process. Called before reading.
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

    /// Prepares for much [loading](Self::load).
    ///
    /// # Errors
    /// The system refuses; loading works all the same.
    fn will_load(&self) -> io::Result<()> {
        Ok(())
    }

    /// Has bytes in memory before they are read, as far as there are any; returns when they are there.
    ///
    /// # Errors
    /// The system could not load them.
    fn load(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

/// What tells a storage from what it was when the pack was opened.
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
