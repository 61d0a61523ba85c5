//! Warnings about tables and lists next to images.

use std::fmt;
use std::path::{Path, PathBuf};

use packds_system::{counted, to_u64};

use super::paths::lossy;
use super::run_masks::MaskOrder;
use crate::error::quoted;
use crate::opt::{IMAGES, LEAVE_OUT, MASK_ORDER, MASKS, SPLIT};

/// A decision about tables and their splits, or about lists next to images. The paths of lists are relative to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableNote {
    /// Lists of images give the splits.
    Splits {
        /// The lists.
        files: Vec<Vec<u8>>,
        /// Lists that only repeat the images of others.
        repeated: Vec<Vec<u8>>,
        /// Whether the lists have other columns. These are not read.
        has_columns: bool,
        /// Whether there is one list with 1 for the training split and 0 for the test split.
        has_flags: bool,
        /// Number of images that are in no list. They are ignored.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
    },
    /// Annotations are boxes.
    Boxes {
        /// What the boxes and their classes are.
        about: String,
        /// Number of images without a box, of boxes without an area, which are left out, and of boxes that reach beyond their
        /// image.
        counts: [u64; 3],
        /// Other numbers: each with a noun, and what was done.
        remarks: Vec<(u64, String, String)>,
        /// The values of annotations that are left out.
        left_out: Vec<String>,
    },
    /// A column has boxes that cannot be read, so it stays JSON.
    ObjectsUnread {
        /// The column.
        field: String,
        /// Why.
        reason: String,
    },
    /// Numbers in the lists that give the splits are the labels.
    ListLabels {
        /// The first image.
        image: String,
        /// Its number.
        number: i64,
        /// The name of its class, if the names of the files have class names.
        class: Option<String>,
        /// The fields of the other numbers.
        fields: Vec<String>,
    },
    /// The only list that is named like a split.
    LoneList {
        /// The list.
        file: Vec<u8>,
        /// The name that a list of the other images would have.
        other: String,
        /// Number of listed images, and of all images.
        count: [usize; 2],
        /// The line of Python that writes the list of the other images.
        line: String,
    },
    /// Lists that are named like splits, but do not clearly divide the images.
    NotSplits {
        /// The lists.
        files: Vec<Vec<u8>>,
        /// Why they are not used.
        reason: String,
    },
    /// A table was not read because one of its rows is malformed.
    BadRow {
        /// The table.
        file: Vec<u8>,
        /// The line on which the row starts, counted from 1.
        line: u64,
        /// What was expected and found.
        reason: String,
    },
    /// A list names no masks, but there are masks next to its images.
    MasksUnread {
        /// The folder that contains the images and the masks. `None` in an archive.
        folder: Option<PathBuf>,
        /// The folder of the images.
        images: Vec<u8>,
        /// The folder of the masks.
        masks: Vec<u8>,
        /// Whether packds finds the images and the masks without options if `folder` is the source.
        is_found: bool,
    },
    /// A table has other classes than the class folders for the same images. The folders are read.
    OtherLabels {
        /// The name of the table.
        file: Vec<u8>,
        /// Number of classes of the folders.
        n_folders: usize,
        /// Number of classes of the table.
        n_table: usize,
        /// The path of the table. `None` in an archive.
        table: Option<PathBuf>,
    },
    /// Several tables have a row for each image, and all their columns are packed.
    Joined {
        /// The tables, each with its columns.
        tables: Vec<(Vec<u8>, Vec<String>)>,
        /// The first column that has only the values -1 and 1.
        signs: Option<String>,
        /// The first column that is named like splits and has only the values 0, 1 and 2.
        splits: Option<String>,
        /// Whether this column divides the images into splits.
        are_read: bool,
    },
    /// Two columns name two versions of each image.
    Versions {
        /// The column of the images.
        image: String,
        /// The column of the other version, which is a field.
        other: String,
    },
    /// A table or list gives the labels of a split without class folders.
    SplitLabels {
        /// The table or list, relative to the folder of the splits or in it.
        file: Vec<u8>,
        /// The list of another split that has the numbers of the classes, if numbers are the labels.
        numbers: Option<Vec<u8>>,
    },
    /// The rows of a manifest name folders. All images of a folder get the labels and fields of its row.
    FolderRows {
        /// The first folder, as the manifest names it.
        first: Vec<u8>,
    },
    /// The second column of a list of folders has the numbers of their images, so the third has the labels.
    FolderCounts {
        /// The number of images of the first folder.
        count: String,
        /// Its label.
        label: String,
    },
    /// Images of a split without a row in a table of masks. Their masks are empty.
    NoRows {
        /// The name of the table.
        file: Vec<u8>,
        /// Number of these images.
        count: u64,
        /// The first of them.
        first: Vec<u8>,
    },
    /// A list has captions of images that do not exist. They are left out.
    MissingImages {
        /// The name of the list.
        file: Vec<u8>,
        /// Number of these images.
        count: u64,
        /// The first of them.
        first: Vec<u8>,
    },
    /// Images whose label is null. They are left out.
    NullLabels {
        /// Number of these images.
        count: u64,
        /// The first of them, as the file names it.
        first: String,
    },
    /// A column of true and false gives the splits.
    ValidFlags {
        /// The column.
        field: String,
    },
    /// The classes have the ids of this split alone, because the classes of another split were not read.
    OwnIds {
        /// The other split.
        other: String,
    },
    /// Values that are missing are stored as 0 or as empty strings, and read as such.
    StoredNone {
        /// The fields.
        fields: Vec<String>,
    },
    /// Masks are decoded from run lengths in a table.
    RunMasks {
        /// The column.
        field: String,
        /// The order of the pixels that the caller chose.
        order: Option<MaskOrder>,
        /// The number to add to a class id to get the value of its pixels. `None` if marked pixels are 1.
        added: Option<u8>,
        /// The names of the classes. Empty if classes have no names, or if marked pixels are 1.
        classes: Vec<String>,
    },
}

