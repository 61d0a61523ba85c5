//! Bytes to normalised floats, and the order of channels.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};

use crate::error::PixelError;

/// The order of an image's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Height, width, channels: channels together.
    #[default]
    Hwc,
    /// Channels, height, width: one plane after the other.
    Chw,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hwc => "hwc",
            Self::Chw => "chw",
        })
    }
}

impl FromStr for Layout {
    type Err = PixelError;

    fn from_str(text: &str) -> Result<Self, PixelError> {
        match text {
            "hwc" => Ok(Self::Hwc),
            "chw" => Ok(Self::Chw),
            _ => Err(PixelError::argument("layout", "hwc or chw", text)),
        }
    }
}

/// A type of float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE half precision.
    F16,
    /// The upper half of an `F32`.
    Bf16,
    /// IEEE single precision.
    F32,
}

impl FloatType {
    /// Bytes of a value.
    #[must_use]
    pub fn n_bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// Writes `(value / 255 - mean) / std` of every channel, computed in `f32` and rounded to `ty`, as
/// little-endian bytes in the order of `layout`.
///
/// A byte has 256 values, so each channel has 256 results, computed once.
///
/// # Errors
///
/// `WrongBuffer` where `out` does not fit, `InvalidArgument` where `mean` or `std` have not one
/// value per channel, or `hwc` not whole pixels.
pub fn cast_into(
    hwc: &[u8],
    channels: usize,
    mean: &[f32],
    std: &[f32],
    ty: FloatType,
    layout: Layout,
    out: &mut [u8],
) -> Result<(), PixelError> {
    check(hwc, channels, ty.n_bytes(), out)?;
    if mean.len() != channels || std.len() != channels {
        let found = format!("{} means and {} deviations", mean.len(), std.len());
        return Err(PixelError::argument(
            "normalisation",
            "one mean and deviation per channel",
            &found,
        ));
    }
    let norms = mean.iter().copied().zip(std.iter().copied());
    match ty {
        FloatType::F32 => write(hwc, &tables(norms, f32::to_le_bytes), layout, 0, out),
        FloatType::F16 => {
            write(
                hwc,
                &tables(norms, |value| f16::from_f32(value).to_le_bytes()),
                layout,
                0,
                out,
            );
        }
        FloatType::Bf16 => {
            write(
                hwc,
                &tables(norms, |value| bf16::from_f32(value).to_le_bytes()),
                layout,
                0,
                out,
            );
        }
    }
    Ok(())
}

/// Copies bytes into the order of `layout`.
///
/// # Errors
///
/// `WrongBuffer` where `out` does not fit, `InvalidArgument` where `hwc` is not whole pixels.
pub fn to_layout_into(
    hwc: &[u8],
    channels: usize,
    layout: Layout,
    out: &mut [u8],
) -> Result<(), PixelError> {
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

pub(crate) fn check(
    hwc: &[u8],
    channels: usize,
    value_bytes: usize,
    out: &[u8],
) -> Result<(), PixelError> {
    if channels == 0 || !hwc.len().is_multiple_of(channels) {
        let found = format!("{} bytes for {channels} channels", hwc.len());
        return Err(PixelError::argument(
            "pixels",
            "whole pixels of at least 1 channel",
            &found,
        ));
    }
    let expected = hwc.len().saturating_mul(value_bytes);
    if out.len() == expected {
        Ok(())
    } else {
        Err(PixelError::WrongBuffer {
            expected,
            found: out.len(),
        })
    }
}

/// The result of each byte in each channel.
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

/// Writes what the tables say of every pixel but the first `n_written`.
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
            let pixels = values
                .chunks_exact_mut(channels)
                .zip(hwc.chunks_exact(channels));
            for (pixel, source) in pixels.skip(n_written) {
                for ((value, byte), table) in pixel.iter_mut().zip(source).zip(tables) {
                    *value = table[usize::from(*byte)];
                }
            }
        }
        Layout::Chw => {
            let n_pixels = (hwc.len() / channels).max(1);
            for ((channel, plane), table) in
                values.chunks_exact_mut(n_pixels).enumerate().zip(tables)
            {
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
    fn floats_are_normalised_and_planes_separated() {
        let hwc = [0, 51, 255, 102, 153, 204];
        let (mean, std) = ([0.5, 0.25, 0.0], [0.5, 0.25, 2.0]);
        let mut out = [0; 24];
        cast_into(&hwc, 3, &mean, &std, FloatType::F32, Layout::Chw, &mut out).unwrap();
        let values: Vec<f32> = out
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        let expected = |byte: u8, c: usize| (f32::from(byte) / 255.0 - mean[c]) / std[c];
        let wanted =
            [(0, 0), (102, 0), (51, 1), (153, 1), (255, 2), (204, 2)].map(|(b, c)| expected(b, c));
        assert_eq!(values, wanted);
        let mut halves = [0; 12];
        cast_into(
            &hwc,
            3,
            &mean,
            &std,
            FloatType::F16,
            Layout::Hwc,
            &mut halves,
        )
        .unwrap();
        assert_eq!(
            f16::from_le_bytes([halves[6], halves[7]]),
            f16::from_f32(expected(102, 0))
        );
        cast_into(
            &hwc,
            3,
            &mean,
            &std,
            FloatType::Bf16,
            Layout::Hwc,
            &mut halves,
        )
        .unwrap();
        assert_eq!(
            bf16::from_le_bytes([halves[10], halves[11]]),
            bf16::from_f32(expected(204, 2))
        );
    }

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
        assert_eq!(
            error,
            PixelError::WrongBuffer {
                expected: 6,
                found: 5
            }
        );
        assert!(to_layout_into(&[0; 5], 3, Layout::Hwc, &mut out).is_err());
        assert!(to_layout_into(&[], 0, Layout::Hwc, &mut []).is_err());
        assert!(
            cast_into(
                &[0],
                1,
                &[],
                &[1.0],
                FloatType::F16,
                Layout::Hwc,
                &mut [0; 2]
            )
            .is_err()
        );
    }
}
