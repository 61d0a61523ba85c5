//! JPEG files that a device decodes: whether a loader has such, and how large they may be.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_format::Coding;

use super::LoaderBuilder;
use crate::Pack;
use crate::device::{FileLimits, Holding, Resampling};
use crate::loader::Remedy;
use crate::loader::error::LoadError;
use crate::loader::pictures::{OnDevice, Pictures};

/// Samples of each pack whose sizes are looked at, spread over it.
const LOOKED_AT: u64 = 1024;
/// Of so many files one may be larger than the limits.
const ONE_OF: usize = 50;
/// Slots that the limits leave room for, where nobody says how many there are.
const FEW_SLOTS: u64 = 4;
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

/// Which JPEG files a device is to decode, as some samples of a loader's packs suggest it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSurvey {
    /// The files.
    pub limits: FileLimits,
    /// Samples that were looked at.
    pub n_looked_at: usize,
    /// How many of them are such files.
    pub n_admitted: usize,
    /// Whether there would be more, were there more room on the device.
    pub lacks_room: bool,
}

/// A JPEG file with as many channels as come out.
#[derive(Debug, Clone, Copy)]
struct SeenFile {
    bytes: usize,
    size: (u32, u32),
    channels: u8,
}

/// Files of samples at equal distances in each pack, and how many samples these are.
#[derive(Debug, Default)]
struct SeenFiles {
    files: Vec<SeenFile>,
    n_looked_at: usize,
}

impl SeenFiles {
    /// Looks at a pack. A sample that cannot be read says nothing; it is a bad one later.
    fn add(&mut self, pack: &Pack, field: &str, channels: u8) {
        let n = pack.n_samples();
        let step = n.div_ceil(LOOKED_AT).max(1);
        for at in 0..n / step {
            self.n_looked_at += 1;
            let seen = SeenFile::of(pack, field, at * step);
            self.files
                .extend(seen.filter(|file| file.channels == channels));
        }
    }

    /// A size that most of them do not exceed.
    fn usual(&self, size: impl Fn(&SeenFile) -> u64) -> u64 {
        let mut sizes: Vec<u64> = self.files.iter().map(size).collect();
        sizes.sort_unstable();
        let n = sizes.len();
        let at = (n - n / ONE_OF).saturating_sub(1);
        sizes.get(at).copied().unwrap_or(0)
    }
}

impl SeenFile {
    fn of(pack: &Pack, field: &str, sample: u64) -> Option<Self> {
        let number = pack.schema().index_of(field).ok()?;
        if pack.coding(field, sample).ok()? != Some(Coding::Jpeg) {
            return None;
        }
        let (height, width, channels) = pack.item_shape(field, sample).ok()??;
        Some(Self {
            // Of its bytes only the number is of interest, and a wrong one sends a file to another decoder at most.
            bytes: pack.item_unchecked(number, sample).ok()?.len(),
            size: (u32::try_from(width).ok()?, u32::try_from(height).ok()?),
            channels: u8::try_from(channels).ok()?,
        })
    }

    fn pixels(&self) -> u64 {
        let (width, height) = self.size;
        (u64::from(width) * u64::from(height)).saturating_mul(self.channels.into())
    }

    fn side(&self) -> u64 {
        self.size.0.max(self.size.1).into()
    }
}

impl LoaderBuilder {
    /// What a device would do that [decodes](crate::device::Device::decodes) such files.
    ///
    /// # Errors
    /// [`LoadError`] where it would have nothing to do, and as for [`build`](Self::build).
    pub fn decodable(&self, limits: FileLimits) -> Result<Decodable, LoadError> {
        let pictures = self.with_files(limits)?;
        let lost = || not_decodable("nothing says how they are resized");
        Ok(Decodable {
            rows: self.batch,
            resampling: pictures.resampling().cloned().ok_or_else(lost)?,
        })
    }

