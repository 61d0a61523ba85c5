//! Which rows each step has, and their bytes: the plan of an epoch with its fetching.

use std::sync::Arc;

use super::error::LoadError;
use super::filling::Row;
use crate::fetch::{EpochFetch, Fetch, FetchStats, StepItems};
use crate::plan::{EpochPlan, State};

/// The way through one epoch of one pack.
#[derive(Debug)]
pub(crate) struct Course {
    plan: Arc<EpochPlan>,
    fetch: EpochFetch,
}

impl Course {
    /// Starts to read what `plan` needs from `first_step` on.
    pub(crate) fn start(
        plan: EpochPlan,
        fetch: &Arc<Fetch>,
        first_step: u64,
    ) -> Result<Self, LoadError> {
        let plan = Arc::new(plan);
        let fetch = fetch.start(Arc::clone(&plan), first_step)?;
        Ok(Self { plan, fetch })
    }

    /// Steps of the epoch.
    pub(crate) fn steps(&self) -> u64 {
        self.plan.steps()
    }

    /// The epoch that a step draws its augmentation from.
    pub(crate) fn epoch_of(&self, _: u64) -> u32 {
        self.plan.epoch()
    }

    /// The rows of a step, and how many at its end are padding.
    pub(crate) fn rows(&self, step: u64) -> Result<(Vec<Row>, usize), LoadError> {
        let mut padding = 0;
        let row = |slot: crate::plan::Slot| {
            padding += usize::from(slot.padding);
            Row {
                pack: 0,
                sample: slot.sample,
            }
        };
        let rows = self.plan.batch(step).map(row).collect();
        Ok((rows, padding))
    }

    /// The bytes of a step, for each pack, once they are there.
    pub(crate) fn items(&self, step: u64) -> Result<Vec<Option<StepItems>>, LoadError> {
        Ok(vec![Some(self.fetch.step(step)?)])
    }

    /// Wakes who waits for bytes.
    pub(crate) fn stop(&self) {
        self.fetch.stop();
    }

    /// What reading has cost.
    pub(crate) fn stats(&self) -> FetchStats {
        self.fetch.stats()
    }

    /// The state before a step.
    pub(crate) fn state(&self, step: u64) -> State {
        self.plan.state(step)
    }

    /// Bytes of the order's tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.plan.memory_bytes()
    }
}
