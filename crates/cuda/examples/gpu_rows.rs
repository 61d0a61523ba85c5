//! What a GPU's bus, memory and our kernel reach: a table for `scripts/gpu-check`, which says what the rows are.
//!
//!     cargo run --release --example gpu_rows -- bus register kernel
//!
//! Times are medians of several runs, each from the first call until an event says that all is done. With `simulated` in front
//! the program runs on a simulated driver, small, so that it can be tested: its numbers mean nothing.

#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use packds_cuda::{CudaError, DevicePtr, Driver, Emission, Event, Nvidia, SimDriver, Stream};
use packds_reader::arena::Arena;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const RUNS: usize = 9;
/// Launches for each wait: one is shorter than the waiting.
const LAUNCHES: usize = 20;

/// A driver, and how large the measurements are.
struct Bench {
    driver: Arc<dyn Driver>,
    /// Bytes of the largest copy.
    largest: usize,
    done: Event,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rows: Vec<String> = std::env::args().skip(1).collect();
    let is_simulated = rows.first().is_some_and(|word| word == "simulated");
    let (driver, largest): (Arc<dyn Driver>, usize) = if is_simulated {
        rows.remove(0);
        let driver = SimDriver::new(1, Duration::ZERO, 1 << 30);
        (Arc::new(driver), MIB)
    } else {
        (
            Arc::new(Nvidia::open(0).map_err(|error| error.to_string())?),
            256 * MIB,
        )
    };
    println!("device: {}", driver.device_name());
    let done = driver.event()?;
    let bench = Bench {
        driver,
        largest,
        done,
    };
    for row in &rows {
        match row.as_str() {
            "bus" => bench.bus()?,
            "register" => bench.register()?,
            "kernel" => bench.kernel()?,
            other => {
                return Err(format!("unknown row {other}; there are bus, register, kernel").into());
            }
        }
    }
    Ok(())
}

impl Bench {
    /// The median time of `work`, from its start until all that it queued on `streams` is done.
    fn time(
        &self,
        streams: &[Stream],
        work: impl Fn() -> Result<(), CudaError>,
    ) -> Result<Duration, CudaError> {
        let mut times = Vec::with_capacity(RUNS);
        // The first run is left out: it has what happens once.
        for run in 0..=RUNS {
            let started = Instant::now();
            work()?;
            for stream in streams {
                // SAFETY: both exist.
                unsafe { self.driver.record(self.done, *stream)? };
                // SAFETY: it exists.
                unsafe { self.driver.synchronize(self.done)? };
            }
            if run > 0 {
                times.push(started.elapsed());
            }
        }
        times.sort();
        Ok(times[times.len() / 2])
    }

    /// Copies to the device by size and number of streams, and within it.
    fn bus(&self) -> Result<(), Box<dyn std::error::Error>> {
        let arena = Arena::new(1, self.largest)?;
        let mut slot = arena.try_take().ok_or("an arena without a slot")?;
        slot.fill(7);
        let device = self.driver.allocate(bytes(2 * self.largest), "copies")?;
        let streams: Vec<Stream> = (0..4)
            .map(|_| self.driver.stream())
            .collect::<Result<_, _>>()?;
        println!(
            "\npinned host -> device, GB/s\n{:>9}{:>9}{:>9}{:>9}",
            "size", "1 stream", "2", "4"
        );
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { self.driver.register(slot.as_ptr(), slot.len())? };
        let mut size = 64 * KIB;
        while size <= self.largest {
            print!("{:>9}", name_of(size));
            for n_streams in [1, 2, 4] {
                let used = &streams[..n_streams];
                let n = (self.largest / size).clamp(1, 64);
                let time = self.time(used, || {
                    for at in 0..n {
                        let offset = at * size;
                        let to = device.plus(bytes(offset));
                        let from = slot[offset..].as_ptr();
                        // SAFETY: both have that much, and `time` waits for the end.
                        unsafe { self.driver.copy_in(from, to, size, used[at % n_streams])? };
                    }
                    Ok(())
                })?;
                print!("{:>9.2}", rate(n * size, time));
            }
            println!();
            size *= 4;
        }
        let time = self.time(&streams[..1], || {
            let to = device.plus(bytes(self.largest));
            // SAFETY: the two halves of one allocation, and `time` waits for the end.
            unsafe {
                self.driver
                    .copy_within(device, to, self.largest, streams[0])
            }
        })?;
        println!(
            "device -> device, {}: {:.1} GB/s copied, {:.1} GB/s read and written",
            name_of(self.largest),
            rate(self.largest, time),
            2.0 * rate(self.largest, time)
        );
        // SAFETY: all copies are done.
        unsafe { self.driver.unregister(slot.as_ptr()) };
        self.give_back(device, streams);
        Ok(())
    }

