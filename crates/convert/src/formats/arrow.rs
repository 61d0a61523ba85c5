//! Arrow IPC: files (also called Feather) and streams.

use super::Entry;
#[cfg(feature = "arrow")]
use super::{Input, Output, Target};
#[cfg(feature = "arrow")]
use crate::sink::{ArrowSink, Holds};
#[cfg(feature = "arrow")]
use crate::source::arrow;

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "arrow",
    extensions: &["arrow", "feather", "ipc"],
    describe: "record batches: Feather 2, IPC files and streams",
    starts: |head| {
        [&b"ARROW1"[..], b"FEA1", b"\xff\xff\xff\xff"]
            .iter()
            .any(|magic| head.has(0, magic))
    },
    trusts_names: false,
    is_set: true,
    is_sink: true,
    #[cfg(feature = "arrow")]
    input: Some(Input::Samples {
        parts: |source, _| arrow::parts(source),
        read: arrow::read,
    }),
    #[cfg(not(feature = "arrow"))]
    input: None,
    #[cfg(feature = "arrow")]
    output: Some(Output {
        holds: Holds::FILES_FIRST,
        codecs: &["none", "lz4", "zstd"],
        has_chunks: true,
        has_shards: false,
        target: Target::File,
        write: |start, run| run.write_to(ArrowSink::create(start)?),
    }),
    #[cfg(not(feature = "arrow"))]
    output: None,
};
