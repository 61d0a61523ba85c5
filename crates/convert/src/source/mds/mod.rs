//! MosaicML Streaming's MDS: shards of samples in a folder, and an `index.json` that names the shards and the encoding of each column.
//!
//! Values of raw shards are read in place; compressed shards are unpacked. Pickles are never run. The hashes in the index are not checked.

mod encoding;
mod index;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use packds_system::to_u64;

use super::ListOptions;
use super::declared::{DeclaredFields, u32_at};
use super::detect::Head;
use super::found::Found;
use super::gather::Raw;
use super::index_json::{self, IndexFormat};
use super::roles::is_mask_name;
use super::shards::{Shards, allow_open_files};
use super::store::OpenFile;
use super::there::is_there_as_file;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use encoding::Encoding;
use index::{Index, Shard};

const FORMAT: IndexFormat = IndexFormat {
    list: "shards",
    join: |folder| format!("join them in Python: streaming.base.util.merge_index('{}')", folder.display()),
};
/// Compressions of the format that are read.
const COMPRESSIONS: [&str; 3] = ["zstd", "gz", "bz2"];

/// Whether a file is an index.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    FORMAT.starts(head)
}

/// Whether a folder has an index, or subfolders with an index.
pub(crate) fn is_set(folder: &Path, names: &[String]) -> bool {
    FORMAT.is_in(folder, names)
}

/// The parts of a source: one for each subfolder with an index if these are splits. If an index names shards in folders, their names
/// may be splits.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let mut parts = Vec::new();
    for (split, folder) in FORMAT.folders(source)? {
        let index = Index::read(&folder)?;
        let files = index.shards.iter().map(|shard| index_json::file_in(&folder, &shard.raw_data.basename));
        let part = Shards { root: folder.clone(), files: files.collect::<Result<_, _>>()?, split: split.clone() };
        match split {
            Some(_) => parts.push(part),
            None => parts.extend(part.by_split()),
        }
    }
    Ok(parts)
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let index = Index::read(&part.root)?;
    let own: HashSet<&PathBuf> = part.files.iter().collect();
    let mut shards = Vec::new();
    for shard in &index.shards {
        let path = index_json::file_in(&part.root, &shard.raw_data.basename)?;
        if own.contains(&path) {
            shards.push((path, shard));
        }
    }
    allow_open_files(shards.len());
    let path = part.root.join(index_json::INDEX);
    let names = shards.first().map_or(&[][..], |(_, shard)| &shard.column_names);
    let mut fields = DeclaredFields::new(&path, names, options)?;
    let mut files = Vec::new();
    for (number, (raw, shard)) in (0_u32..).zip(&shards) {
        let columns = columns(&path, shard, &fields, options)?;
        let file = open(raw, shard, &part.root, options)?;
        Samples { file: &file, number, columns: &columns }.read(shard.samples, &mut fields)?;
        files.push(file);
    }
    fields.into_found(DataFormat::Mds, files, part, options)
}

/// Opens a shard, unpacked if only its compressed file is there.
fn open(raw: &Path, shard: &Shard, folder: &Path, options: &ListOptions) -> Result<OpenFile, ConvertError> {
    let bytes = shard.raw_data.bytes;
    let (Some(zip), false) = (&shard.zip_data, is_there_as_file(raw)?) else {
        return index_json::open(raw, bytes);
    };
    let zip = index_json::file_in(folder, &zip.basename)?;
    let compression = shard.compression.as_deref().unwrap_or_default();
    let name = compression.split(':').next().unwrap_or_default();
    if !COMPRESSIONS.contains(&name) && is_there_as_file(&zip)? {
        let unpack = format!(
            "from streaming.base.compression import decompress; import pathlib; [p.with_suffix('').write_bytes(decompress(p.suffix[1:], p.read_bytes())) for p in pathlib.Path('{}').rglob('*.mds.*')]",
            folder.display()
        );
        return Err(index_json::unread_compression(&zip, name, &unpack));
    }
    index_json::unpack(&zip, bytes, options)
}

/// A column of a shard.
struct Column {
    name: String,
    /// The index of its field.
    place: usize,
    /// `None` if the column is excluded.
    encoding: Option<Encoding>,
    /// The length of each value in bytes. `None` if each sample states it.
    bytes: Option<u64>,
    /// Whether the column is named like masks.
    is_mask: bool,
}

