//! The options of a conversion, and which of them exclude each other.

use std::str::FromStr;

use packds_format::DType;
use packds_pixels::{Color, Crop, Filter, Layout, Orientation, Resize};

use crate::ConvertError;
use crate::source::ListOptions;

/// How images are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Decoded pixels.
    Raw,
    /// Image files: the source's own bytes, or re-encoded JPEG files.
    Encoded,
    /// Both: a sample is raw if a hash of its path is below the fraction.
    Mixed {
        /// The share of raw samples, 0 to 1.
        raw_fraction: f64,
    },
}

impl Mode {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Encoded => "encoded",
            Self::Mixed { .. } => "mixed",
        }
    }
}

/// The mean to subtract from pixels scaled to 0..1, and the standard deviation to divide them by.
#[derive(Debug, Clone, PartialEq)]
pub enum NormalizeBy {
    /// Nothing: values stay 0..1.
    None,
    /// The usual means and standard deviations of ImageNet.
    ImageNet,
    /// The dataset's own, measured in a separate pass.
    Dataset,
    /// Given values, one per channel.
    Values {
        /// Mean of each channel, in 0..1.
        mean: Vec<f64>,
        /// Standard deviation of each channel, in 0..1.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = |list: &str| {
            list.split(',')
                .map(|n| n.trim().parse::<f64>().ok())
                .collect::<Option<Vec<_>>>()
        };
        match text {
            "none" => return Ok(Self::None),
            "imagenet" => return Ok(Self::ImageNet),
            "dataset" => return Ok(Self::Dataset),
            _ => {}
        }
        if let Some((Some(mean), Some(std))) = text
            .split_once('/')
            .map(|(mean, std)| (numbers(mean), numbers(std)))
        {
            let finite = mean.iter().chain(&std).all(|v| v.is_finite());
            if mean.len() == std.len() && finite && std.iter().all(|v| *v > 0.0) {
                return Ok(Self::Values { mean, std });
            }
        }
        Err(format!(
            "expected none, imagenet, dataset or MEAN/STD such as 0.5,0.5,0.5/0.25,0.25,0.25, found {text:?}"
        ))
    }
}

impl std::fmt::Display for NormalizeBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |values: &[f64]| {
            values
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(",")
        };
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
    /// Not at all.
    None,
    /// Zstandard after a pixel filter, at a level of 1 to 19.
    Zstd(i32),
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text.split_once(':') {
            None if text == "none" => return Ok(Self::None),
            None if text == "zstd" => Some(1),
            Some(("zstd", level)) => level.parse().ok().filter(|level| (1..=19).contains(level)),
            _ => None,
        };
        level
            .map(Self::Zstd)
            .ok_or_else(|| format!("expected none, zstd or zstd:LEVEL (1 to 19), found {text:?}"))
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

/// What happens when an image cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The conversion stops and names the first bad image in listing order.
    Stop,
    /// The image is left out and reported.
    Skip,
    /// A zero image replaces it and is marked as invalid.
    Substitute,
}

impl OnError {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Skip => "skip",
            Self::Substitute => "substitute",
        }
    }
}

/// The most decoding threads. More give no speed-up, and the system may refuse them.
const MAX_JOBS: usize = 256;

/// All options of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// How the source is listed.
    pub list: ListOptions,
    /// How images are stored.
    pub mode: Mode,
    /// Size of the whole image; none is the default for the mode.
    pub resize: Option<Resize>,
    /// The part that is kept; none is the default for the mode.
    pub crop: Option<Crop>,
    /// Interpolation of the resize.
    pub filter: Filter,
    /// How the EXIF orientation is treated.
    pub orientation: Orientation,
    /// RGB or gray. If none: as the source's arrays, or as the pack that the source was exported from, otherwise RGB.
    pub color: Option<Color>,
    /// Element type of raw images: `u8`, `f16`, `bf16` or `f32`.
    pub dtype: DType,
    /// Dimension order of raw images of one size. If none: the source's own, otherwise height, width, channels.
    pub layout: Option<Layout>,
    /// Normalization: applied for float types, recorded for `u8`.
    pub normalize: NormalizeBy,
    /// JPEG quality, 1 to 100, of re-encoded images; none keeps the source's bytes.
    pub quality: Option<u8>,
    /// Whether JPEGs are decoded at a reduced size if that is still large enough. Changes pixels.
    pub jpeg_scaling: bool,
    /// Whether files are fully decoded even when stored unchanged.
    pub check_decode: bool,
    /// Whether each JPEG gets an index that makes decoding a crop faster; for [`Mode::Encoded`].
    pub seekable: bool,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Samples per chunk; none decides by size.
    pub chunk_samples: Option<u32>,
    /// The batch size to align chunks with.
    pub batch: Option<u32>,
    /// Whether samples keep the listing's order instead of being shuffled.
    pub keep_order: bool,
    /// Seed of the order and of the selection of raw samples.
    pub seed: u64,
    /// What happens when an image cannot be read or decoded.
    pub on_error: OnError,
    /// The most pixels an image may have.
    pub max_pixels: u64,
    /// Threads that decode; 0 means all cores.
    pub jobs: usize,
    /// Whether an existing output is replaced.
    pub force: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            list: ListOptions::default(),
            mode: Mode::Raw,
            resize: None,
            crop: None,
            filter: Filter::default(),
            orientation: Orientation::Ignore,
            color: None,
            dtype: DType::U8,
            layout: None,
            normalize: NormalizeBy::None,
            quality: None,
            jpeg_scaling: false,
            check_decode: false,
            seekable: false,
            compression: Compression::None,
            chunk_samples: None,
            batch: None,
            keep_order: false,
            seed: 0,
            on_error: OnError::Stop,
            max_pixels: packds_pixels::DecodeOptions::default().max_pixels,
            jobs: 0,
            force: false,
        }
    }
}

