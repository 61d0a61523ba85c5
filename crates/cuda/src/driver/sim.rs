//! A driver without a GPU, in host memory. Streams execute their work after random delays, in any order that events
//! allow.
//!
//! Its device memory is memory of the process, filled with a poison value when it is allocated and freed. The driver
//! records every broken rule: writes while queued work may still read the data, changes to the source of a copy, and
//! frees that come too early.

mod direct;
mod jpeg;
mod launch;
mod memory;
mod op;
mod state;

use packds_system::{nanos, to_u64, to_usize};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::direct::SimFile;
use self::jpeg::SimJpeg;
use self::memory::{address, bytes_at, checksum, is_mapped, overlap, place};
use self::op::{Kind, Op};
use self::state::{Mark, State};
use super::{DevicePtr, DirectFile, Driver, Event, JpegDecoder, Memory, Stream};
use crate::emission::Emission;
use crate::error::CudaError;

/// The fill value of memory that must not be read.
const POISON: u8 = 0xDD;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Host memory changed while a copy from it was queued.
    ChangedUnderCopy,
    /// A copy reads host memory that is not registered.
    NotRegistered,
    /// Memory was written while earlier queued work still had to read or write it.
    WrittenTooEarly,
    /// Memory was freed or unregistered while queued work used it.
    GivenBackTooEarly,
    /// A registered mapping of a file was unmapped before it was unregistered.
    UnmappedTooEarly,
    /// Device memory was copied out while queued work still had to write it.
    ReadTooEarly,
    /// A device address is not allocated.
    NotAllocated,
    /// A handle does not exist.
    NoSuchHandle,
    /// Invalid launch parameters.
    BadLaunch(String),
}

/// A simulated driver.
pub struct SimDriver {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    bytes: u64,
    node: Option<u32>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    longest: Duration,
}

/// How a driver fails to handle files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapFailure {
    /// Mapped files cannot be registered, and files cannot be read into device memory.
    Refused,
    /// Data from files arrives corrupted.
    Garbled,
}

impl SimDriver {
    /// A device with this much memory. Each step takes up to `longest`, randomized by `seed`.
    #[must_use]
    pub fn new(seed: u64, longest: Duration, bytes: u64) -> Self {
        let state = State { random: seed, next: 1, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), longest });
        let engine = Arc::clone(&shared);
        let worker = thread::spawn(move || engine.work());
        Self { shared, worker: Some(worker), bytes, node: None }
    }

    /// The same device, but close to this NUMA node.
    #[must_use]
    pub fn on_node(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// The same device, but it fails to handle files in this way.
    #[must_use]
    pub fn with_map_failure(self, failure: MapFailure) -> Self {
        self.shared.lock().map_failure = Some(failure);
        self
    }

    /// Number of bytes of file mappings that are currently registered.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        let state = self.shared.lock();
        let maps = state.registered.iter();
        maps.filter(|(base, _)| state.maps.contains(base)).map(|(_, bytes)| bytes).sum()
    }

    /// Bytes that were copied from registered mappings.
    #[must_use]
    pub fn copied_from_maps(&self) -> u64 {
        self.shared.lock().copied_from_maps
    }

    /// Bytes that were read from files into device memory.
    #[must_use]
    pub fn read_directly(&self) -> u64 {
        self.shared.lock().read_directly
    }

    /// Makes every driver call fail, except the next `calls`.
    pub fn fail_after(&self, calls: u64) {
        let mut state = self.shared.lock();
        state.fails_after = Some(state.calls + calls);
    }

    /// Makes JPEG decoders reject files that contain this text.
    pub fn refuse_jpeg_with(&self, text: &[u8]) {
        self.shared.lock().refused_jpeg = Some(text.to_vec());
    }

    /// Makes JPEG decoders write pixels as soon as they are called, even for batches that they reject, and again when
    /// their stream reaches the batch.
    pub fn decode_early(&self) {
        self.shared.lock().decodes_early = true;
    }

    /// Makes JPEG decoders fail after queuing half of a batch. Everything else still works.
    pub fn fail_decoding(&self) {
        self.shared.lock().fails_decoding = true;
    }

    /// Number of batches that contained rejected files.
    #[must_use]
    pub fn refused_jpeg(&self) -> u64 {
        self.shared.lock().refusals
    }

    /// The broken rules so far.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.lock().faults.clone()
    }

    /// Number of allocations, streams, events, files, decoders and registrations that have not been released.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let state = self.shared.lock();
        let named = state.streams.keys().filter(|stream| **stream >= FIRST_STREAM);
        let kept = state.allocated.len() + state.registered.len() + state.events.len();
        kept + state.files + state.decoders + named.count()
    }

    /// The current contents of device memory. `None` if it is not allocated.
    #[must_use]
    pub fn read(&self, from: DevicePtr, bytes: usize) -> Option<Vec<u8>> {
        let state = self.shared.lock();
        let (base, memory) = state.allocated.range(..=from.0).next_back()?;
        let start = place(from.0 - base);
        memory.get(start..start.checked_add(bytes)?).map(<[u8]>::to_vec)
    }

    /// Waits until all queued work is complete.
    pub fn finish_all(&self) {
        let mut state = self.shared.lock();
        while state.streams.values().any(|queue| !queue.is_empty()) {
            state = self.shared.wait(state);
        }
    }

    fn queue(&self, name: &'static str, stream: Stream, kind: Kind) -> Result<(), CudaError> {
        let mut state = self.shared.call(name)?;
        state.push(stream, kind);
        self.shared.changed.notify_all();
        Ok(())
    }
}

