//! The parts of a pack's layout that direct reads need: buffer sizes, and positions of items in a chunk.

use packds_format::FormatError;
use packds_system::{to_u64, to_usize};

use crate::Pack;
use crate::arena::SLOT_ALIGN;

/// Minimum size of a slot for samples. Several samples share a slot.
const SAMPLES_SLOT_BYTES: usize = 1 << 20;
/// Assumed compression ratio for items of unknown size.
const ASSUMED_RATIO: usize = 2;

/// The sizes and positions that direct reads of a pack need. They are the same for all epochs.
#[derive(Debug)]
pub(super) struct Layout {
    /// The positions of each body field's items in a chunk. Only for fixed-size uncompressed fields in strided chunks.
    pub(super) places: Vec<Option<Place>>,
    /// Whether a requested body field is compressed.
    pub(super) compressed: bool,
    /// Size of the largest chunk, extended to multiples of 4096 in the file.
    pub(super) chunk_slot: usize,
    /// Decompressed size of the requested fields in the largest chunk.
    pub(super) decoded: usize,
    /// Size of a slot for single samples.
    pub(super) samples_slot: usize,
}

/// The positions of a field's items in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Place {
    start: usize,
    item_bytes: usize,
}

impl Place {
    /// The range in the chunk of `n` items that start at `index`: start and length.
    #[inline]
    pub(in super::super) fn of(&self, index: u32, n: u32) -> Option<(usize, usize)> {
        let within = to_usize(index).checked_mul(self.item_bytes)?;
        let len = to_usize(n).checked_mul(self.item_bytes)?;
        Some((self.start.checked_add(within)?, len))
    }
}

impl Layout {
    pub(super) fn new(pack: &Pack, positions: &[usize]) -> Result<Self, FormatError> {
        let body: Vec<_> = pack.schema().body().map(|(_, field)| field).collect();
        let out = |position: &usize| FormatError::OutOfRange {
            what: "body field",
            index: to_u64(*position),
            len: to_u64(body.len()),
        };
        let mut compressed = false;
        let mut sample_bytes = Some(0_u64);
        for position in positions {
            let field = body.get(*position).ok_or_else(|| out(position))?;
            compressed |= !field.codec.is_none();
            sample_bytes = sample_bytes.zip(field.item_bytes()).and_then(|(sum, bytes)| sum.checked_add(bytes));
        }
        let chunk_slot = slot_for(pack.body_sizes()?.1);
        let decoded = match sample_bytes.and_then(|bytes| {
            let samples = u64::from(pack.geometry().chunk_samples()).min(pack.n_samples());
            bytes.checked_mul(samples).map(to_usize)
        }) {
            _ if !compressed => 0,
            Some(bytes) => bytes,
            None => chunk_slot.saturating_mul(ASSUMED_RATIO),
        };
        Ok(Self {
            places: places(pack)?,
            compressed,
            chunk_slot,
            decoded,
            samples_slot: chunk_slot.min(largest_item(pack, chunk_slot).max(SAMPLES_SLOT_BYTES)),
        })
    }
}

/// The size of a slot for `len` bytes of the file at any offset.
fn slot_for(len: u64) -> usize {
    (to_usize(len) + SLOT_ALIGN - 1).next_multiple_of(SLOT_ALIGN).max(SLOT_ALIGN)
}

/// The size of a slot for any item. If it is unknown, the size of a chunk.
fn largest_item(pack: &Pack, chunk_slot: usize) -> usize {
    let mut largest = 0;
    for (_, field) in pack.schema().body() {
        match field.item_bytes() {
            Some(bytes) => largest = largest.max(slot_for(bytes)),
            None => return chunk_slot,
        }
    }
    largest
}

pub(in super::super) fn places(pack: &Pack) -> Result<Vec<Option<Place>>, FormatError> {
    let sizes = pack.schema().body().map(|(_, field)| field.item_bytes());
    let Some(parts) = pack.strided_parts()? else {
        return Ok(sizes.map(|_| None).collect());
    };
    let place = |(part, item_bytes): (&packds_format::PartEntry, Option<u64>)| {
        Some(Place { start: to_usize(part.offset), item_bytes: to_usize(item_bytes?) })
    };
    Ok(parts.iter().zip(sizes).map(place).collect())
}
