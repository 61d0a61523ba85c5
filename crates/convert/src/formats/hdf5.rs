//! The entry for HDF5.

use super::Entry;
#[cfg(feature = "hdf5")]
use {
    super::{Input, Output, Target},
    crate::DataFormat,
    crate::sink::{Hdf5Sink, Holds},
    crate::source::{Shards, hdf5},
};

pub(crate) static ENTRY: Entry = Entry {
    starts: |head| head.has(0, b"\x89HDF\r\n\x1a\n"),
    trusts_names: true,
    is_set: true,
    is_sink: true,
    #[cfg(feature = "hdf5")]
    input: Some(Input::Samples {
        parts: |source, _| hdf5::parts(Shards::find(source, DataFormat::Hdf5)?),
        read: hdf5::read,
        whole: Some(hdf5::read_whole),
    }),
    #[cfg(feature = "hdf5")]
    output: Some(Output {
        codecs: &["none", "gzip"],
        has_chunks: true,
        ..Output::new::<Hdf5Sink>(Holds::FilesAndArrays, Target::File)
    }),
    ..Entry::new(&["h5", "hdf5", "hdf"], "datasets of images and labels: contiguous, chunked, gzip")
};
