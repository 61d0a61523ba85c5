//! BMP: indices stay indices.

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;

use super::convert::{Raster, palette};
use super::webp::{error, read};
use crate::error::PixelError;
use crate::probe::ImageInfo;

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let mut decoder =
        BmpDecoder::new(Cursor::new(bytes)).map_err(|cause| error(info.format, &cause))?;
    let colors = decoder.get_palette().filter(|_| info.palette).map(<[[u8; 3]]>::to_vec);
    let Some(colors) = colors else {
        return read(decoder, info);
    };
    decoder.set_indexed_color(true);
    let raster = read(decoder, info)?;
    Ok(Raster { kind: palette(colors), ..raster })
}
