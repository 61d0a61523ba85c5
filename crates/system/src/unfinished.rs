//! The files and folders that this process removes before it ends. If it must end earlier, a message can name them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::lock;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Keeps a file or folder in the list of [`unfinished`] paths until dropped.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Adds a path to the list.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        lock(&UNFINISHED).push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut paths = lock(&UNFINISHED);
        if let Some(i) = paths.iter().position(|path| *path == self.0) {
            paths.swap_remove(i);
        }
    }
}

/// The files and folders that this process has not finished or removed yet, and that exist.
#[must_use]
pub fn unfinished() -> Vec<PathBuf> {
    lock(&UNFINISHED).iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_exists_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let (here, gone) = (Unfinished::new(dir.path()), Unfinished::new(&dir.path().join("gone")));
        assert_eq!(unfinished(), [dir.path()]);
        drop((here, gone));
        assert!(unfinished().is_empty());
    }
}
