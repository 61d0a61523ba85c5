//! Columns: a contiguous array for each small field. See docs/reference/format.md, "Columns".

use crate::checksum::crc32c;
use crate::le::{self, len_u64};
use crate::{DType, FormatError, Scalar, Schema};
use packds_system::{to_u64, to_usize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Alignment of columns.
pub const COLUMN_ALIGN: u64 = 4096;
/// Number of bytes of a column that one checksum covers.
pub const COLUMN_BLOCK_BYTES: u64 = 1 << 20;
/// Bytes of one entry of the column directory.
const ENTRY_BYTES: u64 = 24;
/// Bytes of the column directory before its entries.
const HEAD: u64 = 8;

/// The location of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The number of its field in the schema.
    pub field: usize,
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length in bytes: the number of samples times the field's item size.
    pub len: u64,
    /// Where its checksums start in the file: 4 bytes for each MiB, including an incomplete last one.
    pub(crate) crcs_off: u64,
}

impl ColumnEntry {
    /// Verifies the column's bytes against its checksums.
    pub(crate) fn check(&self, file: &[u8], name: &str) -> Result<(), FormatError> {
        let bytes = le::slice("column", file, self.offset, self.len)?;
        let block = to_usize(COLUMN_BLOCK_BYTES);
        let crcs = le::slice("column checksums", file, self.crcs_off, n_blocks(self.len) * 4)?;
        for (i, (piece, stored)) in (0_u64..).zip(bytes.chunks(block).zip(crcs.chunks_exact(4))) {
            let (offset, expected) = (self.offset + i * COLUMN_BLOCK_BYTES, le::u32_at(stored, 0).unwrap_or(0));
            FormatError::check_crc(format_args!("column `{name}`"), offset, expected, crc32c(piece))?;
        }
        Ok(())
    }
}

fn n_blocks(len: u64) -> u64 {
    len.div_ceil(COLUMN_BLOCK_BYTES)
}

/// The COLUMNS section for these columns, given as `(field, offset, bytes)`.
pub(crate) fn directory_bytes(columns: &[(usize, u64, Vec<u8>)]) -> Vec<u8> {
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(&narrow(len_u64(columns)));
    out.extend_from_slice(&[0; 4]);
    for (field, offset, bytes) in columns {
        out.extend_from_slice(&narrow(to_u64(*field)));
        out.extend_from_slice(&narrow(n_blocks(len_u64(bytes))));
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&len_u64(bytes).to_le_bytes());
    }
    let block = to_usize(COLUMN_BLOCK_BYTES);
    for (_, _, bytes) in columns {
        bytes.chunks(block).for_each(|piece| out.extend_from_slice(&crc32c(piece).to_le_bytes()));
    }
    out
}

/// Parses the directory (`section`, at `offset` in the file). All locations follow from the schema, the number of
/// samples and `body_end`, so the stored locations are compared with the expected ones. Also returns the end of the
/// last column.
pub(crate) fn parse_directory(
    section: &[u8],
    offset: u64,
    schema: &Schema,
    n_samples: u64,
    body_end: u64,
) -> Result<(Vec<ColumnEntry>, u64), FormatError> {
    let too_large = || FormatError::LimitExceeded { what: "bytes of a column", limit: u64::MAX, found: u64::MAX };
    let n_columns = to_u64(schema.columns().count());
    let check =
        |what, at: u64, expected: u64, found: Option<u64>| FormatError::check_value(what, offset + at, expected, found);
    check("number of columns", 0, n_columns, le::u32_at(section, 0).map(u64::from))?;
    le::check_zero("column directory, reserved", section.get(4..8).unwrap_or(&[]), offset + 4)?;
    let mut entries = Vec::new();
    let mut end = body_end;
    let mut crcs_off = HEAD + n_columns * ENTRY_BYTES;
    for (i, (number, field)) in (0_u64..).zip(schema.columns()) {
        let at = HEAD + i * ENTRY_BYTES;
        let entry = le::slice("column entry", section, at, ENTRY_BYTES)?;
        let start = le::align_up(end, COLUMN_ALIGN).ok_or_else(too_large)?;
        let len = field.item_bytes().and_then(|n| n.checked_mul(n_samples)).ok_or_else(too_large)?;
        check("column's field", at, to_u64(number), le::u32_at(entry, 0).map(u64::from))?;
        check("column's blocks", at + 4, n_blocks(len), le::u32_at(entry, 4).map(u64::from))?;
        check("column's offset", at + 8, start, le::u64_at(entry, 8))?;
        check("column's bytes", at + 16, len, le::u64_at(entry, 16))?;
        end = start.checked_add(len).ok_or_else(too_large)?;
        entries.push(ColumnEntry { field: number, offset: start, len, crcs_off: offset + crcs_off });
        crcs_off += n_blocks(len) * 4;
    }
    FormatError::check_value("column directory length", offset, crcs_off, len_u64(section))?;
    Ok((entries, end))
}

