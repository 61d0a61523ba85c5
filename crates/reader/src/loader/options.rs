//! The options of a loader, and their defaults.

mod probe;

use packds_system::{to_u64, to_usize};
use std::num::NonZero;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use super::filling::Row;
use super::instance_masks::InstanceMasks;
use super::journal::Journal;
use super::outputs::{Contents, Outputs};
use super::pictures::{Held, Pictures};
use super::sources::{check_alike, check_columns, fetches, share_out};
use super::stats::Counters;
use super::tuner::{Tunable, Tuner};
use super::workers::Shared;
use super::{BadSamples, LoadError, Loader, Remedy};
use crate::Pack;
use crate::arena::{Arena, SLOT_ALIGN};
use crate::augment::Augment;
use crate::available::check_available;
use crate::device::{Device, HostDevice, OnDevice, OwnSlots, Placement, Staged};
use crate::fetch::{Access, Checksums, FetchOptions};
use crate::plan::{
    Batching, Choice, Dataset, Last, Mixture, Order, OrderKind, Ranks, Recipe, Sampler, Schedule, Source, State,
    check_proportion,
};
use crate::setters::setters;

use self::probe::not_decodable;
pub use self::probe::{Decodable, FileSurvey, Holdable, Probe};

/// The default memory. It is the same on every machine, because the default window depends on it.
const DEFAULT_MEMORY: u64 = 4 << 30;
/// Default maximum number of slots. By default, slots use at most a quarter of the memory.
const MOST_SLOTS: u64 = 16;
/// Minimum number of slots: one is filled while the consumer holds the other.
const LEAST_SLOTS: u64 = 2;
/// Maximum number of threads. It is more than the number of cores of common machines. Each thread needs a stack, a
/// decoder and scratch memory.
const MOST_THREADS: usize = 1024;

/// The options of a [`Loader`]. Only the pack is required.
#[derive(Debug, Clone)]
#[must_use]
pub struct LoaderBuilder {
    pack: Arc<Pack>,
    proportion: f64,
    /// The other packs of a mixture, with their proportions.
    others: Vec<(Arc<Pack>, f64)>,
    sampler: Sampler,
    ranks: Ranks,
    batch: u32,
    last: Last,
    resume: Option<State>,
    fields: Option<Vec<String>>,
    augment: Option<Augment>,
    decode_images: bool,
    instance_masks: bool,
    threads: Option<NonZero<usize>>,
    memory_bytes: Option<u64>,
    slots: Option<NonZero<usize>>,
    prefetch: Option<NonZero<usize>>,
    access: Access,
    checksums: Checksums,
    bad_samples: BadSamples,
    device: Arc<dyn Device>,
    #[cfg(any(test, feature = "testing"))]
    disk_delay: std::time::Duration,
}

impl LoaderBuilder {
    pub(super) fn new(pack: Arc<Pack>) -> Self {
        Self {
            pack,
            proportion: 1.0,
            others: Vec::new(),
            sampler: Sampler::default(),
            ranks: Ranks::single(),
            batch: 32,
            last: Last::Drop,
            resume: None,
            fields: None,
            augment: None,
            decode_images: false,
            instance_masks: false,
            threads: None,
            memory_bytes: None,
            slots: None,
            prefetch: None,
            access: Access::Auto,
            checksums: Checksums::FirstTouch,
            bad_samples: BadSamples::Error,
            device: Arc::new(HostDevice),
            #[cfg(any(test, feature = "testing"))]
            disk_delay: std::time::Duration::ZERO,
        }
    }

    /// Adds a pack to the mixture. Each global batch has samples from every pack. Proportions are relative to each
    /// other and are rounded to whole samples; [`Mixture::quotas`] has the result. The loaded fields must be the same
    /// in all packs. Order, seed, augmentation and all other options apply to every pack. Each pack has its own epochs.
    /// See docs/reference/sampling.md, "Mixtures".
    pub fn mix(mut self, pack: impl Into<Arc<Pack>>, proportion: f64) -> Self {
        self.others.push((pack.into(), proportion));
        self
    }

