//! Does the work of the kernel on the host. Simulated devices use it, and tests compare the kernel with it.

use packds_system::{to_u64, to_usize};
use std::ops::Range;

use packds_pixels::{AxisTaps, FloatType, Padding, Pixels, padded_crop_into};
use packds_reader::augment::blend;
use packds_reader::device::{ColorOp, Frame, Patch, Share};

use crate::emission::{Emission, type_word};
use crate::error::CudaError;

/// Maximum number of channels.
const MOST_CHANNELS: usize = 3;

/// The data at the addresses of an emission.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Interleaved pixels.
    pub source: &'a [u8],
    /// For each image, the part of a picture that it is made from. `None` if images are whole pictures, in order.
    pub frames: Option<&'a [Frame]>,
    /// The result for each byte and channel, followed by the values of patches.
    pub table: &'a [u32],
    /// The patches of each image.
    pub patches: &'a [Patch],
    /// How images are mixed. `None` if they are not.
    pub shares: Option<&'a [Share]>,
    /// The colour operations of each image.
    pub colors: &'a [ColorOp],
    /// The taps, if areas are resized.
    pub taps: &'a [u32],
}

/// Writes all images of `emission` to `out`. It ignores the addresses and uses the data in `inputs`.
///
/// # Errors
/// [`CudaError::Use`] if the slices do not match the sizes in `emission`.
pub fn emit(emission: &Emission, inputs: Inputs<'_>, out: &mut [u8]) -> Result<(), CudaError> {
    show(emission, inputs, out)?;
    let item = index(emission.width) * index(emission.height) * index(emission.channels);
    let item = item * index(emission.value_bytes());
    let n_patches = index(emission.n_patches);
    for (image, values) in out.chunks_exact_mut(item.max(1)).enumerate() {
        let patches = inputs.patches.iter().skip(image * n_patches);
        for (number, patch) in patches.take(n_patches).enumerate() {
            let first = (256 + number) * index(emission.channels);
            each(emission, patch, |place, channel| {
                let bytes = inputs.table.get(first + channel).copied().unwrap_or(0);
                let to = values.get_mut(place).unwrap_or_default();
                to.copy_from_slice(&bytes.to_le_bytes()[..to.len()]);
            });
        }
    }
    match inputs.shares {
        Some(shares) if emission.n > 1 => mix(emission, shares, item, out),
        _ => Ok(()),
    }
}

/// Mixes each image with the previous one, and the first with the last, as they were before mixing.
fn mix(emission: &Emission, shares: &[Share], item: usize, out: &mut [u8]) -> Result<(), CudaError> {
    let before = out.to_vec();
    let named = |float: &FloatType| type_word(Some(*float)) == emission.ty;
    let float = match emission.ty {
        0 => None,
        _ => Some(FloatType::ALL.into_iter().find(named).ok_or_else(|| wrong("type"))?),
    };
    let n = index(emission.n);
    for (image, values) in out.chunks_exact_mut(item.max(1)).enumerate() {
        let share = shares.get(image).ok_or_else(|| wrong("shares"))?;
        let other = (image + n - 1) % n * item;
        each(emission, &share.patch, |place, _| {
            let from = before.get(other + place.start..other + place.end);
            let (Some(to), Some(from)) = (values.get_mut(place), from) else { return };
            match share.own {
                Some(own) => blend(float, own, to, from),
                None => to.copy_from_slice(from),
            }
        });
    }
    Ok(())
}

/// Calls `one` with the byte range and the channel of each value in a rectangle of an image.
fn each(emission: &Emission, patch: &Patch, mut one: impl FnMut(Range<usize>, usize)) {
    let (width, height) = (index(emission.width), index(emission.height));
    let (channels, bytes) = (index(emission.channels), index(emission.value_bytes()));
    for y in index(patch.y.0)..index(patch.y.1) {
        for x in index(patch.x.0)..index(patch.x.1) {
            for channel in 0..channels {
                let at = if emission.planar == 0 {
                    (y * width + x) * channels + channel
                } else {
                    (channel * height + y) * width + x
                };
                one(at * bytes..(at + 1) * bytes, channel);
            }
        }
    }
}

fn index(n: u32) -> usize {
    to_usize(n)
}

/// Writes all images as they are before patches and mixing.
fn show(emission: &Emission, inputs: Inputs<'_>, out: &mut [u8]) -> Result<(), CudaError> {
    let (channels, value_bytes) = (index(emission.channels), index(emission.value_bytes()));
    let pixels = index(emission.width) * index(emission.height);
    if channels == 0 || channels > MOST_CHANNELS || inputs.table.len() < 256 * channels || pixels == 0 {
        return Err(wrong("channels or table"));
    }
    let mut window = vec![0; pixels * channels];
    let images = out.chunks_exact_mut(pixels * channels * value_bytes);
    for (number, image) in images.take(index(emission.n)).enumerate() {
        show_window(emission, inputs, number, &mut window)?;
        let n_colors = index(emission.n_colors);
        let colors = inputs.colors.iter().skip(number * n_colors).take(n_colors);
        for adjustment in colors.filter_map(|color| color.0) {
            adjustment.apply(&mut window, u8::try_from(channels).unwrap_or(0));
        }
        for (at, value) in image.chunks_exact_mut(value_bytes).enumerate() {
            let (pixel, channel) =
                if emission.planar == 0 { (at / channels, at % channels) } else { (at % pixels, at / pixels) };
            let byte = usize::from(window[pixel * channels + channel]);
            let bits = inputs.table[channel * 256 + byte];
            value.copy_from_slice(&bits.to_le_bytes()[..value_bytes]);
        }
    }
    Ok(())
}

