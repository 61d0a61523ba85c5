//! TensorFlow's record files of `tf.Example`.

use super::{Entry, Input, Output, Target, parts_by_name};
use crate::DataFormat;
use crate::sink::{Holds, TfRecordSink};
use crate::source::{Head, tfrecord};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "tfrecord",
    extensions: &["tfrecord", "tfrecords", "tfrec", "tfrecord.gz"],
    describe: "records of tf.Example, both checksums checked",
    starts,
    trusts_names: true,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::TfRecord),
        read: tfrecord::read,
    }),
    output: Some(Output {
        holds: Holds::FILES_FIRST,
        codecs: &["none", "gzip"],
        has_chunks: false,
        has_shards: true,
        target: Target::FileOrShards,
        write: |start, run| run.write_to(TfRecordSink::create(start)?),
    }),
};

/// A length and its checksum.
fn starts(head: &Head<'_>) -> bool {
    let is_compressed = head.is_gzip() && head.named == Some(DataFormat::TfRecord);
    is_compressed || tfrecord::is_tfrecord(head.bytes)
}
