//! CSV, TSV and JSON Lines files that name image files.

use super::{Entry, Input};

pub(crate) static ENTRY: Entry = Entry {
    input: Some(Input::Manifest),
    ..Entry::new(&["csv", "tsv", "jsonl", "ndjson"], "paths of image files, labels, other columns")
};
