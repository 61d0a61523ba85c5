//! LMDB.

use super::{Entry, Input, Output, Target, never};
use crate::sink::{Holds, LmdbSink};
use crate::source::{Shards, lmdb};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "lmdb",
    extensions: &["lmdb", "mdb"],
    describe: "keys and image files, .npy or Caffe Datum",
    starts: never,
    trusts_names: true,
    is_set: false,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| Ok(vec![Shards::one(source)]),
        read: lmdb::read,
    }),
    output: Some(Output {
        holds: Holds::FILES_FIRST,
        codecs: &["none"],
        has_chunks: false,
        has_shards: false,
        target: Target::Folder,
        write: |start, run| run.write_to(LmdbSink::create(start)?),
    }),
};
