//! Copies slots of a loader's ring to GPU memory, and from there into the user's memory.
//!
//! The GPU has a mirror of the ring, with a part for each slot. The copy stream copies a filled slot to its part of the
//! mirror. The consumer of the batch then writes the batch's fields from the mirror into its own memory, on its own
//! stream.
//!
//! # Why data never changes while it is read
//!
//! Each slot has two events. `uploaded` marks the end of its copy. `emitted` marks the end of the work that reads its
//! part of the mirror.
//!
//! - The slot is not written while the copy reads it: a thread, the reaper, holds a [`SlotRef`] until `uploaded` has
//!   happened.
//! - The mirror is not read before the copy is complete: the user's stream waits for `uploaded`.
//! - The mirror is not written while it is read: the copy stream waits for `emitted` before the slot's next copy. If
//!   JPEG files are decoded, a thread of the loader waits instead, because a decoder may write before its stream
//!   reaches the batch. The batch holds a [`SlotRef`] too. Therefore the slot is not refilled before the batch is
//!   dropped, and `emitted` is not recorded after that.
//! - The user's memory is written on the user's own stream, so later work on that stream is ordered after it.
//!
//! Neither the loader's threads nor the user's threads wait for the GPU in any of this. The exceptions are windows of
//! chunks and JPEG files: see the modules `window` and `files`.
//!
//! After a driver failure, copying and writing stop. Every batch returns the error, and slots are released, so no
//! thread waits for them.

mod direct;
mod file;
mod files;
#[cfg(test)]
mod tests;
mod window;

