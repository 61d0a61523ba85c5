//! JPEG files in the slots of a loader. The GPU decodes them after it has copied the slot.
//!
//! Each slot's part of the mirror is followed by space for the pixels of all its files. They are decoded on the copy
//! stream, so they are complete at `uploaded`. But the stream does not order the start of decoding: a hardware decoder
//! may write pixels as soon as it is called, before the stream reaches the batch. Therefore no queued work may use the
//! slot's space when the decoder is called. The space has these users:
//!
//! - The kernel reads the pixels of the slot's previous batch. The loader's thread waits for `emitted`.
//! - The decoder wrote these pixels. It was done before the slot became free, because the reaper keeps the slot until
//!   `uploaded` has happened.
//! - A decoder that rejected files of the same batch may have written pixels. It has finished doing so.
//! - Another loader may have owned the memory. It released the memory after all of this was complete.
//!
//! The wait does not need memory, and it does not make the GPU idle longer: the stream would wait equally long, and the
//! batches in the other slots come first. Separate space for each batch in flight would be as large as the ring itself,
//! and reusing it would raise the same question.
//!
//! Files do not change from the call until `uploaded`, because the reaper keeps their slot. A decoder may wait for
//! earlier batches.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_reader::arena::SlotMut;
use packds_reader::device::{DeviceError, FileHead, FileLimits, FileReceiver, FilesPart, FilesTaken};

use super::{RingWith, Staging, outside};
use crate::driver::{DevicePtr, JpegDecoder, JpegFile};
use crate::error::CudaError;
use crate::resident::Tables;

/// How the files of a loader's batches are decoded.
#[derive(Debug)]
pub(crate) struct FilePlan {
    pub(crate) limits: FileLimits,
    /// GPU memory for slots and for the pixels of their files. It limits the default number of slots.
    pub(crate) room: u64,
    /// Images per batch.
    pub(crate) rows: u64,
    /// Declared before the tables, which keep the driver alive, so that the decoder is dropped first.
    pub(crate) decoder: Box<dyn JpegDecoder>,
    /// The taps for resizing areas of the pictures.
    pub(crate) tables: Tables,
}

impl FilePlan {
    /// Size of a batch's pixels.
    pub(super) fn pixel_bytes(&self) -> u64 {
        self.rows.saturating_mul(self.limits.pixel_bytes.into())
    }
}

impl FileReceiver for RingWith<FilePlan> {
    fn submit_files(&self, slot: SlotMut, len: usize, files: FilesPart) -> Result<FilesTaken, DeviceError> {
        let refused = self.ring.queue_with(slot.number(), |staging| {
            // SAFETY: the slot stays alive until `uploaded` has happened, unless files are rejected, in which case no
            // work reads it. Until then, nothing else uses the slot's part of the mirror.
            unsafe { staging.send_files(&slot, len, &self.with, files) }
        })?;
        if !refused.is_empty() {
            return Ok(FilesTaken::Refused(slot, refused));
        }
        let slot = slot.freeze();
        let transfer = self.ring.watch(slot.clone())?;
        Ok(FilesTaken::All(slot, transfer))
    }
}

impl Staging {
    /// Queues the decoding of files and the copies of everything else. If files are rejected, this returns their rows
    /// and queues nothing.
    ///
    /// # Safety
    /// Until all this work is done, the slot does not change. Until then, only work that the copy stream waits for uses
    /// the slot's part of the mirror and the pixels after it.
    unsafe fn send_files(
        &self,
        slot: &SlotMut,
        len: usize,
        plan: &Arc<FilePlan>,
        files: FilesPart,
    ) -> Result<Vec<usize>, CudaError> {
        let n_rows = to_u64(files.rows);
        if n_rows > plan.rows {
            let text = format!(
                "the batch has {n_rows} files, but the device was made for a loader with a batch size of {}",
                plan.rows
            );
            return Err(CudaError::Use(text));
        }
        let mirror = self.mirror_of(slot.number());
        let at = |offset: usize| mirror.plus(to_u64(offset));
        let pixels = at(self.arena.slot_bytes());
        let places = files.rows.saturating_mul(files.item_bytes);
        let end = files.offset.saturating_add(places);
        let mut copied = vec![(0, files.offset), (end, len.max(end))];
        let (mut queued, mut rows) = (Vec::new(), Vec::new());
        for row in 0..files.rows {
            let start = files.offset + row * files.item_bytes;
            let place = slot.get(start..start + files.item_bytes);
            let place = place.ok_or_else(outside)?;
            match file_of(place, plan.limits, row, files.channels, pixels)? {
                Some(file) => {
                    queued.push(file);
                    rows.push(row);
                }
                None => copied.push((start, start + files.item_bytes)),
            }
        }
        // SAFETY: the files are in the slot. There is space for their pixels, because the files are within the limits.
        // The caller guarantees the rest.
        let refused = unsafe { plan.decoder.decode(&queued, files.channels, self.copies)? };
        if !refused.is_empty() {
            return Ok(refused.iter().filter_map(|number| rows.get(*number).copied()).collect());
        }
        for (start, end) in copied {
            let part = slot.get(start..end).ok_or_else(outside)?;
            // SAFETY: the bytes are in the arena, which is registered. The caller guarantees the rest.
            unsafe { self.copy(part, at(start))? };
        }
        Ok(refused)
    }
}

/// The file in place of an image, if there is one, and the destination of its pixels.
fn file_of(
    place: &[u8],
    limits: FileLimits,
    row: usize,
    channels: u32,
    pixels: DevicePtr,
) -> Result<Option<JpegFile<'_>>, CudaError> {
    let FileHead::File { len, width, height } = FileHead::of(place) else {
        return Ok(None);
    };
    let len = to_usize(len);
    let end = FileHead::BYTES.saturating_add(len);
    let bytes = place.get(FileHead::BYTES..end).ok_or_else(outside)?;
    let row_bytes = width.saturating_mul(channels);
    if u64::from(row_bytes) * u64::from(height) > limits.pixel_bytes.into() {
        return Err(outside());
    }
    let before = to_u64(row).saturating_mul(limits.pixel_bytes.into());
    Ok(Some(JpegFile { bytes, width, height, to: pixels.plus(before), row_bytes }))
}
