//! One entry per format: its name, detection, input and output. One file per format.
//!
//! Reading and writing are elsewhere. The entries name the functions of `source` and `sink`.

pub(crate) mod arrow;
pub(crate) mod cifar;
pub(crate) mod hdf5;
pub(crate) mod image_folder;
pub(crate) mod lmdb;
pub(crate) mod manifest;
pub(crate) mod mnist;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod parquet;
pub(crate) mod pt;
pub(crate) mod safetensors;
pub(crate) mod tfrecord;
pub(crate) mod webdataset;
pub(crate) mod zarr;

use std::path::Path;

use crate::error::ConvertError;
use crate::export::Run;
use crate::sink::{Holds, SinkStart};
use crate::source::{Found, Head, ListOptions, Shards};

/// A format.
pub(crate) struct Entry {
    /// Its name on the command line, in reports and in provenance.
    pub(crate) name: &'static str,
    /// Extensions of its files or folders, the usual one first. Empty if names do not reveal the format.
    pub(crate) extensions: &'static [&'static str],
    /// What it contains, in a few words.
    pub(crate) describe: &'static str,
    /// Whether a file with these first bytes has this format.
    pub(crate) starts: fn(&Head<'_>) -> bool,
    /// Whether the extension suffices. True if files have no magic bytes, or may have other bytes before them.
    pub(crate) trusts_names: bool,
    /// Whether a folder of such files is one dataset.
    pub(crate) is_set: bool,
    /// How it is read; none if this build lacks its library.
    pub(crate) input: Option<Input>,
    /// Whether packs can be exported to it by a build with its library.
    pub(crate) is_sink: bool,
    /// How packs are exported to it; none if this build cannot.
    pub(crate) output: Option<Output>,
}

/// How a format is read.
pub(crate) enum Input {
    /// A folder of image files.
    Folder,
    /// A list of image files.
    Manifest,
    /// Files that contain their samples.
    Samples {
        /// The parts of a source, one per split. A source without splits has one part.
        parts: fn(&Path, &ListOptions) -> Result<Vec<Shards>, ConvertError>,
        /// Finds the samples of one part.
        read: fn(&Shards, &ListOptions) -> Result<Found, ConvertError>,
    },
}

/// How a format is written.
pub(crate) struct Output {
    /// What it can store for each sample.
    pub(crate) holds: Holds,
    /// The names of its codecs.
    pub(crate) codecs: &'static [&'static str],
    /// Whether `--chunk` applies to it.
    pub(crate) has_chunks: bool,
    /// Whether `--shard` applies to it.
    pub(crate) has_shards: bool,
    /// What it creates.
    pub(crate) target: Target,
    /// Creates its sink and writes all samples to it. Returns what it could not store.
    pub(crate) write: fn(&SinkStart<'_>, &Run<'_>) -> Result<Vec<String>, ConvertError>,
}

/// What an export creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A file if the name says so, otherwise a folder with one file per shard.
    FileOrShards,
    /// A file if the name says so, otherwise a folder with one file per sample.
    FileOrSamples,
}

/// For formats that cannot be detected from a file: folders and lists.
pub(crate) fn never(_: &Head<'_>) -> bool {
    false
}

/// The parts of a source whose splits are known only from file names.
pub(crate) fn parts_by_name(
    source: &Path,
    format: crate::DataFormat,
) -> Result<Vec<Shards>, ConvertError> {
    Ok(Shards::find(source, format)?.by_split())
}
