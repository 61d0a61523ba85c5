//! What a conversion did: for people by the command, for machines as JSON.

use std::path::PathBuf;
use std::time::Duration;

use packds_format::SeekStats;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A file that was left out or replaced, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its path relative to the source; bytes that are not UTF-8 are shown as replacement characters.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Seconds of a conversion. `read`, `decode`, `stats` and `encode` are added up over threads; the others are the
/// calling thread's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stages {
    /// Listing the source.
    pub list: Duration,
    /// Looking at sizes and deciding what the pack looks like.
    pub plan: Duration,
    /// Measuring the data set's mean and standard deviation in a pass of its own.
    pub measure: Duration,
    /// Reading files.
    pub read: Duration,
    /// Decoding, resizing and cropping.
    pub decode: Duration,
    /// Counting pixel values.
    pub stats: Duration,
    /// Casting, compressing, checksums.
    pub encode: Duration,
    /// Handing bytes to the file system.
    pub write: Duration,
    /// From the first image to the last written byte.
    pub convert: Duration,
    /// Bringing the file to disk.
    pub sync: Duration,
    /// All of it.
    pub total: Duration,
}

impl Stages {
    /// Every stage with its seconds.
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

/// What a conversion did.
#[derive(Debug, Clone)]
pub struct Report {
    /// The pack.
    pub output: PathBuf,
    /// Samples in it.
    pub n_samples: u64,
    /// Chunks in it.
    pub n_chunks: u64,
    /// Samples of every chunk but the last.
    pub chunk_samples: u32,
    /// Classes.
    pub n_classes: usize,
    /// How images are stored, in words.
    pub images: String,
    /// Files left out, in listing order.
    pub skipped: Vec<Skipped>,
    /// Files in whose place a zero image stands, in listing order.
    pub substituted: Vec<Skipped>,
    /// Images whose EXIF orientation is other than upright.
    pub oriented: u64,
    /// Files in the source that are no images.
    pub ignored: u64,
    /// The images' seek indexes, where these were asked for.
    pub seek: Option<SeekStats>,
    /// Bytes of the files read.
    pub bytes_in: u64,
    /// Bytes of the pack.
    pub bytes_out: u64,
    /// Mean of each channel in 0..1, where every image's pixels were seen.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel in 0..1.
    pub std: Vec<f64>,
    /// Oddities of the source.
    pub warnings: Vec<String>,
    /// Decisions made for the caller.
    pub notes: Vec<String>,
    /// Where the time went.
    pub stages: Stages,
}

impl Report {
    /// Whether a file of the source was left out or replaced: the data is not all right.
    #[must_use]
    pub fn has_bad_samples(&self) -> bool {
        !self.skipped.is_empty() || !self.substituted.is_empty()
    }

    /// The report for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let seconds: Map<String, Value> = self
            .stages
            .seconds()
            .into_iter()
            .map(|(name, s)| (name.to_owned(), json!(s)))
            .collect();
        json!({
            "output": self.output.to_string_lossy(),
            "n_samples": self.n_samples,
            "n_chunks": self.n_chunks,
            "chunk_samples": self.chunk_samples,
            "n_classes": self.n_classes,
            "images": self.images,
            "skipped": self.skipped,
            "substituted": self.substituted,
            "oriented": self.oriented,
            "ignored": self.ignored,
            "seek": self.seek,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "mean": self.mean,
            "std": self.std,
            "warnings": self.warnings,
            "notes": self.notes,
            "seconds": seconds,
        })
    }
}
