//! JPEG files that a device decodes. The host decodes the files that are outside the limits, and those that the device
//! rejected.

use packds_system::{lock, to_u64};
use std::collections::BTreeSet;
use std::sync::Mutex;

use packds_pixels::{ImageFormat, check_structure};

use super::{Pictures, key};
use crate::augment::{AugmentError, Augmenter, Input, Located, Picture, SampleKey, Size};
use crate::device::{FileHead, FileLimits, Finish, Frame, Windows};
use crate::loader::error::LoadError;
use crate::loader::filling::Row;
use crate::loader::outputs::BatchField;

/// The files that a device decodes.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) limits: FileLimits,
    /// Samples whose files the device rejected. Whether it rejects a file depends only on the file. Therefore the
    /// contents of batches do not depend on threads or on the order of samples.
    refused: Mutex<BTreeSet<(usize, u64)>>,
}

impl Files {
    pub(super) fn new(limits: FileLimits) -> Self {
        Self { limits, refused: Mutex::default() }
    }

    /// Records that the device rejected a row's file. Returns whether this is new.
    pub(crate) fn refuse(&self, row: Row) -> bool {
        lock(&self.refused).insert((row.pack, row.sample))
    }

    /// The limits for a row's file. `None` if the file was rejected.
    pub(super) fn limits_of(&self, row: Row) -> Option<FileLimits> {
        (!lock(&self.refused).contains(&(row.pack, row.sample))).then_some(self.limits)
    }
}

impl Pictures {
    /// Writes the [`Frame`]s of `rows` for the device. Returns how many of their images the host decoded.
    pub(super) fn write_file_windows(
        &self,
        (finish, windows): (&Finish, &Windows),
        files: &Files,
        slot: &mut [u8],
        &BatchField { offset, item_bytes, .. }: &BatchField,
        rows: &[Row],
        seeds: &[u64],
    ) -> Result<u64, LoadError> {
        let (slot_bytes, channels) = (to_u64(slot.len()), finish.channels);
        let mut n_pixels = 0;
        for (at, row) in rows.iter().enumerate() {
            let place = offset.saturating_add(at.saturating_mul(item_bytes));
            let frame = match FileHead::of(slot.get(place..).unwrap_or_default()) {
                FileHead::Pixels => {
                    n_pixels += 1;
                    Frame {
                        source: to_u64(place + FileHead::BYTES),
                        width: finish.width,
                        height: finish.height,
                        row_bytes: finish.width.saturating_mul(channels),
                        ..Frame::default()
                    }
                }
                FileHead::File { width, height, .. } => {
                    let before = to_u64(at).saturating_mul(files.limits.pixel_bytes.into());
                    let picture = Located {
                        size: Size { width, height },
                        row_bytes: width.saturating_mul(channels),
                        source: slot_bytes.saturating_add(before),
                    };
                    let lost = "a file exceeds its limits";
                    self.frame(key(seeds, *row), 0, picture, windows, lost)?
                }
            };
            let to = windows.offset(0).saturating_add(at * Frame::BYTES);
            if let Some(to) = slot.get_mut(to..to + Frame::BYTES) {
                to.copy_from_slice(&frame.to_bytes());
            }
        }
        Ok(n_pixels)
    }
}

/// Writes an image into the slot: its file if the device decodes it, otherwise its pixels.
pub(super) fn file_or_pixels(
    augmenter: &mut Augmenter,
    limits: Option<FileLimits>,
    key: SampleKey,
    image: Picture<'_>,
    place: &mut [u8],
) -> Result<(), AugmentError> {
    let n_bytes = augmenter.plan().item_bytes();
    let (head, rest) = place.split_at_mut(FileHead::BYTES.min(place.len()));
    let mut written = FileHead::Pixels;
    let channels = augmenter.plan().output().channels;
    let size = limits.and_then(|limits| device_file(image, limits, channels));
    match (image, size) {
        (Picture::Encoded(encoded), Some((width, height))) => {
            let len = encoded.bytes.len();
            let to = rest.get_mut(..len).unwrap_or_default();
            to.copy_from_slice(encoded.bytes);
            written = FileHead::File { len: u32::try_from(len).unwrap_or(0), width, height };
        }
        _ => {
            let pixels = rest.get_mut(..n_bytes).unwrap_or_default();
            augmenter.apply(Input::new(key, image), &mut [pixels], &mut [])?;
        }
    }
    head.copy_from_slice(&written.to_bytes());
    Ok(())
}

/// The size of an image whose file the device decodes. The file must be a complete 8-bit JPEG file within the limits.
/// It must have luma/chroma colours and as many channels as the output.
fn device_file(image: Picture<'_>, limits: FileLimits, channels: u8) -> Option<(u32, u32)> {
    let Picture::Encoded(encoded) = image else { return None };
    // The host's decoder reports any errors in the file.
    let info = check_structure(encoded.bytes).ok()?;
    let is_plain = info.format == ImageFormat::Jpeg && info.bit_depth == 8 && !info.stores_rgb;
    let size = (info.width, info.height);
    let is_admitted = limits.admit(encoded.bytes.len(), size, channels);
    (is_plain && info.channels == channels && is_admitted).then_some(size)
}
