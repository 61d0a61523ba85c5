//! A pack in memory, for tests and for programs that already have its bytes.

use std::io::{self, Read};

use packds_system::to_u64;

use super::{PackBytes, Storage, Version};

/// The bytes of a pack and their owner.
#[derive(Debug)]
pub(crate) struct Memory(PackBytes);

impl Memory {
    pub(crate) fn new(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(PackBytes::owned(bytes))
    }
}

impl Storage for Memory {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        self.bytes().get(start..).unwrap_or_default().read(out)
    }

    fn version(&self) -> io::Result<Version> {
        Ok(Version { len: to_u64(self.bytes().len()), modified: None })
    }
}
