//! The results of `packds bench formats`: the structure of report.json, and of peers.json, which programs in other
//! languages write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The contents of report.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The command line of the benchmark.
    pub command: String,
    /// The seed of the orders.
    pub seed: u64,
    /// Start time in UTC, as RFC 3339.
    pub started: String,
    /// The machine that ran the benchmark.
    pub machine: ReportMachine,
    /// Versions of packds, of libraries and of peers.
    pub versions: BTreeMap<String, String>,
    /// The images that were loaded.
    pub data: Data,
    /// The options of the measurement.
    pub options: OptionsShown,
    /// The hardware limits.
    pub limits: Limits,
    /// The formats, in the order of the report.
    pub formats: Vec<FormatRow>,
    /// The runs. Runs that differ only in the format are next to each other; those of other programs come last.
    pub runs: Vec<RunRow>,
}

/// The contents of peers.json: results of other programs on the same data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// Versions of the measured programs and libraries.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Number of images per run, if known.
    pub n_samples: Option<u64>,
    /// The formats of these programs.
    pub formats: Vec<FormatRow>,
    /// The runs of these programs.
    pub runs: Vec<RunRow>,
}

/// The machine and the disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportMachine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The file system with the formats' files.
    pub filesystem: String,
    /// The device of this file system.
    pub disk: String,
    /// Whether this is a virtual machine that returns free memory to its host, which slows down cold reads.
    pub free_page_reporting: bool,
}

/// The images that every format contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The path that the user gave.
    pub path: String,
    /// Number of images used.
    pub n_samples: u64,
    /// Rows of an image.
    pub height: u64,
    /// Columns of an image.
    pub width: u64,
    /// Channels of an image: 1 or 3.
    pub channels: u64,
    /// Bytes of pixels per image.
    pub bytes_per_image: u64,
    /// Bytes of pixels in total.
    pub pixel_bytes: u64,
}

/// The resolved options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionsShown {
    /// Samples per batch.
    pub batch: u32,
    /// The requested batch size, if there are too few images for four such batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_asked: Option<u32>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// The measured orders: `sequential`, `per-sample`, `chunk`.
    pub orders: Vec<String>,
    /// The measured states of the page cache: `warm`, `cold`.
    pub cache: Vec<String>,
    /// Duration of a training step in ms. 0 for none.
    pub step_ms: f64,
    /// Whether the runs were short and the results are rough.
    pub quick: bool,
    /// Number of rounds; medians over all rounds are reported.
    pub rounds: usize,
}

/// Hardware limits in images per second, by number of threads or state of the page cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Copying batches into reused buffers.
    pub memcpy_images_per_s: BTreeMap<usize, f64>,
    /// Reading a file of the same pixels sequentially, bypassing the page cache (`cold`).
    pub disk_read_images_per_s: BTreeMap<String, f64>,
    /// Decoding PNG files of the same pixels, from memory.
    pub decode_images_per_s: BTreeMap<usize, f64>,
}

/// A format and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatRow {
    /// Name in rows and options, such as `hdf5-chunked`.
    pub format: String,
    /// Display name.
    pub title: String,
    /// Language of the reader: `rust` or `python`.
    pub runtime: String,
    /// Whether the format keeps the exact pixels. All lossless formats have the same checksum.
    pub lossless: bool,
    /// Size of the files. `None` if they were not written.
    pub bytes: Option<u64>,
    /// Seconds to write the files, including the sync to disk. `None` if they were not written in this run.
    pub write_s: Option<f64>,
    /// Number of samples per chunk. `None` if the format has no chunks, or if the benchmark does not set their size.
    pub chunk: Option<u64>,
    /// Remarks on the settings, the files or the reader.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One format in one order, cache state and number of threads: medians over the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRow {
    /// The format, as in [`FormatRow::format`].
    pub format: String,
    /// `sequential`, `per-sample` or `chunk`.
    pub order: String,
    /// State of the page cache: `warm` or `cold`.
    pub cache: String,
    /// Number of loading threads.
    pub threads: usize,
    /// Samples per batch.
    pub batch: u32,
    /// Duration of the training step in ms. 0 for none.
    pub step_ms: f64,
    /// Time from one batch to the next, in ms.
    pub batch_ms: Option<Spread>,
    /// Images per second.
    pub images_per_s: Option<f64>,
    /// Time from opening the files to the first batch, in ms.
    pub first_batch_ms: Option<f64>,
    /// CPU seconds of the process per 1000 images.
    pub cpu_s_per_1000: Option<f64>,
    /// Peak resident memory during the run, including mapped files.
    pub peak_rss_bytes: Option<u64>,
    /// Time for which a training step waited for its batch. `None` if `step_ms` is 0.
    pub wait_ms: Option<Spread>,
    /// Share of the time for which training waited. `None` if `step_ms` is 0.
    pub wait_share: Option<f64>,
    /// Checksum of all delivered samples, in hexadecimal.
    pub checksum: Option<String>,
    /// Share of the files in the page cache at the start of the run, from 0 to 1.
    pub cached_share_before: Option<f64>,
    /// Why the format was not measured. `None` if it was.
    pub skipped: Option<String>,
}

impl RunRow {
    /// Milliseconds per batch: the total time of the run, including opening and steps, divided by its batches. The
    /// median of [`Self::batch_ms`] may be only the time to take a finished batch.
    #[must_use]
    pub fn mean_batch_ms(&self) -> Option<f64> {
        let rate = self.images_per_s.filter(|rate| *rate > 0.0)?;
        Some(f64::from(self.batch) * 1e3 / rate)
    }
}

/// Median and 95th percentile of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The median in ms.
    pub median: f64,
    /// The 95th percentile in ms.
    pub p95: f64,
}
