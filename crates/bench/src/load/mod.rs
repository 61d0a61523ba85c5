//! `packds bench load`: how fast a pack's batches reach the staging buffers, alongside the hardware limit.

pub(crate) mod cache;
mod checksum;
mod first_batch;
pub(crate) mod limit;
mod slices;

use packds_system::to_u64;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packds_format::{FieldKind, Role};
use packds_reader::augment::{Augment, Buckets};
use packds_reader::loader::{Loader, LoaderBuilder};
use packds_reader::plan::{Last, Order};
use packds_reader::{Access, Checksums, Pack};
use serde::Serialize;

use crate::BenchError;
use crate::machine::{Machine, PeakRss, status_bytes};
use crate::measure::to_f64;
pub use first_batch::FirstBatch;
use limit::Limit;

/// Options of [`bench_load`].
#[derive(Debug, Clone)]
pub struct LoadBenchOptions {
    /// Order of the samples.
    pub order: Order,
    /// Batch size. Default: [`default_batch`].
    pub batch: Option<u32>,
    /// Threads of the loader, and of the limit.
    pub threads: NonZero<usize>,
    /// Augmentations. Default: `rrc224,flip` for encoded images, else none.
    pub augment: Option<String>,
    /// Sizes of batches, one for each aspect ratio.
    pub buckets: Option<Buckets>,
    /// Whether to read from disk, bypassing the page cache.
    pub cold: bool,
    /// Maximum time per measurement in seconds.
    pub seconds: f64,
    /// Memory for the loader in bytes. Default: the loader's.
    pub memory_bytes: Option<u64>,
    /// When to verify checksums.
    pub checksums: Checksums,
    /// Seed of the order and augmentation.
    pub seed: u64,
}

/// The result of `packds bench load`.
#[derive(Debug, Clone, Serialize)]
pub struct LoadBench {
    /// The machine that ran the benchmark.
    pub machine: Machine,
    /// Images per second that reach the staging buffers: median of the slices.
    pub images_per_s: f64,
    /// Bytes per second, counting all fields of the batches.
    pub bytes_per_s: f64,
    /// The limit: `memcpy`, `decode_crop_resize`, `resize` or `direct_read`.
    pub limit: &'static str,
    /// The limit in images per second: median of the slices.
    pub limit_images_per_s: f64,
    /// Median over the pairs of slices of (limit's time / our time).
    pub ratio: f64,
    /// The smallest and the largest ratio.
    pub ratio_range: (f64, f64),
    /// Number of pairs of slices.
    pub slices: usize,
    /// Images per slice.
    pub slice_images: u64,
    /// Images per second if the consumer reads every byte once. `None` if batches are copied instead of lent.
    pub read_once_images_per_s: Option<f64>,
    /// Milliseconds from opening the pack to the first batch.
    pub first_batch_ms: f64,
    /// The size to which the default batch size was reduced. `None` if it was not reduced.
    pub batch_cut_to: Option<u32>,
    /// The first batch of an uncached pack, for each access path. Empty unless read cold.
    pub first_batches: Vec<FirstBatch>,
    /// Milliseconds to resume from a saved state, until the loader's threads are running.
    pub resume_ms: f64,
    /// Images per second of the first epoch, which verifies checksums. The time includes opening the pack.
    pub first_epoch_images_per_s: f64,
    /// Number of images of the first epoch that were timed.
    pub first_epoch_images: u64,
    /// 99th percentile of the time between batches, in milliseconds.
    pub p99_batch_ms: f64,
    /// Peak resident memory in the first epoch, in bytes, including mapped pages of the pack.
    pub peak_rss_bytes: u64,
    /// Peak private memory in the first epoch, in bytes.
    pub peak_anon_bytes: u64,
    /// CPU seconds of the whole process per 1000 images.
    pub cpu_s_per_1000: f64,
    /// CPU seconds per GiB delivered.
    pub cpu_s_per_gib: f64,
    /// Sum over all samples of a hash of their fields. It does not depend on order, batches or threads.
    pub checksum: String,
    /// The options of the measurement.
    pub options: OptionsShown,
    /// State of the page cache: `warm` or `cold`.
    pub cache: &'static str,
    /// Share of the pack in the page cache before the slices.
    pub resident_before: f64,
    /// Share of the pack in the page cache after the slices.
    pub resident_after: f64,
    /// The access path: `mapped` or `direct`.
    pub access: &'static str,
    /// How the access path reads, such as `mmap`.
    pub engine: &'static str,
    /// Why the access path was chosen.
    pub access_reason: String,
    /// The pack: samples, bytes, chunks.
    #[serde(flatten)]
    pub pack: PackShown,
    /// Prefetch depth at the end of the measurement.
    pub prefetch: usize,
    /// Number of slots of the staging ring.
    pub slots: usize,
}

