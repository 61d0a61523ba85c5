//! FFCV's `.beton` files.

use super::{Entry, Input, parts_by_name};
use crate::DataFormat;
use crate::source::beton;

pub(crate) static ENTRY: Entry = Entry {
    sample: "sample",
    starts: beton::starts,
    trusts_names: true,
    is_set: true,
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::Beton),
        read: beton::read,
        whole: None,
    }),
    ..Entry::new(&["beton"], "files of FFCV")
};
