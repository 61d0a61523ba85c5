//! What to change, and what that would give: each change is one in the stages' times, put through the same model.

use std::num::NonZero;

use super::model::{Case, Level, Overlap, Stages};

/// What gives less than this much more is not worth telling.
const WORTH: f64 = 1.05;

/// Something to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What, in a word or two: `threads`, `dtype`, `memory`, ...
    pub change: &'static str,
    /// What to do, in a sentence.
    pub text: String,
    /// Images a second that it would give.
    pub images_per_s: f64,
    /// Whether it gives no more than the times differ by: it may be chance.
    pub within_spread: bool,
    /// How the loader itself can be made so, where it can.
    pub option: Option<LoaderOption>,
}

/// A change that is one of the loader's own options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderOption {
    /// So many threads.
    Threads(NonZero<usize>),
    /// The order `window`.
    Window,
    /// Batches of bytes.
    Bytes,
}

/// A change, with what it makes of a batch.
struct Candidate {
    change: &'static str,
    text: String,
    after: After,
    option: Option<LoaderOption>,
}

enum After {
    /// The stages take so long.
    Stages(Overlap, Stages),
    /// A batch takes so many milliseconds.
    BatchMs(f64),
}

impl Candidate {
    /// Milliseconds of a batch after it.
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

/// What is worth changing, from what gives most; of changes that give the same, first what costs least to try. What gives no
/// more than `spread` is marked.
pub(super) fn advice(case: &Case, spread: f64) -> Vec<Advice> {
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

/// Milliseconds that a change of what the model expects takes off a batch. What the model leaves out now it leaves out then: no
/// change is told to shorten it. A batch that takes less than expected is shortened in proportion.
fn saved(now: f64, modelled: f64, after: f64) -> f64 {
    let known = (now / modelled.max(f64::MIN_POSITIVE)).min(1.0);
    (modelled - after) * known
}

/// All changes that there are, from what costs least.
fn candidates(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = threads(case, stages).into_iter().collect();
    all.extend(of_batches(case, stages));
    all.extend(of_reading(case, stages));
    all.extend(of_packs(case, stages));
    all
}

/// One for each core, where there are fewer.
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
        // Then threads copy, check and decompress what is in memory.
        after.read *= part;
    }
    let (text, overlap, option) = match case.overlap {
        Overlap::Everything | Overlap::Loading => (
            format!("threads: {cores}, one for each core, instead of {now}"),
            case.overlap,
            Some(LoaderOption::Threads(cores)),
        ),
        Overlap::Workers | Overlap::Nothing => {
            // Each worker reads its own.
            after.read = stages.read * part;
            let text = format!("num_workers: {cores}, one for each core, instead of {now}");
            (text, Overlap::Workers, None)
        }
    };
    Some(Candidate {
        change: "threads",
        text,
        after: After::Stages(overlap, after),
        option,
    })
}

/// What batches are made of and copied from.
fn of_batches(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    let mut add = |change, text: &str, after, option| {
        all.push(Candidate {
            change,
            text: text.to_owned(),
            after: After::Stages(case.overlap, after),
            option,
        });
    };
    if let Some(as_bytes) = facts.as_bytes {
        let after = Stages {
            copy: stages.copy * as_bytes.bytes,
            transform: as_bytes.transform.min(stages.transform),
            ..*stages
        };
        let text = "batches as u8, with normalization and floats on the device";
        add("normalization", text, after, Some(LoaderOption::Bytes));
    }
    if facts.is_f32 {
        let after = Stages {
            copy: stages.copy / 2.0,
            ..*stages
        };
        add(
            "dtype",
            "batches as f16 or bf16: half the bytes to copy",
            after,
            None,
        );
    }
    if let Some(copy) = facts.pinned_copy {
        let after = Stages { copy, ..*stages };
        let text = "batches in pinned memory (pin_memory=True), copied with non_blocking=True";
        add("pinned", text, after, None);
    }
    all
}

