//! Listings of small trees created by each test.

mod bands;
mod box_sources;
mod boxes;
mod downloads;
mod folder;
mod hints;
mod joined_tables;
mod label_lists;
mod manifest;
mod nothing_lost;
mod open_images;
mod outlines;
mod pairs;
mod published;
mod speed;
mod split_lists;
mod table_names;
mod tables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{ListOptions, Listing};
use crate::error::ConvertError;

/// A folder that is deleted at the end of a test.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        for file in files {
            tree.write(file, b"x");
        }
        tree
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    fn write(&self, relative: &str, bytes: &[u8]) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn mkdir(&self, relative: &str) {
        fs::create_dir_all(self.path(relative)).unwrap();
    }

    fn link(&self, target: &str, relative: &str) {
        std::os::unix::fs::symlink(target, self.path(relative)).unwrap();
    }

    fn list(&self) -> Result<Listing, ConvertError> {
        super::list(self.root(), &ListOptions::default())
    }

    fn list_split(&self, split: &str) -> Result<Listing, ConvertError> {
        super::list(self.root(), &ListOptions { split: Some(split.to_owned()), ..ListOptions::default() })
    }
}

fn paths(listing: &Listing) -> Vec<String> {
    (0..listing.len())
        .map(|idx| {
            let mut path = Vec::new();
            listing.path_into(idx, &mut path);
            String::from_utf8_lossy(&path).into_owned()
        })
        .collect()
}

fn labels(listing: &Listing) -> Vec<Option<i64>> {
    (0..listing.len()).map(|idx| listing.label(idx)).collect()
}

fn classes(listing: &Listing) -> Vec<&str> {
    listing.classes().iter().map(|class| str::from_utf8(class).unwrap()).collect()
}

fn fingerprint(listing: &Listing) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::identity::encode(listing, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}
