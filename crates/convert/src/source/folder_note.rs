//! Warnings about folders that may not be classes, and about the names of files in them.

use std::fmt;

use packds_system::counted;

use super::mistaken::{DATASET, as_classes};
use super::paths::{lossy, stem};
use crate::opt::{IMAGES, LEAVE_OUT};
use crate::plan::MASK;

/// A decision about folders.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderNote {
    /// The only two classes contain files with the same names, so they may be two versions of each image.
    SameNames {
        /// One class.
        one: Vec<u8>,
        /// The other.
        other: Vec<u8>,
    },
    /// Two classes contain files with the same names and bytes.
    SameFiles {
        /// One class.
        one: Vec<u8>,
        /// The other.
        other: Vec<u8>,
        /// Number of files.
        count: u64,
    },
    /// Two folders have versions of the same images. One supplies the images, the other a field.
    Versions {
        /// The folder of the images.
        images: Vec<u8>,
        /// The folder of their other versions.
        other: Vec<u8>,
        /// The field of the other versions.
        field: String,
    },
    /// Ignored images of a folder whose other version is missing.
    NoVersion {
        /// Number of images.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
        /// The folder of the other versions.
        folder: Vec<u8>,
    },
    /// The classes each contain only a folder of their own name, so they may be parts of a dataset.
    DoubledFolders {
        /// One class.
        one: Vec<u8>,
        /// Another.
        other: Vec<u8>,
    },
    /// Ignored masks of images that have another mask.
    OtherMasks {
        /// Number of ignored masks.
        count: u64,
        /// The first ignored mask.
        first: Vec<u8>,
        /// The mask that is packed in its place.
        packed: Vec<u8>,
    },
    /// Ignored images of Pascal VOC without a mask. Boxes are ignored as well.
    Unmasked {
        /// Number of images.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
        /// The folder of the images.
        images: Vec<u8>,
        /// The folder of the masks.
        masks: Vec<u8>,
    },
    /// The boxes of Pascal VOC are ignored, because the images have masks.
    BoxesBesideMasks,
    /// A file with the boxes of a split, or of the whole folder.
    BoxFileRead {
        /// The file.
        file: Vec<u8>,
        /// Number of other JSON files in its folder.
        others: u64,
    },
    /// A split that a file of a data set of boxes names, but that is left out.
    SplitLeftOut {
        /// The split.
        split: String,
        /// The file.
        file: String,
        /// Why the split is left out.
        reason: String,
    },
    /// A split without a folder of masks, next to splits that have one.
    NoMaskFolder {
        /// The missing folder.
        folder: Vec<u8>,
    },
    /// The classes have the same few subfolders, which may be the classes instead.
    SameFolders {
        /// One subfolder.
        one: Vec<u8>,
        /// Another.
        other: Vec<u8>,
        /// The line of Python that writes a table with the subfolders as labels.
        line: String,
    },
    /// An ignored folder has the images of a split in another version.
    VersionsBesideSplit {
        /// The split.
        split: String,
        /// The folder.
        folder: Vec<u8>,
    },
    /// An ignored folder of tensors that torchvision wrote from the files that are read.
    TensorsUnread {
        /// The folder.
        folder: Vec<u8>,
    },
    /// Folders that are not used as classes, because they have the first digits of the names of the files in them.
    HashFolders {
        /// The first of the inner folders.
        first: Vec<u8>,
    },
    /// Numbered folders that are not used as classes, because the file that describes the images has no labels.
    UnlabelledFolders {
        /// The first folder.
        first: Vec<u8>,
    },
    /// An ignored folder of regularization images.
    RegularizationUnread {
        /// The folder.
        folder: Vec<u8>,
    },
    /// A text file next to the images has a row for each number in their names.
    RowsByNumber {
        /// The name of the file.
        file: String,
        /// The number of the first image.
        number: String,
        /// The first image.
        image: Vec<u8>,
        /// The line of Python that writes a table of the rows.
        line: String,
    },
    /// Files with different names are read as parts of one data set.
    OneSet {
        /// One file.
        one: String,
        /// The next file with another name.
        other: String,
    },
    /// The names of the images may be texts, as for captchas.
    NamesAsTexts {
        /// The first image.
        first: Vec<u8>,
        /// The line of Python that writes a table of the texts.
        line: String,
    },
}

