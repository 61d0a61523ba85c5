//! COCO: images, and a JSON file with their boxes. Such a file is read like any other list of image files.

use super::{Entry, Input, Output, Target};
use crate::sink::{CocoSink, Holds, coco::left_out};

pub(crate) static ENTRY: Entry = Entry {
    is_sink: true,
    input: Some(Input::Manifest),
    output: Some(Output { left_out, ..Output::new::<CocoSink>(Holds::FilesFirst, Target::Folder) }),
    ..Entry::new(&[], "image files and their boxes, in a JSON file of COCO")
};