use packds_system::to_u64;
use std::any::Any;
use std::fmt;
use std::sync::mpsc::{self, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use packds_pixels::{FloatType, Padding};
use packds_reader::arena::{Arena, SlotMut, SlotRef};
use packds_reader::device::{DeviceError, Finish, Receiver, Transfer};
use packds_reader::loader::{Batch, BatchField};

use crate::driver::{DevicePtr, Driver, Event, Stream};
use crate::emission::{Emission, padding_word, planar, type_word};
use crate::error::CudaError;
use crate::resident::{Resident, Tables};

pub(crate) use self::file::{Copies, RegisteredFile};
pub(crate) use self::files::FilePlan;
pub(crate) use self::window::{Window, WindowPlan};

/// Maximum size of a copy. Larger copies are split, so that the user's own copies can run in between.
const PIECE: usize = 16 << 20;

/// A ring with its mirror on the GPU.
#[derive(Debug)]
pub(crate) struct Ring(Arc<Staging>);

#[derive(Debug)]
struct Staging {
    driver: Arc<dyn Driver>,
    /// The memory of the slots, registered with the driver.
    arena: Arc<Arena>,
    mirror: DevicePtr,
    /// Number of bytes from one slot's part of the mirror to the next.
    mirror_step: u64,
    copies: Stream,
    slots: Vec<Mutex<SlotEvents>>,
    reaper: Mutex<Option<Sender<Sent>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    images: Images,
    /// The first failure. After it, no more copies are queued, and slots are released unused.
    failure: Arc<Mutex<Option<CudaError>>>,
}

/// The source of a ring's images.
#[derive(Debug)]
pub(crate) enum Images {
    /// The slots.
    Slots,
    /// The slots, or the registered file if batches are stored contiguously in it.
    Stored(#[expect(dead_code, reason = "keeps the file until its copies are done")] Arc<RegisteredFile>),
    /// A dataset that is completely on the GPU.
    Resident(Arc<Resident>),
    /// The chunks of current batches, on the GPU.
    Window(Arc<Window>),
    /// JPEG files in the slots.
    Files(Arc<FilePlan>),
}

impl Images {
    /// The address of the first image, and the taps for resizing areas of images. `None` if images are not on the GPU.
    fn on_gpu(&self) -> Option<(DevicePtr, Option<&Tables>)> {
        match self {
            Self::Slots | Self::Stored(_) | Self::Files(_) => None,
            Self::Resident(set) => Some((set.images, set.tables.as_ref())),
            Self::Window(window) => Some((window.memory, window.plan.tables.as_ref())),
        }
    }
}

/// The events of one slot, for its part of the mirror.
#[derive(Debug, Clone, Copy)]
struct SlotEvents {
    uploaded: Event,
    emitted: Event,
    /// Whether `emitted` was recorded since the last copy.
    is_emitted: bool,
}

/// A queued copy of a slot, for the reaper.
#[derive(Debug)]
struct Sent {
    slot: SlotRef,
    uploaded: Event,
    arrival: Arrival,
}

/// Set when a copy is complete.
type Arrival = Arc<OnceLock<()>>;

impl Ring {
    pub(crate) fn new(driver: Arc<dyn Driver>, arena: Arc<Arena>, images: Images) -> Result<Self, CudaError> {
        let (host, len) = arena.address();
        let slot_bytes = to_u64(arena.slot_bytes());
        let behind = match &images {
            Images::Files(plan) => plan.pixel_bytes(),
            _ => 0,
        };
        let mirror_step = slot_bytes.saturating_add(behind);
        if let Some(node) = driver.numa_node() {
            // Do this before registering, which allocates the memory. If the system refuses, the memory may be on any
            // node. The statistics report the node.
            let _ = arena.prefer_node(node);
        }
        let copies = driver.stream()?;
        let mut staging = Staging {
            driver,
            arena,
            mirror: DevicePtr(0),
            mirror_step,
            copies,
            slots: Vec::new(),
            reaper: Mutex::default(),
            thread: Mutex::default(),
            images,
            failure: Arc::default(),
        };
        // From here on, `drop` releases what exists so far.
        for _ in 0..staging.arena.n_slots() {
            let uploaded = staging.driver.event()?;
            let emitted = staging.driver.event().inspect_err(|_| {
                // SAFETY: the event was just created, and nothing uses it.
                unsafe { staging.driver.drop_event(uploaded) };
            })?;
            staging.slots.push(Mutex::new(SlotEvents { uploaded, emitted, is_emitted: false }));
        }
        let bytes = mirror_step.saturating_mul(to_u64(staging.slots.len()));
        let mirror = staging.driver.allocate(bytes, "staged batches")?;
        // SAFETY: the arena is kept as long as the staging, whose `drop` unregisters it.
        unsafe { staging.driver.register(host, len) }.inspect_err(|_| {
            // SAFETY: nothing has used the memory.
            unsafe { staging.driver.free(mirror) };
        })?;
        staging.mirror = mirror;
        staging.start_reaper()?;
        Ok(Self(Arc::new(staging)))
    }
}

impl Staging {
    fn start_reaper(&self) -> Result<(), CudaError> {
        let (sender, receiver) = channel();
        let driver = Arc::clone(&self.driver);
        let failure = Arc::clone(&self.failure);
        let named = thread::Builder::new().name("packds-cuda".to_owned());
        let thread = named.spawn(move || reap(driver.as_ref(), &receiver, &failure));
        let thread = thread.map_err(|error| CudaError::Use(format!("cannot start a thread: {error}")))?;
        *lock(&self.thread) = Some(thread);
        *lock(&self.reaper) = Some(sender);
        Ok(())
    }

    /// Queues the work that brings a slot to its part of the mirror, after earlier reads of that part. Then records
    /// `uploaded`.
    fn upload<T>(&self, events: &mut SlotEvents, bring: impl FnOnce() -> Result<T, CudaError>) -> Result<T, CudaError> {
        if events.is_emitted {
            match self.images {
                // A decoder may write before the stream reaches the batch.
                // SAFETY: the staging owns the event.
                Images::Files(_) => unsafe { self.driver.synchronize(events.emitted)? },
                // SAFETY: the staging owns the stream and the event.
                _ => unsafe { self.driver.wait_for(self.copies, events.emitted)? },
            }
            events.is_emitted = false;
        }
        let brought = bring();
        // This is necessary even after an error, because work may be queued.
        // SAFETY: the staging owns the event and the stream.
        let recorded = unsafe { self.driver.record(events.uploaded, self.copies) };
        if brought.is_err() {
            // Wait before releasing the slot. After an error, the driver has no queued work.
            // SAFETY: as above.
            let _ = unsafe { self.driver.synchronize(events.uploaded) };
        }
        brought.and_then(|brought| recorded.map(|()| brought))
    }

    /// Queues the copy of the first `len` bytes of a slot. `elsewhere` is an offset and the bytes that replace the
    /// slot's contents from there on.
    fn copy_slot(&self, slot: &SlotRef, len: usize, elsewhere: (usize, &[u8])) -> Result<(), CudaError> {
        let bytes = slot.get(..len).unwrap_or(slot);
        let (offset, other) = elsewhere;
        let end = offset.saturating_add(other.len());
        let parts = [(0, bytes.get(..offset)), (offset, Some(other)), (end, bytes.get(end..))];
        for (start, part) in parts {
            let part = part.ok_or_else(outside)?;
            // SAFETY: the bytes are in the arena or in the file. Both are registered, and the bytes do not change: the
            // caller keeps `slot` until `uploaded` has happened, and nobody writes the file, which is kept as long as
            // the staging. This part of the mirror is used by this slot's copies, which the stream orders, and by the
            // work that `emitted` marks, which the stream waits for.
            unsafe { self.copy(part, self.mirror_of(slot.number()).plus(to_u64(start)))? };
        }
        Ok(())
    }

    /// Queues a copy to the device, in pieces.
    ///
    /// # Safety
    /// As for [`Driver::copy_in`].
    unsafe fn copy(&self, bytes: &[u8], mut to: DevicePtr) -> Result<(), CudaError> {
        for piece in bytes.chunks(PIECE) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.driver.copy_in(piece.as_ptr(), to, piece.len(), self.copies)? };
            to = to.plus(to_u64(piece.len()));
        }
        Ok(())
    }

    /// Makes the reaper wait until a copy is done.
    fn send(&self, sent: Sent) -> Result<(), CudaError> {
        let reaper = lock(&self.reaper);
        let sent = reaper.as_ref().and_then(|reaper| reaper.send(sent).ok());
        sent.ok_or_else(|| CudaError::Use("the thread packds-cuda has ended".to_owned()))
    }

    /// Records the first failure. Copying stops after it.
    fn failed(&self, error: CudaError) -> DeviceError {
        lock(&self.failure).get_or_insert(error.clone());
        error.into()
    }

    /// Returns the failure that stopped copying, if any.
    fn check(&self) -> Result<(), CudaError> {
        lock(&self.failure).clone().map_or(Ok(()), Err)
    }

    fn mirror_of(&self, number: usize) -> DevicePtr {
        self.mirror.plus(to_u64(number).saturating_mul(self.mirror_step))
    }

    fn events_of(&self, number: usize) -> Result<MutexGuard<'_, SlotEvents>, CudaError> {
        let events = self.slots.get(number).map(lock);
        events.ok_or_else(|| CudaError::Use(format!("slot {number} belongs to another ring")))
    }
}