/// The verified values of one column.
#[derive(Debug, Clone)]
pub struct ColumnView<'a> {
    values: Values<'a>,
    /// Bytes of one sample's value.
    pub item_bytes: usize,
    /// Element type.
    pub dtype: DType,
}

#[derive(Debug, Clone)]
enum Values<'a> {
    One(&'a [u8]),
    /// The values of each file, with the number of its first sample.
    Several(Arc<[(u64, &'a [u8])]>),
}

impl<'a> ColumnView<'a> {
    /// The values of one file: `item_bytes` for each sample.
    pub(crate) fn new(bytes: &'a [u8], item_bytes: usize, dtype: DType) -> Self {
        Self { values: Values::One(bytes), item_bytes, dtype }
    }

    /// The values of several files, each with the number of its first sample. `None` if there is no file.
    pub(crate) fn joined(parts: &[(u64, Self)]) -> Option<Self> {
        let (_, first) = parts.first()?;
        let values = parts.iter().map(|(sample, part)| (*sample, part.bytes().unwrap_or_default()));
        Some(Self { values: Values::Several(values.collect()), ..first.clone() })
    }

    /// All values as stored, little-endian: the number of samples times the item size. `None` if they are in several
    /// files.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.values {
            Values::One(bytes) => Some(bytes),
            Values::Several(_) => None,
        }
    }

    /// Like [`bytes`](Self::bytes), but copies them if they are in several files.
    #[must_use]
    pub fn to_bytes(&self) -> Cow<'a, [u8]> {
        match &self.values {
            Values::One(bytes) => Cow::Borrowed(bytes),
            Values::Several(parts) => Cow::Owned(parts.iter().flat_map(|(_, bytes)| *bytes).copied().collect()),
        }
    }

    /// The values of these samples. `None` if they are in several files, or do not all exist.
    #[must_use]
    pub fn range(&self, samples: Range<u64>) -> Option<&'a [u8]> {
        let (first, bytes) = match &self.values {
            Values::One(bytes) => (0, *bytes),
            Values::Several(parts) => {
                let part = parts.partition_point(|(first, _)| *first <= samples.start).checked_sub(1)?;
                *parts.get(part)?
            }
        };
        let place = |sample: u64| usize::try_from(sample.checked_sub(first)?).ok()?.checked_mul(self.item_bytes);
        bytes.get(place(samples.start)?..place(samples.end)?)
    }

    /// The bytes of one sample's value.
    #[must_use]
    pub fn get(&self, sample: u64) -> Option<&'a [u8]> {
        self.range(sample..sample.checked_add(1)?)
    }

    /// One sample's value as an integer. `None` for floats, items of several elements, and values above 2^63 - 1.
    #[must_use]
    pub fn integer(&self, sample: u64) -> Option<i64> {
        let bytes = self.get(sample)?;
        if len_u64(bytes) != self.dtype.size() {
            return None;
        }
        Scalar::of(self.dtype, bytes)?.integer()
    }

    /// One sample's value of a `u32` column. `None` for other columns.
    #[must_use]
    pub fn u32(&self, sample: u64) -> Option<u32> {
        let bytes = self.get(sample)?;
        (self.dtype == DType::U32 && self.item_bytes == 4).then(|| le::u32_at(bytes, 0)).flatten()
    }
}
