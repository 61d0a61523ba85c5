//! The options of an export. A new option needs a field and a declaration.

use packds_system::{Named, Opt};

use super::spec::{Declared, OptionSpec, parse, put, whole};
use crate::data_format::DataFormat;
use crate::export::ExportCodec;
use crate::opt;
use crate::sink::ImagesAs;

/// All options of an export. Options that do not apply to the chosen format are refused.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// The samples to export, in this order. `None` means all.
    pub samples: Option<Vec<u64>>,
    /// The format. `None` infers it from the target's name.
    pub to: Option<DataFormat>,
    /// How images are written. `None` means the format's default.
    pub images: Option<ImagesAs>,
    /// Samples per chunk (HDF5, Zarr), row group (Parquet) or record batch (Arrow).
    pub chunk_samples: Option<u32>,
    /// Samples per shard (Zarr) or file (WebDataset, TFRecord, Parquet, MDS, LitData). `None` puts all samples in one, or
    /// 64 MiB of samples in each file for MDS and LitData.
    pub shard_samples: Option<u64>,
    /// Compression. `None` means the format's default.
    pub codec: Option<ExportCodec>,
    /// Whether one file is written per sample (npy).
    pub per_sample: bool,
    /// The Zarr version, 2 or 3. `None` means the default.
    pub zarr_version: Option<u8>,
    /// Number of threads. 0 means all cores.
    pub jobs: usize,
    /// Whether an existing file is replaced.
    pub force: bool,
}

type Spec = OptionSpec<ExportOptions>;

impl Declared for ExportOptions {
    const OPTIONS: &'static [Spec] = &[
        Spec::value(
            opt::TO,
            "FORMAT",
            |o, text| put(&mut o.to, parse(text).map(Some)),
            "Format of the export, as listed by packds formats [default: from DST's extension]",
        )
        .offers(&DataFormat::SINKS),
        Spec::value(
            opt::IMAGES,
            "HOW",
            |o, text| put(&mut o.images, parse(text).map(Some)),
            "How to store images: as pixels (arrays) or files (as stored; raw pixels become lossless PNG) [default: depends on the format]",
        )
        .offers(ImagesAs::NAMES),
        Spec::value(
            opt::CHUNK,
            "N",
            |o, text| put(&mut o.chunk_samples, whole(text, 1, 1 << 20).map(Some)),
            "Samples per chunk (HDF5, Zarr), row group (Parquet) or record batch (Arrow) [default: as in the pack]",
        ),
        Spec::value(
            opt::SHARD,
            "N",
            |o, text| put(&mut o.shard_samples, whole(text, 1, u64::MAX).map(Some)),
            "Samples per shard (Zarr) or per file (WebDataset, TFRecord, Parquet, MDS, LitData) [default: all in one, but 64 MiB per file for MDS and LitData]",
        ),
        Spec::value(
            opt::CODEC,
            "CODEC",
            |o, text| put(&mut o.codec, parse(text).map(Some)),
            "Compression: none, gzip[:1-9], zstd[:1-19], blosc, lz4 or snappy, if the format supports it [default: depends on the format]",
        )
        .offers(&["none", "gzip", "zstd", "blosc", "lz4", "snappy"]),
        Spec::switch(opt::PER_SAMPLE, |o| o.per_sample = true, "Write one .npy per sample, in class folders (npy)"),
        Spec::value(
            opt::ZARR_VERSION,
            "V",
            |o, text| put(&mut o.zarr_version, whole(text, 2, 3).map(Some)),
            "Zarr version: 2 or 3 [default: 3]",
        )
        .offers(&["2", "3"]),
        Spec::value(
            Opt::new("jobs"),
            "N",
            |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)),
            "Threads; 0 = one per core",
        )
        .short('j')
        .default(|o| o.jobs.to_string()),
        Spec::switch(
            opt::FORCE,
            |o| o.force = true,
            "Replace DST if it is a file and the format writes a single file; folders are never replaced",
        ),
    ];
}
