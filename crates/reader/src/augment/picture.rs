//! What comes in: a picture, and which sample it is of.

use packds_pixels::{Pixels, probe};

use super::AugmentError;
use super::op::Size;
use packds_pixels::Encoded;

/// Which sample of which epoch of which run: all that draws depend on, beside view, op and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// The run's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u32,
    /// The sample's number in the pack.
    pub sample: u64,
}

/// A picture as a pack stores it.
#[derive(Debug, Clone, Copy)]
pub enum Picture<'a> {
    /// The bytes of an image file.
    Encoded(Encoded<'a>),
    /// Pixels.
    Raw(Pixels<'a>),
}

impl Picture<'_> {
    /// Width and height; of a file from its headers, as stored: its EXIF orientation is ignored. Of pixels as they are
    /// described, which is checked: a pack may say anything of them.
    pub(super) fn size(&self) -> Result<Size, AugmentError> {
        Ok(match self {
            Self::Encoded(encoded) => {
                let info = probe(encoded.bytes)?;
                Size {
                    width: info.width,
                    height: info.height,
                }
            }
            Self::Raw(pixels) => {
                pixels.check()?;
                Size {
                    width: pixels.width,
                    height: pixels.height,
                }
            }
        })
    }
}
