//! Class names from the folders in a list of paths, as in an image folder. For example, `a/abbey` from `/a/abbey/1.jpg`.

use std::collections::BTreeSet;

use packds_system::to_u64;

/// The folder part of a path.
pub(super) fn folder_of(path: &str) -> &str {
    path.trim_start_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether this many folders can be the classes of this many images: each class needs two images on average.
pub(super) fn are_class_folders(n_folders: usize, n_images: u64) -> bool {
    n_folders > 1 && 2 * to_u64(n_folders) <= n_images
}

/// The part of a folder's path below `above`.
pub(super) fn class_below<'a>(folder: &'a str, above: &str) -> &'a str {
    folder.strip_prefix(above).unwrap_or(folder).trim_start_matches('/')
}

/// The deepest folder that contains all folders.
pub(super) fn common_folder(folders: &BTreeSet<String>) -> String {
    let mut common: Vec<&str> = folders.first().map(|first| first.split('/').collect()).unwrap_or_default();
    for folder in folders {
        let n = common.iter().zip(folder.split('/')).take_while(|(one, other)| *one == other).count();
        common.truncate(n);
    }
    common.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_what_folders_do_not_share() {
        let folders = ["data/a/abbey", "data/b/balcony"].map(str::to_owned).into();
        let common = common_folder(&folders);
        assert_eq!(common, "data");
        assert_eq!(class_below(folder_of("/data/a/abbey/1.jpg"), &common), "a/abbey");
        assert_eq!(common_folder(&["cat", "cats"].map(str::to_owned).into()), "");
        assert_eq!((folder_of("1.jpg"), class_below("cat", "")), ("", "cat"));
    }
}
