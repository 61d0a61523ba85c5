//! Reads the first step of a mapped pack that is not in memory. It reads only the samples, into separate buffers, and
//! bypasses the page cache.
//!
//! In a shuffled order, a step has samples from all over the pack. Prefetching through the mapping reads pieces of 2
//! MiB, which later steps need as well. For a single step, much more data would be read than needed, and training would
//! wait for all of it. So the first step is read sample by sample, with as many requests at a time as the disk can
//! handle. When it is complete, prefetching starts with the second step. The samples of the first step are then read
//! again with their pieces. If they went through the page cache, their pieces could not use huge pages.

use packds_system::lock;
use std::sync::{Arc, Mutex};

use super::direct::{DirectEpoch, DirectFetch};
use super::mapped::MappedFetch;
use super::{Access, EpochFetch, FetchOptions, FetchStats, StepItems};
use crate::ReadError;
use crate::plan::{ChunkUse, OrderKind, Route};

/// Minimum ratio of the size of the pieces to the size of the samples.
const LEAST_GAIN: u64 = 2;

#[derive(Debug)]
pub(super) struct Early {
    step: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Reading(Arc<DirectEpoch>),
    Over(FetchStats),
}

impl Early {
    /// Starts reading `step` of a pack that is not in memory. `None` if this would not save time, or if it needs more
    /// than `memory_bytes`. This is only an optimization, so the result is also `None` if the system refuses anything.
    pub(super) fn start(fetch: &MappedFetch, plan: &Arc<dyn Route>, step: u64, memory_bytes: u64) -> Option<Self> {
        let is_mixed = matches!(plan.order(), OrderKind::Random | OrderKind::Window);
        if step >= plan.steps() || !is_mixed || !fetch.reads_samples() {
            return None;
        }
        let (bytes, pieces) = fetch.cost_of(&plan.samples_at(step));
        // All slots except the last one are at least half full, so their number is bounded.
        let needed = bytes.checked_mul(2)?.checked_add(fetch.chunk_memory())?;
        if pieces / LEAST_GAIN < bytes || needed > memory_bytes {
            return None;
        }
        let options = FetchOptions {
            access: Access::Direct,
            checksums: fetch.checks.policy(),
            memory_bytes: needed,
            budget: None,
            beside: 0,
            positions: fetch.positions.to_vec(),
        };
        let (pack, checks) = (Arc::clone(&fetch.pack), Arc::clone(&fetch.checks));
        let direct = DirectFetch::new(pack, checks, &options, true).ok()?;
        let plan = Arc::new(OneStep { plan: Arc::clone(plan), step });
        let epoch = direct.begin(plan, step, true).ok()?;
        let state = Mutex::new(State::Reading(Arc::new(epoch)));
        Some(Self { step, state })
    }

    /// Waits for the step and returns it, if it is the step that is being read. Its memory is released with the result.
    pub(super) fn take(&self, step: u64) -> Option<Result<StepItems, ReadError>> {
        let epoch = self.reading().filter(|_| step == self.step)?;
        let items = epoch.step(step);
        *lock(&self.state) = State::Over(epoch.stats());
        Some(items)
    }

    /// Wakes threads that wait for the step.
    pub(super) fn stop(&self) {
        if let Some(epoch) = self.reading() {
            epoch.stop();
        }
    }

    /// Statistics of reading and waiting. The pack's own checks count the verified data.
    pub(super) fn stats(&self) -> FetchStats {
        let stats = match &*lock(&self.state) {
            State::Reading(epoch) => epoch.stats(),
            State::Over(stats) => *stats,
        };
        FetchStats { bytes_read: stats.bytes_read, reads: stats.reads, wait_ns: stats.wait_ns, ..FetchStats::default() }
    }

    fn reading(&self) -> Option<Arc<DirectEpoch>> {
        match &*lock(&self.state) {
            State::Reading(epoch) => Some(Arc::clone(epoch)),
            State::Over(_) => None,
        }
    }
}

#[derive(Debug)]
struct OneStep {
    plan: Arc<dyn Route>,
    step: u64,
}

impl Route for OneStep {
    fn steps(&self) -> u64 {
        self.step.saturating_add(1)
    }

    fn samples_at(&self, step: u64) -> Vec<u64> {
        self.plan.samples_at(step)
    }

    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse> {
        self.plan.chunk_uses(step)
    }

    fn order(&self) -> OrderKind {
        self.plan.order()
    }

    fn is_whole_from(&self, _first_step: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{Advice, fadvise};

    use super::super::Fetch;
    use super::super::ahead::PIECE_BYTES;
    use super::super::checks::{Checks, Checksums};
    use super::super::tests::{large_pack, plan};
    use super::*;
    use crate::loader::Loader;
    use crate::plan::Order;
    use crate::{Pack, open};

    const IMAGE: u64 = 224 * 224 * 3;
    const WINDOW: Order = Order::Window { chunks: None };

    /// A pack of 400 samples in chunks of 64, and its folder.
    fn pack() -> (tempfile::TempDir, Arc<Pack>) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.pack");
        large_pack(&path, 400);
        File::open(&path).unwrap().sync_all().unwrap();
        (folder, Arc::new(open(&path).unwrap()))
    }

    fn mapped(pack: &Arc<Pack>, checksums: Checksums) -> MappedFetch {
        let checks = Checks::new(pack, checksums).unwrap();
        MappedFetch::new(Arc::clone(pack), checks, &[0]).unwrap()
    }

