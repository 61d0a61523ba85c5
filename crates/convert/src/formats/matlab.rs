//! MATLAB's MAT-files.

use super::{Entry, Input};
use crate::DataFormat;
use crate::source::{Shards, matlab};

pub(crate) static ENTRY: Entry = Entry {
    starts: matlab::starts,
    is_published: matlab::is_set,
    input: Some(Input::Samples {
        parts: |source, _| matlab::parts(Shards::find(source, DataFormat::Matlab)?),
        read: matlab::read,
        whole: None,
    }),
    ..Entry::new(&["mat"], "arrays in version 5 MAT-files")
};
