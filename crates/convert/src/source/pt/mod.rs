//! PyTorch's `.pt`: tensors that `torch.save` wrote, alone or in a dictionary, a tuple or a data set, read in place.
//!
//! The pickle in it is read as data: nothing that it names is ever called.

mod lists;
mod storages;
mod tensors;

use std::sync::Arc;

use super::ListOptions;
use super::arrays::ArraySet;
use super::found::Found;
use super::shards::Shards;
use super::spool::SpoolFolder;
use super::store::OpenFile;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// One part for each split: by the names of files, or of the tensors in them.
pub(crate) fn parts(shards: Shards, options: &ListOptions) -> Result<Vec<Shards>, ConvertError> {
    ArraySet::parts(shards, |file| read_file(file, &options.spool_folder()))
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    ArraySet::join(part, options, |file| {
        read_file(file, &options.spool_folder())
    })
}

fn read_file(file: &Arc<OpenFile>, spool: &SpoolFolder) -> Result<ArraySet, ConvertError> {
    let (tree, storages) = storages::open(file)?;
    let mut set = ArraySet::new(DataFormat::Pt, &file.path);
    tensors::collect(&tree, &storages, (file, spool), &mut set)?;
    Ok(set)
}

#[cfg(test)]
mod tests;
