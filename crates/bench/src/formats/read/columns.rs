//! Pixels and labels in Arrow arrays, without copies.

use ::arrow_array::cast::AsArray;
use ::arrow_array::types::{Int32Type, Int64Type, UInt8Type};
use ::arrow_array::{Array, RecordBatch};
use ::arrow_schema::DataType;

/// The contiguous pixels of all rows. `None` if the column is missing, or does not contain fixed-size lists of bytes.
pub(super) fn pixels<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a [u8]> {
    let column = batch.column_by_name(name)?;
    let rows = column.len();
    let (bytes, width, first): (&[u8], i32, usize) = match column.data_type() {
        DataType::FixedSizeList(_, width) => {
            let list = column.as_fixed_size_list_opt()?;
            let values = list.values().as_primitive_opt::<UInt8Type>()?;
            // A sliced list array still has the values of the whole array.
            (values.values().inner().as_slice(), *width, list.offset())
        }
        DataType::FixedSizeBinary(width) => {
            let binary = column.as_fixed_size_binary_opt()?;
            (binary.value_data(), *width, 0)
        }
        _ => return None,
    };
    let width = usize::try_from(width).ok()?;
    bytes.get(first * width..)?.get(..rows * width)
}

pub(super) fn label(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = batch.column_by_name(name)?;
    if let Some(labels) = column.as_primitive_opt::<Int64Type>() {
        return labels.values().get(row).copied();
    }
    let labels = column.as_primitive_opt::<Int32Type>()?;
    labels.values().get(row).copied().map(i64::from)
}
