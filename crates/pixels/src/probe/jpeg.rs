//! JPEG headers: marker segments up to the first scan.

use super::bytes::{be16, offset};
use super::{ImageInfo, exif};
use crate::error::PixelError;
use crate::format::ImageFormat;

const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const APP1: u8 = 0xE1;

fn truncated(reason: &str) -> PixelError {
    PixelError::truncated(ImageFormat::Jpeg, reason)
}

/// Whether `marker` is a start-of-frame, and then whether it is progressive.
fn frame(marker: u8) -> Option<bool> {
    match marker {
        0xC4 | 0xC8 | 0xCC => None,
        0xC0..=0xCF => Some(matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE)),
        _ => None,
    }
}

/// Reads the headers; also says where the entropy-coded data of the first scan starts.
pub(super) fn probe(bytes: &[u8]) -> Result<(ImageInfo, usize), PixelError> {
    let mut at = 2;
    let mut orientation = None;
    let mut info: Option<ImageInfo> = None;
    loop {
        let (marker, segment) = next_marker(bytes, at)?;
        if marker == EOI {
            return Err(PixelError::malformed(
                ImageFormat::Jpeg,
                "ends before its first scan",
            ));
        }
        // Markers without a length: TEM, RSTn, a repeated SOI.
        if marker == 0x01 || (0xD0..=0xD8).contains(&marker) {
            at = segment;
            continue;
        }
        let length = be16(bytes, segment).and_then(|length| offset(u32::from(length)));
        let length = length.ok_or_else(|| truncated("ends inside its headers"))?;
        if length < 2 {
            let reason = format!("marker {marker:02x} has length {length}");
            return Err(PixelError::malformed(ImageFormat::Jpeg, reason));
        }
        let body = bytes
            .get(segment + 2..segment + length)
            .ok_or_else(|| truncated("ends inside its headers"))?;
        at = segment + length;
        if marker == APP1 && orientation.is_none() && body.starts_with(b"Exif\0\0") {
            orientation = Some(exif::orientation(body));
        } else if marker == SOS {
            let mut info = info.ok_or_else(|| {
                PixelError::malformed(ImageFormat::Jpeg, "a scan before the frame header")
            })?;
            // A sequential file whose first scan lacks components has more scans.
            let in_scan = body.first().copied().unwrap_or(0);
            info.progressive |= in_scan < info.channels;
            info.orientation = orientation.unwrap_or(1);
            return Ok((info, at));
        } else if let Some(progressive) = frame(marker) {
            info = Some(frame_info(marker, progressive, body)?);
        }
    }
}

/// The next marker at or after `at`, and where its segment starts.
fn next_marker(bytes: &[u8], at: usize) -> Result<(u8, usize), PixelError> {
    let rest = bytes
        .get(at..)
        .ok_or_else(|| truncated("ends inside its headers"))?;
    let mut previous_is_ff = false;
    for (index, &byte) in rest.iter().enumerate() {
        if previous_is_ff && byte != 0 && byte != 0xFF {
            return Ok((byte, at + index + 1));
        }
        previous_is_ff = byte == 0xFF;
    }
    Err(truncated("ends inside its headers"))
}

fn frame_info(marker: u8, progressive: bool, body: &[u8]) -> Result<ImageInfo, PixelError> {
    let short = || PixelError::malformed(ImageFormat::Jpeg, "frame header too short");
    if matches!(marker, 0xC3 | 0xC5..=0xC7 | 0xCB | 0xCD..=0xCF) {
        let what = "lossless or hierarchical coding";
        return Err(PixelError::unsupported(ImageFormat::Jpeg, what));
    }
    let bit_depth = body.first().copied().ok_or_else(short)?;
    let height = be16(body, 1).ok_or_else(short)?;
    let width = be16(body, 3).ok_or_else(short)?;
    let channels = body.get(5).copied().ok_or_else(short)?;
    Ok(ImageInfo {
        format: ImageFormat::Jpeg,
        width: u32::from(width),
        height: u32::from(height),
        channels,
        bit_depth,
        orientation: 1,
        progressive,
        palette: false,
    })
}

/// Whether an end-of-image marker stands somewhere after the first scan's header. Entropy-coded
/// data cannot contain one, and the search starts at the end, so a whole file costs nothing.
pub(crate) fn jpeg_has_end(bytes: &[u8]) -> Result<bool, PixelError> {
    let (_, scan) = probe(bytes)?;
    let data = bytes.get(scan..).unwrap_or_default();
    Ok(data.windows(2).rev().any(|pair| pair == [0xFF, EOI]))
}

/// Fails where the end-of-image marker is missing.
pub(super) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    if jpeg_has_end(bytes)? {
        Ok(())
    } else {
        Err(truncated("no end-of-image marker"))
    }
}
