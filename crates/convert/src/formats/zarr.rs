//! Zarr, versions 2 and 3.

use super::{Entry, never};
#[cfg(feature = "zarr")]
use super::{Input, Output, Target};
#[cfg(feature = "zarr")]
use crate::sink::{Holds, ZarrSink};
#[cfg(feature = "zarr")]
use crate::source::zarr;

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "zarr",
    extensions: &["zarr"],
    describe: "arrays in a group, versions 2 and 3, sharded or not",
    starts: never,
    trusts_names: false,
    is_set: false,
    is_sink: true,
    #[cfg(feature = "zarr")]
    input: Some(Input::Samples {
        parts: |source, _| zarr::parts(source),
        read: zarr::read,
    }),
    #[cfg(not(feature = "zarr"))]
    input: None,
    #[cfg(feature = "zarr")]
    output: Some(Output {
        holds: Holds::FILES_AND_ARRAYS,
        codecs: &["none", "gzip", "zstd", "blosc"],
        has_chunks: true,
        has_shards: true,
        target: Target::Folder,
        write: |start, run| run.write_to(ZarrSink::create(start)?),
    }),
    #[cfg(not(feature = "zarr"))]
    output: None,
};