/// The resolved options.
#[derive(Debug, Clone, Serialize)]
pub struct OptionsShown {
    /// Order of the samples.
    pub order: &'static str,
    /// Number of chunks shuffled together.
    pub window: u32,
    /// Samples per batch.
    pub batch: u32,
    /// Threads of the loader, and of the limit.
    pub threads: usize,
    /// The augmentations. Empty for none.
    pub augment: String,
    /// The sizes of batches, if there are several.
    pub buckets: Option<String>,
    /// Whether the pack is read cold.
    pub cold: bool,
    /// Maximum time per measurement in seconds.
    pub seconds: f64,
    /// When to verify checksums.
    pub checksums: String,
    /// The loader's memory in bytes, if given.
    pub memory_bytes: Option<u64>,
    /// Seed of the order and augmentation.
    pub seed: u64,
}

/// The pack that was read.
#[derive(Debug, Clone, Serialize)]
pub struct PackShown {
    /// The path that the user gave.
    pub path: String,
    /// Number of samples.
    pub n_samples: u64,
    /// Samples per chunk.
    pub chunk_samples: u32,
    /// Size of the pack in bytes.
    pub bytes: u64,
    /// Average size of a sample in a batch.
    pub sample_bytes: u64,
}

struct Bench<'a> {
    path: &'a Path,
    options: &'a LoadBenchOptions,
    batch: u32,
    batch_cut_to: Option<u32>,
    augment: Option<Augment>,
}

