//! Errors of benchmarks.

use packds_system::counted;
use std::path::PathBuf;

/// Why a benchmark could not run, or which result was wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The conversion failed.
    #[error(transparent)]
    Convert(#[from] packds_convert::ConvertError),
    /// A pack could not be read.
    #[error(transparent)]
    Read(#[from] packds_reader::ReadError),
    /// Batches could not be loaded.
    #[error(transparent)]
    Load(#[from] packds_reader::loader::LoadError),
    /// The augmentation is invalid.
    #[error("--augment: {0}")]
    Augment(packds_reader::augment::AugmentError),
    /// A plan could not be made.
    #[error(transparent)]
    Plan(#[from] packds_reader::plan::PlanError),
    /// A pack could not be written.
    #[error(transparent)]
    Format(#[from] packds_format::FormatError),
    /// An image cannot be decoded, so the limit cannot be measured.
    #[error("{path}: {source}")]
    Pixels {
        /// Path of the image.
        path: PathBuf,
        /// The decoder's error.
        source: packds_pixels::PixelError,
    },
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A format delivered wrong samples.
    #[error("{format}, {order} order: delivered wrong samples (expected checksum {expected}, found {found})")]
    Disagree {
        /// Name of the format.
        format: String,
        /// The order in which the samples were read.
        order: String,
        /// The checksum of the images.
        expected: String,
        /// The checksum of the delivered samples.
        found: String,
    },
    /// The pack is smaller than one batch.
    #[error("--batch {batch}: a pack of {} has no whole batch of this size", counted(*n_samples, "sample"))]
    BatchTooLarge {
        /// The requested batch size.
        batch: u32,
        /// Number of samples in the pack.
        n_samples: u64,
        /// The largest batch size with two batches per epoch.
        largest: u32,
    },
    /// The pack is too small for any batch size.
    #[error("expected at least {least} samples, found {n_samples}: a wait is measured between two batches of an epoch")]
    TooFewSamples {
        /// Number of samples in the pack.
        n_samples: u64,
        /// The smallest number of samples that can be measured.
        least: u64,
    },
    /// The system cannot start another thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The caller asked to stop.
    #[error("interrupted; no report was written, and the benchmark's files were removed")]
    Interrupted,
    /// A result is not as expected.
    #[error("{what}: expected {expected}, found {found}")]
    WrongResult {
        /// Which result is wrong.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The actual value.
        found: String,
    },
}

impl BenchError {
    /// Creates a [`Self::WrongResult`].
    pub(crate) fn wrong(what: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::WrongResult { what, expected: expected.into(), found: found.into() }
    }

    pub(crate) fn pixels(path: impl Into<PathBuf>) -> impl FnOnce(packds_pixels::PixelError) -> Self {
        let path = path.into();
        move |source| Self::Pixels { path, source }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
