//! The measured formats: how each is written and read, with notes for the report.

use packds_convert::{DataFormat, ExportCodec, ImagesAs};

use super::candidate::Open;
use super::read::{self, Made};
use crate::BenchError;

/// Batches per shard, for formats with shards.
pub(crate) const SHARD_BATCHES: u64 = 4;

/// How a format's files are written from the reference pack.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Make {
    Export(Export),
    /// A pack of pixels, compressed at this level, or uncompressed.
    Pack(Option<i32>),
    /// A pack of the user's unchanged image files, or of PNG files if there are none.
    EncodedPack,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Export {
    pub(crate) to: DataFormat,
    pub(crate) target: &'static str,
    pub(crate) images: ImagesAs,
    pub(crate) chunk: Chunk,
    pub(crate) codec: Option<ExportCodec>,
    pub(crate) sharded: bool,
    pub(crate) per_sample: bool,
    pub(crate) read: Read,
}

/// The chunk size with which a format's files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    Unset,
    Of(u32),
    Batch,
}

type Read = fn(&Made) -> Result<Open, BenchError>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) make: Make,
    /// Whether shards can only be read from start to end.
    pub(crate) streamed: bool,
    pub(crate) notes: &'static [&'static str],
}

impl Entry {
    pub(crate) const fn chunk(&self, batch: u32) -> Option<u32> {
        match self.make {
            Make::Export(export) => match export.chunk {
                Chunk::Unset => None,
                Chunk::Of(n) => Some(n),
                Chunk::Batch => Some(batch),
            },
            Make::Pack(_) => Some(batch),
            Make::EncodedPack => None,
        }
    }
}

impl Export {
    /// A format of raw pixels: one array, or one file per sample.
    const fn pixels(to: DataFormat, target: &'static str, read: Read) -> Self {
        Self {
            to,
            target,
            images: ImagesAs::Pixels,
            chunk: Chunk::Unset,
            codec: None,
            sharded: false,
            per_sample: false,
            read,
        }
    }

    const fn chunk(self, chunk: Chunk) -> Self {
        Self { chunk, ..self }
    }

    const fn codec(self, codec: ExportCodec) -> Self {
        Self { codec: Some(codec), ..self }
    }

    const fn uncompressed(self) -> Self {
        self.codec(ExportCodec::None)
    }
}

/// The note for formats with all labels in one array.
const LABELS: &str = "labels are read once, before the clock starts";
const LISTED: &str = "files are listed before the clock starts";
const LOCK: &str = "the library allows only one thread at a time";
const TENSOR: &str = "the tensor is mapped in place";
const TAR: &str = "tar files of four batches";
const LOADER: &str = "the loader's defaults";

const fn entry(name: &'static str, title: &'static str, how: Export, notes: &'static [&'static str]) -> Entry {
    Entry { name, title, make: Make::Export(how), streamed: false, notes }
}

pub(crate) fn all() -> Vec<Entry> {
    [files(), arrays(), hdf5(), zarr(), tables(), streams(), packs()].concat()
}

fn files() -> Vec<Entry> {
    let images = Export::pixels(DataFormat::ImageFolder, "image-folder", read::image_files);
    let images = Export { images: ImagesAs::Files, ..images };
    let arrays = Export { per_sample: true, ..Export::pixels(DataFormat::Npy, "npy-per-sample", read::array_files) };
    vec![
        entry("image-folder", "Image folder, PNG decoded", images, &[LISTED]),
        entry("npy-per-sample", ".npy per sample", arrays, &[LISTED, LABELS]),
    ]
}

fn arrays() -> Vec<Entry> {
    let npy = Export::pixels(DataFormat::Npy, "images.npy", read::npy);
    let npz = Export::pixels(DataFormat::Npz, "images.npz", read::npz).uncompressed();
    let pt = Export::pixels(DataFormat::Pt, "images.pt", read::pt);
    let safetensors = Export::pixels(DataFormat::Safetensors, "images.safetensors", read::safetensors);
    vec![
        entry("npy", "One .npy, mapped", npy, &[LABELS]),
        entry("npz", ".npz, stored, mapped", npz, &["the array is mapped in place", LABELS]),
        entry("pt", ".pt, mapped", pt, &[TENSOR, LABELS]),
        entry("safetensors", ".safetensors, mapped", safetensors, &[TENSOR, LABELS]),
    ]
}

