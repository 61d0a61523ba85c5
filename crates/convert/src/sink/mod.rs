//! The export formats. Each module writes one format, from batches of samples in file order.
//!
//! `export` reads the pack, and `fields` and `batch` decide what to export.

#[cfg(feature = "arrow")]
mod arrow;
mod batch;
mod boxes;
pub(crate) mod coco;
mod fields;
mod gzip_stream;
#[cfg(feature = "hdf5")]
mod hdf5;
mod image_files;
pub(crate) mod image_folder;
mod item_bytes;
mod item_file;
mod litdata;
mod lmdb;
mod mds;
mod npy;
mod npy_header;
mod npz;
#[cfg(feature = "arrow")]
mod parquet;
mod pickle_writer;
mod placed;
mod protobuf;
mod pt;
mod renamed;
mod rows;
mod safetensors;
mod shard_files;
mod sized_samples;
mod sized_shards;
#[cfg(feature = "arrow")]
mod table;
#[cfg(test)]
#[path = "tests/test_pack.rs"]
pub(crate) mod test_pack;
mod tfrecord;
mod webdataset;
pub(crate) mod yolo;
#[cfg(feature = "zarr")]
mod zarr;
mod zip_file;

#[cfg(feature = "arrow")]
pub(crate) use arrow::ArrowSink;
pub(crate) use batch::{Batch, BatchReader};
pub(crate) use coco::CocoSink;
pub use fields::ImagesAs;
pub(crate) use fields::{Exported, ExportedField, Form, Holds};
#[cfg(feature = "hdf5")]
pub(crate) use hdf5::Hdf5Sink;
pub(crate) use image_folder::ImageFolderSink;
pub(crate) use item_file::pixels_of;
pub use item_file::{ItemFile, interleave, item_file};
pub(crate) use litdata::LitDataSink;
pub(crate) use lmdb::LmdbSink;
pub(crate) use mds::MdsSink;
pub(crate) use npy::write as write_npy;
pub(crate) use npz::NpzSink;
#[cfg(feature = "arrow")]
pub(crate) use parquet::ParquetSink;
pub(crate) use pt::PtSink;
pub(crate) use safetensors::SafetensorsSink;
pub(crate) use tfrecord::TfRecordSink;
pub(crate) use webdataset::WebDatasetSink;
pub(crate) use yolo::YoloSink;
#[cfg(feature = "zarr")]
pub(crate) use zarr::ZarrSink;

#[cfg(test)]
pub(crate) use item_file::npy as npy_file;
#[cfg(test)]
pub(crate) use zip_file::{Member, directory as zip_directory};

use std::path::Path;

use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::export::{ExportCodec, ExportOptions};
use crate::formats::{Output, Target};
use crate::metadata::Metadata;
use crate::opt::{CHUNK, CODEC, PER_SAMPLE, SHARD, TO, ZARR_VERSION};

pub(crate) struct SinkStart<'a> {
    /// The file or folder to write, which is still empty. The caller syncs and renames it at the end.
    pub(crate) path: &'a Path,
    /// The name that the user gave, for errors and for names in the output.
    pub(crate) target: &'a Path,
    pub(crate) exported: &'a Exported,
    pub(crate) n_samples: u64,
    /// Samples per batch. The last batch may have fewer.
    #[cfg(feature = "zarr")]
    pub(crate) batch_samples: u32,
    /// Each sample's path. Empty if the pack has none.
    pub(crate) paths: &'a [Vec<u8>],
    pub(crate) metadata: &'a Metadata,
    pub(crate) options: &'a ExportOptions,
}

pub(crate) trait Sink: Sized {
    type Encoder: Encode;

    /// Starts writing. Fails if the format cannot store the samples.
    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError>;

    /// The encoder for this sink's batches. It does not borrow the sink, because batches are encoded while others are
    /// written.
    fn encoder(&self) -> Self::Encoder;

    /// Writes the next batch in order.
    fn write(&mut self, ready: <Self::Encoder as Encode>::Ready) -> Result<(), ConvertError>;

    /// Finishes after the last batch. Returns descriptions of what the format could not store.
    fn finish(self) -> Result<Vec<String>, ConvertError>;
}

