//! Reports the step times of a training run. `packds doctor PACK -- COMMAND` passes the name of a file in the
//! environment variable [`JOURNAL`]. Every loader of the command appends to this file. Nothing else sets this variable.

use packds_system::lock;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stats::{Counters, count};
use crate::Pack;

/// The environment variable with the name of the file. Each line is a JSON object with these members:
///
/// - `loader`: the process number, followed by a number that is unique in the process.
/// - `options`: the options that determine the cost of a batch: `order`, `window`, `augment`, `fields`, `threads`,
///   `memory_bytes` (`null` if not set), and whether samples are `chosen`.
/// - `kind`: a value that is equal for loaders with the same order, augmentation and fields.
/// - `pack`: the pack's identifier.
/// - `batch`: samples per batch.
/// - `batches`: number of batches from the loader so far.
/// - `busy_ns`: total time from taking a batch to requesting the next one.
/// - `waited_ns`: total time from requesting a batch until it arrived.
pub const JOURNAL: &str = "PACKDS_DOCTOR";

/// Time between two lines of a loader.
const EVERY: Duration = Duration::from_millis(250);

/// The file, and the beginning of every line for one loader.
#[derive(Debug)]
pub(crate) struct Journal {
    start: String,
    counters: Arc<Counters>,
    state: Mutex<(File, Instant)>,
}

impl Journal {
    /// The journal for a loader of `pack`, if the environment names a file.
    pub(crate) fn requested(
        pack: &Pack,
        batch: u32,
        kind: &dyn Debug,
        options: &dyn Fn() -> Value,
        counters: &Arc<Counters>,
    ) -> Option<Self> {
        static LOADERS: AtomicU64 = AtomicU64::new(0);
        let path = std::env::var_os(JOURNAL)?;
        // If the file cannot be opened, nothing is written. The doctor then reports that there are no times.
        let file = OpenOptions::new().append(true).create(true).open(path).ok()?;
        let number = LOADERS.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        format!("{kind:?}").hash(&mut hasher);
        let kind = hasher.finish();
        let (process, pack) = (std::process::id(), pack.pack_uuid());
        let options = options();
        Some(Self {
            start: format!(
                "{{\"loader\":\"{process}-{number}\",\"options\":{options},\"kind\":{kind},\"pack\":\"{pack}\",\"batch\":{batch}"
            ),
            counters: Arc::clone(counters),
            state: Mutex::new((file, Instant::now())),
        })
    }

    /// Appends a line, unless the last line is recent.
    pub(crate) fn tell(&self) {
        let mut state = lock(&self.state);
        if state.1.elapsed() < EVERY {
            return;
        }
        self.write(&mut state.0);
        state.1 = Instant::now();
    }

    fn write(&self, file: &mut File) {
        let counters = &self.counters;
        let line = format!(
            "{},\"batches\":{},\"busy_ns\":{},\"waited_ns\":{}}}\n",
            self.start,
            count(&counters.batches),
            count(&counters.consumer_busy),
            count(&counters.consumer_waited)
        );
        // A write error must not stop the training run.
        let _ = file.write_all(line.as_bytes());
    }
}

/// Writes a last line, because a loader with only one short epoch may not have written a line yet.
impl Drop for Journal {
    fn drop(&mut self) {
        let Ok(mut file) = self.state.get_mut().map(|state| state.0.try_clone()) else {
            return;
        };
        if let Ok(file) = &mut file
            && self.counters.batches.load(Ordering::Relaxed) > 0
        {
            self.write(file);
        }
    }
}
