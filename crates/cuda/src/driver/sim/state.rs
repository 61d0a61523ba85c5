//! The state of the simulated driver: its queues, events and memory. It executes queued steps and checks all rules.

use packds_system::{to_u64, to_usize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::launch::emit;
use super::memory::{address, checksum, copy, is_mapped, overlap};
use super::op::{Kind, Op};
use super::{FIRST_STREAM, Fault, MapFailure, POISON};
use crate::driver::{DevicePtr, Stream};
use crate::error::CudaError;

#[derive(Default)]
pub(super) struct State {
    pub(super) random: u64,
    pub(super) next: u64,
    pub(super) streams: BTreeMap<u64, VecDeque<Op>>,
    pub(super) events: BTreeMap<u64, Mark>,
    pub(super) allocated: BTreeMap<u64, Vec<u8>>,
    pub(super) registered: BTreeMap<u64, u64>,
    /// Registered memory that is read-only: mapped files.
    pub(super) maps: BTreeSet<u64>,
    /// How the registration of files and reads from them fail, if they should fail.
    pub(super) map_failure: Option<MapFailure>,
    pub(super) copied_from_maps: u64,
    /// Number of open files for reads into device memory.
    pub(super) files: usize,
    /// A text that makes decoders reject JPEG files in which it occurs.
    pub(super) refused_jpeg: Option<Vec<u8>>,
    /// Number of batches that contained rejected files.
    pub(super) refusals: u64,
    /// Whether decoders write pixels as soon as they are called, before their stream reaches the batch.
    pub(super) decodes_early: bool,
    /// Whether decoders fail in the middle of a batch.
    pub(super) fails_decoding: bool,
    /// Number of open decoders.
    pub(super) decoders: usize,
    /// Device memory that is being written by reads from files.
    pub(super) arriving: Vec<Range<u64>>,
    pub(super) read_directly: u64,
    pub(super) faults: Vec<Fault>,
    /// After this many calls, all further calls fail.
    pub(super) fails_after: Option<u64>,
    pub(super) calls: u64,
    pub(super) ends: bool,
}

/// How often an event was recorded, and which record has happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) recorded: u64,
    pub(super) happened: u64,
}