impl TableNote {
    /// Removes the paths in the temporary folder of an archive.
    pub(super) fn without_paths(&mut self) {
        match self {
            Self::MasksUnread { folder: path, .. } | Self::OtherLabels { table: path, .. } => *path = None,
            _ => {}
        }
    }
}

impl fmt::Display for TableNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |files: &[Vec<u8>]| quoted(&files.iter().map(|file| lossy(file)).collect::<Vec<_>>());
        match self {
            Self::Splits { .. } => self.fmt_splits(out),
            Self::ListLabels { image, number, class, fields } => {
                fmt_list_labels(out, (image, *number), class.as_deref(), fields)
            }
            Self::Boxes { about, counts, remarks, left_out } => write_boxes(out, about, (*counts, remarks), left_out),
            Self::LoneList { file, other, count: [n, all], line } => write!(
                out,
                "'{}' lists {n} of {all} images, but there is no list of the others, so all images are packed together; to pack splits, run this Python in the folder of the images and masks, which writes '{other}', and convert the folder again: {line}",
                lossy(file)
            ),
            Self::NotSplits { files, reason } => {
                write!(out, "{} were not used as splits: {reason}", names(files))
            }
            Self::MasksUnread { folder, images, masks, is_found } => {
                write!(out, "the masks in '{}' were not read, because a list names only images", lossy(masks))?;
                let Some(folder) = folder else { return Ok(()) };
                write!(out, ": to pack them too, pass {} as the source", folder.display())?;
                if *is_found {
                    return Ok(());
                }
                write!(out, ", with {} and {}", IMAGES.with(lossy(images)), MASKS.with(lossy(masks)))
            }
            Self::OtherLabels { file, n_folders, n_table, table } => {
                fmt_other_labels(out, file, [*n_folders, *n_table], table.as_deref())
            }
            Self::Joined { tables, signs, splits, are_read } => {
                fmt_joined(out, tables, signs.as_deref(), splits.as_deref().map(|splits| (splits, *are_read)))
            }
            Self::Versions { image, other } => write!(
                out,
                "'{image}' and '{other}' have two versions of each image: the first is packed as 'image', and the file of the second, unchanged, as the field '{other}', which is not cropped, resized or augmented with the image; {} leaves it out",
                LEAVE_OUT.with(other)
            ),
            Self::FolderRows { first } => write!(
                out,
                "the rows name folders, such as '{}': each image in a folder is a sample with the labels and fields of the row",
                lossy(first)
            ),
            Self::FolderCounts { count, label } => write!(
                out,
                "the second column has the number of images in each folder, such as {count}, so the third one is read as the labels, such as {label}"
            ),
            Self::SplitLabels { .. }
            | Self::OwnIds { .. }
            | Self::StoredNone { .. }
            | Self::NoRows { .. }
            | Self::MissingImages { .. }
            | Self::ObjectsUnread { .. }
            | Self::NullLabels { .. } => self.fmt_of_values(out),
            Self::BadRow { file, line, reason } => write!(
                out,
                "'{}' was not read: line {line}: {reason}; if it has labels or other fields, correct this line",
                lossy(file)
            ),
            Self::ValidFlags { field } => {
                write!(out, "the splits are those of '{field}': true is read as valid, and false as train")
            }
            Self::RunMasks { field, order, added, classes } => fmt_run_masks(out, (field, *order), *added, classes),
        }
    }
}

