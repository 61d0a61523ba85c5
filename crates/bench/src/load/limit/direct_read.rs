//! The limit of cold reads: the same chunks in the same order, read by io_uring with O_DIRECT into reused buffers.

use packds_system::{to_u64, to_usize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use packds_reader::arena::{Arena, SlotMut};
use packds_reader::loader::Loader;
use rustix::fs::OFlags;

use crate::BenchError;

/// Request size and queue depth, the same as in the loader's own engine.
const REQUEST_BYTES: u64 = 2 << 20;
const DEPTH: usize = 64;
/// Alignment of direct reads, in bytes.
const ALIGN: u64 = 4096;

pub(crate) struct DirectRead<'a> {
    loader: &'a Loader,
    /// The files of the pack, each with the offset where it begins.
    files: Vec<(u64, File)>,
}

impl<'a> DirectRead<'a> {
    pub(crate) fn new(loader: &'a Loader) -> Result<Self, BenchError> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let files = loader.pack().file_paths().into_iter().map(|(start, path)| {
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            Ok((start, file.map_err(BenchError::io(&path))?))
        });
        Ok(Self { loader, files: files.collect::<Result<_, BenchError>>()? })
    }

    pub(super) fn run(&self, epoch: u32, n_batches: u64) -> Result<Duration, BenchError> {
        self.time(&self.of_chunks(epoch, n_batches)?)
    }

    pub(crate) fn time(&self, requests: &[(u64, u32)]) -> Result<Duration, BenchError> {
        let failed = |source| BenchError::io(self.loader.pack().file_path())(source);
        let arena = Arena::new(DEPTH, to_usize(REQUEST_BYTES)).map_err(failed)?;
        let mut buffers: Vec<SlotMut> = std::iter::from_fn(|| arena.try_take()).collect();
        for buffer in &mut buffers {
            buffer.fill(1);
        }
        let started = Instant::now();
        read_all(&self.files, requests, &mut buffers).map_err(failed)?;
        Ok(started.elapsed())
    }

    /// The chunks that the first batches need, split into pieces. Each chunk occurs once, in order of first use.
    fn of_chunks(&self, epoch: u32, n_batches: u64) -> Result<Vec<(u64, u32)>, BenchError> {
        let pack = self.loader.pack();
        let plan = self.loader.schedule().epoch(epoch)?;
        let mut known = BTreeSet::new();
        let mut requests = Vec::new();
        for step in 0..n_batches {
            for slot in plan.batch(step) {
                let (chunk, _) = pack.geometry().locate(slot.sample);
                if !known.insert(chunk) {
                    continue;
                }
                let entry = pack.located(pack.chunk_entry(chunk))?;
                add(&mut requests, entry.offset..entry.offset + entry.stored_len);
            }
        }
        Ok(requests)
    }

    /// The locations of the first batches' samples.
    pub(crate) fn of_samples(&self, epoch: u32, n_batches: u64) -> Result<Vec<(u64, u32)>, BenchError> {
        let pack = self.loader.pack();
        let plan = self.loader.schedule().epoch(epoch)?;
        let mut requests = Vec::new();
        for slot in (0..n_batches).flat_map(|step| plan.batch(step)) {
            let places = pack.located(pack.sample_places(slot.sample))?;
            places.into_iter().for_each(|place| add(&mut requests, place));
        }
        Ok(requests)
    }
}

/// Adds a range of bytes, split into aligned pieces.
fn add(requests: &mut Vec<(u64, u32)>, bytes: Range<u64>) {
    let end = bytes.end.next_multiple_of(ALIGN);
    let mut at = bytes.start / ALIGN * ALIGN;
    while at < end {
        let len = REQUEST_BYTES.min(end - at);
        requests.push((at, u32::try_from(len).unwrap_or(0)));
        at += len;
    }
}

/// Keeps as many requests in flight as there are buffers.
fn read_all(files: &[(u64, File)], requests: &[(u64, u32)], buffers: &mut [SlotMut]) -> std::io::Result<()> {
    let mut ring = IoUring::new(u32::try_from(DEPTH).unwrap_or(1))?;
    let mut waiting = requests.iter();
    let mut free: Vec<usize> = (0..buffers.len()).collect();
    loop {
        while let Some(number) = free.pop() {
            let Some(((offset, len), buffer)) = waiting.next().zip(buffers.get_mut(number)) else {
                free.push(number);
                break;
            };
            let file = files.partition_point(|(start, _)| start <= offset).checked_sub(1).and_then(|at| files.get(at));
            let Some((start, file)) = file else { return Err(std::io::ErrorKind::InvalidInput.into()) };
            let fd = types::Fd(file.as_raw_fd());
            let at = offset - start;
            let read = opcode::Read::new(fd, buffer.as_mut_ptr(), *len).offset(at).build().user_data(to_u64(number));
            // SAFETY: the buffer has REQUEST_BYTES bytes and `len` is at most that. The buffer is not touched until its
            // completion has arrived, and this function does not return before all completions have arrived.
            let pushed = unsafe { ring.submission().push(&read) };
            if pushed.is_err() {
                free.push(number);
                break;
            }
        }
        if free.len() == buffers.len() {
            return Ok(());
        }
        ring.submit_and_wait(1)?;
        let mut failed = None;
        for completion in ring.completion() {
            free.push(to_usize(completion.user_data()));
            if completion.result() < 0 {
                failed = Some(std::io::Error::from_raw_os_error(-completion.result()));
            }
        }
        if let Some(error) = failed {
            while free.len() < buffers.len() {
                ring.submit_and_wait(1)?;
                free.extend(ring.completion().map(|c| to_usize(c.user_data())));
            }
            return Err(error);
        }
    }
}
