//! Measures a GPU's bus and memory, and our kernel. It prints the tables for `scripts/gpu-check`, which explains the
//! rows.
//!
//!     cargo run --release --example gpu_rows -- bus memory file kernel
//!
//! Times are medians of several runs. Each is measured from the first call until an event reports completion. If the
//! first argument is `simulated`, the program does small runs on a simulated driver, for tests. Those numbers mean
//! nothing.

#![expect(clippy::print_stdout, reason = "this program prints tables")]

mod bus;
mod file;
mod kernel;
mod memory;

use packds_system::to_u64;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packds_cuda::{CudaError, DevicePtr, Driver, Event, Nvidia, SimDriver, Stream};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;
const RUNS: usize = 9;

/// The result of a measurement.
type Ended = Result<(), Box<dyn Error>>;

/// A driver, and the sizes of the measurements.
struct Bench {
    driver: Arc<dyn Driver>,
    is_simulated: bool,
    /// Bytes of the largest copy.
    largest: usize,
    done: Event,
}

fn main() -> Ended {
    let mut rows: Vec<String> = std::env::args().skip(1).collect();
    let is_simulated = rows.first().is_some_and(|word| word == "simulated");
    if is_simulated {
        rows.remove(0);
    }
    Bench::new(is_simulated)?.rows(&rows)
}

impl Bench {
    fn new(is_simulated: bool) -> Result<Self, Box<dyn Error>> {
        let (driver, largest): (Arc<dyn Driver>, usize) = if is_simulated {
            (Arc::new(SimDriver::new(1, Duration::ZERO, 1 << 30)), MIB)
        } else {
            let driver = Nvidia::open(0).map_err(|error| error.to_string())?;
            (Arc::new(driver), 256 * MIB)
        };
        let done = driver.event()?;
        Ok(Self { driver, is_simulated, largest, done })
    }

    fn rows(&self, rows: &[String]) -> Ended {
        println!("device: {}", self.driver.device_name());
        for row in rows {
            match row.as_str() {
                "bus" => self.bus()?,
                "memory" => self.memory()?,
                "file" => self.file()?,
                "kernel" => self.kernel()?,
                other => {
                    let known = "expected bus, memory, file or kernel";
                    return Err(format!("unknown row {other}; {known}").into());
                }
            }
        }
        Ok(())
    }

    /// The median time of `work`, from its start until everything that it queued on `streams` is done.
    fn time(&self, streams: &[Stream], work: impl Fn() -> Result<(), CudaError>) -> Result<Duration, CudaError> {
        let mut times = Vec::with_capacity(RUNS);
        // The first run is excluded: it has one-time costs.
        for run in 0..=RUNS {
            let started = Instant::now();
            work()?;
            for stream in streams {
                self.wait(*stream)?;
            }
            if run > 0 {
                times.push(started.elapsed());
            }
        }
        times.sort();
        Ok(times[times.len() / 2])
    }

    /// Returns when everything queued on `stream` is done.
    fn wait(&self, stream: Stream) -> Result<(), CudaError> {
        // SAFETY: the event and the stream exist.
        unsafe { self.driver.record(self.done, stream)? };
        // SAFETY: the event exists.
        unsafe { self.driver.synchronize(self.done) }
    }

    fn give_back(&self, memory: &[DevicePtr], streams: &[Stream]) {
        for memory in memory {
            // SAFETY: no work is queued.
            unsafe { self.driver.free(*memory) };
        }
        for stream in streams {
            // SAFETY: the stream is not used again.
            unsafe { self.driver.drop_stream(*stream) };
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: the event is not used again.
        unsafe { self.driver.drop_event(self.done) };
    }
}

fn bytes(n: usize) -> u64 {
    to_u64(n)
}

/// The rate in GB/s.
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1e-9) / 1e9
}

fn seconds_per_gib(bytes: usize, time: Duration) -> f64 {
    time.as_secs_f64() * GIB as f64 / bytes as f64
}

/// The folder for the measured files. It is on a disk, unlike the folder for temporary files on some systems.
fn scratch() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = target.unwrap_or_else(|| PathBuf::from("target"));
    if folder.is_dir() { folder } else { std::env::temp_dir() }
}

fn name_of(bytes: usize) -> String {
    if bytes < MIB {
        return format!("{} KiB", bytes / KIB);
    }
    format!("{} MiB", bytes / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_runs_on_a_simulated_driver() {
        let bench = Bench::new(true).unwrap();
        let rows = ["bus", "memory", "file", "kernel"].map(str::to_owned);
        bench.rows(&rows).unwrap();
    }

    #[test]
    fn unknown_rows_are_refused() {
        let error = Bench::new(true).unwrap().rows(&["disk".to_owned()]);
        assert!(error.unwrap_err().to_string().contains("unknown row disk"));
    }
}
