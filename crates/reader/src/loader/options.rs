//! The options of a loader, and their defaults.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use super::outputs::Outputs;
use super::pictures::Pictures;
use super::stats::Counters;
use super::{BadSamples, LoadError, Loader};
use crate::MappedPack;
use crate::arena::Arena;
use crate::augment::Augment;
use crate::device::{Device, HostDevice};
use crate::fetch::{Access, Checksums, Fetch, FetchOptions};
use crate::plan::{Batching, Choice, Last, Order, Ranks, Sampler, State};

/// Memory where the user does not say: the same on every machine, because the default window depends on it.
const DEFAULT_MEMORY: u64 = 4 << 30;
/// Slots of the ring where the user does not say: as many as fit a quarter of the memory, but no more than this.
const MOST_SLOTS: u64 = 16;
/// One is filled while the consumer has the other.
const LEAST_SLOTS: u64 = 2;

/// The options of a [`Loader`]; all but the pack have defaults.
#[derive(Debug, Clone)]
pub struct LoaderBuilder {
    pack: Arc<MappedPack>,
    sampler: Sampler,
    ranks: Ranks,
    batch: u32,
    last: Last,
    resume: Option<State>,
    fields: Option<Vec<String>>,
    augment: Option<Augment>,
    threads: Option<NonZero<usize>>,
    memory_bytes: Option<u64>,
    slots: Option<NonZero<usize>>,
    depth: Option<NonZero<usize>>,
    access: Access,
    checksums: Checksums,
    bad_samples: BadSamples,
    device: Arc<dyn Device>,
}

impl LoaderBuilder {
    pub(super) fn new(pack: Arc<MappedPack>) -> Self {
        Self {
            pack,
            sampler: Sampler::default(),
            ranks: Ranks::single(),
            batch: 32,
            last: Last::Drop,
            resume: None,
            fields: None,
            augment: None,
            threads: None,
            memory_bytes: None,
            slots: None,
            depth: None,
            access: Access::Auto,
            checksums: Checksums::FirstTouch,
            bad_samples: BadSamples::Error,
            device: Arc::new(HostDevice),
        }
    }

    /// Samples of a batch, on each rank. Default 32.
    #[must_use]
    pub const fn batch(mut self, samples: u32) -> Self {
        self.batch = samples;
        self
    }

