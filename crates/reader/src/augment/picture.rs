//! The input of an augmentation: an image, and the sample that it belongs to.

use packds_pixels::{Encoded, Pixels, probe};

use super::AugmentError;
use super::boxes::BoundingBox;
use super::op::Size;

/// Identifies a sample in an epoch of a run. All draws depend on it, and on the numbers of the view, the op and the
/// draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// The run's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u32,
    /// The sample's number in the pack.
    pub sample: u64,
}

/// An image as stored in a pack.
#[derive(Debug, Clone, Copy)]
pub enum Picture<'a> {
    /// The bytes of an image file.
    Encoded(Encoded<'a>),
    /// Pixels.
    Raw(Pixels<'a>),
}

/// A sample with everything that an augmentation needs of it.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Identifies its draws.
    pub key: SampleKey,
    /// The image.
    pub image: Picture<'a>,
    /// The mask of the image.
    pub mask: Option<Picture<'a>>,
    /// The boxes in the image. Only crops that depend on them use them.
    pub boxes: &'a [BoundingBox],
}

impl<'a> Input<'a> {
    /// An image without a mask and boxes.
    pub const fn new(key: SampleKey, image: Picture<'a>) -> Self {
        Self { key, image, mask: None, boxes: &[] }
    }

    /// The same input with this mask, if there is one.
    #[must_use]
    pub const fn with_mask(self, mask: Option<Picture<'a>>) -> Self {
        Self { mask, ..self }
    }
}

impl Picture<'_> {
    /// Width and height. For a file, they come from its headers, and the EXIF orientation is ignored. For pixels, the
    /// stated size is checked, because a pack may contain a wrong size.
    pub(super) fn size(&self) -> Result<Size, AugmentError> {
        Ok(match self {
            Self::Encoded(encoded) => {
                let info = probe(encoded.bytes)?;
                Size { width: info.width, height: info.height }
            }
            Self::Raw(pixels) => {
                pixels.check()?;
                Size { width: pixels.width, height: pixels.height }
            }
        })
    }
}
