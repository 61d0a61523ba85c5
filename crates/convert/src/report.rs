//! The result of a conversion. The command prints it as text or JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use packds_format::{Field, SeekStats};
use serde::{Deserialize, Serialize, Serializer};

/// A file that was skipped or substituted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The file's path relative to the source. Invalid UTF-8 is replaced.
    pub path: String,
    /// What is wrong with the file.
    pub reason: String,
}

/// Time spent in each stage of a conversion. `read`, `decode`, `stats` and `encode` are summed over all threads; the
/// other stages are measured on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stages {
    /// Listing the source.
    pub list: Duration,
    /// Reading image headers and planning the pack.
    pub plan: Duration,
    /// Measuring the dataset's mean and standard deviation in a separate pass.
    pub measure: Duration,
    /// Reading files.
    pub read: Duration,
    /// Decoding, resizing and cropping.
    pub decode: Duration,
    /// Counting pixel values.
    pub stats: Duration,
    /// Converting types, compressing, and computing checksums.
    pub encode: Duration,
    /// Writing to the file system.
    pub write: Duration,
    /// From the first image to the last written byte.
    pub convert: Duration,
    /// Syncing the file to disk.
    pub sync: Duration,
    /// Total time of the conversion.
    pub total: Duration,
}

impl Stages {
    /// The name of each stage and its duration in seconds.
    #[must_use]
    pub fn seconds(&self) -> [(&'static str, f64); 11] {
        [
            ("list", self.list),
            ("plan", self.plan),
            ("measure", self.measure),
            ("read", self.read),
            ("decode", self.decode),
            ("stats", self.stats),
            ("encode", self.encode),
            ("write", self.write),
            ("convert", self.convert),
            ("sync", self.sync),
            ("total", self.total),
        ]
        .map(|(name, time)| (name, time.as_secs_f64()))
    }
}

/// The result of a conversion.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The path of the pack.
    #[serde(serialize_with = "lossy")]
    pub output: PathBuf,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of chunks.
    pub n_chunks: u64,
    /// Number of shards of a set. `None` for a single pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_shards: Option<u64>,
    /// Samples per chunk. The last chunk may have fewer.
    pub chunk_samples: u32,
    /// Number of classes.
    pub n_classes: usize,
    /// A description of how images are stored.
    pub images: String,
    /// The fields of the pack.
    pub fields: Vec<Field>,
    /// Skipped files, in listing order.
    pub skipped: Vec<Skipped>,
    /// Files replaced by images of zeros, in listing order.
    pub substituted: Vec<Skipped>,
    /// Number of images with an EXIF orientation other than upright.
    pub oriented: u64,
    /// Number of files or members in the source that are not samples.
    pub ignored: u64,
    /// Number and size of the images' seek indexes, if requested.
    pub seek: Option<SeekStats>,
    /// Number of bytes read from the source.
    pub bytes_in: u64,
    /// Size of the pack in bytes.
    pub bytes_out: u64,
    /// Mean of each channel, on a scale of 0 to 1. Empty if some images' pixels were not counted.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel, on the same scale.
    pub std: Vec<f64>,
    /// Warnings about the source and the conversion.
    pub warnings: Vec<String>,
    /// Decisions made by default.
    pub notes: Vec<String>,
    /// Time by stage.
    #[serde(rename = "seconds")]
    pub stages: Stages,
}

impl Report {
    /// Whether any file of the source was skipped or substituted.
    #[must_use]
    pub fn has_bad_samples(&self) -> bool {
        !self.skipped.is_empty() || !self.substituted.is_empty()
    }
}

/// Serializes a path as text. Invalid UTF-8 is replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl Serialize for Stages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.seconds())
    }
}
