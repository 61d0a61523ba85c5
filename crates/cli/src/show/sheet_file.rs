//! The image file of a contact sheet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use packds_pixels::{PixelError, encode_jpeg, encode_png};
use packds_report::Canvas;

/// JPEG quality of a sheet, high enough to keep text sharp.
const QUALITY: u8 = 92;

/// The path and format of a sheet.
#[derive(Debug, Clone)]
pub(crate) struct SheetFile {
    path: PathBuf,
    is_jpeg: bool,
}

impl SheetFile {
    /// Parses a path. `-` means stdout, which gets a PNG.
    pub(crate) fn parse(text: OsString) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let is_jpeg = match extension.to_str() {
            Some("jpg" | "jpeg") => true,
            Some("png") => false,
            _ if path.as_os_str() == "-" => false,
            _ => return Err("expected a name that ends in .png or .jpg".to_owned()),
        };
        Ok(Self { path, is_jpeg })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_jpeg(&self) -> bool {
        self.is_jpeg
    }
}

pub(super) fn encode(canvas: &Canvas, is_jpeg: bool) -> Result<Vec<u8>, PixelError> {
    let (width, height, pixels) = (canvas.width, canvas.height, &canvas.pixels);
    if is_jpeg { encode_jpeg(width, height, 3, pixels, QUALITY) } else { encode_png(width, height, 3, pixels) }
}
