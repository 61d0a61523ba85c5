//! Zarr, versions 2 and 3.

use super::Entry;
#[cfg(feature = "zarr")]
use {
    super::{Input, Output, Target},
    crate::sink::{Holds, ZarrSink},
    crate::source::zarr,
};

pub(crate) static ENTRY: Entry = Entry {
    is_sink: true,
    markers: &[".zgroup", ".zarray", "zarr.json"],
    #[cfg(feature = "zarr")]
    input: Some(Input::Samples {
        parts: |source, _| zarr::parts(source),
        read: zarr::read,
        whole: Some(zarr::read_whole),
    }),
    #[cfg(feature = "zarr")]
    output: Some(Output {
        codecs: &["none", "gzip", "zstd", "blosc"],
        has_chunks: true,
        has_shards: true,
        ..Output::new::<ZarrSink>(Holds::FilesAndArrays, Target::Folder)
    }),
    ..Entry::new(&["zarr"], "arrays in a group, versions 2 and 3, sharded or not")
};
