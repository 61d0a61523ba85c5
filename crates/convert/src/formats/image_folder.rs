//! Image files in class folders, or in one folder.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, ImageFolderSink};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    is_sink: true,
    input: Some(Input::Folder),
    output: Some(Output::new(Holds::FILES_FIRST, Target::Folder, |start, run| {
        run.write_to(ImageFolderSink::create(start)?)
    })),
    ..Entry::new("image-folder", &[], "image files in class folders, or in one folder")
};
