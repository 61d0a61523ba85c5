//! PyTorch's `.pt`: tensors that `torch.save` wrote, alone or in a dictionary, a tuple or a data set, read in place.
//!
//! The pickle in it is read as data: nothing that it names is ever called.

mod storages;
mod tensors;

use std::sync::Arc;

use super::ListOptions;
use super::arrays::{ArraySet, Keys};
use super::found::Found;
use super::shards::Shards;
use super::store::OpenFile;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Finds the samples.
pub(super) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut all: Option<ArraySet> = None;
    for path in &part.files {
        let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
        let (tree, storages) = storages::open(&file)?;
        let mut set = ArraySet::new(DataFormat::Pt, path);
        tensors::collect(&tree, &storages, &file, &mut set)?;
        match &mut all {
            None => all = Some(set),
            Some(all) => all.append(set, path)?,
        }
    }
    match all {
        Some(set) => set.into_found(&part.root, Keys::of(options)),
        None => Err(ConvertError::malformed(
            &part.root,
            "",
            "there are no files",
        )),
    }
}

#[cfg(test)]
mod tests;
