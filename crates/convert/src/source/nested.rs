//! Classes with images only in subfolders, which may be the real classes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::paths::{PathTable, lossy, stem};
use super::walk::Found;
use super::warning::{Tally, Warning};

/// The warning about two or more such classes.
pub(super) fn find(root: &Path, found: &Found) -> Option<Warning> {
    let (mut direct, mut inner) = (BTreeSet::new(), BTreeMap::new());
    for idx in 0..found.paths.len() {
        let directory = found.paths.directory(idx);
        let class = directory.split(|byte| *byte == b'/').next().unwrap_or_default();
        if class.len() == directory.len() {
            direct.insert(class);
        } else {
            inner.entry(class).or_insert(directory);
        }
    }
    let mut tally = Tally::default();
    inner.iter().filter(|(class, _)| !direct.contains(*class)).for_each(|(_, directory)| tally.add(directory));
    let list = list_command(root, &found.paths);
    tally.warning(|count, first| Warning::NestedClasses { count, first, list }).filter(|_| inner.len() > 1)
}

/// The command that writes a list of all images, whose folders are their classes. None if a path has a space, because a
/// space ends a path in such a list.
fn list_command(root: &Path, images: &PathTable) -> Option<String> {
    let has_space = |text: &[u8]| text.iter().any(u8::is_ascii_whitespace);
    if has_space(root.as_os_str().as_bytes()) || (0..images.len()).any(|idx| has_space(&images.path(idx))) {
        return None;
    }
    let end = |idx: usize| {
        let name = images.name(idx);
        lossy(&name[stem(name).len()..])
    };
    let ends: BTreeSet<String> = (0..images.len()).map(end).collect();
    let names: Vec<String> = ends.iter().map(|end| format!("-name '*{end}'")).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let root = root.display().to_string();
    let root = if root.chars().all(is_plain) { root } else { format!("'{}'", root.replace('\'', "'\\''")) };
    Some(format!("find {root} {} | sort > paths.txt", names.join(" -o ")))
}
