//! NumPy's `.npy`.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, NpySink};
use crate::source::npy;

/// The entry of the format.
pub(crate) static ENTRY: Entry = Entry {
    name: "npy",
    extensions: &["npy"],
    describe: "one array of all images, or one file a sample",
    starts: |head| head.has(0, b"\x93NUMPY"),
    trusts_names: false,
    is_set: false,
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| npy::parts(source),
        read: npy::read,
    }),
    output: Some(Output {
        holds: Holds::ARRAYS,
        codecs: &["none"],
        has_chunks: false,
        has_shards: false,
        target: Target::FileOrSamples,
        write: |start, run| run.write_to(NpySink::create(start)?),
    }),
};
