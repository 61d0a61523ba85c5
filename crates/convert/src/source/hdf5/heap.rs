//! Variable-length items. A dataset contains references to global heaps, which store the items uncompressed in the file.

use packds_system::to_u64;
use std::collections::HashMap;

use super::file::H5File;
use super::header::read;
use crate::error::ConvertError;
use crate::source::numbers::{u32_at, u64_at};
use crate::source::store::{RowPart, Span};

/// Size of a heap's header: `GCOL`, version, size.
const HEAD_BYTES: u64 = 16;
/// Size of an object's header: index, reference count, size.
const OBJECT_BYTES: u64 = 16;
/// Number of references read at a time.
const BAND_ROWS: usize = 1 << 16;

/// The locations of the items that the rows of `part` refer to. `number` is the file's index in a list of files.
pub(super) fn spans(file: &H5File, part: &RowPart, number: u32) -> Result<Vec<Span>, ConvertError> {
    let bad = |reason: String| ConvertError::malformed(&file.open.path, "", reason);
    let mut heaps: HashMap<u64, Heap> = HashMap::new();
    let mut spans = Vec::with_capacity(part.rows);
    let mut row = 0;
    while row < part.rows {
        let n = BAND_ROWS.min(part.rows - row);
        let at = part.offset.saturating_add(to_u64(row).saturating_mul(16));
        let bytes = part.file.bytes_at(at, to_u64(n).saturating_mul(16)).map_err(|e| bad(e.to_string()))?;
        for reference in bytes.chunks_exact(16) {
            let span = item(file, reference, &mut heaps, number).map_err(&bad)?;
            spans.push(span);
        }
        row += n;
    }
    Ok(spans)
}

/// The strings that `references` refer to, at most `most` bytes in total.
pub(super) fn texts(file: &H5File, references: &[u8], most: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut heaps: HashMap<u64, Heap> = HashMap::new();
    let (mut texts, mut room) = (Vec::new(), most);
    for reference in references.chunks_exact(16) {
        let span = item(file, reference, &mut heaps, 0)?;
        let left = usize::try_from(span.bytes).ok();
        let left = left.and_then(|bytes| room.checked_sub(bytes));
        room = left.ok_or_else(|| format!("the strings take more than {most} bytes"))?;
        texts.push(read(&file.open, span.offset, span.bytes)?);
    }
    Ok(texts)
}

/// The item that a reference points to. A reference holds the item's length, the heap's address and the item's index in the heap.
fn item(file: &H5File, reference: &[u8], heaps: &mut HashMap<u64, Heap>, number: u32) -> Result<Span, String> {
    let len = u32_at(reference, 0).map_or(0, u64::from);
    let address = u64_at(reference, 4).unwrap_or_default();
    let index = u32_at(reference, 12).unwrap_or_default();
    if len == 0 {
        return Ok(Span { file: number, offset: 0, bytes: 0 });
    }
    let heap = match heaps.entry(address) {
        std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::hash_map::Entry::Vacant(new) => {
            let at = address.checked_add(file.base);
            let at = at.ok_or_else(|| format!("the address of a heap is too large: {address}"))?;
            new.insert(Heap::read(file, at)?)
        }
    };
    let (offset, size) =
        heap.objects.get(&index).copied().ok_or_else(|| format!("the heap at {address} has no object {index}"))?;
    if size < len {
        return Err(format!("expected {len} bytes in object {index} of the heap at {address}, found {size}"));
    }
    Ok(Span { file: number, offset, bytes: len })
}

/// A global heap: the offset and length of each object.
struct Heap {
    objects: HashMap<u32, (u64, u64)>,
}

impl Heap {
    fn read(file: &H5File, at: u64) -> Result<Self, String> {
        let head = read(&file.open, at, HEAD_BYTES)?;
        if !head.starts_with(b"GCOL\x01") {
            let found = head.get(..5).unwrap_or_default().escape_ascii().to_string();
            return Err(format!("expected a heap at {at}, found \"{found}\""));
        }
        let size = u64_at(&head, 8).unwrap_or_default();
        let end = at.checked_add(size).filter(|end| *end <= file.open.bytes);
        let end = end.ok_or_else(|| format!("the heap of {size} bytes at {at} extends past the end of the file"))?;
        let mut objects = HashMap::new();
        let mut next = at + HEAD_BYTES;
        while end.saturating_sub(next) >= OBJECT_BYTES {
            let object = read(&file.open, next, OBJECT_BYTES)?;
            let index = u32::from(u16::from_le_bytes([object[0], object[1]]));
            // Object 0 is the free space after the last object.
            if index == 0 {
                break;
            }
            let len = u64_at(&object, 8).unwrap_or_default();
            let start = next + OBJECT_BYTES;
            let after = start.checked_add(len).filter(|after| *after <= end);
            let after = after.ok_or_else(|| {
                format!("object {index} ({len} bytes) of the heap at {at} extends past the end of the heap")
            })?;
            objects.insert(index, (start, len));
            // Objects are padded relative to the start of the heap, which may be at any offset.
            next = at + (after - at).next_multiple_of(8);
        }
        Ok(Self { objects })
    }
}
