//! The measured formats: how each is written and read, and what to know about it.

use packds_convert::{DataFormat, ExportCodec, ImagesAs};

use super::candidate::Candidate;
#[cfg(feature = "lmdb")]
use super::read::LmdbFolder;
use super::read::{ArrayFile, Kind, Made, SampleFiles, Shards};
#[cfg(feature = "arrow")]
use super::read::{ArrowFile, ParquetFile};
#[cfg(feature = "hdf5")]
use super::read::{Hdf5File, Hdf5Gzip};
#[cfg(feature = "zarr")]
use super::read::{ReadBy, ZarrArray};
use crate::BenchError;

/// Batches per shard, for formats with shards.
pub(crate) const SHARD_BATCHES: u64 = 4;

/// A format's files, opened. `None` if this build cannot read the format.
type Opened = Result<Option<Box<dyn Candidate>>, BenchError>;

/// How a format's files are written from the reference pack.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Make {
    /// Exported.
    Export(Export),
    /// A pack of pixels, compressed at this level, or uncompressed.
    Pack(Option<i32>),
    /// A pack of the user's unchanged image files, or of PNG files if there are none.
    EncodedPack,
}

/// The options of an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Export {
    pub(crate) to: DataFormat,
    /// The name of the file or folder.
    pub(crate) target: &'static str,
    pub(crate) images: ImagesAs,
    pub(crate) chunk: Chunk,
    pub(crate) codec: Option<ExportCodec>,
    pub(crate) sharded: bool,
    pub(crate) per_sample: bool,
    pub(crate) reader: Reads,
}

/// How many samples are read together, if the format has a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// No chunks.
    Unset,
    /// This many.
    Of(u32),
    /// As many as in a batch.
    Batch,
}

/// The reader of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    ImageFiles,
    ArrayFiles,
    Npy,
    Npz,
    Pt,
    Safetensors,
    Hdf5PerSample,
    Hdf5Slices,
    Hdf5Gzip,
    ZarrSample,
    ZarrPart,
    ZarrBatch,
    ZarrShard,
    Parquet,
    Arrow,
    Tar,
    Records,
    Lmdb,
}

impl Reads {
    /// Opens the written files.
    pub(crate) fn candidate(self, made: &Made) -> Opened {
        let candidate: Box<dyn Candidate> = match self {
            Self::ImageFiles => Box::new(SampleFiles::images(made)?),
            Self::ArrayFiles => Box::new(SampleFiles::arrays(made)?),
            Self::Npy => Box::new(ArrayFile::npy(made)?),
            Self::Npz => Box::new(ArrayFile::npz(made)?),
            Self::Pt => Box::new(ArrayFile::pt(made)?),
            Self::Safetensors => Box::new(ArrayFile::safetensors(made)?),
            Self::Tar => Box::new(Shards::new(made, Kind::Tar)?),
            Self::Records => Box::new(Shards::new(made, Kind::Records)?),
            #[cfg(feature = "hdf5")]
            Self::Hdf5PerSample => Box::new(Hdf5File::per_sample(made)?),
            #[cfg(feature = "hdf5")]
            Self::Hdf5Slices => Box::new(Hdf5File::slices(made)?),
            #[cfg(feature = "hdf5")]
            Self::Hdf5Gzip => Box::new(Hdf5Gzip::new(made)?),
            #[cfg(feature = "zarr")]
            Self::ZarrSample => Box::new(ZarrArray::new(made, ReadBy::Sample)?),
            #[cfg(feature = "zarr")]
            Self::ZarrPart => Box::new(ZarrArray::new(made, ReadBy::PartOfChunk)?),
            #[cfg(feature = "zarr")]
            Self::ZarrBatch => Box::new(ZarrArray::new(made, ReadBy::Batch)?),
            #[cfg(feature = "zarr")]
            Self::ZarrShard => Box::new(ZarrArray::new(made, ReadBy::Shard)?),
            #[cfg(feature = "arrow")]
            Self::Parquet => Box::new(ParquetFile::new(made)),
            #[cfg(feature = "arrow")]
            Self::Arrow => Box::new(ArrowFile::new(made)),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => Box::new(LmdbFolder::new(made)),
            #[cfg(not(all(feature = "arrow", feature = "hdf5", feature = "lmdb", feature = "zarr")))]
            _ => return Ok(None),
        };
        Ok(Some(candidate))
    }
}

