//! Images that a device holds. A batch consists of crops of these images. Some devices take the images chunk by chunk.

use packds_system::to_usize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{Pictures, key};
use crate::arena::SlotMut;
use crate::augment::{Located, Size};
use crate::device::{ChunkImages, ChunkReceiver, Frame, Windows};
use crate::fetch::StepItems;
use crate::loader::error::LoadError;
use crate::loader::filling::Row;
use crate::{Pack, ReadError};

/// How a device holds stored images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The device holds all images, in file order.
    All,
    /// The device takes the images chunk by chunk.
    Chunks,
    /// The device reads the chunks from the file itself.
    ChunksOfFile,
}

impl Pictures {
    /// The start of each row's image on the device. The device takes the missing chunks for slot number `slot`.
    fn places(&self, held: Held, rows: &[Row], slot: usize, source: &ChunkSource<'_>) -> Result<Vec<u64>, LoadError> {
        let bytes = self.picture_bytes().unwrap_or(0);
        if held == Held::All {
            return Ok(rows.iter().map(|row| row.sample.saturating_mul(bytes)).collect());
        }
        let geometry = source.pack.geometry();
        let mut taken = BTreeMap::new();
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let (chunk, index) = geometry.locate(row.sample);
            let first = match taken.get(&chunk) {
                Some(first) => *first,
                None => {
                    let first = self.take_chunk(held, chunk, slot, source)?;
                    taken.insert(chunk, first);
                    first
                }
            };
            places.push(first + u64::from(index).saturating_mul(bytes));
        }
        Ok(places)
    }

    fn take_chunk(&self, held: Held, chunk: u64, slot: usize, source: &ChunkSource<'_>) -> Result<u64, LoadError> {
        let geometry = source.pack.geometry();
        let first = geometry.first_sample(chunk);
        let (position, schema) = (self.image.position, source.pack.schema());
        let number = schema.body().nth(position).map(|(number, _)| number);
        let mut images = StoredImages {
            source,
            position,
            unread: number.filter(|_| held == Held::ChunksOfFile),
            samples: first..first + u64::from(geometry.samples_in(chunk)),
            bytes: to_usize(self.picture_bytes().unwrap_or(0)),
            scratch: Vec::new(),
            failed: None,
        };
        let no_chunk = || LoadError::Option("the device did not take the chunk".to_owned());
        let device = source.device.ok_or_else(no_chunk)?;
        let first = device.take_chunk(slot, chunk, &mut images)?;
        first.ok_or_else(|| images.failed.map_or_else(no_chunk, LoadError::Read))
    }

    /// Writes the [`Frame`]s of all views of `rows` for the device.
    pub(super) fn write_held_windows(
        &self,
        windows: &Windows,
        held: Held,
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
        source: &ChunkSource<'_>,
    ) -> Result<(), LoadError> {
        let places = self.places(held, rows, slot.number(), source)?;
        for view in 0..self.plan.output().views {
            let region = slot.get_mut(windows.offset(view)..).unwrap_or_default();
            let (frames, _) = region.as_chunks_mut::<{ Frame::BYTES }>();
            for ((row, place), to) in rows.iter().zip(&places).zip(frames) {
                let picture = Located {
                    size: Size { width: windows.width, height: windows.height },
                    row_bytes: windows.row_bytes,
                    source: *place,
                };
                let lost = "an area extends beyond its image";
                let frame = self.frame(key(seeds, *row), view, picture, windows, lost)?;
                *to = frame.to_bytes();
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSource<'a> {
    /// Takes the chunks of a step, if the device takes chunks.
    pub(crate) device: Option<&'a dyn ChunkReceiver>,
    pub(crate) pack: &'a Pack,
    /// The items of the step. They include all samples of the step's chunks.
    pub(crate) items: &'a StepItems,
}

struct StoredImages<'a> {
    source: &'a ChunkSource<'a>,
    position: usize,
    /// The schema number of the image field, if the loader has not read the images.
    unread: Option<usize>,
    samples: Range<u64>,
    bytes: usize,
    scratch: Vec<u8>,
    failed: Option<ReadError>,
}

impl StoredImages<'_> {
    fn item(&mut self, sample: u64) -> Result<&[u8], ReadError> {
        let (pack, items) = (self.source.pack, self.source.items);
        let Some(number) = self.unread else {
            return items.item(self.position, sample, &mut self.scratch);
        };
        match pack.located(pack.item_unchecked(number, sample))? {
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
        let file = self.source.pack.whole_file().as_ptr().addr();
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
        // A range that ends past the mapped file belongs to another allocation at a higher address.
        found.filter(|range| range.end <= self.source.pack.whole_file().len())
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
