//! Problems in a source that do not stop its listing.

use std::fmt;

use packds_format::DType;
use packds_system::counted;

use super::layout::WRITE_LABELS;
use super::unread::{Unread, UnreadFiles};
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
    /// Folders beside the splits; ignored.
    FoldersBesideSplits {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders beside the folders of images and masks; ignored.
    FoldersBesidePairs {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Images beside the folders of images and masks are ignored.
    FilesBesidePairs {
        /// Number of images.
        count: u64,
        /// First image.
        first: Vec<u8>,
    },
    /// Folders without images, beside folders that have images and masks; ignored.
    FoldersWithoutImages {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// The only two classes have files with the same names, like two versions of each image.
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
    /// Files named like masks, although most images have no mask; packed as images.
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
    /// A manifest beside the images of a folder; not read.
    ManifestUnread {
        /// Its name.
        file: Vec<u8>,
    },
    /// `.txt` files beside the images; packed as captions.
    Captions {
        /// Images without one.
        missing: u64,
    },
    /// `.txt` files of boxes beside the images; ignored.
    BoxesUnread {
        /// How many.
        count: u64,
    },
    /// The only subfolder of the source was read in its place.
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
    /// Links in an archive whose targets are not in it; ignored.
    LinksLeftOut {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Folders left by other programs, such as `.ipynb_checkpoints`; ignored, even if torchvision reads them as classes.
    SystemFolders {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Tar files that end after a whole member, without an end marker. They may be truncated.
    OpenEndedTars {
        /// How many.
        count: u64,
        /// The name of the first.
        first: Vec<u8>,
    },
    /// Classes whose images are all in subfolders; the subfolders are not classes.
    NestedClasses {
        /// How many.
        count: u64,
        /// The first folder inside one.
        first: Vec<u8>,
    },
    /// Masks in JPEG files: JPEG changes class numbers.
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
    /// Files of a type that is not read, such as HEIC; ignored. One warning for each type.
    UnreadType {
        /// The type.
        name: &'static str,
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
    /// Folders in a tar file that has only images; read as classes.
    FoldersInTar {
        /// How many.
        count: u64,
        /// The first.
        first: Vec<u8>,
    },
    /// Tar files that have only images; read as classes.
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
    /// The first lines of a manifest are comments or the number of rows; skipped.
    LinesSkipped {
        /// How many.
        count: u64,
    },
    /// The first line of a manifest contains a number, so it is a row and not a header.
    NoHeader {
        /// The start of the line.
        first: String,
    },
    /// The header of a manifest has one name too few, so the first column is the paths.
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
    /// Several rows of a manifest name the same image; each is packed as a sample.
    RepeatedImages {
        /// The column of paths.
        column: String,
        /// Different images.
        n_images: u64,
        /// Rows.
        n_rows: u64,
        /// The first image that comes again.
        first: Vec<u8>,
    },
    /// Columns that look like boxes; packed as fields.
    BoxColumns {
        /// The columns.
        fields: Vec<String>,
    },
    /// Rows have a word for missing values as their label; packed as a class.
    MissingNames {
        /// The column.
        field: String,
        /// The first such word.
        name: String,
        /// Rows.
        n_rows: u64,
    },
    /// Labels are read as names because some are no numbers.
    NumbersAsNames {
        /// The column.
        field: String,
        /// The first label that is no number.
        name: String,
        /// Its line.
        line: u64,
    },
    /// Numbers are packed as text because some have a decimal comma or are words for missing values.
    NumbersAsText {
        /// The column.
        field: String,
        /// The first such cell.
        cell: String,
    },
    /// Each list in a column of labels has one label.
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
    /// A field named like labels has a number for each pixel, so it is read as masks.
    LabelMaps {
        /// The field.
        field: String,
    },
    /// Masks are one-hot: a number for each class and pixel. They are packed as class numbers.
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
    /// The JSON objects of a manifest's column contain a key with a label name.
    LabelNested {
        /// The column.
        field: String,
        /// The key in the objects.
        key: String,
    },
    /// A file beside the images may have the labels, and is of no form that names paths.
    LabelsUnread {
        /// Its name.
        file: Vec<u8>,
    },
    /// A file beside the images or the manifest has class names, which are not used.
    ClassNamesUnread {
        /// Its name.
        file: Vec<u8>,
    },
    /// The last dimension of the images may be that of the samples.
    ImagesLast {
        /// The shape of the array.
        shape: [u64; 4],
    },
    /// The labels are the folders of a manifest's paths.
    FolderLabels {
        /// The first.
        first: String,
    },
    /// The words after the first on each line of a list are one cell.
    RestOfLine {
        /// That of the first line.
        label: String,
    },
    /// The files of a manifest are in a folder beside its own.
    RootBeside {
        /// The folder.
        folder: Vec<u8>,
    },
    /// Images exist, but no label file.
    LabelsMissing {
        /// The expected label file.
        file: Vec<u8>,
    },
}

const BESIDE_PAIRS: &str = " beside the folders of images and masks";

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

    /// The parts of a warning that counts cases. None for warnings worded otherwise.
    fn counted(&self) -> Option<Counted<'_>> {
        let ignored =
            |count: &u64, noun, rest, first| Counted { verb: "ignored", count: *count, noun, rest, first, why: "" };
        let counted = match self {
            Self::FilesBesideClasses { count, first } => ignored(count, "image", " beside the class folders", first),
            Self::FoldersBesideSplits { count, first } => ignored(count, "folder", " beside the splits", first),
            Self::FoldersBesidePairs { count, first } => ignored(count, "folder", BESIDE_PAIRS, first),
            Self::FilesBesidePairs { count, first } => ignored(count, "image", BESIDE_PAIRS, first),
            Self::FoldersWithoutImages { count, first } => {
                ignored(count, "folder", " without a folder of images", first)
            }
            Self::UnusedMasks { count, first } => ignored(count, "mask", " without an image", first),
            Self::BrokenLinks { count, first } => ignored(count, "broken link", "", first),
            Self::LinksLeftOut { count, first } => ignored(count, "link", " without a target in the archive", first),
            Self::SpecialFiles { count, first } => ignored(count, "special file", "", first),
            Self::SystemFolders { count, first } => ignored(count, "folder", " of other programs", first),
            Self::HiddenFolders { count, first } => ignored(count, "hidden folder", "", first),
            Self::UnreadableFiles { count, first } => ignored(count, "unreadable file", "", first),
            Self::OtherArrays { count, first } => ignored(count, "array", " without an item for each image", first),
            Self::Pickles { count, first } => {
                Counted { why: ": pickles are never run", ..ignored(count, "pickle", "", first) }
            }
            _ => return self.counted_decision(),
        };
        Some(counted)
    }

    /// The same, for cases that are not ignored.
    fn counted_decision(&self) -> Option<Counted<'_>> {
        let either = |count: &u64, one, many| if *count == 1 { one } else { many };
        let (verb, count, noun, rest, first, why) = match self {
            Self::FewMasks { count, first } => {
                let rest = either(count, " named like a mask as an image", " named like masks as images");
                ("packed", count, "file", rest, first, ": most images have no mask")
            }
            Self::FoldersInImages { count, first } => {
                let why = ": there are masks beside the images";
                let rest = either(count, " of the images as a class", " of the images as classes");
                ("did not use", count, "subfolder", rest, first, why)
            }
            Self::OpenEndedTars { count, first } => {
                ("found", count, "tar file", " without an end marker", first, ": the end of the data may be missing")
            }
            Self::NestedClasses { count, first } => {
                ("found", count, "class", " with images only in subfolders", first, ": subfolders are not classes")
            }
            Self::LossyMasks { count, first } => {
                let why = ": JPEG changes class numbers, so save masks as PNG";
                ("found", count, "mask", " in JPEG format", first, why)
            }
            Self::TarClasses { count, first } => {
                ("read", count, "tar file", either(count, " as a class", " as classes"), first, "")
            }
            Self::FoldersInTar { count, first } => {
                let rest = either(count, " in the tar file as a class", " in the tar file as classes");
                ("read", count, "folder", rest, first, "")
            }
            _ => return None,
        };
        Some(Counted { verb, count: *count, noun, rest, first, why })
    }
}

/// A warning that counts cases: "ignored 2 folders beside the splits (first: 'other')".
struct Counted<'a> {
    verb: &'static str,
    count: u64,
    noun: &'static str,
    rest: &'static str,
    first: &'a [u8],
    why: &'static str,
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = if self.count == 1 { "" } else { "first: " };
        let first = String::from_utf8_lossy(self.first);
        write!(out, "{} {}{} ({label}'{first}'){}", self.verb, counted(self.count, self.noun), self.rest, self.why)
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
                write!(out, "{count} classes have no images and keep their ids (first: '{first}', id {id})")
            }
            Self::ManifestUnread { file } => {
                let file = text(file);
                write!(out, "'{file}' was not read: if it has labels or other fields, name it as the source")
            }
            Self::Captions { missing: 0 } => out.write_str("the .txt files beside the images are packed as 'caption'"),
            Self::Captions { missing } => write!(
                out,
                "the .txt files beside the images are packed as 'caption', which is empty for {} without such a file",
                counted(*missing, "image")
            ),
            Self::BoxesUnread { count } => {
                write!(
                    out,
                    "ignored {} beside the images: they hold boxes in the format of YOLO",
                    counted(*count, ".txt file")
                )
            }
            Self::Wrapper { folder } => write!(out, "read from '{}', the only subfolder with images", text(folder)),
            Self::BadMetadata { reason } => write!(out, "ignored the metadata of the original pack: {reason}"),
            Self::LeftOut { field, reason } => write!(out, "left out the field '{field}': {reason}"),
            Self::NotLabels { field, found } => write!(
                out,
                "'{field}' is packed as an ordinary field and not as labels: labels are an integer or a name for each image, but it has {found}"
            ),
            Self::Renamed { field, to } => {
                write!(out, "the field '{field}' is packed as '{to}', because packs reserve the name '{field}'")
            }
            Self::Stacks { shape } => write!(
                out,
                "each file is read as one sample of shape {shape:?}; if each file holds {} images instead, merge all images into x.npy (numpy.concatenate) and their labels into y.npy",
                shape.first().unwrap_or(&0)
            ),
            Self::SameNames { one, other } => {
                let (one, other) = (text(one), text(other));
                let alone = IMAGES.with(&one);
                write!(
                    out,
                    "the classes '{one}' and '{other}' have files with the same names: if they are two versions of each image, pack one with {alone}"
                )
            }
            Self::SplitUnlabelled => out.write_str("this split has no labels, but another one has class folders"),
            Self::NoLabels { fields, is_program } => {
                write!(out, "no labels found: none of the fields {} has a usual name for labels", quoted(fields))?;
                match is_program {
                    true => out.write_str("; give it the kind 'label'"),
                    false => write!(out, "; name them with {LABEL_KEY}"),
                }
            }
            Self::LabelInside { field, key } => {
                write!(out, "no labels found: to use '{key}' inside '{field}', add {}", LABEL_KEY.with(key))
            }
            Self::UnreadType { name, count, first } => fmt_unread(out, name, *count, first),
            Self::LabelsMissing { file } => write!(out, "no labels found: the file '{}' is missing", text(file)),
            other => match other.counted() {
                Some(counted) => counted.fmt(out),
                None => other.fmt_of_files(out),
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
                write!(out, "the {masks} files are read as the masks of the {images} files with the same names")
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
                out.write_str("left out the first column: it has no name, like the index column that pandas writes")
            }
            Self::LinesSkipped { count } => {
                let lines = if *count == 1 { "the first line" } else { &format!("the first {count} lines") };
                write!(out, "skipped {lines}: only comments or the number of rows")
            }
            Self::NoHeader { first } => {
                write!(
                    out,
                    "the first line is read as a row and not as a header, because it contains a number: '{first}'"
                )
            }
            Self::NoPathName { first } => write!(
                out,
                "the first column is read as 'path': the header has one name too few (first path: '{}')",
                text(first)
            ),
            Self::PixelColumns { height, width } => {
                write!(out, "each row is read as a gray image of {height} x {width} pixels")
            }
            Self::FilesLocated { column, named, path } => {
                write!(
                    out,
                    "the paths in '{column}' are incomplete, and the files were found by name: '{}' is '{}'",
                    text(named),
                    text(path)
                )
            }
            Self::RepeatedImages { column, n_images, n_rows, first } => write!(
                out,
                "the {n_rows} rows name only {n_images} images in '{column}', first '{}' again: each row is packed as a sample",
                text(first)
            ),
            Self::BoxColumns { fields } => {
                write!(
                    out,
                    "{} look like boxes, and are packed as fields: resizing and cropping do not change them",
                    quoted(fields)
                )
            }
            _ => self.fmt_of_labels(out),
        }
    }

    /// Writes a warning about the labels of a manifest.
    fn fmt_of_labels(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingNames { field, name, n_rows } => write!(
                out,
                "'{name}' is packed as a class ({n_rows} rows of '{field}'): if these labels are missing, leave the cells empty"
            ),
            Self::NumbersAsNames { field, name, line } => {
                write!(
                    out,
                    "the labels in '{field}' are read as names, because {} in line {line} is no number",
                    shown(name)
                )
            }
            Self::NumbersAsText { field, cell } => {
                write!(
                    out,
                    "'{field}' is packed as text, because of cells such as {}: write numbers as 0.5, and leave missing ones empty",
                    shown(cell)
                )
            }
            Self::OnlyOtherColumn { field } => {
                write!(out, "labels are read from '{field}', the only column beside the paths")
            }
            Self::SingleLabels { field } => {
                write!(
                    out,
                    "every list in '{field}' has one label: to read single labels, add {}",
                    LABEL_KEY.with(field)
                )
            }
            Self::JoinedLabels { field, cell } => {
                write!(out, "the cells of '{field}' are read as lists of labels (first: {})", shown(cell))
            }
            Self::MaybeJoined { field, cell } => write!(
                out,
                "{} in '{field}' is packed as one class name: if it is a list of labels, separate them with ';' and add {}",
                shown(cell),
                LABEL_KEY.with(field)
            ),
            _ => self.fmt_of_list(out),
        }
    }

    /// Writes a warning about a list of paths, or a file of labels or class names.
    fn fmt_of_list(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::FolderLabels { first } => {
                write!(
                    out,
                    "the list has no labels: the folders of its paths are the classes, such as {}",
                    shown(first)
                )
            }
            Self::RestOfLine { label } => {
                write!(out, "all words after the first on a line are one label, such as {}", shown(label))
            }
            Self::RootBeside { folder } => write!(out, "the files are read from the folder '{}'", text(folder)),
            Self::LabelNested { field, key } => {
                write!(out, "no labels found: to use '{key}' inside '{field}', write it as a separate column")
            }
            Self::LabelsUnread { file } => {
                write!(out, "'{}' was not read: if it has labels, {WRITE_LABELS}", text(file))
            }
            Self::ClassNamesUnread { file } => {
                write!(out, "'{}' was not read: classes have the names of their folders or labels", text(file))
            }
            _ => self.fmt_of_arrays(out),
        }
    }

    /// Writes a warning about arrays.
    fn fmt_of_arrays(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ImagesLast { shape: [rows, width, channels, n] } => write!(
                out,
                "the array [{rows}, {width}, {channels}, {n}] is read as {rows} images: if it has {n}, put that dimension first with numpy.moveaxis(images, 3, 0)"
            ),
            Self::LabelMaps { field } => {
                write!(out, "masks are read from '{field}', which has a number for each pixel")
            }
            Self::OneHotMasks { n } => {
                write!(out, "the masks are one-hot: the {n} classes are packed as the numbers 0 to {}", n - 1)
            }
            Self::DatasetEach { n } => {
                write!(
                    out,
                    "each of the {n} datasets is read as one image; if there are several groups, they are the classes"
                )
            }
            Self::AssumedPixels { dtype } => write!(
                out,
                "the raw pixels have {} bytes per number and are read as {dtype}; to state another type, add a feature 'dtype'",
                dtype.size()
            ),
            _ => Ok(()),
        }
    }
}

