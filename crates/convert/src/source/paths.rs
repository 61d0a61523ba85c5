//! Stores many paths compactly: each directory once, each file name once, without allocation per file.
//!
//! This module does not access the file system.

use std::{collections::HashMap, ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use serde::{Deserialize, Serialize};

/// Concatenated byte strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ByteArena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteArena {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Total bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, idx: usize) -> &[u8] {
        let start = if idx == 0 { 0 } else { self.ends[idx - 1] };
        &self.bytes[start..self.ends[idx]]
    }

    /// Appends the strings of `other`.
    fn append(&mut self, other: Self) {
        if self.ends.is_empty() {
            *self = other;
            return;
        }
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + shift));
    }
}

/// Paths relative to one root. Each is a name in a directory of the table.
///
/// A path takes 16 bytes plus its file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathTable {
    directories: ByteArena,
    names: ByteArena,
    directory_of: Vec<usize>,
}

impl PathTable {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether all paths are different.
    pub(super) fn is_unique(&self) -> bool {
        let mut paths: Vec<Vec<u8>> = (0..self.len()).map(|idx| self.path(idx)).collect();
        paths.sort_unstable();
        paths.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Number of directories.
    pub(super) fn n_directories(&self) -> usize {
        self.directories.len()
    }

    /// Adds a directory and returns its index. `directory` has no trailing slash. The root is empty.
    pub(super) fn push_directory(&mut self, directory: &[u8]) -> usize {
        self.directories.push(directory);
        self.directories.len() - 1
    }

    /// Adds the file `name` to a directory returned by [`PathTable::push_directory`].
    pub(super) fn push(&mut self, directory: usize, name: &[u8]) {
        debug_assert!(directory < self.directories.len());
        self.names.push(name);
        self.directory_of.push(directory);
    }

    /// Appends the paths of `other`.
    pub(super) fn append(&mut self, other: Self) {
        let shift = self.directories.len();
        self.directories.append(other.directories);
        self.names.append(other.names);
        if self.directory_of.is_empty() {
            self.directory_of = other.directory_of;
        } else {
            self.directory_of.extend(other.directory_of.iter().map(|idx| idx + shift));
        }
    }

    pub(super) fn directory_idx(&self, idx: usize) -> usize {
        self.directory_of[idx]
    }

    pub(super) fn directory(&self, idx: usize) -> &[u8] {
        self.directories.get(self.directory_of[idx])
    }

    pub(super) fn name(&self, idx: usize) -> &[u8] {
        self.names.get(idx)
    }

    /// Path `idx`.
    pub(super) fn path(&self, idx: usize) -> Vec<u8> {
        joined(self.directory(idx), self.name(idx))
    }

    /// Appends path `idx` to `path`.
    pub(super) fn path_into(&self, idx: usize, path: &mut Vec<u8>) {
        join_into(self.directory(idx), self.name(idx), path);
    }
}

/// A table of file paths that may be added in any order. Each directory is stored once.
#[derive(Default)]
pub(super) struct FileTable {
    pub(super) paths: PathTable,
    directory_of: HashMap<Vec<u8>, usize>,
}

impl FileTable {
    pub(super) fn push(&mut self, path: &[u8]) {
        let (directory, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let idx = match self.directory_of.get(directory) {
            Some(idx) => *idx,
            None => {
                let idx = self.paths.push_directory(directory);
                self.directory_of.insert(directory.to_vec(), idx);
                idx
            }
        };
        self.paths.push(idx, name);
    }
}

/// Appends `directory/name` to `path`; omits the slash if `directory` is empty.
pub(super) fn join_into(directory: &[u8], name: &[u8], path: &mut Vec<u8>) {
    path.extend_from_slice(directory);
    if !directory.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// The path `directory/name`, or `name` if `directory` is empty.
pub(super) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    join_into(directory, name, &mut path);
    path
}

/// The bytes as text for messages.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file name, or a path, without its extension.
pub(super) fn stem(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|byte| *byte == b'.') {
        None | Some(0) => name,
        Some(dot) => &name[..dot],
    }
}

/// The bytes of a file name or path as a [`Path`].
pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path in a JSON document: text, or bytes if it is not valid UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FilePath {
    Text(String),
    Bytes(Vec<u8>),
}

impl FilePath {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(crate) fn as_path(&self) -> &Path {
        as_path(self.as_bytes())
    }
}

impl Default for FilePath {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&[u8]> for FilePath {
    fn from(bytes: &[u8]) -> Self {
        str::from_utf8(bytes).map_or_else(|_| Self::Bytes(bytes.to_vec()), |text| Self::Text(text.to_owned()))
    }
}

impl From<&Path> for FilePath {
    fn from(path: &Path) -> Self {
        Self::from(path.as_os_str().as_bytes())
    }
}
