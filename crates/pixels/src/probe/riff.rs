//! WebP headers: a RIFF file of one or more chunks.

use super::bytes::{array, le16, le32, offset};
use super::{ImageInfo, exif};
use crate::error::PixelError;
use crate::format::ImageFormat;

const EXIF_FLAG: u8 = 0x08;
const ALPHA_FLAG: u8 = 0x10;
const ANIMATION_FLAG: u8 = 0x02;

fn truncated() -> PixelError {
    PixelError::truncated(ImageFormat::WebP, "ends inside its headers")
}

pub(super) fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let chunk = bytes.get(20..).ok_or_else(truncated)?;
    let kind: [u8; 4] = array(bytes, 12).ok_or_else(truncated)?;
    let (mut orientation, mut has_more) = (1, false);
    let size = match &kind {
        b"VP8X" => {
            let flags = chunk.first().copied().ok_or_else(truncated)?;
            has_more = flags & ANIMATION_FLAG != 0;
            if flags & EXIF_FLAG != 0 {
                orientation = find_chunk(bytes, b"EXIF").map_or(1, exif::orientation);
            }
            let side = |at| Some(u32::from(le16(chunk, at)?) + (u32::from(*chunk.get(at + 2)?) << 16) + 1);
            side(4).zip(side(7)).map(|(width, height)| (width, height, flags & ALPHA_FLAG != 0))
        }
        b"VP8L" => {
            let signature = chunk.first().copied().ok_or_else(truncated)?;
            if signature != 0x2F {
                let reason = format!("lossless signature is {signature:02x}, not 2f");
                return Err(PixelError::malformed(ImageFormat::WebP, reason));
            }
            le32(chunk, 1).map(|b| ((b & 0x3FFF) + 1, ((b >> 14) & 0x3FFF) + 1, (b >> 28) & 1 == 1))
        }
        b"VP8 " => {
            if chunk.get(3..6).ok_or_else(truncated)? != [0x9D, 0x01, 0x2A] {
                return Err(PixelError::malformed(ImageFormat::WebP, "no key frame"));
            }
            let side = |at| le16(chunk, at).map(|side| u32::from(side & 0x3FFF));
            side(6).zip(side(8)).map(|(width, height)| (width, height, false))
        }
        _ => {
            let reason = format!("unknown first chunk {:?}", String::from_utf8_lossy(&kind));
            return Err(PixelError::malformed(ImageFormat::WebP, reason));
        }
    };
    let (width, height, alpha) = size.ok_or_else(truncated)?;
    Ok(ImageInfo {
        orientation,
        has_more,
        ..ImageInfo::plain(ImageFormat::WebP, width, height, if alpha { 4 } else { 3 })
    })
}

fn find_chunk<'a>(bytes: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    let mut at = 12;
    loop {
        let kind: [u8; 4] = array(bytes, at)?;
        let length = offset(le32(bytes, at + 4)?)?;
        let start = at + 8;
        if &kind == wanted {
            return bytes.get(start..start.checked_add(length)?);
        }
        at = start.checked_add(length)?.checked_add(length & 1)?;
    }
}

pub(super) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    let declared = le32(bytes, 4).and_then(offset).and_then(|size| size.checked_add(8));
    match declared {
        Some(declared) if declared <= bytes.len() => Ok(()),
        declared => {
            let declared = declared.map_or("an unreadable number of".to_owned(), |n| n.to_string());
            let reason = format!("declares {declared} bytes, has {}", bytes.len());
            Err(PixelError::truncated(ImageFormat::WebP, reason))
        }
    }
}
