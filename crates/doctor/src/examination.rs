//! Measures a loader with more and more of its stages cached, and with possible changes.

use packds_system::to_usize;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use packds_format::Store;

use crate::advice::LoaderOption;
use crate::measure::{Extent, PATIENCE, Run, copies, lead, run, steps};
use crate::model::{AsBytes, Case, Facts, Loading, Overlap, Time};
use crate::report::{Checked, Report, diagnose};
use packds_reader::Access;
use packds_reader::device::OnDevice;
use packds_reader::loader::{Batch, ImageSize, Kept, LoadError, Loader, LoaderBuilder};
use packds_reader::plan::{Order, OrderKind};

/// Number of runs that share the time limit.
const RUNS: u32 = 12;
/// Chunks smaller than this cannot be read one by one at the full speed of a disk.
const SHORT_CHUNK: u64 = 1 << 20;
/// Preferred number of stored pixels per output pixel, for random crops.
const WANTED_PIXELS: f64 = 2.0;
/// Images count as too large if less than this fraction of their pixels is needed.
const TOO_LARGE: f64 = 0.7;

/// The training step.
pub enum Step<'a> {
    /// A given time in milliseconds. The model adds it, but no step is run.
    Modelled(f64),
    /// A step that was measured in another process.
    Measured(MeasuredStep),
    /// A step to run.
    Run(&'a mut dyn FnMut(&Batch)),
}

/// Measurements of a training run in another process.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredStep {
    /// Time of the step alone.
    pub step: Time,
    /// Time of the copy to the device alone.
    pub copy: Time,
    /// The copy from pinned memory in milliseconds, if different.
    pub pinned_copy: Option<f64>,
    /// Time of the complete training step, with loading.
    pub trained: Option<Time>,
}

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Time for all runs. Slow sources take up to twice as long.
    pub within: Duration,
    /// Whether to bypass the page cache, as if the pack did not fit in memory.
    pub cold: bool,
    /// Whether to apply the first recommended change that is an option of the loader, and to measure again.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { within: Duration::from_secs(15), cold: false, check: false }
    }
}

/// Measures the loader that `builder` makes. `announce` receives a description of each measurement.
///
/// # Errors
/// [`LoadError`], as for the loader itself.
pub fn examine(
    builder: &LoaderBuilder,
    mut step: Step<'_>,
    options: &Options,
    announce: &mut dyn FnMut(&str),
) -> Result<Report, LoadError> {
    let mut builder = builder.clone();
    if options.cold {
        builder = builder.access(Access::Direct);
    }
    let mut bench = Bench { within: options.within / RUNS, announce };
    let case = bench.case(&builder, &mut step)?;
    let mut report = diagnose(case);
    if options.check {
        report.checked = bench.check(&builder, &mut step, &report)?;
    }
    Ok(report)
}

struct Bench<'a> {
    /// Time per run.
    within: Duration,
    announce: &'a mut dyn FnMut(&str),
}

struct Loaded {
    loading: Loading,
    read: Time,
    size: ImageSize,
    /// Whether images are stored as files.
    decodes: bool,
    as_bytes: Option<AsBytes>,
}

