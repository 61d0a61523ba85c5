//! The arrays of a message in memory. Large values may be skipped and later read in place from the file.

use arrow_buffer::Buffer;
use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Schema};
use packds_system::to_usize;

use super::frames::{Frame, MAX_BODY_BYTES};
use crate::source::store::OpenFile;

/// Minimum size, in bytes, of values that are skipped. Shorter values are read with the rest, because skipping costs an extra read.
const MIN_GAP_BYTES: u64 = 256 << 10;
/// Maximum nesting of a column's type.
const MAX_LEVELS: usize = 64;

/// The checked buffer locations of a batch.
pub(super) struct Buffers {
    /// The offset in the body and the length of each buffer.
    places: Vec<(u64, u64)>,
    compressed: bool,
}

impl Buffers {
    /// Checks the buffers of a batch with a body of `bytes` bytes.
    pub(super) fn of(batch: &RecordBatch<'_>, bytes: u64) -> Result<Self, String> {
        let mut places = Vec::new();
        for buffer in batch.buffers().into_iter().flatten() {
            let place = u64::try_from(buffer.offset()).ok();
            let place = place.zip(u64::try_from(buffer.length()).ok());
            let place = place.filter(|(offset, len)| offset.checked_add(*len).is_some_and(|end| end <= bytes));
            places.push(place.ok_or_else(|| {
                let (offset, len) = (buffer.offset(), buffer.length());
                format!("an array of {len} bytes at {offset} extends past the end of the body ({bytes} bytes)")
            })?);
        }
        let compressed = batch.compression().is_some();
        Ok(Self { places, compressed })
    }

    /// Reads the body of `frame`. The values of the columns in `in_place` are skipped and left as zeros.
    pub(super) fn read(
        &self,
        file: &OpenFile,
        frame: &Frame,
        schema: &Schema,
        in_place: &[(usize, Option<usize>)],
    ) -> Result<Buffer, String> {
        let gaps = if self.compressed { Vec::new() } else { self.gaps(schema, in_place) };
        let len = usize::try_from(frame.bytes).map_err(|_| "it is too large for this machine".to_owned())?;
        // Untouched zero pages take no memory. The allocation is tested first, because a failed allocation would abort the program.
        if !has_room(len) {
            return Err(format!("there is not enough memory for its {len} bytes"));
        }
        let mut body = vec![0_u8; len];
        let mut at = 0_u64;
        for (offset, len) in gaps.into_iter().chain([(frame.bytes, 0)]) {
            read_into(file, frame.offset, at, offset, &mut body)?;
            at = offset.saturating_add(len);
        }
        self.check_sizes(&body)?;
        Ok(Buffer::from_vec(body))
    }

    /// The byte ranges to skip, in order.
    fn gaps(&self, schema: &Schema, in_place: &[(usize, Option<usize>)]) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut first = 0_usize;
        for (column, field) in schema.fields().iter().enumerate() {
            let Some(count) = buffer_count(field.data_type(), 0) else {
                // The number of buffers is unknown, so later columns cannot be located.
                break;
            };
            let wanted = in_place.iter().find(|(idx, _)| *idx == column);
            if let Some((_, child)) = wanted
                && let Some(last) = values_of(field.data_type(), *child)
                && let Some(&(offset, len)) = self.places.get(first.saturating_add(last))
                && len >= MIN_GAP_BYTES
            {
                gaps.push((offset, len));
            }
            first = first.saturating_add(count);
        }
        gaps.sort_unstable();
        gaps
    }

    /// Checks the unpacked sizes stated by compressed arrays, because the library allocates them without checking.
    fn check_sizes(&self, body: &[u8]) -> Result<(), String> {
        let mut sum = 0_u64;
        for &(offset, len) in self.places.iter().filter(|_| self.compressed) {
            let start = to_usize(offset);
            let said = body.get(start..start.saturating_add(8));
            let said = said.filter(|_| len >= 8);
            let said = said.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            let said = said.map_or(0, i64::from_le_bytes);
            sum = sum.saturating_add(said.max(0).cast_unsigned());
        }
        if sum > MAX_BODY_BYTES {
            return Err(format!("its arrays unpack to {sum} bytes: write it with smaller record batches"));
        }
        // The data exists twice: once unpacked, once split into columns.
        let twice = to_usize(sum.saturating_mul(2));
        if !has_room(twice) {
            return Err(format!(
                "its arrays unpack to {sum} bytes, and packds needs twice that in free memory: write it with smaller record batches"
            ));
        }
        Ok(())
    }
}

/// Whether this many bytes can be allocated. If not, the library's own allocation would abort the program.
fn has_room(bytes: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let is_there = room.try_reserve_exact(bytes).is_ok();
    // Keeps the compiler from removing the unused allocation.
    std::hint::black_box(&mut room);
    is_there
}

/// Reads the body's bytes `from..to`.
fn read_into(file: &OpenFile, body_offset: u64, from: u64, to: u64, body: &mut [u8]) -> Result<(), String> {
    let Some(room) = body.get_mut(to_usize(from)..to_usize(to)) else {
        // The arrays overlap. The library reports this error.
        return Ok(());
    };
    let offset = body_offset.saturating_add(from);
    let read = file.file().and_then(|file| std::os::unix::fs::FileExt::read_exact_at(&*file, room, offset));
    read.map_err(|e| e.to_string())
}

/// Number of buffers of a column. `None` if the type does not determine it.
fn buffer_count(data_type: &DataType, level: usize) -> Option<usize> {
    if level > MAX_LEVELS {
        return None;
    }
    let child = |data_type: &DataType| buffer_count(data_type, level + 1);
    match data_type {
        DataType::Null => Some(0),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Some(3),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            child(field.data_type())?.checked_add(2)
        }
        DataType::FixedSizeList(field, _) => child(field.data_type())?.checked_add(1),
        DataType::Struct(fields) => {
            fields.iter().try_fold(1_usize, |sum, field| sum.checked_add(child(field.data_type())?))
        }
        DataType::Dictionary(..) | DataType::FixedSizeBinary(_) | DataType::Boolean => Some(2),
        leaf if leaf.is_primitive() => Some(2),
        _ => None,
    }
}

/// The buffer with the values of a column that is read in place. `child` selects the child of a struct that holds the bytes.
fn values_of(data_type: &DataType, child: Option<usize>) -> Option<usize> {
    match (data_type, child) {
        (DataType::Struct(fields), Some(child)) => {
            let before = fields
                .iter()
                .take(child)
                .try_fold(1_usize, |sum, field| sum.checked_add(buffer_count(field.data_type(), 1)?))?;
            before.checked_add(values_of(fields.get(child)?.data_type(), None)?)
        }
        (
            DataType::Binary
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..),
            None,
        ) if has_bytes(data_type) => buffer_count(data_type, 0)?.checked_sub(1),
        _ => None,
    }
}

/// Whether the values are single bytes. Wider values are not skipped: the library copies them if they are unaligned, and copies
/// cannot be located in the body.
fn has_bytes(data_type: &DataType) -> bool {
    let mut data_type = data_type;
    while let DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) = data_type {
        data_type = field.data_type();
    }
    matches!(
        data_type,
        DataType::UInt8 | DataType::Int8 | DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_)
    )
}
