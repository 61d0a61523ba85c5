//! PyTorch's `.pt` and `.pth`.

use super::{Entry, Input, Output, Target};
use crate::DataFormat;
use crate::sink::{Holds, PtSink};
use crate::source::{Head, Shards, pt};

pub(crate) static ENTRY: Entry = Entry {
    starts,
    trusts_names: true,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, options| pt::parts(Shards::find(source, DataFormat::Pt)?, options),
        read: pt::read,
        whole: Some(pt::read_whole),
    }),
    output: Some(Output::new::<PtSink>(Holds::Arrays, Target::File)),
    ..Entry::new(&["pt", "pth"], "tensors saved by torch.save, read without running code")
};

/// Whether a file is a pickle, or a zip file that matches no other format. A pickle is recognized by only two bytes, so
/// this format is tried last.
fn starts(head: &Head<'_>) -> bool {
    let is_saved = || head.named == Some(DataFormat::Pt) || head.first_zip_name().ends_with(b"data.pkl");
    (head.is_zip() && is_saved()) || (head.has(0, b"\x80") && matches!(head.bytes.get(1), Some(2..=5)))
}
