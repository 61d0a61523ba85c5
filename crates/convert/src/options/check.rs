//! Rejects options of a conversion that contradict each other.

use packds_format::DType;
use packds_pixels::{Color, Filter, Layout, Orientation};
use packds_system::counted;

use super::values::image_dtype;
use super::{ConvertOptions, Mode, NormalizeBy};
use crate::ConvertError;
use crate::opt::{
    BATCH, CHECK_DECODE, CHUNK, DTYPE, FILTER, GRAY, IMAGES, JPEG_SCALING, LAYOUT, MASKS, MEAN_STD, MODE, NORMALIZE,
    QUALITY, RAW_FRACTION, SEEKABLE, SPLIT,
};

impl ConvertOptions {
    /// Rejects options that contradict each other, before anything is read.
    ///
    /// # Errors
    /// [`ConvertError::Options`], with a hint about what to change.
    pub fn check(&self) -> Result<(), ConvertError> {
        self.check_folders()?;
        self.check_mode()?;
        self.check_share()?;
        self.check_values()?;
        self.check_chunks()
    }

    /// Rejects options that would treat the splits of a source differently.
    ///
    /// # Errors
    /// [`ConvertError::Options`], with a hint about what to do.
    pub fn check_splits(&self) -> Result<(), ConvertError> {
        if self.normalize != NormalizeBy::Dataset || self.dtype == DType::U8 {
            return Ok(());
        }
        let (dataset, all) = (NORMALIZE.with("dataset"), SPLIT.with("all"));
        refuse(
            format!("{dataset} with {all} would measure different values for each split"),
            format!(
                "first convert with {}, then pass the mean and std of that pack as {}",
                SPLIT.with("train"),
                NORMALIZE.with(MEAN_STD)
            ),
        )
    }

    fn check_folders(&self) -> Result<(), ConvertError> {
        for (option, folder) in [(IMAGES, &self.list.images), (MASKS, &self.list.masks)] {
            if folder.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
                return refuse(
                    format!("{option}: expected a folder in the source, found ''"),
                    "pass a folder, such as images",
                );
            }
        }
        Ok(())
    }

    fn check_mode(&self) -> Result<(), ConvertError> {
        let found = MODE.with(self.mode.name());
        let encodes = format!("add {} to re-encode the images, or omit the other options", QUALITY.with(90));
        let (dtype, layout) = (self.dtype, self.layout());
        if self.mode != Mode::Raw && (dtype != DType::U8 || layout == Layout::Chw) {
            return refuse(
                format!("{} and {} need {}, found {found}", DTYPE.with(dtype), LAYOUT.with(layout), MODE.with("raw")),
                format!(
                    "image files are u8, height x width x channels: omit {DTYPE} and {LAYOUT}, or use {}",
                    MODE.with("raw")
                ),
            );
        }
        let changes_pixels =
            self.has_geometry() || self.color() == Color::Gray || self.orientation == Orientation::Apply;
        if self.mode == Mode::Encoded && self.quality.is_none() && changes_pixels {
            return refuse(
                format!(
                    "{found} keeps the files' bytes, so it cannot resize, crop or rotate images, or convert them to gray"
                ),
                encodes,
            );
        }
        let samples = self.filter != Filter::default() || self.jpeg_scaling;
        if self.mode == Mode::Encoded && self.quality.is_none() && samples {
            return refuse(
                format!(
                    "{FILTER} and {JPEG_SCALING} only apply to images that are decoded, but {found} keeps the files' bytes"
                ),
                encodes,
            );
        }
        if self.mode == Mode::Raw && self.quality.is_some() {
            return refuse(
                format!("{QUALITY} only applies to images that are re-encoded"),
                format!("add {} or {}", MODE.with("encoded"), MODE.with("mixed")),
            );
        }
        if self.mode == Mode::Raw && self.check_decode {
            return refuse(
                format!("{CHECK_DECODE} only applies to files that are stored unchanged"),
                "omit it: raw images are always decoded",
            );
        }
        if self.mode != Mode::Encoded && self.seekable {
            return refuse(
                format!("{SEEKABLE} only applies to packs of image files, found {found}"),
                format!("add {}, or omit it", MODE.with("encoded")),
            );
        }
        Ok(())
    }

    fn check_share(&self) -> Result<(), ConvertError> {
        if self.mode != Mode::Mixed && self.raw_fraction.is_some() {
            let mixed = MODE.with("mixed");
            return refuse(format!("{RAW_FRACTION} requires {mixed}"), format!("add {mixed}"));
        }
        if let Some(raw_fraction) = self.raw_fraction
            && !(0.0..=1.0).contains(&raw_fraction)
        {
            return refuse(
                format!("{RAW_FRACTION}: expected a number from 0 to 1, found {raw_fraction}"),
                "choose a number in this range",
            );
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), ConvertError> {
        if let Err(reason) = image_dtype(self.dtype.name()) {
            return refuse(format!("type of the stored images: {reason}"), format!("choose one of these with {DTYPE}"));
        }
        if self.mode != Mode::Raw && self.normalize == NormalizeBy::Dataset {
            return refuse(
                format!(
                    "{} needs the pixels of all images, but {} does not decode them",
                    NORMALIZE.with("dataset"),
                    MODE.with(self.mode.name())
                ),
                format!("pass the values as {}", NORMALIZE.with(MEAN_STD)),
            );
        }
        let channels = self.color().channels();
        match &self.normalize {
            NormalizeBy::Values { mean, .. } if mean.len() != channels => refuse(
                format!(
                    "{NORMALIZE} has {}, but the images have {}",
                    counted(mean.len(), "value"),
                    counted(channels, "channel")
                ),
                "pass one mean and one std for each channel",
            ),
            NormalizeBy::ImageNet if channels != 3 => refuse(
                format!("{} applies to 3 channels, but {GRAY} has {channels}", NORMALIZE.with("imagenet")),
                format!("use {} or {}", NORMALIZE.with("dataset"), NORMALIZE.with(MEAN_STD)),
            ),
            _ => Ok(()),
        }
    }

    fn check_chunks(&self) -> Result<(), ConvertError> {
        if self.chunk_samples.is_some_and(|n| n == 0 || n > 1 << 20) || self.batch == Some(0) {
            return refuse(
                format!("{CHUNK} must be 1 to 1048576, and {BATCH} must be at least 1"),
                format!("omit {CHUNK} to use the default size"),
            );
        }
        match (self.chunk_samples, self.batch) {
            (Some(chunk), Some(batch)) if !chunk.is_multiple_of(batch) && !batch.is_multiple_of(chunk) => refuse(
                format!("{} and {}: neither divides the other", CHUNK.with(chunk), BATCH.with(batch)),
                format!(
                    "a batch must consist of whole chunks, or a chunk of whole batches: change one of them, or omit {CHUNK}"
                ),
            ),
            _ => Ok(()),
        }
    }
}

fn refuse(reason: impl Into<String>, hint: impl Into<String>) -> Result<(), ConvertError> {
    Err(ConvertError::Options { reason: reason.into(), hint: hint.into() })
}
