//! The index of an MDS dataset.

use std::path::Path;

use serde::Deserialize;

use super::super::index_json::{self, INDEX};
use super::super::roles::no_samples;
use crate::error::ConvertError;

/// The only version that was ever published.
const VERSION: u64 = 2;

#[derive(Debug, Deserialize)]
pub(super) struct Index {
    version: u64,
    pub(super) shards: Vec<Shard>,
}

/// A shard and its columns.
#[derive(Debug, Deserialize)]
pub(super) struct Shard {
    format: String,
    version: u64,
    #[serde(default)]
    pub(super) column_names: Vec<String>,
    #[serde(default)]
    pub(super) column_encodings: Vec<String>,
    /// The length of the values of each column. `None` if each sample states it.
    #[serde(default)]
    pub(super) column_sizes: Vec<Option<u64>>,
    pub(super) compression: Option<String>,
    pub(super) raw_data: FileInfo,
    pub(super) zip_data: Option<FileInfo>,
    pub(super) samples: u64,
}

/// A file of a shard.
#[derive(Debug, Deserialize)]
pub(super) struct FileInfo {
    /// Its path relative to the index.
    pub(super) basename: String,
    pub(super) bytes: u64,
}

impl Index {
    /// Reads the index in a folder.
    ///
    /// # Errors
    /// If it is damaged, has another version, names shards of other formats, or has no shards.
    pub(super) fn read(folder: &Path) -> Result<Self, ConvertError> {
        let index: Self = index_json::read(folder)?;
        let path = folder.join(INDEX);
        let versions = index.shards.iter().map(|shard| (shard.raw_data.basename.as_str(), shard.version));
        let mut versions = std::iter::once(("", index.version)).chain(versions);
        if let Some((place, version)) = versions.find(|(_, version)| *version != VERSION) {
            let reason = format!("expected version {VERSION} of the format, found {version}");
            let hint = "write the samples again with the MDSWriter of a release of MosaicML Streaming";
            return Err(ConvertError::contradictory(&path, place, reason, hint));
        }
        if let Some(other) = index.shards.iter().find(|shard| shard.format != "mds") {
            let format = other.format.escape_debug();
            let reason = format!("expected shards of the format mds, found {format}");
            let hint = "convert the files themselves (.jsonl, .csv or .tsv), or write the samples with MDSWriter";
            return Err(ConvertError::unsupported(&path, &other.raw_data.basename, reason, hint));
        }
        if index.shards.is_empty() {
            return Err(no_samples(folder));
        }
        index_json::refuse_twice(folder, index.shards.iter().map(|shard| shard.raw_data.basename.as_str()))?;
        Ok(index)
    }
}
