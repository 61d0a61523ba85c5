//! The destination of batches: host memory, or a device that copies them from the staging slots.
//!
//! Each slot of the staging ring is in one state at a time: Free, Filling (the loader's threads write it), Ready, InFlight (the
//! user holds the batch or the device reads it), and Free again. Both the user's batch and the device hold a counted reference
//! to the slot. It is free when the last reference is dropped. So a batch never changes while it is read, and devices do not need
//! a notification when reading ends.

mod files;
mod finish;
mod host;
mod resampling;
mod sim;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::Pack;
use crate::arena::{Arena, SlotMut, SlotRef};

pub use files::{FileHead, FileLimits, FilesPart, FilesTaken};
pub use finish::{Changes, ColorOp, Finish, Frame, Patch, Share, Windows};
pub use host::{Done, HostDevice, OwnSlots, Staged};
pub use resampling::Resampling;
pub use sim::{SimDevice, Violation};

/// The receiver of batches from the staging ring.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its name in statistics.
    fn name(&self) -> &'static str;

    /// Whether batches may be outside their slots, in the pack's memory. This saves a copy in the loader. A device that reads the
    /// slots cannot support this.
    fn takes_lent(&self) -> bool {
        false
    }

    /// Whether it takes the parts of a batch that are unchanged bytes of a pack directly from the pack. Such batches come by
    /// [`submit_stored`](Self::submit_stored), and those parts are not copied into the slots.
    fn takes_stored(&self) -> bool {
        false
    }

    /// Whether it finishes images: type, normalization and order of their values. Their fields in the slots are then `u8` pixels
    /// `[samples, height, width, channels]`. [`BatchField::finish`](crate::loader::BatchField::finish) describes the remaining
    /// work, including augmentation of finished values.
    fn finishes(&self) -> bool {
        false
    }

    /// The stored images of `pack` that it holds. A loader of that single pack then writes a [`Frame`] per image into the slot
    /// instead of pixels, if the augmentation allows it: see
    /// [`LoaderBuilder::holdable`](crate::loader::LoaderBuilder::holdable).
    fn holds(&self, pack: &Pack) -> Holding {
        let _ = pack;
        Holding::Nothing
    }

    /// The limits of JPEG files that it decodes, if it does. A loader then writes these files into the slot instead of
    /// their pixels, and a [`Frame`] per image. Frames count from the slot's first byte: see [`FileLimits`].
    fn decodes(&self) -> Option<FileLimits> {
        None
    }

    /// Maximum number of slots of this size, if it is limited. A ring of default length has at most this many.
    fn most_slots(&self, slot_bytes: u64) -> Option<u64> {
        let _ = slot_bytes;
        None
    }

    /// Makes the images of a chunk available. Only for devices that hold [`Holding::Chunks`] or [`Holding::ChunksOfFile`].
    /// It is called before slot number `slot` is submitted, for each chunk that the slot has images of. The images then
    /// stay in place until the slot is recycled. Returns their start, for use in frames. If they are not on the device yet,
    /// they come from `images`. `None` if `images` could not read them.
    ///
    /// # Errors
    /// [`DeviceError`], which the consumer of the batch gets.
    fn take_chunk(
        &self,
        slot: usize,
        chunk: u64,
        images: &mut dyn ChunkImages,
    ) -> Result<Option<u64>, DeviceError> {
        let _ = (slot, chunk, images);
        Err(DeviceError {
            device: self.name(),
            reason: "it holds no chunks".to_owned(),
        })
    }

    /// Called once per loader with the ring of its slots. Returns the device that serves this ring, if the device needs to prepare
    /// the memory. `None` if this device can be used directly.
    ///
    /// # Errors
    /// [`DeviceError`], which fails the construction of the loader.
    fn attach(&self, ring: &Arc<Arena>) -> Result<Option<Arc<dyn Device>>, DeviceError> {
        let _ = ring;
        Ok(None)
    }

    /// Called before a slot is reused. Only devices that track slots need it.
    fn recycle(&self, slot: &mut SlotMut);

    /// Called when a slot is full. Starts reading its first `len` bytes, and keeps `slot` until that is complete.
    ///
    /// # Errors
    /// [`DeviceError`], which the consumer of the batch gets.
    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError>;

    /// Like [`submit`](Self::submit), for a batch with JPEG files among its images. It may refuse some of the files. The host then
    /// decodes them, and the batch is submitted again. Whether a file is refused must not depend on the other files.
    ///
    /// # Errors
    /// [`DeviceError`], which the consumer of the batch gets.
    fn submit_files(
        &self,
        slot: SlotMut,
        len: usize,
        files: FilesPart,
    ) -> Result<FilesTaken, DeviceError> {
        let _ = (slot, len, files);
        Err(DeviceError {
            device: self.name(),
            reason: "it decodes no files".to_owned(),
        })
    }

    /// Like [`submit`](Self::submit), for a batch that is partly in the pack's bytes instead of the slot.
    ///
    /// # Errors
    /// [`DeviceError`], which the consumer of the batch gets.
    fn submit_stored(
        &self,
        slot: SlotRef,
        len: usize,
        part: StoredPart<'_>,
    ) -> Result<Box<dyn Transfer>, DeviceError> {
        let _ = (slot, len, part);
        Err(DeviceError {
            device: self.name(),
            reason: "it takes nothing from where a pack lies".to_owned(),
        })
    }
}

/// Bytes of a pack that replace those of a slot from an offset on.
#[derive(Debug, Clone)]
pub struct StoredPart<'a> {
    /// The pack.
    pub pack: &'a Arc<Pack>,
    /// The range in the file. It was verified like all data that is read.
    pub range: Range<usize>,
    /// Offset in the slot.
    pub offset: usize,
}

/// The images of a chunk, for a device that takes it.
pub trait ChunkImages {
    /// Their contiguous range in the pack's file, after verification. `None` if the loader does not read them in place, or
    /// could not read them. Then [`write`](Self::write) them instead. For a device that reads the file itself, the images
    /// are not read or verified.
    fn in_file(&mut self) -> Option<Range<usize>>;

    /// Copies them to `to`, one after the other. Returns whether it succeeded.
    fn write(&mut self, to: &mut [u8]) -> bool;
}

/// The images of a pack that a device holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Holding {
    /// None: they come with the batch.
    #[default]
    Nothing,
    /// All images, in file order.
    All,
    /// The images of the chunks in current batches. The device takes them by [`Device::take_chunk`].
    Chunks,
    /// The same, but the device reads them from the pack's file, at [`ChunkImages::in_file`]. The loader does not read
    /// them, and they are not verified.
    ChunksOfFile,
}

/// A transfer of one slot to a device. Downcast `&dyn Any` to the device's own type to continue with the batch on the device.
pub trait Transfer: Any + fmt::Debug + Send + Sync {
    /// Whether the device has all bytes.
    fn is_done(&self) -> bool;

    /// Waits until the device has all bytes.
    fn wait(&self);
}

/// Why a device did not take a batch.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{device}: {reason}")]
pub struct DeviceError {
    /// The device's name.
    pub device: &'static str,
    /// The error message.
    pub reason: String,
}
