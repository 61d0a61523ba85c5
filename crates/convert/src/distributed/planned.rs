//! Makes the plan of a set: lists the source, decides how the samples are stored, and divides them among shards.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::DType;
use packds_system::{counted, to_u64, to_usize};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::plan_file::{Header, PlanWriter, frame};
use super::settled::Settled;
use crate::convert::{Identity, measure, name, refuse_fault};
use crate::error::ConvertError;
use crate::opt::{CHUNK, SHARDS, SPLIT};
use crate::options::{ConvertOptions, NormalizeBy};
use crate::ordered::{Next, ordered};
use crate::output::Output;
use crate::pipeline::{Observer, Phase, Progress};
use crate::plan::{Order, plan};
use crate::provenance::VERSION;
use crate::restored::Restored;
use crate::set::{ShardRule, chunks_of_shard};
use crate::source::{ListOptions, Listed, Listing, list_all};

/// The result of planning a set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanReport {
    /// The file of the plan.
    pub output: PathBuf,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of shards. There may be fewer than requested, because every shard has at least one chunk.
    pub n_shards: u64,
    /// Number of samples in the largest shard.
    pub shard_samples: u64,
    /// Samples per chunk.
    pub chunk_samples: u32,
    /// Number of classes.
    pub n_classes: usize,
    /// A description of how images are stored.
    pub images: String,
    /// Size of the plan in bytes.
    pub bytes_out: u64,
    /// Warnings about the source.
    pub warnings: Vec<String>,
    /// Decisions made by default.
    pub notes: Vec<String>,
    /// Time to list, to plan and to write.
    pub time: Duration,
}

impl Serialize for PlanReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "output": self.output.to_string_lossy(),
            "n_samples": self.n_samples,
            "n_shards": self.n_shards,
            "shard_samples": self.shard_samples,
            "chunk_samples": self.chunk_samples,
            "n_classes": self.n_classes,
            "images": self.images,
            "bytes_out": self.bytes_out,
            "warnings": self.warnings,
            "notes": self.notes,
            "seconds": {"total": self.time.as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// Lists a source to plan it.
///
/// # Errors
/// As for [`list_all`](crate::source::list_all). Several splits are an error: each has a plan of its own.
pub fn list_to_plan(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    let several = |names: &str| {
        let reason = format!("{}: a plan has one split, found {names}", source.display());
        ConvertError::options(reason, format!("plan each split by itself: {}", SPLIT.with("train")))
    };
    if options.split.as_deref() == Some("all") {
        return Err(several("'all'"));
    }
    match list_all(source, options)? {
        Listed::One(listing) => Ok(*listing),
        Listed::Splits(splits) => {
            let names: Vec<String> = splits.iter().map(|(name, _)| format!("'{name}'")).collect();
            Err(several(&names.join(", ")))
        }
    }
}

/// Writes the plan of a set to `output`. `options` say how many shards there are. `listing` is that of `source`, and
/// `list_time` is how long listing took.
///
/// # Errors
/// [`ConvertError`] says what failed and where. Nothing is left at `output`.
pub fn plan_shards(
    source: &Path,
    (listing, list_time): (&Listing, Duration),
    output: &Path,
    options: &ConvertOptions,
    observer: &dyn Observer,
) -> Result<PlanReport, ConvertError> {
    let started = Instant::now();
    options.check()?;
    let Some(rule @ ShardRule::Count(asked)) = options.shards else {
        let reason = "a plan needs the number of shards: the size of a shard is known only when it is built";
        return Err(ConvertError::options(reason, format!("pass {}, for example", SHARDS.with(64))));
    };
    refuse_fault(listing, options)?;
    let shared = listing.shared(source)?;
    let Restored { options, mut warnings } = Restored::of(listing, options, observer)?;
    let output = Output::create(output, options.force)?;
    let mut plan = plan(listing, &options, observer)?;
    if options.normalize == NormalizeBy::Dataset && options.dtype != DType::U8 {
        measure(listing, &options, &mut plan, observer)?;
    }
    let Identity { dataset_uuid, pack_uuid, origin } = Identity::of(listing, &options, &plan);
    let (n_samples, chunk_samples) = (to_u64(listing.len()), u64::from(plan.pack.chunk_samples));
    let header = Header {
        tool: VERSION.to_owned(),
        n_samples,
        dataset_uuid: dataset_uuid.0,
        pack_uuid: pack_uuid.0,
        settled: Settled::of(&options, &plan),
        shared,
        origin,
    };
    let n_chunks = n_samples.div_ceil(chunk_samples);
    let n_shards = rule.n_shards(n_chunks, 0);
    // Samples of a shard.
    let size = |shard| chunks_of_shard(shard, n_shards, n_chunks).saturating_mul(chunk_samples);
    let sizes = (0..n_shards).map(size);
    let bytes_out = write(listing, &options, &output, &header, sizes, observer)?;
    let target = output.target().to_owned();
    name(output, n_samples, observer)?;
    if n_shards < asked {
        let (shards, chunks) = (counted(n_shards, "shard"), counted(chunk_samples, "sample"));
        warnings.push(format!(
            "{}: the plan has {shards}, because a shard has whole chunks of {chunks}; {CHUNK} makes chunks smaller",
            SHARDS.with(asked)
        ));
    }
    if let n @ 1.. = listing.faulty().count() {
        let bad = counted(n, "sample");
        warnings.push(format!("{bad} of the source cannot be read: `commit` lists the bad samples of all shards"));
    }
    Ok(PlanReport {
        output: target,
        n_samples,
        n_shards,
        shard_samples: size(0).min(n_samples),
        chunk_samples: plan.pack.chunk_samples,
        n_classes: listing.n_classes(),
        images: plan.describe_images(&options),
        bytes_out,
        warnings,
        notes: plan.notes,
        time: list_time + started.elapsed(),
    })
}

/// Writes the header, and a part with each of these numbers of samples. Returns the size of the file.
fn write(
    listing: &Listing,
    options: &ConvertOptions,
    output: &Output,
    header: &Header,
    mut sizes: impl Iterator<Item = u64>,
    observer: &dyn Observer,
) -> Result<u64, ConvertError> {
    let failed = |error| ConvertError::io(output.target())(error);
    let order = Order::new(listing, options);
    let total = to_u64(listing.len());
    let mut writer = PlanWriter::new(BufWriter::new(output.file()), header).map_err(failed)?;
    let (mut next, mut done, jobs) = (0, 0, options.n_jobs());
    ordered(
        jobs,
        jobs * 2,
        || (),
        |(), places: Vec<usize>| Ok((to_u64(places.len()), frame(&listing.part(&places)?).map_err(failed)?)),
        || {
            observer.check()?;
            let end = total.min(next + sizes.next().unwrap_or(0));
            let places: Vec<usize> = (next..end).filter_map(|position| order.at(to_usize(position))).collect();
            next = end;
            Ok::<_, ConvertError>((!places.is_empty()).then_some(places))
        },
        |made: Result<(u64, Vec<u8>), ConvertError>| {
            let (n, frame) = made?;
            writer.push(&frame).map_err(failed)?;
            done += n;
            observer.progress(Progress { samples: done, total, bytes_in: 0, phase: Phase::Plan });
            Ok(Next::Continue)
        },
    )?;
    Ok(writer.finish().map_err(failed)?.1)
}