/// How bytes come from the disk.
fn of_reading(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    let mut reading = |change, text: &str, read: f64, option| {
        let after = Stages { read, ..*stages };
        all.push(Candidate {
            change,
            text: text.to_owned(),
            after: After::Stages(case.overlap, after),
            option,
        });
    };
    if let Some(read) = facts.window_read {
        let text = "order: window, which reads whole chunks, instead of random";
        reading("window", text, read, Some(LoaderOption::Window));
    }
    if let Some(read) = facts.long_read {
        let text = "larger chunks: `packds convert --chunk`; reads are too short for this disk";
        reading("chunk size", text, read, None);
    }
    if !case.reads_from_disk() {
        all.extend(codec(case));
        return all;
    }
    // Twice as fast is what one can picture; the ladder says what more would give.
    let text = "a disk twice as fast, or the data on a local one";
    reading("disk", text, stages.read / 2.0, None);
    let with = |loading| case.overlap.with_loading(stages.step, stages.copy, loading);
    let (source, cached) = (case.loading.source.ms, case.loading.page_cache.ms);
    let saved = saved(case.batch_ms(), with(source), with(cached));
    all.push(Candidate {
        change: "memory",
        text: "memory for the whole of it: from the second epoch on it comes from the page cache"
            .to_owned(),
        after: After::BatchMs(case.batch_ms() - saved),
        option: None,
    });
    // Neither a disk nor memory is faster than the page cache was.
    let least = case.time(Level::PageCache).ms;
    let modelled = case.overlap.batch_ms(stages);
    for of_disk in all
        .iter_mut()
        .filter(|one| matches!(one.change, "disk" | "memory"))
    {
        of_disk.after = After::BatchMs(of_disk.batch_ms(case, modelled).max(least));
    }
    all
}

/// Chunks that are not compressed: what is read from memory then is decompression. At best that costs nothing.
fn codec(case: &Case) -> Option<Candidate> {
    let raw = case.time(Level::RawSample).ms;
    case.facts.is_compressed.then(|| Candidate {
        change: "codec",
        text: "no compression: `packds convert --codec none`; chunks come from memory, and `read` is decompressing them (this rate is the most that it can give)".to_owned(),
        after: After::BatchMs(raw),
        option: None,
    })
}

/// What a conversion decides.
fn of_packs(case: &Case, stages: &Stages) -> Vec<Candidate> {
    let facts = &case.facts;
    let mut all = Vec::new();
    if let Some(part) = facts.needed {
        let after = Stages {
            decode: stages.decode * part,
            read: stages.read * part,
            ..*stages
        };
        all.push(Candidate {
            change: "image size",
            text: "smaller images: `packds convert --mode encoded --resize max:N`; they are larger than the crops need".to_owned(),
            after: After::Stages(case.overlap, after),
            option: None,
        });
    }
    if let Some(growth) = facts.growth {
        let after = Stages {
            decode: 0.0,
            read: stages.read * growth,
            ..*stages
        };
        all.push(Candidate {
            change: "storage mode",
            text: format!(
                "pixels instead of files: `packds convert --mode raw`; {growth:.1} times the bytes, and nothing to decode"
            ),
            after: After::Stages(case.overlap, after),
            option: None,
        });
    }
    if let Some(converted) = facts.converted {
        let ms = Overlap::Loading.with_loading(stages.step, stages.copy, converted);
        let left_out = facts.left_out.as_deref().map(|steps| {
            format!("; without {steps}, which augment= would have to do for every batch: the most that it can give")
        });
        all.push(Candidate {
            change: "convert",
            text: format!(
                "a pack and packds.Loader (an estimate: measured on a small pack of samples as this data set gives them{})",
                left_out.unwrap_or_default()
            ),
            after: After::BatchMs(ms),
            option: None,
        });
    }
    all
}

fn ratio(a: usize, b: usize) -> f64 {
    let float = |n| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    float(a) / float(b)
}
