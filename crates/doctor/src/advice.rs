//! Suggests changes and predicts their gains: each change modifies the times of some stages, and the model computes the
//! new rate.

use std::num::NonZero;

use packds_system::Opt;

use crate::model::{Case, Level, Overlap, Stages};

// Options of `packds convert`.
const CHUNK: Opt = Opt::new("chunk");
const CODEC: Opt = Opt::new("codec");
const MODE: Opt = Opt::new("mode");
const RESIZE: Opt = Opt::new("resize");

/// Minimum ratio of the new rate to the current rate for a change to be reported.
const WORTH: f64 = 1.05;

/// A suggested change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// A short name: `threads`, `dtype`, `memory`, ...
    pub change: &'static str,
    /// What to do, as a phrase without a full stop.
    pub text: String,
    /// Expected images per second.
    pub images_per_s: f64,
    /// Whether the gain is within the spread of the times, so that it may be noise.
    pub within_spread: bool,
    /// The corresponding option of the loader, if there is one.
    pub option: Option<LoaderOption>,
}

/// A change that is an option of the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderOption {
    /// Load with this many threads.
    Threads(NonZero<usize>),
    /// Use the order `window`.
    Window,
    /// Make batches as `u8`.
    Bytes,
}

/// A change with its effect on a batch.
struct Candidate {
    change: &'static str,
    text: String,
    after: After,
    option: Option<LoaderOption>,
}

enum After {
    Stages(Overlap, Stages),
    BatchMs(f64),
}

impl Candidate {
    fn stages(case: &Case, change: &'static str, text: impl Into<String>, after: Stages) -> Self {
        Self { change, text: text.into(), after: After::Stages(case.overlap, after), option: None }
    }

    fn batch(change: &'static str, text: impl Into<String>, ms: f64) -> Self {
        Self { change, text: text.into(), after: After::BatchMs(ms), option: None }
    }

    fn by(self, option: LoaderOption) -> Self {
        Self { option: Some(option), ..self }
    }

    /// The time of a batch after the change, in milliseconds.
    fn batch_ms(&self, case: &Case, modelled: f64) -> f64 {
        match self.after {
            After::Stages(overlap, after) => {
                let saved = saved(case.batch_ms(), modelled, overlap.batch_ms(&after));
                let least = overlap.with_loading(after.step, after.copy, 0.0);
                (case.batch_ms() - saved).max(least)
            }
            After::BatchMs(ms) => ms,
        }
    }
}

/// Useful changes, largest gain first. If gains are equal, the change that is easiest to try comes first. Gains within
/// `spread` are marked.
pub(crate) fn advice(case: &Case, spread: f64) -> Vec<Advice> {
    let stages = case.stages();
    let (now, modelled) = (case.batch_ms(), case.overlap.batch_ms(&stages));
    let mut all: Vec<Advice> = candidates(case, &stages)
        .into_iter()
        .map(|candidate| {
            let images_per_s = case.rate(candidate.batch_ms(case, modelled));
            Advice {
                change: candidate.change,
                text: candidate.text,
                images_per_s,
                within_spread: images_per_s <= case.rate(now) * (1.0 + spread),
                option: candidate.option,
            }
        })
        .filter(|advice| advice.images_per_s > WORTH * case.rate(now))
        .collect();
    all.sort_by(|a, b| b.images_per_s.total_cmp(&a.images_per_s));
    all
}

/// The milliseconds that a change saves per batch. Time that the model does not explain is assumed to stay the same. If
/// a batch takes less than the model predicts, the saving is scaled down in proportion.
fn saved(now: f64, modelled: f64, after: f64) -> f64 {
    let known = (now / modelled.max(f64::MIN_POSITIVE)).min(1.0);
    (modelled - after) * known
}

/// All possible changes, easiest first.
fn candidates(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = threads(case, stages).into_iter().collect();
    all.extend(of_batches(case, stages));
    all.extend(of_reading(case, stages));
    all.extend(of_packs(case, stages));
    all
}

/// One thread per core, if there are fewer threads.
fn threads(case: &Case, stages: &Stages) -> Option<Candidate> {
    let (now, cores) = (case.facts.threads, NonZero::new(case.facts.cores)?);
    if now >= cores.get() {
        return None;
    }
    let part = ratio(now.max(1), cores.get());
    let mut after = *stages;
    after.transform *= part;
    after.decode *= part;
    if !case.reads_from_disk() {
        // The data is in memory, so threads copy, verify and decompress it.
        after.read *= part;
    }
    let (text, overlap, option) = match case.overlap {
        Overlap::Everything | Overlap::Loading => (
            format!("threads: {cores}, one for each core, instead of {now}"),
            case.overlap,
            Some(LoaderOption::Threads(cores)),
        ),
        Overlap::Workers | Overlap::Nothing => {
            // Each worker reads separately.
            after.read = stages.read * part;
            let text = format!("num_workers: {cores}, one for each core, instead of {now}");
            (text, Overlap::Workers, None)
        }
    };
    Some(Candidate { change: "threads", text, after: After::Stages(overlap, after), option })
}

