//! FFCV's `.beton` files: a header, a description of each field, a table with a row for each sample, pages of data, and a table of the
//! allocations in the pages.
//!
//! Data is read in place. Files whose writing was interrupted have no table of allocations and are refused.

mod field;
mod header;

use super::ListOptions;
use super::declared::DeclaredFields;
use super::found::Found;
use super::gather::Raw;
use super::shards::{Shards, allow_open_files};
use super::store::OpenFile;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use header::{Header, Sizes};

/// Rows of the table of samples to read at a time.
const ROWS: u64 = 4096;
/// What to do about two fields with the same name.
const RENAME: &str =
    "write the file again with names that differ in their first 16 characters, because FFCV cuts names there";

pub(crate) use header::starts;

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let stays = allow_open_files(part.files.len());
    let (mut files, mut fields): (Vec<OpenFile>, Option<DeclaredFields>) = (Vec::new(), None);
    for (number, path) in (0_u32..).zip(&part.files) {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let header = Header::read(&file)?;
        let names = header.names();
        let fields = match &mut fields {
            Some(fields) if fields.names() == names => fields,
            Some(fields) => {
                let reason = format!("expected the fields {:?}, as in the first file, found {names:?}", fields.names());
                let hint = "convert each file separately, or write all files with the same fields";
                return Err(ConvertError::contradictory(path, "", reason, hint));
            }
            none => none.insert(DeclaredFields::new(path, &names, RENAME, options)?),
        };
        let sizes = Sizes::read(&file, &header)?;
        Samples { file: &file, number, header: &header, sizes: &sizes }.read(fields)?;
        files.push(file.kept(stays));
    }
    let none = || super::roles::no_samples(&part.root);
    fields.ok_or_else(none)?.into_found(DataFormat::Beton, files, part, options)
}

/// The samples of a file.
struct Samples<'a> {
    file: &'a OpenFile,
    /// The index of `file` among the files.
    number: u32,
    header: &'a Header,
    sizes: &'a Sizes,
}

impl Samples<'_> {
    /// Adds the values of all samples to the fields.
    fn read(&self, fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        let (n, row_bytes) = (self.header.n_samples, self.header.row_bytes);
        let mut first = 0;
        while first < n {
            let n_rows = ROWS.min(n - first);
            let start = self.header.rows_at.saturating_add(first.saturating_mul(row_bytes));
            let rows = self.file.part("table of samples", start, n_rows.saturating_mul(row_bytes))?;
            for sample in first..first.saturating_add(n_rows) {
                let offset = packds_system::to_usize((sample - first).saturating_mul(row_bytes));
                self.sample(sample, rows.get(offset..).unwrap_or_default(), fields)?;
            }
            first = first.saturating_add(n_rows);
        }
        Ok(())
    }

    /// Adds the values of a sample. Its row begins with `row`.
    fn sample(&self, sample: u64, row: &[u8], fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        for (place, field) in self.header.fields.iter().enumerate() {
            if fields.is_left_out(place) {
                continue;
            }
            let name = format!("sample {sample}: {}", field.name);
            let cell = row.get(field.offset..).unwrap_or_default();
            let path = self.file.path.as_path();
            let row = self.header.rows_at.saturating_add(sample.saturating_mul(self.header.row_bytes));
            let offset = row.saturating_add(packds_system::to_u64(field.offset));
            let raw = Raw { file: self.file, number: self.number, path, name: name.as_bytes(), offset, bytes: 0 };
            fields.add(place, |fields| field.kind.read(cell, raw, self.sizes, place, fields))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
