//! Hugging Face's `.safetensors`.

use super::{Entry, Input, Output, Target};
use crate::DataFormat;
use crate::sink::{Holds, SafetensorsSink};
use crate::source::{Head, Shards, safetensors};

pub(crate) static ENTRY: Entry = Entry {
    starts,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| safetensors::parts(Shards::find(source, DataFormat::Safetensors)?),
        read: safetensors::read,
        whole: Some(safetensors::read_whole),
    }),
    output: Some(Output::new::<SafetensorsSink>(Holds::Arrays, Target::File)),
    ..Entry::new(&["safetensors"], "tensors")
};

/// Whether a file starts with the length of a JSON header, followed by the header.
fn starts(head: &Head<'_>) -> bool {
    head.has(8, b"{\"") && (head.named == Some(DataFormat::Safetensors) || is_header(head))
}

/// Whether the stated length fits into the file, and the header describes a tensor or holds metadata.
fn is_header(head: &Head<'_>) -> bool {
    let len = head.bytes.first_chunk();
    let len = len.map(|bytes| u64::from_le_bytes(*bytes));
    let room = std::fs::metadata(head.path).map_or(0, |found| found.len().saturating_sub(8));
    let has = |word: &[u8]| head.bytes.windows(word.len()).any(|bytes| bytes == word);
    len.is_some_and(|len| (2..=room).contains(&len)) && (has(b"\"data_offsets\"") || has(b"\"__metadata__\""))
}
