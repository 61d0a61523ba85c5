//! Files of class names next to the data. They are not read, because the order of the ids is unknown.

use std::path::Path;

use super::directory::Directory;
use super::there::first_there;
use super::warning::Warning;
use crate::error::ConvertError;

/// Common names of files with class names.
const FILES: [&str; 17] = [
    "classes.txt",
    "classes.json",
    "class_names.txt",
    "class_names.json",
    "classnames.txt",
    "ClassName.txt",
    "names.txt",
    "categories.txt",
    "wnids.txt",
    "words.txt",
    "synset_words.txt",
    "synsets.txt",
    "LOC_synset_mapping.txt",
    "imagenet_class_index.json",
    "class_to_idx.json",
    "cat_to_name.json",
    "label_map.json",
];

/// The warning if a folder contains a file of class names.
pub(super) fn among(top: &Directory) -> Option<Warning> {
    let is_one = |name: &&[u8]| FILES.iter().any(|known| known.as_bytes() == *name);
    top.names().filter(is_one).min().map(|file| Warning::ClassNamesUnread { file: file.to_vec() })
}

/// The warning if there is a file of class names next to a table with numeric labels.
pub(super) fn beside(table: &Path) -> Result<Option<Warning>, ConvertError> {
    let found = first_there(FILES.map(|name| table.with_file_name(name)))?.filter(|found| found != table);
    let name = found.as_ref().and_then(|found| found.file_name());
    Ok(name.map(|name| Warning::ClassNamesUnread { file: name.as_encoded_bytes().to_vec() }))
}
