//! Numbers that are parts of the width and height of an image, and the size of the image that turns them into pixels.

use std::io::Read;
use std::path::Path;

use packds_pixels::probe;
use packds_system::open_regular;

/// First bytes to read of an image. Most headers fit.
const HEAD_BYTES: u64 = 32 << 10;
/// Numbers may be this much below 0 or above 1, because tools round.
const ROUNDING: f64 = 0.01;

/// Whether a number is part of a width or height.
pub(super) fn is_fraction(number: f64) -> bool {
    (-ROUNDING..=1.0 + ROUNDING).contains(&number)
}

/// The width and height of an image. The error says why its boxes cannot be computed.
pub(super) fn size_of(image: &Path) -> Result<(f64, f64), String> {
    let mut failed = String::new();
    for limit in [HEAD_BYTES, u64::MAX] {
        let mut head = Vec::new();
        let read = open_regular(image).and_then(|file| file.take(limit).read_to_end(&mut head));
        match read.map_err(|error| error.to_string()).and_then(|_| probe(&head).map_err(|error| error.to_string())) {
            Ok(info) => return Ok((f64::from(info.width), f64::from(info.height))),
            Err(reason) => failed = reason,
        }
    }
    Err(format!("the boxes need the size of the image, which cannot be read: {failed}"))
}
