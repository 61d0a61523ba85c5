//! ArrayRecord: Google's files of records with an index.

use super::{Entry, Input, parts_by_name};
use crate::DataFormat;
use crate::source::array_record;

pub(crate) static ENTRY: Entry = Entry {
    sample: "record",
    starts: |head| array_record::is_riegeli(head.bytes),
    is_set: true,
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::ArrayRecord),
        read: array_record::read,
        whole: None,
    }),
    ..Entry::new(&["array_record", "arrayrecord"], "records of tf.Example or image files, with all checksums verified")
};
