//! Replaces Zstandard if the feature `zstd` is off.

use std::io::{Error, ErrorKind};

use crate::FormatError;

const REASON: &str = "packds was built without Zstandard (feature `zstd`)";

pub(crate) fn compress(_: &[u8], _: i32) -> Result<Vec<u8>, FormatError> {
    Err(Error::new(ErrorKind::Unsupported, REASON).into())
}

pub(crate) fn decompress(_: &[u8], _: u64, _: &mut Vec<u8>) -> Result<(), String> {
    Err(REASON.to_owned())
}
