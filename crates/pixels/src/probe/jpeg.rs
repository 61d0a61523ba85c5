//! Reads JPEG headers: the marker segments up to the first scan.

use super::bytes::{be16, offset};
use super::{ImageInfo, exif};
use crate::error::PixelError;
use crate::format::ImageFormat;

const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
const APP14: u8 = 0xEE;

fn truncated(reason: &str) -> PixelError {
    PixelError::truncated(ImageFormat::Jpeg, reason)
}

/// For a start-of-frame marker, returns whether the frame is progressive. `None` for other markers.
fn frame(marker: u8) -> Option<bool> {
    match marker {
        0xC4 | 0xC8 | 0xCC => None,
        0xC0..=0xCF => Some(matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE)),
        _ => None,
    }
}

/// Reads the headers. Also returns the start of the entropy-coded data in the first scan.
pub(super) fn probe(bytes: &[u8]) -> Result<(ImageInfo, usize), PixelError> {
    let mut at = 2;
    let mut orientation = None;
    let mut info: Option<ImageInfo> = None;
    let mut colors = Colors::Unsaid;
    loop {
        let (marker, segment) = next_marker(bytes, at)?;
        if marker == EOI {
            return Err(PixelError::malformed(ImageFormat::Jpeg, "ends before its first scan"));
        }
        // These markers have no length: TEM, RSTn, a repeated SOI.
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
        let body = bytes.get(segment + 2..segment + length).ok_or_else(|| truncated("ends inside its headers"))?;
        at = segment + length;
        colors = colors.or_said_by(marker, body);
        if marker == APP1 && orientation.is_none() && body.starts_with(b"Exif\0\0") {
            orientation = Some(exif::orientation(body));
        } else if marker == SOS {
            let mut info =
                info.ok_or_else(|| PixelError::malformed(ImageFormat::Jpeg, "a scan before the frame header"))?;
            // A sequential file has more scans if its first scan lacks components.
            let in_scan = body.first().copied().unwrap_or(0);
            info.progressive |= in_scan < info.channels;
            info.orientation = orientation.unwrap_or(1);
            info.stores_rgb = colors.are_rgb(&info);
            return Ok((info, at));
        } else if let Some(progressive) = frame(marker) {
            info = Some(frame_info(marker, progressive, body)?);
        }
    }
}

/// Colour space markers, interpreted as in libjpeg: JFIF means YCbCr. Without JFIF, Adobe's segment decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colors {
    Unsaid,
    Adobe { transform: u8 },
    Jfif,
}

impl Colors {
    fn or_said_by(self, marker: u8, body: &[u8]) -> Self {
        match (self, marker) {
            (_, APP0) if body.len() >= 14 && body.starts_with(b"JFIF\0") => Self::Jfif,
            (Self::Unsaid | Self::Adobe { .. }, APP14) if body.starts_with(b"Adobe") => {
                let said = body.get(11).map(|transform| Self::Adobe { transform: *transform });
                said.unwrap_or(self)
            }
            _ => self,
        }
    }

    fn are_rgb(self, info: &ImageInfo) -> bool {
        match self {
            Self::Jfif => false,
            Self::Adobe { transform } => info.channels == 3 && transform == 0,
            Self::Unsaid => info.stores_rgb,
        }
    }
}

/// The names of the first three components of a frame.
fn ids(body: &[u8]) -> [u8; 3] {
    [6, 9, 12].map(|at| body.get(at).copied().unwrap_or(0))
}

/// The next marker at or after `at`, and the start of its segment.
fn next_marker(bytes: &[u8], at: usize) -> Result<(u8, usize), PixelError> {
    let rest = bytes.get(at..).ok_or_else(|| truncated("ends inside its headers"))?;
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
    // The names of the components determine the colour space, unless another segment does.
    let stores_rgb = channels == 3 && ids(body) == *b"RGB";
    let plain = ImageInfo::plain(ImageFormat::Jpeg, width.into(), height.into(), channels);
    Ok(ImageInfo { bit_depth, progressive, stores_rgb, ..plain })
}

/// Returns an error if there is no end-of-image marker after the header of the first scan. Entropy-coded data cannot
/// contain one. The search starts at the end, so it is fast for complete files.
pub(crate) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    let (_, scan) = probe(bytes)?;
    let mut pairs = bytes.get(scan..).unwrap_or_default().windows(2).rev();
    if pairs.any(|pair| pair == [0xFF, EOI]) { Ok(()) } else { Err(truncated("no end-of-image marker")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jpeg::encode_jpeg;

    /// A file from our encoder with different segments after its start, and different component names.
    fn file(segments: &[&[u8]], ids: [u8; 3]) -> Vec<u8> {
        let whole = encode_jpeg(8, 8, 3, &[90; 192], 90).unwrap();
        let jfif = 2 + usize::from(whole[5]);
        let mut bytes = vec![0xFF, 0xD8];
        bytes.extend(segments.concat());
        bytes.extend(&whole[2 + jfif..]);
        let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]);
        for (at, id) in ids.into_iter().enumerate() {
            bytes[frame.unwrap() + 10 + 3 * at] = id;
        }
        bytes
    }

    #[test]
    fn colours_are_told_as_libjpeg_tells_them() {
        let jfif: &[u8] = b"\xFF\xE0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0";
        let rgb: &[u8] = b"\xFF\xEE\x00\x0EAdobe\0\x64\0\0\0\0\0";
        let ycc: &[u8] = b"\xFF\xEE\x00\x0EAdobe\0\x64\0\0\0\0\x01";
        for (segments, ids, wanted) in [
            (&[][..], [1, 2, 3], false),
            (&[][..], *b"RGB", true),
            (&[jfif][..], *b"RGB", false),
            (&[rgb][..], [1, 2, 3], true),
            (&[ycc][..], *b"RGB", false),
            (&[jfif, rgb][..], [1, 2, 3], false),
            (&[rgb, jfif][..], [1, 2, 3], false),
        ] {
            let (info, _) = probe(&file(segments, ids)).unwrap();
            assert_eq!(info.stores_rgb, wanted, "{segments:?} {ids:?}");
        }
    }
}
