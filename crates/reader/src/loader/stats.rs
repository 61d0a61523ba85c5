//! What a loader has done, and where it waited.

use packds_system::nanos;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::fetch::FetchStats;

/// Totals over all epochs of a loader so far. Thread times are added up: two threads that are busy for one second add
/// two seconds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Number of delivered batches.
    pub batches: u64,
    /// Number of samples in the delivered batches.
    pub samples: u64,
    /// Size of the fields of the delivered batches in bytes.
    pub bytes: u64,
    /// Number of samples that were left out or replaced because they could not be read or decoded.
    pub bad_samples: u64,
    /// Number of images that the host handled although the device decodes JPEG files: raw images, and files that exceed
    /// the limits, are of an unsupported kind, or were rejected by the device. Includes batches that have not been
    /// taken yet.
    pub host_decoded: u64,
    /// Time that the consumer waited for a batch. If it is high, the loader is the bottleneck.
    pub consumer_waited: Duration,
    /// Time between taking a batch and requesting the next: the consumer's own work.
    pub consumer_busy: Duration,
    /// Time that the loader's threads spent planning, copying, decoding and augmenting.
    pub threads_busy: Duration,
    /// Time that the threads waited for bytes of the pack. If it is high, the disk is the bottleneck.
    pub threads_waited_for_disk: Duration,
    /// Time that the threads were idle because enough batches were ready. If it is high, the consumer is the
    /// bottleneck.
    pub threads_waited_for_consumer: Duration,
    /// Statistics about reading and verifying.
    pub fetch: FetchStats,
    /// Number of active threads now.
    pub threads: usize,
    /// Number of batches that are prefetched now.
    pub prefetch: usize,
    /// Number of slots in the staging ring.
    pub slots: usize,
    /// Size of each slot.
    pub slot_bytes: u64,
    /// The NUMA node requested for the ring's memory. `None` if the device did not request one, or the system refused.
    pub numa_node: Option<u32>,
    /// Size of the order's tables per epoch.
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

/// Adds `n` to a counter. Relaxed ordering is enough, because no other memory depends on it.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Adds a time to a counter of nanoseconds.
pub(crate) fn add_time(counter: &AtomicU64, time: Duration) {
    add(counter, nanos(time));
}

/// The value of a counter.
pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The value of a counter of nanoseconds.
pub(crate) fn time(counter: &AtomicU64) -> Duration {
    Duration::from_nanos(count(counter))
}
