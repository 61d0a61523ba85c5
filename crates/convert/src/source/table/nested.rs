//! Arrays of numbers in columns: fixed-size binary, fixed-size lists and nested lists. Each row is one run of bytes.
//!
//! Lists of varying length become JSON in `text`.

use crate::dtypes::of_arrow_type;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use packds_format::DType;
use packds_system::{to_u64, to_usize};

/// Maximum number of dimensions.
const MAX_LEVELS: usize = 8;

/// The type of the numbers in nested lists. `None` for any other type.
pub(in crate::source) fn leaf_of(data_type: &DataType) -> Option<DType> {
    let (mut data_type, mut levels) = (data_type, 0);
    loop {
        data_type = match data_type {
            DataType::FixedSizeBinary(_) if levels == 0 => return Some(DType::U8),
            DataType::FixedSizeList(field, _) | DataType::List(field) | DataType::LargeList(field) => field.data_type(),
            leaf => return of_arrow_type(leaf).filter(|_| levels > 0),
        };
        levels += 1;
        if levels > MAX_LEVELS {
            return None;
        }
    }
}

/// The shape of the first row of nested lists.
pub(in crate::source) fn shape_of(array: &dyn Array) -> Result<Vec<u64>, String> {
    if array.is_empty() {
        return Err("the shape is unknown, because there are no rows".to_owned());
    }
    Levels::of(array)?.shape_of_first()
}

/// An array column split into its list levels, from the outside in, and its numbers.
pub(in crate::source) struct Levels {
    /// For each level, the ends of its lists in the next level.
    levels: Vec<Ends>,
    /// The numbers.
    pub(super) leaf: Buffer,
    leaf_bytes: usize,
}

/// The layout of a level's lists.
enum Ends {
    /// All lists have this length.
    Fixed {
        len: usize,
    },
    Narrow(arrow_buffer::OffsetBuffer<i32>),
    Wide(arrow_buffer::OffsetBuffer<i64>),
}

impl Ends {
    /// The range of list `idx` in the next level.
    fn range(&self, idx: usize) -> Option<(usize, usize)> {
        match self {
            Self::Fixed { len } => {
                let start = idx.checked_mul(*len)?;
                Some((start, start.checked_add(*len)?))
            }
            Self::Narrow(ends) => between(ends, idx),
            Self::Wide(ends) => between(ends, idx),
        }
    }
}

/// The range of list `idx`, given the ends of all lists.
fn between<O: OffsetSizeTrait>(ends: &[O], idx: usize) -> Option<(usize, usize)> {
    let at = |idx: usize| ends.get(idx)?.to_usize();
    Some((at(idx)?, at(idx.checked_add(1)?)?))
}

impl Levels {
    /// Splits a column into levels. Nulls inside rows are refused; the caller handles null rows.
    pub(in crate::source) fn of(array: &dyn Array) -> Result<Self, String> {
        let mut levels = Vec::new();
        let mut current: ArrayRef = arrow_array::make_array(array.to_data());
        loop {
            if !levels.is_empty() && current.null_count() > 0 {
                return Err("an array has a null".to_owned());
            }
            let (ends, next) = match current.data_type() {
                DataType::FixedSizeBinary(len) => {
                    let len = usize::try_from(*len).map_err(|_| "a length is negative".to_owned())?;
                    levels.push(Ends::Fixed { len });
                    let bytes = current.as_fixed_size_binary().value_data();
                    let leaf = part_of(current.to_data().buffers().first(), bytes);
                    return Ok(Self { levels, leaf, leaf_bytes: 1 });
                }
                DataType::FixedSizeList(_, len) => {
                    let len = usize::try_from(*len).map_err(|_| "a length is negative".to_owned())?;
                    let list = current.as_fixed_size_list();
                    (Ends::Fixed { len }, list.values().clone())
                }
                DataType::List(_) => {
                    let list = current.as_list::<i32>();
                    (Ends::Narrow(list.offsets().clone()), list.values().clone())
                }
                DataType::LargeList(_) => {
                    let list = current.as_list::<i64>();
                    (Ends::Wide(list.offsets().clone()), list.values().clone())
                }
                _ => {
                    let (leaf, leaf_bytes) = numbers(current.as_ref())?;
                    return Ok(Self { levels, leaf, leaf_bytes });
                }
            };
            levels.push(ends);
            current = next;
        }
    }

