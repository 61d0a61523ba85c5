//! Image formats. They are detected from the content; the extension is only a hint.

use std::fmt;

/// A file format of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageFormat {
    /// JPEG: baseline, progressive or arithmetic-coded; gray, colour or CMYK.
    Jpeg,
    /// PNG of any colour type and bit depth.
    Png,
    /// GIF: the first frame.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF: the first page.
    Tiff,
    /// WebP, lossy or lossless: the first frame.
    WebP,
    /// PBM, PGM and PPM, binary or plain, with up to 16 bits.
    Pnm,
    /// TGA. It has no signature, so `probe` recognizes it, but `sniff` does not.
    Tga,
    /// QOI.
    Qoi,
}

/// The name of the file's type, if the first bytes identify a type that this library cannot decode, such as HEIC or
/// PDF. The extension is not used, because it may be wrong.
///
/// ```
/// assert_eq!(packds_pixels::other_format(b"\0\0\0\x18ftypheic\0\0\0\0"), Some("HEIC"));
/// ```
#[must_use]
pub fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let has = |offset: usize, magic: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    let text = bytes.trim_ascii_start();
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let is_brand = |brands: &[&[u8]]| has(4, b"ftyp") && brands.iter().any(|brand| has(8, brand));
    Some(match () {
        () if is_brand(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) => "HEIC",
        () if is_brand(&[b"avif", b"avis"]) => "AVIF",
        () if is_brand(&[b"crx "]) => "camera raw",
        () if has(4, b"ftyp") || has(0, b"\x1a\x45\xdf\xa3") => "video",
        () if has(0, b"RIFF") && has(8, b"AVI ") => "video",
        () if has(0, b"\xff\x0a") || has(0, b"\0\0\0\x0cJXL ") => "JPEG XL",
        () if has(0, b"\0\0\0\x0cjP  ") || has(0, b"\xff\x4f\xff\x51") => "JPEG 2000",
        () if has(0, b"\x76\x2f\x31\x01") => "OpenEXR",
        () if has(0, b"#?RADIANCE") || has(0, b"#?RGBE") => "Radiance HDR",
        () if has(0, b"8BPS") => "Photoshop",
        () if has(0, b"%PDF") => "PDF",
        () if has(0, b"P7\n") => "PAM",
        () if has(0, b"PF\n") || has(0, b"Pf\n") => "PFM",
        () if has(128, b"DICM") => "DICOM",
        () if has(344, b"n+1\0") || has(344, b"ni1\0") => "NIfTI",
        () if has(0, b"NRRD000") => "NRRD or MetaImage",
        () if has(0, b"MATLAB 5.0") => "MATLAB",
        () if has(0, b"MATLAB 7.3") => "MATLAB 7.3",
        () if starts(b"<svg") || (starts(b"<?xml") && text.windows(4).any(|word| word == b"<svg")) => "SVG",
        () if starts(b"<!doctype html") || starts(b"<html") => "web page",
        () if starts(b"version https://git-lfs") => "Git LFS pointer",
        () => return None,
    })
}

/// Whether a byte may separate two numbers of a PNM header.
pub(crate) fn is_pnm_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether this is the start of a PNM file. After `P` and a digit, there must be space and then a number or a comment,
/// because text may also start with `P` and a digit.
fn is_pnm(bytes: &[u8]) -> bool {
    let &[b'P', b'1'..=b'6', space, ref rest @ ..] = bytes else { return false };
    let first = rest.iter().find(|byte| !is_pnm_space(**byte));
    is_pnm_space(space) && first.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'#')
}

impl ImageFormat {
    /// The format whose signature `bytes` starts with.
    ///
    /// ```
    /// use packds_pixels::ImageFormat;
    /// assert_eq!(ImageFormat::sniff(b"\xff\xd8\xff\xe0"), Some(ImageFormat::Jpeg));
    /// assert_eq!(ImageFormat::sniff(b"hello"), None);
    /// ```
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        let starts = |signature: &[u8]| bytes.starts_with(signature);
        if starts(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if starts(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if starts(b"GIF87a") || starts(b"GIF89a") {
            Some(Self::Gif)
        } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else if starts(b"II*\0") || starts(b"MM\0*") || starts(b"II+\0") || starts(b"MM\0+") {
            Some(Self::Tiff)
        } else if starts(b"BM") {
            Some(Self::Bmp)
        } else if starts(b"qoif") {
            Some(Self::Qoi)
        } else if is_pnm(bytes) {
            Some(Self::Pnm)
        } else {
            None
        }
    }

    /// The format that belongs to a file name's extension (without the dot, case-insensitive).
    #[must_use]
    pub fn from_extension(extension: &[u8]) -> Option<Self> {
        let lower = extension.to_ascii_lowercase();
        match lower.as_slice() {
            b"jpg" | b"jpeg" | b"jpe" | b"jfif" => Some(Self::Jpeg),
            b"png" => Some(Self::Png),
            b"gif" => Some(Self::Gif),
            b"bmp" | b"dib" => Some(Self::Bmp),
            b"tif" | b"tiff" => Some(Self::Tiff),
            b"webp" => Some(Self::WebP),
            b"pnm" | b"pbm" | b"pgm" | b"ppm" => Some(Self::Pnm),
            b"tga" => Some(Self::Tga),
            b"qoi" => Some(Self::Qoi),
            _ => None,
        }
    }

    /// The file extension and the name of the format.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Jpeg => ("jpg", "JPEG"),
            Self::Png => ("png", "PNG"),
            Self::Gif => ("gif", "GIF"),
            Self::Bmp => ("bmp", "BMP"),
            Self::Tiff => ("tif", "TIFF"),
            Self::WebP => ("webp", "WebP"),
            Self::Pnm => ("pnm", "PNM"),
            Self::Tga => ("tga", "TGA"),
            Self::Qoi => ("qoi", "QOI"),
        }
    }

    /// The usual extension, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.row().0
    }

    /// The display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_read_in_any_case_and_written_back() {
        for name in [
            "JPG", "jpeg", "Jpe", "jfif", "PNG", "gif", "bmp", "DIB", "tif", "TIFF", "WebP", "PGM", "ppm", "tga", "qoi",
        ] {
            let format = ImageFormat::from_extension(name.as_bytes()).unwrap();
            assert_eq!(ImageFormat::from_extension(format.extension().as_bytes()), Some(format));
        }
        assert_eq!(ImageFormat::from_extension(b"txt"), None);
    }

    #[test]
    fn signatures_shorter_than_needed_are_unknown() {
        for bytes in
            [&b""[..], b"\xff\xd8", b"RIFF\0\0\0\0WEB", b"\x89PNG", b"GIF88a", b"II*", b"P5", b"P5 x", b"P7 1", b"qoi"]
        {
            assert_eq!(ImageFormat::sniff(bytes), None);
        }
    }
}
