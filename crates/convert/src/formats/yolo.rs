//! YOLO: images, and a text file with the boxes of each.

use super::{Entry, Output, Target};
use crate::sink::{Holds, YoloSink, yolo::left_out};

pub(crate) static ENTRY: Entry = Entry {
    is_source: false,
    is_sink: true,
    output: Some(Output { left_out, ..Output::new::<YoloSink>(Holds::FilesFirst, Target::Folder) }),
    ..Entry::new(&[], "image files and their boxes, in text files for Ultralytics")
};
