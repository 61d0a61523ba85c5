//! The loader's threads. They begin steps in order, fill the pieces of these steps and finish them.

use packds_system::{lock, to_u64, wait};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::BadSamples;
use super::batch::Prepared;
use super::board::{Board, Progress, Ready};
use super::buckets::ByBucket;
use super::error::LoadError;
use super::fill::Filler;
use super::filling::{Filling, Piece, Row, cut};
use super::finish::finish;
use super::journal::Journal;
use super::outputs::{Contents, Outputs, Source};
use super::pictures::{ChunkSource, Pictures};
use super::schedule::EpochSchedule;
use super::stats::{Counters, add, add_time};
use super::tuner::Tuner;
use crate::arena::{Arena, SlotMut, SlotRef};
use crate::device::{Attached, DeviceError, FilesPart, FilesTaken, StoredPart};
use crate::fetch::{FetchStats, ItemRun, StepItems};

/// The state that a loader shares with the threads of its epochs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) arena: Arc<Arena>,
    pub(crate) device: Attached,
    pub(crate) counters: Arc<Counters>,
    /// The tuner. Each epoch starts with the settings of the previous one.
    pub(crate) tuner: Mutex<Tuner>,
    /// Records step times, if requested.
    pub(crate) journal: Option<Journal>,
    pub(crate) bad_samples: BadSamples,
    /// Number of rows per piece. There are several pieces per thread, so that all threads finish at about the same
    /// time.
    pub(crate) piece_rows: usize,
    /// Whether batches may borrow the pack's bytes instead of copying them.
    pub(crate) borrows: bool,
    /// Statistics of reading in the finished epochs.
    pub(crate) fetched: Mutex<FetchStats>,
    /// Simulated extra disk time per batch.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) disk_delay: std::time::Duration,
}

/// Everything that the threads of one epoch share.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(crate) board: Arc<Board>,
    pub(crate) schedule: EpochSchedule,
    pub(crate) contents: ByBucket,
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut fetched = lock(&self.shared.fetched);
        *fetched = fetched.then(self.schedule.stats());
    }
}

/// A slot that the device returned, and whether at least one of the rejected files was not known before.
struct Refused {
    slot: SlotMut,
    is_new: bool,
}

/// The next job of a thread.
enum Job {
    Begin(u64),
    Fill(Arc<Filling>, Piece),
}

impl Workers {
    /// Starts `n` threads. If the system cannot start that many, fewer are accepted, but at least one.
    pub(crate) fn start(self: &Arc<Self>, n: usize) -> Result<Vec<JoinHandle<()>>, LoadError> {
        let mut threads = Vec::with_capacity(n);
        for number in 0..n {
            let workers = Arc::clone(self);
            let named = thread::Builder::new().name(format!("packds-load-{number}"));
            match named.spawn(move || workers.guarded(number)) {
                Ok(thread) => threads.push(thread),
                // The threads that have started do all the work. Batches do not depend on their number.
                Err(_) if number > 0 => break,
                Err(error) => {
                    self.stop();
                    return Err(LoadError::Thread(error));
                }
            }
        }
        Ok(threads)
    }

    /// What the batch of a step contains.
    pub(crate) fn contents_at(&self, step: u64) -> &Arc<Contents> {
        self.contents.of(self.schedule.bucket(step))
    }

    /// Makes the threads end soon, even if they are waiting.
    pub(crate) fn stop(&self) {
        self.board.stop();
        self.schedule.stop();
        self.shared.arena.wake();
    }