    /// Limits that nearly all JPEG files of the packs keep, as far as the weights for resizing allow it and files and pixels of all batches
    /// that exist at a time take no more than `room` bytes on the device. They follow from at most 1024 samples of each pack.
    ///
    /// # Errors
    /// As for [`decodable`](Self::decodable), and where none of the samples is such a file, or there is room for none.
    pub fn survey_files(&self, room: u64) -> Result<FileSurvey, LoadError> {
        let least = FileLimits {
            file_bytes: 0,
            pixel_bytes: 0,
            side: 1,
        };
        let pictures = self.with_files(least)?;
        let (field, channels) = (pictures.image().0, pictures.made().channels);
        let mut seen = SeenFiles::default();
        let others = self.others.iter().map(|(pack, _)| pack);
        for pack in std::iter::once(&self.pack).chain(others) {
            seen.add(pack, field, channels);
        }
        if seen.files.is_empty() {
            let n = seen.n_looked_at;
            let why = format!(
                "none of the {n} images that were looked at is a JPEG file with {channels} channels"
            );
            return Err(not_decodable(&why));
        }
        let (mut limits, lacks_room) = self.within(room, &seen);
        while self.with_files(limits).is_err() && limits.side > 1 {
            limits.side = limits.side / 4 * 3;
        }
        let is_admitted = |file: &&SeenFile| limits.admit(file.bytes, file.size, file.channels);
        let n_admitted = seen.files.iter().filter(is_admitted).count();
        if n_admitted == 0 {
            let why = match lacks_room {
                true => "it lacks the memory for batches of their pixels",
                false => "the sides of all that were looked at are too long to be resized there",
            };
            return Err(not_decodable(why));
        }
        Ok(FileSurvey {
            limits,
            n_looked_at: seen.n_looked_at,
            n_admitted,
            lacks_room,
        })
    }

    /// The limits of files that were seen, and whether the room makes them lower.
    fn within(&self, room: u64, seen: &SeenFiles) -> (FileLimits, bool) {
        let slots = self.slots.map_or(FEW_SLOTS, |slots| to_u64(slots.get()));
        let for_each = room / slots.saturating_mul(self.batch.into()).max(1);
        let bytes = |file: &SeenFile| to_u64(file.bytes);
        let (file, pixels) = (seen.usual(bytes), seen.usual(SeenFile::pixels));
        let (file, pixels) = (
            file.next_multiple_of(FILE_STEP),
            pixels.next_multiple_of(PIXEL_STEP),
        );
        let file_room = file.min(for_each / 4);
        let pixel_room = pixels.min((for_each - file_room) / PIXEL_STEP * PIXEL_STEP);
        let longest = seen.usual(SeenFile::side).min(LONGEST.into());
        let limits = FileLimits {
            file_bytes: to_usize(file_room),
            pixel_bytes: u32::try_from(pixel_room).unwrap_or(u32::MAX),
            side: u32::try_from(longest).unwrap_or(LONGEST).max(1),
        };
        (limits, (file_room, pixel_room) != (file, pixels))
    }

    /// What is done to images where a device decodes their files.
    fn with_files(&self, limits: FileLimits) -> Result<Pictures, LoadError> {
        let device = OnDevice {
            finishes: true,
            holds: Holding::Nothing,
            decodes: Some(limits),
        };
        let augment = self.augment.as_ref();
        let augment = augment.ok_or_else(|| not_decodable("nothing is augmented"))?;
        let pictures = Pictures::new(&self.pack, augment, self.fields.as_deref(), device)?;
        match pictures.against_files() {
            Some(why) => Err(not_decodable(why)),
            None => Ok(pictures),
        }
    }
}

/// The error of a device that has nothing to decode, and why.
pub(super) fn not_decodable(why: &str) -> LoadError {
    LoadError::OnDevice {
        why: format!("the device cannot decode the images: {why}"),
        remedy: Remedy::HostDecodes,
    }
}