impl TableNote {
    /// Writes the note about lists that give the splits.
    fn fmt_splits(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |files: &[Vec<u8>]| quoted(&files.iter().map(|file| lossy(file)).collect::<Vec<_>>());
        let Self::Splits { files, repeated, has_columns, has_flags, count, first } = self else { return Ok(()) };
        write!(out, "the splits are those of {}", names(files))?;
        if *has_flags {
            out.write_str(", where 1 is read as train and 0 as test")?;
        }
        if *has_columns {
            out.write_str(
                ", of which only the first column is read (to read the others, pass one list as the source)",
            )?;
        }
        if !repeated.is_empty() {
            write!(out, "; {} only repeats their images", names(repeated))?;
        }
        if *count > 0 {
            let label = if *count == 1 { "" } else { "first: " };
            let images = counted(*count, "image");
            write!(out, "; ignored {images} in no list ({label}'{}')", lossy(first))?;
        }
        Ok(())
    }

    /// Writes a note about images that are left out, or about values and class ids.
    fn fmt_of_values(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SplitLabels { file, numbers } => {
                write!(out, "the labels are read from '{}': each is a class of the other splits", lossy(file))?;
                match numbers {
                    Some(numbers) => write!(out, ", with its number in '{}'", lossy(numbers)),
                    None => Ok(()),
                }
            }
            Self::MissingImages { file, count, first } => {
                let label = if *count == 1 { "" } else { "first: " };
                let images = counted(*count, "image");
                write!(out, "left out {images} of '{}' without a file ({label}'{}')", lossy(file), lossy(first))
            }
            Self::NoRows { file, count, first } => {
                let label = if *count == 1 { "" } else { "first: " };
                let images = counted(*count, "image");
                write!(out, "{images} without a row in '{}' got an empty mask ({label}'{}')", lossy(file), lossy(first))
            }
            Self::ObjectsUnread { field, reason } => {
                write!(
                    out,
                    "'{field}' stays JSON, and its boxes are not packed: {reason}; to pack them, write a COCO file"
                )
            }
            Self::NullLabels { count, first } => {
                let label = if *count == 1 { "" } else { "first: " };
                write!(out, "left out {} whose label is null ({label}'{first}')", counted(*count, "image"))
            }
            Self::OwnIds { other } => write!(
                out,
                "the class ids count the classes of this split alone: those of '{other}' were not read, and may have other ids there; {} gives all splits the same ids",
                SPLIT.with("all")
            ),
            Self::StoredNone { fields } => write!(
                out,
                "values of {} that are None are stored as 0 or as empty strings, and packed as such",
                quoted(fields)
            ),
            _ => Ok(()),
        }
    }
}

fn fmt_list_labels(
    out: &mut fmt::Formatter<'_>,
    (image, number): (&str, i64),
    class: Option<&str>,
    fields: &[String],
) -> fmt::Result {
    write!(out, "the labels are the first numbers in these lists, such as {number} for '{image}'")?;
    if let Some(class) = class {
        write!(out, ", with the ids in their order, from 0, and the class names in the file names, such as '{class}'")?;
    }
    if fields.is_empty() { Ok(()) } else { write!(out, "; the other numbers are packed as {}", quoted(fields)) }
}

