//! MosaicML Streaming's MDS.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, MdsSink};
use crate::source::mds;

pub(crate) static ENTRY: Entry = Entry {
    sample: "sample",
    is_sink: true,
    starts: mds::starts,
    is_published: mds::is_set,
    has_index: mds::has_index,
    class_names: mds::class_names,
    input: Some(Input::Samples { parts: |source, _| mds::parts(source), read: mds::read, whole: None }),
    output: Some(Output { has_shards: true, ..Output::new::<MdsSink>(Holds::FilesAndArrays, Target::Folder) }),
    ..Entry::new(&["mds"], "shards of MosaicML Streaming, in a folder with index.json")
};
