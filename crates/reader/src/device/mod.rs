//! Where batches go: the host's memory, or a device that copies them out of the staging slots.
//!
//! A slot of the staging ring belongs to one side at a time: Free, Filling (the loader's threads write it), Ready,
//! InFlight (the batch is with the user or the device reads it), Free again. Both the user's batch and the device hold
//! a counted reference to the slot; it is free when the last one is gone. So a batch never changes under whoever reads it,
//! and no device needs to be told when that is over.

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

/// What takes batches out of the staging ring.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its name in statistics.
    fn name(&self) -> &'static str;

    /// Whether batches may lie elsewhere than in their slots: in the pack's memory, where the loader saves a copy. A device
    /// that reads the slots cannot take them.
    fn takes_lent(&self) -> bool {
        false
    }

    /// Whether it takes what a batch shows of a pack's own bytes from there: then such batches come by
    /// [`submit_stored`](Self::submit_stored), and nobody copies that part of them into their slots.
    fn takes_stored(&self) -> bool {
        false
    }

    /// Whether it finishes images: type, normalization and order of their values. Then their fields lie in slots as `u8`
    /// pixels `[samples, height, width, channels]`, and [`BatchField::finish`](crate::loader::BatchField::finish) says what
    /// is left to do, what the augmentation does to finished values included.
    fn finishes(&self) -> bool {
        false
    }

    /// What it holds of the images of `pack`, as they are stored. A loader of that pack alone puts a [`Frame`] for each image
    /// into the slot instead of its pixels then, where the augmentation allows it; see
    /// [`LoaderBuilder::holdable`](crate::loader::LoaderBuilder::holdable).
    fn holds(&self, pack: &Pack) -> Holding {
        let _ = pack;
        Holding::Nothing
    }

    /// Which JPEG files it decodes, if it does: a loader puts these into the slot instead of their pixels then, and a [`Frame`] for each
    /// image, from the slot's first byte; see [`FileLimits`].
    fn decodes(&self) -> Option<FileLimits> {
        None
    }

    /// How many slots of so many bytes it has room for, where that is less than any ring has: a ring whose slots nobody counts has no more.
    fn most_slots(&self, slot_bytes: u64) -> Option<u64> {
        let _ = slot_bytes;
        None
    }

    /// Of a device that holds [`Holding::Chunks`] or [`Holding::ChunksOfFile`]: called before slot number `slot` is submitted, for each chunk of which
    /// there is an image in it. From then until the slot is recycled the images of the chunk stay where they are: their place for
    /// frames. Where they are not there yet, `images` has them; none where it could not read them.
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

    /// Called once for each loader, with the ring that its slots come from: the device that serves it, for devices that
    /// prepare the memory; none where this one does as it is.
    ///
    /// # Errors
    /// [`DeviceError`], with which the loader is not made.
    fn attach(&self, ring: &Arc<Arena>) -> Result<Option<Arc<dyn Device>>, DeviceError> {
        let _ = ring;
        Ok(None)
    }

    /// Called before a slot is written again. For devices that watch over their slots; most have nothing to do.
    fn recycle(&self, slot: &mut SlotMut);

    /// Called when a slot has been filled: begins to read its first `len` bytes, and keeps `slot` until it is done.
    ///
    /// # Errors
    /// [`DeviceError`], which the consumer of the batch gets.
    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError>;

    /// As [`submit`](Self::submit), of a batch of whose images some are JPEG files. Of these it may refuse some: then the host decodes them,
    /// and the batch comes again. Whether it refuses a file must not depend on the others.
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

    /// As [`submit`](Self::submit), of a batch of which a part lies in the pack's bytes, not in the slot.
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

/// Bytes of a pack in the place of those that a slot has from an offset on.
#[derive(Debug, Clone)]
pub struct StoredPart<'a> {
    /// The pack.
    pub pack: &'a Arc<Pack>,
    /// Which bytes of its file; they were checked as all that is read.
    pub range: Range<usize>,
    /// First byte in the slot.
    pub offset: usize,
}

/// The images of a chunk, for a device that takes it.
pub trait ChunkImages {
    /// Where they lie in the pack's file, one after the other, once they were checked as all that is read. None where the loader
    /// does not read them where they lie, or could not read them: then they are to be [written](Self::write). For a device that
    /// reads the file itself nothing of them is looked at.
    fn in_file(&mut self) -> Option<Range<usize>>;

    /// Puts them where it is told to, one after the other, and says whether it could.
    fn write(&mut self, to: &mut [u8]) -> bool;
}

/// What a device holds of the images of a pack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Holding {
    /// Nothing: they come with the batch.
    #[default]
    Nothing,
    /// All of them, in the order of the file.
    All,
    /// Those of the chunks that batches are made of, while they are: it takes them by [`Device::take_chunk`].
    Chunks,
    /// The same, and it reads them from the pack's file itself, where [`ChunkImages::in_file`] says. The loader reads nothing of
    /// them, and nobody checks them.
    ChunksOfFile,
}

/// A device's reading of one slot. `&dyn Any` of it is the device's own type, for who goes on with the batch on the device.
pub trait Transfer: Any + fmt::Debug + Send + Sync {
    /// Whether the device has all bytes.
    fn is_done(&self) -> bool;

    /// Returns when the device has all bytes.
    fn wait(&self);
}

/// Why a device did not take a batch.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{device}: {reason}")]
pub struct DeviceError {
    /// The device's name.
    pub device: &'static str,
    /// What it says.
    pub reason: String,
}
