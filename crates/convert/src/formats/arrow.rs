//! Arrow IPC: files (also called Feather) and streams.

use super::Entry;
#[cfg(feature = "arrow")]
use {
    super::{Input, Output, Target},
    crate::sink::{ArrowSink, Holds},
    crate::source::arrow,
};

pub(crate) static ENTRY: Entry = Entry {
    starts: |head| [&b"ARROW1"[..], b"FEA1", b"\xff\xff\xff\xff"].iter().any(|magic| head.has(0, magic)),
    is_set: true,
    is_sink: true,
    markers: &["dataset_dict.json"],
    #[cfg(feature = "arrow")]
    input: Some(Input::Samples { parts: |source, _| arrow::parts(source), read: arrow::read, whole: None }),
    #[cfg(feature = "arrow")]
    output: Some(Output {
        codecs: &["none", "lz4", "zstd"],
        has_chunks: true,
        ..Output::new::<ArrowSink>(Holds::FilesFirst, Target::File)
    }),
    #[cfg(feature = "arrow")]
    class_names: arrow::class_names,
    ..Entry::new(&["arrow", "feather", "ipc"], "record batches: Feather 2, IPC files and streams")
};
