//! The rows of each step and their bytes. This combines the plan of an epoch with fetching.

use std::sync::Arc;

use super::error::LoadError;
use super::filling::Row;
use super::kept::Kept;
use crate::fetch::{EpochFetch, Fetch, FetchStats, StepItems};
use crate::plan::{EpochPlan, Mixture, MixtureState, Route, Slot, SourcePlan, State};

/// The batches to iterate over.
#[derive(Debug)]
pub(crate) enum Sequence {
    Epoch(Arc<EpochPlan>),
    Mixture(Arc<Mixture>, u32),
    /// The same batch, repeated.
    Kept(Arc<Kept>),
}

impl Sequence {
    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Epoch(plan) => plan.epoch(),
            Self::Mixture(_, number) => *number,
            Self::Kept(kept) => kept.samples.epoch,
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        match self {
            Self::Epoch(plan) => plan.steps(),
            Self::Mixture(mixture, _) => mixture.steps_per_epoch(),
            Self::Kept(_) => u64::MAX,
        }
    }
}

/// The schedule of one epoch.
#[derive(Debug)]
pub(crate) enum EpochSchedule {
    One {
        plan: Arc<EpochPlan>,
        fetch: Box<dyn EpochFetch>,
    },
    Mixed(MixedSchedule),
    /// Endless repetition of samples kept in memory.
    Kept(Arc<Kept>),
}

/// The schedule of one epoch of a mixture. The plan of each pack continues across the pack's own epochs.
#[derive(Debug)]
pub(crate) struct MixedSchedule {
    mixture: Arc<Mixture>,
    /// The number of the epoch's first step, counted from the start of the run.
    first: u64,
    lead: Arc<SourcePlan>,
    sources: Vec<usize>,
    /// The plan of each source, with a fetch if this rank uses samples of the source.
    parts: Vec<MixedPart>,
}

/// The plan of one pack of a mixture, and its fetch if bytes are needed.
type MixedPart = (Arc<SourcePlan>, Option<Box<dyn EpochFetch>>);

impl EpochSchedule {
    /// Starts reading what `sequence` needs from `first_step` on. Each pack has its own fetch.
    pub(crate) fn start(sequence: Sequence, fetches: &[Arc<Fetch>], first_step: u64) -> Result<Self, LoadError> {
        match (sequence, fetches.first()) {
            (Sequence::Epoch(plan), Some(fetch)) => {
                let fetch = fetch.start(plan.clone(), first_step)?;
                Ok(Self::One { plan, fetch })
            }
            (Sequence::Mixture(mixture, number), Some(_)) => {
                MixedSchedule::start(mixture, number, fetches, first_step).map(Self::Mixed)
            }
            (Sequence::Kept(kept), Some(_)) => Ok(Self::Kept(kept)),
            (_, None) => Err(no_pack()),
        }
    }

    /// The rows of a step, and the number of padding rows at its end.
    pub(crate) fn rows(&self, step: u64) -> Result<(Vec<Row>, usize), LoadError> {
        let plan = match self {
            Self::One { plan, .. } => plan,
            Self::Mixed(mixed) => return mixed.rows(step).map(|rows| (rows, 0)),
            Self::Kept(kept) => return Ok((kept.samples.rows.to_vec(), 0)),
        };
        let mut slots: Vec<Slot> = plan.batch(step).collect();
        // If the global batch differs from the planned one, each rank's samples follow the planned positions, so
        // padding may come before other samples.
        slots.sort_by_key(|slot| slot.padding);
        let padding = slots.iter().filter(|slot| slot.padding).count();
        let row = |slot: Slot| Row { pack: 0, sample: slot.sample, epoch: plan.epoch() };
        Ok((slots.into_iter().map(row).collect(), padding))
    }

    /// The bucket of all samples of a step. 0 without buckets.
    pub(crate) fn bucket(&self, step: u64) -> usize {
        match self {
            Self::One { plan, .. } => plan.bucket(step),
            Self::Mixed(_) => 0,
            Self::Kept(kept) => kept.samples.bucket,
        }
    }

