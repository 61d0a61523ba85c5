//! A pack's mapped file, registered with the driver. Chunks and batches are copied to the GPU directly from the page
//! cache, without a copy by the CPU.
//!
//! Drivers and systems differ, so three properties are tested first. The driver must accept read-only memory,
//! unregistering it must not make the system write the file back, and the copied data must match the file. If any test
//! fails, data is copied through staging memory.

use packds_system::to_u64;
use std::fs::{self, File};
use std::ops::Range;
use std::sync::Arc;

use packds_reader::Pack;
use packds_reader::arena::SlotRef;
use packds_reader::device::{DeviceError, StoredPart, StoredReceiver, Transfer};

use super::RingWith;
use super::direct::DirectReads;
use crate::driver::{DevicePtr, Driver};
use crate::error::CudaError;
use crate::resident::End;

/// Number of bytes that are registered to test whether this makes pages dirty. A smaller file is not tested, because it
/// would be written back quickly.
const TRIAL_BYTES: usize = 16 << 20;
/// Number of attempts at this test. Several are needed, because other processes may write files at the same time.
const TRIALS: usize = 4;
/// Size of the pages in the system's counters.
const PAGE_BYTES: u64 = 4096;
/// Number of bytes of the file that are copied and compared.
const COMPARED_BYTES: usize = 1 << 20;

/// How chunks or batches get to the GPU.
#[derive(Debug)]
pub(crate) enum Copies {
    /// Through staging memory.
    Staged,
    /// Through staging memory, although registering the file or reading from the disk was requested. Contains the
    /// reason.
    Refused(String),
    /// From the registered file.
    File(Arc<RegisteredFile>),
    /// Direct reads from the disk into GPU memory.
    Disk(DirectReads),
}

impl Copies {
    /// Copies from the pack's file, if possible.
    pub(crate) fn from_file(driver: &Arc<dyn Driver>, pack: &Arc<Pack>) -> Self {
        let file = RegisteredFile::new(driver, pack, &mut dirtied_pages);
        file.map_or_else(Self::Refused, |file| Self::File(Arc::new(file)))
    }

    /// Uses direct reads from the disk, if possible.
    pub(crate) fn from_disk(driver: &Arc<dyn Driver>, pack: &Pack) -> Self {
        DirectReads::new(driver, pack).map_or_else(Self::Refused, Self::Disk)
    }

    pub(crate) fn file(&self) -> Option<&Arc<RegisteredFile>> {
        match self {
            Self::File(file) => Some(file),
            Self::Staged | Self::Refused(_) | Self::Disk(_) => None,
        }
    }

    /// A message for the user about how `what` are copied. `None` if nothing special was requested.
    pub(crate) fn told(&self, what: &str) -> Option<String> {
        match self {
            Self::Staged => None,
            Self::Refused(why) => Some(format!("{what} are copied through staging memory, because {why}")),
            Self::File(_) => Some(format!("{what} are copied from the registered file")),
            Self::Disk(_) => Some(format!("{what} are read from the disk into the GPU's memory")),
        }
    }
}

/// A registered file with its mapping.
#[derive(Debug)]
pub(crate) struct RegisteredFile {
    driver: Arc<dyn Driver>,
    pack: Arc<Pack>,
}

impl RegisteredFile {
    /// Tests the mapping of a pack and registers it. `dirtied` returns the number of pages that became dirty since the
    /// system started. The error says why registering is not possible.
    fn new(
        driver: &Arc<dyn Driver>,
        pack: &Arc<Pack>,
        dirtied: &mut dyn FnMut() -> Option<u64>,
    ) -> Result<Self, String> {
        let told = |error: CudaError| error.to_string();
        if let Some(trial) = pack.whole_file().get(..TRIAL_BYTES) {
            // Write back dirty pages first, because pages that are already dirty would not be counted.
            let synced = pack.file().and_then(File::sync_data);
            synced.map_err(|error| format!("the file cannot be synced: {error}"))?;
            keeps_clean(driver.as_ref(), trial, dirtied)?;
        }
        let map = pack.whole_file();
        // SAFETY: the pack contains the mapping and is kept as long as the registration, which `drop` ends.
        unsafe { driver.register_read_only(map.as_ptr(), map.len()) }.map_err(told)?;
        let file = Self { driver: Arc::clone(driver), pack: Arc::clone(pack) };
        let compared = file.bytes(&middle(pack)).unwrap_or_default();
        if arrived(driver, compared).map_err(told)? == compared {
            Ok(file)
        } else {
            Err("a copy from the registered file returned wrong bytes".to_owned())
        }
    }

    /// Whether this is the file of this pack, in the same mapping.
    pub(crate) fn is_of(&self, pack: &Arc<Pack>) -> bool {
        Arc::ptr_eq(&self.pack, pack)
    }

    /// The bytes in this range of the file.
    pub(crate) fn bytes(&self, range: &Range<usize>) -> Option<&[u8]> {
        self.pack.whole_file().get(range.clone())
    }
}

impl Drop for RegisteredFile {
    fn drop(&mut self) {
        // SAFETY: the mapping was registered. Stagings that copied from it waited for their copies before they released
        // it.
        unsafe { self.driver.unregister(self.pack.whole_file().as_ptr()) };
    }
}