/// A format and its settings.
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
    /// Samples that are read together.
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
    const fn pixels(to: DataFormat, target: &'static str, reader: Reads) -> Self {
        Self {
            to,
            target,
            images: ImagesAs::Pixels,
            chunk: Chunk::Unset,
            codec: None,
            sharded: false,
            per_sample: false,
            reader,
        }
    }

    const fn chunk(self, chunk: Chunk) -> Self {
        Self { chunk, ..self }
    }

    const fn codec(self, codec: ExportCodec) -> Self {
        Self { codec: Some(codec), ..self }
    }

    const fn entry(self, name: &'static str, title: &'static str, notes: &'static [&'static str]) -> Entry {
        Entry { name, title, make: Make::Export(self), streamed: false, notes }
    }
}

/// The note for formats with all labels in one array.
const LABELS: &str = "labels are read once, before the clock starts";
const LISTED: &str = "files are listed before the clock starts";
const LOCK: &str = "the library runs one thread at a time";

/// All formats, in the order of the report.
pub(crate) fn all() -> Vec<Entry> {
    let mut all = files();
    all.extend(arrays());
    all.extend(hdf5());
    all.extend(zarr());
    all.extend(tables());
    all.extend(streams());
    all.extend(packs());
    all
}

fn files() -> Vec<Entry> {
    let images = Export {
        images: ImagesAs::Files,
        ..Export::pixels(DataFormat::ImageFolder, "image-folder", Reads::ImageFiles)
    };
    let arrays = Export { per_sample: true, ..Export::pixels(DataFormat::Npy, "npy-per-sample", Reads::ArrayFiles) };
    vec![
        images.entry("image-folder", "Image folder, PNG decoded", &[LISTED]),
        arrays.entry("npy-per-sample", ".npy per sample", &[LISTED, LABELS]),
    ]
}

fn arrays() -> Vec<Entry> {
    use DataFormat as F;
    vec![
        Export::pixels(F::Npy, "images.npy", Reads::Npy).entry("npy", "One .npy, mapped", &[LABELS]),
        Export::pixels(F::Npz, "images.npz", Reads::Npz).codec(ExportCodec::None).entry(
            "npz",
            ".npz, stored, mapped",
            &["mapped at the offset of its array", LABELS],
        ),
        Export::pixels(F::Pt, "images.pt", Reads::Pt).entry(
            "pt",
            ".pt, mapped",
            &["mapped at the offset of its tensor", LABELS],
        ),
        Export::pixels(F::Safetensors, "images.safetensors", Reads::Safetensors).entry(
            "safetensors",
            ".safetensors, mapped",
            &["mapped at the offset of its tensor", LABELS],
        ),
    ]
}

fn hdf5() -> Vec<Entry> {
    let hdf5 = |target, reader| Export::pixels(DataFormat::Hdf5, target, reader);
    vec![
        hdf5("per-sample.h5", Reads::Hdf5PerSample).entry(
            "hdf5-per-sample",
            "HDF5, read per sample",
            &["contiguous, one call per sample", LOCK, LABELS],
        ),
        hdf5("slices.h5", Reads::Hdf5Slices).entry(
            "hdf5-slices",
            "HDF5, read by slices",
            &["contiguous, one call per run of consecutive samples", LOCK, LABELS],
        ),
        hdf5("chunked.h5", Reads::Hdf5Slices).chunk(Chunk::Batch).entry(
            "hdf5-chunked",
            "HDF5, chunked",
            &["bypasses the library's chunk cache", LOCK, LABELS],
        ),
        hdf5("gzip.h5", Reads::Hdf5Gzip).chunk(Chunk::Of(1)).codec(ExportCodec::Gzip(4)).entry(
            "hdf5-gzip",
            "HDF5, chunked, gzip",
            &["level 4, one sample per chunk; the library locates chunks, threads inflate them", LABELS],
        ),
    ]
}

