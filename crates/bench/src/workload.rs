//! The files of a benchmark. If there are too few, each is used several times, through links with new names.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use packds_convert::source::{ListOptions, Listing, list};
use packds_system::Unfinished;

use crate::BenchError;
use crate::watch::Progress;

pub(crate) struct Workload {
    pub(crate) source: PathBuf,
    pub(crate) listing: Listing,
    /// How often each of the user's files occurs.
    pub(crate) repeats: usize,
    pub(crate) bytes: u64,
    /// Removed with its contents when the workload is dropped.
    pub(crate) scratch: tempfile::TempDir,
    _unfinished: Unfinished,
}

impl Workload {
    /// Lists `data`. If it has fewer than `enough` images, creates class folders with several links to each image, so
    /// that a run is long enough to time.
    pub(crate) fn new(
        data: &Path,
        scratch: Option<&Path>,
        jobs: usize,
        enough: usize,
        progress: &Progress<'_>,
    ) -> Result<Self, BenchError> {
        let options = ListOptions { jobs, ..ListOptions::default() };
        let folder = scratch.map_or_else(std::env::temp_dir, Path::to_owned);
        let scratch = tempfile::Builder::new().prefix("packds-bench").tempdir_in(folder);
        let scratch = scratch.map_err(BenchError::io(data))?;
        let _unfinished = Unfinished::new(scratch.path());
        let mut listing = list(data, &options)?;
        let mut source = data.to_owned();
        let repeats = enough.div_ceil(listing.len().max(1)).max(1);
        if repeats > 1 {
            source = scratch.path().join("source");
            for i in 0..listing.len() {
                progress.check()?;
                link(&listing, i, &source, (0..repeats).map(|k| format!("{i:06}-{k:04}")))?;
            }
            listing = list(&source, &options)?;
        }
        let bytes = (0..listing.len()).map(|i| listing.sample(i).bytes).sum();
        Ok(Self { source, listing, repeats, bytes, scratch, _unfinished })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

/// Creates links with these names to a sample's file, in the folder of its class.
pub(crate) fn link(
    listing: &Listing,
    i: usize,
    folder: &Path,
    stems: impl IntoIterator<Item = String>,
) -> Result<(), BenchError> {
    let path = listing.file_path(i);
    let target = std::fs::canonicalize(&path).map_err(BenchError::io(&path))?;
    let class = folder.join(format!("{:06}", listing.label(i).unwrap_or(0)));
    std::fs::create_dir_all(&class).map_err(BenchError::io(&class))?;
    let extension = target.extension().unwrap_or_default().to_string_lossy();
    for stem in stems {
        let link = class.join(format!("{stem}.{extension}"));
        symlink(&target, &link).map_err(BenchError::io(&link))?;
    }
    Ok(())
}
