//! The files of a benchmark: the user's own, repeated under new names if there are too few.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use packds_convert::source::{ListOptions, Listing, list};

use crate::BenchError;

/// A source to convert, and a folder for output.
pub(crate) struct Workload {
    /// The source.
    pub(crate) source: PathBuf,
    pub(crate) listing: Listing,
    /// How often each of the user's files occurs.
    pub(crate) repeats: usize,
    /// Total size.
    pub(crate) bytes: u64,
    /// Removed with its contents when the workload is dropped.
    pub(crate) scratch: tempfile::TempDir,
}

impl Workload {
    /// Lists `data`. If it has fewer than `enough` images for a timed run, creates a folder of links to them, class
    /// by class.
    pub(crate) fn new(data: &Path, scratch: Option<&Path>, jobs: usize, enough: usize) -> Result<Self, BenchError> {
        let options = ListOptions { jobs, ..ListOptions::default() };
        let scratch = match scratch {
            Some(folder) => tempfile::Builder::new().prefix("packds-bench").tempdir_in(folder),
            None => tempfile::Builder::new().prefix("packds-bench").tempdir(),
        };
        let scratch = scratch.map_err(BenchError::io(data))?;
        let mut listing = list(data, &options)?;
        let mut source = data.to_owned();
        let repeats = enough.div_ceil(listing.len().max(1)).max(1);
        if repeats > 1 {
            source = scratch.path().join("source");
            link_all(&listing, &source, repeats)?;
            listing = list(&source, &options)?;
        }
        let bytes = (0..listing.len()).map(|i| listing.sample(i).bytes).sum();
        Ok(Self { source, listing, repeats, bytes, scratch })
    }

    /// A file in the scratch folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

fn link_all(listing: &Listing, source: &Path, repeats: usize) -> Result<(), BenchError> {
    for i in 0..listing.len() {
        let label = listing.label(i).unwrap_or(0);
        let folder = source.join(format!("{label:06}"));
        std::fs::create_dir_all(&folder).map_err(BenchError::io(&folder))?;
        let target = std::fs::canonicalize(listing.file_path(i)).map_err(BenchError::io(listing.file_path(i)))?;
        let extension = target.extension().unwrap_or_default().to_string_lossy().into_owned();
        for k in 0..repeats {
            let link = folder.join(format!("{i:06}-{k:04}.{extension}"));
            symlink(&target, &link).map_err(BenchError::io(&link))?;
        }
    }
    Ok(())
}