fn zarr() -> Vec<Entry> {
    let zarr = |target, reader| Export::pixels(DataFormat::Zarr, target, reader);
    let sharded = Export { sharded: true, ..zarr("sharded.zarr", Reads::ZarrShard) };
    vec![
        zarr("sample.zarr", Reads::ZarrSample).chunk(Chunk::Of(1)).codec(ExportCodec::None).entry(
            "zarr-per-sample",
            "Zarr, chunk of one sample",
            &["one file per sample, not compressed", LABELS],
        ),
        zarr("parts.zarr", Reads::ZarrPart).chunk(Chunk::Of(16)).codec(ExportCodec::Zstd(3)).entry(
            "zarr-chunk-per-sample",
            "Zarr, chunks of 16 read per sample",
            &["zstd: every sample decodes its whole chunk", LABELS],
        ),
        zarr("chunks.zarr", Reads::ZarrBatch).chunk(Chunk::Batch).codec(ExportCodec::None).entry(
            "zarr-chunk",
            "Zarr, read by chunk",
            &["not compressed", LABELS],
        ),
        sharded.chunk(Chunk::Of(1)).codec(ExportCodec::None).entry(
            "zarr-sharded",
            "Zarr, sharded",
            &["shards of four batches, chunks of one sample, cached indexes", LABELS],
        ),
    ]
}

fn tables() -> Vec<Entry> {
    use DataFormat as F;
    vec![
        Export::pixels(F::Parquet, "images.parquet", Reads::Parquet)
            .chunk(Chunk::Batch)
            .codec(ExportCodec::None)
            .entry("parquet", "Parquet", &["mapped, not compressed, one row group per batch"]),
        Export::pixels(F::Arrow, "images.arrow", Reads::Arrow).chunk(Chunk::Batch).codec(ExportCodec::None).entry(
            "arrow",
            "Arrow IPC, mapped",
            &["one record batch per batch"],
        ),
        Export::pixels(F::Lmdb, "lmdb", Reads::Lmdb).entry(
            "lmdb",
            "LMDB",
            &["one .npy per key, used in place", "one read transaction per thread, no locks"],
        ),
    ]
}

/// Formats whose files are read from start to end.
fn streams() -> Vec<Entry> {
    use DataFormat as F;
    let stream = |to, target, images, reader, name, title, notes| {
        let export = Export { images, sharded: true, ..Export::pixels(to, target, reader) };
        Entry { streamed: true, ..export.entry(name, title, notes) }
    };
    vec![
        stream(
            F::WebDataset,
            "webdataset",
            ImagesAs::Pixels,
            Reads::Tar,
            "webdataset",
            "WebDataset, .npy members",
            &["tar files of four batches"],
        ),
        stream(
            F::WebDataset,
            "webdataset-png",
            ImagesAs::Files,
            Reads::Tar,
            "webdataset-png",
            "WebDataset, PNG decoded",
            &["tar files of four batches"],
        ),
        stream(
            F::TfRecord,
            "tfrecord",
            ImagesAs::Pixels,
            Reads::Records,
            "tfrecord",
            "TFRecord",
            &["files of four batches; checksums are not verified"],
        ),
    ]
}

fn packs() -> Vec<Entry> {
    let pack = |name, title, make, notes| Entry { name, title, make, streamed: false, notes };
    vec![
        pack(
            "packds-raw",
            "packds, raw",
            Make::Pack(None),
            &["the loader's defaults; batches are in its staging ring, none is borrowed"][..],
        ),
        pack("packds-zstd", "packds, zstd", Make::Pack(Some(1)), &["the loader's defaults"]),
        pack("packds-encoded", "packds, encoded", Make::EncodedPack, &["the loader's defaults"]),
    ]
}
