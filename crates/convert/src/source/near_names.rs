//! Finds files whose names on disk differ from those in a table only in case or Unicode form. macOS, for example, stores an
//! accent as a separate character, and opens `IMG_1.JPG` as `img_1.jpg`.
//!
//! `root` uses this module if no file has the exact name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use super::paths::{as_path, joined};

/// The files or folders whose paths differ from the given one only in case or Unicode form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Near {
    None,
    One(Vec<u8>),
    /// The first two of several.
    Several([Vec<u8>; 2]),
}

/// Looks for files below a folder. Each folder is listed once.
pub(super) struct NearNames {
    root: PathBuf,
    /// The names in each folder by their [`fold`].
    folders: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl NearNames {
    pub(super) fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), folders: HashMap::new() }
    }

    /// The file whose path, relative to the root, differs from `path` only in case or Unicode form.
    pub(super) fn find(&mut self, path: &[u8]) -> Near {
        let mut found = Vec::new();
        for part in path.split(|byte| *byte == b'/') {
            let near = self.names_in(&found).get(&fold(part)).map_or(&[][..], Vec::as_slice);
            let exact = near.iter().find(|name| *name == part);
            match (exact, near) {
                (Some(name), _) | (None, [name]) => found = joined(&found, name),
                (None, [one, other, ..]) => return Near::Several([one, other].map(|name| joined(&found, name))),
                (None, []) => return Near::None,
            }
        }
        Near::One(found)
    }

    fn names_in(&mut self, folder: &[u8]) -> &HashMap<String, Vec<Vec<u8>>> {
        let root = &self.root;
        self.folders.entry(folder.to_vec()).or_insert_with(|| {
            let mut names: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
            // A folder that cannot be listed is treated as empty.
            for entry in std::fs::read_dir(root.join(as_path(folder))).into_iter().flatten().flatten() {
                let name = entry.file_name().into_encoded_bytes();
                names.entry(fold(&name)).or_default().push(name);
            }
            names.values_mut().for_each(|names| names.sort_unstable());
            names
        })
    }
}

/// The name in lower case and in Unicode form NFC, for comparisons.
fn fold(name: &[u8]) -> String {
    String::from_utf8_lossy(name).nfc().collect::<String>().to_lowercase().nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_in_case_or_unicode_form_in_any_part() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["Images/IMG_1.JPG", "Images/a.png", "Images/A.png", "cafe\u{301}/x.png"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let mut near = NearNames::of(folder.path());
        assert_eq!(near.find(b"images/img_1.jpg"), Near::One(b"Images/IMG_1.JPG".to_vec()));
        assert_eq!(near.find("caf\u{e9}/X.png".as_bytes()), Near::One("cafe\u{301}/x.png".as_bytes().to_vec()));
        assert_eq!(near.find(b"images/a.PNG"), Near::Several([b"Images/A.png".to_vec(), b"Images/a.png".to_vec()]));
        assert_eq!(near.find(b"images/a.png"), Near::One(b"Images/a.png".to_vec()));
        assert_eq!(near.find(b"other/a.png"), Near::None);
    }
}
