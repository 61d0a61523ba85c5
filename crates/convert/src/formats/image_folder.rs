//! Image files in class folders, or in one folder.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, ImageFolderSink, image_folder::left_out};

pub(crate) static ENTRY: Entry = Entry {
    is_sink: true,
    input: Some(Input::Folder),
    output: Some(Output { left_out, ..Output::new::<ImageFolderSink>(Holds::FilesFirst, Target::Folder) }),
    ..Entry::new(&[], "image files in class folders, or in one folder")
};