/// Changes to the contents of batches and to copying.
fn of_batches(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    if let Some(as_bytes) = facts.as_bytes {
        let (copy, transform) = (stages.copy * as_bytes.bytes, as_bytes.transform.min(stages.transform));
        let text = "batches as u8, normalized and converted to floats on the device";
        let bytes = Candidate::stages(case, "normalization", text, Stages { copy, transform, ..*stages });
        all.push(bytes.by(LoaderOption::Bytes));
    }
    if facts.is_f32 {
        let after = Stages { copy: stages.copy / 2.0, ..*stages };
        all.push(Candidate::stages(case, "dtype", "batches as f16 or bf16: half the bytes to copy", after));
    }
    if let Some(copy) = facts.pinned_copy {
        let text = "batches in pinned memory (pin_memory=True), copied with non_blocking=True";
        all.push(Candidate::stages(case, "pinned", text, Stages { copy, ..*stages }));
    }
    all
}

/// Changes to how stored data is read.
fn of_reading(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    if let Some(read) = facts.window_read {
        let text = "order: window, which reads whole chunks, instead of random";
        let window = Candidate::stages(case, "window", text, Stages { read, ..*stages });
        all.push(window.by(LoaderOption::Window));
    }
    if let Some(read) = facts.long_read {
        let text = format!("larger chunks: `packds convert {}`; reads are too small for this disk", CHUNK.in_command());
        all.push(Candidate::stages(case, "chunk size", text, Stages { read, ..*stages }));
    }
    if !case.reads_from_disk() {
        all.extend(codec(case));
        return all;
    }
    // Neither a faster disk nor more memory can beat the measured page cache.
    let least = case.time(Level::PageCache).ms;
    // Assume a disk that is twice as fast, which is a plausible upgrade.
    let text = "a disk that is twice as fast, or a copy of the data on a local disk";
    let disk = Candidate::stages(case, "disk", text, Stages { read: stages.read / 2.0, ..*stages });
    let ms = disk.batch_ms(case, case.overlap.batch_ms(stages)).max(least);
    all.push(Candidate::batch("disk", text, ms));
    let with = |loading| case.overlap.with_loading(stages.step, stages.copy, loading);
    let (source, cached) = (case.loading.source.ms, case.loading.page_cache.ms);
    let saved = saved(case.batch_ms(), with(source), with(cached));
    let text = "memory for the whole pack: from the second epoch on, the pack is read from the page cache";
    all.push(Candidate::batch("memory", text, (case.batch_ms() - saved).max(least)));
    all
}

/// Suggests uncompressed chunks if the chunks are compressed. The chunks must be in memory: the time to read them is
/// then the time to decompress them. Without compression, reading takes no time at best.
fn codec(case: &Case) -> Option<Candidate> {
    let text = format!(
        "no compression: `packds convert {} none`; chunks come from memory, so `read` is decompression (this rate is an upper bound)",
        CODEC.in_command()
    );
    case.facts.is_compressed.then(|| Candidate::batch("codec", text, case.time(Level::RawSample).ms))
}

/// Changes that need a conversion.
fn of_packs(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    if let Some(part) = facts.needed {
        let after = Stages { decode: stages.decode * part, read: stages.read * part, ..*stages };
        let text = format!(
            "smaller images: `packds convert {} encoded {} max:N`; the images are larger than the crops need",
            MODE.in_command(),
            RESIZE.in_command()
        );
        all.push(Candidate::stages(case, "image size", text, after));
    }
    if let Some(growth) = facts.growth {
        let after = Stages { decode: 0.0, read: stages.read * growth, ..*stages };
        let text = format!(
            "pixels instead of files: `packds convert {} raw`; {growth:.1} times the bytes, but nothing to decode",
            MODE.in_command()
        );
        all.push(Candidate::stages(case, "storage mode", text, after));
    }
    if let Some(converted) = facts.converted {
        let left_out = facts.left_out.as_deref().map(|steps| {
            format!("; an upper bound: it does not include {steps}, which augment= would have to do for every batch")
        });
        let text = format!(
            "a pack and packds.Loader (an estimate, measured on a small pack of samples from this dataset{})",
            left_out.unwrap_or_default()
        );
        let ms = Overlap::Loading.with_loading(stages.step, stages.copy, converted);
        all.push(Candidate::batch("convert", text, ms));
    }
    all
}

fn ratio(a: usize, b: usize) -> f64 {
    let float = |n| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    float(a) / float(b)
}