    fn shape_of_first(&self) -> Result<Vec<u64>, String> {
        let (mut idx, mut shape) = (0, Vec::new());
        for level in &self.levels {
            let (start, end) = level.range(idx).ok_or("a list is missing")?;
            shape.push(to_u64(end.saturating_sub(start)));
            idx = start;
        }
        Ok(shape)
    }

    /// The bytes of row `row`. All its lists must have the lengths in `shape`, from the outside in.
    pub(in crate::source) fn row(&self, row: usize, shape: &[u64]) -> Result<&[u8], String> {
        let damaged = || "a list points past the end of the numbers".to_owned();
        let (mut start, mut end) = (row, row.checked_add(1).ok_or_else(damaged)?);
        for (level, &expected) in self.levels.iter().zip(shape) {
            if let Ends::Fixed { len } = level {
                start = start.checked_mul(*len).ok_or_else(damaged)?;
                end = end.checked_mul(*len).ok_or_else(damaged)?;
                continue;
            }
            let expected = usize::try_from(expected).map_err(|_| damaged())?;
            for list in start..end {
                let (from, to) = level.range(list).ok_or_else(damaged)?;
                let found = to.checked_sub(from).ok_or_else(damaged)?;
                if found != expected {
                    return Err(format!(
                        "expected arrays of shape {shape:?} as in the first row, found a list of length {found}"
                    ));
                }
            }
            // Lists are never empty here, and their contents are in order without gaps.
            let (first, _) = level.range(start).ok_or_else(damaged)?;
            let (_, last) = level.range(end.saturating_sub(1)).ok_or_else(damaged)?;
            (start, end) = (first, last);
        }
        let at = |idx: usize| idx.checked_mul(self.leaf_bytes);
        let range = at(start).zip(at(end));
        range.and_then(|(start, end)| self.leaf.as_slice().get(start..end)).ok_or_else(damaged)
    }
}

/// The bytes of a numeric column, and the number of bytes per number. A boolean takes one byte.
pub(in crate::source) fn numbers(array: &dyn Array) -> Result<(Buffer, usize), String> {
    if let DataType::Boolean = array.data_type() {
        let bytes: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
        return Ok((Buffer::from_vec(bytes), 1));
    }
    let dtype = of_arrow_type(array.data_type());
    let dtype = dtype.ok_or_else(|| format!("expected numbers, found {}", array.data_type()))?;
    let width = to_usize(dtype.size());
    let data = array.to_data();
    let range = data.offset().checked_mul(width).zip(data.len().checked_mul(width));
    let buffer = data.buffers().first().zip(range);
    match buffer {
        Some((buffer, (start, len))) if start.saturating_add(len) <= buffer.len() => {
            Ok((buffer.slice_with_length(start, len), width))
        }
        _ => Err("there are fewer numbers than rows".to_owned()),
    }
}

/// `bytes` as a slice of the buffer that contains them.
fn part_of(buffer: Option<&Buffer>, bytes: &[u8]) -> Buffer {
    let offset = |buffer: &Buffer| {
        let offset = bytes.as_ptr().addr().checked_sub(buffer.as_slice().as_ptr().addr())?;
        (offset.checked_add(bytes.len())? <= buffer.len()).then_some(offset)
    };
    match buffer.and_then(|buffer| Some((buffer, offset(buffer)?))) {
        Some((buffer, offset)) => buffer.slice_with_length(offset, bytes.len()),
        None => Buffer::from_slice_ref(bytes),
    }
}
