//! LitData: chunks of samples in a folder, and an `index.json` that names the chunks, the serializer of each value, and the names of the
//! values.
//!
//! Values of uncompressed chunks are read in place; compressed chunks are unpacked. Pickles are never run.

mod chunk;
mod names;
mod nested;
mod serializer;

use std::path::Path;

use serde::Deserialize;

use super::ListOptions;
use super::declared::DeclaredFields;
use super::detect::Head;
use super::found::Found;
use super::index_json::{self, INDEX, IndexFormat};
use super::roles::no_samples;
use super::shards::{Shards, allow_open_files};
use super::sized_samples::SizedSamples;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use chunk::Wrap;
use serializer::Serializer;

const FORMAT: IndexFormat = IndexFormat {
    list: "chunks",
    join: |folder| {
        let folder = folder.display();
        format!(
            "join them in Python: import glob, litdata; litdata.merge_datasets(sorted(glob.glob('{folder}/*/')), '{folder}-merged')"
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
}

/// Whether a file is an index.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    FORMAT.starts(head)
}

/// Whether a folder has an index, or subfolders with an index.
pub(crate) fn is_set(folder: &Path, names: &[String]) -> bool {
    FORMAT.is_in(folder, names)
}

/// The parts of a source: one for each subfolder with an index if these are splits.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let folders = FORMAT.folders(source)?.into_iter();
    Ok(folders.map(|(split, folder)| Shards { split, ..Shards::one(&folder) }).collect())
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let index: Index = index_json::read(&part.root)?;
    let path = part.root.join(INDEX);
    if index.chunks.is_empty() {
        return Err(no_samples(&part.root));
    }
    let config = &index.config;
    config.check(&path)?;
    let formats = config.data_format.as_deref().unwrap_or_default();
    let names = names::of(&path, config.data_spec.as_deref(), formats.len())?;
    let mut fields = DeclaredFields::new(&path, &names, options)?;
    let serializers = names.iter().zip(formats).enumerate().map(|(place, (name, format))| {
        let is_read = !fields.is_left_out(place);
        is_read.then(|| Serializer::of(&path, name, format)).transpose()
    });
    let serializers: Vec<Option<Serializer>> = serializers.collect::<Result<_, _>>()?;
    let lengths = vec![None; names.len()];
    allow_open_files(index.chunks.len());
    let mut files = Vec::new();
    for (number, chunk) in (0_u32..).zip(&index.chunks) {
        let path = index_json::file_in(&part.root, &chunk.filename)?;
        let (file, offsets) = Wrap::of(config, &chunk.filename).open(&path, chunk, options)?;
        let samples = SizedSamples { file: &file, number, names: &names, lengths: &lengths };
        samples.read(&offsets, |place, raw| match serializers.get(place).and_then(Option::as_ref) {
            Some(serializer) => serializer.read(raw, place, &mut fields),
            None => Ok(()),
        })?;
        files.push(file);
    }
    fields.into_found(DataFormat::LitData, files, part, options)
}

impl Config {
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
