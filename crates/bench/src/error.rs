//! What can stop a benchmark.

use std::path::PathBuf;

/// Why a benchmark could not be run, or what it found wrong.
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
    /// The augmentation asked for is none.
    #[error("--augment: {0}")]
    Augment(packds_reader::augment::AugmentError),
    /// A plan could not be made.
    #[error(transparent)]
    Plan(#[from] packds_reader::plan::PlanError),
    /// A pack could not be written.
    #[error(transparent)]
    Format(#[from] packds_format::FormatError),
    /// An image of the data does not decode: the limit cannot be measured with it.
    #[error("{path}: {source}")]
    Pixels {
        /// The image.
        path: PathBuf,
        /// What is wrong with it.
        source: packds_pixels::PixelError,
    },
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A format delivered other samples than it was written with.
    #[error(
        "{format}, {order} order: delivered other samples than the images: expected checksum {expected}, found {found}"
    )]
    Disagree {
        /// The format.
        format: String,
        /// The order in which it was read.
        order: String,
        /// The checksum of the images.
        expected: String,
        /// The checksum of what came.
        found: String,
    },
    /// The pack has not one batch of the size asked for.
    #[error("--batch {batch}: a pack of {n_samples} samples has no whole batch of so many")]
    BatchTooLarge {
        /// Samples of a batch, as asked for.
        batch: u32,
        /// Samples of the pack.
        n_samples: u64,
        /// The largest batch of which an epoch has two.
        largest: u32,
    },
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The caller asked to stop.
    #[error("interrupted; no report was written, and the benchmark's files were removed")]
    Interrupted,
    /// What was measured did not do what it should.
    #[error("{what}: expected {expected}, found {found}")]
    WrongResult {
        /// Which result.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl BenchError {
    pub(crate) fn augment(source: packds_reader::augment::AugmentError) -> Self {
        Self::Augment(source)
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
