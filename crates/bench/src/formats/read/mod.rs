//! How each format is read: whatever it keeps, pixels and labels end in a batch's memory.
//!
//! None of this uses the converter's readers. They unpack a source once, in order and with every check, before the first sample. A
//! figure here is what a training gets: from the library of the format where there is one (`zarr`, `hdf5`, `arrow`, `parquet`,
//! `lmdb`), otherwise from the shortest reader that gives the same pixels (`shards` and `proto` for tar and TFRecord, mapped files
//! in `array_file`, files of one sample in `sample_files`).

mod array_file;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "arrow")]
mod columns;
mod decode;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "hdf5")]
mod hdf5_gzip;
#[cfg(feature = "lmdb")]
mod lmdb;
mod npy;
#[cfg(feature = "arrow")]
mod parquet;
mod proto;
mod sample_files;
mod shards;
#[cfg(feature = "zarr")]
mod zarr;

pub(crate) use array_file::ArrayFile;
#[cfg(feature = "arrow")]
pub(crate) use arrow::ArrowFile;
pub(crate) use decode::Pictures;
#[cfg(feature = "hdf5")]
pub(crate) use hdf5::Hdf5File;
#[cfg(feature = "hdf5")]
pub(crate) use hdf5_gzip::Hdf5Gzip;
#[cfg(feature = "lmdb")]
pub(crate) use lmdb::LmdbFolder;
#[cfg(feature = "arrow")]
pub(crate) use parquet::ParquetFile;
pub(crate) use sample_files::SampleFiles;
pub(crate) use shards::{Kind, Shards};
#[cfg(feature = "zarr")]
pub(crate) use zarr::{ReadBy, ZarrArray};

use packds_system::to_u64;
use std::path::PathBuf;
use std::sync::Arc;

use packds_convert::source::{ListOptions, list};

use crate::BenchError;

/// A format's files as they were written, and what is in them.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    pub(crate) n_samples: u64,
    pub(crate) sample_bytes: usize,
    /// Channels of a pixel.
    pub(crate) channels: u64,
    /// Samples of a batch.
    pub(crate) batch: u64,
    /// Samples of a shard, where it has shards.
    pub(crate) shard: u64,
    /// The labels of all samples.
    pub(crate) labels: Arc<[i64]>,
}

impl Made {
    /// Bytes of all pixels.
    pub(crate) fn pixel_bytes(&self) -> u64 {
        let sample = to_u64(self.sample_bytes);
        self.n_samples.saturating_mul(sample)
    }

    /// The labels that the files hold, in the order of their samples: read once, before anything is timed, as programs do
    /// that keep 8 bytes a sample. Those that were written, where the format keeps none beside its images.
    pub(crate) fn listed_labels(&self) -> Arc<[i64]> {
        let Ok(listing) = list(&self.path, &ListOptions::default()) else {
            return Arc::clone(&self.labels);
        };
        let labels: Option<Vec<i64>> = (0..listing.len()).map(|i| listing.label(i)).collect();
        match labels {
            Some(labels) if labels.len() == self.labels.len() => labels.into(),
            _ => Arc::clone(&self.labels),
        }
    }

    /// Something in the files is not as it was written.
    pub(crate) fn odd(&self, what: &str) -> BenchError {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
        BenchError::io(&self.path)(error)
    }
}
