//! JPEG files that a device decodes: whether a loader has such, and how large they may be.

use std::sync::Arc;

use super::{LoaderBuilder, MOST_SLOTS};
use crate::MappedPack;
use crate::device::{FileLimits, Holding, Resampling};
use crate::loader::Remedy;
use crate::loader::error::LoadError;
use crate::loader::pictures::{OnDevice, Pictures};

/// Why a device that decodes JPEG files has nothing to do.
const NOT_DECODABLE: &str = "a device decodes JPEG files of a field of images without masks, for an augmentation of one view with a random resized crop \
    (rrc), flips, colours (not blur), erasing and mixing, up to a longest side whose weights for resizing take no more than 64 MiB";
/// Samples whose sizes are looked at, spread over the pack.
const LOOKED_AT: u64 = 1024;
/// The longest side that is tried.
const LONGEST: u32 = 16 << 10;
/// Limits are multiples of these: pages of a slot, and what GPUs like rows of memory to start at.
const FILE_STEP: u64 = 4 << 10;
const PIXEL_STEP: u64 = 256;

/// What a device that decodes JPEG files needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decodable {
    /// Images of a batch.
    pub rows: u32,
    /// How areas of their pictures are resized.
    pub resampling: Arc<Resampling>,
}

/// Sizes of some samples' files and pictures, each in ascending order.
#[derive(Debug, Default)]
struct Sizes {
    files: Vec<u64>,
    pixels: Vec<u64>,
    sides: Vec<u64>,
}

impl Sizes {
    /// Of samples at equal distances. One that cannot be read says nothing; it is a bad sample later.
    fn of(pack: &MappedPack, field: &str) -> Self {
        let mut sizes = Self::default();
        let Ok(number) = pack.schema().index_of(field) else {
            return sizes;
        };
        let n = pack.n_samples();
        let step = n.div_ceil(LOOKED_AT).max(1);
        for at in 0..n / step {
            let sample = at * step;
            let (shape, item) = (pack.item_shape(field, sample), pack.item(number, sample));
            if let (Some((height, width, channels)), Ok(item)) = (shape, item) {
                let pixels = height.saturating_mul(width).saturating_mul(channels);
                sizes
                    .files
                    .push(u64::try_from(item.len()).unwrap_or(u64::MAX));
                sizes.pixels.push(pixels);
                sizes.sides.push(height.max(width));
            }
        }
        for values in [&mut sizes.files, &mut sizes.pixels, &mut sizes.sides] {
            values.sort_unstable();
        }
        sizes
    }
}

/// A size that 99 of 100 do not exceed.
fn usual(ascending: &[u64]) -> u64 {
    let n = ascending.len();
    let at = n.saturating_mul(99).div_ceil(100).saturating_sub(1);
    ascending.get(at).copied().unwrap_or(0)
}

impl LoaderBuilder {
    /// What a device would do that [decodes](crate::device::Device::decodes) such files.
    ///
    /// # Errors
    /// [`LoadError`] where it would have nothing to do, and as for [`build`](Self::build).
    pub fn decodable(&self, limits: FileLimits) -> Result<Decodable, LoadError> {
        let pictures = self.with_files(limits)?;
        let resampling = pictures.and_then(|pictures| pictures.resampling().cloned());
        Ok(Decodable {
            rows: self.batch,
            resampling: resampling.ok_or_else(not_decodable)?,
        })
    }

    /// Limits that 99 of 100 files of the pack keep, as far as the weights for resizing allow it and the pixels of all batches that exist
    /// at a time take no more than `room` bytes on the device. They follow from the pack's samples, at most 1024 of them.
    ///
    /// # Errors
    /// As for [`decodable`](Self::decodable).
    pub fn file_limits(&self, room: u64) -> Result<FileLimits, LoadError> {
        let least = FileLimits {
            file_bytes: 0,
            pixel_bytes: 0,
            side: 1,
        };
        let pictures = self.with_files(least)?.ok_or_else(not_decodable)?;
        let sizes = Sizes::of(&self.pack, pictures.image().0);
        let slots = self.slots.map_or(MOST_SLOTS, |slots| {
            u64::try_from(slots.get()).unwrap_or(u64::MAX)
        });
        let images = slots.saturating_mul(self.batch.into()).max(1);
        let file = usual(&sizes.files).next_multiple_of(FILE_STEP);
        let pixels = usual(&sizes.pixels).next_multiple_of(PIXEL_STEP);
        let pixels = pixels.min(room / images / PIXEL_STEP * PIXEL_STEP);
        let longest = usual(&sizes.sides).min(LONGEST.into());
        let mut limits = FileLimits {
            file_bytes: usize::try_from(file).unwrap_or(usize::MAX),
            pixel_bytes: u32::try_from(pixels).unwrap_or(u32::MAX),
            side: u32::try_from(longest).unwrap_or(LONGEST).max(1),
        };
        while self.with_files(limits)?.is_none() && limits.side > 1 {
            limits.side = limits.side / 4 * 3;
        }
        Ok(limits)
    }

    /// What is done to images where a device decodes their files; none where it decodes none.
    fn with_files(&self, limits: FileLimits) -> Result<Option<Pictures>, LoadError> {
        let device = OnDevice {
            finishes: true,
            holds: Holding::Nothing,
            decodes: Some(limits),
        };
        let made = |augment| Pictures::new(&self.pack, augment, self.fields.as_deref(), device);
        let pictures = self.augment.as_ref().map(made).transpose()?;
        Ok(pictures.filter(|pictures| pictures.files().is_some()))
    }
}

/// The error of a device that has nothing to decode.
pub(super) fn not_decodable() -> LoadError {
    LoadError::OnDevice {
        why: NOT_DECODABLE.to_owned(),
        remedy: Remedy::HostDecodes,
    }
}