impl Bench<'_> {
    fn case(&mut self, builder: &LoaderBuilder, step: &mut Step<'_>) -> Result<Case, LoadError> {
        let alone = alone(builder);
        let loader = alone.clone().build()?;
        let loaded =
            if builder.makes_images_there() { self.held(&alone, &loader)? } else { self.loading(&alone, &loader)? };
        let mut facts = facts(builder, &loader, &loaded);
        self.orders(&alone, &loader, &loaded, &mut facts)?;
        let mut case = Case {
            batch: loader.schedule().rank_batch(),
            overlap: Overlap::Everything,
            step: Time::default(),
            step_is_modelled: false,
            copy: Time::default(),
            loading: loaded.loading,
            read: loaded.read,
            trained: None,
            facts,
        };
        drop(loader);
        self.training(builder, step, &mut case)?;
        Ok(case)
    }

    /// Measures the step and the copy. If a step is run, also measures complete training.
    fn training(&mut self, builder: &LoaderBuilder, step: &mut Step<'_>, case: &mut Case) -> Result<(), LoadError> {
        if let Step::Measured(measured) = step {
            case.step = measured.step;
            case.trained = measured.trained;
            if !builder.is_onto_device() {
                case.overlap = Overlap::Loading;
                case.copy = measured.copy;
                case.facts.pinned_copy = measured.pinned_copy;
                return Ok(());
            }
        }
        let loader = builder.clone().build()?;
        (self.announce)("the copy to the device");
        case.copy = copies(&loader, self.within)?;
        match step {
            Step::Modelled(ms) => {
                case.step = Time::exactly(*ms);
                case.step_is_modelled = true;
            }
            Step::Run(step) => {
                (self.announce)("the step");
                case.step = steps(&loader, self.within, *step)?;
                (self.announce)("complete training");
                case.trained = Some(self.epochs(&loader, u64::MAX, *step)?.time);
            }
            Step::Measured(_) => {}
        }
        Ok(())
    }

    /// Measures loading alone, from uncached to fully cached.
    fn loading(&mut self, alone: &LoaderBuilder, loader: &Loader) -> Result<Loaded, LoadError> {
        let nothing = &mut |_: &Batch| {};
        // Measure the source first, because every run brings more of it into memory.
        let is_cached = is_in_page_cache(loader);
        (self.announce)("reading");
        let read = self.reading(alone, loader, None)?;
        (self.announce)("loading from the source");
        let source = self.epochs(loader, u64::MAX, nothing)?;
        let page_cache = match is_cached {
            true => source.time,
            false => {
                (self.announce)("loading from the page cache");
                self.cached(alone, loader, source.steps)?
            }
        };
        (self.announce)("decoding and transforming samples that are in memory");
        let raw_samples = Arc::new(Kept::take(loader)?);
        let raw = self.kept(loader, &raw_samples)?;
        let decoded_samples = raw_samples.decoded().map(Arc::new);
        let decoded = match &decoded_samples {
            Some(samples) => self.kept(loader, samples)?,
            None => raw,
        };
        let processed = match raw_samples.processed(loader)? {
            Some(samples) => self.kept(loader, &Arc::new(samples))?,
            None => decoded,
        };
        let size = raw_samples.size();
        let as_bytes = self.as_bytes(alone, loader)?;
        let loading = Loading { processed, decoded, raw, page_cache, source: source.time };
        // If reading was not measured alone, it is assumed to take the time that the page cache saves.
        let only_reading = || Time::exactly((source.time.ms - page_cache.ms).max(0.0));
        Ok(Loaded {
            loading,
            read: read.unwrap_or_else(only_reading),
            size,
            decodes: decoded_samples.is_some(),
            as_bytes,
        })
    }

    /// Measures loading alone if the device makes the images from pictures that it holds, or from files. The host then
    /// does not decode or transform. If the dataset is resident, the host does not read either, and only computes the
    /// crops. Otherwise chunks or files go to the device.
    fn held(&mut self, alone: &LoaderBuilder, loader: &Loader) -> Result<Loaded, LoadError> {
        let is_cached = is_in_page_cache(loader);
        (self.announce)("loading from the source");
        let source = self.epochs(loader, u64::MAX, &mut |_| {})?;
        let is_whole = alone.on_device() == OnDevice::Held;
        // Data that the device reads from the disk is never in the page cache.
        let is_past_it = alone.on_device() == OnDevice::ChunksOfFile;
        let (page_cache, before, read) = if is_whole {
            (source.time, source.time, Time::default())
        } else if is_cached || is_past_it {
            (source.time, Time::default(), source.time)
        } else {
            (self.announce)("loading from the page cache");
            let page_cache = self.cached(alone, loader, source.steps)?;
            (page_cache, Time::default(), source.time)
        };
        let loading = Loading { processed: before, decoded: before, raw: before, page_cache, source: source.time };
        Ok(Loaded { loading, read, size: ImageSize::default(), decodes: false, as_bytes: None })
    }

    /// The time to read a batch of stored items, from the middle of an epoch on, in `order` if it is given. `None` if
    /// such batches do not fit in memory.
    fn reading(
        &mut self,
        alone: &LoaderBuilder,
        loader: &Loader,
        order: Option<Order>,
    ) -> Result<Option<Time>, LoadError> {
        let mut stored = alone.clone().unaugmented();
        if let Some(order) = order {
            stored = stored.order(order);
        }
        let stored = match stored.build() {
            Err(LoadError::Memory { .. }) => return Ok(None),
            stored => stored?,
        };
        let middle = loader.steps()? / 2;
        let from = |number| stored.epoch_from(number, if number == 0 { middle } else { 0 });
        let read = run(&from, lead(&stored), self.extent(&stored), &mut |_| {})?;
        Ok(Some(read.time))
    }

    /// Measures loading of the first `steps` steps from the page cache.
    fn cached(&mut self, alone: &LoaderBuilder, loader: &Loader, steps: u64) -> Result<Time, LoadError> {
        let (nothing, steps) = (&mut |_: &Batch| {}, steps.max(1));
        if !loader.access().past_cache {
            return Ok(self.epochs(loader, steps, nothing)?.time);
        }
        // Mapped access would decompress a block again for each of its samples, which normal loading does not do.
        let access = if is_compressed(loader) { Access::Auto } else { Access::Mapped };
        let through = alone.clone().access(access).build()?;
        // Run once untimed to fill the page cache.
        let in_cache = to_usize(steps);
        let started = Instant::now();
        for batch in through.epoch(0)?.take(in_cache) {
            drop(batch?);
            if started.elapsed() > self.within * PATIENCE {
                break;
            }
        }
        Ok(self.epochs(&through, steps, nothing)?.time)
    }

    /// Measures the transform with u8 output, if the loader's output is floats.
    fn as_bytes(&mut self, alone: &LoaderBuilder, loader: &Loader) -> Result<Option<AsBytes>, LoadError> {
        let Some(augment) = alone.augmentation().and_then(|augment| augment.as_bytes()) else {
            return Ok(None);
        };
        // If this loader cannot produce u8 batches, they are not suggested.
        let Ok(bytes) = alone.clone().augment(augment).build() else { return Ok(None) };
        (self.announce)("transforming to bytes");
        let raw = Arc::new(Kept::take(&bytes)?);
        let samples = raw.decoded().map_or(raw, Arc::new);
        let transform = self.kept(&bytes, &samples)?;
        Ok(Some(AsBytes { bytes: ratio(bytes.stats().slot_bytes, loader.stats().slot_bytes), transform: transform.ms }))
    }

    /// Measures the read times of other orders, but only if the page cache is bypassed. Otherwise the cache already
    /// contains the data by now.
    fn orders(
        &mut self,
        alone: &LoaderBuilder,
        loader: &Loader,
        loaded: &Loaded,
        facts: &mut Facts,
    ) -> Result<(), LoadError> {
        let order = loader.schedule().recipe().order;
        let is_slow = loaded.loading.source.ms > loaded.loading.page_cache.ms;
        if loader.access().access != Access::Direct || !is_slow {
            return Ok(());
        }
        if order == OrderKind::Random {
            (self.announce)("reading in windows");
            let window = Some(Order::Window { chunks: None });
            let read = self.reading(alone, loader, window)?;
            facts.window_read = read.map(|time| time.ms);
        }
        if order != OrderKind::Sequential && chunk_bytes(loader) < SHORT_CHUNK {
            (self.announce)("reading chunks sequentially");
            let read = self.reading(alone, loader, Some(Order::Sequential))?;
            facts.long_read = read.map(|time| time.ms);
        }
        Ok(())
    }

    /// Applies the first recommended change that is an option of the loader, and measures the rate. `None` if there is
    /// no such change.
    fn check(
        &mut self,
        builder: &LoaderBuilder,
        step: &mut Step<'_>,
        report: &Report,
    ) -> Result<Option<Checked>, LoadError> {
        let found = report.advice.iter().find_map(|advice| Some((advice, advice.option?)));
        let Some((advice, option)) = found else { return Ok(None) };
        (self.announce)("the first recommended change");
        let builder = followed(builder.clone(), option);
        let case = &report.case;
        let ms = match step {
            Step::Run(step) => {
                let loader = builder.build()?;
                self.epochs(&loader, u64::MAX, *step)?.time.ms
            }
            Step::Modelled(_) | Step::Measured(_) => {
                let is_copied = builder.is_onto_device() || matches!(step, Step::Modelled(_));
                let copy = match (option, case.facts.as_bytes) {
                    _ if is_copied => copies(&builder.clone().build()?, self.within)?.ms,
                    (LoaderOption::Bytes, Some(as_bytes)) => case.copy.ms * as_bytes.bytes,
                    _ => case.copy.ms,
                };
                let loader = alone(&builder).build()?;
                let source = self.epochs(&loader, u64::MAX, &mut |_| {})?;
                let overlap = case.overlap;
                overlap.with_loading(case.step.ms, copy, source.time.ms)
            }
        };
        Ok(Some(Checked { change: advice.change, predicted: advice.images_per_s, measured: case.rate(ms) }))
    }

    fn epochs(&self, loader: &Loader, most_steps: u64, step: &mut dyn FnMut(&Batch)) -> Result<Run, LoadError> {
        // If the number of steps is limited, epoch 0 is repeated, so that the steps are the same each time.
        let number = |number| if most_steps == u64::MAX { number } else { 0 };
        run(&|epoch| loader.epoch(number(epoch)), lead(loader), Extent { most_steps, ..self.extent(loader) }, step)
    }

    fn extent(&self, loader: &Loader) -> Extent {
        Extent {
            most_steps: u64::MAX,
            within: self.within,
            // Most chunks are decompressed at the start of an epoch, so only a whole epoch gives the mean time.
            whole_epochs: usize::from(is_compressed(loader)),
        }
    }

    fn kept(&self, loader: &Loader, kept: &Arc<Kept>) -> Result<Time, LoadError> {
        let again = |_| loader.repeat(kept);
        let extent = Extent { whole_epochs: 0, ..self.extent(loader) };
        let repeated = run(&again, lead(loader), extent, &mut |_| {})?;
        Ok(repeated.time)
    }
}

