//! The readers of all formats. Whatever a format stores, its pixels and labels end up in a batch's memory.
//!
//! The converter's readers are not used here. They read a source once, in order and with all checks, but the benchmark
//! measures loading as in training. If there is a library for the format (`zarr`, `hdf5`, `arrow`, `parquet`, `lmdb`),
//! it is used. Otherwise, the format has the shortest reader that returns the same pixels: `shards` and `proto` for tar
//! and TFRecord, `array_file` for mapped arrays, and `sample_files` for one file per sample.

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

pub(crate) use array_file::{npy, npz, pt, safetensors};
#[cfg(feature = "arrow")]
pub(crate) use arrow::arrow;
pub(crate) use decode::Pictures;
#[cfg(feature = "hdf5")]
pub(crate) use hdf5::{hdf5_per_sample, hdf5_slices};
#[cfg(feature = "hdf5")]
pub(crate) use hdf5_gzip::hdf5_gzip;
#[cfg(not(feature = "lmdb"))]
pub(crate) use left_out as lmdb;
#[cfg(feature = "lmdb")]
pub(crate) use lmdb::lmdb;
#[cfg(feature = "arrow")]
pub(crate) use parquet::parquet;
pub(crate) use sample_files::{array_files, image_files};
pub(crate) use shards::{records, tar};
#[cfg(feature = "zarr")]
pub(crate) use zarr::{zarr_batch, zarr_part, zarr_sample, zarr_shard};
#[cfg(not(feature = "arrow"))]
pub(crate) use {left_out as arrow, left_out as parquet};
#[cfg(not(feature = "hdf5"))]
pub(crate) use {left_out as hdf5_gzip, left_out as hdf5_per_sample, left_out as hdf5_slices};
#[cfg(not(feature = "zarr"))]
pub(crate) use {left_out as zarr_batch, left_out as zarr_part, left_out as zarr_sample, left_out as zarr_shard};

use packds_system::to_u64;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use packds_convert::source::{ListOptions, list};

use crate::BenchError;

/// The files that were written for a format, and what they contain.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    pub(crate) n_samples: u64,
    pub(crate) sample_bytes: usize,
    pub(crate) channels: u64,
    pub(crate) batch: u64,
    /// Number of samples per shard, if the format has shards.
    pub(crate) shard: u64,
    pub(crate) labels: Arc<[i64]>,
}

impl Made {
    pub(crate) fn pixel_bytes(&self) -> u64 {
        let sample = to_u64(self.sample_bytes);
        self.n_samples.saturating_mul(sample)
    }

    /// The same files, with labels read from the files in the order of their samples. They are read once, before
    /// anything is timed, as in programs that keep all labels in memory. If the files do not have a label for every
    /// sample, the known labels are kept.
    pub(crate) fn with_listed_labels(&self) -> Self {
        let listing = list(&self.path, &ListOptions::default());
        let listed = listing.ok().and_then(|all| (0..all.len()).map(|i| all.label(i)).collect::<Option<Arc<[i64]>>>());
        let labels = listed.filter(|labels| labels.len() == self.labels.len());
        Self { labels: labels.unwrap_or_else(|| Arc::clone(&self.labels)), ..self.clone() }
    }

    /// The error for files that differ from what was written.
    pub(crate) fn odd(&self, what: &str) -> BenchError {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
        BenchError::io(&self.path)(error)
    }

    /// Like [`odd`](Self::odd), for an error of a library.
    pub(crate) fn failed(&self, error: impl Display) -> BenchError {
        self.odd(&error.to_string())
    }
}

/// Stands in for the readers that are not part of this build. The error names LMDB, because the converter can write
/// LMDB in every build. Other formats without a reader cannot be written either, so they never get here.
#[cfg(not(all(feature = "arrow", feature = "hdf5", feature = "lmdb", feature = "zarr")))]
pub(crate) fn left_out(made: &Made) -> Result<super::candidate::Open, BenchError> {
    let format = packds_convert::DataFormat::Lmdb;
    Err(packds_convert::ConvertError::FormatLeftOut { path: made.path.clone(), format }.into())
}
