//! LitData.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, LitDataSink};
use crate::source::litdata;

pub(crate) static ENTRY: Entry = Entry {
    sample: "sample",
    is_sink: true,
    starts: litdata::starts,
    is_published: litdata::is_set,
    has_index: litdata::has_index,
    class_names: litdata::class_names,
    input: Some(Input::Samples { parts: |source, _| litdata::parts(source), read: litdata::read, whole: None }),
    output: Some(Output { has_shards: true, ..Output::new::<LitDataSink>(Holds::FilesAndArrays, Target::Folder) }),
    ..Entry::new(&[], "chunks of LitData, in a folder with index.json")
};