fn hdf5() -> Vec<Entry> {
    const SAMPLE: &str = "contiguous, one call per sample";
    const SLICES: &str = "contiguous, one call per run of consecutive samples";
    const CHUNKED: &str = "bypasses the library's chunk cache";
    const GZIP: &str = "level 4, one sample per chunk; the library locates chunks, and threads inflate them";
    let hdf5 = |target, read| Export::pixels(DataFormat::Hdf5, target, read);
    let sample = hdf5("per-sample.h5", read::hdf5_per_sample);
    let slices = hdf5("slices.h5", read::hdf5_slices);
    let chunked = hdf5("chunked.h5", read::hdf5_slices).chunk(Chunk::Batch);
    let gzip = hdf5("gzip.h5", read::hdf5_gzip).chunk(Chunk::Of(1)).codec(ExportCodec::Gzip(4));
    vec![
        entry("hdf5-per-sample", "HDF5, read per sample", sample, &[SAMPLE, LOCK, LABELS]),
        entry("hdf5-slices", "HDF5, read by slices", slices, &[SLICES, LOCK, LABELS]),
        entry("hdf5-chunked", "HDF5, chunked", chunked, &[CHUNKED, LOCK, LABELS]),
        entry("hdf5-gzip", "HDF5, chunked, gzip", gzip, &[GZIP, LABELS]),
    ]
}

fn zarr() -> Vec<Entry> {
    const SAMPLE: &str = "one file per sample, not compressed";
    const PARTS: &str = "zstd: reading a sample decodes its whole chunk";
    const SHARDED: &str = "shards of four batches, chunks of one sample, cached indexes";
    let zarr = |target, read, chunk| Export::pixels(DataFormat::Zarr, target, read).chunk(chunk);
    let sample = zarr("sample.zarr", read::zarr_sample, Chunk::Of(1)).uncompressed();
    let parts = zarr("parts.zarr", read::zarr_part, Chunk::Of(16)).codec(ExportCodec::Zstd(3));
    let chunks = zarr("chunks.zarr", read::zarr_batch, Chunk::Batch).uncompressed();
    let sharded = zarr("sharded.zarr", read::zarr_shard, Chunk::Of(1)).uncompressed();
    let sharded = Export { sharded: true, ..sharded };
    vec![
        entry("zarr-per-sample", "Zarr, chunk of one sample", sample, &[SAMPLE, LABELS]),
        entry("zarr-chunk-per-sample", "Zarr, chunks of 16 read per sample", parts, &[PARTS, LABELS]),
        entry("zarr-chunk", "Zarr, read by chunk", chunks, &["not compressed", LABELS]),
        entry("zarr-sharded", "Zarr, sharded", sharded, &[SHARDED, LABELS]),
    ]
}

fn tables() -> Vec<Entry> {
    const LMDB: &[&str] = &["one .npy per key, used in place", "one read transaction per thread, no locks"];
    let table = |to, target, read| Export::pixels(to, target, read).chunk(Chunk::Batch).uncompressed();
    let parquet = table(DataFormat::Parquet, "images.parquet", read::parquet);
    let arrow = table(DataFormat::Arrow, "images.arrow", read::arrow);
    let lmdb = Export::pixels(DataFormat::Lmdb, "lmdb", read::lmdb);
    vec![
        entry("parquet", "Parquet", parquet, &["mapped, not compressed, one row group per batch"]),
        entry("arrow", "Arrow IPC, mapped", arrow, &["one record batch per batch"]),
        entry("lmdb", "LMDB", lmdb, LMDB),
    ]
}

/// Formats whose files are read from start to end.
fn streams() -> Vec<Entry> {
    const RECORDS: &[&str] = &["files of four batches; checksums are not verified"];
    let stream = |name, title, to, images, read, notes| {
        let how = Export { images, sharded: true, ..Export::pixels(to, name, read) };
        Entry { streamed: true, ..entry(name, title, how, notes) }
    };
    let tar = |name, title, images| stream(name, title, DataFormat::WebDataset, images, read::tar, &[TAR]);
    vec![
        tar("webdataset", "WebDataset, .npy members", ImagesAs::Pixels),
        tar("webdataset-png", "WebDataset, PNG decoded", ImagesAs::Files),
        stream("tfrecord", "TFRecord", DataFormat::TfRecord, ImagesAs::Pixels, read::records, RECORDS),
    ]
}

fn packs() -> Vec<Entry> {
    const RAW: &[&str] = &["the loader's defaults, but every batch is copied to the staging ring"];
    let pack = |name, title, make, notes| Entry { name, title, make, streamed: false, notes };
    vec![
        pack("packds-raw", "packds, raw", Make::Pack(None), RAW),
        pack("packds-zstd", "packds, zstd", Make::Pack(Some(1)), &[LOADER]),
        pack("packds-encoded", "packds, encoded", Make::EncodedPack, &[LOADER]),
    ]
}
