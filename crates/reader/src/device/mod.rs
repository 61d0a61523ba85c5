//! The destination of batches: host memory, or a device that takes them from the staging slots.
//!
//! A [`Device`] declares once per loader which parts of batches it takes: its [`Placement`]. A [`Receiver`] then takes
//! exactly these parts from the loader's ring.
//!
//! Each slot of the staging ring is in one state at a time: Free, Filling (the loader's threads write it), Ready,
//! InFlight (the user holds the batch or the device reads it), and Free again. Both the user's batch and the device
//! hold a counted reference to the slot. The slot is free when the last reference is dropped. Therefore a batch never
//! changes while it is read, and no notification is needed when a device has finished reading.

mod files;
mod finish;
mod host;
mod resampling;
#[cfg(any(test, feature = "testing"))]
mod sim;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::Pack;
use crate::arena::{Arena, SlotMut, SlotRef};

// Internals for the other crates of this workspace. They may change in any version.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub use self::sim::{SimDevice, Violation};
#[doc(hidden)]
pub use self::{
    files::{FileHead, FileLimits, FilesPart, FilesTaken},
    finish::{Changes, ColorOp, Finish, Frame, Patch, Share, Windows},
    host::{Done, HostDevice, InPlace, OwnSlots, Staged},
    resampling::Resampling,
};

/// A destination of batches.
pub trait Device: fmt::Debug + Send + Sync {
    /// How this device handles the batches of a loader for these packs. The loader calls this when it is built, plans
    /// its batches accordingly, and then attaches the device to its ring.
    fn placement(self: Arc<Self>, packs: &[Arc<Pack>]) -> Placement;
}

/// Which part of a loader's batches a device handles.
///
/// In all variants except [`Host`](Self::Host) and [`Slots`](Self::Slots), the device finishes images: it normalizes
/// their values and converts their type and order. In the slots, image fields are then `u8` pixels
/// `[samples, height, width, channels]`. [`BatchField::finish`](crate::loader::BatchField::finish) describes the
/// remaining work, including the augmentation that comes after normalization.
#[non_exhaustive]
pub enum Placement {
    /// Nothing. Batches stay on the host, in their slots or borrowed from the pack. Borrowing saves a copy in the
    /// loader.
    Host,
    /// Full slots.
    #[doc(hidden)]
    Slots(Attach<dyn Receiver>),
    /// Full slots with unfinished images.
    #[doc(hidden)]
    Pixels(Attach<dyn Receiver>),
    /// The same as `Pixels`, but unchanged bytes of a pack are taken directly from the pack. They are not copied into
    /// the slots.
    #[doc(hidden)]
    Stored(Attach<dyn StoredReceiver>),
    /// Slots with crops of images. The device holds all stored images of the pack, in file order. If the augmentation
    /// allows it, the loader writes a [`Frame`] for each image instead of its pixels.
    #[doc(hidden)]
    Held(Attach<dyn Receiver>),
    /// The same as `Held`, but the device only holds the stored images of the chunks in current batches.
    #[doc(hidden)]
    Chunks(Attach<dyn ChunkReceiver>),
    /// The same as `Chunks`, but the device reads the chunks from the pack's file, at [`ChunkImages::in_file`], and
    /// they are not verified.
    #[doc(hidden)]
    ChunksOfFile(Attach<dyn ChunkReceiver>),
    /// Slots with JPEG files that the device decodes, and a [`Frame`] for each image. Offsets in frames are relative
    /// to the slot's first byte.
    #[doc(hidden)]
    Files {
        /// The limits of the files.
        limits: FileLimits,
        /// Memory of the device for slots and for the pixels of their files. It limits the default number of slots.
        room: u64,
        /// Attaches the device.
        attach: Attach<dyn FileReceiver>,
    },
}

/// A function that is called once per loader with the ring of its slots. It creates the part of the device that serves
/// this ring. If it returns an error, building the loader fails.
#[doc(hidden)]
pub type Attach<T> = Box<dyn FnOnce(&Arc<Arena>) -> Result<Arc<T>, DeviceError>>;

/// The part of a device that serves one ring.
pub trait Receiver: fmt::Debug + Send + Sync {
    /// The name of the device in errors.
    fn name(&self) -> &'static str;

    /// Called before a slot is reused. Only devices that track slots need it.
    fn recycle(&self, slot: &mut SlotMut) {
        let _ = slot;
    }

    /// Called when a slot is full. Starts reading its first `len` bytes, and keeps `slot` until that is complete.
    ///
    /// # Errors
    /// A [`DeviceError`]. The consumer of the batch gets it.
    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError>;
}