/// The first number of the driver's own streams. Lower numbers are the user's streams, which exist from their first
/// use.
const FIRST_STREAM: u64 = 1 << 32;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a driver call and locks the state. Returns an error if this call should fail.
    fn call(&self, name: &'static str) -> Result<MutexGuard<'_, State>, CudaError> {
        let mut state = self.lock();
        state.calls += 1;
        if state.fails_after.is_some_and(|after| state.calls > after) {
            // Queued work is dropped, as after an error of a real GPU.
            state.streams.values_mut().for_each(VecDeque::clear);
            state.events.values_mut().for_each(|mark| mark.happened = mark.recorded);
            self.changed.notify_all();
            return Err(CudaError::Call {
                call: name,
                name: "SIMULATED".to_owned(),
                text: "the simulated device failed".to_owned(),
            });
        }
        Ok(state)
    }

    /// A random duration for a step.
    fn delay(&self, state: &mut State) -> Duration {
        let most = nanos(self.longest) / 1000;
        Duration::from_micros(state.draw(most.saturating_add(1)))
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let Some(stream) = state.ready() else {
                if state.ends {
                    return;
                }
                state = self.wait(state);
                continue;
            };
            let delay = self.delay(&mut state);
            drop(state);
            thread::sleep(delay);
            state = self.lock();
            let first = state.streams.get(&stream).and_then(|queue| queue.front());
            // The step stays in its queue until it is complete, so it counts as unfinished.
            if let Some(op) = first.copied() {
                state.run(&op);
                if let Some(queue) = state.streams.get_mut(&stream) {
                    queue.pop_front();
                }
            }
            self.changed.notify_all();
        }
    }
}

impl Driver for SimDriver {
    fn device_name(&self) -> &str {
        "simulated GPU"
    }

    fn numa_node(&self) -> Option<u32> {
        self.node
    }

    fn memory(&self) -> Result<Memory, CudaError> {
        let state = self.shared.call("memory")?;
        let used = state.allocated.values().map(Vec::len).sum::<usize>();
        let used = to_u64(used);
        Ok(Memory { free: self.bytes.saturating_sub(used), total: self.bytes })
    }

    fn allocate(&self, bytes: u64, what: &'static str) -> Result<DevicePtr, CudaError> {
        let free = self.memory()?.free;
        let mut state = self.shared.call("allocate")?;
        let len = to_usize(bytes);
        if bytes > free {
            return Err(CudaError::Memory { bytes, what });
        }
        let memory = vec![POISON; len.max(1)];
        let address = address(memory.as_ptr().expose_provenance());
        state.allocated.insert(address, memory);
        Ok(DevicePtr(address))
    }

    unsafe fn free(&self, memory: DevicePtr) {
        let mut state = self.shared.lock();
        let Some(mut freed) = state.allocated.remove(&memory.0) else {
            state.faults.push(Fault::NoSuchHandle);
            return;
        };
        let range = memory.0..memory.0 + address(freed.len());
        if state.is_in_use(&range) {
            state.faults.push(Fault::GivenBackTooEarly);
        }
        freed.fill(POISON);
    }

    unsafe fn register(&self, host: *const u8, bytes: usize) -> Result<(), CudaError> {
        let mut state = self.shared.call("register")?;
        state.register(address(host.expose_provenance()), address(bytes))
    }

    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<(), CudaError> {
        let mut state = self.shared.call("register_read_only")?;
        if state.map_failure == Some(MapFailure::Refused) {
            let text = "the simulated device cannot register read-only memory";
            return Err(CudaError::Use(text.to_owned()));
        }
        let host = address(host.expose_provenance());
        state.register(host, address(bytes))?;
        state.maps.insert(host);
        Ok(())
    }

