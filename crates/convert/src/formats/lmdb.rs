//! The entry for LMDB.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, LmdbSink};
use crate::source::lmdb;

pub(crate) static ENTRY: Entry = Entry {
    sample: "key",
    trusts_names: true,
    is_sink: true,
    markers: &["data.mdb"],
    is_published: |folder, _| lmdb::is_of_databases(folder),
    input: Some(Input::Samples { parts: lmdb::parts, read: lmdb::read, whole: None }),
    output: Some(Output::new::<LmdbSink>(Holds::FilesFirst, Target::Folder)),
    ..Entry::new(&["lmdb", "mdb"], "image files, .npy or Caffe Datum by key")
};
