//! The stored images of a chunk, for a device that takes whole chunks.

use std::borrow::Cow;
use std::ops::Range;

use crate::device::{ChunkImages, Device};
use crate::fetch::StepItems;
use crate::{Pack, ReadError};

/// The source of a device's chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSource<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) pack: &'a Pack,
    /// The items of the step. It contains all samples of its chunks.
    pub(crate) items: &'a StepItems,
}

/// The stored images of a chunk.
pub(super) struct StoredImages<'a> {
    pub(super) source: &'a ChunkSource<'a>,
    pub(super) position: usize,
    /// Their field in the schema, if the loader has not read them.
    pub(super) unread: Option<usize>,
    pub(super) samples: Range<u64>,
    /// Size of an image.
    pub(super) bytes: usize,
    pub(super) scratch: Vec<u8>,
    /// Why they could not be read.
    pub(super) failed: Option<ReadError>,
}

impl StoredImages<'_> {
    fn item(&mut self, sample: u64) -> Result<&[u8], ReadError> {
        let (pack, items) = (self.source.pack, self.source.items);
        let Some(number) = self.unread else {
            return items.item(self.position, sample, &mut self.scratch);
        };
        match pack.told(pack.item_unchecked(number, sample))? {
            Cow::Borrowed(item) => Ok(item),
            Cow::Owned(item) => {
                self.scratch = item;
                Ok(&self.scratch)
            }
        }
    }
}

impl ChunkImages for StoredImages<'_> {
    fn in_file(&mut self) -> Option<Range<usize>> {
        let file = self.source.pack.bytes_unchecked().as_ptr().addr();
        let mut found: Option<Range<usize>> = None;
        for sample in self.samples.clone() {
            let (start, len) = match self.item(sample) {
                Ok(item) => (item.as_ptr().addr().checked_sub(file)?, item.len()),
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            };
            let known = found.get_or_insert(start..start);
            if known.end != start || len != self.bytes {
                return None;
            }
            known.end += len;
        }
        // Other memory may have an address behind the map.
        found.filter(|range| range.end <= self.source.pack.bytes_unchecked().len())
    }

    fn write(&mut self, to: &mut [u8]) -> bool {
        let places = to.chunks_exact_mut(self.bytes.max(1));
        for (sample, to) in self.samples.clone().zip(places) {
            match self.item(sample) {
                Ok(item) => to.copy_from_slice(item),
                Err(error) => {
                    self.failed = Some(error);
                    return false;
                }
            }
        }
        true
    }
}
