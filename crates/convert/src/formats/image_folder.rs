//! Image files in class folders, or in one folder.

use super::{Entry, Input, Output, Target, never};
use crate::sink::{Holds, ImageFolderSink};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "image-folder",
    extensions: &[],
    describe: "image files in class folders, or in one folder",
    starts: never,
    trusts_names: false,
    is_set: false,
    is_sink: true,
    input: Some(Input::Folder),
    output: Some(Output {
        holds: Holds::FILES_FIRST,
        codecs: &["none"],
        has_chunks: false,
        has_shards: false,
        target: Target::Folder,
        write: |start, run| run.write_to(ImageFolderSink::create(start)?),
    }),
};
