//! PNG encoding.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use crate::decode::check_pixels;
use crate::error::PixelError;
use crate::format::ImageFormat;

/// Encodes gray (1 channel) or RGB (3) pixels as an 8-bit PNG. The output is deterministic.
///
/// # Errors
/// `WrongBuffer` or `InvalidArgument` if the sizes do not match.
pub fn encode_png(width: u32, height: u32, channels: u8, data: &[u8]) -> Result<Vec<u8>, PixelError> {
    check_pixels(width, height, channels, data.len())?;
    let failed = |error: EncodingError| PixelError::malformed(ImageFormat::Png, error.to_string());
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(if channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}
