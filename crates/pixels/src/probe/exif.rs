//! The orientation tag of an EXIF block, which is a small TIFF file.

use super::tiff::{Entries, ORIENTATION};

/// The orientation (1 to 8) in an EXIF block, with or without the prefix that it has in JPEG files. 1 if there is none.
pub(super) fn orientation(block: &[u8]) -> u8 {
    // Some writers keep JPEG's prefix of the EXIF block in PNG and WebP chunks.
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let value = Entries::open(block).and_then(|entries| entries.first_value(ORIENTATION));
    valid(value)
}

/// The value if it is a valid orientation, otherwise 1.
pub(super) fn valid(value: Option<u64>) -> u8 {
    match value {
        Some(value @ 1..=8) => u8::try_from(value).unwrap_or(1),
        _ => 1,
    }
}