/// The columns of a shard, in the order of its values.
fn columns(
    path: &Path,
    shard: &Shard,
    fields: &DeclaredFields,
    options: &ListOptions,
) -> Result<Vec<Column>, ConvertError> {
    let (names, basename) = (&shard.column_names, &shard.raw_data.basename);
    let wrong = |reason: String| ConvertError::malformed(path, basename, reason);
    let counts = [shard.column_encodings.len(), shard.column_sizes.len()];
    if counts != [names.len(); 2] {
        let [encodings, sizes] = counts;
        return Err(wrong(format!(
            "expected an encoding and a size for each of {} columns, found {encodings} and {sizes}",
            names.len()
        )));
    }
    let own: HashSet<&String> = names.iter().collect();
    let expected = fields.names();
    if own.len() != names.len() || expected.len() != names.len() || !expected.iter().all(|name| own.contains(name)) {
        let reason = format!("expected the columns {expected:?}, as in the first shard, found {names:?}");
        let hint = "write all shards with the same columns, or convert the folders separately";
        return Err(ConvertError::contradictory(path, basename, reason, hint));
    }
    let each = names.iter().zip(&shard.column_encodings).zip(&shard.column_sizes);
    each.map(|((name, encoding), size)| {
        let place = fields.place(name).unwrap_or(usize::MAX);
        let encoding = match fields.is_left_out(place) {
            true => None,
            false => Some(Encoding::of(path, name, encoding)?),
        };
        let bytes = size.filter(|size| *size > 0);
        let own = encoding.as_ref().map(Encoding::bytes);
        if let Some(own) = own.filter(|own| *own != bytes) {
            let text = |bytes: Option<u64>| bytes.map_or("null".to_owned(), |bytes| bytes.to_string());
            let reason = format!("expected the size {} for the column '{name}', found {}", text(own), text(bytes));
            return Err(wrong(reason));
        }
        let is_mask = is_mask_name(name) || options.mask_key.as_ref() == Some(name);
        Ok(Column { name: name.clone(), place, encoding, bytes, is_mask })
    })
    .collect()
}

/// The samples of a shard.
struct Samples<'a> {
    file: &'a OpenFile,
    /// The index of `file` among the files.
    number: u32,
    columns: &'a [Column],
}

impl Samples<'_> {
    /// Adds the values of `n` samples to the fields.
    fn read(&self, n: u64, fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        let ends = self.ends(n)?;
        for (sample, pair) in ends.windows(2).enumerate() {
            if let &[start, end] = pair {
                self.sample(sample, [start, end].map(u64::from), fields)?;
            }
        }
        Ok(())
    }

    /// Where each sample starts, and where the last one ends.
    fn ends(&self, n: u64) -> Result<Vec<u32>, ConvertError> {
        const WORD: u64 = 4;
        let head = self.file.part("number of samples", 0, WORD)?;
        let found = u32_at(&head, 0).map_or(0, u64::from);
        if found != n {
            let reason = format!("expected {n} samples, as in '{}', found {found}", index_json::INDEX);
            return Err(ConvertError::malformed(&self.file.path, "", reason));
        }
        let table = self.file.part("table of samples", WORD, (found + 1) * WORD)?;
        let (words, _) = table.as_chunks::<4>();
        let ends: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let start = (found + 2) * WORD;
        let is_sorted = ends.is_sorted() && ends.first().is_some_and(|first| u64::from(*first) >= start);
        let last = ends.last().copied().map_or(0, u64::from);
        if !is_sorted || last > self.file.bytes {
            let bytes = self.file.bytes;
            let reason = format!("expected increasing offsets from {start} to {bytes}, found others (last: {last})");
            return Err(ConvertError::malformed(&self.file.path, "table of samples", reason));
        }
        Ok(ends)
    }

    /// Adds the values of the sample between two offsets.
    fn sample(&self, sample: usize, [start, end]: [u64; 2], fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        let place = format!("sample {sample}");
        let n_stated = to_u64(self.columns.iter().filter(|column| column.bytes.is_none()).count());
        let head = n_stated * 4;
        let wrong = |expected: u64| {
            let found = end - start;
            let reason = format!("expected {expected} bytes for its values, found {found}");
            ConvertError::malformed(&self.file.path, &place, reason)
        };
        if end - start < head {
            return Err(wrong(head));
        }
        let sizes = self.file.part(&place, start, head)?;
        let (sizes, _) = sizes.as_chunks::<4>();
        let mut sizes = sizes.iter().map(|size| u64::from(u32::from_le_bytes(*size)));
        let lengths: Vec<u64> =
            self.columns.iter().map(|column| column.bytes.or_else(|| sizes.next()).unwrap_or(0)).collect();
        let total = lengths.iter().try_fold(head, |sum, n| sum.checked_add(*n)).unwrap_or(u64::MAX);
        if total != end - start {
            return Err(wrong(total));
        }
        let mut offset = start + head;
        for (column, bytes) in self.columns.iter().zip(lengths) {
            if let Some(encoding) = &column.encoding {
                let name = format!("{place}: {}", column.name);
                let (file, number, path) = (self.file, self.number, self.file.path.as_path());
                let raw = Raw { file, number, path, name: name.as_bytes(), offset, bytes };
                encoding.read(&raw, column.is_mask, column.place, fields)?;
            }
            offset += bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
