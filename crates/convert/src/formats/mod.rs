//! The entries of the dataset formats, one file each. An entry describes how its format is named, detected, read and
//! written.
//!
//! The code that reads and writes is in `source` and `sink`; the entries refer to it.

pub(crate) mod array_record;
pub(crate) mod arrow;
pub(crate) mod beton;
pub(crate) mod cifar;
pub(crate) mod coco;
pub(crate) mod hdf5;
pub(crate) mod image_folder;
pub(crate) mod litdata;
pub(crate) mod lmdb;
pub(crate) mod manifest;
pub(crate) mod matlab;
pub(crate) mod mds;
pub(crate) mod mnist;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod parquet;
pub(crate) mod pt;
pub(crate) mod safetensors;
pub(crate) mod tfrecord;
pub(crate) mod webdataset;
pub(crate) mod yolo;
pub(crate) mod zarr;

use std::collections::BTreeSet;
use std::path::Path;

use packds_format::Field;

use crate::error::ConvertError;
use crate::export::Run;
use crate::sink::{Form, Holds, Sink, SinkStart};
use crate::source::{Found, Head, ListOptions, ReadWhole, Shards};

/// The properties of a format.
pub(crate) struct Entry {
    /// The file and folder extensions of the format, the most common one first. Empty if names do not reveal the
    /// format.
    pub(crate) extensions: &'static [&'static str],
    /// A short description of the format's contents.
    pub(crate) describe: &'static str,
    /// The word that messages use for the position of a sample: `row` (in arrays or a table), `record` or `key`.
    pub(crate) sample: &'static str,
    /// Whether a file with these first bytes has this format.
    pub(crate) starts: fn(&Head<'_>) -> bool,
    /// Whether the extension alone identifies the format. True if files have no magic bytes, or may have other bytes
    /// before them.
    pub(crate) trusts_names: bool,
    /// Whether a folder of such files is a single dataset.
    pub(crate) is_set: bool,
    /// Whether the format is read by a build that includes its library.
    pub(crate) is_source: bool,
    /// How the format is read. `None` if this build cannot do so.
    pub(crate) input: Option<Input>,
    /// Whether packs can be exported to the format by a build that includes its library.
    pub(crate) is_sink: bool,
    /// How packs are exported to the format. `None` if this build cannot do so.
    pub(crate) output: Option<Output>,
    /// Names of files that occur only in folders of this format.
    pub(crate) markers: &'static [&'static str],
    /// Whether a folder that contains these names is a published dataset of this format that consists of several files.
    pub(crate) is_published: fn(&Path, &[String]) -> bool,
    /// Whether a folder that contains these names has an index of this format, so that it has this format even if it also has images.
    pub(crate) has_index: fn(&Path, &[String]) -> bool,
    /// The different strings of a field in a part of a source, without reading the other fields. `None` if this needs more than that.
    pub(crate) class_names: ClassNames,
}

/// See [`Entry::class_names`].
pub(crate) type ClassNames = fn(&Shards, &ListOptions, &str) -> Result<Option<BTreeSet<Vec<u8>>>, ConvertError>;

impl Entry {
    /// An entry that is detected only by its extensions and has no input or output.
    pub(crate) const fn new(extensions: &'static [&'static str], describe: &'static str) -> Self {
        Self {
            extensions,
            describe,
            sample: "row",
            starts: |_| false,
            trusts_names: false,
            is_set: false,
            is_source: true,
            input: None,
            is_sink: false,
            output: None,
            markers: &[],
            is_published: |_, _| false,
            has_index: |_, _| false,
            class_names: |_, _, _| Ok(None),
        }
    }
}

/// How the sources of a format are read.
pub(crate) enum Input {
    /// A folder of image files.
    Folder,
    /// A list of image files.
    Manifest,
    /// Files that contain the samples themselves.
    Samples {
        /// Divides a source into one part for each split, and one for samples without a split.
        parts: fn(&Path, &ListOptions) -> Result<Vec<Shards>, ConvertError>,
        /// Finds the samples of one part.
        read: fn(&Shards, &ListOptions) -> Result<Found, ConvertError>,
        /// Reads a file that holds a single sample. `None` if the format has no such files.
        whole: Option<ReadWhole>,
    },
}

/// How packs are exported to a format.
pub(crate) struct Output {
    /// What the format can store for each sample.
    pub(crate) holds: Holds,
    /// Why a field is not exported although the format could hold its form. `None` if it is.
    pub(crate) left_out: fn(&Field, &Form) -> Option<String>,
    pub(crate) codecs: &'static [&'static str],
    /// Whether `--chunk` applies to the format.
    pub(crate) has_chunks: bool,
    /// Whether `--shard` applies to the format.
    pub(crate) has_shards: bool,
    pub(crate) target: Target,
    pub(crate) write: Write,
}

/// Creates a sink and writes all samples to it. Returns descriptions of what the format could not store.
type Write = fn(&SinkStart<'_>, &Run<'_>) -> Result<Vec<String>, ConvertError>;

impl Output {
    /// A format with one sink, and without compression, chunks or shards.
    pub(crate) const fn new<S: Sink>(holds: Holds, target: Target) -> Self {
        Self::by(|start, run| run.write_to(S::create(start)?), holds, target)
    }

    /// A format with several sinks, and without compression, chunks or shards.
    pub(crate) const fn by(write: Write, holds: Holds, target: Target) -> Self {
        let left_out = |_: &Field, _: &Form| None;
        Self { holds, left_out, codecs: &["none"], has_chunks: false, has_shards: false, target, write }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    File,
    Folder,
    /// A file if the name says so, otherwise a folder with one file per shard.
    FileOrShards,
    /// A file if the name says so, otherwise a folder with one file per sample.
    FileOrSamples,
}

/// The parts of a source, for formats whose splits are known only from file names.
pub(crate) fn parts_by_name(source: &Path, format: crate::DataFormat) -> Result<Vec<Shards>, ConvertError> {
    Ok(Shards::find(source, format)?.by_split())
}

#[cfg(test)]
mod tests {
    use crate::DataFormat;

    #[test]
    fn every_format_has_a_row_in_the_table_of_the_documentation() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let page = std::fs::read_to_string(docs.join("formats.md")).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(rows.len(), DataFormat::ALL.len());
        for (format, row) in DataFormat::ALL.into_iter().zip(rows) {
            let link = match format {
                DataFormat::Manifest => "(convert.md#sources)".to_owned(),
                _ => format!("(formats/{format}.md)"),
            };
            assert!(row.contains(&link), "{format}: {row}");
            let has = |place| row.split(" | ").nth(place) == Some("yes");
            assert_eq!((has(1), has(2)), (format.is_source(), format.is_sink()), "{format}: {row}");
            // The page of the format must name every codec.
            let Some(output) = &format.entry().output else { continue };
            let page = std::fs::read_to_string(docs.join(format!("formats/{format}.md"))).unwrap();
            for codec in output.codecs.iter().filter(|codec| **codec != "none") {
                assert!(page.contains(codec), "{format}: {codec}");
            }
        }
    }
}
