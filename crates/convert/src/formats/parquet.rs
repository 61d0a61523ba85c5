//! The entry for Parquet.

use super::Entry;
#[cfg(feature = "arrow")]
use {
    super::{Input, Output, Target, parts_by_name},
    crate::DataFormat,
    crate::sink::{Holds, ParquetSink},
    crate::source::parquet,
};

pub(crate) static ENTRY: Entry = Entry {
    starts: |head| head.has(0, b"PAR1") || head.has(0, b"PARE"),
    is_set: true,
    is_sink: true,
    #[cfg(feature = "arrow")]
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::Parquet),
        read: parquet::read,
        whole: None,
    }),
    #[cfg(feature = "arrow")]
    output: Some(Output {
        codecs: &["none", "snappy", "lz4", "zstd", "gzip"],
        has_chunks: true,
        has_shards: true,
        ..Output::new::<ParquetSink>(Holds::FilesFirst, Target::FileOrShards)
    }),
    #[cfg(feature = "arrow")]
    class_names: parquet::class_names,
    ..Entry::new(&["parquet"], "rows of images (Hugging Face style) and labels")
};