    /// What it costs to make staging memory, and what copies from it reach, beside memory that is not registered.
    fn register(&self) -> Result<(), Box<dyn std::error::Error>> {
        let len = self.largest;
        let stream = self.driver.stream()?;
        let device = self.driver.allocate(bytes(len), "copies")?;
        let started = Instant::now();
        let arena = Arena::new(1, len)?;
        let mut slot = arena.try_take().ok_or("an arena without a slot")?;
        slot.fill(7);
        let touched = started.elapsed();
        let copy = || {
            // SAFETY: both have that much, and `time` waits for the end.
            unsafe { self.driver.copy_in(slot.as_ptr(), device, len, stream) }
        };
        let pageable = self.time(&[stream], copy)?;
        let started = Instant::now();
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { self.driver.register(slot.as_ptr(), len)? };
        let registered = started.elapsed();
        let pinned = self.time(&[stream], copy)?;
        let started = Instant::now();
        // SAFETY: all copies are done.
        unsafe { self.driver.unregister(slot.as_ptr()) };
        let unregistered = started.elapsed();
        let per_gib = |time: Duration| time.as_secs_f64() * (1 << 30) as f64 / len as f64;
        println!(
            "\nstaging memory, {} ({} of it in huge pages)",
            name_of(len),
            arena.huge_page_bytes()
        );
        println!("reserve and touch {:.3} s/GiB", per_gib(touched));
        println!(
            "register {:.3} s/GiB, unregister {:.3}",
            per_gib(registered),
            per_gib(unregistered)
        );
        println!(
            "copy: not registered {:.2} GB/s, registered {:.2}",
            rate(len, pageable),
            rate(len, pinned)
        );
        self.give_back(device, vec![stream]);
        Ok(())
    }

    /// The kernel, for a batch of 256 pictures of 224 x 224, beside a copy of as many bytes.
    fn kernel(&self) -> Result<(), Box<dyn std::error::Error>> {
        let (n, side) = if self.largest > MIB {
            (256_u32, 224_u32)
        } else {
            (4, 32)
        };
        let pixels = usize::try_from(u64::from(n) * u64::from(side) * u64::from(side) * 3)?;
        let source = self.driver.allocate(bytes(pixels), "pixels")?;
        let table = self.driver.allocate(3 * 1024, "a table")?;
        let out = self.driver.allocate(bytes(5 * pixels), "images")?;
        let stream = self.driver.stream()?;
        println!("\nthe kernel, {n} pictures of {side} x {side} x 3");
        println!(
            "{:>6}{:>8}{:>10}{:>12}{:>22}",
            "bytes", "layout", "us", "GB/s", "of copying as much"
        );
        for value_bytes in [1_u32, 2, 4] {
            let written = pixels * usize::try_from(value_bytes)?;
            let moved = pixels + written;
            let half = moved / 2;
            let copied = self.time(&[stream], || {
                for _ in 0..LAUNCHES {
                    // SAFETY: within one allocation, the halves apart, and `time` waits for the end.
                    unsafe {
                        self.driver
                            .copy_within(out, out.plus(bytes(half)), half, stream)?;
                    }
                }
                Ok(())
            })?;
            let copy_rate = rate(2 * half * LAUNCHES, copied);
            for planar in [0, 1] {
                let emission = Emission {
                    source,
                    frames: DevicePtr(0),
                    table,
                    out,
                    n,
                    source_width: side,
                    source_height: side,
                    width: side,
                    height: side,
                    channels: 3,
                    planar,
                    value_bytes,
                    padding: 0,
                    color: 0,
                };
                let time = self.time(&[stream], || {
                    for _ in 0..LAUNCHES {
                        // SAFETY: all memory is allocated as large as the numbers say.
                        unsafe { self.driver.emit(&emission, stream)? };
                    }
                    Ok(())
                })?;
                let reached = rate(moved * LAUNCHES, time);
                println!(
                    "{value_bytes:>6}{:>8}{:>10.1}{reached:>12.1}{:>21.0}%",
                    if planar == 1 { "chw" } else { "hwc" },
                    time.as_secs_f64() * 1e6 / LAUNCHES as f64,
                    100.0 * reached / copy_rate,
                );
            }
        }
        // SAFETY: nothing is queued.
        unsafe { self.driver.free(source) };
        // SAFETY: nothing is queued.
        unsafe { self.driver.free(table) };
        self.give_back(out, vec![stream]);
        Ok(())
    }

    fn give_back(&self, memory: DevicePtr, streams: Vec<Stream>) {
        // SAFETY: nothing is queued.
        unsafe { self.driver.free(memory) };
        for stream in streams {
            // SAFETY: it is not used again.
            unsafe { self.driver.drop_stream(stream) };
        }
    }
}

fn bytes(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// GB/s.
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1e-9) / 1e9
}

fn name_of(bytes: usize) -> String {
    if bytes < MIB {
        return format!("{} KiB", bytes / KIB);
    }
    format!("{} MiB", bytes / MIB)
}