impl StoredReceiver for RingWith<RegisteredFile> {
    fn submit_stored(&self, slot: SlotRef, len: usize, part: StoredPart<'_>) -> Result<Box<dyn Transfer>, DeviceError> {
        let is_registered = self.with.is_of(part.pack);
        let bytes = is_registered.then(|| self.with.bytes(&part.range)).flatten();
        let other = || CudaError::Use("a batch is in a file that is not registered".to_owned());
        self.ring.queue(slot, len, (part.offset, bytes.ok_or_else(other)?))
    }
}

/// The part of a file whose copy is compared.
pub(super) fn middle(pack: &Pack) -> Range<usize> {
    let len = pack.whole_file().len();
    let start = len.saturating_sub(COMPARED_BYTES) / 2;
    start..len.min(start.saturating_add(COMPARED_BYTES))
}

/// Checks that pages stay clean when they are registered and unregistered. If they became dirty, the system would write
/// the whole dataset back.
fn keeps_clean(driver: &dyn Driver, map: &[u8], dirtied: &mut dyn FnMut() -> Option<u64>) -> Result<(), String> {
    let pages = to_u64(map.len()) / PAGE_BYTES;
    let untold = || "the system does not report how many pages become dirty".to_owned();
    for _ in 0..TRIALS {
        let before = dirtied().ok_or_else(untold)?;
        // SAFETY: the mapping is borrowed, and the registration ends in the next step.
        let registered = unsafe { driver.register_read_only(map.as_ptr(), map.len()) };
        registered.map_err(|error| error.to_string())?;
        // SAFETY: the mapping was registered, and no work was queued.
        unsafe { driver.unregister(map.as_ptr()) };
        let after = dirtied().ok_or_else(untold)?;
        if after.saturating_sub(before) < pages / 2 {
            return Ok(());
        }
    }
    let text = "many pages became dirty when the file was registered and released: the driver may mark the whole file as dirty, or other processes wrote to their files";
    Err(text.to_owned())
}

/// Number of pages that became dirty since the system started.
fn dirtied_pages() -> Option<u64> {
    dirtied_in(&fs::read_to_string("/proc/vmstat").ok()?)
}

fn dirtied_in(vmstat: &str) -> Option<u64> {
    let mut lines = vmstat.lines();
    let count = lines.find_map(|line| line.strip_prefix("nr_dirtied "))?;
    count.trim().parse().ok()
}

/// Copies registered bytes to the device and back.
fn arrived(driver: &Arc<dyn Driver>, bytes: &[u8]) -> Result<Vec<u8>, CudaError> {
    let end = End::new(Arc::clone(driver))?;
    brought(driver.as_ref(), bytes.len(), |memory| {
        // SAFETY: the bytes are registered, and borrowed until the copy is done, because the code waits for it. The
        // memory has the same size.
        unsafe { driver.copy_in(bytes.as_ptr(), memory, bytes.len(), end.stream)? };
        end.wait()
    })
}

/// Allocates `len` bytes of device memory, lets `bring` fill them, and returns them. `bring` waits until its work is
/// done.
pub(super) fn brought(
    driver: &dyn Driver,
    len: usize,
    bring: impl FnOnce(DevicePtr) -> Result<(), CudaError>,
) -> Result<Vec<u8>, CudaError> {
    let memory = driver.allocate(to_u64(len), "a comparison")?;
    let mut back = vec![0; len];
    // SAFETY: the memory has this many bytes, and the work that wrote them is done.
    let result = bring(memory).and_then(|()| unsafe { driver.copy_out(memory, &mut back) });
    // SAFETY: nothing uses the memory any more. After an error, the driver has no queued work.
    unsafe { driver.free(memory) };
    result.map(|()| back)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::driver::{MapFailure, SimDriver};

    const PAGES: u64 = 1000;

    /// Tests a mapping while the count of dirty pages grows by these amounts, one for each attempt.
    fn tried(driver: &SimDriver, growth: &[u64]) -> Result<(), String> {
        let map = vec![0; usize::try_from(PAGES * PAGE_BYTES).unwrap()];
        let counts = growth.iter().scan(0, |count, growth| {
            let before = *count;
            *count += growth;
            Some([before, *count])
        });
        let counts: Vec<u64> = counts.flatten().collect();
        let mut counts = counts.into_iter();
        keeps_clean(driver, &map, &mut || counts.next())
    }

    #[test]
    fn a_driver_that_makes_pages_dirty_is_found_and_others_writing_are_not_it() {
        let driver = SimDriver::new(1, Duration::ZERO, 1 << 20);
        tried(&driver, &[PAGES / 2 - 1]).unwrap();
        tried(&driver, &[5 * PAGES, PAGES, 0]).unwrap();
        let dirty = tried(&driver, &[PAGES, PAGES / 2, PAGES, PAGES]).unwrap_err();
        assert!(dirty.contains("the driver may mark the whole file as dirty"), "{dirty}");
        let untold = tried(&driver, &[]).unwrap_err();
        assert!(untold.contains("does not report"), "{untold}");
        assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
        let driver = driver.with_map_failure(MapFailure::Refused);
        let refused = tried(&driver, &[0]).unwrap_err();
        assert!(refused.contains("read-only"), "{refused}");
    }

    #[test]
    fn dirty_pages_are_read_from_vmstat() {
        let text = "nr_dirty 7\nnr_dirtied 12\nnr_written 5\n";
        assert_eq!(dirtied_in(text), Some(12));
        assert_eq!(dirtied_in("nr_dirtied many\n"), None);
        assert_eq!(dirtied_in("nr_dirty 7\n"), None);
    }
}
