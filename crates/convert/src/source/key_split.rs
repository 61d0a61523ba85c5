//! Splits that the names of arrays tell: `x_train` and `y_test`, `train_images`, `val/images`.

use std::path::Path;

use super::found::{Keys, Part, find_field};
use super::split::is_split_name;

/// What stands between the words of a name.
const BETWEEN: [char; 4] = ['_', '-', '.', '/'];

/// The split that a name starts or ends with, in lower case, and the name without it.
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

/// The splits, sorted, that have images among arrays of these names.
pub(super) fn splits<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let split_names = names.filter_map(split_of);
    let is_image = |plain: &str| {
        let found = find_field(
            Path::new(""),
            &[plain.to_owned()],
            Part::Image,
            Keys::default(),
        );
        matches!(found, Ok(Some(_)))
    };
    let with_images = split_names.filter(|(_, plain)| is_image(plain));
    let mut splits: Vec<String> = with_images.map(|(split, _)| split).collect();
    splits.sort_unstable();
    splits.dedup();
    splits
}

/// The names of the arrays of one split among those of a file.
pub(super) struct SplitNames<'a> {
    /// None where the names tell no splits: then all belong.
    split: Option<&'a str>,
}

impl<'a> SplitNames<'a> {
    /// Of the split `wanted`, where the names tell of any.
    pub(super) fn new<'b>(
        names: impl Iterator<Item = &'b str> + Clone,
        wanted: Option<&'a str>,
    ) -> Self {
        let split = wanted.filter(|_| !splits(names).is_empty());
        Self { split }
    }

    /// The name without its split; none if the array belongs to another.
    pub(super) fn plain<'b>(&self, name: &'b str) -> Option<&'b str> {
        match (self.split, split_of(name)) {
            (Some(wanted), Some((split, plain))) => (split == wanted).then_some(plain),
            _ => Some(name),
        }
    }

    /// The caller's names for fields, without the split.
    pub(super) fn keys<'b>(&self, keys: Keys<'b>) -> Keys<'b> {
        let plain = |key: Option<&'b str>| key.map(|key| self.plain(key).unwrap_or(key));
        Keys {
            image: plain(keys.image),
            label: plain(keys.label),
            mask: plain(keys.mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_stand_before_or_behind_the_name() {
        let names = [
            "X_train",
            "y_train",
            "x_test",
            "val-images",
            "classes",
            "train",
        ];
        let found = splits(names.into_iter());
        assert_eq!(found, ["test", "train", "val"]);
        let names = SplitNames::new(names.into_iter(), Some("train"));
        assert_eq!(names.plain("y_train"), Some("y"));
        assert_eq!(names.plain("y_test"), None);
        assert_eq!(names.plain("classes"), Some("classes"));
        assert_eq!(splits(["test_loss", "x"].into_iter()), Vec::<String>::new());
        let all = SplitNames::new(["a", "b"].into_iter(), Some("train"));
        assert_eq!(all.plain("b_test"), Some("b_test"));
    }
}