    unsafe fn unregister(&self, host: *const u8) {
        let mut state = self.shared.lock();
        let host = address(host.addr());
        let Some(bytes) = state.registered.remove(&host) else {
            state.faults.push(Fault::NoSuchHandle);
            return;
        };
        let range = host..host + bytes;
        if state.maps.remove(&host) && !is_mapped(&range) {
            state.faults.push(Fault::UnmappedTooEarly);
        }
        let reads = |op: &Op| op.kind.reads_host().is_some_and(|r| overlap(&r, &range));
        if state.others(0).any(reads) {
            state.faults.push(Fault::GivenBackTooEarly);
        }
    }

    fn stream(&self) -> Result<Stream, CudaError> {
        let mut state = self.shared.call("stream")?;
        let number = FIRST_STREAM + state.number();
        state.streams.insert(number, VecDeque::new());
        Ok(Stream(number))
    }

    unsafe fn drop_stream(&self, stream: Stream) {
        let mut state = self.shared.lock();
        match state.streams.remove(&stream.0) {
            None => state.faults.push(Fault::NoSuchHandle),
            Some(queue) if !queue.is_empty() => state.faults.push(Fault::GivenBackTooEarly),
            Some(_) => {}
        }
    }

    fn event(&self) -> Result<Event, CudaError> {
        let mut state = self.shared.call("event")?;
        let number = state.number();
        state.events.insert(number, Mark::default());
        Ok(Event(number))
    }

    unsafe fn drop_event(&self, event: Event) {
        let mut state = self.shared.lock();
        if state.events.remove(&event.0).is_none() {
            state.faults.push(Fault::NoSuchHandle);
        }
    }

    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), CudaError> {
        let mut state = self.shared.call("record")?;
        let Some(mark) = state.events.get_mut(&event.0) else {
            state.faults.push(Fault::NoSuchHandle);
            return Ok(());
        };
        mark.recorded += 1;
        let record = mark.recorded;
        let event = event.0;
        state.push(stream, Kind::Record { event, record });
        self.shared.changed.notify_all();
        Ok(())
    }

    unsafe fn wait_for(&self, stream: Stream, event: Event) -> Result<(), CudaError> {
        let mut state = self.shared.call("wait_for")?;
        let Some(mark) = state.events.get(&event.0).copied() else {
            state.faults.push(Fault::NoSuchHandle);
            return Ok(());
        };
        let (event, record) = (event.0, mark.recorded);
        state.push(stream, Kind::Wait { event, record });
        self.shared.changed.notify_all();
        Ok(())
    }

    unsafe fn has_happened(&self, event: Event) -> Result<bool, CudaError> {
        let state = self.shared.call("has_happened")?;
        let mark = state.events.get(&event.0);
        Ok(mark.is_none_or(|mark| mark.happened >= mark.recorded))
    }

    unsafe fn synchronize(&self, event: Event) -> Result<(), CudaError> {
        let mut state = self.shared.call("synchronize")?;
        let wanted = state.events.get(&event.0).map_or(0, |mark| mark.recorded);
        while state.events.get(&event.0).is_some_and(|mark| mark.happened < wanted) {
            state = self.shared.wait(state);
        }
        Ok(())
    }

    unsafe fn copy_in(&self, from: *const u8, to: DevicePtr, bytes: usize, stream: Stream) -> Result<(), CudaError> {
        let from = address(from.expose_provenance());
        let bytes = address(bytes);
        let kind = Kind::CopyIn { from, to: to.0, bytes, sum: checksum(from, bytes) };
        self.queue("copy_in", stream, kind)
    }

    unsafe fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), CudaError> {
        let mut state = self.shared.call("copy_out")?;
        let range = from.0..from.0 + address(to.len());
        let writes = |op: &Op| op.kind.writes().is_some_and(|w| overlap(&w, &range));
        if state.others(0).any(writes) {
            state.faults.push(Fault::ReadTooEarly);
        }
        if state.is_allocated(&range) {
            to.copy_from_slice(bytes_at(from.0, address(to.len())));
        } else {
            state.faults.push(Fault::NotAllocated);
        }
        Ok(())
    }

    unsafe fn copy_within(
        &self,
        from: DevicePtr,
        to: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaError> {
        let kind = Kind::CopyWithin { from: from.0, to: to.0, bytes: address(bytes) };
        self.queue("copy_within", stream, kind)
    }

    fn open_direct(&self, file: File) -> Result<Box<dyn DirectFile>, CudaError> {
        Ok(Box::new(SimFile::open(&self.shared, file)?))
    }

    fn open_jpeg(&self) -> Result<Box<dyn JpegDecoder>, CudaError> {
        Ok(Box::new(SimJpeg::open(&self.shared)?))
    }

    unsafe fn emit(&self, emission: &Emission, stream: Stream) -> Result<(), CudaError> {
        self.queue("emit", stream, Kind::Emit(*emission))
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take() {
            // If the worker panicked, its work never ends, so a test fails.
            let _ = worker.join();
        }
    }
}

impl fmt::Debug for SimDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDriver").finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
