//! What the steps of a training take, told to whoever started it: `packds doctor PACK -- COMMAND` names a file in the
//! environment variable [`JOURNAL`], and every loader of the command appends to it. Nobody else sets it.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stats::{Counters, count};
use crate::Pack;

/// The environment variable that names the file. Each line is a JSON object: `loader` (a number of its own in each
/// process, behind the process's number), `options` (those that decide what a batch costs: `order`, `window`, `augment`, `fields`,
/// `threads`, `memory_bytes`, `null` where nobody said, and whether samples are `chosen`), `kind` (the same for loaders of one order,
/// augmentation and fields), `pack` (the pack's identifier), `batch` (samples), and of the loader so far
/// `batches`, `busy_ns` and `waited_ns` (between taking a batch and asking for the next, and from then until it came).
pub const JOURNAL: &str = "PACKDS_DOCTOR";

/// Between two lines of a loader.
const EVERY: Duration = Duration::from_millis(250);

/// The file, and what begins each line of one loader.
#[derive(Debug)]
pub(crate) struct Journal {
    start: String,
    counters: Arc<Counters>,
    state: Mutex<(File, Instant)>,
}

impl Journal {
    /// That of a loader of `pack`, if the environment names a file.
    pub(crate) fn asked_for(
        pack: &Pack,
        batch: u32,
        kind: &dyn Debug,
        options: &dyn Fn() -> Value,
        counters: &Arc<Counters>,
    ) -> Option<Arc<Self>> {
        static LOADERS: AtomicU64 = AtomicU64::new(0);
        let path = std::env::var_os(JOURNAL)?;
        // A file that cannot be opened stays empty: whoever asked says that nothing was told.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .ok()?;
        let number = LOADERS.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        format!("{kind:?}").hash(&mut hasher);
        let kind = hasher.finish();
        let (process, pack) = (std::process::id(), &pack.header().pack_uuid);
        let options = options();
        Some(Arc::new(Self {
            start: format!(
                "{{\"loader\":\"{process}-{number}\",\"options\":{options},\"kind\":{kind},\"pack\":\"{pack}\",\"batch\":{batch}"
            ),
            counters: Arc::clone(counters),
            state: Mutex::new((file, Instant::now())),
        }))
    }

    /// Appends a line, unless the last one was a moment ago.
    pub(crate) fn tell(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
        // Training goes on whatever becomes of the file.
        let _ = file.write_all(line.as_bytes());
    }
}

/// The last line: a loader that is made for one epoch alone may have none before.
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
