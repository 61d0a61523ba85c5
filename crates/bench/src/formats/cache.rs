//! Controls and measures the page cache for a format's files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fdatasync};

use super::map::cached_bytes;
use crate::BenchError;
use crate::measure::to_f64;

/// All files of a format: the path itself, or everything in the folder.
pub(crate) fn files_of(path: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(BenchError::io(&path))?;
            for entry in entries {
                open.push(entry.map_err(BenchError::io(&path))?.path());
            }
        } else {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

pub(crate) fn bytes_of(files: &[PathBuf]) -> Result<u64, BenchError> {
    files.iter().map(|path| Ok(std::fs::metadata(path).map_err(BenchError::io(path))?.len())).sum()
}

pub(crate) fn warm(files: &[impl AsRef<Path>]) -> Result<(), BenchError> {
    let mut buffer = vec![0; 1 << 20];
    for path in files.iter().map(AsRef::as_ref) {
        let mut file = File::open(path).map_err(BenchError::io(path))?;
        while file.read(&mut buffer).map_err(BenchError::io(path))? > 0 {}
    }
    Ok(())
}

/// The files of the pack at this path.
pub(crate) fn pack_files(path: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let pack = packds_reader::open(path)?;
    Ok(pack.file_paths().into_iter().map(|(_, path)| path).collect())
}

/// Asks the kernel to drop all pages of the files. They must not be mapped.
pub(crate) fn drop_all(files: &[impl AsRef<Path>]) -> Result<(), BenchError> {
    for path in files.iter().map(AsRef::as_ref) {
        let failed = |error: rustix::io::Errno| BenchError::io(path)(error.into());
        let file = File::open(path).map_err(BenchError::io(path))?;
        // Dirty pages cannot be dropped.
        fdatasync(&file).map_err(failed)?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(failed)?;
    }
    Ok(())
}

/// The share of the files in the page cache, from 0 to 1.
pub(crate) fn share(files: &[PathBuf]) -> Result<f64, BenchError> {
    let cached: u64 = files.iter().map(|path| cached_bytes(path)).sum::<Result<_, _>>()?;
    Ok(to_f64(cached) / to_f64(bytes_of(files)?.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_cached_and_all_files_of_a_folder_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        std::fs::write(dir.path().join("b/2"), vec![1; 100_000]).unwrap();
        std::fs::write(dir.path().join("1"), []).unwrap();
        let files = files_of(dir.path()).unwrap();
        assert_eq!(files, [dir.path().join("1"), dir.path().join("b/2")]);
        assert_eq!(bytes_of(&files).unwrap(), 100_000);
        warm(&files).unwrap();
        assert!((share(&files).unwrap() - 1.0).abs() < 1e-9);
        drop_all(&files).unwrap();
        assert!((0.0..=1.0).contains(&share(&files).unwrap()));
    }
}
