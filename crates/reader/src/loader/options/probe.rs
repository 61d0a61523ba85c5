//! Determines which parts of a loader's batches a device could take. The device uses this to decide where images are
//! made.

mod files;

use std::sync::Arc;

use super::{DEFAULT_MEMORY, LoaderBuilder};
use crate::Pack;
use crate::augment::Augment;
use crate::device::{OnDevice, Resampling};
use crate::fetch::{Access, Checksums, against_holding, choose};
use crate::loader::outputs::Outputs;
use crate::loader::pictures::Pictures;
use crate::loader::{BadSamples, LoadError};
use crate::plan::OrderKind;

pub(super) use self::files::not_decodable;
pub use self::files::{Decodable, FileSurvey};

/// The options of a loader, as a device sees them before the loader is built.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a>(&'a LoaderBuilder);

/// The images that a device may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holdable {
    /// The image field.
    pub field: String,
    /// Size of the images of all samples.
    pub bytes: u64,
    /// How the images are resized, if at all.
    pub resampling: Option<Arc<Resampling>>,
    /// Size of the images in a chunk. The last chunk may be smaller.
    pub chunk_bytes: u64,
    /// Maximum number of chunks that a batch takes samples from.
    pub chunks_of_batch: u64,
}

impl<'a> Probe<'a> {
    /// These options, as a device sees them.
    pub const fn new(builder: &'a LoaderBuilder) -> Self {
        Self(builder)
    }