fn fmt_other_labels(
    out: &mut fmt::Formatter<'_>,
    file: &[u8],
    n_classes: [usize; 2],
    table: Option<&Path>,
) -> fmt::Result {
    let [n_folders, n_table] = n_classes.map(|n| counted(to_u64(n), "class"));
    write!(
        out,
        "the folders are read as {n_folders}, but '{}' has other labels, of {n_table}, for the same images: to read the labels of the table, pass ",
        lossy(file)
    )?;
    match table {
        Some(table) => write!(out, "{} as the source", table.display()),
        None => out.write_str("it as the source"),
    }
}

/// Writes how drawn masks count the pixels.
fn fmt_order(out: &mut fmt::Formatter<'_>, field: &str, order: Option<MaskOrder>) -> fmt::Result {
    let along = if order == Some(MaskOrder::Rows) { "along the rows" } else { "down the columns" };
    write!(out, "masks are drawn from the run lengths in '{field}', counted {along} of the image")?;
    match order {
        Some(_) => Ok(()),
        None => write!(out, " (add {} if they are counted along the rows)", MASK_ORDER.with(MaskOrder::Rows)),
    }
}

fn fmt_run_masks(
    out: &mut fmt::Formatter<'_>,
    (field, order): (&str, Option<MaskOrder>),
    added: Option<u8>,
    classes: &[String],
) -> fmt::Result {
    fmt_order(out, field, order)?;
    out.write_str("; ")?;
    match (added, classes) {
        (None, _) => out.write_str("marked pixels are 1, and all others 0"),
        (_, []) => {
            let plus = if added == Some(1) { " plus 1" } else { "" };
            write!(out, "marked pixels have the number of their class{plus}, and all others are 0")
        }
        (_, classes) => {
            let named: Vec<String> = (1..).zip(classes).map(|(value, class)| format!("{value} is '{class}'")).collect();
            write!(out, "{}, and all other pixels are 0", named.join(", "))
        }
    }
}

fn fmt_joined(
    out: &mut fmt::Formatter<'_>,
    tables: &[(Vec<u8>, Vec<String>)],
    signs: Option<&str>,
    splits: Option<(&str, bool)>,
) -> fmt::Result {
    let first = tables.first().map(|(file, _)| lossy(file)).unwrap_or_default();
    write!(out, "joined '{first}' with")?;
    for (number, (file, columns)) in tables.iter().skip(1).enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma} '{}' (columns {})", lossy(file), quoted(columns))?;
    }
    out.write_str(": each has one row for each image")?;
    match splits {
        Some((splits, true)) => write!(
            out,
            "; the splits are those of '{splits}': 0 is read as train, 1 as val and 2 as test ({} packs all images together)",
            LEAVE_OUT.with(splits)
        )?,
        Some((splits, false)) => {
            write!(out, "; '{splits}' is packed as a field: 0, 1 and 2 usually mean train, val and test")?;
        }
        None => {}
    }
    if let Some(signs) = signs {
        write!(
            out,
            "; columns of -1 and 1 (first: '{signs}') can be labels after -1 is replaced with 0, because class ids count from 0"
        )?;
    }
    Ok(())
}

/// The note about images without boxes, boxes without an area, and boxes beyond the edges of their images.
fn write_boxes(
    out: &mut fmt::Formatter<'_>,
    about: &str,
    (counts, remarks): ([u64; 3], &[(u64, String, String)]),
    left_out: &[String],
) -> fmt::Result {
    write!(out, "boxes are stored as left, top, right and bottom; {about}")?;
    let kinds = [
        ("image", "without a box"),
        ("box", "without an area, left out"),
        ("box", "beyond the edge of an image, kept"),
    ];
    let counted_kinds = counts.into_iter().zip(kinds).map(|(count, (noun, what))| (count, noun, what));
    let remarks = remarks.iter().map(|(count, noun, what)| (*count, noun.as_str(), what.as_str()));
    for (count, noun, what) in counted_kinds.chain(remarks) {
        if count > 0 {
            write!(out, "; {} {what}", counted(count, noun))?;
        }
    }
    if left_out.is_empty() {
        return Ok(());
    }
    write!(out, "; other values of annotations are left out: {}", quoted(left_out))
}