/// A receiver that reads parts of batches from the pack.
#[doc(hidden)]
pub trait StoredReceiver: Receiver {
    /// Like [`submit`](Receiver::submit), for a batch that is partly in the pack's bytes instead of the slot.
    ///
    /// # Errors
    /// A [`DeviceError`]. The consumer of the batch gets it.
    fn submit_stored(&self, slot: SlotRef, len: usize, part: StoredPart<'_>) -> Result<Box<dyn Transfer>, DeviceError>;
}

/// A receiver that takes the images of whole chunks.
#[doc(hidden)]
pub trait ChunkReceiver: Receiver {
    /// Makes the images of a chunk available. Called for each chunk whose images slot number `slot` uses, before that
    /// slot is submitted. The images then stay in place until the slot is recycled. Images that are not on the device
    /// yet are copied from `images`. Returns the offset where the images start, for use in frames. `None` if `images`
    /// could not read them.
    ///
    /// # Errors
    /// A [`DeviceError`]. The consumer of the batch gets it.
    fn take_chunk(&self, slot: usize, chunk: u64, images: &mut dyn ChunkImages) -> Result<Option<u64>, DeviceError>;
}

/// A receiver that decodes JPEG files.
#[doc(hidden)]
pub trait FileReceiver: Receiver {
    /// Like [`submit`](Receiver::submit), for a batch with JPEG files among its images. The device may reject some of
    /// the files. The host then decodes them, and the batch is submitted again. Whether a file is rejected must not
    /// depend on the other files.
    ///
    /// # Errors
    /// A [`DeviceError`]. The consumer of the batch gets it.
    fn submit_files(&self, slot: SlotMut, len: usize, files: FilesPart) -> Result<FilesTaken, DeviceError>;
}

/// A device that is attached to a loader's ring.
#[derive(Debug)]
pub(crate) enum Attached {
    Host,
    Slots(Arc<dyn Receiver>),
    Stored(Arc<dyn StoredReceiver>),
    Chunks(Arc<dyn ChunkReceiver>),
    Files(Arc<dyn FileReceiver>),
}

/// What the device does to make images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum OnDevice {
    /// Nothing: it takes finished pixels.
    Nothing,
    /// It finishes pixels.
    Pixels,
    /// It cuts crops out of stored images, and holds all of these images.
    Held,
    /// It cuts crops out of stored images, and takes these images chunk by chunk.
    Chunks,
    /// It cuts crops out of stored images, and reads these images from the file chunk by chunk.
    ChunksOfFile,
    /// It decodes JPEG files within these limits.
    Files(FileLimits),
}

impl Placement {
    /// A placement of full slots, for a device that treats all rings in the same way.
    pub fn slots(device: Arc<impl Receiver + 'static>) -> Self {
        Self::Slots(Box::new(move |_| Ok(device)))
    }

    pub(crate) const fn images(&self) -> OnDevice {
        match self {
            Self::Host | Self::Slots(_) => OnDevice::Nothing,
            Self::Pixels(_) | Self::Stored(_) => OnDevice::Pixels,
            Self::Held(_) => OnDevice::Held,
            Self::Chunks(_) => OnDevice::Chunks,
            Self::ChunksOfFile(_) => OnDevice::ChunksOfFile,
            Self::Files { limits, .. } => OnDevice::Files(*limits),
        }
    }

    /// Maximum number of slots of this size for batches of `rows` samples. `None` if it is not limited.
    pub(crate) fn most_slots(&self, slot_bytes: u64, rows: u64) -> Option<u64> {
        let Self::Files { limits, room, .. } = self else { return None };
        let pixels = rows.saturating_mul(limits.pixel_bytes.into());
        Some(room / slot_bytes.saturating_add(pixels).max(1))
    }

    pub(crate) fn attach(self, ring: &Arc<Arena>) -> Result<Attached, DeviceError> {
        Ok(match self {
            Self::Host => Attached::Host,
            Self::Slots(attach) | Self::Pixels(attach) | Self::Held(attach) => Attached::Slots(attach(ring)?),
            Self::Stored(attach) => Attached::Stored(attach(ring)?),
            Self::Chunks(attach) | Self::ChunksOfFile(attach) => Attached::Chunks(attach(ring)?),
            Self::Files { attach, .. } => Attached::Files(attach(ring)?),
        })
    }
}

impl OnDevice {
    /// Whether the device cuts crops out of stored images.
    pub(crate) const fn holds(self) -> bool {
        matches!(self, Self::Held | Self::Chunks | Self::ChunksOfFile)
    }
}

impl Attached {
    pub(crate) fn receiver(&self) -> &dyn Receiver {
        match self {
            Self::Host => &InPlace,
            Self::Slots(device) => device.as_ref(),
            Self::Stored(device) => device.as_ref(),
            Self::Chunks(device) => device.as_ref(),
            Self::Files(device) => device.as_ref(),
        }
    }

    /// Whether batches may be outside their slots, in the pack's memory.
    pub(crate) const fn borrows(&self) -> bool {
        matches!(self, Self::Host | Self::Stored(_))
    }
}

/// Bytes of a pack that replace the bytes of a slot, starting at an offset.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct StoredPart<'a> {
    /// The pack.
    pub pack: &'a Arc<Pack>,
    /// The range in the file. It has been verified like all data that is read.
    pub range: Range<usize>,
    /// Offset in the slot.
    pub offset: usize,
}

/// The images of a chunk, for a device that takes the chunk.
#[doc(hidden)]
pub trait ChunkImages {
    /// The images' contiguous range in the pack's file, after verification. `None` if the loader does not read them in
    /// place or could not read them. In this case, call [`write`](Self::write) instead. If the device reads the file
    /// itself, the images are not read or verified.
    fn in_file(&mut self) -> Option<Range<usize>>;

    /// Copies the images to `to`, one after another. Returns whether it succeeded.
    fn write(&mut self, to: &mut [u8]) -> bool;
}

/// A transfer of one slot to a device. To continue with the batch on the device, downcast `&dyn Any` to the device's
/// own type.
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