    /// The order of samples. Default [`Order::Auto`].
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.sampler = self.sampler.order(order);
        self
    }

    /// The seed of order and augmentation. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampler = self.sampler.seed(seed);
        self
    }

    /// Only some samples, or some more often than others.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.sampler = self.sampler.choice(choice);
        self
    }

    /// Parts of the epoch that are read side by side: see [`Sampler::lanes`].
    #[must_use]
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.sampler = self.sampler.lanes(lanes);
        self
    }

    /// Which of the processes that train together this is. Default the only one.
    #[must_use]
    pub const fn ranks(mut self, ranks: Ranks) -> Self {
        self.ranks = ranks;
        self
    }

    /// What becomes of samples that do not fill a last batch. Default [`Last::Drop`].
    #[must_use]
    pub const fn last(mut self, last: Last) -> Self {
        self.last = last;
        self
    }

    /// Goes on with the run that a state was saved in: its order holds, whatever [`order`](Self::order) leaves open.
    /// [`Loader::epoch_at`] gives the batches from the state on.
    #[must_use]
    pub fn resume(mut self, state: &State) -> Self {
        self.resume = Some(*state);
        self
    }

    /// The fields to load, by name. Default all but those that describe other fields or where a sample came from.
    #[must_use]
    pub fn fields<S: AsRef<str>>(mut self, names: &[S]) -> Self {
        self.fields = Some(names.iter().map(|name| name.as_ref().to_owned()).collect());
        self
    }

    /// What is done to images. Default nothing: tensors as they are, encoded images as their files' bytes.
    #[must_use]
    pub fn augment(mut self, augment: Augment) -> Self {
        self.augment = Some(augment);
        self
    }

    /// Threads that copy and decode. Default one for each core.
    #[must_use]
    pub const fn threads(mut self, threads: NonZero<usize>) -> Self {
        self.threads = Some(threads);
        self
    }

    /// All memory that this loader may take for its ring and for buffers of chunks, in bytes; what is mapped is the page
    /// cache's. A pack that is larger than this is read past the page cache. Default 4 GiB, and then the machine's
    /// memory decides how the pack is read.
    #[must_use]
    pub const fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Slots of the staging ring: batches that can exist at one time, those that the consumer holds included. Default as
    /// many as fit a quarter of the memory, between 2 and 16.
    #[must_use]
    pub const fn slots(mut self, slots: NonZero<usize>) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Batches made ahead, fixed. Default as many as keep the consumer from waiting.
    #[must_use]
    pub const fn depth(mut self, batches: NonZero<usize>) -> Self {
        self.depth = Some(batches);
        self
    }

    /// How the pack is read. Default [`Access::Auto`].
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// When checksums are verified. Default [`Checksums::FirstTouch`].
    #[must_use]
    pub const fn checksums(mut self, checksums: Checksums) -> Self {
        self.checksums = checksums;
        self
    }

    /// What becomes of bad samples. Default [`BadSamples::Error`].
    #[must_use]
    pub const fn bad_samples(mut self, policy: BadSamples) -> Self {
        self.bad_samples = policy;
        self
    }

    /// What takes the batches out of the ring. Default [`HostDevice`].
    #[must_use]
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.device = device;
        self
    }

    /// Checks that all fits together, and reserves the ring. No thread is started and no chunk read.
    ///
    /// # Errors
    /// [`LoadError`], whatever does not fit.
    pub fn build(self) -> Result<Loader, LoadError> {
        let pack = self.pack;
        let memory = self.memory_bytes.unwrap_or(DEFAULT_MEMORY);
        let sampler = self.sampler.memory_bytes(memory);
        let batching = Batching::per_rank(self.batch).last(self.last);
        let dataset = pack.dataset()?;
        let schedule = match &self.resume {
            None => sampler.schedule(dataset, self.ranks, batching)?,
            Some(state) => sampler.resume(dataset, self.ranks, batching, state)?,
        };
        let rows = usize::try_from(self.batch).unwrap_or(usize::MAX);
        let pictures = match &self.augment {
            None => None,
            Some(augment) => Some(Pictures::new(&pack, augment, self.fields.as_deref())?),
        };
        let outputs = Outputs::new(&pack, self.fields.as_deref(), pictures, rows)?;
        let arena = ring(&outputs, memory, self.slots)?;
        let ring_bytes = u64::try_from(arena.address().1).unwrap_or(u64::MAX);
        let fetch = Fetch::new(
            Arc::clone(&pack),
            FetchOptions {
                access: self.access,
                checksums: self.checksums,
                memory_bytes: memory.saturating_sub(ring_bytes),
                budget: self.memory_bytes,
                positions: outputs.positions.clone(),
            },
        )?;
        let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Ok(Loader {
            packs: Arc::new([pack]),
            fetch,
            schedule,
            outputs: Arc::new(outputs),
            arena,
            device: self.device,
            counters: Arc::new(Counters::default()),
            threads: self.threads.unwrap_or_else(cores).get(),
            depth: self.depth.map(NonZero::get),
            bad_samples: self.bad_samples,
            in_use: Arc::new(AtomicBool::new(false)),
            held: Arc::new(AtomicUsize::new(0)),
            made_in: std::process::id(),
            last: Mutex::new(Weak::new()),
        })
    }
}

/// The staging ring: its slots are reserved now, and take memory when they are first written.
fn ring(
    outputs: &Outputs,
    memory: u64,
    slots: Option<NonZero<usize>>,
) -> Result<Arc<Arena>, LoadError> {
    let slot_bytes = outputs.slot_bytes.max(1);
    let bytes = u64::try_from(slot_bytes).unwrap_or(u64::MAX);
    let n_slots = match slots {
        Some(slots) => slots.get(),
        None => {
            let fit = (memory / 4 / bytes).clamp(LEAST_SLOTS, MOST_SLOTS);
            usize::try_from(fit).unwrap_or(2)
        }
    };
    let needed = bytes.saturating_mul(u64::try_from(n_slots).unwrap_or(u64::MAX));
    if needed > memory {
        return Err(LoadError::Memory {
            what: "the staging ring",
            needed,
            budget: memory,
        });
    }
    Arena::new(n_slots, slot_bytes).map_err(|source| LoadError::Reserve {
        bytes: needed,
        slots: n_slots,
        source,
    })
}
