//! One entry for each format: what it is called, how it is recognized, how it is read and written. One file per format.
//!
//! Not for reading or writing: the entries name the functions of `source` and `sink` that do it.

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
    /// Extensions of its files or folders, the customary one first; empty where the name says nothing.
    pub(crate) extensions: &'static [&'static str],
    /// What it holds, in a few words.
    pub(crate) describe: &'static str,
    /// Whether a file that starts like this is one.
    pub(crate) starts: fn(&Head<'_>) -> bool,
    /// Whether the extension is enough, as where files have no first bytes of their own, or others before them.
    pub(crate) trusts_names: bool,
    /// Whether a folder of such files is one dataset.
    pub(crate) is_set: bool,
    /// How it is read; none where this build lacks its library.
    pub(crate) input: Option<Input>,
    /// Whether packs can be exported to it, by a build that has its library.
    pub(crate) is_sink: bool,
    /// How packs are exported to it; none where this build cannot.
    pub(crate) output: Option<Output>,
}

/// How a format is read.
pub(crate) enum Input {
    /// A folder of image files.
    Folder,
    /// A list of image files.
    Manifest,
    /// Files that hold their samples themselves.
    Samples {
        /// The parts of a source, one for each split that it has; one without a split where it has none.
        parts: fn(&Path, &ListOptions) -> Result<Vec<Shards>, ConvertError>,
        /// Finds the samples of one part.
        read: fn(&Shards, &ListOptions) -> Result<Found, ConvertError>,
    },
}

/// How a format is written.
pub(crate) struct Output {
    /// What it can hold for each sample.
    pub(crate) holds: Holds,
    /// The names of its codecs.
    pub(crate) codecs: &'static [&'static str],
    /// Whether `--chunk` applies to it.
    pub(crate) has_chunks: bool,
    /// Whether `--shard` applies to it.
    pub(crate) has_shards: bool,
    /// What it makes.
    pub(crate) target: Target,
    /// Makes its sink and writes all samples to it; returns what it could not hold.
    pub(crate) write: fn(&SinkStart<'_>, &Run<'_>) -> Result<Vec<String>, ConvertError>,
}

/// What an export makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A file where the name says so, else a folder with a file for each shard.
    FileOrShards,
    /// A file where the name says so, else a folder with a file for each sample.
    FileOrSamples,
}

/// No file starts like one of a format that consists of folders or lists.
pub(crate) fn never(_: &Head<'_>) -> bool {
    false
}

/// The parts of a source whose splits only the names of its files tell.
pub(crate) fn parts_by_name(
    source: &Path,
    format: crate::DataFormat,
) -> Result<Vec<Shards>, ConvertError> {
    Ok(Shards::find(source, format)?.by_split())
}
