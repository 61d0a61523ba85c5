//! QOI headers and runs of pixels.

use packds_system::to_u64;

use super::ImageInfo;
use super::bytes::be32;
use crate::error::PixelError;
use crate::format::ImageFormat;

const FORMAT: ImageFormat = ImageFormat::Qoi;
const HEADER: usize = 14;
/// The bytes after the last pixel.
const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

pub(super) fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let fields = be32(bytes, 4).zip(be32(bytes, 8)).zip(bytes.get(12).copied());
    let cut = || PixelError::truncated(FORMAT, "ends inside its header");
    let ((width, height), channels) = fields.ok_or_else(cut)?;
    if !matches!(channels, 3 | 4) {
        return Err(PixelError::malformed(FORMAT, format!("{channels} channels, expected 3 or 4")));
    }
    Ok(ImageInfo::plain(FORMAT, width, height, channels))
}

/// Passes every run of equal pixels to `each`: the pixel (red, green, blue, alpha) and the length of the run. Returns
/// where the pixels end.
pub(crate) fn qoi_runs(
    bytes: &[u8],
    info: &ImageInfo,
    mut each: impl FnMut([u8; 4], usize),
) -> Result<usize, PixelError> {
    let n_pixels = u64::from(info.width) * u64::from(info.height);
    let (mut at, mut done) = (HEADER, 0_u64);
    let mut seen = [[0_u8; 4]; 64];
    let mut pixel = [0, 0, 0, 255];
    while done < n_pixels {
        let cut = || PixelError::truncated(FORMAT, format!("ends after {done} of {n_pixels} pixels"));
        let rest = bytes.get(at..).unwrap_or_default();
        let mut n_run = 1;
        if let [code @ 0xC0..=0xFD, ..] = *rest {
            n_run = usize::from(code & 0x3F) + 1;
            at += 1;
        } else {
            let (next, n_bytes) = changed(pixel, rest, &seen).ok_or_else(cut)?;
            pixel = next;
            at += n_bytes;
            let [red, green, blue, alpha] = pixel.map(usize::from);
            seen[(red * 3 + green * 5 + blue * 7 + alpha * 11) % 64] = pixel;
        }
        done += to_u64(n_run);
        each(pixel, n_run);
    }
    match done == n_pixels {
        true => Ok(at),
        false => Err(PixelError::malformed(FORMAT, "the last run is longer than the image")),
    }
}

/// Reads one code. Returns the pixel that follows `pixel`, and the length of the code in bytes.
fn changed(pixel: [u8; 4], rest: &[u8], seen: &[[u8; 4]; 64]) -> Option<([u8; 4], usize)> {
    let [red, green, blue, alpha] = pixel;
    Some(match *rest {
        [0xFE, red, green, blue, ..] => ([red, green, blue, alpha], 4),
        [0xFF, red, green, blue, alpha, ..] => ([red, green, blue, alpha], 5),
        [index @ 0..=0x3F, ..] => (seen[usize::from(index)], 1),
        [code @ 0x40..=0x7F, ..] => {
            let step = |value: u8, place: u8| value.wrapping_add((code >> place) & 3).wrapping_sub(2);
            ([step(red, 4), step(green, 2), step(blue, 0), alpha], 1)
        }
        [code @ 0x80..=0xBF, other, ..] => {
            let by = (code & 0x3F).wrapping_sub(32);
            let step = |value: u8, of: u8| value.wrapping_add(by).wrapping_add(of).wrapping_sub(8);
            ([step(red, other >> 4), green.wrapping_add(by), step(blue, other & 15), alpha], 2)
        }
        _ => return None,
    })
}

pub(super) fn check_end(bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
    let end = qoi_runs(bytes, info, |_, _| {})?;
    match bytes.get(end..).is_some_and(|rest| rest.starts_with(&END)) {
        true => Ok(()),
        false => Err(PixelError::truncated(FORMAT, "no end marker after the last pixel")),
    }
}
