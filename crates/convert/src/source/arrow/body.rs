//! The arrays of a message in memory: all of them, or all but the values that will be read where they lie in the file.

use arrow_buffer::Buffer;
use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Schema};
use packds_system::to_usize;

use super::frames::{Frame, MAX_BODY_BYTES};
use crate::source::store::OpenFile;

/// Values shorter than this are read with the rest: leaving them out would cost a read more.
const MIN_GAP_BYTES: u64 = 256 << 10;
/// The most buffers of a column: lists in lists have two each.
const MAX_LEVELS: usize = 64;

/// What a batch says about its buffers, checked.
pub(super) struct Buffers {
    /// Offset in the body and length of each.
    places: Vec<(u64, u64)>,
    compressed: bool,
}

impl Buffers {
    /// Those of a batch whose body has `bytes` bytes.
    pub(super) fn of(batch: &RecordBatch<'_>, bytes: u64) -> Result<Self, String> {
        let mut places = Vec::new();
        for buffer in batch.buffers().into_iter().flatten() {
            let place = u64::try_from(buffer.offset()).ok();
            let place = place.zip(u64::try_from(buffer.length()).ok());
            let place = place
                .filter(|(offset, len)| offset.checked_add(*len).is_some_and(|end| end <= bytes));
            places.push(place.ok_or_else(|| {
                let (offset, len) = (buffer.offset(), buffer.length());
                format!("an array of {len} bytes at {offset} goes past the end of {bytes} bytes")
            })?);
        }
        let compressed = batch.compression().is_some();
        Ok(Self { places, compressed })
    }

    /// Reads the body of `frame`, but for the values of the columns in `in_place`, which stay zeros.
    pub(super) fn read(
        &self,
        file: &OpenFile,
        frame: &Frame,
        schema: &Schema,
        in_place: &[(usize, Option<usize>)],
    ) -> Result<Buffer, String> {
        let gaps = if self.compressed {
            Vec::new()
        } else {
            self.gaps(schema, in_place)
        };
        let len = usize::try_from(frame.bytes).map_err(|_| "too many bytes".to_owned())?;
        // Zeros that nobody touches take no memory; that there is room for them is asked first, since making them ends
        // the program where there is none.
        if !has_room(len) {
            return Err(format!("there is no memory for its {len} bytes"));
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

    /// The places that are left out, in order.
    fn gaps(&self, schema: &Schema, in_place: &[(usize, Option<usize>)]) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut first = 0_usize;
        for (column, field) in schema.fields().iter().enumerate() {
            let Some(count) = buffer_count(field.data_type(), 0) else {
                // What follows cannot be told apart.
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

    /// Compressed arrays say how long they are: that much is allocated before it is known to be true.
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
            return Err(format!(
                "its arrays have {sum} bytes unpacked: write it with smaller record batches"
            ));
        }
        // Once as they are unpacked, once as they are taken apart.
        let twice = to_usize(sum.saturating_mul(2));
        if !has_room(twice) {
            return Err(format!(
                "its arrays have {sum} bytes unpacked, and there is no memory for twice as many: write it with smaller record batches"
            ));
        }
        Ok(())
    }
}

/// Whether memory for so many bytes is to be had: whoever takes it without asking ends the program where there is none.
fn has_room(bytes: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let is_there = room.try_reserve_exact(bytes).is_ok();
    // Else the compiler leaves out what nobody uses, and takes it for granted.
    std::hint::black_box(&mut room);
    is_there
}

/// Reads the body's bytes `from..to`.
fn read_into(
    file: &OpenFile,
    body_offset: u64,
    from: u64,
    to: u64,
    body: &mut [u8],
) -> Result<(), String> {
    let Some(room) = body.get_mut(to_usize(from)..to_usize(to)) else {
        // Arrays that overlap; the library will say what it thinks of them.
        return Ok(());
    };
    let offset = body_offset.saturating_add(from);
    let read = std::os::unix::fs::FileExt::read_exact_at(&file.file, room, offset);
    read.map_err(|e| e.to_string())
}

/// How many buffers a column of a type has; none if the type alone does not tell.
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
        DataType::Struct(fields) => fields.iter().try_fold(1_usize, |sum, field| {
            sum.checked_add(child(field.data_type())?)
        }),
        DataType::Dictionary(..) | DataType::FixedSizeBinary(_) | DataType::Boolean => Some(2),
        leaf if leaf.is_primitive() => Some(2),
        _ => None,
    }
}

/// Which buffer of a column holds the values that are read in place; `child` is that of a struct's bytes.
fn values_of(data_type: &DataType, child: Option<usize>) -> Option<usize> {
    match (data_type, child) {
        (DataType::Struct(fields), Some(child)) => {
            let before = fields.iter().take(child).try_fold(1_usize, |sum, field| {
                sum.checked_add(buffer_count(field.data_type(), 1)?)
            })?;
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

/// Whether the values are single bytes. Wider ones are not left out: where they are not aligned the library copies them,
/// and they would not be found in the body.
fn has_bytes(data_type: &DataType) -> bool {
    let mut data_type = data_type;
    while let DataType::List(field)
    | DataType::LargeList(field)
    | DataType::FixedSizeList(field, _) = data_type
    {
        data_type = field.data_type();
    }
    matches!(
        data_type,
        DataType::UInt8
            | DataType::Int8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_)
    )
}