/// The work on a batch that any thread can do before batches are written in order: compression, framing, checksums.
pub(crate) trait Encode: Sync {
    type Ready: Send;

    fn encode(&self, batch: Batch) -> Result<Self::Ready, ConvertError>;
}

pub(crate) struct AsItIs;

impl Encode for AsItIs {
    type Ready = Batch;

    fn encode(&self, batch: Batch) -> Result<Batch, ConvertError> {
        Ok(batch)
    }
}

/// Whether the output is a folder. Some formats always write a folder, others only if there are several files.
pub(crate) fn is_folder(format: DataFormat, target: &Path, options: &ExportOptions) -> bool {
    let named = target.file_name().and_then(|name| name.to_str());
    let is_file_name = named.and_then(DataFormat::from_file_name) == Some(format);
    match output_of(format, target).map(|output| output.target) {
        Ok(Target::Folder) => true,
        Ok(Target::FileOrShards) => options.shard_samples.is_some() || !is_file_name,
        Ok(Target::FileOrSamples) => options.per_sample || !is_file_name,
        Ok(Target::File) | Err(_) => false,
    }
}

/// The names of the exported fields that are written to this target.
pub(crate) fn written_fields(
    exported: &Exported,
    format: DataFormat,
    target: &Path,
    options: &ExportOptions,
) -> Vec<String> {
    let is_written = |place| format != DataFormat::Npy || npy::is_written(exported, place, target, options);
    let fields = exported.fields.iter().enumerate().filter(|(place, _)| is_written(*place));
    fields.map(|(_, field)| field.field.name.clone()).collect()
}

/// How packs are exported to `format`. Fails if this build cannot export to it.
pub(crate) fn output_of(format: DataFormat, target: &Path) -> Result<&'static Output, ConvertError> {
    let lacking = || ConvertError::FormatLeftOut { path: target.to_owned(), format };
    format.entry().output.as_ref().ok_or_else(lacking)
}

/// Rejects options that do not apply to `format`.
pub(crate) fn check_options(format: DataFormat, target: &Path, options: &ExportOptions) -> Result<(), ConvertError> {
    let output = output_of(format, target)?;
    let codecs = output.codecs;
    if let Some(codec) = options.codec.filter(|codec| !codecs.contains(&codec.name())) {
        return Err(ConvertError::options(
            format!("{format} cannot be compressed with {}", CODEC.with(codec.name())),
            format!("omit it, or choose one that {format} supports: {}", codecs.join(", ")),
        ));
    }
    let (is_npy, is_zarr) = (format == DataFormat::Npy, format == DataFormat::Zarr);
    let refused = [
        (CHUNK, options.chunk_samples.is_some() && !output.has_chunks),
        (SHARD, options.shard_samples.is_some() && !output.has_shards),
        (PER_SAMPLE, options.per_sample && !is_npy),
        (ZARR_VERSION, options.zarr_version.is_some() && !is_zarr),
    ];
    check_name(format, target, options)?;
    match refused.into_iter().find(|(_, refused)| *refused) {
        None => Ok(()),
        Some((option, _)) => Err(ConvertError::options(format!("{option} does not apply to {format}"), "omit it")),
    }
}

/// Rejects options that contradict the file name of a single shard.
fn check_name(format: DataFormat, target: &Path, options: &ExportOptions) -> Result<(), ConvertError> {
    let name = target.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_set = matches!(format, DataFormat::WebDataset | DataFormat::TfRecord);
    if !is_set || DataFormat::from_file_name(name) != Some(format) {
        return Ok(());
    }
    let is_gzip = [".gz", ".tgz"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    let (reason, hint) = if options.shard_samples.is_some() {
        let reason = format!("{SHARD} writes a folder of files, but this is the name of a single file");
        (reason, format!("pass the name of a folder, with {}, or omit {SHARD}", TO.with(format)))
    } else if is_gzip && options.codec == Some(ExportCodec::None) {
        let reason = format!("the extension requests compression, which contradicts {}", CODEC.with("none"));
        (reason, "omit the option, or choose another name".to_owned())
    } else {
        return Ok(());
    };
    Err(ConvertError::Options { reason: format!("{}: {reason}", target.display()), hint })
}