/// Releases slots once their copies are complete, in the order of the copies.
fn reap(driver: &dyn Driver, sent: &mpsc::Receiver<Sent>, failure: &Mutex<Option<CudaError>>) {
    for Sent { slot, uploaded, arrival } in sent {
        // SAFETY: the events exist until this thread has ended.
        if let Err(error) = unsafe { driver.synchronize(uploaded) } {
            // Record the failure before the slot may be written again.
            lock(failure).get_or_insert(error);
        }
        drop(slot);
        arrival.get_or_init(|| ());
    }
}

impl Ring {
    /// Submits a slot. `elsewhere` is an offset and the bytes that replace the slot's contents from there on.
    fn queue(&self, slot: SlotRef, len: usize, elsewhere: (usize, &[u8])) -> Result<Box<dyn Transfer>, DeviceError> {
        self.queue_with(slot.number(), |staging| staging.copy_slot(&slot, len, elsewhere))?;
        self.watch(slot)
    }

    /// Brings slot `number` to the mirror with the work that `bring` queues.
    fn queue_with<T>(
        &self,
        number: usize,
        bring: impl FnOnce(&Staging) -> Result<T, CudaError>,
    ) -> Result<T, DeviceError> {
        let staging = &self.0;
        staging.check()?;
        let mut events = staging.events_of(number)?;
        let queued = staging.upload(&mut events, || bring(staging));
        queued.map_err(|error| staging.failed(error))
    }

    /// Keeps a slot until the work that brings it to the mirror is complete.
    fn watch(&self, slot: SlotRef) -> Result<Box<dyn Transfer>, DeviceError> {
        let staging = &self.0;
        let number = slot.number();
        let uploaded = staging.events_of(number)?.uploaded;
        let arrival = Arrival::default();
        let sent = staging.send(Sent { slot, uploaded, arrival: Arc::clone(&arrival) });
        sent.map_err(|error| staging.failed(error))?;
        Ok(Box::new(Upload { staging: Arc::clone(staging), number, arrival }))
    }
}

impl Receiver for Ring {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn recycle(&self, slot: &mut SlotMut) {
        if let Images::Window(window) = &self.0.images {
            window.recycle(slot.number());
        }
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        self.queue(slot, len, (0, &[]))
    }
}

/// A ring, and what batches need besides its slots: the registered file, the window of chunks, or the decoder of files.
#[derive(Debug)]
pub(crate) struct RingWith<T> {
    /// Declared first, because the other fields must outlive it.
    ring: Ring,
    with: Arc<T>,
}

