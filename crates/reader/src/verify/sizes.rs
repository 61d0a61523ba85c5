//! Checks that raw pixels have the size that is stored in their columns, and that ragged items have whole entries.
//! Valid checksums do not guarantee this.

use packds_format::{Field, FieldKind, FormatError};

use crate::decode::SizedField;
use crate::{Pack, ReadError};

/// The fields whose items are checked, by their schema numbers: variable-size images, and ragged fields (`None`).
pub(super) struct ItemSizes<'a> {
    pack: &'a Pack,
    fields: Vec<(usize, Option<SizedField>)>,
}

impl<'a> ItemSizes<'a> {
    /// Includes only image fields whose size columns are intact. Damaged columns are reported elsewhere. `first` is the first
    /// sample of a file that can be opened.
    pub(super) fn new(pack: &'a Pack, first: u64) -> Self {
        let is_told = |field: &Field| {
            let sizes = pack.item_shape(&field.name, first);
            pack.coding(&field.name, first).is_ok_and(|c| c.is_some()) && sizes.is_ok()
        };
        let fields = pack.schema().body().filter_map(|(number, field)| match field.kind {
            FieldKind::Image if is_told(field) => Some((number, Some(SizedField::new(field)))),
            FieldKind::Ragged => Some((number, None)),
            _ => None,
        });
        Self { pack, fields: fields.collect() }
    }

    /// For each field of a chunk, the first item with a wrong or unreadable size. Call it after verifying the chunk's
    /// checksum, because it reads through the mapping. For uncompressed items, it only reads the table.
    pub(super) fn wrong_in(&self, chunk: u64) -> Result<Vec<FormatError>, ReadError> {
        if self.fields.is_empty() {
            return Ok(Vec::new());
        }
        self.pack.protect()?;
        let wrong = self.fields.iter().filter_map(|(number, field)| {
            let found = self.compare(chunk, *number, field.as_ref());
            found.err()
        });
        Ok(wrong.collect())
    }

    fn compare(&self, chunk: u64, number: usize, field: Option<&SizedField>) -> Result<(), FormatError> {
        let bytes = self.pack.chunk_bytes_unchecked(chunk)?;
        self.pack.for_each_item(number, chunk, bytes, |sample, item| {
            // Reading a ragged item checks its size.
            let Some(field) = field else { return Ok(()) };
            let shape = field.raw_shape(self.pack, sample, item.len());
            shape.map(drop).map_err(|error| FormatError::BadItem {
                chunk,
                sample,
                field: field.name().to_owned(),
                reason: error.to_string(),
            })
        })
    }
}
