//! Consecutive samples of a pack, decoded and checked for export.

use packds_format::{FieldKind, Pack};
use packds_system::{to_u64, to_usize};

use super::fields::{Exported, ExportedField, Form};
use super::item_file::item_file;
use crate::error::ConvertError;
use crate::source::ragged::to_json;

/// Consecutive samples. Their fields are in the order of [`Exported::fields`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(crate) first: u64,
    pub(crate) n: usize,
    /// The samples' numbers in the pack.
    pub(crate) samples: Vec<u64>,
    pub(crate) columns: Vec<Column>,
    /// Each sample's path relative to its source. Empty if the pack has no paths.
    pub(crate) paths: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
    /// The file extension of each image file. Empty for other fields.
    pub(crate) extensions: Vec<&'static str>,
}

impl Column {
    /// Item `idx`. Empty if it is missing.
    pub(crate) fn item(&self, idx: usize) -> &[u8] {
        let start = idx.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let range = start.zip(self.ends.get(idx).copied());
        range.and_then(|(start, end)| self.bytes.get(start..end)).unwrap_or_default()
    }
}

impl Batch {
    /// The error about the item of sample `k` in a field.
    pub(crate) fn bad(&self, k: usize, field: &str, reason: String) -> ConvertError {
        let sample = self.samples.get(k).copied().unwrap_or_default();
        ConvertError::BadItem { sample, field: field.to_owned(), reason }
    }
}

pub(crate) struct BatchReader<'a, D> {
    pub(crate) pack: &'a Pack<D>,
    pub(crate) exported: &'a Exported,
    /// The exported samples of the pack. `None` means all.
    pub(crate) samples: Option<&'a [u64]>,
    /// Paths of the exported samples. Empty if the pack has none.
    pub(crate) paths: &'a [Vec<u8>],
}

impl<D: AsRef<[u8]>> BatchReader<'_, D> {
    /// Reads `n` of the exported samples, starting with index `first`. Checksums are verified.
    pub(crate) fn read(&self, first: u64, n: usize) -> Result<Batch, ConvertError> {
        let end = first.saturating_add(to_u64(n));
        let places = to_usize(first)..to_usize(end);
        let samples: Vec<u64> = match self.samples {
            Some(samples) => samples.get(places.clone()).unwrap_or_default().to_vec(),
            None => (first..end).collect(),
        };
        let fields = self.exported.fields.iter();
        let columns: Result<_, _> = fields.map(|field| self.column(field, &samples)).collect();
        let paths = self.paths.get(places).unwrap_or_default().to_vec();
        Ok(Batch { first, n, samples, columns: columns.map_err(ConvertError::of_pack)?, paths })
    }

    fn column(&self, field: &ExportedField, samples: &[u64]) -> Result<Column, ConvertError> {
        let mut column = Column::default();
        self.pack.for_each_item_in(field.number, samples.iter().copied(), |sample, item| {
            let bad = |reason| ConvertError::BadItem { sample, field: field.field.name.clone(), reason };
            match field.form {
                Form::Json if field.field.kind == FieldKind::Ragged => {
                    column.bytes.extend(to_json(&field.field, item).map_err(bad)?.into_bytes());
                }
                Form::File => {
                    let file = item_file(self.pack, &field.field, sample, item.into());
                    let (extension, file) = file.map_err(bad)?;
                    column.bytes.extend_from_slice(&file);
                    column.extensions.push(extension);
                }
                _ => column.bytes.extend_from_slice(item),
            }
            column.ends.push(column.bytes.len());
            Ok::<_, ConvertError>(())
        })?;
        Ok(column)
    }
}
