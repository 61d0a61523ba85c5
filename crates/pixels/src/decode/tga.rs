//! Decodes gray, colour and palette TGA, with and without run-length coding.

use super::convert::{Kind, Raster, palette, unpack};
use super::usize_of;
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::{TgaHeader, TgaKind, tga_header};

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, PixelError> {
    let header = tga_header(bytes).ok_or_else(|| PixelError::malformed(ImageFormat::Tga, "no header"))?;
    let mut samples = Vec::new();
    if header.has_runs {
        header.packets(bytes, |pixels, times| (0..times).for_each(|_| samples.extend_from_slice(pixels)))?;
    } else {
        samples = header.data(bytes)?.to_vec();
    }
    let width = usize_of(header.width);
    let kind = match (header.kind, header.depth) {
        (TgaKind::Palette, _) => colors(bytes, &header)?,
        (TgaKind::Gray, 1) => {
            samples = unpack(&samples, width, 1);
            Kind::Bits
        }
        (TgaKind::Gray, 16) => Kind::GrayAlpha,
        (TgaKind::Gray, _) => Kind::Gray,
        (TgaKind::Color, depth) => {
            samples = samples.chunks_exact(usize::from(depth / 8)).flat_map(color).collect();
            Kind::Rgb
        }
    };
    turn(&mut samples, width, &header);
    Ok(Raster { kind, samples })
}

/// Red, green and blue of a stored colour: either 15 bits, or bytes for blue, green and red, and perhaps an unused
/// alpha.
fn color(stored: &[u8]) -> [u8; 3] {
    match *stored {
        [low, high] => {
            let bits = u16::from_le_bytes([low, high]);
            [10, 5, 0].map(|place| u8::try_from(((bits >> place) & 31) * 255 / 31).unwrap_or(u8::MAX))
        }
        [blue, green, red, ..] => [red, green, blue],
        _ => [0; 3],
    }
}

fn colors(bytes: &[u8], header: &TgaHeader) -> Result<Kind, PixelError> {
    let cut = || PixelError::truncated(ImageFormat::Tga, "ends inside its palette");
    let stored = bytes.get(header.palette_at..header.data_at).ok_or_else(cut)?;
    let colors = stored.chunks_exact(usize::from(header.color_bits / 8)).map(color);
    Ok(palette(std::iter::repeat_n([0; 3], header.first_color).chain(colors)))
}

/// Reverses rows and pixels so that the top row and the left pixel come first.
fn turn(samples: &mut Vec<u8>, width: usize, header: &TgaHeader) {
    let n_channels = samples.len() / (width * usize_of(header.height)).max(1);
    let stride = (width * n_channels).max(1);
    if !header.is_top_down {
        *samples = samples.rchunks_exact(stride).flatten().copied().collect();
    }
    if header.is_right_to_left {
        *samples =
            samples.chunks_exact(stride).flat_map(|row| row.rchunks_exact(n_channels)).flatten().copied().collect();
    }
}
