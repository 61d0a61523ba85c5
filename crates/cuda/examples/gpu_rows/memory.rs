//! Measures kinds of staging memory: how long it takes to allocate and register each, and how fast copies, CPU reads
//! and disk reads are.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, DriverError, result, sys};
use memmap2::{Advice, MmapMut, MmapOptions};
use packds_cuda::Stream;
use packds_reader::arena::{Arena, SlotMut};

use super::{Bench, Ended, MIB, bytes, name_of, rate, scratch, seconds_per_gib};

/// How memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By the driver, like `cudaHostAlloc`.
    Driver { is_combined: bool },
    /// In pages of 4 KiB, registered with the driver.
    Small,
    /// The loader's ring, registered with the driver. The ring requests huge pages.
    Arena,
    /// In reserved huge pages, registered with the driver.
    Huge,
}

const KINDS: [Kind; 5] =
    [Kind::Driver { is_combined: false }, Kind::Driver { is_combined: true }, Kind::Small, Kind::Arena, Kind::Huge];

/// Memory of one kind.
enum Made {
    Driver(DriverMemory),
    Map(MmapMut),
    Slot(SlotMut),
}

/// Memory from the driver, in the primary context.
struct DriverMemory {
    bytes: &'static mut [u8],
    _context: Arc<CudaContext>,
}

impl Drop for DriverMemory {
    fn drop(&mut self) {
        // SAFETY: the memory is from `malloc_host`, and no queued work reads it.
        let _ = unsafe { result::free_host(self.bytes.as_mut_ptr().cast()) };
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Driver { is_combined: false } => "cuMemHostAlloc",
            Self::Driver { is_combined: true } => "cuMemHostAlloc, write-combined",
            Self::Small => "pages of 4 KiB, registered",
            Self::Arena => "the ring, registered",
            Self::Huge => "reserved huge pages, registered",
        }
    }

    fn make(self, len: usize) -> Result<Made, Box<dyn Error>> {
        Ok(match self {
            Self::Driver { is_combined } => {
                let context = CudaContext::new(0).map_err(said)?;
                let combined = if is_combined { sys::CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
                // SAFETY: the context is current, and `DriverMemory` frees the memory.
                let memory = unsafe { result::malloc_host(len, combined) }.map_err(said)?;
                // SAFETY: until `DriverMemory` is dropped, the memory has this many bytes, and no other code uses them.
                let bytes = unsafe { slice::from_raw_parts_mut(memory.cast(), len) };
                Made::Driver(DriverMemory { bytes, _context: context })
            }
            Self::Small => {
                let map = MmapOptions::new().len(len).map_anon()?;
                map.advise(Advice::NoHugePage)?;
                Made::Map(map)
            }
            Self::Arena => {
                let arena = Arena::new(1, len)?;
                Made::Slot(arena.try_take().ok_or("the arena has no slot")?)
            }
            Self::Huge => Made::Map(MmapOptions::new().len(len).huge(Some(21)).map_anon()?),
        })
    }
}

impl Made {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Driver(memory) => memory.bytes,
            Self::Map(map) => map,
            Self::Slot(slot) => slot,
        }
    }
}

impl Bench {
    /// Measures each kind of memory, before and after it is registered.
    pub(super) fn memory(&self) -> Ended {
        // Round up to whole huge pages.
        let len = self.largest.next_multiple_of(2 * MIB);
        println!("\nstaging memory, {}", name_of(len));
        println!(
            "{:<33}{:>11}{:>12}{:>11}{:>13}{:>15}",
            "", "make s/GiB", "register", "copy GB/s", "not pinned", "CPU read GB/s"
        );
        let mut direct = Vec::new();
        for kind in KINDS {
            if self.is_simulated && matches!(kind, Kind::Driver { .. }) {
                println!("{:<33} not available with the simulated driver", kind.name());
                continue;
            }
            let started = Instant::now();
            match kind.make(len) {
                Err(error) => println!("{:<33} not available: {error}", kind.name()),
                Ok(mut made) => {
                    made.bytes().fill(7);
                    self.measure(kind, made.bytes(), started.elapsed())?;
                    let read = read_directly(made.bytes());
                    direct.push(format!("{:<33} {read}", kind.name()));
                }
            }
        }
        println!("\nreading a file into each kind, bypassing the page cache");
        println!("{}", direct.join("\n"));
        Ok(())
    }

    fn measure(&self, kind: Kind, memory: &mut [u8], made: Duration) -> Ended {
        let len = memory.len();
        let stream = self.driver.stream()?;
        let device = self.driver.allocate(bytes(len), "copies")?;
        let copied = |stream: Stream| {
            self.time(&[stream], || {
                // SAFETY: source and destination have this many bytes, and `time` waits until the copies are done.
                unsafe { self.driver.copy_in(memory.as_ptr(), device, len, stream) }
            })
        };
        let is_pinned = matches!(kind, Kind::Driver { .. });
        // The simulated driver rejects unregistered memory.
        let pageable = match is_pinned || self.is_simulated {
            true => None,
            false => Some(copied(stream)?),
        };
        let started = Instant::now();
        if !is_pinned {
            // SAFETY: the memory outlives the registration, which ends below.
            unsafe { self.driver.register(memory.as_ptr(), len)? };
        }
        let registered = started.elapsed();
        let pinned = copied(stream)?;
        if !is_pinned {
            // SAFETY: all copies are done.
            unsafe { self.driver.unregister(memory.as_ptr()) };
        }
        let (words, _) = memory.as_chunks::<8>();
        let started = Instant::now();
        let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
        std::hint::black_box(sum);
        let read = started.elapsed();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        println!(
            "{:<33}{:>11.3}{:>12}{:>11.2}{:>13}{:>15.2}",
            kind.name(),
            seconds_per_gib(len, made),
            or_none((!is_pinned).then(|| format!("{:.3}", seconds_per_gib(len, registered)))),
            rate(len, pinned),
            or_none(pageable.map(|time| format!("{:.2}", rate(len, time)))),
            rate(len, read),
        );
        self.give_back(&[device], &[stream]);
        Ok(())
    }
}

/// The speed of reading a file with `O_DIRECT` into the memory in GB/s, or the error.
fn read_directly(memory: &mut [u8]) -> String {
    let mut read = || -> io::Result<Duration> {
        let file = tempfile::NamedTempFile::new_in(scratch())?;
        io::copy(&mut io::repeat(5).take(bytes(memory.len())), &mut file.as_file())?;
        file.as_file().sync_all()?;
        let mut direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(file.path())?;
        let started = Instant::now();
        direct.read_exact(memory)?;
        Ok(started.elapsed())
    };
    match read() {
        Ok(time) => format!("{:.2} GB/s", rate(memory.len(), time)),
        Err(error) => error.to_string(),
    }
}

fn said(error: DriverError) -> String {
    format!("{:?}", error.0)
}
