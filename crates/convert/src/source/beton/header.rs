//! The header, the descriptions of the fields and the table of allocations.

use packds_system::{counted, to_u64, to_usize};

use super::super::detect::Head;
use super::super::store::OpenFile;
use super::field::Kind;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Bytes of the header: version, number of fields, page size, number of samples, and where the allocations are.
const HEADER_BYTES: u64 = 24;
/// The only version that FFCV's releases wrote.
const VERSION: u64 = 2;
/// Bytes that describe a field: its type, its name and the arguments of the type.
const FIELD_BYTES: u64 = 1 + NAME_BYTES + 1024;
const NAME_BYTES: u64 = 16;
/// Bytes that describe an allocation: its sample, its place and its size.
const ALLOCATION_BYTES: u64 = 24;

/// The little-endian number of `N` bytes at `offset`. Zero if there are too few bytes.
pub(super) fn number<const N: usize>(bytes: &[u8], offset: usize) -> u64 {
    let bytes = bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>());
    bytes.map_or(0, |bytes| bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// Whether a file has the name and the version of the format.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    head.named == Some(DataFormat::Beton) && number::<2>(head.bytes, 0) == VERSION
}

/// What a file contains.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) n_samples: u64,
    pub(super) fields: Vec<Field>,
    /// Where the table of samples starts.
    pub(super) rows_at: u64,
    /// Bytes of each row.
    pub(super) row_bytes: u64,
    /// Where the table of allocations starts.
    allocations_at: u64,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Where its values start in a row.
    pub(super) offset: usize,
}

impl Header {
    pub(super) fn read(file: &OpenFile) -> Result<Self, ConvertError> {
        let wrong = |reason: String| ConvertError::malformed(&file.path, "", reason);
        let head = file.part("header", 0, HEADER_BYTES)?;
        let (version, n_fields) = (number::<2>(&head, 0), number::<2>(&head, 2));
        if version != VERSION {
            let reason = format!("expected version {VERSION} of the format, found {version}");
            let hint = "write the file again with a release of FFCV, or copy it again";
            return Err(ConvertError::contradictory(&file.path, "", reason, hint));
        }
        if n_fields == 0 {
            // Rows without bytes could be counted without end.
            return Err(wrong("expected at least one field, found none".to_owned()));
        }
        let (n_samples, allocations_at) = (number::<8>(&head, 8), number::<8>(&head, 16));
        if allocations_at == 0 {
            let hint = "write the file again";
            let reason = "the file is not complete: its writing was interrupted";
            return Err(ConvertError::contradictory(&file.path, "", reason, hint));
        }
        let described = file.part("fields", HEADER_BYTES, n_fields * FIELD_BYTES)?;
        let mut fields = Vec::new();
        let (mut end, mut alignment) = (0_usize, 1);
        for description in described.chunks_exact(to_usize(FIELD_BYTES)) {
            let (&[type_id], rest) = description.split_first_chunk().unwrap_or((&[255], &[]));
            let (name, arguments) = rest.split_at_checked(to_usize(NAME_BYTES)).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            let kind = Kind::of(&file.path, &name, type_id, arguments)?;
            // Rows are laid out as NumPy does for aligned types: numbers at multiples of their size.
            let offset = end.next_multiple_of(kind.alignment());
            end = offset.saturating_add(kind.row_bytes());
            alignment = alignment.max(kind.alignment());
            fields.push(Field { name, kind, offset });
        }
        let (rows_at, row_bytes) = (HEADER_BYTES + n_fields * FIELD_BYTES, to_u64(end.next_multiple_of(alignment)));
        let rows_end = n_samples.checked_mul(row_bytes).and_then(|bytes| bytes.checked_add(rows_at));
        if rows_end.is_none_or(|end| end > allocations_at) || allocations_at > file.bytes {
            return Err(wrong(format!(
                "expected {n_samples} samples of {row_bytes} bytes at byte {rows_at} and a table at byte {allocations_at}, found a file of {} bytes",
                file.bytes
            )));
        }
        Ok(Self { n_samples, fields, rows_at, row_bytes, allocations_at })
    }

    /// The names of the fields.
    pub(super) fn names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }
}

/// The places and sizes of all allocations, in order. Every value outside the rows has an allocation of its size.
#[derive(Debug)]
pub(super) struct Sizes(Vec<(u64, u64)>);

impl Sizes {
    pub(super) fn read(file: &OpenFile, header: &Header) -> Result<Self, ConvertError> {
        let bytes = file.bytes.saturating_sub(header.allocations_at);
        if !bytes.is_multiple_of(ALLOCATION_BYTES) {
            let reason =
                format!("expected a table of {ALLOCATION_BYTES} bytes for each allocation, found {bytes} bytes");
            return Err(ConvertError::malformed(&file.path, "allocations", reason));
        }
        let table = file.part("allocations", header.allocations_at, bytes)?;
        let rows = table.chunks_exact(to_usize(ALLOCATION_BYTES));
        let n = header.n_samples;
        if let Some(other) = rows.clone().map(|row| number::<8>(row, 0)).find(|sample| *sample >= n) {
            let reason = format!("expected the data of {}, found data of sample {other}", counted(n, "sample"));
            return Err(ConvertError::malformed(&file.path, "allocations", reason));
        }
        let mut sizes: Vec<(u64, u64)> = rows.map(|row| (number::<8>(row, 8), number::<8>(row, 16))).collect();
        sizes.sort_unstable();
        Ok(Self(sizes))
    }

    /// The size of the allocation at `place`. Empty ones may be at the same place.
    pub(super) fn at(&self, place: u64) -> Option<u64> {
        let end = self.0.partition_point(|(other, _)| *other <= place);
        let (other, size) = self.0.get(end.checked_sub(1)?)?;
        (*other == place).then_some(*size)
    }
}
