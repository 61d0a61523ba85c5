//! Finds label files next to image files by matching names: `x_train.h5` and `y_train.h5`, `k49-train-imgs.npz` and
//! `k49-train-labels.npz`.
//!
//! Each format's module reads the files.

use std::path::{Path, PathBuf};

use super::there::is_there;
use crate::error::ConvertError;

/// Separators between the words of a name.
const BETWEEN: [char; 3] = ['_', '-', '.'];
/// Words for images, and their counterparts in label file names.
const WORDS: [(&str, &str); 9] = [
    ("images", "labels"),
    ("images", "targets"),
    ("images", "target"),
    ("image", "label"),
    ("imgs", "labels"),
    ("img", "label"),
    ("data", "labels"),
    ("x", "y"),
    ("X", "Y"),
];

/// An image file and its label file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) images: PathBuf,
    pub(super) labels: Option<PathBuf>,
}

/// Possible stems of the label file for an image file with this stem.
pub(super) fn label_stems(stem: &str) -> Vec<String> {
    let behind = ["labels", "label", "target", "targets"]
        .into_iter()
        .flat_map(|word| BETWEEN.map(|between| format!("{stem}{between}{word}")));
    let mut stems: Vec<String> = behind.collect();
    for (image, label) in WORDS {
        stems.extend(exchanged(stem, image, label));
    }
    // The labels of `X` may also be named `y`.
    stems.extend(exchanged(stem, "X", "y"));
    // The word may be part of a longer word, as in `trainimages`.
    for (image, label) in [("images", "labels"), ("image", "label")] {
        if stem.contains(image) {
            stems.push(stem.replacen(image, label, 1));
        }
    }
    stems
}

/// The name with one word replaced. `None` if it does not contain the word.
fn exchanged(stem: &str, from: &str, to: &str) -> Option<String> {
    let mut start = 0;
    for word in stem.split(BETWEEN) {
        if word == from {
            let (before, rest) = (stem.get(..start)?, stem.get(start + from.len()..)?);
            return Some(format!("{before}{to}{rest}"));
        }
        start += word.len() + 1;
    }
    None
}

/// Pairs the image files of a part with their label files. Label files are looked up among `files` or, if there is only one file,
/// in its folder.
pub(super) fn pairs(files: &[PathBuf]) -> Result<Vec<Pair>, ConvertError> {
    let labels = files.iter().map(|file| labels_of(file, files));
    let labels = labels.collect::<Result<Vec<Option<PathBuf>>, _>>()?;
    let is_label = |file: &PathBuf| labels.iter().flatten().any(|label| label == file);
    let pair = |(images, labels): (&PathBuf, &Option<PathBuf>)| Pair { images: images.clone(), labels: labels.clone() };
    let of_images = files.iter().zip(&labels);
    let of_images = of_images.filter(|(file, _)| !is_label(file));
    Ok(of_images.map(pair).collect())
}

/// Whether a file's name says that the file contains the masks for another of these files: `train_mask.h5` next to
/// `train_x.h5`.
#[cfg(feature = "hdf5")]
pub(super) fn is_mask_beside(file: &Path, files: &[PathBuf]) -> bool {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let names = ["mask", "masks"].into_iter().flat_map(|mask| WORDS.map(|(image, _)| exchanged(stem, mask, image)));
    let is_there = |stem: String| {
        let mut path = file.with_file_name(stem);
        if let Some(extension) = file.extension() {
            path.as_mut_os_string().push(".");
            path.as_mut_os_string().push(extension);
        }
        files.contains(&path)
    };
    names.flatten().any(is_there)
}

fn labels_of(images: &Path, files: &[PathBuf]) -> Result<Option<PathBuf>, ConvertError> {
    let stem = images.file_stem().and_then(|stem| stem.to_str());
    let extension = images.extension().and_then(|extension| extension.to_str());
    let Some((stem, extension)) = stem.zip(extension) else {
        return Ok(None);
    };
    for stem in label_stems(stem) {
        let path = images.with_file_name(format!("{stem}.{extension}"));
        let is_one = match files {
            [_] => is_there(&path)?,
            files => files.contains(&path),
        };
        if is_one {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_called_as_their_images_are() {
        for (images, labels) in [
            ("train-images", "train-labels"),
            ("trainimages", "trainlabels"),
            ("k49-train-imgs", "k49-train-labels"),
            ("cifar10.1_v6_data", "cifar10.1_v6_labels"),
            ("split_train_x", "split_train_y"),
            ("x_train", "y_train"),
            ("train_images_0", "train_target_0"),
            ("X_train", "y_train"),
            ("X", "y"),
            ("photos", "photos.labels"),
            ("photos", "photos-labels"),
            ("olivetti_faces", "olivetti_faces_target"),
        ] {
            let stems = label_stems(images);
            assert!(stems.iter().any(|stem| stem == labels), "{stems:?}");
        }
        let words = label_stems("xrays_max");
        assert!(words.iter().all(|stem| stem.starts_with("xrays_max")));
    }

    #[test]
    fn files_of_a_part_are_paired_and_labels_are_no_images() {
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let both = files(&["a_labels.npz", "a.npz", "b.npz", "x_1.npz", "y_1.npz"]);
        let found = pairs(&both).unwrap();
        let names: Vec<(&Path, Option<&Path>)> =
            found.iter().map(|pair| (pair.images.as_path(), pair.labels.as_deref())).collect();
        let path = |name| Path::new(name);
        assert_eq!(
            names,
            [
                (path("a.npz"), Some(path("a_labels.npz"))),
                (path("b.npz"), None),
                (path("x_1.npz"), Some(path("y_1.npz"))),
            ]
        );
    }
}