impl fmt::Display for FolderNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameNames { .. }
            | Self::SameFiles { .. }
            | Self::SameFolders { .. }
            | Self::DoubledFolders { .. } => self.fmt_of_classes(out),
            Self::NamesAsTexts { .. }
            | Self::RowsByNumber { .. }
            | Self::Unmasked { .. }
            | Self::BoxesBesideMasks
            | Self::BoxFileRead { .. }
            | Self::SplitLeftOut { .. }
            | Self::UnlabelledFolders { .. }
            | Self::RegularizationUnread { .. } => self.fmt_of_values(out),
            Self::Versions { images, other, field } => write!(
                out,
                "'{}' and '{}' have two versions of each image: the first is packed as 'image', and the file of the second, unchanged, as the field '{field}', which is not cropped, resized or augmented with the image; {}",
                lossy(images),
                lossy(other),
                as_classes()
            ),
            Self::VersionsBesideSplit { split, folder } => {
                let folder = lossy(folder);
                let both = as_pairs(split, &folder);
                write!(
                    out,
                    "'{folder}' has images with the same names as '{split}'; if they are two versions of each image, {both}"
                )
            }
            Self::OtherMasks { count, first, packed } => write!(
                out,
                "ignored {} of images that have a mask: '{}' is packed, and '{}' is not; to pack the other masks, move the files named like the first to another folder",
                counted(*count, "other mask"),
                lossy(packed),
                lossy(first)
            ),
            Self::NoMaskFolder { folder } => {
                write!(out, "the images have no masks: there is no folder '{}'", lossy(folder))
            }
            Self::TensorsUnread { folder } => write!(
                out,
                "ignored the folder '{}' next to the files: it should have the same images as tensors",
                lossy(folder)
            ),
            Self::HashFolders { first } => write!(
                out,
                "the folders, such as '{}', are not read as classes, because their names are digits of hashes",
                lossy(first)
            ),
            Self::OneSet { one, other } => write!(
                out,
                "'{one}' and '{other}' are read as parts of one data set, so that equal class ids mean the same class; if they are different data sets, convert each file alone"
            ),
            Self::NoVersion { count, first, folder } => write!(
                out,
                "ignored {} without an image of the same name in '{}' (first: '{}')",
                counted(*count, "image"),
                lossy(folder),
                lossy(first)
            ),
        }
    }
}

impl FolderNote {
    /// Writes a note about the values of images, or about images without any.
    fn fmt_of_values(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamesAsTexts { first, line } => write!(
                out,
                "the file names may be the texts in the images, such as '{}'; if so, run this Python in the folder of the images, and convert names.csv: {line}",
                lossy(stem(first))
            ),
            Self::RowsByNumber { file, number, image, line } => write!(
                out,
                "'{file}' may have a row for each number in the file names, such as {number} in '{}'; if so, run this Python in the folder of the images, and convert names.csv: {line}",
                lossy(image)
            ),
            Self::Unmasked { count, first, images, masks } => {
                let label = if *count == 1 { "" } else { "first: " };
                write!(
                    out,
                    "ignored {} without a mask in '{}' ({label}'{}'), and any boxes; to pack all images without masks, add {}",
                    counted(*count, "image"),
                    lossy(masks),
                    lossy(first),
                    IMAGES.with(lossy(images))
                )
            }
            Self::BoxesBesideMasks => write!(
                out,
                "the boxes in 'Annotations' were not read, because there are masks; {} reads the boxes of all images instead",
                LEAVE_OUT.with(MASK)
            ),
            Self::BoxFileRead { file, others: 0 } => write!(out, "read the boxes in '{}'", lossy(file)),
            Self::BoxFileRead { file, others } => write!(
                out,
                "read the boxes in '{}', and not {} next to it; pass one of these files as the source to read it",
                lossy(file),
                counted(*others, "other JSON file")
            ),
            Self::SplitLeftOut { split, file, reason } => {
                write!(out, "left out the split '{split}' of '{file}': {reason}")
            }
            Self::UnlabelledFolders { first } => write!(
                out,
                "the folders, such as '{}', are not read as classes, because '{DATASET}' says that the images have no labels",
                lossy(first)
            ),
            Self::RegularizationUnread { folder } => write!(
                out,
                "ignored the regularization images in '{}'; to pack them, convert this folder alone",
                lossy(folder)
            ),
            _ => Ok(()),
        }
    }

    /// Writes a note about folders that were read as classes.
    fn fmt_of_classes(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameNames { one, other } => {
                let (one, other) = (lossy(one), lossy(other));
                let (alone, both) = (IMAGES.with(&one), as_pairs(&one, &other));
                write!(
                    out,
                    "the classes '{one}' and '{other}' have files with the same names: if they are two versions of each image, {both}, or pack only one with {alone}"
                )
            }
            Self::SameFiles { one, other, count } => write!(
                out,
                "the classes '{}' and '{}' have {} with the same names, and the first ones have the same bytes, so these images are packed twice: to pack only one folder, add {}",
                lossy(one),
                lossy(other),
                counted(*count, "file"),
                IMAGES.with(lossy(one))
            ),
            Self::SameFolders { one, other, line } => write!(
                out,
                "all folders have the same subfolders, such as '{}' and '{}'; if these are the classes, run this Python in the folder of all folders, and convert names.csv: {line}",
                lossy(one),
                lossy(other)
            ),
            Self::DoubledFolders { one, other } => {
                let [one, other] = [one, other].map(|folder| lossy(folder));
                write!(
                    out,
                    "'{one}/{one}' and '{other}/{other}' may be parts of a dataset instead of classes; if so, convert one of them alone"
                )
            }
            _ => Ok(()),
        }
    }
}

/// Advice on how to pack the images of two folders as pairs.
fn as_pairs(one: &str, other: &str) -> String {
    format!(
        "run in the folder of both: mkdir pairs; ln -s '../{one}' pairs/input; ln -s '../{other}' pairs/target; and convert pairs"
    )
}
