//! What a loader did, and who waited for whom.

use packds_system::nanos;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::fetch::FetchStats;

/// Sums over all epochs of a loader so far. Times of the threads are added up: two threads busy for one second are two
/// seconds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches handed over.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Bytes of their fields.
    pub bytes: u64,
    /// Samples left out or replaced because they could not be read or decoded.
    pub bad_samples: u64,
    /// Images that the host made though the device decodes JPEG files: too large for it, of another kind, pixels, or refused by it. Of
    /// all batches that were made, also those that nobody has taken yet.
    pub host_decoded: u64,
    /// Time the consumer waited for a batch: the loader is the bottleneck.
    pub consumer_waited: Duration,
    /// Time between taking one batch and asking for the next: the consumer's own work.
    pub consumer_busy: Duration,
    /// Time the loader's threads spent planning, copying, decoding and augmenting.
    pub threads_busy: Duration,
    /// Time they waited for bytes of the pack: the disk is the bottleneck.
    pub threads_waited_for_disk: Duration,
    /// Time they had nothing to do, because enough batches were ready: the consumer is the bottleneck.
    pub threads_waited_for_consumer: Duration,
    /// What reading the pack cost.
    pub fetch: FetchStats,
    /// Threads that load now.
    pub threads: usize,
    /// Batches made ahead now.
    pub prefetch: usize,
    /// Slots of the staging ring.
    pub slots: usize,
    /// Bytes of memory of each slot.
    pub slot_bytes: u64,
    /// The NUMA node that the ring's memory is to lie on; none where the device asks for none, or the system refused.
    pub numa_node: Option<u32>,
    /// Bytes of the tables that the order needs, per epoch.
    pub table_bytes: u64,
}

/// The running sums behind [`LoaderStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) batches: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) bad_samples: AtomicU64,
    pub(crate) host_decoded: AtomicU64,
    pub(crate) consumer_waited: AtomicU64,
    pub(crate) consumer_busy: AtomicU64,
    pub(crate) threads_busy: AtomicU64,
    pub(crate) disk_waited: AtomicU64,
    pub(crate) threads_idle: AtomicU64,
    pub(crate) table_bytes: AtomicU64,
}

/// Adds `n` to a counter that nothing else depends on.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Adds a time to a counter of nanoseconds.
pub(crate) fn add_time(counter: &AtomicU64, time: Duration) {
    add(counter, nanos(time));
}

/// What a counter says.
pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// What a counter of nanoseconds says.
pub(crate) fn time(counter: &AtomicU64) -> Duration {
    Duration::from_nanos(count(counter))
}