/// A builder of the same batches without copies to the device. If the device makes the images, the builder is
/// unchanged.
fn alone(builder: &LoaderBuilder) -> LoaderBuilder {
    let builder = builder.clone();
    if builder.makes_images_there() { builder } else { builder.on_host() }
}

/// The builder with this option applied.
fn followed(builder: LoaderBuilder, option: LoaderOption) -> LoaderBuilder {
    match option {
        LoaderOption::Threads(threads) => builder.threads(threads),
        LoaderOption::Window => builder.order(Order::Window { chunks: None }),
        LoaderOption::Bytes => match builder.augmentation().and_then(|a| a.as_bytes()) {
            Some(augment) => builder.augment(augment),
            None => builder,
        },
    }
}

fn facts(builder: &LoaderBuilder, loader: &Loader, loaded: &Loaded) -> Facts {
    let (size, decodes) = (loaded.size, loaded.decodes);
    let output = loader.picture_output();
    // Images of different sizes have no width here.
    let one_size = output.filter(|output| decodes && size.images > 0 && output.width > 0);
    let needed = one_size.map(|output| {
        let wanted = f64::from(output.width) * f64::from(output.height) * WANTED_PIXELS;
        wanted / ratio(size.pixels, size.images).max(1.0)
    });
    Facts {
        threads: loader.threads(),
        cores: available_parallelism().map_or(1, NonZero::get),
        growth: decodes.then(|| ratio(size.decoded, size.stored)),
        needed: needed.filter(|part| *part < TOO_LARGE),
        as_bytes: loaded.as_bytes,
        is_compressed: is_compressed(loader),
        // If the device converts to floats, batches are copied as bytes.
        is_f32: output.is_some_and(|output| output.dtype == packds_format::DType::F32) && !builder.is_onto_device(),
        ..Facts::default()
    }
}

/// Whether all data is in the page cache and is read through it, so that the disk is not involved.
fn is_in_page_cache(loader: &Loader) -> bool {
    let mut packs = loader.packs().iter();
    !loader.access().past_cache && packs.all(|pack| pack.is_resident() == Some(true))
}

/// Whether any body field is compressed.
fn is_compressed(loader: &Loader) -> bool {
    let mut fields = loader.pack().schema().fields().iter();
    fields.any(|field| field.store == Store::Body && !field.codec.is_none())
}

/// Mean size of a chunk.
fn chunk_bytes(loader: &Loader) -> u64 {
    let pack = loader.pack();
    pack.file_len() / pack.n_chunks().max(1)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs few digits")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}