/// Writes the warning about files of a type that is not read.
fn fmt_unread(out: &mut fmt::Formatter<'_>, name: &str, count: u64, first: &[u8]) -> fmt::Result {
    let label = if count == 1 { "" } else { "first: " };
    let first = String::from_utf8_lossy(first);
    write!(out, "ignored {} of the type {name} ({label}'{first}')", counted(count, "file"))?;
    Unread::named(name).map_or(Ok(()), |row| write!(out, "; to read them, {}", row.hint))
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
    pub(super) fn append(&mut self, other: Self) {
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
    pub(super) unread: UnreadFiles,
    pub(super) unreadable_files: Tally,
}

impl Oddities {
    pub(super) fn append(&mut self, other: Self) {
        self.broken_links.append(other.broken_links);
        self.special_files.append(other.special_files);
        self.system_folders.append(other.system_folders);
        self.unread.append(other.unread);
        self.unreadable_files.append(other.unreadable_files);
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let warnings = [
            self.broken_links.warning(|count, first| Warning::BrokenLinks { count, first }),
            self.special_files.warning(|count, first| Warning::SpecialFiles { count, first }),
            self.system_folders.warning(|count, first| Warning::SystemFolders { count, first }),
            self.unreadable_files.warning(|count, first| Warning::UnreadableFiles { count, first }),
        ];
        warnings.into_iter().flatten().chain(self.unread.into_warnings()).collect()
    }
}
