//! NumPy's `.npy`.

use super::{Entry, Input, Output, Target};
use crate::sink::{Holds, write_npy};
use crate::source::npy;

pub(crate) static ENTRY: Entry = Entry {
    starts: |head| head.has(0, b"\x93NUMPY"),
    is_sink: true,
    input: Some(Input::Samples {
        parts: |source, _| npy::parts(source),
        read: npy::read,
        whole: Some(npy::read_whole),
    }),
    output: Some(Output::by(write_npy, Holds::Arrays, Target::FileOrSamples)),
    ..Entry::new(&["npy"], "one array of all images, or one file per sample")
};
