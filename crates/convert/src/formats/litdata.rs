//! LitData.

use super::{Entry, Input};
use crate::source::litdata;

pub(crate) static ENTRY: Entry = Entry {
    sample: "sample",
    starts: litdata::starts,
    is_published: litdata::is_set,
    has_index: litdata::has_index,
    class_names: litdata::class_names,
    input: Some(Input::Samples { parts: |source, _| litdata::parts(source), read: litdata::read, whole: None }),
    ..Entry::new(&[], "chunks of LitData, in a folder with index.json")
};