/// Writes the pixels of an image before colour operations.
fn show_window(emission: &Emission, inputs: Inputs<'_>, number: usize, window: &mut [u8]) -> Result<(), CudaError> {
    let frame = match inputs.frames {
        Some(frames) => *frames.get(number).ok_or_else(|| wrong("frames"))?,
        None => whole(emission, number),
    };
    let start = to_usize(frame.source);
    let from = inputs.source.get(start..).unwrap_or_default();
    let shown = if frame.flips & Frame::RESIZED == 0 {
        let size = (index(frame.width), index(frame.height));
        rows_of(emission, &frame, from, size).ok_or_else(|| wrong("source"))?
    } else {
        resampled(emission, &frame, from, inputs.taps).ok_or_else(|| wrong("taps or source"))?
    };
    let data = Pixels {
        data: &shown,
        width: frame.width,
        height: frame.height,
        channels: u8::try_from(emission.channels).unwrap_or(0),
    };
    padded_crop_into(
        data,
        frame.x.into(),
        frame.y.into(),
        emission.width,
        emission.height,
        padding(emission)?,
        frame.flips & Frame::HORIZONTAL != 0,
        frame.flips & Frame::VERTICAL != 0,
        window,
    )
    .map_err(|error| CudaError::Use(error.to_string()))
}

/// The first columns and rows of a picture, without gaps between rows. `None` if the data ends too early.
fn rows_of(emission: &Emission, frame: &Frame, from: &[u8], (width, height): (usize, usize)) -> Option<Vec<u8>> {
    let row_bytes = width * index(emission.channels);
    let mut rows = Vec::with_capacity(row_bytes * height);
    for row in 0..height {
        let start = row * index(frame.row_bytes);
        rows.extend(from.get(start..start + row_bytes)?);
    }
    Some(rows)
}

/// The resized area of a frame. `None` if the area or the taps end too early.
fn resampled(emission: &Emission, frame: &Frame, from: &[u8], taps: &[u32]) -> Option<Vec<u8>> {
    let channels = index(emission.channels);
    let to = (index(frame.width), index(frame.height));
    let across = Axis::new(taps, frame.across, to.0)?;
    let down = Axis::new(taps, frame.down, to.1)?;
    let (width, height) = (across.length()?, down.length()?);
    let area = rows_of(emission, frame, from, (width, height))?;
    let columns = |area: &[u8], rows: usize| {
        let places = |row, x, c| (row * width + x) * channels + c;
        across.pass(area, (rows, channels), places)
    };
    let rows = |area: &[u8], width: usize| {
        let places = |x, y, c| (y * width + x) * channels + c;
        let turned = down.pass(area, (width, channels), places)?;
        // The result is stored column by column.
        let at = |x: usize, y: usize, c: usize| (x * to.1 + y) * channels + c;
        let mut upright = Vec::with_capacity(turned.len());
        for y in 0..to.1 {
            for x in 0..width {
                upright.extend((0..channels).map(|c| turned[at(x, y, c)]));
            }
        }
        Some(upright)
    };
    if frame.flips & Frame::ROWS_FIRST != 0 {
        columns(&rows(&area, width)?, to.1)
    } else {
        rows(&columns(&area, height)?, to.0)
    }
}

/// For each output position on an axis, its first source position and the weights.
struct Axis<'a>(Vec<(usize, &'a [u32])>);

impl<'a> Axis<'a> {
    /// The taps for `out` positions, starting at word `at`.
    fn new(taps: &'a [u32], at: u32, out: usize) -> Option<Self> {
        let (stride, outputs) = taps.get(index(at)..)?.split_first()?;
        let outputs = outputs.chunks_exact(2 + index(*stride)).take(out);
        let outputs = outputs.map(|output| match output {
            [start, n, weights @ ..] => Some((index(*start), weights.get(..index(*n))?)),
            _ => None,
        });
        let outputs: Vec<_> = outputs.collect::<Option<_>>()?;
        (outputs.len() == out).then_some(Self(outputs))
    }

    /// Number of source positions that the outputs use.
    fn length(&self) -> Option<usize> {
        let ends = self.0.iter().map(|(start, weights)| start + weights.len());
        ends.max()
    }

    /// Resamples `lines` lines. `place` returns the index of channel `c` at position `at` of a line. The output is
    /// written line by line.
    fn pass(
        &self,
        area: &[u8],
        (lines, channels): (usize, usize),
        place: impl Fn(usize, usize, usize) -> usize,
    ) -> Option<Vec<u8>> {
        let mut made = Vec::with_capacity(self.0.len() * lines * channels);
        for line in 0..lines {
            for (start, weights) in &self.0 {
                for channel in 0..channels {
                    let mut sum = 1_i32 << (AxisTaps::PRECISION - 1);
                    for (at, weight) in (*start..).zip(*weights) {
                        let byte = area.get(place(line, at, channel))?;
                        sum = sum.wrapping_add(i32::from(*byte).wrapping_mul(weight.cast_signed()));
                    }
                    let byte = (sum >> AxisTaps::PRECISION).clamp(0, 255);
                    made.push(u8::try_from(byte).unwrap_or(u8::MAX));
                }
            }
        }
        Some(made)
    }
}

/// The frame of a whole picture, which has the size of the images.
fn whole(emission: &Emission, number: usize) -> Frame {
    let row_bytes = emission.width.saturating_mul(emission.channels);
    let picture = u64::from(row_bytes) * u64::from(emission.height);
    Frame {
        source: to_u64(number).saturating_mul(picture),
        width: emission.width,
        height: emission.height,
        row_bytes,
        ..Frame::default()
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
    CudaError::Use(format!("invalid launch: wrong {what}"))
}
