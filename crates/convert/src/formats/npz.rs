//! NumPy's `.npz`.

use super::{Entry, Input, Output, Target};
use crate::DataFormat;
use crate::sink::{Holds, NpzSink};
use crate::source::{Head, Shards, npz};

pub(crate) static ENTRY: Entry = Entry {
    starts,
    is_set: true,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| npz::parts(Shards::find(source, DataFormat::Npz)?),
        read: npz::read,
        whole: Some(npz::read_whole),
    }),
    output: Some(Output { codecs: &["none", "gzip"], ..Output::new::<NpzSink>(Holds::Arrays, Target::File) }),
    ..Entry::new(&["npz"], "arrays in a zip file")
};

/// Whether a file is a zip file of arrays. A `.pt` file is a zip file too, but contains a pickle.
fn starts(head: &Head<'_>) -> bool {
    // If the arrays are in folders, the zip file is an archive of `.npy` files instead.
    let has_arrays = || head.first_zip_name().ends_with(b".npy") && !head.first_zip_name().contains(&b'/');
    head.is_zip() && (head.named == Some(DataFormat::Npz) || has_arrays())
}
