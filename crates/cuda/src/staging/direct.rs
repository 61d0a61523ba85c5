//! Reads chunks of a pack's file from the disk into GPU memory, bypassing the page cache and the CPU.
//!
//! The bytes never reach the CPU, so they cannot be verified: direct reads are only for loaders without checksums. When
//! the file is opened, a part of it is read and compared with the mapped file.

use packds_system::to_u64;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use packds_reader::Pack;

use super::file::{brought, middle};
use crate::driver::{DevicePtr, DirectFile, Driver};
use crate::error::CudaError;

/// A file for direct reads.
#[derive(Debug)]
pub(crate) struct DirectReads {
    file: Box<dyn DirectFile>,
    /// Declared after the file, so that the driver outlives the file.
    driver: Arc<dyn Driver>,
}

impl DirectReads {
    /// Opens the file of a pack, reads a part of it and compares it with the mapped file. The error says why reading is
    /// not possible.
    pub(super) fn new(driver: &Arc<dyn Driver>, pack: &Pack) -> Result<Self, String> {
        let file = match pack.open_past_cache() {
            Some(file) => file,
            // The file cannot be opened for direct reads. Pass the pack's own descriptor: the library decides whether
            // it can read the file.
            None => {
                let file = pack.file().and_then(File::try_clone);
                file.map_err(|error| error.to_string())?
            }
        };
        let told = |error: CudaError| error.to_string();
        let reads = Self { file: driver.open_direct(file).map_err(told)?, driver: Arc::clone(driver) };
        let place = middle(pack);
        // SAFETY: the memory was just allocated and has this many bytes.
        let arrived = brought(reads.driver.as_ref(), place.len(), |memory| unsafe { reads.read(&place, memory) });
        if Some(arrived.map_err(told)?.as_slice()) == pack.whole_file().get(place) {
            Ok(reads)
        } else {
            Err("a direct read returned wrong bytes".to_owned())
        }
    }

    /// Reads a part of the file. Blocks until the data has arrived.
    ///
    /// # Safety
    /// The memory has this many bytes, and nobody uses it during the read.
    pub(super) unsafe fn read(&self, part: &Range<usize>, to: DevicePtr) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.file.read(to_u64(part.start), to, part.len()) }
    }
}