    /// The order of samples. Default [`Order::Auto`].
    pub fn order(mut self, order: Order) -> Self {
        self.sampler = self.sampler.order(order);
        self
    }

    /// The seed of order and augmentation. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampler = self.sampler.seed(seed);
        self
    }

    /// Selects samples, or makes some of them more frequent than others.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.sampler = self.sampler.choice(choice);
        self
    }

    /// Number of parts of the epoch that are read in parallel: see [`Sampler::lanes`].
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.sampler = self.sampler.lanes(lanes);
        self
    }

    /// The fields to load, by name. By default, all fields except those that describe other fields or the origin of a
    /// sample.
    pub fn fields<S: AsRef<str>>(mut self, names: &[S]) -> Self {
        self.fields = Some(names.iter().map(|name| name.as_ref().to_owned()).collect());
        self
    }

    setters! {
        /// The proportion of the first pack in a mixture. Default 1.
        proportion(proportion: f64) = proportion;
        /// Samples per batch on each rank. Default 32.
        batch(samples: u32) = samples;
        /// The rank of this process in the training run. By default, it is the only process.
        ranks(ranks: Ranks) = ranks;
        /// What to do with samples that do not fill the last batch. Default [`Last::Drop`].
        last(last: Last) = last;
        /// Resumes the run of a saved state. If order, window or lanes are not set, they come from the state. Call
        /// [`Loader::epoch_at`] to get the remaining batches of the state's epoch.
        resume(state: &State) = Some(*state);
        /// The augmentation of images. By default, tensors are unchanged, and encoded images are delivered as files.
        augment(augment: Augment) = Some(augment);
        /// Whether to decode variable-size images that are not augmented. Decoded images have a shape
        /// ([`Batch::item_shape`]). By default they are delivered as stored.
        ///
        /// [`Batch::item_shape`]: super::Batch::item_shape
        decode_images(decodes: bool) = decodes;
        /// Whether to deliver polygons as masks: one for each box that a view shows, `[boxes, height, width]` of `u8`, 1
        /// inside the object, at the size of the view. Masks of images that vary in size have a shape for each sample
        /// ([`Batch::item_shape`]). By default, polygons are delivered as entries.
        ///
        /// [`Batch::item_shape`]: super::Batch::item_shape
        instance_masks(makes: bool) = makes;
        /// A fixed number of threads that copy and decode, at most 1024. By default, the number adapts to the training
        /// run, between 1 and one per core. See [`Loader::tuning`].
        threads(threads: NonZero<usize>) = Some(threads);
        /// Maximum memory in bytes for the ring and for buffers of chunks. Mapped data is not included, because it
        /// belongs to the page cache. Packs that are larger than this bypass the page cache. The default is 4 GiB. With
        /// the default, the machine's memory determines how the pack is read.
        memory_bytes(bytes: u64) = Some(bytes);
        /// Number of slots in the staging ring. It limits how many batches exist at a time, including those that the
        /// consumer holds. By default, as many as fit in a quarter of the memory, between 2 and 16.
        slots(slots: NonZero<usize>) = Some(slots);
        /// A fixed number of prefetched batches, at most the number of slots. By default, the number adapts until the
        /// consumer no longer waits. See [`Loader::tuning`].
        prefetch(batches: NonZero<usize>) = Some(batches);
        /// How the pack is read. Default [`Access::Auto`].
        access(access: Access) = access;
        /// When checksums are verified. Default [`Checksums::FirstTouch`].
        checksums(checksums: Checksums) = checksums;
        /// What to do with bad samples. Default [`BadSamples::Error`].
        bad_samples(policy: BadSamples) = policy;
        /// The device that takes the batches from the ring. Default [`HostDevice`].
        device(device: Arc<dyn Device>) = device;
    }

    /// Checks the options and reserves the ring. It does not start threads or read chunks.
    ///
    /// # Errors
    /// [`LoadError`] for any option that cannot be used.
    pub fn build(self) -> Result<Loader, LoadError> {
        let memory = self.memory_bytes.unwrap_or(DEFAULT_MEMORY);
        let most_threads = self.most_threads()?;
        let (schedule, mixture) = self.plan(memory)?;
        let packs = self.packs();
        let placement = Arc::clone(&self.device).placement(&packs);
        let pictures = self.pictures(placement.images())?;
        if let Some(held) = pictures.as_ref().and_then(Pictures::held) {
            self.check_held(held, &schedule)?;
        }
        let outputs = self.outputs(pictures)?;
        if matches!(placement, Placement::Files { .. }) && outputs.files().is_none() {
            let why = outputs.pictures.as_ref().and_then(|pictures| pictures.against);
            return Err(not_decodable(why.unwrap_or("nothing is augmented")));
        }
        check_alike(&packs, &outputs)?;
        let schedules: Vec<&Schedule> = match &mixture {
            None => vec![&schedule],
            Some(mixture) => mixture.schedules().collect(),
        };
        check_columns(&packs, &schedules, &outputs)?;
        let arena = ring(&outputs, memory, self.slots, &placement)?;
        let ring_bytes = to_u64(arena.address().1);
        let options = self.fetching(memory.saturating_sub(ring_bytes), &outputs);
        let counters = Arc::new(Counters::default());
        let journal = self.journal(schedule.recipe(), &counters);
        let device = placement.attach(&arena)?;
        let fetches = fetches(&packs, &schedules, &options)?;
        let tuner = Tuner::new(
            match self.threads {
                Some(threads) => Tunable::fixed(threads.get()),
                None => Tunable::up_to(most_threads, most_threads),
            },
            match self.prefetch {
                Some(prefetch) => Tunable::fixed(prefetch.get().min(arena.n_slots())),
                None => Tunable::up_to(arena.n_slots(), 2),
            },
        );
        let piece_rows = if most_threads == 1 { outputs.rows } else { outputs.rows.div_ceil(most_threads * 4).max(1) };
        let shared = Shared {
            borrows: mixture.is_none() && device.borrows() && schedule.recipe().order.in_file_order(),
            arena,
            device,
            counters,
            tuner: Mutex::new(tuner),
            journal,
            bad_samples: self.bad_samples,
            piece_rows,
            fetched: Mutex::default(),
            #[cfg(any(test, feature = "testing"))]
            disk_delay: self.disk_delay,
        };
        let seeds = schedules.iter().map(|schedule| schedule.seed()).collect();
        Ok(Loader {
            contents: Arc::new(Contents { outputs, packs, seeds }),
            shared: Arc::new(shared),
            fetches,
            schedule,
            mixture: mixture.map(Arc::new),
            threads: most_threads,
            not_started: AtomicUsize::new(0),
            requested_prefetch: self.prefetch,
            in_use: Arc::default(),
            held: Arc::default(),
            made_in: std::process::id(),
            last: Mutex::default(),
        })
    }

    /// The journal, if the doctor started this program.
    fn journal(&self, recipe: Recipe, counters: &Arc<Counters>) -> Option<Journal> {
        let kind = (recipe.order, &self.augment, &self.fields);
        let told = || {
            json!({
                "order": recipe.order.name(),
                "window": (recipe.order == OrderKind::Window).then_some(recipe.window),
                "augment": self.augment.as_ref().map(ToString::to_string),
                "fields": self.fields,
                "threads": self.threads,
                "memory_bytes": self.memory_bytes,
                "chosen": self.sampler.chooses(),
            })
        };
        Journal::requested(&self.pack, self.batch, &kind, &told, counters)
    }
}

