//! CSV, TSV and JSON Lines files that name image files.

use super::{Entry, Input, never};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "manifest",
    extensions: &["csv", "tsv", "jsonl", "ndjson"],
    describe: "paths of image files, labels, further columns",
    starts: never,
    trusts_names: false,
    is_set: false,
    is_sink: false,
    input: Some(Input::Manifest),
    output: None,
};
