//! Measures a registered mapped file: copies to the device directly from the page cache, and reads from the disk into
//! the device's memory.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use memmap2::{Mmap, MmapOptions};

use super::{Bench, Ended, MIB, bytes, name_of, rate, scratch, seconds_per_gib};

/// Bytes per read from the disk.
const PIECE: usize = 16 * MIB;

/// The system's counters, in pages and kilobytes.
struct Counted {
    dirtied_pages: u64,
    dirty_kilobytes: u64,
    resident_kilobytes: u64,
}

impl Counted {
    fn now() -> io::Result<Self> {
        Ok(Self {
            dirtied_pages: number("/proc/vmstat", "nr_dirtied")?,
            dirty_kilobytes: number("/proc/meminfo", "Dirty:")?,
            resident_kilobytes: number("/proc/self/status", "RssAnon:")?,
        })
    }
}

fn number(path: &str, name: &str) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next());
    Ok(line.and_then(|n| n.parse().ok()).unwrap_or(0))
}

impl Bench {
    /// Measures a shared mapping, as used for packs, and a private mapping.
    pub(super) fn file(&self) -> Ended {
        let len = if self.is_simulated { MIB } else { 32 * self.largest };
        let file = tempfile::NamedTempFile::new_in(scratch())?;
        io::copy(&mut io::repeat(5).take(bytes(len)), &mut file.as_file())?;
        file.as_file().sync_all()?;
        println!("\na mapped file of {}, registered read-only", name_of(len));
        // SAFETY: no other program uses the file, and it no longer changes.
        let shared = unsafe { Mmap::map(file.as_file())? };
        self.registered("shared", &shared)?;
        drop(shared);
        // SAFETY: as above.
        let private = unsafe { MmapOptions::new().map_copy_read_only(file.as_file())? };
        self.registered("private", &private)?;
        self.read_directly(file.path(), len)
    }

    /// Reads the file from the disk into the device's memory, one piece at a time, in the same way as chunks.
    fn read_directly(&self, path: &Path, len: usize) -> Ended {
        let mut options = OpenOptions::new();
        options.read(true);
        let past_cache = options.clone().custom_flags(libc::O_DIRECT).open(path);
        let file = past_cache.or_else(|_| options.open(path))?;
        let file = match self.driver.open_direct(file) {
            Ok(file) => file,
            Err(error) => {
                println!("disk      cannot be read into the device's memory: {error}");
                return Ok(());
            }
        };
        let device = self.driver.allocate(bytes(PIECE), "reads")?;
        let time = self.time(&[], || {
            (0..len).step_by(PIECE).try_for_each(|start| {
                let n = PIECE.min(len - start);
                // SAFETY: the memory has this many bytes, and no other code uses it.
                unsafe { file.read(bytes(start), device, n) }
            })
        })?;
        self.give_back(&[device], &[]);
        println!("disk      read {:.2} GB/s", rate(len, time));
        Ok(())
    }

    fn registered(&self, name: &str, map: &Mmap) -> Ended {
        // Bring the file into the page cache and the page table.
        let sum = map.iter().fold(0_u64, |sum, byte| sum + u64::from(*byte));
        std::hint::black_box(sum);
        let before = Counted::now()?;
        let started = Instant::now();
        // SAFETY: the mapping outlives the registration, which ends below.
        let registered = unsafe { self.driver.register_read_only(map.as_ptr(), map.len()) };
        if let Err(error) = registered {
            println!("{name:<9} cannot be registered: {error}");
            return Ok(());
        }
        let registered = started.elapsed();
        let copied = self.copied(map)?;
        let started = Instant::now();
        // SAFETY: all copies are done.
        unsafe { self.driver.unregister(map.as_ptr()) };
        let unregistered = started.elapsed();
        let after = Counted::now()?;
        println!(
            "{name:<9} register {:.3} s/GiB, unregister {:.3}; copy {:.2} GB/s",
            seconds_per_gib(map.len(), registered),
            seconds_per_gib(map.len(), unregistered),
            rate(map.len(), copied),
        );
        println!(
            "{:<9} pages dirtied {}, dirty {} -> {} kB, memory of the process {} -> {} kB",
            "",
            after.dirtied_pages.saturating_sub(before.dirtied_pages),
            before.dirty_kilobytes,
            after.dirty_kilobytes,
            before.resident_kilobytes,
            after.resident_kilobytes
        );
        Ok(())
    }

    /// The median time to copy a whole registered mapping. All pieces go to the same place on the device.
    fn copied(&self, map: &Mmap) -> Result<Duration, Box<dyn std::error::Error>> {
        let device = self.driver.allocate(bytes(self.largest), "copies")?;
        let stream = self.driver.stream()?;
        let time = self.time(&[stream], || {
            for piece in map.chunks(self.largest) {
                // SAFETY: source and destination have this many bytes, and `time` waits until the copies are done.
                unsafe {
                    self.driver.copy_in(piece.as_ptr(), device, piece.len(), stream)?;
                }
            }
            Ok(())
        })?;
        self.give_back(&[device], &[stream]);
        Ok(time)
    }
}
