//! CIFAR-10 and CIFAR-100, binary or Python version.

use super::{Entry, Input};
use crate::DataFormat;
use crate::source::{Head, cifar, torchvision};

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "cifar",
    extensions: &[],
    describe: "CIFAR-10 and CIFAR-100, binary or Python version",
    starts,
    trusts_names: false,
    is_set: false,
    is_sink: false,
    input: Some(Input::Samples {
        parts: |source, _| cifar::parts(&torchvision::folder(source, DataFormat::Cifar)?),
        read: |part, options| cifar::read(part, options)?.leave_out(&part.root, options),
    }),
    output: None,
};

/// Binary files have no magic bytes.
fn starts(head: &Head<'_>) -> bool {
    let is_file = head.name.ends_with(".bin") || cifar::is_pickled_dictionary(head.bytes);
    cifar::is_cifar_name(head.name) && is_file
}
