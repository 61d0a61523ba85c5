//! JPEG files that a device decodes: whether a loader has such files, and how large they may be.

use packds_system::{counted, to_u64, to_usize};
use std::sync::Arc;

use packds_format::Coding;

use super::Probe;
use crate::Pack;
use crate::device::{FileLimits, OnDevice, Resampling};
use crate::loader::Remedy;
use crate::loader::error::LoadError;
use crate::loader::pictures::Pictures;

/// Maximum number of inspected samples per pack. They are evenly spaced.
const INSPECTED: u64 = 1024;
/// One in this many files may exceed each limit.
const ONE_OF: usize = 50;
/// Number of slots that the limits are computed for, if the user does not set it.
const FEW_SLOTS: u64 = 4;
/// Upper bound for the limit on sides.
const LONGEST: u32 = 16 << 10;
/// The limit on file sizes is rounded up to a multiple of this number, the size of a page in a slot.
const FILE_STEP: u64 = 4 << 10;
/// The limit on pixel sizes is a multiple of this number, which is a suitable alignment for GPUs.
const PIXEL_STEP: u64 = 256;

/// What a device needs to decode JPEG files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decodable {
    /// Number of images per batch.
    pub rows: u32,
    /// How the crops of these images are resized.
    pub resampling: Arc<Resampling>,
}

/// Suggested limits for the JPEG files that a device decodes. They come from some samples of a loader's packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSurvey {
    /// The limits.
    pub limits: FileLimits,
    /// Number of inspected samples.
    pub n_inspected: usize,
    /// Number of inspected samples within the limits.
    pub n_admitted: usize,
    /// Whether the limits are lower because the device lacks memory.
    pub lacks_memory: bool,
}

/// A JPEG file in a pack.
#[derive(Debug, Clone, Copy)]
struct SeenFile {
    bytes: usize,
    size: (u32, u32),
    channels: u8,
}

/// The inspected JPEG files with as many channels as the output, and the number of inspected samples.
#[derive(Debug, Default)]
struct SeenFiles {
    files: Vec<SeenFile>,
    n_inspected: usize,
}

impl SeenFiles {
    /// Inspects a pack. Skips unreadable samples, because loading reports them later.
    fn add(&mut self, pack: &Pack, field: &str, channels: u8) {
        let n = pack.n_samples();
        let step = n.div_ceil(INSPECTED).max(1);
        for at in 0..n / step {
            self.n_inspected += 1;
            let seen = SeenFile::of(pack, field, at * step);
            self.files.extend(seen.filter(|file| file.channels == channels));
        }
    }

    /// A size that most of the files do not exceed.
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
            // Only the length of the bytes matters here. At worst, a wrong length sends a file to the other decoder.
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

impl Probe<'_> {
    /// What a device needs to [decode](crate::device::Placement::Files) the JPEG files within these limits.
    ///
    /// # Errors
    /// [`LoadError`] if no image is decoded, and the errors of
    /// [`LoaderBuilder::build`](super::LoaderBuilder::build).
    pub fn decodable(self, limits: FileLimits) -> Result<Decodable, LoadError> {
        let pictures = self.with_files(limits)?;
        let lost = || not_decodable("their resize parameters are unknown");
        Ok(Decodable { rows: self.0.batch, resampling: pictures.resampling().cloned().ok_or_else(lost)? })
    }

    /// Suggests limits that nearly all JPEG files of the packs meet. The limits are lower if the resize weights require
    /// it, or if the files and pixels of all batches that exist at a time would exceed `room` bytes on the device. The
    /// sizes are estimated from at most 1024 samples per pack.
    ///
    /// # Errors
    /// As for [`decodable`](Self::decodable), or if no inspected sample is a JPEG file, or if `room` is too small.
    pub fn survey_files(self, room: u64) -> Result<FileSurvey, LoadError> {
        let least = FileLimits { file_bytes: 0, pixel_bytes: 0, side: 1 };
        let pictures = self.with_files(least)?;
        let (field, channels) = (pictures.image().0, pictures.made().channels);
        let mut seen = SeenFiles::default();
        let others = self.0.others.iter().map(|(pack, _)| pack);
        for pack in std::iter::once(&self.0.pack).chain(others) {
            seen.add(pack, field, channels);
        }
        if seen.files.is_empty() {
            let n = seen.n_inspected;
            let why = format!(
                "none of {} is a JPEG file with {}",
                counted(n, "inspected image"),
                counted(channels, "channel")
            );
            return Err(not_decodable(&why));
        }
        let (mut limits, lacks_memory) = self.within(room, &seen);
        while self.with_files(limits).is_err() && limits.side > 1 {
            limits.side = limits.side / 4 * 3;
        }
        let is_admitted = |file: &&SeenFile| limits.admit(file.bytes, file.size, file.channels);
        let n_admitted = seen.files.iter().filter(is_admitted).count();
        if n_admitted == 0 {
            let why = if lacks_memory {
                "its memory is too small for the pixels of a batch"
            } else {
                "all inspected images are too large to be resized on the device"
            };
            return Err(not_decodable(why));
        }
        Ok(FileSurvey { limits, n_inspected: seen.n_inspected, n_admitted, lacks_memory })
    }

    /// The limits for the inspected files, and whether `room` reduces them.
    fn within(self, room: u64, seen: &SeenFiles) -> (FileLimits, bool) {
        let slots = self.0.slots.map_or(FEW_SLOTS, |slots| to_u64(slots.get()));
        let for_each = room / slots.saturating_mul(self.0.batch.into()).max(1);
        let bytes = |file: &SeenFile| to_u64(file.bytes);
        let (file, pixels) = (seen.usual(bytes), seen.usual(SeenFile::pixels));
        let (file, pixels) = (file.next_multiple_of(FILE_STEP), pixels.next_multiple_of(PIXEL_STEP));
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

    /// The processing of images, if a device decodes their files.
    fn with_files(self, limits: FileLimits) -> Result<Pictures, LoadError> {
        let device = OnDevice::Files(limits);
        let augment = self.0.augment.as_ref();
        let augment = augment.ok_or_else(|| not_decodable("nothing is augmented"))?;
        let pictures = Pictures::new(&self.0.pack, augment, self.0.fields.as_deref(), device)?;
        match pictures.against {
            Some(why) => Err(not_decodable(why)),
            None => Ok(pictures),
        }
    }
}

/// The error for images that the device cannot decode. `why` gives the reason.
pub(in super::super) fn not_decodable(why: &str) -> LoadError {
    LoadError::OnDevice { why: format!("the device cannot decode the images: {why}"), remedy: Remedy::HostDecodes }
}
