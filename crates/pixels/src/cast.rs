//! The order of an image's values, and tables from bytes to floats.

use crate::error::PixelError;
use packds_system::counted;

/// The order of an image's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Height, width, channels: a pixel's channels are adjacent.
    #[default]
    Hwc,
    /// Channels, height, width: one plane after another.
    Chw,
}

packds_system::named!(Layout { Hwc = "hwc", Chw = "chw" });

/// Copies the interleaved bytes `hwc` to `out` in the order of `layout`.
///
/// # Errors
/// `WrongBuffer` if `out` has the wrong length, `InvalidArgument` if `hwc` does not consist of whole pixels.
pub fn to_layout_into(hwc: &[u8], channels: usize, layout: Layout, out: &mut [u8]) -> Result<(), PixelError> {
    check(hwc, channels, 1, out)?;
    if layout == Layout::Hwc || channels == 1 {
        out.copy_from_slice(hwc);
        return Ok(());
    }
    let n_pixels = hwc.len() / channels;
    for (channel, plane) in out.chunks_exact_mut(n_pixels.max(1)).enumerate() {
        for (value, pixel) in plane.iter_mut().zip(hwc.chunks_exact(channels)) {
            *value = pixel[channel];
        }
    }
    Ok(())
}

pub(crate) fn check(hwc: &[u8], channels: usize, value_bytes: usize, out: &[u8]) -> Result<(), PixelError> {
    if channels == 0 || !hwc.len().is_multiple_of(channels) {
        let found = format!("{} for {}", counted(hwc.len(), "byte"), counted(channels, "channel"));
        return Err(PixelError::argument("pixels", "whole pixels of at least 1 channel", found));
    }
    let expected = hwc.len().saturating_mul(value_bytes);
    PixelError::check_len(out.len(), expected)
}

/// A table for each channel, with the encoded result for each byte. `norms` gives each channel's mean and deviation.
pub(crate) fn tables<const N: usize>(
    norms: impl Iterator<Item = (f32, f32)>,
    encode: impl Fn(f32) -> [u8; N],
) -> Vec<[[u8; N]; 256]> {
    norms
        .map(|(mean, std)| {
            let mut table = [[0; N]; 256];
            for (value, entry) in (0_u8..=255).zip(&mut table) {
                *entry = encode((f32::from(value) / 255.0 - mean) / std);
            }
            table
        })
        .collect()
}

/// Writes the tables' values for all pixels after the first `n_written`.
pub(crate) fn write<const N: usize>(
    hwc: &[u8],
    tables: &[[[u8; N]; 256]],
    layout: Layout,
    n_written: usize,
    out: &mut [u8],
) {
    let (values, _) = out.as_chunks_mut::<N>();
    let channels = tables.len();
    match layout {
        Layout::Hwc => {
            let pixels = values.chunks_exact_mut(channels).zip(hwc.chunks_exact(channels));
            for (pixel, source) in pixels.skip(n_written) {
                for ((value, byte), table) in pixel.iter_mut().zip(source).zip(tables) {
                    *value = table[usize::from(*byte)];
                }
            }
        }
        Layout::Chw => {
            let n_pixels = (hwc.len() / channels).max(1);
            for ((channel, plane), table) in values.chunks_exact_mut(n_pixels).enumerate().zip(tables) {
                let pixels = plane.iter_mut().zip(hwc.chunks_exact(channels));
                for (value, pixel) in pixels.skip(n_written) {
                    *value = table[usize::from(pixel[channel])];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_move_bytes_only() {
        let mut out = [0; 6];
        to_layout_into(&[1, 2, 3, 4, 5, 6], 3, Layout::Chw, &mut out).unwrap();
        assert_eq!(out, [1, 4, 2, 5, 3, 6]);
        to_layout_into(&out.clone(), 3, Layout::Hwc, &mut out).unwrap();
        assert_eq!(out, [1, 4, 2, 5, 3, 6]);
        assert_eq!("chw".parse::<Layout>().unwrap().to_string(), "chw");
        assert!("nchw".parse::<Layout>().is_err());
    }

    #[test]
    fn buffers_that_do_not_fit_are_errors() {
        let mut out = [0; 5];
        let error = to_layout_into(&[0; 6], 3, Layout::Hwc, &mut out).unwrap_err();
        assert_eq!(error, PixelError::WrongBuffer { expected: 6, found: 5 });
        assert!(to_layout_into(&[0; 5], 3, Layout::Hwc, &mut out).is_err());
        assert!(to_layout_into(&[], 0, Layout::Hwc, &mut []).is_err());
    }
}