impl<T> RingWith<T> {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        arena: Arc<Arena>,
        with: Arc<T>,
        images: fn(Arc<T>) -> Images,
    ) -> Result<Self, CudaError> {
        let ring = Ring::new(driver, arena, images(Arc::clone(&with)))?;
        Ok(Self { ring, with })
    }
}

impl<T: fmt::Debug + Send + Sync> Receiver for RingWith<T> {
    fn name(&self) -> &'static str {
        self.ring.name()
    }

    fn recycle(&self, slot: &mut SlotMut) {
        self.ring.recycle(slot);
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        self.ring.submit(slot, len)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        *lock(&self.reaper) = None;
        if let Some(thread) = lock(&self.thread).take() {
            // The thread has seen the end of every copy. If it panicked, that can no longer be reported to anyone.
            let _ = thread.join();
        }
        let driver = &self.driver;
        if let Images::Window(window) = &self.images {
            window.settle();
        }
        for slot in &self.slots {
            let events = *lock(slot);
            // SAFETY: both events exist. When `emitted` has happened, all work that reads the mirror is done. No more
            // is queued, because any code that queues it holds a reference to the staging. Errors mean that the driver
            // has no queued work any more.
            let _ = unsafe { driver.synchronize(events.uploaded) };
            // SAFETY: as above.
            let _ = unsafe { driver.synchronize(events.emitted) };
            // SAFETY: the event is not used again.
            unsafe { driver.drop_event(events.uploaded) };
            // SAFETY: the event is not used again.
            unsafe { driver.drop_event(events.emitted) };
        }
        if self.mirror != DevicePtr(0) {
            // SAFETY: all copies are done, see above.
            unsafe { driver.unregister(self.arena.address().0) };
            // SAFETY: all work that read or wrote the memory is done, see above.
            unsafe { driver.free(self.mirror) };
        }
        // SAFETY: the stream is not used again.
        unsafe { driver.drop_stream(self.copies) };
    }
}

/// A batch that is being copied to the GPU, or has been copied.
#[derive(Debug)]
pub struct Upload {
    staging: Arc<Staging>,
    number: usize,
    arrival: Arrival,
}

impl Transfer for Upload {
    fn is_done(&self) -> bool {
        self.arrival.get().is_some()
    }

    fn wait(&self) {
        self.arrival.wait();
    }
}

/// Queues work on `stream` that writes fields of a batch into the user's memory. `outputs` has an entry for each field,
/// in the order of [`Batch::fields`]: the field's address, or `None` to skip the field. Variable-size fields are always
/// skipped. This returns when the work is queued. The batch may then be dropped. Its slot is refilled once the GPU no
/// longer needs it.
///
/// Images that the device finishes are written as their [`Finish`] describes. Other fields are copied unchanged.
///
/// # Safety
/// Each address is in memory of this GPU that `stream` may use, with space for the field's values of all samples in the
/// batch. Work that is queued on the stream after this call runs after the writing. All other use of the memory must
/// also come after it. The stream exists.
///
/// # Errors
/// [`CudaError::Use`] if the batch belongs to another device or `outputs` has a wrong length, [`CudaError::Call`] if a
/// driver call fails.
pub unsafe fn finish(batch: &Batch, stream: Stream, outputs: &[Option<DevicePtr>]) -> Result<(), CudaError> {
    let transfer: &dyn Any = batch.transfer();
    let Some(upload) = transfer.downcast_ref::<Upload>() else {
        return Err(CudaError::Use("the batch comes from a loader without a CUDA device".to_owned()));
    };
    if outputs.len() != batch.fields().len() {
        let (expected, found) = (batch.fields().len(), outputs.len());
        return Err(CudaError::Use(format!("expected an address for each of {expected} fields, found {found}")));
    }
    let staging = &upload.staging;
    staging.check()?;
    let mut events = staging.events_of(upload.number)?;
    // SAFETY: the caller guarantees that the stream exists, and the staging owns the event.
    unsafe { staging.driver.wait_for(stream, events.uploaded)? };
    if events.is_emitted {
        // An earlier call has already queued work, perhaps on another stream. Waiting for it here makes the `emitted`
        // that is recorded below mark the end of both calls' work.
        // SAFETY: as above.
        unsafe { staging.driver.wait_for(stream, events.emitted)? };
    }
    let queued = batch.fields().iter().zip(outputs).try_for_each(|(field, to)| {
        let Some(to) = to else { return Ok(()) };
        // SAFETY: the stream waits for the copy, `emitted` is recorded after the work that is queued here, and the
        // caller guarantees the output.
        unsafe { upload.write(batch, field, *to, stream) }
    });
    // This is necessary even after an error, because work may be queued.
    // SAFETY: the event and the stream exist.
    let recorded = unsafe { staging.driver.record(events.emitted, stream) };
    events.is_emitted = true;
    queued.and(recorded)
}

