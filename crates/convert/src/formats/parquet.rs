//! Parquet.

use super::Entry;
#[cfg(feature = "arrow")]
use super::{Input, Output, Target, parts_by_name};
#[cfg(feature = "arrow")]
use crate::DataFormat;
#[cfg(feature = "arrow")]
use crate::sink::{Holds, ParquetSink};
#[cfg(feature = "arrow")]
use crate::source::parquet;

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "parquet",
    extensions: &["parquet"],
    describe: "rows of images (Hugging Face style) and labels",
    starts: |head| head.has(0, b"PAR1") || head.has(0, b"PARE"),
    trusts_names: false,
    is_set: true,
    is_sink: true,
    #[cfg(feature = "arrow")]
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::Parquet),
        read: parquet::read,
    }),
    #[cfg(not(feature = "arrow"))]
    input: None,
    #[cfg(feature = "arrow")]
    output: Some(Output {
        holds: Holds::FILES_FIRST,
        codecs: &["none", "snappy", "lz4", "zstd", "gzip"],
        has_chunks: true,
        has_shards: true,
        target: Target::FileOrShards,
        write: |start, run| run.write_to(ParquetSink::create(start)?),
    }),
    #[cfg(not(feature = "arrow"))]
    output: None,
};
