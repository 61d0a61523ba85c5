//! What `packds bench formats` found: the structure of report.json and of the rows that peers in other languages add.
//! Not for how it is shown: that is the command's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All of report.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The command that made it.
    pub command: String,
    /// The seed of orders.
    pub seed: u64,
    /// When it began, as RFC 3339 in UTC.
    pub started: String,
    /// The machine.
    pub machine: ReportMachine,
    /// Versions of packds, of libraries and of peers.
    pub versions: BTreeMap<String, String>,
    /// What was loaded.
    pub data: Data,
    /// How it was measured.
    pub options: OptionsShown,
    /// What the machine could do at best.
    pub limits: Limits,
    /// The formats, in the order of the report.
    pub formats: Vec<FormatRow>,
    /// The runs, format by format.
    pub runs: Vec<RunRow>,
}

/// What peers.json holds: rows measured by other programs on the same data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// Versions of what was measured.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// How many images each run took, where that is told.
    #[serde(default)]
    pub n_images: Option<u64>,
    /// Their formats.
    pub formats: Vec<FormatRow>,
    /// Their runs.
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
    pub ram_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The file system that the formats were written to.
    pub filesystem: String,
    /// What it lies on.
    pub disk: String,
    /// Whether this is a virtual machine that gives free memory back to its host, which slows what is read cold.
    pub free_page_reporting: bool,
}

/// The images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// What the user named.
    pub path: String,
    /// Images that were measured with.
    pub n_images: u64,
    /// Rows of an image.
    pub height: u64,
    /// Columns of an image.
    pub width: u64,
    /// 1 or 3.
    pub channels: u64,
    /// Bytes of an image's pixels.
    pub bytes_per_image: u64,
    /// Bytes of all images' pixels.
    pub pixel_bytes: u64,
}

/// The options as they were resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionsShown {
    /// Samples of a batch.
    pub batch: u32,
    /// What was asked for, where there are too few images for four such batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_asked: Option<u32>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// `sequential`, `per-sample`, `chunk`.
    pub orders: Vec<String>,
    /// `warm`, `cold`.
    pub cache: Vec<String>,
    /// Milliseconds of a training step; 0 where there is none.
    pub step_ms: f64,
    /// Whether it was a quick look.
    pub quick: bool,
    /// Runs of which the median counts.
    pub rounds: usize,
}

/// What the machine could do at best, in images a second, by the number of threads or the state of the cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Copying batches into reused buffers.
    pub memcpy_images_per_s: BTreeMap<usize, f64>,
    /// Reading a file of the same pixels from end to end, past the page cache (`cold`).
    pub disk_read_images_per_s: BTreeMap<String, f64>,
    /// Decoding PNG files of the same pixels, from memory.
    pub decode_images_per_s: BTreeMap<usize, f64>,
}

/// A format, its file and how it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatRow {
    /// Its name in rows and options, such as `hdf5-chunked`.
    pub format: String,
    /// Its name for people.
    pub title: String,
    /// `rust` or `python`.
    pub runtime: String,
    /// Whether it holds the very pixels: checksums of all that do agree.
    pub lossless: bool,
    /// Bytes of its files; none where it was not written.
    #[serde(default)]
    pub bytes_on_disk: Option<u64>,
    /// Seconds that writing took, to the disk; none where it was not written here.
    #[serde(default)]
    pub write_s: Option<f64>,
    /// Samples that are read together; none where each stands alone.
    #[serde(default)]
    pub chunk: Option<u64>,
    /// Settings, and what is particular about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One format in one order, cache state and number of threads: medians over the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRow {
    /// [`FormatRow::format`].
    pub format: String,
    /// `sequential`, `per-sample` or `chunk`.
    pub order: String,
    /// `warm` or `cold`.
    pub cache: String,
    /// Threads that loaded.
    pub threads: usize,
    /// Samples of a batch.
    pub batch: u32,
    /// Milliseconds of the training step that ran meanwhile; 0 for none.
    pub step_ms: f64,
    /// From one batch to the next.
    #[serde(default)]
    pub batch_ms: Option<Spread>,
    /// Images a second.
    #[serde(default)]
    pub images_per_s: Option<f64>,
    /// From before the files were opened to the first batch.
    #[serde(default)]
    pub first_batch_ms: Option<f64>,
    /// Seconds of processor time of the process for 1000 images.
    #[serde(default)]
    pub cpu_s_per_1000: Option<f64>,
    /// The most memory resident during the run, mapped files included.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// What a training step waited for its batch; none where `step_ms` is 0.
    #[serde(default)]
    pub wait_ms: Option<Spread>,
    /// The part of the time that training waited; none where `step_ms` is 0.
    #[serde(default)]
    pub wait_share: Option<f64>,
    /// Of all samples delivered, in hexadecimal.
    #[serde(default)]
    pub checksum: Option<String>,
    /// The part of the files that was in the page cache when the run began, 0 to 1.
    #[serde(default)]
    pub cached_share_before: Option<f64>,
    /// Why there are no numbers; none where there are.
    #[serde(default)]
    pub skipped: Option<String>,
}

impl RunRow {
    /// Milliseconds for a batch: all the time of the run, opening and steps included, by its batches. On any number of threads
    /// this is what a batch costs, while the median of [`Self::batch_ms`] can be the taking of one that was ready.
    #[must_use]
    pub fn mean_batch_ms(&self) -> Option<f64> {
        let rate = self.images_per_s.filter(|rate| *rate > 0.0)?;
        Some(f64::from(self.batch) * 1e3 / rate)
    }
}

/// The middle and the slow end of some times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
}
