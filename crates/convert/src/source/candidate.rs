//! Which files are taken for images: by name without opening them, else by their first bytes.
//!
//! Not for decoding: a candidate may still turn out to be broken.

use packds_pixels::ImageFormat;

/// How many first bytes [`is_image_bytes`] wants to see.
pub(super) const SNIFFED_BYTES: usize = 16;

/// Extensions of images that this program does not decode.
const UNDECODED: [&str; 12] = [
    "ppm", "pgm", "pbm", "pnm", "pam", "avif", "heic", "heif", "jp2", "jxl", "exr", "tga",
];

/// True if the extension, what follows the last dot, is that of an image that can be decoded.
pub(super) fn is_image_name(name: &[u8]) -> bool {
    extension(name).is_some_and(|extension| ImageFormat::from_extension(extension).is_some())
}

/// True if the extension is that of an image in a format that is not decoded.
pub(super) fn is_undecoded_name(name: &[u8]) -> bool {
    extension(name).is_some_and(|extension| {
        UNDECODED
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known.as_bytes()))
    })
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    Some(&name[dot + 1..])
}

/// True if a file that starts with these bytes is an image.
pub(super) fn is_image_bytes(bytes: &[u8]) -> bool {
    match ImageFormat::sniff(bytes) {
        // Text may well start with "BM"; a bitmap has four zero bytes at offset 6.
        Some(ImageFormat::Bmp) => bytes.get(6..10) == Some(&[0; 4]),
        found => found.is_some(),
    }
}