    /// Runs a thread. A panic reaches the consumer as an error.
    fn guarded(&self, number: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work(number))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let message = text.unwrap_or("no message").to_owned();
            self.board.fail(LoadError::Panicked { message });
        }
    }

    fn work(&self, number: usize) {
        let mut filler = Filler::new(self.contents.first(), self.shared.bad_samples, self.schedule.kept());
        while let Some(job) = self.next_job(number) {
            let result = match job {
                Job::Begin(step) => self.begin(step),
                Job::Fill(filling, piece) => self.fill(&mut filler, &filling, piece),
            };
            if let Err((step, error)) = result {
                // Truncated data looks damaged. Report the truncation instead.
                let error = self.still_good().err().unwrap_or(error);
                self.board.put(step, Err(error));
            }
        }
    }

    /// Waits for the next job of thread `number`. `None` after the loader stops.
    fn next_job(&self, number: usize) -> Option<Job> {
        let mut progress = self.board.lock();
        let mut idle: Option<Instant> = None;
        let job = loop {
            if self.board.is_stopped() {
                return None;
            }
            if number >= progress.threads {
                // This thread is not needed now. Do not add its wait to the time waited for the consumer, and do not
                // wake it for each piece.
                self.was_idle(idle.take());
                progress = wait(&self.board.called, progress);
                continue;
            }
            if let Some(job) = self.job_in(&mut progress) {
                break job;
            }
            idle.get_or_insert_with(Instant::now);
            progress = wait(&self.board.work, progress);
        };
        self.was_idle(idle);
        Some(job)
    }

    fn was_idle(&self, since: Option<Instant>) {
        if let Some(since) = since {
            add_time(&self.shared.counters.threads_idle, since.elapsed());
        }
    }

    fn job_in(&self, progress: &mut Progress) -> Option<Job> {
        while let Some(filling) = progress.filling.front().map(Arc::clone) {
            let (piece, was_last) = filling.take();
            if was_last {
                progress.filling.pop_front();
            }
            if let Some(piece) = piece {
                return Some(Job::Fill(filling, piece));
            }
        }
        let ahead = progress.next_begin - progress.next_out;
        let prefetch = to_u64(progress.prefetch);
        if progress.beginning || progress.next_begin >= progress.steps || ahead >= prefetch {
            return None;
        }
        progress.beginning = true;
        progress.next_begin += 1;
        Some(Job::Begin(progress.next_begin - 1))
    }

    /// Begins a step: waits for a slot, finds the rows, waits for their bytes, and makes the pieces available.
    fn begin(&self, step: u64) -> Result<(), (u64, LoadError)> {
        let slot = {
            let idle = Instant::now();
            let slot = self.shared.arena.take(&self.board.stopped);
            add_time(&self.shared.counters.threads_idle, idle.elapsed());
            slot
        };
        // Another thread may now begin the next step. It gets a later slot.
        self.board.lock().beginning = false;
        self.board.tell_threads();
        let Some(slot) = slot else { return Ok(()) };
        self.begin_in(step, slot).map_err(|error| (step, error))
    }

    fn begin_in(&self, step: u64, mut slot: SlotMut) -> Result<(), LoadError> {
        let started = Instant::now();
        let (rows, padding) = self.schedule.rows(step)?;
        let planned = started.elapsed();
        #[cfg(any(test, feature = "testing"))]
        if self.schedule.kept().is_none() {
            thread::sleep(self.shared.disk_delay);
        }
        self.protect()?;
        let items = self.schedule.items(step)?;
        add_time(&self.shared.counters.disk_waited, started.elapsed().saturating_sub(planned));
        let started = Instant::now();
        self.shared.device.receiver().recycle(&mut slot);
        let contents = self.contents_at(step);
        self.write_columns(contents, &mut slot, &rows)?;
        let borrowed = self.borrow(&contents.outputs, &rows, &items)?;
        // Columns and tables were read from mappings. If a file was truncated, they are not valid.
        self.still_good()?;
        if let Some(borrowed) = borrowed {
            let Contents { outputs, seeds, .. } = &**contents;
            let mix = match &outputs.pictures {
                // Fields of boxes are never borrowed.
                Some(pictures) => pictures.join(outputs, &mut slot, &mut [], (&rows, seeds))?,
                None => None,
            };
            let prepared = Prepared { rows, padding, borrowed: Some(borrowed), mix, ..Prepared::new(step) };
            add_time(&self.shared.counters.threads_busy, planned + started.elapsed());
            // Only files can be rejected, and files are always copied.
            return self.hand_over(slot, prepared, &items).map(drop);
        }
        let pieces = cut(slot, &contents.outputs, rows.len(), self.shared.piece_rows);
        let filling = Arc::new(Filling::new((step, contents), rows, padding, items, pieces));
        self.board.hand_out(filling);
        add_time(&self.shared.counters.threads_busy, planned + started.elapsed());
        Ok(())
    }

    fn fill(&self, filler: &mut Filler, filling: &Arc<Filling>, mut piece: Piece) -> Result<(), (u64, LoadError)> {
        let started = Instant::now();
        let step = filling.step;
        let at_step = |error| (step, error);
        let stopped = &self.board.stopped;
        // Other code may have replaced the signal handler since the batch was begun.
        self.protect().map_err(at_step)?;
        filler.fill(filling, &mut piece, stopped);
        if self.board.is_stopped() {
            return Ok(());
        }
        if let Some(pieces) = filling.give_back(piece) {
            self.complete(filler, filling, pieces).map_err(at_step)?;
        }
        add_time(&self.shared.counters.threads_busy, started.elapsed());
        Ok(())
    }

    /// Finishes a batch from its pieces and delivers it. If the device rejects files, the host decodes them, and the
    /// batch is delivered again.
    fn complete(&self, filler: &mut Filler, filling: &Filling, mut pieces: Vec<Piece>) -> Result<(), LoadError> {
        let (contents, n_rows) = (&filling.contents, filling.rows.len());
        let mut is_again = false;
        loop {
            let finished = finish(filling, pieces, contents, self.shared.bad_samples)?;
            let Some((slot, prepared)) = finished else { return Ok(()) };
            let Some(Refused { mut slot, is_new }) = self.hand_over(slot, prepared, &filling.items)? else {
                return Ok(());
            };
            // On the first attempt, a rejected file is not new if another batch has recorded it. On later attempts, the
            // host has decoded all recorded files, so the device must have rejected a new one.
            if is_again && !is_new {
                let reason = "it rejected a batch whose files the host had decoded".to_owned();
                let device = self.shared.device.receiver().name();
                return Err(DeviceError { device, reason }.into());
            }
            is_again = true;
            // Bad samples may have moved rows, so write all rows again.
            self.write_columns(contents, &mut slot, &filling.rows)?;
            pieces = cut(slot, &contents.outputs, n_rows, n_rows).into();
            for piece in &mut pieces {
                filler.fill(filling, piece, &self.board.stopped);
            }
            if self.board.is_stopped() {
                return Ok(());
            }
        }
    }

    /// Passes a finished slot to the device and the consumer. If the device rejects files, records them and returns the
    /// slot.
    fn hand_over(
        &self,
        mut slot: SlotMut,
        prepared: Prepared,
        items: &[Option<StepItems>],
    ) -> Result<Option<Refused>, LoadError> {
        let Contents { outputs, packs, seeds } = &**self.contents_at(prepared.step);
        let rows = &prepared.rows;
        // Only the first pack is needed, because a device holds images of at most one pack.
        let first = packs.first().zip(items.first().and_then(Option::as_ref));
        let device = match &self.shared.device {
            Attached::Chunks(device) => Some(device.as_ref()),
            _ => None,
        };
        let source = first.map(|(pack, items)| ChunkSource { device, pack, items });
        let n_decoded = outputs.write_finish(&mut slot, rows, seeds, source.as_ref())?;
        let (slot, transfer) = match self.submit(slot, outputs, &prepared)? {
            FilesTaken::All(slot, transfer) => (slot, transfer),
            FilesTaken::Refused(slot, refused) => {
                let is_new = note_refused(outputs, &prepared.rows, &refused);
                return Ok(Some(Refused { slot, is_new }));
            }
        };
        add(&self.shared.counters.host_decoded, n_decoded);
        let n_bad = to_u64(prepared.bad.len());
        add(&self.shared.counters.bad_samples, n_bad);
        let step = prepared.step;
        let ready = Ready { prepared, slot, transfer };
        self.board.put(step, Ok(ready));
        Ok(None)
    }

    /// Passes a slot to the device. Some devices also receive the position of the batch's files in the slot, or of its
    /// bytes in the pack.
    fn submit(&self, slot: SlotMut, outputs: &Outputs, prepared: &Prepared) -> Result<FilesTaken, LoadError> {
        let len = outputs.slot_bytes;
        if let (Attached::Files(device), Some(field)) = (&self.shared.device, outputs.files()) {
            let files = FilesPart {
                offset: field.offset,
                item_bytes: field.item_bytes,
                rows: prepared.rows.len(),
                channels: field.finish.as_ref().map_or(0, |finish| finish.channels),
            };
            return Ok(device.submit_files(slot, len, files)?);
        }
        let slot: SlotRef = slot.freeze();
        let transfer = match (&self.shared.device, stored_part(outputs, prepared)) {
            (Attached::Stored(device), Some(part)) => device.submit_stored(slot.clone(), len, part)?,
            (device, _) => device.receiver().submit(slot.clone(), len)?,
        };
        Ok(FilesTaken::All(slot, transfer))
    }

    /// Copies the column values of `rows` into the slot.
    fn write_columns(&self, contents: &Contents, slot: &mut SlotMut, rows: &[Row]) -> Result<(), LoadError> {
        for field in &contents.outputs.fields {
            let Source::Column(number) = field.source else { continue };
            let n = field.item_bytes;
            let len = n * rows.len();
            let Some(region) = slot.get_mut(field.offset..field.offset + len) else {
                continue;
            };
            for (row, to) in rows.iter().zip(region.chunks_exact_mut(n.max(1))) {
                let Some(pack) = contents.packs.get(row.pack) else { continue };
                let item = pack.item(number, row.sample).map_err(|e| pack.error(e))?;
                to.copy_from_slice(&item);
            }
        }
        Ok(())
    }

    /// Borrows the batch's bytes from the pack, if they are contiguous there.
    fn borrow(
        &self,
        outputs: &Outputs,
        rows: &[Row],
        items: &[Option<StepItems>],
    ) -> Result<Option<(usize, ItemRun)>, LoadError> {
        let (Some((number, position)), true) = (outputs.borrowable(), self.shared.borrows) else {
            return Ok(None);
        };
        let (Some(first), Some(Some(items)), Ok(n)) = (rows.first(), items.first(), u32::try_from(rows.len())) else {
            return Ok(None);
        };
        let in_order = |(row, next): (&Row, u64)| row.sample == next && row.pack == 0;
        if !rows.iter().zip(first.sample..).all(in_order) {
            return Ok(None);
        }
        let run = match items.run(position, first.sample, n) {
            // The chunk is damaged. Reading row by row separates the good samples from the bad ones.
            Err(_) if self.shared.bad_samples != BadSamples::Error => return Ok(None),
            run => run?,
        };
        // Devices can read the pack's bytes, but not buffers.
        let run = run.filter(|run| matches!(self.shared.device, Attached::Host) || run.in_pack().is_some());
        Ok(run.map(|run| (number, run)))
    }

    /// Makes lost pages of the packs read as zeros. Without this call, reading a lost page would end the process.
    fn protect(&self) -> Result<(), LoadError> {
        for pack in self.contents.first().packs.iter() {
            pack.protect()?;
        }
        Ok(())
    }

    /// Checks that all packs are still the files that were opened.
    fn still_good(&self) -> Result<(), LoadError> {
        for pack in self.contents.first().packs.iter() {
            pack.still_good()?;
        }
        Ok(())
    }
}

/// Records the files that the device rejected. From now on, the host decodes them. Returns whether any of them is new.
fn note_refused(outputs: &Outputs, rows: &[Row], refused: &[usize]) -> bool {
    let files = outputs.pictures.as_ref().and_then(Pictures::files);
    let rows = refused.iter().filter_map(|row| rows.get(*row));
    files.is_some_and(|files| rows.fold(false, |is_new, row| files.refuse(*row) | is_new))
}

/// The part of a batch that is borrowed from the pack.
fn stored_part<'a>(outputs: &Outputs, prepared: &'a Prepared) -> Option<StoredPart<'a>> {
    let (number, run) = prepared.borrowed.as_ref()?;
    let (pack, range) = run.in_pack()?;
    let offset = outputs.fields.get(*number)?.offset;
    Some(StoredPart { pack, range: range.clone(), offset })
}
