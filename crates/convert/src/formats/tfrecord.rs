//! TFRecord: TensorFlow's record files of `tf.Example` messages.

use super::{Entry, Input, Output, Target, parts_by_name};
use crate::DataFormat;
use crate::sink::{Holds, TfRecordSink};
use crate::source::{Head, tfrecord};

pub(crate) static ENTRY: Entry = Entry {
    sample: "record",
    starts,
    trusts_names: true,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::TfRecord),
        read: tfrecord::read,
        whole: None,
    }),
    output: Some(Output {
        codecs: &["none", "gzip"],
        has_shards: true,
        ..Output::new::<TfRecordSink>(Holds::FilesFirst, Target::FileOrShards)
    }),
    ..Entry::new(
        &["tfrecord", "tfrecords", "tfrec", "tfrecord.gz"],
        "records of tf.Example, with both checksums verified",
    )
};

/// Whether a file starts with a length and the checksum of that length.
fn starts(head: &Head<'_>) -> bool {
    let is_compressed = head.is_gzip() && head.named == Some(DataFormat::TfRecord);
    is_compressed || tfrecord::is_tfrecord(head.bytes)
}
