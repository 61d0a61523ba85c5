//! MNIST's IDX files, and other datasets in the same format.

use super::{Entry, Input};
use crate::DataFormat;
use crate::source::{Head, mnist, torchvision};

pub(crate) static ENTRY: Entry = Entry {
    starts,
    is_published: |_, names| names.iter().any(|name| mnist::is_idx(name)),
    input: Some(Input::Samples {
        parts: |source, _| mnist::parts(&torchvision::folder(source, DataFormat::Mnist)?),
        read: mnist::read,
        whole: None,
    }),
    ..Entry::new(&[], "idx files of MNIST and similar datasets")
};

/// Whether a file starts with two zero bytes, an element type and the number of dimensions, or is a gzip file with a
/// matching name.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    let is_named = mnist::is_idx(head.name);
    let kind = head.bytes.get(2..4);
    let is_idx = head.has(0, &[0, 0]) && matches!(kind, Some([0x08 | 0x09 | 0x0b..=0x0e, 1..=4]));
    is_idx || (head.is_gzip() && is_named)
}