    /// Waits for the bytes of a step. Returns them for each pack that has rows in it.
    pub(crate) fn items(&self, step: u64) -> Result<Arc<[Option<StepItems>]>, LoadError> {
        let fetches: Vec<Option<&dyn EpochFetch>> = match self {
            Self::One { fetch, .. } => vec![Some(&**fetch)],
            Self::Mixed(mixed) => mixed.parts.iter().map(|part| part.1.as_deref()).collect(),
            Self::Kept(kept) => return Ok(Arc::clone(&kept.samples.items)),
        };
        let items = |fetch: Option<&dyn EpochFetch>| Ok(fetch.map(|f| f.step(step)).transpose()?);
        fetches.into_iter().map(items).collect()
    }

    /// Wakes threads that wait for bytes.
    pub(crate) fn stop(&self) {
        self.fetches().for_each(|fetch| fetch.stop());
    }

    /// Statistics of reading, summed over all packs.
    pub(crate) fn stats(&self) -> FetchStats {
        let stats = self.fetches().map(|fetch| fetch.stats());
        stats.fold(FetchStats::default(), FetchStats::plus)
    }

    /// The state before a step. For a mixture, the state of its first pack.
    pub(crate) fn state(&self, step: u64) -> State {
        match self {
            Self::One { plan, .. } => plan.state(step),
            Self::Mixed(mixed) => mixed.lead.state(step),
            Self::Kept(kept) => kept.samples.schedule.state(0),
        }
    }

    /// The state of a mixture before a step.
    pub(crate) fn mixture_state(&self, step: u64) -> Option<MixtureState> {
        match self {
            Self::One { .. } | Self::Kept(_) => None,
            Self::Mixed(mixed) => Some(mixed.mixture.state(mixed.first + step)),
        }
    }

    /// Size of the order's tables in bytes.
    pub(crate) fn table_bytes(&self) -> u64 {
        match self {
            Self::One { plan, .. } => plan.memory_bytes(),
            Self::Mixed(mixed) => mixed.parts.iter().map(|part| part.0.memory_bytes()).sum(),
            Self::Kept(_) => 0,
        }
    }

    /// The kept samples, if this schedule repeats them.
    pub(crate) fn kept(&self) -> Option<&Arc<Kept>> {
        match self {
            Self::Kept(kept) => Some(kept),
            Self::One { .. } | Self::Mixed(_) => None,
        }
    }

    fn fetches(&self) -> impl Iterator<Item = &dyn EpochFetch> {
        let (one, parts) = match self {
            Self::One { fetch, .. } => (Some(&**fetch), &[][..]),
            Self::Mixed(mixed) => (None, mixed.parts.as_slice()),
            Self::Kept(_) => (None, &[][..]),
        };
        one.into_iter().chain(parts.iter().filter_map(|part| part.1.as_deref()))
    }
}

impl MixedSchedule {
    fn start(mixture: Arc<Mixture>, number: u32, fetches: &[Arc<Fetch>], first_step: u64) -> Result<Self, LoadError> {
        let steps = mixture.steps_per_epoch();
        let first = u64::from(number).saturating_mul(steps);
        let mut parts = Vec::with_capacity(fetches.len());
        for (plan, fetch) in mixture.source_plans(first, steps).into_iter().zip(fetches) {
            let plan = Arc::new(plan);
            let fetch = if plan.is_empty() {
                None
            } else {
                let route: Arc<dyn Route> = plan.clone();
                Some(fetch.start(route, first_step)?)
            };
            parts.push((plan, fetch));
        }
        let lead = parts.first().map(|part| Arc::clone(&part.0));
        Ok(Self { first, lead: lead.ok_or_else(no_pack)?, sources: mixture.rank_sources(), mixture, parts })
    }

    fn rows(&self, step: u64) -> Result<Vec<Row>, LoadError> {
        let mut samples = Vec::with_capacity(self.parts.len());
        for (plan, _) in &self.parts {
            let (epoch, samples_of) = plan.samples(step)?;
            samples.push((epoch, samples_of.into_iter()));
        }
        let row = |pack: &usize| {
            let (epoch, samples) = samples.get_mut(*pack)?;
            Some(Row { pack: *pack, sample: samples.next()?, epoch: *epoch })
        };
        Ok(self.sources.iter().filter_map(row).collect())
    }
}

fn no_pack() -> LoadError {
    LoadError::Option("there is no pack to load".to_owned())
}