/// Variants of a loader for `packds-doctor`.
#[doc(hidden)]
impl LoaderBuilder {
    /// The augmentation of images, if any.
    pub fn augmentation(&self) -> Option<&Augment> {
        self.augment.as_ref()
    }

    /// The same loader, but with items as they are stored.
    pub fn unaugmented(mut self) -> Self {
        self.augment = None;
        self
    }

    /// Simulates a slower disk that needs this much additional time per batch.
    #[cfg(any(test, feature = "testing"))]
    pub fn slow_disk(mut self, delay: std::time::Duration) -> Self {
        self.disk_delay = delay;
        self
    }

    /// What the device does to make images.
    pub fn on_device(&self) -> OnDevice {
        self.placement().images()
    }

    /// Whether the device produces the batch's images, from stored images that it holds or from files that it decodes.
    pub fn makes_images_there(&self) -> bool {
        !matches!(self.on_device(), OnDevice::Nothing | OnDevice::Pixels)
    }

    /// Whether batches go to a device that finishes them. They are copied to the device while other batches are
    /// loaded.
    pub fn is_onto_device(&self) -> bool {
        self.on_device() != OnDevice::Nothing
    }

    /// The same loader, but with batches that stay on the host.
    pub fn on_host(mut self) -> Self {
        self.device = match self.placement() {
            Placement::Host => Arc::new(HostDevice),
            Placement::Slots(_) => Arc::new(OwnSlots),
            _ => Arc::new(Staged),
        };
        self
    }
}

