//! The types of option values.

use std::str::FromStr;

use packds_format::{Codec, DType};
use packds_pixels::PIXEL_TYPES;
use packds_system::BadValue;

/// How images are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Decoded pixels.
    Raw,
    /// Image files: the source's own bytes, or re-encoded JPEG files.
    Encoded,
    /// Both: a sample is raw if a hash of its path and the seed, scaled to 0..1, is below
    /// [`ConvertOptions::raw_fraction`](super::ConvertOptions::raw_fraction).
    Mixed,
}

packds_system::named!(Mode { Raw = "raw", Encoded = "encoded", Mixed = "mixed" });

/// The mean to subtract from pixels on a scale of 0 to 1, and the standard deviation to divide them by.
#[derive(Debug, Clone, PartialEq)]
pub enum NormalizeBy {
    /// No normalization: values stay on a scale of 0 to 1.
    None,
    /// The usual means and standard deviations of ImageNet.
    ImageNet,
    /// The dataset's own values, measured in a separate pass.
    Dataset,
    /// Given values, one per channel.
    Values {
        /// Mean of each channel, on a scale of 0 to 1.
        mean: Vec<f64>,
        /// Standard deviation of each channel, on the same scale.
        std: Vec<f64>,
    },
}

impl NormalizeBy {
    /// Mean of each ImageNet channel, as in torchvision's models.
    pub const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
    /// Standard deviation of each ImageNet channel, as in torchvision's models.
    pub const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];
}

impl FromStr for NormalizeBy {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let numbers = |list: &str| list.split(',').map(|n| n.trim().parse::<f64>().ok()).collect::<Option<Vec<_>>>();
        match text {
            "none" => return Ok(Self::None),
            "imagenet" => return Ok(Self::ImageNet),
            "dataset" => return Ok(Self::Dataset),
            _ => {}
        }
        if let Some((Some(mean), Some(std))) = text.split_once('/').map(|(mean, std)| (numbers(mean), numbers(std))) {
            let finite = mean.iter().chain(&std).all(|v| v.is_finite());
            if mean.len() == std.len() && finite && std.iter().all(|v| *v > 0.0) {
                return Ok(Self::Values { mean, std });
            }
        }
        Err(BadValue::new("none, imagenet, dataset or MEAN/STD such as 0.5,0.5,0.5/0.25,0.25,0.25", text))
    }
}

impl std::fmt::Display for NormalizeBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::None => f.write_str("none"),
            Self::ImageNet => f.write_str("imagenet"),
            Self::Dataset => f.write_str("dataset"),
            Self::Values { mean, std } => write!(f, "{}/{}", list(mean), list(std)),
        }
    }
}

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed.
    None,
    /// Zstandard after a pixel filter, at level 1 to 19.
    Zstd(i32),
}

impl Compression {
    /// The codec for a field with this filter.
    pub(crate) const fn codec(self, filter: packds_format::Filter) -> Codec {
        match self {
            Self::None => Codec::None,
            Self::Zstd(level) => Codec::Zstd { level, filter },
        }
    }
}

impl FromStr for Compression {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let level = match text.split_once(':') {
            None if text == "none" => return Ok(Self::None),
            None if text == "zstd" => Some(1),
            Some(("zstd", level)) => level.parse().ok().filter(|level| (1..=19).contains(level)),
            _ => None,
        };
        level.map(Self::Zstd).ok_or_else(|| BadValue::new("none, zstd or zstd:LEVEL (1 to 19)", text))
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

/// What happens if an image cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The conversion stops and reports the first bad image in listing order.
    Stop,
    /// The image is left out and reported.
    Skip,
    /// The bad image is replaced by an image of zeros, and its sample is marked as invalid.
    Substitute,
}

packds_system::named!(OnError { Stop = "stop", Skip = "skip", Substitute = "substitute" });

/// Parses the name of an element type that images can be stored as.
pub(crate) fn image_dtype(text: &str) -> Result<DType, String> {
    let known = text.parse().ok().filter(|dtype: &DType| PIXEL_TYPES.contains(&dtype.name()));
    known.ok_or_else(|| BadValue::unknown(&PIXEL_TYPES, text).to_string())
}
