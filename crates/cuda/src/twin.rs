//! The kernel's work on the host: what a simulated device does, and what the kernel is held against.

use packds_pixels::{Padding, Pixels, padded_crop_into};
use packds_reader::device::Frame;

use crate::emission::{Emission, MOST_CHANNELS};
use crate::error::CudaError;

/// Writes all images of `emission` to `out`, whose addresses are not looked at: what they point to are the slices.
///
/// # Errors
/// [`CudaError::Use`] where the slices do not fit the numbers.
pub fn emit(
    emission: &Emission,
    source: &[u8],
    frames: Option<&[Frame]>,
    table: &[u32],
    out: &mut [u8],
) -> Result<(), CudaError> {
    let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let (channels, value_bytes) = (index(emission.channels), index(emission.value_bytes));
    let picture = index(emission.source_width) * index(emission.source_height) * channels;
    let pixels = index(emission.width) * index(emission.height);
    if channels == 0 || channels > MOST_CHANNELS || table.len() < 256 * channels || pixels == 0 {
        return Err(wrong("channels or table"));
    }
    let mut window = vec![0; pixels * channels];
    let images = out.chunks_exact_mut(pixels * channels * value_bytes);
    for (number, image) in images.take(index(emission.n)).enumerate() {
        let frame = match frames {
            Some(frames) => *frames.get(number).ok_or_else(|| wrong("frames"))?,
            None => whole(number * picture),
        };
        let start = usize::try_from(frame.source).unwrap_or(usize::MAX);
        let data = source.get(start..start.saturating_add(picture));
        let data = Pixels {
            data: data.ok_or_else(|| wrong("source"))?,
            width: emission.source_width,
            height: emission.source_height,
            channels: u8::try_from(channels).unwrap_or(0),
        };
        let (horizontal, vertical) = (
            frame.flips & Frame::HORIZONTAL != 0,
            frame.flips & Frame::VERTICAL != 0,
        );
        padded_crop_into(
            data,
            frame.x.into(),
            frame.y.into(),
            emission.width,
            emission.height,
            padding(emission)?,
            horizontal,
            vertical,
            &mut window,
        )
        .map_err(|error| CudaError::Use(error.to_string()))?;
        for (at, value) in image.chunks_exact_mut(value_bytes).enumerate() {
            let (pixel, channel) = if emission.planar == 0 {
                (at / channels, at % channels)
            } else {
                (at % pixels, at / pixels)
            };
            let byte = usize::from(window[pixel * channels + channel]);
            value.copy_from_slice(&table[channel * 256 + byte].to_le_bytes()[..value_bytes]);
        }
    }
    Ok(())
}

fn whole(source: usize) -> Frame {
    Frame {
        source: u64::try_from(source).unwrap_or(u64::MAX),
        x: 0,
        y: 0,
        flips: 0,
    }
}

fn padding(emission: &Emission) -> Result<Padding, CudaError> {
    Ok(match emission.padding {
        0 => Padding::Constant(emission.color.to_le_bytes()),
        1 => Padding::Edge,
        2 => Padding::Reflect,
        3 => Padding::Symmetric,
        _ => return Err(wrong("padding")),
    })
}

fn wrong(what: &str) -> CudaError {
    CudaError::Use(format!("the {what} of an emission do not fit its sizes"))
}
