//! Estimates the decoded size of a row. A file may store one value for thousands of rows, so a few bytes can expand without
//! limit.

use packds_system::to_usize;
use std::sync::Arc;

use ::parquet::basic::{Encoding, Type};
use ::parquet::column::page::{Page, PageReader};
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use ::parquet::file::serialized_reader::SerializedPageReader;

use super::AnyPlace;
use crate::source::store::OpenFile;

/// Approximate bytes per row in memory: the stored bytes, plus the largest shared values that the row may refer to.
pub(super) fn row_bytes(file: &Arc<OpenFile>, group: &RowGroupMetaData, is_read: impl Fn(usize) -> bool) -> u64 {
    let schema = group.schema_descr();
    let columns = group.columns().iter().enumerate();
    let columns = columns.filter(|(leaf, _)| is_read(schema.get_column_root_idx(*leaf)));
    let rows = unsigned(group.num_rows()).max(1);
    let bytes = columns.map(|(_, column)| {
        let stored = unsigned(column.uncompressed_size()) / rows;
        let values = unsigned(column.num_values()).div_ceil(rows);
        stored.saturating_add(values.saturating_mul(largest_repeated(file, column, rows)))
    });
    bytes.fold(0, u64::saturating_add).max(1)
}

/// Size in bytes of the largest value that is stored once for several rows. 0 if every value is stored separately.
fn largest_repeated(file: &Arc<OpenFile>, column: &ColumnChunkMetaData, rows: u64) -> u64 {
    // In this encoding, a value may reuse a prefix of the previous value, so a few bytes may store a large value.
    if column.encodings().any(|e| e == Encoding::DELTA_BYTE_ARRAY) {
        return unsigned(column.uncompressed_size());
    }
    match column.column_type() {
        _ if column.dictionary_page_offset().is_none() => 0,
        Type::FIXED_LEN_BYTE_ARRAY => unsigned(column.column_descr().type_length().into()),
        Type::BYTE_ARRAY => dictionary(file, column, rows).map_or(0, |bytes| largest(&bytes)),
        _ => 8,
    }
}

/// The bytes of a column's dictionary. Damage is reported when the rows are read.
fn dictionary(file: &Arc<OpenFile>, column: &ColumnChunkMetaData, rows: u64) -> Option<Vec<u8>> {
    let place = Arc::new(AnyPlace(Arc::clone(file)));
    let rows = usize::try_from(rows).ok()?;
    let mut pages = SerializedPageReader::new(place, column, rows, None).ok()?;
    match pages.get_next_page().ok()?? {
        Page::DictionaryPage { buf, .. } => Some(buf.to_vec()),
        _ => None,
    }
}

/// The size of the largest value in a sequence of length-prefixed values.
fn largest(mut values: &[u8]) -> u64 {
    let mut largest = 0;
    while let Some((len, rest)) = values.split_first_chunk::<4>() {
        let len = u32::from_le_bytes(*len);
        largest = largest.max(len.into());
        let len = to_usize(len);
        values = rest.get(len..).unwrap_or_default();
    }
    largest
}

fn unsigned(n: i64) -> u64 {
    n.max(0).cast_unsigned()
}
