//! A launch of the kernel: its inputs, its outputs and their formats. `kernel/emit.cu` declares the same structs.

use packds_pixels::{FloatType, Layout, Padding};

use crate::driver::DevicePtr;

/// Size of a thread block: threads per row, and number of rows.
pub(crate) const BLOCK: (u32, u32) = (32, 8);
/// Number of image rows that each row of threads writes. It is more than 1, so that loading the table costs little per
/// row.
const LINES_EACH: u32 = 4;
/// Maximum number of images in a grid. With more images, each block processes several of them.
const MOST_IMAGES: u32 = 65_535;

/// A launch of the kernel for `n` images of the same size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Emission {
    /// Interleaved pixels.
    pub source: DevicePtr,
    /// A [`Frame`](packds_reader::device::Frame) for each image. 0 for whole pictures, which have the size of the
    /// images and are contiguous.
    pub frames: DevicePtr,
    /// For each channel, the results for 256 bytes, as bit patterns of 4 bytes each. After them, one bit pattern for
    /// each patch and channel of an image.
    pub table: DevicePtr,
    /// [`n_patches`](Self::n_patches) [`Patch`](packds_reader::device::Patch)es for each image, which are applied in
    /// order.
    pub patches: DevicePtr,
    /// A [`Share`](packds_reader::device::Share) for each image. 0 if images are not mixed.
    pub shares: DevicePtr,
    /// [`n_colors`](Self::n_colors) [`ColorOp`](packds_reader::device::ColorOp)s for each image, which are applied in
    /// order.
    pub colors: DevicePtr,
    /// The taps of a [`Resampling`](packds_reader::device::Resampling). 0 if areas are not resized.
    pub taps: DevicePtr,
    /// The first output image.
    pub out: DevicePtr,
    /// Number of images.
    pub n: u32,
    /// Width of an image.
    pub width: u32,
    /// Height of an image.
    pub height: u32,
    /// Channels of pictures and images: 1 or 3.
    pub channels: u32,
    /// 1 if the output is planar.
    pub planar: u32,
    /// Type of the output values: [`type_word`].
    pub ty: u32,
    /// What is written outside a picture: [`padding_word`].
    pub padding: u32,
    /// The colour outside a picture, if it is constant.
    pub color: u32,
    /// Patches per image.
    pub n_patches: u32,
    /// Colour operations per image.
    pub n_colors: u32,
    /// 1 if the colour operations may include contrast, which needs the mean of its image.
    pub measures: u32,
    /// Always zero.
    pub reserved: u32,
}

/// An entry point of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Without the features of the other entry points.
    Plain,
    /// Also supports patches, mixing and resampling.
    Changed,
    /// Also supports everything in `Changed`, and colour operations.
    Colored,
}

impl Emission {
    /// Number of blocks in the grid: down an image, and across the images.
    #[must_use]
    pub fn grid(&self) -> (u32, u32) {
        // A block that needs the mean of an image writes the whole image, so that the mean is computed only once.
        let lines = match self.measures {
            0 => self.height.div_ceil(BLOCK.1 * LINES_EACH),
            _ => 1,
        };
        (lines.max(1), self.n.clamp(1, MOST_IMAGES))
    }

    /// The simplest entry point with all required features.
    pub(crate) const fn entry(&self) -> Entry {
        if self.n_colors > 0 {
            Entry::Colored
        } else if self.n_patches > 0 || self.shares.0 != 0 || self.taps.0 != 0 {
            Entry::Changed
        } else {
            Entry::Plain
        }
    }

    /// Size of an output value in bytes.
    #[must_use]
    pub const fn value_bytes(&self) -> u32 {
        match self.ty {
            0 => 1,
            1 | 2 => 2,
            _ => 4,
        }
    }

    /// Size of all output images in bytes.
    #[must_use]
    pub fn out_bytes(&self) -> u64 {
        let sides = [self.width, self.height, self.channels, self.value_bytes()];
        let image = |n: u64, side: &u32| n.saturating_mul(u64::from(*side));
        sides.iter().fold(u64::from(self.n), image)
    }
}

/// The layout, as encoded for the kernel.
#[must_use]
pub const fn planar(layout: Layout) -> u32 {
    match layout {
        Layout::Hwc => 0,
        Layout::Chw => 1,
    }
}

/// The type of output values, as encoded for the kernel. `None` means `u8`.
#[must_use]
pub const fn type_word(float: Option<FloatType>) -> u32 {
    match float {
        None => 0,
        Some(float) => 1 + float as u32,
    }
}

/// The padding, as encoded for the kernel: its kind and its colour.
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
        // The host compiler uses the same sizes for emit.cu, because tests/kernel passes the bytes of these structs.
        assert_eq!((Frame::BYTES, Patch::BYTES, Share::BYTES), (40, 16, 24));
        assert_eq!((ColorOp::BYTES, size_of::<Emission>()), (8, 8 * 8 + 12 * 4));
    }
}
