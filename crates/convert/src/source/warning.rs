//! Problems in a source that do not stop its listing.

use std::fmt;

use packds_format::DType;

use crate::error::quoted;

/// A problem in a source that does not stop the conversion.
///
/// Each kind appears once, with a count and its first case. Only [`Warning::LeftOut`], [`Warning::NotLabels`] and
/// [`Warning::Renamed`] appear once per field. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Classes without images. They keep their ids, so that ids match the folder names.
    EmptyClasses {
        /// How many.
        count: u64,
        /// The folder name of the first.
        first: Vec<u8>,
        /// Its id.
        id: i64,
    },
    /// Ignored images next to class folders. They belong to no class.
    FilesBesideClasses {
        /// How many.
        count: u64,
        /// The first in name order.
        first: Vec<u8>,
    },
    /// Every class has the name of a split and directly contains images.
    ClassesLookLikeSplits {
        /// The class names.
        classes: Vec<Vec<u8>>,
    },
    /// Dangling or circular symbolic links without an image extension.
    BrokenLinks {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Pipes, sockets and devices, always ignored.
    SpecialFiles {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Images in formats that cannot be decoded, such as PPM; ignored.
    UndecodedFormats {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Files without an image extension whose first bytes could not be read.
    UnreadableFiles {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// The metadata of the exported pack cannot be read and is ignored.
    BadMetadata {
        /// What is wrong with it.
        reason: String,
    },
    /// A field that cannot be read, or that a pack cannot store; left out.
    LeftOut {
        /// The field.
        field: String,
        /// What it is, or why it cannot be read.
        reason: String,
    },
    /// A label field without class ids; packed as an ordinary field.
    NotLabels {
        /// The field.
        field: String,
        /// What its values are.
        found: String,
    },
    /// A field whose name is reserved in packs.
    Renamed {
        /// Its old name.
        field: String,
        /// Its new name.
        to: String,
    },
    /// Arrays without one item per image; ignored.
    OtherArrays {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Pickles, which are never run; ignored.
    Pickles {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders in a tar file. They have no meaning there but stay in the samples' paths.
    FoldersInTar {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Files of one sample each that look like several images each; packed unchanged.
    Stacks {
        /// Shape of the first.
        shape: Vec<u64>,
    },
    /// Fields other than images exist, but none has a label name.
    NoLabels {
        /// The fields.
        fields: Vec<String>,
    },
    /// The JSON objects of a field contain a key with a label name.
    LabelInside {
        /// The field.
        field: String,
        /// The key in the objects.
        key: String,
    },
    /// Images exist, but no label file.
    LabelsMissing {
        /// The expected label file.
        file: Vec<u8>,
    },
}

impl Warning {
    /// The label field contains numbers other than class ids.
    pub(super) fn no_ids(field: &str, dtype: DType) -> Self {
        let found = match !dtype.is_float() {
            true => format!("{dtype} of which some are above 2^63 - 1"),
            false => "numbers that are not whole".to_owned(),
        };
        Self::NotLabels {
            field: field.to_owned(),
            found,
        }
    }

    /// The count, the thing counted, and the first case. None for warnings worded otherwise.
    fn what(&self) -> Option<(u64, &'static str, &[u8])> {
        let (count, what, first) = match self {
            Self::FilesBesideClasses { count, first } => {
                (count, "images beside the class folders ignored", first)
            }
            Self::BrokenLinks { count, first } => (count, "broken links ignored", first),
            Self::SpecialFiles { count, first } => {
                (count, "files that are not regular ignored", first)
            }
            Self::UndecodedFormats { count, first } => {
                let what = "images in formats that are not decoded ignored";
                (count, what, first)
            }
            Self::UnreadableFiles { count, first } => (count, "unreadable files ignored", first),
            Self::OtherArrays { count, first } => {
                let what = "arrays without an item for each image ignored";
                (count, what, first)
            }
            Self::Pickles { count, first } => {
                (count, "pickles ignored, which are never run", first)
            }
            Self::FoldersInTar { count, first } => {
                let what = "folders in the tar file are not taken for classes (WebDataset has labels in members such as KEY.cls; unpack it to convert class folders)";
                (count, what, first)
            }
            _ => return None,
        };
        Some((*count, what, first))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::EmptyClasses {
                count: 1,
                first,
                id,
            } => {
                let class = text(first);
                write!(out, "class '{class}' has no images and keeps its id {id}")
            }
            Self::EmptyClasses { count, first, id } => {
                let first = text(first);
                write!(
                    out,
                    "{count} classes have no images and keep their ids, first '{first}' (id {id})"
                )
            }
            Self::ClassesLookLikeSplits { classes } => {
                let names: Vec<String> = classes.iter().map(|name| text(name)).collect();
                write!(
                    out,
                    "the classes {} look like splits: pass --split",
                    quoted(&names)
                )
            }
            Self::BadMetadata { reason } => {
                write!(
                    out,
                    "the metadata of the pack it was exported from ignored: {reason}"
                )
            }
            Self::LeftOut { field, reason } => {
                write!(out, "field '{field}' left out: {reason}")
            }
            Self::NotLabels { field, found } => {
                write!(
                    out,
                    "'{field}' gives no labels: expected a whole number or a name for each image, found {found}; it is packed as a field"
                )
            }
            Self::Renamed { field, to } => write!(
                out,
                "the field '{field}' is packed as '{to}': packs call another one so"
            ),
            Self::Stacks { shape } => write!(
                out,
                "each file is one sample, an array of shape {shape:?}; if it holds {} images, put those of all files into one array (numpy.concatenate) as x.npy, and their labels as y.npy",
                shape.first().unwrap_or(&0)
            ),
            Self::NoLabels { fields } => write!(
                out,
                "no labels: no field is called as labels are, found {}; name them with --label-key",
                quoted(fields)
            ),
            Self::LabelInside { field, key } => write!(
                out,
                "no labels: '{key}' in the objects of '{field}' is taken with --label-key {key}"
            ),
            Self::LabelsMissing { file } => {
                write!(out, "no labels: there is no file '{}'", text(file))
            }
            counted => match counted.what() {
                Some((count, what, first)) => {
                    write!(out, "{count} {what}, first '{}'", text(first))
                }
                None => Ok(()),
            },
        }
    }
}

/// A count and its first case.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) first: Vec<u8>,
}

impl Tally {
    pub(super) fn add(&mut self, path: &[u8]) {
        if self.count == 0 {
            self.first = path.to_vec();
        }
        self.count += 1;
    }

    /// Adds a later tally.
    fn append(&mut self, other: Self) {
        if self.count == 0 {
            *self = other;
        } else {
            self.count += other.count;
        }
    }
}

/// Problems found while walking a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Oddities {
    pub(super) broken_links: Tally,
    pub(super) special_files: Tally,
    pub(super) undecoded_formats: Tally,
    pub(super) unreadable_files: Tally,
}

impl Oddities {
    pub(super) fn append(&mut self, other: Self) {
        self.broken_links.append(other.broken_links);
        self.special_files.append(other.special_files);
        self.undecoded_formats.append(other.undecoded_formats);
        self.unreadable_files.append(other.unreadable_files);
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let Tally { count, first } = self.broken_links;
        if count > 0 {
            warnings.push(Warning::BrokenLinks { count, first });
        }
        let Tally { count, first } = self.special_files;
        if count > 0 {
            warnings.push(Warning::SpecialFiles { count, first });
        }
        let Tally { count, first } = self.undecoded_formats;
        if count > 0 {
            warnings.push(Warning::UndecodedFormats { count, first });
        }
        let Tally { count, first } = self.unreadable_files;
        if count > 0 {
            warnings.push(Warning::UnreadableFiles { count, first });
        }
        warnings
    }
}
