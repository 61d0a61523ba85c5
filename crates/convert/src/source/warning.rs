//! Problems in a source that do not stop its listing.

use std::fmt;

use packds_format::DType;

use crate::error::quoted;
use crate::metadata::Metadata;
use crate::opt::{IMAGES, LABEL_KEY};

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
    /// Folders beside the splits, which are not read.
    FoldersBesideSplits {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders beside those of images and masks, which are not read.
    FoldersBesidePairs {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders without images beside others that each have images and masks.
    FoldersWithoutImages {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// The only two classes have files of the same names, like two versions of each image.
    SameNames {
        /// One class.
        one: Vec<u8>,
        /// The other.
        other: Vec<u8>,
    },
    /// Files have the name of another but for the extension, and are images of their own.
    SameStems {
        /// How many.
        count: u64,
        /// One extension, with its dot.
        one: String,
        /// The other.
        other: String,
    },
    /// Files of one extension are the masks of those of another.
    MasksByExtension {
        /// The images' extension, with its dot.
        images: String,
        /// The masks' extension.
        masks: String,
    },
    /// Many names are those of other images with a mark, as masks or versions have.
    MarkedNames {
        /// The first.
        first: Vec<u8>,
        /// The image whose name it has.
        of: Vec<u8>,
    },
    /// A split has no labels, but another one has class folders.
    SplitUnlabelled,
    /// Masks whose names match no image; ignored.
    UnusedMasks {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Images whose names are those of masks, while most images have none; packed as images.
    FewMasks {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Subfolders of a folder of images, which are not used as classes.
    FoldersInImages {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// A manifest beside the images, which is not read with a folder.
    ManifestUnread {
        /// Its name.
        file: Vec<u8>,
    },
    /// Texts beside the images, which are packed as captions.
    Captions {
        /// Images without one.
        missing: u64,
    },
    /// Texts with the numbers of boxes beside the images, which are not packed.
    BoxesUnread {
        /// How many.
        count: u64,
    },
    /// The only subfolder of the source, which was read in its place.
    Wrapper {
        /// The subfolder.
        folder: Vec<u8>,
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
    /// Links in an archive to files that are not in it; ignored.
    LinksLeftOut {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders that programs left, such as `.ipynb_checkpoints`; ignored, also where torchvision takes them for classes.
    SystemFolders {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Tar files that end after a whole member, without the mark of their end. They may have been cut there.
    OpenEndedTars {
        /// How many.
        count: u64,
        /// The name of the first.
        first: Vec<u8>,
    },
    /// Classes whose images are all in folders inside them; these folders are not classes.
    NestedClasses {
        /// How many.
        count: u64,
        /// The first folder inside one.
        first: Vec<u8>,
    },
    /// Masks in JPEG files, whose numbers are not exact.
    LossyMasks {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Hidden folders beside folders that are not classes; ignored.
    HiddenFolders {
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
    /// Folders in a tar file of images alone, which are read as classes.
    FoldersInTar {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Tar files of images alone, which are read as classes.
    TarClasses {
        /// How many.
        count: u64,
        /// The first class.
        first: Vec<u8>,
    },
    /// Files of one sample each that look like several images each; packed unchanged.
    Stacks {
        /// Shape of the first.
        shape: Vec<u64>,
    },
    /// The first column of a manifest has no name, like an index that pandas writes; left out.
    IndexColumn,
    /// The first lines of a manifest are comments, or the number of rows; skipped.
    LinesSkipped {
        /// How many.
        count: u64,
    },
    /// The first line of a manifest has a number in it, so it is a row and not a header.
    NoHeader {
        /// The start of the line.
        first: String,
    },
    /// The header of a manifest has a name less than the rows have cells, so the first column is the paths.
    NoPathName {
        /// The first path.
        first: Vec<u8>,
    },
    /// The rows of a manifest hold the pixels of gray images.
    PixelColumns {
        /// Rows of pixels.
        height: u64,
        /// Pixels in each.
        width: u64,
    },
    /// A manifest names files without their folder or extension; they were found below the root.
    FilesLocated {
        /// The column.
        column: String,
        /// The first path in it.
        named: Vec<u8>,
        /// The first file found.
        path: Vec<u8>,
    },
    /// A column of lists of labels has one label in each.
    SingleLabels {
        /// The column.
        field: String,
    },
    /// Cells of a column hold several labels each.
    JoinedLabels {
        /// The column.
        field: String,
        /// The first such cell.
        cell: String,
    },
    /// A cell of a column is packed as one class name, but its parts are labels of other rows.
    MaybeJoined {
        /// The column.
        field: String,
        /// The first such cell.
        cell: String,
    },
    /// A field with a label's name has a number for each pixel, so it gives the masks.
    LabelMaps {
        /// The field.
        field: String,
    },
    /// Masks have a number for each class and pixel; they become class numbers.
    OneHotMasks {
        /// The number of classes.
        n: usize,
    },
    /// Each dataset of the source is read as one image.
    DatasetEach {
        /// How many.
        n: usize,
    },
    /// The type of raw pixels is not stated; their number of bytes gives it.
    AssumedPixels {
        /// The type.
        dtype: DType,
    },
    /// No column has a label name, so the only other column gives the labels.
    OnlyOtherColumn {
        /// The column.
        field: String,
    },
    /// Fields other than images exist, but none has a label name.
    NoLabels {
        /// The fields.
        fields: Vec<String>,
        /// Whether a program declares the fields, instead of a source that is read.
        is_program: bool,
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
            true => format!("{dtype} with values above 2^63 - 1"),
            false => "numbers that are not whole".to_owned(),
        };
        Self::NotLabels { field: field.to_owned(), found }
    }

    /// The label field contains integers below 0.
    pub(super) fn negative_ids(field: &str) -> Self {
        let found = "negative numbers (class ids count from 0)".to_owned();
        Self::NotLabels { field: field.to_owned(), found }
    }

    /// The count, the thing counted, and the first case. None for warnings worded otherwise.
    fn what(&self) -> Option<(u64, &'static str, &[u8])> {
        let (count, what, first) = match self {
            Self::FilesBesideClasses { count, first } => (count, "images beside the class folders ignored", first),
            Self::FoldersBesideSplits { count, first } => (count, "folders beside the splits ignored", first),
            Self::FoldersBesidePairs { count, first } => {
                (count, "folders beside those of images and masks ignored", first)
            }
            Self::FoldersWithoutImages { count, first } => (count, "folders without a folder of images ignored", first),
            Self::UnusedMasks { count, first } => (count, "masks without an image ignored", first),
            Self::FewMasks { count, first } => {
                (count, "images with the name of a mask packed as images: most images have no mask", first)
            }
            Self::FoldersInImages { count, first } => {
                (count, "subfolders of the images are not used as classes: there are masks beside them", first)
            }
            Self::BrokenLinks { count, first } => (count, "broken links ignored", first),
            Self::LinksLeftOut { count, first } => (count, "links to files that are not in the archive ignored", first),
            Self::OpenEndedTars { count, first } => {
                (count, "tar files end without the mark of their end, and may have been cut", first)
            }
            Self::SpecialFiles { count, first } => (count, "special files ignored", first),
            Self::SystemFolders { count, first } => (count, "folders of other programs ignored", first),
            Self::NestedClasses { count, first } => {
                (count, "classes have images only in folders inside them, which are not classes", first)
            }
            Self::LossyMasks { count, first } => {
                (count, "masks are JPEG files, whose class numbers are not exact: save masks as PNG", first)
            }
            Self::HiddenFolders { count, first } => (count, "hidden folders ignored", first),
            Self::UndecodedFormats { count, first } => (count, "images in unsupported formats ignored", first),
            Self::UnreadableFiles { count, first } => (count, "unreadable files ignored", first),
            Self::OtherArrays { count, first } => (count, "arrays without an item for each image ignored", first),
            Self::Pickles { count, first } => (count, "pickles ignored (they are never run)", first),
            Self::TarClasses { count, first } => (count, "tar files are read as classes", first),
            Self::FoldersInTar { count, first } => (count, "folders in the tar file are read as classes", first),
            _ => return None,
        };
        Some((*count, what, first))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::EmptyClasses { count: 1, first, id } => {
                let class = text(first);
                write!(out, "class '{class}' has no images and keeps its id {id}")
            }
            Self::EmptyClasses { count, first, id } => {
                let first = text(first);
                write!(out, "{count} classes have no images and keep their ids, first '{first}' (id {id})")
            }
            Self::ManifestUnread { file } => {
                let file = text(file);
                write!(out, "'{file}' was not read: if it has labels or other fields, name it as the source")
            }
            Self::Captions { missing: 0 } => out.write_str("the .txt files beside the images are packed as 'caption'"),
            Self::Captions { missing } => write!(
                out,
                "the .txt files beside the images are packed as 'caption'; it is empty for {missing} images without one"
            ),
            Self::BoxesUnread { count } => {
                write!(out, "{count} .txt files beside the images hold boxes, as for YOLO, and are not packed")
            }
            Self::Wrapper { folder } => write!(out, "read from '{}', the only subfolder with images", text(folder)),
            Self::BadMetadata { reason } => write!(out, "the metadata of the original pack ignored: {reason}"),
            Self::LeftOut { field, reason } => write!(out, "field '{field}' left out: {reason}"),
            Self::NotLabels { field, found } => write!(
                out,
                "'{field}' gives no labels: expected an integer or a name for each image, found {found}; it is packed as a field"
            ),
            Self::Renamed { field, to } => {
                write!(out, "the field '{field}' is packed as '{to}', because packs use its name for another field")
            }
            Self::Stacks { shape } => write!(
                out,
                "each file is one sample, an array of shape {shape:?}; if it holds {} images, merge those of all files into one array (numpy.concatenate), x.npy, and their labels into y.npy",
                shape.first().unwrap_or(&0)
            ),
            Self::SameNames { one, other } => {
                let (one, other) = (text(one), text(other));
                let alone = IMAGES.with(&one);
                write!(
                    out,
                    "the classes '{one}' and '{other}' have files of the same names: if they are versions of the same images, pack one with {alone}"
                )
            }
            Self::SplitUnlabelled => out.write_str("this split has no labels, but another one has class folders"),
            Self::NoLabels { fields, is_program } => {
                write!(out, "no labels found: no field has the usual name of labels among {}", quoted(fields))?;
                match is_program {
                    true => out.write_str("; give it the kind 'label'"),
                    false => write!(out, "; name them with {LABEL_KEY}"),
                }
            }
            Self::LabelInside { field, key } => {
                write!(out, "no labels found: to use '{key}' inside '{field}', add {}", LABEL_KEY.with(key))
            }
            Self::LabelsMissing { file } => write!(out, "no labels: there is no file '{}'", text(file)),
            counted => match counted.what() {
                Some((count, what, first)) => write!(out, "{count} {what}, first '{}'", text(first)),
                None => counted.fmt_of_files(out),
            },
        }
    }
}

impl Warning {
    /// Writes a warning about names of files that belong together.
    fn fmt_of_files(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::SameStems { count, one, other } => write!(
                out,
                "{count} names have a {one} and a {other} file, and each is an image of its own: if they are versions of the same images, move one kind away"
            ),
            Self::MasksByExtension { images, masks } => {
                write!(out, "the {masks} files are read as the masks of the {images} files of the same names")
            }
            Self::MarkedNames { first, of } => write!(
                out,
                "'{}' and others have the name of another image, here '{}': rename masks to '.._mask', and move other versions of the images away",
                text(first),
                text(of)
            ),
            _ => self.fmt_of_table(out),
        }
    }

    /// Writes a warning about a manifest.
    fn fmt_of_table(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::IndexColumn => {
                out.write_str("the first column left out: it has no name, like an index that pandas writes")
            }
            Self::LinesSkipped { count } => {
                write!(out, "{count} first lines skipped: they are comments, or the number of rows")
            }
            Self::NoHeader { first } => {
                write!(out, "the first line is read as a row, because it has a number in it: '{first}'")
            }
            Self::NoPathName { first } => write!(
                out,
                "the first column is read as 'path', because the header leaves out its name: '{}'",
                text(first)
            ),
            Self::PixelColumns { height, width } => {
                write!(out, "each row is read as a gray image of {height} x {width} pixels")
            }
            Self::FilesLocated { column, named, path } => {
                write!(
                    out,
                    "the files named in '{column}' were found in other folders: '{}' is '{}'",
                    text(named),
                    text(path)
                )
            }
            Self::OnlyOtherColumn { field } => {
                write!(out, "the labels are those of '{field}', the only column beside the paths")
            }
            Self::SingleLabels { field } => {
                write!(out, "each list of '{field}' has one label: {} reads single labels", LABEL_KEY.with(field))
            }
            Self::JoinedLabels { field, cell } => {
                write!(out, "the cells of '{field}' are read as lists of labels, such as {}", shown(cell))
            }
            Self::MaybeJoined { field, cell } => write!(
                out,
                "{} of '{field}' is packed as one class name: if it is a list of labels, write ';' between them and add {}",
                shown(cell),
                LABEL_KEY.with(field)
            ),
            _ => self.fmt_of_arrays(out),
        }
    }

    /// Writes a warning about arrays.
    fn fmt_of_arrays(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LabelMaps { field } => {
                write!(out, "the masks are those of '{field}', which has a number for each pixel")
            }
            Self::OneHotMasks { n } => {
                write!(out, "the masks are one-hot: their {n} classes become the numbers 0 to {}", n - 1)
            }
            Self::DatasetEach { n } => {
                write!(out, "each of the {n} datasets is read as one image; groups are classes if there are several")
            }
            Self::AssumedPixels { dtype } => write!(
                out,
                "the raw pixels have {} bytes per number and are read as {dtype}; a feature 'dtype' states another type",
                dtype.size()
            ),
            _ => Ok(()),
        }
    }
}

/// A cell in quotes, cut if it is long.
fn shown(cell: &str) -> String {
    const MAX_SHOWN: usize = 60;
    match cell.char_indices().nth(MAX_SHOWN) {
        None => format!("'{cell}'"),
        Some((end, _)) => format!("'{}...'", &cell[..end]),
    }
}

/// The exported pack's metadata, if there is any. If it cannot be read, that is a warning.
pub(super) fn readable(metadata: Option<Result<Metadata, String>>, warnings: &mut Vec<Warning>) -> Option<Metadata> {
    metadata?.map_err(|reason| warnings.push(Warning::BadMetadata { reason })).ok()
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

    /// The warning, if there is a case.
    pub(super) fn warning(self, of: impl FnOnce(u64, Vec<u8>) -> Warning) -> Option<Warning> {
        (self.count > 0).then(|| of(self.count, self.first))
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
    pub(super) system_folders: Tally,
    pub(super) undecoded_formats: Tally,
    pub(super) unreadable_files: Tally,
}

impl Oddities {
    pub(super) fn append(&mut self, other: Self) {
        self.broken_links.append(other.broken_links);
        self.special_files.append(other.special_files);
        self.system_folders.append(other.system_folders);
        self.undecoded_formats.append(other.undecoded_formats);
        self.unreadable_files.append(other.unreadable_files);
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let warnings = [
            self.broken_links.warning(|count, first| Warning::BrokenLinks { count, first }),
            self.special_files.warning(|count, first| Warning::SpecialFiles { count, first }),
            self.system_folders.warning(|count, first| Warning::SystemFolders { count, first }),
            self.undecoded_formats.warning(|count, first| Warning::UndecodedFormats { count, first }),
            self.unreadable_files.warning(|count, first| Warning::UnreadableFiles { count, first }),
        ];
        warnings.into_iter().flatten().collect()
    }
}
