//! MosaicML Streaming's MDS: shards of samples in a folder, and an `index.json` that names the shards and the encoding of each column.
//!
//! Values of raw shards are read in place; compressed shards are unpacked. Pickles are never run. The hashes in the index are not checked.

mod encoding;
mod index;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::declared::DeclaredFields;
use super::detect::Head;
use super::found::Found;
use super::index_json::{self, IndexFormat, Unpacked};
use super::shards::{Shards, allow_open_files};
use super::sized_samples::{self, SizedSamples};
use super::store::OpenFile;
use super::there::is_there_as_file;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::literal::python;
use encoding::Encoding;
use index::{Index, Shard};

const FORMAT: IndexFormat = IndexFormat {
    list: "shards",
    is_shard,
    join: |folder| {
        format!("join them in Python: import streaming; streaming.base.util.merge_index({})", python(folder))
    },
};
/// Compressions of the format that are read.
const COMPRESSIONS: [&str; 3] = ["zstd", "gz", "bz2"];

/// Whether a file is an index.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    FORMAT.starts(head)
}

/// Whether a folder has an index.
pub(crate) fn has_index(folder: &Path, names: &[String]) -> bool {
    FORMAT.is_in(folder, names)
}

/// Whether a folder has subfolders with an index.
pub(crate) fn is_set(folder: &Path, names: &[String]) -> bool {
    FORMAT.is_below(folder, names)
}

/// Whether a name is that of a shard, compressed or not.
pub(super) fn is_shard(name: &str) -> bool {
    name.ends_with(".mds") || name.contains(".mds.")
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
    let (fields, files) = values(part, options, None)?;
    fields.into_found(DataFormat::Mds, files, part, options)
}

/// The different strings of a field. `None` if the shards must be unpacked first.
pub(crate) fn class_names(
    part: &Shards,
    options: &ListOptions,
    field: &str,
) -> Result<Option<BTreeSet<Vec<u8>>>, ConvertError> {
    if !part.files.iter().all(|file| file.is_file()) {
        return Ok(None);
    }
    let (fields, _) = values(part, options, Some(field))?;
    Ok(Some(fields.words(field)))
}

/// Reads the values of all fields, or of only one field. Also returns the shards.
fn values(
    part: &Shards,
    options: &ListOptions,
    only: Option<&str>,
) -> Result<(DeclaredFields, Vec<OpenFile>), ConvertError> {
    let index = Index::read(&part.root)?;
    let own: HashSet<&PathBuf> = part.files.iter().collect();
    let mut shards = Vec::new();
    for shard in &index.shards {
        let path = index_json::file_in(&part.root, &shard.raw_data.basename)?;
        if own.contains(&path) {
            shards.push((path, shard));
        }
    }
    let stays = allow_open_files(shards.len());
    let path = part.root.join(index_json::INDEX);
    let names = shards.first().map_or(&[][..], |(_, shard)| &shard.column_names);
    let mut fields = DeclaredFields::new(&path, names, "give each column a name of its own", options)?;
    only.iter().for_each(|name| fields.keep_only(name));
    let (mut files, mut unpacked) = (Vec::new(), Unpacked::new(options));
    for (number, (raw, shard)) in (0_u32..).zip(&shards) {
        let columns = columns(&path, shard, &fields)?;
        let file = open(raw, shard, &part.root, &mut unpacked)?;
        let samples = SizedSamples { file: &file, number, names: &columns.names, lengths: &columns.lengths };
        samples.read(&sized_samples::offsets(&file, shard.samples)?, |column, raw| {
            let place = columns.places.get(column).copied();
            match (place, columns.encodings.get(column).and_then(Option::as_ref)) {
                (Some(place), Some(encoding)) => fields.add(place, |fields| encoding.read(raw, place, fields)),
                _ => Ok(()),
            }
        })?;
        files.push(file.kept(stays));
    }
    Ok((fields, files))
}

/// Opens a shard, unpacked if only its compressed file is there.
fn open(raw: &Path, shard: &Shard, folder: &Path, unpacked: &mut Unpacked<'_>) -> Result<OpenFile, ConvertError> {
    let bytes = shard.raw_data.bytes;
    let (Some(zip), false) = (&shard.zip_data, is_there_as_file(raw)?) else {
        return index_json::of_length(index_json::open(raw)?, "bytes", bytes);
    };
    let zip = index_json::file_in(folder, &zip.basename)?;
    let compression = shard.compression.as_deref().unwrap_or_default();
    let name = compression.split(':').next().unwrap_or_default();
    if !COMPRESSIONS.contains(&name) && is_there_as_file(&zip)? {
        let unpack = format!(
            "from streaming.base.compression import decompress; import pathlib; [p.with_suffix('').write_bytes(decompress(p.suffix[1:], p.read_bytes())) for p in pathlib.Path({}).rglob('*.mds.*')]",
            python(folder)
        );
        return Err(index_json::unread_compression(&zip, name, &unpack));
    }
    index_json::of_length(unpacked.file(&zip, bytes)?, "unpacked bytes", bytes)
}

/// The columns of a shard, in the order of its values.
struct Columns {
    names: Vec<String>,
    /// The index of each column's field.
    places: Vec<usize>,
    /// `None` if the column is excluded.
    encodings: Vec<Option<Encoding>>,
    /// The length of each value in bytes. `None` if each sample states it.
    lengths: Vec<Option<u64>>,
}

fn columns(path: &Path, shard: &Shard, fields: &DeclaredFields) -> Result<Columns, ConvertError> {
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
    let mut columns = Columns { names: names.clone(), places: Vec::new(), encodings: Vec::new(), lengths: Vec::new() };
    for ((name, encoding), size) in names.iter().zip(&shard.column_encodings).zip(&shard.column_sizes) {
        let place = fields.place(name).unwrap_or(usize::MAX);
        let encoding = match fields.is_left_out(place) {
            true => None,
            false => Some(Encoding::of(path, name, encoding)?),
        };
        let length = size.filter(|size| *size > 0);
        let own = encoding.as_ref().map(Encoding::bytes);
        if let Some(own) = own.filter(|own| *own != length) {
            let text = |length: Option<u64>| length.map_or("null".to_owned(), |length| length.to_string());
            let reason = format!("expected the size {} for the column '{name}', found {}", text(own), text(length));
            return Err(wrong(reason));
        }
        columns.places.push(place);
        columns.encodings.push(encoding);
        columns.lengths.push(length);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
