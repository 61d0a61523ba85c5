//! CIFAR-10 and CIFAR-100, binary or Python version.

use std::io::Read;
use std::path::Path;

use packds_system::open_regular;

use super::{Entry, Input};
use crate::DataFormat;
use crate::source::{Head, cifar, torchvision};

pub(crate) static ENTRY: Entry = Entry {
    starts,
    is_published,
    input: Some(Input::Samples {
        parts: |source, _| cifar::parts(&torchvision::folder(source, DataFormat::Cifar)?),
        read: |part, options| cifar::read(part, options)?.leave_out(&part.root, options),
        whole: None,
    }),
    ..Entry::new(&[], "CIFAR-10 and CIFAR-100, binary or Python version")
};

/// Whether a file is named like a CIFAR file, and either its name ends in `.bin` or it is a pickled dictionary. CIFAR's
/// binary files have no magic bytes.
fn starts(head: &Head<'_>) -> bool {
    let is_file = head.name.ends_with(".bin") || cifar::is_pickled_dictionary(head.bytes);
    cifar::is_cifar_name(head.name) && is_file
}

/// Whether the folder contains a distinctive CIFAR file name, or a pickled dictionary named like one of CIFAR-100's
/// files.
fn is_published(folder: &Path, names: &[String]) -> bool {
    let own = ["data_batch_1", "data_batch_1.bin", "batches.meta", "batches.meta.txt", "fine_label_names.txt"];
    // The Python version of CIFAR-100 names its files just `train` and `test`, so their content is checked.
    let is_pickled = |name: &str| {
        let mut head = Vec::new();
        let path = folder.join(name);
        let opened = open_regular(&path).ok();
        let read = opened.and_then(|file| file.take(2).read_to_end(&mut head).ok());
        read.is_some() && cifar::is_pickled_dictionary(&head)
    };
    let is_cifar =
        |name: &String| own.contains(&name.as_str()) || (matches!(name.as_str(), "train" | "test") && is_pickled(name));
    names.iter().any(is_cifar)
}