/// Measures loading from a pack. `progress` receives progress messages.
///
/// # Errors
/// [`BenchError`] if something fails or a result is wrong.
pub fn bench_load(
    path: &Path,
    options: &LoadBenchOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<LoadBench, BenchError> {
    let bench = Bench::new(path, options)?;
    // Report contradictory options before the slow parts.
    bench.loader(packds_reader::open(path)?, Last::Drop, bench.access())?.epoch(0)?;
    let first_batches = first_batch::run(&bench, progress)?;
    let pack = packds_reader::open(path)?;
    // Opening the shards of a set reads parts of them, so it comes before they are dropped from the cache.
    pack.located(pack.parts().try_for_each(|part| part.map(drop)))?;
    if options.cold {
        progress("dropping the pack from the page cache");
        cache::drop_all(&cache::pack_files(path)?)?;
    } else {
        progress("reading the pack into the page cache");
        cache::warm(&cache::pack_files(path)?)?;
    }
    let resident_before = cache::resident(&pack)?;
    cache::check(resident_before, options.cold)?;
    drop(pack);
    progress("the first epoch");
    let first = bench.first_epoch()?;
    let loader = bench.loader(packds_reader::open(path)?, Last::Drop, bench.access())?;
    let limit = bench.limit(&loader)?;
    let slices = slices::run(&loader, &limit, options, &first, progress)?;
    let cpu_s_per_image = slices::cpu_s_per_image(&loader, options)?;
    let resident_after = cache::resident(loader.pack())?;
    let read_once = slices::read_once(&loader, options)?;
    progress("the checksum of the delivered data");
    let stats = loader.stats();
    let checksum = checksum::of_epoch(&bench.loader(packds_reader::open(path)?, Last::Pad, bench.access())?)?;
    let recipe = loader.schedule().recipe();
    let sample_bytes = stats.bytes / stats.samples.max(1);
    let (images, bytes) = (to_f64(slices.images), to_f64(sample_bytes));
    let images_per_s = images / slices.pairs.ours();
    Ok(LoadBench {
        machine: Machine::here(),
        images_per_s,
        bytes_per_s: images_per_s * bytes,
        limit: limit.name(),
        limit_images_per_s: images / slices.pairs.limit(),
        ratio: slices.pairs.ratio(),
        ratio_range: slices.pairs.range(),
        slices: slices.n,
        slice_images: slices.images,
        read_once_images_per_s: read_once,
        batch_cut_to: bench.batch_cut_to,
        first_batches,
        first_batch_ms: first.first_batch.as_secs_f64() * 1e3,
        resume_ms: first.resume.as_secs_f64() * 1e3,
        first_epoch_images_per_s: first.images_per_s(),
        first_epoch_images: first.images,
        p99_batch_ms: slices.p99.as_secs_f64() * 1e3,
        peak_rss_bytes: first.peak_rss,
        peak_anon_bytes: first.peak_anon,
        cpu_s_per_1000: cpu_s_per_image * 1e3,
        cpu_s_per_gib: cpu_s_per_image / bytes.max(1.0) * f64::from(1 << 30),
        checksum: format!("{checksum:016x}"),
        options: bench.shown(recipe.order.name(), recipe.window),
        cache: if options.cold { "cold" } else { "warm" },
        resident_before,
        resident_after,
        access: loader.access().access.name(),
        engine: loader.access().engine,
        access_reason: loader.access().reason.clone(),
        pack: PackShown {
            path: path.to_string_lossy().into_owned(),
            n_samples: loader.pack().n_samples(),
            chunk_samples: loader.pack().geometry().chunk_samples(),
            bytes: loader.pack().file_len(),
            sample_bytes,
        },
        prefetch: stats.prefetch,
        slots: stats.slots,
    })
}

struct First {
    first_batch: Duration,
    resume: Duration,
    images: u64,
    time: Duration,
    peak_rss: u64,
    peak_anon: u64,
}

impl First {
    fn images_per_s(&self) -> f64 {
        to_f64(self.images) / self.time.as_secs_f64().max(1e-9)
    }
}

impl<'a> Bench<'a> {
    fn new(path: &'a Path, options: &'a LoadBenchOptions) -> Result<Self, BenchError> {
        let pack = packds_reader::open(path)?;
        let augment = match (&options.augment, &options.buckets) {
            // The buckets set the size.
            (None, Some(_)) => "cover,flip",
            (given, _) => augment_words(&pack, given.as_deref()),
        };
        let augment = parse_augment(augment)?;
        let (default, cut_to) = default_batch(&pack);
        let batch_cut_to = cut_to.filter(|_| options.batch.is_none());
        Ok(Self { path, options, batch: options.batch.unwrap_or(default), batch_cut_to, augment })
    }

    fn access(&self) -> Access {
        if self.options.cold { Access::Direct } else { Access::Auto }
    }

    fn loader(&self, pack: Pack, last: Last, access: Access) -> Result<Loader, BenchError> {
        let options = self.options;
        let mut builder: LoaderBuilder = Loader::builder(Arc::new(pack))
            .batch(self.batch)
            .order(options.order)
            .last(last)
            .threads(options.threads)
            .checksums(options.checksums)
            .seed(options.seed);
        if let Some(augment) = &self.augment {
            builder = builder.augment(augment.clone());
        }
        if let Some(buckets) = &options.buckets {
            builder = builder.buckets(buckets.clone());
        }
        if let Some(bytes) = options.memory_bytes {
            builder = builder.memory_bytes(bytes);
        }
        Ok(builder.access(access).build()?)
    }

    fn limit<'b>(&'b self, loader: &'b Loader) -> Result<Limit<'b>, BenchError> {
        let Self { options, augment, .. } = self;
        let sizes = (augment.as_ref(), options.buckets.as_ref());
        Limit::new(loader, sizes, options.threads.get(), options.cold, options.seed)
    }

    /// Opens the pack again and reads its first epoch, for at most the given seconds.
    fn first_epoch(&self) -> Result<First, BenchError> {
        let rss = PeakRss::reset();
        let mut peak_anon = 0;
        let most = Duration::from_secs_f64(self.options.seconds);
        let started = Instant::now();
        let loader = self.loader(packds_reader::open(self.path)?, Last::Drop, self.access())?;
        let mut first_batch = None;
        let mut images = 0;
        let mut epoch = loader.epoch(0)?;
        for batch in epoch.by_ref() {
            let batch = batch?;
            first_batch.get_or_insert_with(|| started.elapsed());
            images += to_u64(batch.len());
            drop(batch);
            peak_anon = peak_anon.max(status_bytes("RssAnon:"));
            if started.elapsed() > most {
                break;
            }
        }
        let time = started.elapsed();
        drop(epoch);
        let plan = loader.schedule().epoch(0)?;
        let state = plan.state(plan.steps() / 2);
        let resumed = Instant::now();
        let epoch = loader.epoch_at(&state)?;
        let resume = resumed.elapsed();
        drop(epoch);
        Ok(First {
            first_batch: first_batch.unwrap_or_default(),
            resume,
            images,
            time,
            peak_rss: rss.bytes(),
            peak_anon,
        })
    }

    fn shown(&self, order: &'static str, window: u32) -> OptionsShown {
        let options = self.options;
        OptionsShown {
            order,
            window,
            batch: self.batch,
            threads: options.threads.get(),
            augment: self.augment.as_ref().map(ToString::to_string).unwrap_or_default(),
            buckets: options.buckets.as_ref().map(ToString::to_string),
            cold: options.cold,
            seconds: options.seconds,
            checksums: options.checksums.name().replace('_', "-"),
            memory_bytes: options.memory_bytes,
            seed: options.seed,
        }
    }
}

/// Whether the pack's images are variable-size, in which case batches need an augmentation.
#[must_use]
pub fn has_encoded_images(pack: &Pack) -> bool {
    let mut images = pack.schema().body().filter(|(_, f)| f.role == Some(Role::Image));
    images.any(|(_, field)| field.kind == FieldKind::Image)
}

/// The default batch size for a pack: 256, or 64 if its images are variable-size, or fewer if the pack is smaller. If
/// it was reduced, also the size to which it was reduced.
#[must_use]
pub fn default_batch(pack: &Pack) -> (u32, Option<u32>) {
    let usual = if has_encoded_images(pack) { 64 } else { 256 };
    let batch = usual.min(largest_batch(pack.n_samples(), 1));
    (batch, (batch < usual).then_some(batch))
}

/// The largest batch size with at least this number of batches per epoch.
#[must_use]
pub fn largest_batch(n_samples: u64, n_batches: u64) -> u32 {
    let most = u32::try_from(n_samples / n_batches.max(1)).unwrap_or(u32::MAX);
    most.max(1)
}

/// The augmentations to use, as text. By default, encoded images are cropped to one size.
pub(crate) fn augment_words<'a>(pack: &Pack, given: Option<&'a str>) -> &'a str {
    given.unwrap_or(if has_encoded_images(pack) { "rrc224,flip" } else { "" })
}

/// Parses augmentations. `None` if the text is empty.
pub(crate) fn parse_augment(words: &str) -> Result<Option<Augment>, BenchError> {
    (!words.is_empty()).then(|| Augment::parse(words)).transpose().map_err(BenchError::Augment)
}
