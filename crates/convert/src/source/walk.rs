//! Walks all files below a class folder in torchvision's order.
//!
//! `image_folder` chooses the classes.

use packds_system::to_u64;
use std::{cmp::Reverse, collections::BinaryHeap, path::Path};

use super::{
    candidate::SampleFiles,
    directory::{Directory, Identity},
    oddities::Oddities,
    paths::{PathTable, as_path, joined},
};
use crate::error::ConvertError;

/// Files that may be images, in listing order.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) paths: PathTable,
    pub(super) bytes: Vec<u64>,
    /// One label per directory of the path table.
    pub(super) directory_labels: Vec<i64>,
    pub(super) ignored: u64,
    pub(super) oddities: Oddities,
}

impl Found {
    /// Appends the results of a later walk.
    pub(super) fn append(&mut self, mut other: Self) {
        self.paths.append(other.paths);
        if self.bytes.is_empty() {
            self.bytes = other.bytes;
        } else {
            self.bytes.append(&mut other.bytes);
        }
        self.directory_labels.append(&mut other.directory_labels);
        self.ignored += other.ignored;
        self.oddities.append(other.oddities);
    }

    /// Adds the files of one folder that may be images, and counts its other files. A folder without such images is not added.
    pub(super) fn add_directory(&mut self, path: &[u8], label: i64, directory: Directory) {
        let Self { paths, bytes, directory_labels, oddities, .. } = self;
        let mut directory_idx = None;
        self.ignored += directory.for_each_candidate(oddities, |name, size| {
            let idx = *directory_idx.get_or_insert_with(|| {
                directory_labels.push(label);
                paths.push_directory(path)
            });
            paths.push(idx, name);
            bytes.push(size);
        });
    }

    /// Adds the samples below the folder `class` of `root`.
    ///
    /// Python sorts `os.walk`'s folders by full path, so `a-b` precedes `a/b`. A folder's path sorts before all of its descendants.
    /// Always visiting the smallest pending path therefore gives that order without listing all folders first.
    pub(super) fn add_class(
        &mut self,
        (root, root_identity): (&Path, Identity),
        class: &[u8],
        label: i64,
        files: SampleFiles,
    ) -> Result<(), ConvertError> {
        let mut visited = vec![Visited { identity: root_identity, parent: None }];
        let mut waiting = BinaryHeap::from([Reverse((class.to_vec(), 0))]);
        while let Some(Reverse((path, parent))) = waiting.pop() {
            let mut directory = Directory::scan(root, &path, files)?;
            check_loop(root, &path, directory.identity, parent, &visited)?;
            let here = visited.len();
            visited.push(Visited { identity: directory.identity, parent: Some(parent) });
            for name in std::mem::take(&mut directory.subdirectories) {
                waiting.push(Reverse((joined(&path, &name), here)));
            }
            self.add_directory(&path, label, directory);
        }
        Ok(())
    }
}

/// A visited folder and its parent.
struct Visited {
    identity: Identity,
    parent: Option<usize>,
}

/// An error if the folder `path` is one of its own ancestors.
fn check_loop(
    root: &Path,
    path: &[u8],
    identity: Identity,
    parent: usize,
    visited: &[Visited],
) -> Result<(), ConvertError> {
    let mut above = as_path(path).parent();
    let mut next = Some(parent);
    while let Some(idx) = next {
        if visited[idx].identity == identity {
            return Err(ConvertError::SymlinkLoop {
                path: root.join(as_path(path)),
                target: above.map_or_else(|| root.to_owned(), |above| root.join(above)),
            });
        }
        above = above.and_then(Path::parent);
        next = visited[idx].parent;
    }
    Ok(())
}

/// A number of files, for reports.
pub(super) fn count(n_files: usize) -> u64 {
    to_u64(n_files)
}