impl ConvertOptions {
    /// Threads that decode.
    #[must_use]
    pub fn n_jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n.min(MAX_JOBS),
        }
    }

    /// Dimension order of raw images of one size.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout.unwrap_or(Layout::Hwc)
    }

    /// RGB or gray.
    #[must_use]
    pub fn color(&self) -> Color {
        self.color.unwrap_or(Color::Rgb)
    }

    /// Whether a resize or crop was requested.
    #[must_use]
    pub fn has_geometry(&self) -> bool {
        self.resize.is_some_and(|r| r != Resize::None) || self.crop.is_some_and(|c| c != Crop::None)
    }

    /// Refuses options that contradict each other before anything is read.
    ///
    /// # Errors
    /// [`ConvertError::Options`], with what to change.
    pub fn check(&self) -> Result<(), ConvertError> {
        self.check_mode()?;
        self.check_values()?;
        self.check_chunks()
    }

    fn check_mode(&self) -> Result<(), ConvertError> {
        let what = self.mode.name();
        let (dtype, layout) = (self.dtype, self.layout());
        if self.mode != Mode::Raw && (dtype != DType::U8 || layout == Layout::Chw) {
            return refuse(
                format!(
                    "--dtype {dtype} and --layout {layout} need --mode raw, found --mode {what}"
                ),
                "image files are u8, height x width x channels: leave --dtype and --layout out, or use --mode raw",
            );
        }
        let changes_pixels = self.has_geometry()
            || self.color() == Color::Gray
            || self.orientation == Orientation::Apply;
        if self.mode == Mode::Encoded && self.quality.is_none() && changes_pixels {
            return refuse(
                "--mode encoded keeps the files' bytes, so it cannot resize, crop, turn or gray them",
                "add --quality 90 to encode the images anew, or leave the other options out",
            );
        }
        let samples = self.filter != Filter::default() || self.jpeg_scaling;
        if self.mode == Mode::Encoded && self.quality.is_none() && samples {
            return refuse(
                "--filter and --jpeg-scaling are for images that are decoded, and --mode encoded keeps the files' bytes",
                "add --quality 90 to encode the images anew, or leave the other options out",
            );
        }
        if self.mode == Mode::Raw && self.quality.is_some() {
            return refuse(
                "--quality is for images that are encoded anew",
                "add --mode encoded or --mode mixed",
            );
        }
        if self.mode == Mode::Raw && self.check_decode {
            return refuse(
                "--check-decode is for files that are kept untouched",
                "leave it out: raw images are decoded",
            );
        }
        if self.mode != Mode::Encoded && self.seekable {
            return refuse(
                format!("--seekable is for image files, found --mode {what}"),
                "add --mode encoded, or leave it out",
            );
        }
        if let Mode::Mixed { raw_fraction } = self.mode
            && !(0.0..=1.0).contains(&raw_fraction)
        {
            return refuse(
                format!("--raw-fraction is a share, found {raw_fraction}"),
                "give a number from 0 to 1",
            );
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), ConvertError> {
        if !matches!(
            self.dtype,
            DType::U8 | DType::F16 | DType::Bf16 | DType::F32
        ) {
            return refuse(
                format!(
                    "images are stored as u8, f16, bf16 or f32, not as {}",
                    self.dtype
                ),
                "choose one of these with --dtype",
            );
        }
        if self.mode != Mode::Raw && self.normalize == NormalizeBy::Dataset {
            return refuse(
                format!(
                    "--normalize dataset needs the pixels of all images, and --mode {} does not look at them",
                    self.mode.name()
                ),
                "give the values as --normalize MEAN/STD",
            );
        }
        let channels = self.color().channels();
        match &self.normalize {
            NormalizeBy::Values { mean, .. } if mean.len() != channels => refuse(
                format!(
                    "--normalize has {} values, the images have {channels} channels",
                    mean.len()
                ),
                "give one mean and one std for each channel",
            ),
            NormalizeBy::ImageNet if channels != 3 => refuse(
                format!("--normalize imagenet is for 3 channels, --gray has {channels}"),
                "use --normalize dataset or MEAN/STD",
            ),
            _ => Ok(()),
        }
    }

    fn check_chunks(&self) -> Result<(), ConvertError> {
        if self.chunk_samples.is_some_and(|n| n == 0 || n > 1 << 20) || self.batch == Some(0) {
            return refuse(
                "--chunk is 1 to 1048576 samples and --batch at least 1",
                "leave --chunk out for the rule",
            );
        }
        match (self.chunk_samples, self.batch) {
            (Some(chunk), Some(batch))
                if !chunk.is_multiple_of(batch) && !batch.is_multiple_of(chunk) =>
            {
                refuse(
                    format!("--chunk {chunk} and --batch {batch}: neither divides the other"),
                    "a batch is whole chunks or a chunk is whole batches: change one, or leave --chunk out",
                )
            }
            _ => Ok(()),
        }
    }
}

fn refuse(reason: impl Into<String>, hint: &str) -> Result<(), ConvertError> {
    Err(ConvertError::Options {
        reason: reason.into(),
        hint: hint.to_owned(),
    })
}