/// Like [`finish`] on the default stream, but waits until everything is written. Use it for memory that is not used on
/// streams.
///
/// # Safety
/// As for [`finish`]. Nobody uses the memory before this returns.
///
/// # Errors
/// As for [`finish`].
pub unsafe fn finish_and_wait(batch: &Batch, outputs: &[Option<DevicePtr>]) -> Result<(), CudaError> {
    // SAFETY: guaranteed by the caller. The default stream always exists.
    let queued = unsafe { finish(batch, Stream(0), outputs) };
    let transfer: &dyn Any = batch.transfer();
    let Some(upload) = transfer.downcast_ref::<Upload>() else { return queued };
    let emitted = upload.staging.events_of(upload.number)?.emitted;
    // This is necessary even after an error, because work may be queued.
    // SAFETY: the staging owns the event.
    let waited = unsafe { upload.staging.driver.synchronize(emitted) };
    queued.and(waited)
}

impl Upload {
    /// Queues the work that writes one field.
    ///
    /// # Safety
    /// As for [`finish`]. The slot's copy must already be queued.
    unsafe fn write(&self, batch: &Batch, field: &BatchField, to: DevicePtr, stream: Stream) -> Result<(), CudaError> {
        if field.shape.is_none() || batch.is_empty() {
            return Ok(());
        }
        let slot = self.staging.mirror_of(self.number);
        let at = |offset: usize| slot.plus(to_u64(offset));
        let from = at(field.offset());
        if let Some(finish) = &field.finish {
            let mut emission = emission(batch.len(), from, at(finish.offset()), finish, to)?;
            let changes = &finish.changes;
            if changes.n_patches > 0 {
                emission.patches = at(changes.patches(field.view));
                emission.n_patches = u32::try_from(changes.n_patches).unwrap_or(0);
            }
            if changes.mixes {
                emission.shares = at(changes.shares());
            }
            if changes.n_colors > 0 {
                emission.colors = at(changes.colors(field.view));
                emission.n_colors = u32::try_from(changes.n_colors).unwrap_or(0);
                emission.measures = changes.measures.into();
            }
            if let Some(windows) = &finish.windows {
                let lost = || CudaError::Use("the images belong to another device or tier".to_owned());
                let (images, tables) = match &self.staging.images {
                    Images::Files(plan) => (slot, Some(&plan.tables)),
                    images => images.on_gpu().ok_or_else(lost)?,
                };
                emission.source = images;
                if let Some(resampling) = &windows.resampling {
                    let tables = tables.ok_or_else(lost)?;
                    if !tables.resampling.is_like(resampling) {
                        return Err(lost());
                    }
                    emission.taps = tables.taps;
                }
                emission.frames = at(windows.offset(field.view));
                (emission.padding, emission.color) = padding_word(windows.padding);
            }
            // SAFETY: guaranteed by the caller. The table and the pixels or frames are in the slot's part of the
            // mirror. Frames refer to pictures that stay on the GPU until `emitted` has happened.
            return unsafe { self.staging.driver.emit(&emission, stream) };
        }
        let bytes = batch.len().saturating_mul(field.n_bytes());
        // SAFETY: guaranteed by the caller. The bytes are in the slot's part of the mirror.
        unsafe { self.staging.driver.copy_within(from, to, bytes, stream) }
    }
}

/// The launch that finishes `n` whole pictures.
fn emission(
    n: usize,
    source: DevicePtr,
    table: DevicePtr,
    finish: &Finish,
    out: DevicePtr,
) -> Result<Emission, CudaError> {
    let (padding, color) = padding_word(Padding::Constant([0; 4]));
    let float = FloatType::named(finish.dtype.name());
    let too_many = |_| CudaError::Use(format!("{n} images are too many for one batch"));
    Ok(Emission {
        source,
        table,
        out,
        n: u32::try_from(n).map_err(too_many)?,
        width: finish.width,
        height: finish.height,
        channels: finish.channels,
        planar: planar(finish.layout),
        ty: type_word(float),
        padding,
        color,
        ..Emission::default()
    })
}

fn outside() -> CudaError {
    CudaError::Use("a part of a batch lies outside its slot".to_owned())
}

/// Locks a mutex, even if it is poisoned. A panic can only happen between complete updates, so the data is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
