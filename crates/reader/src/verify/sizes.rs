//! Checks that raw pixels have the size that is stored in their columns. Valid checksums do not guarantee this.

use packds_format::{Field, FieldKind, FormatError};

use crate::decode::SizedField;
use crate::{Pack, ReadError};

/// The variable-size image fields whose raw items are checked, by their schema numbers.
pub(super) struct RawSizes<'a> {
    pack: &'a Pack,
    fields: Vec<(usize, SizedField)>,
}

impl<'a> RawSizes<'a> {
    /// Includes only fields whose size columns are intact. Damaged columns are reported elsewhere. `first` is the first
    /// sample of a file that can be opened.
    pub(super) fn new(pack: &'a Pack, first: u64) -> Self {
        let is_told = |field: &Field| {
            let sizes = pack.item_shape(&field.name, first);
            pack.coding(&field.name, first).is_ok_and(|c| c.is_some()) && sizes.is_ok()
        };
        let images = pack.schema().body().filter(|(_, field)| field.kind == FieldKind::Image && is_told(field));
        let fields = images.map(|(number, field)| (number, SizedField::new(field)));
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
            let found = self.compare(chunk, *number, field);
            found.err()
        });
        Ok(wrong.collect())
    }

    fn compare(&self, chunk: u64, number: usize, field: &SizedField) -> Result<(), FormatError> {
        let bytes = self.pack.chunk_bytes_unchecked(chunk)?;
        self.pack.for_each_item(number, chunk, bytes, |sample, item| {
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