impl LoaderBuilder {
    fn packs(&self) -> Vec<Arc<Pack>> {
        let others = self.others.iter().map(|(pack, _)| Arc::clone(pack));
        std::iter::once(Arc::clone(&self.pack)).chain(others).collect()
    }

    fn placement(&self) -> Placement {
        Arc::clone(&self.device).placement(&self.packs())
    }

    fn outputs(&self, pictures: Option<Pictures>) -> Result<Outputs, LoadError> {
        let (rows, wanted) = (to_usize(self.batch), self.fields.as_deref());
        let masks = self.instance_masks.then(|| InstanceMasks::new(&self.pack, pictures.as_ref(), wanted));
        let mut outputs = Outputs::new(&self.pack, wanted, (pictures, masks.transpose()?), rows)?;
        if self.decode_images {
            outputs.decode_images(self.pack.schema());
        }
        Ok(outputs)
    }

    /// How the packs are read if the buffers have this much memory.
    fn fetching(&self, memory_bytes: u64, outputs: &Outputs) -> FetchOptions {
        FetchOptions {
            access: self.access,
            checksums: self.checksums,
            memory_bytes,
            budget: self.memory_bytes,
            beside: 0,
            positions: outputs.positions.clone(),
        }
    }

    /// The processing of images: on the host, and on the device.
    fn pictures(&self, device: OnDevice) -> Result<Option<Pictures>, LoadError> {
        let made = |augment| Pictures::new(&self.pack, augment, self.fields.as_deref(), device);
        match &self.augment {
            Some(augment) => made(augment).map(Some),
            // Use the images as they are stored, if they can be held in that form.
            None if device.holds() => {
                let pictures = made(&Augment::new()).ok();
                Ok(pictures.filter(|pictures| pictures.held().is_some() && pictures.image().1))
            }
            None => Ok(None),
        }
    }

    /// Threads per epoch: as requested, or one per core.
    fn most_threads(&self) -> Result<usize, LoadError> {
        let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        match self.threads.unwrap_or_else(cores).get() {
            threads if self.threads.is_some() && threads > MOST_THREADS => Err(LoadError::Option(format!(
                "threads: expected at most {MOST_THREADS}, found {threads}; one per core is enough"
            ))),
            threads => Ok(threads),
        }
    }

    /// Rejects options that are not supported for images held by a device.
    fn check_held(&self, held: Held, schedule: &Schedule) -> Result<(), LoadError> {
        let (why, remedy) = if held == Held::All {
            return Ok(());
        } else if schedule.recipe().order == OrderKind::Random {
            ("cannot be used with order 'random'", Remedy::OrderWindow)
        } else if self.bad_samples != BadSamples::Error {
            ("are read in whole chunks, so bad samples cannot be left out", Remedy::BadSamplesError)
        } else if held == Held::ChunksOfFile {
            return self.check_unread();
        } else {
            return Ok(());
        };
        let why = format!("images that a device takes chunk by chunk {why}");
        Err(LoadError::OnDevice { why, remedy })
    }

    /// Rejects checks of data that the loader does not read.
    fn check_unread(&self) -> Result<(), LoadError> {
        match self.checksums {
            Checksums::Off => Ok(()),
            _ => Err(LoadError::OnDevice {
                why: "images that a device reads from the disk are not verified".to_owned(),
                remedy: Remedy::ChecksumsOff,
            }),
        }
    }

