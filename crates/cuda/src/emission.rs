//! One launch of the kernel: what it reads, what it writes, and in which form. `kernel/emit.cu` has the same structs.

use packds_pixels::{FloatType, Layout, Padding};

use crate::driver::DevicePtr;

/// Lines of threads in a block of the kernel, and threads in a line.
pub(crate) const BLOCK: (u32, u32) = (32, 8);
/// Channels of the widest picture.
pub(crate) const MOST_CHANNELS: usize = 3;
/// Lines that each line of threads writes: loading the table is then a small part of its work.
const LINES_EACH: u32 = 4;
/// Images side by side in a grid; more are taken in turns.
const MOST_IMAGES: u32 = 65_535;

/// A launch: `n` images of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Emission {
    /// Interleaved pixels.
    pub source: DevicePtr,
    /// A [`Frame`](packds_reader::device::Frame) for each image; 0 is that whole pictures, as large
    /// as the images, lie one after the other.
    pub frames: DevicePtr,
    /// For each channel the bit patterns of 256 results, 4 bytes each; behind them one for each patch of an image and channel.
    pub table: DevicePtr,
    /// For each image [`n_patches`](Self::n_patches) [`Patch`](packds_reader::device::Patch)es, which are set one after the
    /// other.
    pub patches: DevicePtr,
    /// A [`Share`](packds_reader::device::Share) for each image; 0 is that images are not mixed.
    pub shares: DevicePtr,
    /// For each image [`n_colors`](Self::n_colors) [`ColorOp`](packds_reader::device::ColorOp)s, which are done one after the other.
    pub colors: DevicePtr,
    /// The taps of a [`Resampling`](packds_reader::device::Resampling); 0 is that no area is resized.
    pub taps: DevicePtr,
    /// The first image.
    pub out: DevicePtr,
    /// Images.
    pub n: u32,
    /// Columns of an image.
    pub width: u32,
    /// Rows of an image.
    pub height: u32,
    /// Channels of both: 1 or 3.
    pub channels: u32,
    /// 1 where planes lie one after the other.
    pub planar: u32,
    /// Type of the values: [`type_word`].
    pub ty: u32,
    /// What lies outside a picture: [`padding_word`].
    pub padding: u32,
    /// The colour, where that lies outside.
    pub color: u32,
    /// Patches of an image.
    pub n_patches: u32,
    /// Operations on the colours of an image.
    pub n_colors: u32,
    /// 1 where there may be contrast among them, which takes the mean of its image.
    pub measures: u32,
    /// Zero.
    pub reserved: u32,
}

/// An entry point of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Without what the others do.
    Plain,
    /// Values are set, mixed or resampled.
    Changed,
    /// Colours are changed, and all that.
    Colored,
}

impl Emission {
    /// Blocks of the grid: along the lines of an image, and along the images.
    #[must_use]
    pub fn grid(&self) -> (u32, u32) {
        // A block that takes the mean of an image writes all of it, so that it is taken once.
        let lines = match self.measures {
            0 => self.height.div_ceil(BLOCK.1 * LINES_EACH),
            _ => 1,
        };
        (lines.max(1), self.n.clamp(1, MOST_IMAGES))
    }

    /// The entry point that does it all, and no more than it must.
    pub(crate) const fn entry(&self) -> Entry {
        if self.n_colors > 0 {
            Entry::Colored
        } else if self.n_patches > 0 || self.shares.0 != 0 || self.taps.0 != 0 {
            Entry::Changed
        } else {
            Entry::Plain
        }
    }

    /// Bytes of a value.
    #[must_use]
    pub const fn value_bytes(&self) -> u32 {
        match self.ty {
            0 => 1,
            1 | 2 => 2,
            _ => 4,
        }
    }

    /// Bytes of all images.
    #[must_use]
    pub fn out_bytes(&self) -> u64 {
        let sides = [self.width, self.height, self.channels, self.value_bytes()];
        let image = |n: u64, side: &u32| n.saturating_mul(u64::from(*side));
        sides.iter().fold(u64::from(self.n), image)
    }
}

/// A layout as the kernel has it.
#[must_use]
pub const fn planar(layout: Layout) -> u32 {
    match layout {
        Layout::Hwc => 0,
        Layout::Chw => 1,
    }
}

/// A type of values as the kernel has it; bytes, where it is none of floats.
#[must_use]
pub const fn type_word(float: Option<FloatType>) -> u32 {
    match float {
        None => 0,
        Some(FloatType::F16) => 1,
        Some(FloatType::Bf16) => 2,
        Some(FloatType::F32) => 3,
    }
}

/// A padding as the kernel has it: its kind and its colour.
#[must_use]
pub const fn padding_word(padding: Padding) -> (u32, u32) {
    match padding {
        Padding::Constant(color) => (0, u32::from_le_bytes(color)),
        Padding::Edge => (1, 0),
        Padding::Reflect => (2, 0),
        Padding::Symmetric => (3, 0),
    }
}

#[cfg(test)]
mod tests {
    use packds_reader::device::{ColorOp, Frame, Patch, Share};

    use super::*;

    #[test]
    fn structs_are_as_large_as_the_kernels() {
        // The host's compiler says the same of emit.cu: tests/kernel passes bytes of both.
        assert_eq!((Frame::BYTES, Patch::BYTES, Share::BYTES), (40, 16, 24));
        assert_eq!((ColorOp::BYTES, size_of::<Emission>()), (8, 8 * 8 + 12 * 4));
    }
}