impl State {
    pub(super) fn push(&mut self, stream: Stream, kind: Kind) {
        if stream.0 >= FIRST_STREAM && !self.streams.contains_key(&stream.0) {
            self.faults.push(Fault::NoSuchHandle);
        }
        let number = self.number();
        let queue = self.streams.entry(stream.0).or_default();
        queue.push_back(Op { number, kind });
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn draw(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % below.max(1)
    }

    /// A random stream whose first step can run now.
    pub(super) fn ready(&mut self) -> Option<u64> {
        let can = |op: &Op| match op.kind {
            Kind::Wait { event, record } => {
                let mark = self.events.get(&event);
                mark.is_none_or(|mark| mark.happened >= record)
            }
            _ => true,
        };
        let streams = self.streams.iter();
        let ready = streams.filter(|(_, queue)| queue.front().is_some_and(can));
        let ready: Vec<u64> = ready.map(|(stream, _)| *stream).collect();
        let n = to_u64(ready.len());
        let at = to_usize(self.draw(n));
        ready.get(at).copied()
    }

    /// Registers memory. Like a real driver, rejects memory that is already registered.
    pub(super) fn register(&mut self, host: u64, bytes: u64) -> Result<(), CudaError> {
        let range = host..host + bytes;
        let mut all = self.registered.iter();
        if all.any(|(base, bytes)| overlap(&range, &(*base..base + bytes))) {
            return Err(CudaError::Call {
                call: "register",
                name: "SIMULATED".to_owned(),
                text: "the memory is already registered".to_owned(),
            });
        }
        self.registered.insert(host, bytes);
        Ok(())
    }

    /// All queued steps except this one.
    pub(super) fn others(&self, number: u64) -> impl Iterator<Item = &Op> {
        let all = self.streams.values().flatten();
        all.filter(move |op| op.number != number)
    }

    /// Whether queued work or a read from a file uses device memory.
    pub(super) fn is_in_use(&self, range: &Range<u64>) -> bool {
        let queued = self.others(0).any(|op| {
            let mut used = op.kind.reads();
            used.extend(op.kind.writes());
            used.iter().any(|used| overlap(used, range))
        });
        queued || self.arriving.iter().any(|used| overlap(used, range))
    }

    pub(super) fn is_allocated(&self, range: &Range<u64>) -> bool {
        let before = self.allocated.range(..=range.start).next_back();
        let end = before.map(|(base, memory)| base + to_u64(memory.len()));
        end.is_some_and(|end| range.end <= end)
    }

    /// Bytes from an address to the end of its allocation.
    pub(super) fn behind(&self, at: DevicePtr) -> u64 {
        let before = self.allocated.range(..=at.0).next_back();
        before.map_or(0, |(base, memory)| (base + address(memory.len())).saturating_sub(at.0))
    }

    /// Whether an address is in a registered mapping of a file.
    pub(super) fn is_of_map(&self, at: u64) -> bool {
        let before = self.registered.range(..=at).next_back();
        before.is_some_and(|(base, bytes)| self.maps.contains(base) && at < base + bytes)
    }

    pub(super) fn is_registered(&self, range: &Range<u64>) -> bool {
        let before = self.registered.range(..=range.start).next_back();
        before.is_some_and(|(base, bytes)| range.end <= base + bytes)
    }

    /// Records that a copy from a mapping has arrived. Corrupts it if that was requested.
    pub(super) fn arrived_from_map(&mut self, to: u64, bytes: u64) {
        self.copied_from_maps += bytes;
        if self.map_failure == Some(MapFailure::Garbled) {
            let garbage = [POISON];
            copy(address(garbage.as_ptr().expose_provenance()), to + bytes / 2, 1);
        }
    }

    /// Executes one step after checking all rules.
    pub(super) fn run(&mut self, op: &Op) {
        if let Some(written) = op.kind.writes() {
            let earlier = self.others(op.number).filter(|other| other.number < op.number);
            let clashes = earlier.flat_map(|other| {
                let mut uses = other.kind.reads();
                uses.extend(other.kind.writes());
                uses
            });
            let mut clashes = clashes.chain(self.arriving.iter().cloned());
            let clash = clashes.any(|used| overlap(&used, &written));
            drop(clashes);
            if clash {
                self.faults.push(Fault::WrittenTooEarly);
            }
        }
        if op.kind.reads().iter().any(|range| !self.is_allocated(range)) {
            self.faults.push(Fault::NotAllocated);
            return;
        }
        match op.kind {
            Kind::CopyIn { from, to, bytes, sum } => {
                if !self.is_allocated(&(to..to + bytes)) {
                    self.faults.push(Fault::NotAllocated);
                } else if !self.is_registered(&(from..from + bytes)) {
                    self.faults.push(Fault::NotRegistered);
                } else if self.is_of_map(from) && !is_mapped(&(from..from + bytes)) {
                    self.faults.push(Fault::UnmappedTooEarly);
                } else {
                    copy(from, to, bytes);
                    if checksum(to, bytes) != sum {
                        self.faults.push(Fault::ChangedUnderCopy);
                    }
                    if self.is_of_map(from) {
                        self.arrived_from_map(to, bytes);
                    }
                }
            }
            Kind::CopyWithin { from, to, bytes } => copy(from, to, bytes),
            Kind::Decode(file) => file.run(self),
            Kind::Emit(emission) => {
                let pictures = self.behind(emission.source);
                if let Err(error) = emit(&emission, pictures, self.behind(emission.taps)) {
                    self.faults.push(Fault::BadLaunch(error.to_string()));
                }
            }
            Kind::Record { event, record } => {
                if let Some(mark) = self.events.get_mut(&event) {
                    mark.happened = mark.happened.max(record);
                }
            }
            Kind::Wait { .. } => {}
        }
    }
}