    /// The schedule of the only pack. For several packs, the schedule of the first one, and the mixture.
    fn plan(&self, memory: u64) -> Result<(Schedule, Option<Mixture>), LoadError> {
        if !self.others.is_empty() {
            let mixture = self.plan_mixture(memory)?;
            let first = mixture.schedules().next().cloned();
            let no_pack = || LoadError::Option("there is no pack to load".to_owned());
            return Ok((first.ok_or_else(no_pack)?, Some(mixture)));
        }
        check_proportion(0, self.proportion)?;
        let sampler = self.sampler.clone().memory_bytes(memory);
        let batching = Batching::per_rank(self.batch).last(self.last);
        let dataset = self.pack.dataset()?;
        let schedule = match &self.resume {
            None => sampler.schedule(dataset, self.ranks, batching)?,
            Some(state) => sampler.resume(dataset, self.ranks, batching, state)?,
        };
        Ok((schedule, None))
    }

    /// The mixture. Each pack gets an equal share of `memory`. What small packs do not need goes to the others.
    fn plan_mixture(&self, memory: u64) -> Result<Mixture, LoadError> {
        let refused = |text: &str| Err(LoadError::Option(text.to_owned()));
        if self.resume.is_some() {
            return refused(
                "`resume` takes the state of a single pack: make the mixture with the same options as before, and continue with `Loader::epoch_at_mixture`",
            );
        }
        if self.last == Last::Pad {
            return refused("a mixture has no last batch to pad: leave `last` at `Last::Drop`");
        }
        let first = std::iter::once((&self.pack, self.proportion));
        let others = self.others.iter().map(|(pack, proportion)| (pack, *proportion));
        let packs: Vec<(&Arc<Pack>, f64)> = first.chain(others).collect();
        let datasets = packs.iter().map(|(pack, _)| pack.dataset());
        let datasets: Vec<Dataset> = datasets.collect::<Result<_, _>>()?;
        let needs: Vec<Option<u64>> = datasets.iter().map(|d| Some(d.total_bytes())).collect();
        let shares = share_out(memory, &needs);
        let sources: Vec<Source> = (0..)
            .zip(&datasets)
            .zip(packs.iter().zip(shares))
            .map(|((place, dataset), ((_, proportion), share))| Source {
                dataset: *dataset,
                sampler: self.sampler.clone().for_source(place, dataset).memory_bytes(share),
                proportion: *proportion,
            })
            .collect();
        let batching = Batching::per_rank(self.batch);
        Ok(Mixture::new(&sources, self.ranks, batching)?)
    }
}

/// The staging ring. Its slots are reserved now, but take memory only when they are first written to.
fn ring(
    outputs: &Outputs,
    memory: u64,
    slots: Option<NonZero<usize>>,
    placement: &Placement,
) -> Result<Arc<Arena>, LoadError> {
    // The size that slots will have in the arena.
    let slot_bytes = outputs.slot_bytes.max(1);
    let slot_bytes = slot_bytes.checked_next_multiple_of(SLOT_ALIGN).unwrap_or(usize::MAX);
    let bytes = to_u64(slot_bytes);
    let rows = to_u64(outputs.rows.saturating_mul(size_of::<Row>()));
    if rows > memory {
        return Err(LoadError::Memory { what: "the list of a batch's samples", needed: rows, budget: memory });
    }
    let n_slots = match slots {
        Some(slots) => slots.get(),
        None => {
            let on_device = placement.most_slots(bytes, to_u64(outputs.rows)).unwrap_or(MOST_SLOTS);
            let fit = (memory / 4 / bytes).min(on_device);
            let fit = fit.clamp(LEAST_SLOTS, MOST_SLOTS);
            to_usize(fit)
        }
    };
    let needed = bytes.saturating_mul(to_u64(n_slots));
    if needed > memory {
        return Err(LoadError::Memory { what: "the staging ring", needed, budget: memory });
    }
    let arena = check_available(slot_bytes.saturating_mul(n_slots)).and_then(|()| Arena::new(n_slots, slot_bytes));
    arena.map_err(|source| LoadError::Reserve { bytes: needed, slots: n_slots, source })
}
