//! PyTorch's `.pt`: tensors written by `torch.save`, alone or in a dictionary, tuple or dataset, or a list with one item per
//! sample. The tensors are read in place.
//!
//! The pickle in the file is only parsed as data; no code in it is ever run.

mod lists;
mod samples;
mod storages;
mod tensors;

use std::path::Path;
use std::sync::Arc;

use super::ListOptions;
use super::arrays::ArraySet;
use super::found::Found;
use super::per_file::PerFile;
use super::shards::Shards;
use super::spool::SpoolFolder;
use super::store::OpenFile;
use super::whole::FileValue;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// One part for each split in the file names. If the file names mention no split, the tensor names of the first file decide.
pub(crate) fn parts(shards: Shards, options: &ListOptions) -> Result<Vec<Shards>, ConvertError> {
    ArraySet::parts_by_names(shards, |file| {
        let samples = samples::names(&storages::open(file)?.0);
        match samples.is_empty() {
            true => Ok(read_file(file, &options.spool_folder(), PerFile::Many)?.names().map(str::to_owned).collect()),
            false => Ok(samples),
        }
    })
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    if let Some(first) = part.files.first() {
        let file = OpenFile::open(first).map_err(ConvertError::io(first))?;
        if !samples::lists(&storages::open(&file)?.0).is_empty() {
            return samples::read(part, options);
        }
    }
    ArraySet::join(part, options, |file| read_file(file, &options.spool_folder(), PerFile::Many))
}

/// The values of a file that holds one sample.
pub(crate) fn read_whole(path: &Path, options: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
    read_file(&file, &options.spool_folder(), PerFile::One)?.into_values(&file)
}

fn read_file(file: &Arc<OpenFile>, spool: &SpoolFolder, per_file: PerFile) -> Result<ArraySet, ConvertError> {
    let (tree, storages) = storages::open(file)?;
    let mut set = ArraySet::new(DataFormat::Pt, &file.path, per_file);
    tensors::collect(&tree, &storages, (file, spool), &mut set)?;
    Ok(set)
}

#[cfg(test)]
mod tests;