    fn early(pack: &Arc<Pack>, checksums: Checksums, order: Order) -> Option<Early> {
        let plan: Arc<dyn Route> = plan(pack, order, 32);
        Early::start(&mapped(pack, checksums), &plan, 0, 1 << 30)
    }

    #[test]
    fn the_first_step_is_its_samples_and_nothing_else_is_read() {
        let (_folder, pack) = pack();
        for checksums in [Checksums::Off, Checksums::FirstTouch, Checksums::Always] {
            for order in [Order::Random, WINDOW] {
                let early = early(&pack, checksums, order).unwrap();
                assert!(early.take(1).is_none());
                let step = early.take(0).unwrap().unwrap();
                for sample in plan(&pack, order, 32).samples_at(0) {
                    let item = step.item(0, sample, &mut Vec::new()).unwrap().to_vec();
                    assert_eq!(item, pack.item(0, sample).unwrap().as_ref());
                }
                let stats = early.stats();
                // Each sample may start and end in the middle of a page.
                let most = 32 * (IMAGE + 2 * 4096);
                assert!(stats.bytes_read >= 32 * IMAGE, "{stats:?}");
                assert!(stats.bytes_read <= most, "{stats:?}");
                // The step can be taken only once.
                assert!(early.take(0).is_none());
                early.stop();
            }
        }
    }

    #[test]
    fn what_gains_nothing_or_takes_too_much_is_left_to_the_map() {
        let (_folder, pack) = pack();
        for order in [Order::Sequential, Order::Chunks] {
            assert!(early(&pack, Checksums::Off, order).is_none());
        }
        let fetch = mapped(&pack, Checksums::Off);
        let plan_of = |batch| -> Arc<dyn Route> { plan(&pack, Order::Random, batch) };
        assert!(Early::start(&fetch, &plan_of(32), 0, 1 << 20).is_none());
        // The step needs nearly all of the pack.
        assert!(Early::start(&fetch, &plan_of(399), 0, 1 << 30).is_none());
        // This step does not exist.
        assert!(Early::start(&fetch, &plan_of(32), 99, 1 << 30).is_none());
    }

    #[test]
    fn a_damaged_sample_of_the_first_step_is_found_and_stays_bad() {
        use std::os::unix::fs::FileExt;
        let (folder, sound) = pack();
        let sample = plan(&sound, WINDOW, 32).samples_at(0)[5];
        let at = sound.sample_places(sample).unwrap()[0].start;
        drop(sound);
        let path = folder.path().join("a.pack");
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at + 9).unwrap();
        file.write_all_at(&[!byte[0]], at + 9).unwrap();
        file.sync_all().unwrap();
        let pack = Arc::new(open(&path).unwrap());
        let fetch = mapped(&pack, Checksums::FirstTouch);
        let plan: Arc<dyn Route> = plan(&pack, WINDOW, 32);
        let early = Early::start(&fetch, &plan, 0, 1 << 30).unwrap();
        let step = early.take(0).unwrap().unwrap();
        let error = step.item(0, sample, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, ReadError::Sample { .. }), "{error}");
        assert!(!fetch.checks.is_sample_done(sample, 0));
        drop(step);
        let again = fetch.check_sample(sample).unwrap_err();
        assert!(matches!(again, ReadError::Sample { .. }), "{again}");
    }

    /// The pack, evicted from memory as far as possible, and whether it was evicted.
    fn cold(folder: &tempfile::TempDir) -> (Arc<Pack>, bool) {
        let path = folder.path().join("a.pack");
        let file = File::open(&path).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let pack = Arc::new(open(&path).unwrap());
        let is_cold = pack.is_page_resident(pack.file_len() / 2) == Some(false);
        (pack, is_cold)
    }

    /// Whether some reads were smaller than a piece.
    fn has_samples_alone(bytes_read: u64) -> bool {
        !bytes_read.is_multiple_of(PIECE_BYTES)
    }

    #[test]
    fn an_epoch_of_a_cold_pack_has_every_sample() {
        let (folder, pack) = pack();
        drop(pack);
        for order in [Order::Random, WINDOW] {
            let (pack, is_cold) = cold(&folder);
            let options = FetchOptions {
                access: Access::Mapped,
                checksums: Checksums::FirstTouch,
                memory_bytes: 1 << 30,
                budget: None,
                beside: 0,
                positions: vec![0],
            };
            let fetch = Fetch::new(Arc::clone(&pack), options).unwrap();
            let plan = plan(&pack, order, 32);
            let epoch = fetch.start(plan.clone(), 0).unwrap();
            for step in 0..plan.steps() {
                let items = epoch.step(step).unwrap();
                for sample in plan.samples_at(step) {
                    let mut scratch = Vec::new();
                    let item = items.item(0, sample, &mut scratch).unwrap();
                    assert_eq!(item, pack.item(0, sample).unwrap().as_ref());
                }
            }
            let stats = epoch.stats();
            assert_eq!(stats.samples_checked, pack.n_samples());
            assert!(!is_cold || has_samples_alone(stats.bytes_read), "{stats:?}");
        }
    }

    #[test]
    fn a_loader_has_memory_for_the_first_batch_of_a_cold_pack() {
        let (folder, pack) = pack();
        drop(pack);
        let (pack, is_cold) = cold(&folder);
        let loader = Loader::builder(pack).batch(32).order(Order::Random);
        let loader = loader.build().unwrap();
        assert_eq!(loader.epoch(0).unwrap().count(), 12);
        let stats = loader.stats().fetch;
        assert!(!is_cold || has_samples_alone(stats.bytes_read), "{stats:?}");
    }
}
