//! Tables with a row for each folder of images, such as the frames of a clip or the images of a patient. All images of
//! a folder get the labels and fields of its row.

use std::path::Path;

use super::candidate::SampleFiles;
use super::detect::{head_of, names_in};
use super::directory::Directory;
use super::paths::as_path;
use crate::error::ConvertError;

/// The location of the folders that a column names.
#[derive(Debug)]
pub(super) struct Clips {
    /// Number of parts to remove from the start of each path, because they do not lead below the root.
    n_leading: usize,
    /// The folder below the root that contains the named folders. Empty if the root itself contains them.
    inside: Vec<u8>,
}

impl Clips {
    /// Finds the folders that the first paths of a column name. `None` unless most of these paths lead to folders with
    /// images.
    pub(super) fn find(root: &Path, paths: &[Vec<u8>]) -> Option<Self> {
        let n_parts = paths.iter().map(|path| parts(path).count()).min()?;
        let folders = names_in(root).into_iter().map(String::into_bytes);
        let mut places: Vec<Self> = (0..n_parts).map(|n_leading| Self { n_leading, inside: Vec::new() }).collect();
        places.extend(folders.map(|inside| Self { n_leading: 0, inside }));
        places.into_iter().find(|place| {
            let n_found =
                paths.iter().filter(|path| place.images(root, path).is_ok_and(|found| !found.is_empty())).count();
            2 * n_found > paths.len()
        })
    }

    /// Whether a cell names a folder of images below the root.
    pub(super) fn is_folder(root: &Path, cell: &str) -> bool {
        let is_plain = !cell.is_empty() && !cell.starts_with('/') && !parts(cell.as_bytes()).any(|part| part == b"..");
        is_plain && Self::find(root, &[cell.as_bytes().to_vec()]).is_some()
    }

    /// The images of the folder that a path names, in name order. Empty if there is no such folder.
    pub(super) fn images(&self, root: &Path, path: &[u8]) -> Result<Vec<Vec<u8>>, ConvertError> {
        let inside = (!self.inside.is_empty()).then_some(self.inside.as_slice());
        let folder = inside.into_iter().chain(parts(path).skip(self.n_leading)).collect::<Vec<_>>().join(&b'/');
        if folder.is_empty() || !root.join(as_path(&folder)).is_dir() {
            return Ok(Vec::new());
        }
        let directory = Directory::scan(root, &folder, SampleFiles::Images)?;
        let mut images: Vec<Vec<u8>> = directory.sample_names().map(|name| [&folder, name].join(&b'/')).collect();
        images.sort_unstable();
        Ok(images)
    }
}

/// The column of folders in a table without a header. `cells` are those of its first row. A cell counts if it names a
/// folder of images next to the table, or in a folder next to the table. `None` if no cell does.
pub(super) fn column_of_folders(table: &Path, cells: &[String]) -> Option<usize> {
    let root = table.parent()?;
    let root = if root == Path::new("") { Path::new(".") } else { root };
    cells.iter().position(|cell| Clips::is_folder(root, cell))
}

/// Whether a table of folders has the number of images of each folder in its second column, and a whole number in the third, its last:
/// `Archery/v_1 5 2`, as in the lists of MMAction2. Only the first rows are compared.
pub(super) fn has_counts(table: &Path) -> bool {
    let (Ok(head), Some(root)) = (head_of(table), table.parent()) else { return false };
    let root = if root == Path::new("") { Path::new(".") } else { root };
    // The last line may be incomplete.
    let end = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len());
    let Ok(text) = std::str::from_utf8(&head[..end]) else { return false };
    let is_counted = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (Some(folder), Some(count), Some(label), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let folder = folder.as_bytes().to_vec();
        let images = Clips::find(root, std::slice::from_ref(&folder)).map(|clips| clips.images(root, &folder));
        let n = images.and_then(Result::ok).map_or(0, |images| images.len());
        label.parse::<u32>().is_ok() && n > 0 && count.parse() == Ok(n)
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_counted)
}

/// The parts of a path.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
}
