//! Splits in the names of arrays: `x_train` and `y_test`, `train_images`, `val/images`.

use std::collections::BTreeSet;
use std::path::Path;

use super::roles::{Keys, Part, find_field, is_image_name};
use super::shards::Shards;
use super::split::is_split_name;
use crate::metadata::METADATA_KEY;

/// Separators between the words of a name.
const BETWEEN: [char; 4] = ['_', '-', '.', '/'];

/// The split that a name starts or ends with, in lower case, and the rest of the name.
fn split_of(name: &str) -> Option<(String, &str)> {
    let is_split = |word: &str| is_split_name(word.as_bytes());
    let first = name.split_once(BETWEEN);
    let last = name.rsplit_once(BETWEEN);
    let (split, rest) = match (first, last) {
        (Some((word, rest)), _) if is_split(word) => (word, rest),
        (_, Some((rest, word))) if is_split(word) => (word, rest),
        _ => return None,
    };
    (!rest.is_empty()).then(|| (split.to_ascii_lowercase(), rest))
}

/// The splits in the array names that have an array of images, sorted.
pub(super) fn splits<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let split_names = names.filter_map(split_of);
    let is_image = |plain: &str| {
        let found = find_field(Path::new(""), &[plain.to_owned()], Part::Image, Keys::default(), None);
        matches!(found, Ok(Some(_)))
    };
    let with_images = split_names.filter(|(_, plain)| is_image(plain));
    let mut splits: Vec<String> = with_images.map(|(split, _)| split).collect();
    splits.sort_unstable();
    splits.dedup();
    splits
}

/// One part for each split that the array names mention, and one for arrays without a split if images are among them. The whole
/// source if there are no splits.
pub(super) fn parts<'a>(whole: &Shards, names: impl Iterator<Item = &'a str> + Clone) -> Vec<Shards> {
    let splits = splits(names.clone());
    // A pack's export is a single set, whatever its fields are called.
    if splits.is_empty() || names.clone().any(|name| name == METADATA_KEY) {
        return vec![whole.clone()];
    }
    let rest = SplitNames::new(names.clone(), None);
    let has_rest = names.clone().filter_map(|name| rest.plain(name)).any(is_image_name);
    let part = |split| Shards { split, ..whole.clone() };
    let rest = has_rest.then(|| part(None));
    let splits = splits.into_iter().map(|split| part(Some(split)));
    rest.into_iter().chain(splits).collect()
}

/// The split in the name of a field, which selects the part of the file to read. `None` selects the part without a split.
pub(super) fn split_of_key(key: &str) -> Option<String> {
    split_of(key).map(|(split, _)| split)
}

/// The names of the arrays that belong to one split, or to none.
pub(super) struct SplitNames<'a> {
    split: Option<&'a str>,
    /// All splits in the names; empty if all arrays belong together.
    splits: Vec<String>,
    /// The names of the split's arrays without the split.
    plain: BTreeSet<String>,
}

impl<'a> SplitNames<'a> {
    /// The names for the split `wanted`.
    pub(super) fn new<'b>(names: impl Iterator<Item = &'b str> + Clone, wanted: Option<&'a str>) -> Self {
        let is_exported = names.clone().any(|name| name == METADATA_KEY);
        let splits = match is_exported {
            true => Vec::new(),
            false => splits(names.clone()),
        };
        let split = wanted.filter(|_| !splits.is_empty());
        let of_split = names.filter_map(split_of).filter(|(own, _)| Some(own.as_str()) == split);
        Self { split, plain: of_split.map(|(_, plain)| plain.to_owned()).collect(), splits }
    }

    /// The name without its split. `None` if the array belongs to another split.
    pub(super) fn plain<'b>(&self, name: &'b str) -> Option<&'b str> {
        match (self.split, split_of(name)) {
            (Some(wanted), Some((split, plain))) => (split == wanted).then_some(plain),
            // The split's own array takes precedence over a shared one.
            (Some(_), None) => (!self.plain.contains(name)).then_some(name),
            (None, Some((split, _))) if self.splits.contains(&split) => None,
            (None, _) => Some(name),
        }
    }

    /// The caller's keys without the split.
    pub(super) fn keys<'b>(&self, keys: Keys<'b>) -> Keys<'b> {
        let plain = |key: Option<&'b str>| key.map(|key| self.plain(key).unwrap_or(key));
        Keys { image: plain(keys.image), label: plain(keys.label), mask: plain(keys.mask) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_stand_before_or_behind_the_name() {
        let names = ["X_train", "y_train", "x_test", "val-images", "classes", "train"];
        let found = splits(names.into_iter());
        assert_eq!(found, ["test", "train", "val"]);
        let names = SplitNames::new(names.into_iter(), Some("train"));
        assert_eq!(names.plain("y_train"), Some("y"));
        assert_eq!(names.plain("y_test"), None);
        assert_eq!(names.plain("classes"), Some("classes"));
        assert_eq!(splits(["test_loss", "x"].into_iter()), Vec::<String>::new());
        let half = ["images", "labels", "test_images", "test_labels", "classes"];
        let test = SplitNames::new(half.into_iter(), Some("test"));
        assert_eq!(half.map(|name| test.plain(name)), [None, None, Some("images"), Some("labels"), Some("classes")]);
        let rest = SplitNames::new(half.into_iter(), None);
        assert_eq!(half.map(|name| rest.plain(name)), [Some("images"), Some("labels"), None, None, Some("classes")]);
        let whole = Shards::one(Path::new("f"));
        let found = |names: &[&'static str]| -> Vec<Option<String>> {
            parts(&whole, names.iter().copied()).into_iter().map(|part| part.split).collect()
        };
        assert_eq!(found(&half), [None, Some("test".to_owned())]);
        assert_eq!(found(&["x", "classes"]), [None]);
        assert_eq!(found(&["image", "test_image", "packds"]), [None]);
        let all = SplitNames::new(["a", "b"].into_iter(), Some("train"));
        assert_eq!(all.plain("b_test"), Some("b_test"));
    }
}
