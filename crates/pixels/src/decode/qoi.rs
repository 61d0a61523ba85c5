//! Decodes QOI with three or four channels.

use super::convert::{Kind, Raster};
use crate::error::PixelError;
use crate::probe::{ImageInfo, qoi_runs};

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let mut samples = Vec::new();
    let n_channels = usize::from(info.channels);
    qoi_runs(bytes, info, |pixel, n| (0..n).for_each(|_| samples.extend_from_slice(&pixel[..n_channels])))?;
    Ok(Raster { kind: if n_channels == 4 { Kind::Rgba } else { Kind::Rgb }, samples })
}
