//! WebDataset: tar files as shards.

use super::{Entry, Input, Output, Target, mnist, parts_by_name};
use crate::DataFormat;
use crate::sink::{Holds, WebDatasetSink};
use crate::source::{Head, webdataset};

pub(crate) static ENTRY: Entry = Entry {
    sample: "key",
    starts,
    trusts_names: true,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| parts_by_name(source, DataFormat::WebDataset),
        read: webdataset::read,
        whole: None,
    }),
    output: Some(Output {
        codecs: &["none", "gzip"],
        has_shards: true,
        ..Output::new::<WebDatasetSink>(Holds::FilesFirst, Target::FileOrShards)
    }),
    ..Entry::new(&["tar", "tar.gz", "tgz"], "tar shards of files named KEY.EXTENSION")
};

fn starts(head: &Head<'_>) -> bool {
    let is_other = head.named == Some(DataFormat::TfRecord) || mnist::starts(head);
    !is_other && head.is_tar()
}
