//! HDF5.

use super::Entry;
#[cfg(feature = "hdf5")]
use super::{Input, Output, Target};
#[cfg(feature = "hdf5")]
use crate::DataFormat;
#[cfg(feature = "hdf5")]
use crate::sink::{Hdf5Sink, Holds};
#[cfg(feature = "hdf5")]
use crate::source::{Shards, hdf5};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "hdf5",
    extensions: &["h5", "hdf5", "hdf"],
    describe: "data sets of images and labels: contiguous, chunked, gzip",
    starts: |head| head.has(0, b"\x89HDF\r\n\x1a\n"),
    trusts_names: true,
    is_set: true,
    is_sink: true,
    #[cfg(feature = "hdf5")]
    input: Some(Input::Samples {
        parts: |source, _| hdf5::parts(Shards::find(source, DataFormat::Hdf5)?),
        read: hdf5::read,
    }),
    #[cfg(not(feature = "hdf5"))]
    input: None,
    #[cfg(feature = "hdf5")]
    output: Some(Output {
        holds: Holds::FILES_AND_ARRAYS,
        codecs: &["none", "gzip"],
        has_chunks: true,
        has_shards: false,
        target: Target::File,
        write: |start, run| run.write_to(Hdf5Sink::create(start)?),
    }),
    #[cfg(not(feature = "hdf5"))]
    output: None,
};
