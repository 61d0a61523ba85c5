//! Image formats. They are detected from the content, and the extension is only a hint.

use std::fmt;

/// A file format of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageFormat {
    /// JPEG: baseline, progressive, arithmetic; gray, colour, CMYK.
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
            _ => None,
        }
    }

    /// The extension and the name.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Jpeg => ("jpg", "JPEG"),
            Self::Png => ("png", "PNG"),
            Self::Gif => ("gif", "GIF"),
            Self::Bmp => ("bmp", "BMP"),
            Self::Tiff => ("tif", "TIFF"),
            Self::WebP => ("webp", "WebP"),
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
        for name in ["JPG", "jpeg", "Jpe", "jfif", "PNG", "gif", "bmp", "DIB", "tif", "TIFF", "WebP"] {
            let format = ImageFormat::from_extension(name.as_bytes()).unwrap();
            assert_eq!(ImageFormat::from_extension(format.extension().as_bytes()), Some(format));
        }
        assert_eq!(ImageFormat::from_extension(b"txt"), None);
    }

    #[test]
    fn signatures_shorter_than_needed_are_unknown() {
        for bytes in [&b""[..], b"\xff\xd8", b"RIFF\0\0\0\0WEB", b"\x89PNG", b"GIF88a", b"II*"] {
            assert_eq!(ImageFormat::sniff(bytes), None);
        }
    }
}
