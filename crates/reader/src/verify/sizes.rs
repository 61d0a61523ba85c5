//! Whether raw pixels are as many as the columns of their sizes say: checksums can be right all the same.

use packds_format::{Field, FieldKind, FormatError};

use crate::decode::SizedField;
use crate::{Pack, ReadError};

/// The fields of a pack whose raw items have sizes of their own, by their numbers.
pub(super) struct RawSizes<'a> {
    pack: &'a Pack,
    fields: Vec<(usize, SizedField)>,
}

impl<'a> RawSizes<'a> {
    /// Of fields whose columns are whole: damaged ones are told as such.
    pub(super) fn new(pack: &'a Pack) -> Self {
        let is_told = |field: &Field| {
            let sizes = pack.item_shape(&field.name, 0);
            pack.coding(&field.name, 0).is_ok_and(|c| c.is_some()) && sizes.is_ok()
        };
        let images = pack
            .schema()
            .body()
            .filter(|(_, field)| field.kind == FieldKind::Image && is_told(field));
        let fields = images.map(|(number, field)| (number, SizedField::new(field)));
        Self {
            pack,
            fields: fields.collect(),
        }
    }

    /// The first item of each field of a chunk that is not of its size, or that its tables do not give. The chunk's bytes, which were
    /// summed, are read through the map: of items that are not compressed, their table alone.
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
        self.pack
            .for_each_item(number, chunk, bytes, |sample, item| {
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
