//! LitData: chunks of samples in a folder, and an `index.json` that names the chunks, the serializer of each value, and the names of the
//! values.
//!
//! Values of uncompressed chunks are read in place; compressed chunks are unpacked. Pickles are never run.

mod chunk;
mod names;
mod nested;
mod serializer;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::ListOptions;
use super::declared::DeclaredFields;
use super::detect::Head;
use super::found::Found;
use super::index_json::{self, INDEX, IndexFormat, Unpacked};
use super::roles::no_samples;
use super::shards::{Shards, allow_open_files};
use super::sized_samples::SizedSamples;
use super::store::OpenFile;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::literal::python;
use chunk::Wrap;
use serializer::Serializer;
pub(crate) use serializer::{NUMPY, TORCH};

const FORMAT: IndexFormat = IndexFormat {
    list: "chunks",
    is_shard: is_chunk,
    join: |folder| {
        format!(
            "join them in Python: import glob, litdata; d = {}; litdata.merge_datasets(sorted(glob.glob(glob.escape(d) + '/*/')), d + '-merged')",
            python(folder)
        )
    },
};
/// The loader of samples with named values. Others read blocks of tokens, Parquet or time series.
const LOADER: &str = "PyTreeLoader";

/// The index of a dataset.
#[derive(Debug, Deserialize)]
struct Index {
    chunks: Vec<Chunk>,
    config: Config,
}

/// A chunk of samples.
#[derive(Debug, Deserialize)]
struct Chunk {
    filename: String,
    /// Number of bytes. Early versions did not count the offsets.
    chunk_bytes: u64,
    /// Number of samples.
    chunk_size: u64,
}

/// How all chunks are written.
#[derive(Debug, Deserialize)]
struct Config {
    compression: Option<String>,
    /// What is compressed: chunks, batches of samples, or samples.
    compression_level: Option<String>,
    data_format: Option<Vec<String>>,
    data_spec: Option<String>,
    encryption: Option<serde_json::Value>,
    item_loader: Option<String>,
    /// The type of each field, if samples are dictionaries. Early versions did not write them.
    #[serde(default)]
    types: serde_json::Value,
}

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

/// Whether a name is that of a chunk.
pub(super) fn is_chunk(name: &str) -> bool {
    name.starts_with("chunk-") && name.ends_with(".bin")
}

/// The parts of a source: one for each subfolder with an index if these are splits.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let folders = FORMAT.folders(source)?.into_iter();
    Ok(folders.map(|(split, folder)| Shards { split, ..Shards::one(&folder) }).collect())
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let index = Index::read(&part.root)?;
    let (fields, files) = values(part, &index, options, None)?;
    let mut names = fields.names();
    names.retain(|name| !options.is_left_out(name) && index.config.may_be_none(name));
    let mut found = fields.into_found(DataFormat::LitData, files, part, options)?;
    if !names.is_empty() {
        found.warnings.push(Warning::Table(TableNote::StoredNone { fields: names }));
    }
    Ok(found)
}

/// The different strings of a field. `None` if the chunks must be unpacked first.
pub(crate) fn class_names(
    part: &Shards,
    options: &ListOptions,
    field: &str,
) -> Result<Option<BTreeSet<Vec<u8>>>, ConvertError> {
    let index = Index::read(&part.root)?;
    if index.config.compression.is_some() {
        return Ok(None);
    }
    let (fields, _) = values(part, &index, options, Some(field))?;
    Ok(Some(fields.words(field)))
}

/// Reads the values of all fields, or of only one field. Also returns the chunks.
fn values(
    part: &Shards,
    index: &Index,
    options: &ListOptions,
    only: Option<&str>,
) -> Result<(DeclaredFields, Vec<OpenFile>), ConvertError> {
    let (path, config) = (part.root.join(INDEX), &index.config);
    let formats = config.data_format.as_deref().unwrap_or_default();
    let names = names::of(&path, config.data_spec.as_deref(), formats.len())?;
    let rename = "rename the keys: a value 'b' in a dictionary 'a' is called 'a.b' too";
    let mut fields = DeclaredFields::new(&path, &names, rename, options)?;
    only.iter().for_each(|name| fields.keep_only(name));
    let serializers = names.iter().zip(formats).enumerate().map(|(place, (name, format))| {
        let is_read = !fields.is_left_out(place);
        is_read.then(|| Serializer::of(&path, name, format)).transpose()
    });
    let serializers: Vec<Option<Serializer>> = serializers.collect::<Result<_, _>>()?;
    let lengths = vec![None; names.len()];
    let stays = allow_open_files(index.chunks.len());
    let (mut files, mut unpacked) = (Vec::new(), Unpacked::new(options));
    for (number, chunk) in (0_u32..).zip(&index.chunks) {
        let path = index_json::file_in(&part.root, &chunk.filename)?;
        let (file, offsets) = Wrap::of(config, &chunk.filename).open(&path, chunk, &mut unpacked)?;
        let samples = SizedSamples { file: &file, number, names: &names, lengths: &lengths };
        samples.read(&offsets, |place, raw| match serializers.get(place).and_then(Option::as_ref) {
            Some(serializer) => fields.add(place, |fields| serializer.read(raw, place, fields)),
            None => Ok(()),
        })?;
        files.push(file.kept(stays));
    }
    Ok((fields, files))
}

impl Index {
    /// Reads the index in a folder.
    ///
    /// # Errors
    /// If it is damaged, has no chunks, or describes what is not read.
    fn read(folder: &Path) -> Result<Self, ConvertError> {
        let index: Self = index_json::read(folder)?;
        if index.chunks.is_empty() {
            return Err(no_samples(folder));
        }
        index.config.check(&folder.join(INDEX))?;
        index_json::refuse_twice(folder, index.chunks.iter().map(|chunk| chunk.filename.as_str()))?;
        Ok(index)
    }
}

impl Config {
    /// Whether values of a field may be missing. LitData then stores 0, 0.0 or an empty string.
    fn may_be_none(&self, field: &str) -> bool {
        self.types.get(field).and_then(|of| of.get("optional")).is_some_and(|optional| *optional == true)
    }

    /// Refuses datasets that are encrypted, compressed in another way, or not read value by value.
    fn check(&self, path: &Path) -> Result<(), ConvertError> {
        let refused = |reason: String, hint: &str| Err(ConvertError::unsupported(path, "", reason, hint));
        if self.encryption.as_ref().is_some_and(|encryption| !encryption.is_null()) {
            let hint = "write the dataset again without encryption=";
            return refused("the chunks are encrypted".to_owned(), hint);
        }
        let loader = self.item_loader.as_deref().unwrap_or(LOADER);
        if loader != LOADER {
            let hint = match loader {
                "ParquetLoader" => "pass the Parquet files themselves",
                _ => "write each sample as a dictionary of values, with litdata.optimize and its default loader",
            };
            let loader = loader.escape_debug();
            return refused(format!("expected samples of the loader {LOADER}, found {loader}"), hint);
        }
        let name = self.compression.as_deref().unwrap_or("zstd").split(':').next().unwrap_or_default();
        if name != "zstd" {
            let hint = "write the dataset again with compression='zstd', or without";
            return refused(format!("the compression '{}' is not supported", name.escape_debug()), hint);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