    /// The pack. For a mixture, the first pack.
    pub const fn pack(self) -> &'a Arc<Pack> {
        &self.0.pack
    }

    /// When checksums are verified.
    pub const fn checksums(self) -> Checksums {
        self.0.checksums
    }

    /// What to do with samples that cannot be loaded.
    pub const fn bad_samples(self) -> BadSamples {
        self.0.bad_samples
    }

    /// The resolved order.
    ///
    /// # Errors
    /// [`LoadError`] if the order does not match the pack.
    pub fn order(self) -> Result<OrderKind, LoadError> {
        let memory = self.0.memory_bytes.unwrap_or(DEFAULT_MEMORY);
        Ok(self.0.plan(memory)?.0.recipe().order)
    }

    /// The images that a device could [hold](crate::device::Placement::Held), so that batches only need crops of
    /// them. This requires a single pack with raw images of one size and without a mask. The augmentation must be one
    /// that a device supports: resizing, cropping, flips, colour changes of single pixels, erasing with fixed values,
    /// mixing and normalization. Otherwise the result is `None`.
    ///
    /// # Errors
    /// [`LoadError`], as for [`LoaderBuilder::build`], if the augmentation does not match the pack.
    pub fn holdable(self) -> Result<Option<Holdable>, LoadError> {
        if !self.0.others.is_empty() {
            return Ok(None);
        }
        let held = self.0.pictures(OnDevice::Held)?.filter(|pictures| pictures.held().is_some());
        Ok(held.and_then(|pictures| {
            let (pack, bytes) = (self.pack(), pictures.picture_bytes()?);
            let samples = pack.geometry().chunk_samples();
            Some(Holdable {
                field: pictures.image().0.to_owned(),
                bytes: bytes.checked_mul(pack.n_samples())?,
                resampling: pictures.resampling().cloned(),
                chunk_bytes: bytes.checked_mul(samples.into())?,
                chunks_of_batch: pack.n_chunks().min(self.0.batch.into()),
            })
        }))
    }

    /// Why a device cannot [hold](Self::holdable) the images, as a sentence. `None` if it can.
    ///
    /// # Errors
    /// [`LoadError`], as for [`holdable`](Self::holdable).
    pub fn against_holding(self) -> Result<Option<String>, LoadError> {
        if !self.0.others.is_empty() {
            return Ok(Some("several packs are mixed".to_owned()));
        }
        let (pack, fields) = (self.pack(), self.0.fields.as_deref());
        let made = |augment: &Augment| Pictures::new(pack, augment, fields, OnDevice::Held);
        let pictures = match &self.0.augment {
            Some(augment) => made(augment)?,
            None => match made(&Augment::new()) {
                Ok(pictures) if pictures.image().1 => pictures,
                Ok(_) => return Ok(Some("the images have no channel dimension".to_owned())),
                Err(error) => return Ok(Some(error.to_string())),
            },
        };
        Ok(pictures.against.map(str::to_owned))
    }

    /// Why a device that takes [chunks](crate::device::Placement::Chunks) cannot find their images in a mapping of the
    /// pack's file, or why the file may not be held in memory. The reason is a sentence. `None` if neither is the case.
    ///
    /// # Errors
    /// [`LoadError`], as for [`LoaderBuilder::build`], if the options do not match the pack.
    pub fn against_chunks_in_file(self) -> Result<Option<String>, LoadError> {
        let pictures = self.0.pictures(OnDevice::Chunks)?;
        let image = pictures.as_ref().map(|pictures| pictures.image().0.to_owned());
        let outputs = self.0.outputs(pictures)?;
        let compressed = image.and_then(|image| self.against_reading(&image));
        Ok(compressed.or_else(|| self.against_holding_file(&outputs)))
    }

    /// Why a device that [reads chunks itself](crate::device::Placement::ChunksOfFile) cannot find their images in the
    /// pack's file, as a sentence. `None` if it can.
    ///
    /// # Errors
    /// [`LoadError`], as for [`LoaderBuilder::build`], if the options do not match the pack or such a device.
    pub fn against_chunks_on_disk(self) -> Result<Option<String>, LoadError> {
        self.0.check_unread()?;
        let pictures = self.0.pictures(OnDevice::ChunksOfFile)?;
        Ok(pictures.and_then(|pictures| self.against_reading(pictures.image().0)))
    }

    /// Why a device that takes batches [from the pack's bytes](crate::device::Placement::Stored) cannot find them
    /// there, or why the file may not be held in memory. The reason is a sentence. `None` if neither is the case.
    ///
    /// # Errors
    /// [`LoadError`], as for [`LoaderBuilder::build`], if the options do not match the pack.
    pub fn against_batches_in_file(self) -> Result<Option<String>, LoadError> {
        if !self.0.others.is_empty() {
            return Ok(Some("several packs are mixed".to_owned()));
        }
        let order = self.order()?;
        if !order.in_file_order() {
            let name = order.name();
            return Ok(Some(format!(
                "the order is '{name}', but batches are contiguous in the file only in the orders 'chunks' and 'sequential'"
            )));
        }
        let device = match self.0.on_device() {
            OnDevice::Nothing => OnDevice::Nothing,
            _ => OnDevice::Pixels,
        };
        let outputs = self.0.outputs(self.0.pictures(device)?)?;
        let why = if !self.pack().schema().is_strided() {
            "the pack has compressed or variable-size items"
        } else if outputs.borrowable().is_none() {
            "the host changes the images, or batches have more than one field besides columns"
        } else {
            return Ok(self.against_holding_file(&outputs));
        };
        Ok(Some(why.to_owned()))
    }

    /// Why the images cannot be read directly from the file. `None` if they can.
    fn against_reading(self, image: &str) -> Option<String> {
        let mut fields = self.pack().schema().body().map(|(_, field)| field);
        let is_compressed = fields.any(|field| field.name == image && !field.codec.is_none());
        is_compressed.then(|| "the images are compressed".to_owned())
    }

    /// Why the pack is not read through its mapping, or why it may not be held in memory as a whole. `None` if neither
    /// is the case.
    fn against_holding_file(self, outputs: &Outputs) -> Option<String> {
        let choice = choose(self.pack(), &self.0.fetching(0, outputs));
        if choice.access == Access::Direct {
            return Some(format!("the access is {}", choice.reason));
        }
        against_holding(self.pack())
    }
}
