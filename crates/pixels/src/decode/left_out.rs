//! Replaces the decoders if the feature `codecs` is off.

use super::convert::Raster;
use super::{Decoder, ImageInfo};
use crate::area::{Area, CropResize};
use crate::error::PixelError;
use crate::geometry::Geometry;

const REASON: &str = "packds was built without image codecs (feature `codecs`)";

/// Rejects any file that needs a decoder.
pub(super) fn decode(info: &ImageInfo) -> Result<Raster, PixelError> {
    Err(PixelError::unsupported(info.format, REASON))
}

impl Decoder {
    pub(super) fn decode_jpeg(&mut self, _: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
        decode(info).map(|_| ())
    }

    pub(super) fn render_jpeg(
        &mut self,
        _: &[u8],
        info: &ImageInfo,
        _: &Geometry,
        _: &mut [u8],
    ) -> Result<(), PixelError> {
        decode(info).map(|_| ())
    }

    pub(super) fn view_jpeg(
        &mut self,
        _: &[u8],
        info: &ImageInfo,
        _: &CropResize,
        _: &mut [u8],
    ) -> Result<(), PixelError> {
        decode(info).map(|_| ())
    }

    pub(super) fn decode_jpeg_area(&mut self, _: &[u8], info: &ImageInfo, _: Area) -> Result<(), PixelError> {
        decode(info).map(|_| ())
    }
}
