//! The wording of warnings.

use std::fmt;

use packds_system::{counted, to_u64};

use super::layout::{WRITE_LABELS, is_mask_folder};
use super::mistaken::as_classes;
use super::name_words::table_of_words;
use super::paths::lossy;
use super::roles::TEXT_NAME;
use super::table_note::TableNote;
use super::unread::Unread;
use super::warning::Warning;
use crate::error::quoted;
use crate::opt::{FROM, IMAGES, LABEL_KEY, LEAVE_OUT, MASK_KEY, MASKS};

const BESIDE_PAIRS: &str = " next to the image and mask folders";

impl Warning {
    /// The parts of a warning that counts ignored cases. `None` for other warnings.
    fn counted(&self) -> Option<Counted<'_>> {
        let ignored =
            |count: &u64, noun, rest, first| Counted { verb: "ignored", count: *count, noun, rest, first, why: "" };
        let counted = match self {
            Self::FilesBesideClasses { count, first } => ignored(count, "image", " next to the class folders", first),
            Self::FoldersBesideSplits { count, first } => ignored(count, "folder", " next to the splits", first),
            Self::FoldersBesidePairs { count, first } => ignored(count, "folder", BESIDE_PAIRS, first),
            Self::FilesBesidePairs { count, first } => ignored(count, "image", BESIDE_PAIRS, first),
            Self::FoldersWithoutImages { count, first } => ignored(count, "folder", " without an image folder", first),
            Self::FoldersBesideWrapper { count, first } => ignored(count, "folder", " without images", first),
            Self::UnusedMasks { count, first } => ignored(count, "mask", " without an image", first),
            Self::BrokenLinks { count, first } => ignored(count, "broken link", "", first),
            Self::LinksLeftOut { count, first } => ignored(count, "link", " without a target in the archive", first),
            Self::SpecialFiles { count, first } => ignored(count, "special file", "", first),
            Self::SystemFolders { count, first } => ignored(count, "folder", " of other programs", first),
            Self::BackupFiles { count, first } => Counted {
                why: ": names with this ending are backups or partial downloads",
                ..ignored(count, "image", "", first)
            },
            Self::HiddenFolders { count, first } => ignored(count, "hidden folder", "", first),
            Self::UnreadableFiles { count, first } => ignored(count, "unreadable file", "", first),
            Self::OtherArrays { count, first } => ignored(count, "array", " without one item per image", first),
            Self::TablesOfTars { count, first } => Counted {
                why: ": the samples are in the tar files with the same names",
                ..ignored(count, "Parquet file", "", first)
            },
            Self::JsonUnread { count, first } => Counted {
                why: ": expected an object of at most 64 KiB for nearly every image",
                ..ignored(count, ".json file", " next to the images", first)
            },
            Self::Pickles { count, first } => {
                Counted { why: ": pickles are never run", ..ignored(count, "pickle", "", first) }
            }
            _ => return self.counted_decision(),
        };
        Some(counted)
    }

    /// Like [`Self::counted`], for cases that are not ignored.
    fn counted_decision(&self) -> Option<Counted<'_>> {
        let either = |count: &u64, one, many| if *count == 1 { one } else { many };
        let (verb, count, noun, rest, first, why) = match self {
            Self::FewMasks { count, first } => {
                let rest = either(
                    count,
                    " as an image although its name suggests a mask",
                    " as images although their names suggest masks",
                );
                ("packed", count, "file", rest, first, ": most images have no mask")
            }
            Self::FoldersInImages { count, first } => {
                let why = ": there are masks next to the images";
                let rest = either(count, " of the images as a class", " of the images as classes");
                ("did not use", count, "subfolder", rest, first, why)
            }
            Self::Unlisted { count, first } => {
                let rest = either(count, " without a row in the table", " without rows in the table");
                (
                    "found",
                    count,
                    "image",
                    rest,
                    first,
                    ": not packed, although other images in the same folder have rows",
                )
            }
            Self::NumberedParts { count, first } => {
                let why = ": each has a file of the same name next to it, as written by img2dataset";
                ("did not use", count, "folder", either(count, " as a class", " as classes"), first, why)
            }
            Self::ImageInEach { count, first } => {
                let why = ": each contains one image with the folder's name, in a subfolder";
                ("did not use", count, "folder", either(count, " as a class", " as classes"), first, why)
            }
            Self::OpenEndedTars { count, first } => {
                ("found", count, "tar file", " without an end marker", first, ": the end of the data may be missing")
            }
            Self::NestedClasses { count, first, .. } => {
                let why = ": subfolders are not read as classes";
                ("found", count, "class", " with images only in subfolders", first, why)
            }
            Self::LossyMasks { count, first } => {
                let why = ": JPEG changes class numbers, so save masks as PNG";
                ("found", count, "mask", " in JPEG format", first, why)
            }
            Self::MergedMasks { count, first } => {
                let why = ": each pixel has the largest of its values, so objects can no longer be told apart";
                let rest = either(count, " with several masks", " with several masks each");
                ("merged the masks of", count, "image", rest, first, why)
            }
            Self::BlankMasks { count, first } => {
                let why = ": the folder has no masks, and its name says that there is nothing to mark";
                ("used masks of zeros for", count, "image", "", first, why)
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

/// A warning that counts cases: "ignored 2 folders next to the splits (first: 'other')".
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
        let (verb, cases) = (self.verb, counted(self.count, self.noun));
        write!(out, "{verb} {cases}{}{}{}", self.rest, first_of(self.count, self.first), self.why)
    }
}

/// The first case, in parentheses.
fn first_of(count: u64, first: &[u8]) -> String {
    let label = if count == 1 { "" } else { "first: " };
    format!(" ({label}'{}')", String::from_utf8_lossy(first))
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
            Self::ManifestUnread { file, others } if others.is_empty() => {
                let file = text(file);
                write!(out, "'{file}' was not read: if it has labels or other fields, pass it as the source")
            }
            Self::ManifestUnread { file, others } => {
                let files: Vec<String> = std::iter::once(file).chain(others).map(|file| text(file)).collect();
                let files = quoted(&files);
                write!(out, "{files} were not read: if one has labels or other fields, pass it as the source")
            }
            Self::Wrapper { folder } => write!(out, "read from '{}', the only subfolder with images", text(folder)),
            Self::OnlySource { path } => write!(out, "read from '{}', the only dataset in the folder", text(path)),
            Self::BadMetadata { reason } => write!(out, "ignored the metadata of the original pack: {reason}"),
            Self::LeftOut { field, reason } => write!(out, "left out the field '{field}': {reason}"),
            Self::NotLabels { field, found } => fmt_not_labels(out, field, found),
            Self::Renamed { field, to } => {
                write!(out, "the field '{field}' is packed as '{to}', because packs reserve the name '{field}'")
            }
            Self::Stacks { shape } => write!(
                out,
                "each file is read as one sample of shape {shape:?}; if each file holds {} images instead, merge all images into x.npy (numpy.concatenate) and their labels into y.npy",
                shape.first().unwrap_or(&0)
            ),
            Self::Folders(note) => write!(out, "{note}"),
            Self::SplitUnlabelled => out.write_str("this split has no labels, but another one does"),
            Self::NoLabels { fields, is_program } => {
                write!(
                    out,
                    "no labels found: no field has a name commonly used for labels (fields: {})",
                    quoted(fields)
                )?;
                match is_program {
                    true => out.write_str("; give the label field the kind 'label'"),
                    false => write!(out, "; choose the label field with {LABEL_KEY}"),
                }
            }
            Self::LabelInside { field, key } => {
                write!(out, "no labels found: to use '{key}' inside '{field}', add {}", LABEL_KEY.with(key))
            }
            Self::UnreadType { name, count, first } => fmt_unread(out, name, *count, first),
            Self::OneClass { .. }
            | Self::ClipFolders { .. }
            | Self::CopyOfClasses { .. }
            | Self::NumberedFolders { .. }
            | Self::SampleFolders { .. }
            | Self::Gifs { .. } => self.fmt_of_folders(out),
            Self::OtherFiles { groups } => fmt_other_files(out, groups),
            Self::LabelsMissing { file } => write!(out, "no labels found: the file '{}' is missing", text(file)),
            other => match other.counted() {
                Some(counted) => write!(out, "{counted}{}", other.way_out()),
                None => other.fmt_beside(out),
            },
        }
    }
}

/// Writes the warning about a field that is named like labels.
fn fmt_not_labels(out: &mut fmt::Formatter<'_>, field: &str, found: &str) -> fmt::Result {
    write!(
        out,
        "'{field}' is packed as an ordinary field, not as labels: expected an integer or a name for each image, found {found}"
    )?;
    if found == "images" { write!(out, "; to read them as masks, add {}", MASK_KEY.with(field)) } else { Ok(()) }
}

impl Warning {
    /// Whether the warning is about a label column that was chosen by its place.
    pub(super) fn is_guessed_label(&self) -> bool {
        matches!(self, Self::SecondColumn { .. } | Self::Table(TableNote::FolderCounts { .. }))
    }

    /// Writes a warning about folders that may not be classes, or files that may not be samples.
    fn fmt_of_folders(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::OneClass { class } => {
                let (class, alone) = (text(class), IMAGES.with(text(class)));
                write!(
                    out,
                    "'{class}' is the only folder, so all images have the same label; if it is not a class, add {alone} to pack the images without labels"
                )
            }
            Self::ClipFolders { one, other } => write!(
                out,
                "each folder is a class, but names such as '{}' and '{}' differ only in their numbers; if each folder is one clip or patient, list the images and their labels in a table and convert the table",
                text(one),
                text(other)
            ),
            Self::CopyOfClasses { folder } => write!(
                out,
                "ignored the folder '{}', which looks like a copy: its subfolders have the same names as the folders next to it; {}",
                text(folder),
                as_classes()
            ),
            Self::NumberedFolders { first } => write!(
                out,
                "each folder is a class, but the names are numbers such as '{}'; if the folders only divide the files, move the images into one folder",
                text(first)
            ),
            Self::SampleFolders { first, count } => write!(
                out,
                "each folder is a class, but the files of a folder look like one sample: '{}' has {count} files with its own name; to pack one sample per folder, merge the files of each folder, for example into one .npy file",
                text(first)
            ),
            Self::Gifs { count, first } => write!(
                out,
                "read {} of type GIF{}; torchvision's ImageFolder leaves such files out",
                counted(*count, "file"),
                first_of(*count, first)
            ),
            _ => Ok(()),
        }
    }

    /// Advice at the end of a warning that counts cases.
    fn way_out(&self) -> String {
        match self {
            Self::NestedClasses { list: Some(list), .. } => {
                format!("; to read them as classes, list the images with `{list}` and convert paths.txt")
            }
            Self::NestedClasses { list: None, .. } => {
                "; for other labels, convert a table with the columns 'path' and 'label'".to_owned()
            }
            Self::FoldersBesideSplits { first, .. } if is_mask_folder(first) => {
                format!("; to pack the masks of a split, add {} {}", IMAGES.with("SPLIT"), MASKS.with(lossy(first)))
            }
            Self::NumberedParts { .. } | Self::ImageInEach { .. } => format!("; {}", as_classes()),
            _ => String::new(),
        }
    }

    /// Writes a warning about text and JSON files next to the images.
    fn fmt_beside(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Captions { missing: 0 } => out.write_str("the .txt files next to the images are packed as 'caption'"),
            Self::Captions { missing } => write!(
                out,
                "the .txt files next to the images are packed as 'caption', which is empty for {} without such a file",
                counted(*missing, "image")
            ),
            Self::JsonFields { fields, label, missing } => {
                write!(
                    out,
                    "the values in the .json files next to the images are packed as fields: {}",
                    quoted(fields)
                )?;
                if *missing > 0 {
                    write!(out, "; they are empty for {} without an object", counted(*missing, "image"))?;
                }
                match label {
                    Some(label) => write!(out, "; if '{label}' has the labels, {WRITE_LABELS}"),
                    None => Ok(()),
                }
            }
            Self::BoxesUnread { count } => {
                write!(
                    out,
                    "ignored {} next to the images: boxes in YOLO format are packed only if there is a classes.txt with the names of the classes",
                    counted(*count, ".txt file")
                )
            }
            _ => self.fmt_of_files(out),
        }
    }

    /// Writes a warning about files that belong together according to their names.
    fn fmt_of_files(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::CaffeColors => out.write_str(
                "the channels of Caffe's Datum are packed unchanged: Caffe's tools write blue first, but packs declare RGB",
            ),
            Self::TableRead { file, count, first, is_inside } => {
                write!(out, "read the images in '{}'", text(file))?;
                if *count > 0 {
                    let others = counted(*count, "other image");
                    write!(
                        out,
                        ", and ignored {others} in the folder{}: to pack them too, pass their folder as another source",
                        first_of(*count, first)
                    )?;
                }
                match is_inside {
                    true => out.write_str("; to read a folder without the table, pass that folder as the source"),
                    false => {
                        write!(out, "; to read the folder without the table, add {}", FROM.with("image-folder"))
                    }
                }
            }
            Self::NotInTable { folder, table } => write!(
                out,
                "'{}' names no image in '{}', so the folder is a split without labels",
                text(table),
                text(folder)
            ),
            Self::OnlySplit { split } => write!(out, "read the split '{split}', the only one"),
            Self::SameStems { count, one, other } => write!(
                out,
                "{count} names have both a {one} and a {other} file, and each file is packed as a separate image: if they are versions of the same images, move one kind elsewhere"
            ),
            Self::MasksByExtension { images, masks } => {
                write!(out, "the {masks} files are read as the masks of the {images} files with the same names")
            }
            Self::MarkedNames { first, of } => write!(
                out,
                "'{}' and other files are named after another image, here '{}': if they are masks, rename them to NAME_mask; if they are versions of the images, move them elsewhere",
                text(first),
                text(of)
            ),
            Self::LabelsInNames { word, image } => write!(
                out,
                "the file names may contain the labels, such as '{}' in '{}'; if so, {}",
                text(word),
                text(image),
                table_of_words(word, image)
            ),
            Self::LabelsFromNames { word, image } => write!(
                out,
                "the labels are the words before the numbers in the file names, such as '{}' in '{}'",
                text(word),
                text(image)
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
            Self::LinesSkipped { count: 1 } => {
                out.write_str("skipped the first line: it contains only a comment or the number of rows")
            }
            Self::LinesSkipped { count } => {
                write!(out, "skipped the first {count} lines: they contain only comments or the number of rows")
            }
            Self::NoHeader { first } => {
                write!(out, "the first line is read as a row, not as a header, because it contains a number: '{first}'")
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
                    "the paths in '{column}' do not lead to files as written, so packds searched for the files: '{}' is read from '{}'",
                    text(named),
                    text(path)
                )
            }
            Self::NearNames { count, named, path } => write!(
                out,
                "found {} only by ignoring case and Unicode form: '{}' is read from '{}'",
                counted(*count, "file"),
                text(named),
                text(path)
            ),
            Self::RepeatedImages { column, n_images, n_rows, first } => write!(
                out,
                "the {n_rows} rows refer to only {} in '{column}' (first repeated image: '{}'): each row is packed as a sample",
                counted(*n_images, "image"),
                text(first)
            ),
            Self::PathColumn { field } => {
                write!(out, "image paths are read from '{field}', because its cells are names of image files")
            }
            Self::MaskColumn { field } => {
                write!(out, "masks are read from '{field}', because its cells are names of image files")
            }
            Self::NoMasks { field } => {
                write!(out, "packed without masks, because '{field}' is empty in every row of the split")
            }
            Self::NamesLeftOut { field, names } => write!(
                out,
                "left out the class names of '{field}', because a pack has names only for its labels: {}",
                quoted(names)
            ),
            Self::BoxColumns { fields } => {
                let (fields, is_one) = (quoted(fields), fields.len() == 1);
                let what = if is_one {
                    "looks like boxes, and is packed as a field"
                } else {
                    "look like boxes, and are packed as fields"
                };
                write!(out, "{fields} {what}: resizing and cropping do not change boxes")
            }
            _ => self.fmt_of_labels(out),
        }
    }

    /// Writes a warning about the labels of a manifest.
    fn fmt_of_labels(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingNames { field, name, n_rows } => write!(
                out,
                "'{name}' in '{field}' is packed as a class ({}): if it stands for a missing label, leave the cell empty instead",
                counted(*n_rows, "row")
            ),
            Self::NumbersAsNames { field, name, line } => {
                write!(
                    out,
                    "the labels in '{field}' are read as names, because {} in line {line} is not a number",
                    shown(name)
                )
            }
            Self::NumbersAsText { field, cell } => {
                write!(
                    out,
                    "'{field}' is packed as text, because of cells such as {}: write numbers with a decimal point (0.5), and leave cells empty where a number is missing",
                    shown(cell)
                )
            }
            Self::LabelColumn { field } => write!(out, "labels are read from '{field}', because of its name"),
            Self::Indicators { fields } => {
                write!(out, "the label of each row is the name of the column with a 1: {}", quoted(fields))
            }
            Self::OnlyOtherColumn { field } => {
                write!(out, "labels are read from '{field}', the only column besides the paths")
            }
            Self::SingleLabels { field } => {
                write!(
                    out,
                    "every list in '{field}' has one label: to read single labels, add {}",
                    LABEL_KEY.with(field)
                )
            }
            Self::SecondColumn { label, last } => write!(
                out,
                "the columns have no names, so the second one is read as the labels, such as {}; for the labels in another column, add an option such as {}",
                shown(label),
                LABEL_KEY.with(last)
            ),
            Self::TextLabels { field, different, count, are_texts: true } => write!(
                out,
                "{different} of {count} labels are different, so they are packed as the column '{TEXT_NAME}'; to read them as class names, add {}",
                LABEL_KEY.with(field)
            ),
            Self::TextLabels { field, different, count, are_texts: false } => write!(
                out,
                "{different} of {count} labels in '{field}' are different class names: if they are texts, rename the column to '{TEXT_NAME}'"
            ),
            Self::UnquotedCaptions { count, first } => write!(
                out,
                "{} have more cells than columns, because the captions are not in quotes: the rest of each row was read as the caption (first: {})",
                counted(*count, "row"),
                shown(first)
            ),
            Self::JoinedLabels { field, cell } => {
                write!(out, "the cells of '{field}' are read as lists of labels (first: {})", shown(cell))
            }
            Self::MaybeJoined { field, cell } => write!(
                out,
                "{} in '{field}' is packed as one class name: if it is a list of labels, separate the labels with ';' and convert with {}",
                shown(cell),
                LABEL_KEY.with(field)
            ),
            _ => self.fmt_of_list(out),
        }
    }

    /// Writes a warning about a list of paths, a label file, or class names.
    fn fmt_of_list(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::FolderLabels { first } => {
                write!(
                    out,
                    "the list has no labels, so the folders of its paths are read as classes, such as {}",
                    shown(first)
                )
            }
            Self::RestOfLine { label } => {
                write!(out, "all words after the first on a line are read as one label, such as {}", shown(label))
            }
            Self::ArchivesUnpacked { names } => write!(out, "unpacked {} into a temporary folder", quoted(names)),
            Self::RootBeside { folder } => write!(out, "the files are read from the folder '{}'", text(folder)),
            Self::LabelNested { field, key } => {
                write!(out, "no labels found: to use '{key}' inside '{field}', write it as a separate column")
            }
            Self::LabelsUnread { file } => {
                write!(out, "'{}' was not read: if it has labels, {WRITE_LABELS}", text(file))
            }
            Self::ListsUnread { file, others } => {
                let file = text(file);
                match to_u64(others.len()) {
                    0 => write!(out, "'{file}' was not read: if it has labels or splits, pass it as the source"),
                    n => write!(
                        out,
                        "'{file}' and {} were not read: if they have labels or splits, pass one as the source",
                        counted(n, "other file")
                    ),
                }
            }
            Self::CategoryLabels { left_out, has_lists } => {
                let labels = if *has_lists { "labels are lists; " } else { "" };
                write!(out, "{labels}the classes are the file's categories, in the order of their ids")?;
                if left_out.is_empty() {
                    return Ok(());
                }
                write!(out, "; other values of annotations and categories are left out: {}", quoted(left_out))
            }
            Self::ClassNamesRead { file } => write!(out, "the class names are read from '{}'", text(file)),
            Self::ClassNamesUnread { file, of_ids: false } => {
                write!(out, "'{}' was not read: class names come only from folders and labels", text(file))
            }
            Self::ClassNamesUnread { file, of_ids: true } => write!(
                out,
                "'{}' was not read: class names come only from labels, or from a file such as label_map.json with a name for each label: {{\"0\": \"cat\", \"1\": \"dog\"}}",
                text(file)
            ),
            _ => self.fmt_of_unread(out),
        }
    }

    /// Writes a warning about files that are neither lists nor next to their images.
    fn fmt_of_unread(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Table(note) => write!(out, "{note}"),
            Self::NoLists { file, others } if others.is_empty() => {
                write!(out, "'{}' was not read: it lists no images of this folder by their paths", text(file))
            }
            Self::NoLists { file, others } => write!(
                out,
                "'{}' and {} were not read: they list no images of this folder by their paths",
                text(file),
                counted(to_u64(others.len()), "other file")
            ),
            Self::TextsUnread { folders, images } => {
                let is_one = folders.len() == 1;
                let folders = quoted(&folders.iter().map(|folder| text(folder)).collect::<Vec<_>>());
                let has = if is_one { "has" } else { "each have" };
                write!(
                    out,
                    "{folders} {has} a text file for each image in '{}', but packds reads text files only next to their images; if these text files contain boxes, packds cannot pack them yet",
                    text(images)
                )
            }
            Self::BoxFile { file } => {
                write!(out, "'{}' was not read: its name suggests boxes, and packds cannot pack boxes yet", text(file))
            }
            _ => self.fmt_of_arrays(out),
        }
    }

    /// Writes a warning about arrays.
    fn fmt_of_arrays(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherAxis { array: (shape, axis) } => {
                let (rows, n) = (shape[0], shape.get(*axis).unwrap_or(&0));
                write!(
                    out,
                    "the array {shape:?} is read as {rows} images: if there are {n} images, put that dimension first with numpy.moveaxis(images, {axis}, 0)"
                )
            }
            Self::NumberedLabels { files: [labels, splits] } => write!(
                out,
                "labels are read from '{labels}' and splits from '{splits}', by the numbers in the names of the images"
            ),
            Self::SamplesLast { field, shape } => write!(
                out,
                "the last dimension of '{field}' counts the samples, so it becomes the first: {shape:?} is read as {} arrays",
                shape.last().unwrap_or(&0)
            ),
            Self::Bands { count, first, array: (dtype, shape), are_planar } => {
                let (files, first) = (counted(*count, "TIFF file"), first_of(*count, first));
                let bands = shape.last().unwrap_or(&0);
                let planes = match are_planar {
                    true => ": the bands are stored one after the other, and become the last dimension",
                    false => "",
                };
                write!(out, "read {files} with {bands} bands as {dtype} arrays {shape:?}{first}{planes}")
            }
            Self::LabelMaps { field } => {
                write!(out, "masks are read from '{field}', which has a number for each pixel")
            }
            Self::OneHotMasks { n } => {
                write!(out, "the masks are one-hot: the {n} classes are packed as the numbers 0 to {}", n - 1)
            }
            Self::OneHotLabels { field, n } => write!(
                out,
                "labels are read from '{field}', which is one-hot: the position of the 1, from 0 to {}, is the class id",
                n - 1
            ),
            Self::OnlyIds { field } => write!(
                out,
                "labels are read from '{field}', the only field with a whole number for each image; to pack the images without labels, add {}",
                LEAVE_OUT.with(field)
            ),
            Self::GrayMasks => write!(out, "the mask files have three equal channels, of which one is packed"),
            Self::FlatPixels { n, side, channels } => write!(
                out,
                "each image is packed as {n} numbers in one dimension; if they are {side}x{side} pixels with {}, reshape the array first: x.reshape(-1, {side}, {side}, {channels}), or x.reshape(-1, {channels}, {side}, {side}) if the channels come first",
                counted(*channels, "channel")
            ),
            Self::MaskColors { file, names } => write!(
                out,
                "the colours of the masks are packed as class numbers, counted from 0 in the order of '{}': {}",
                String::from_utf8_lossy(file),
                quoted(names)
            ),
            Self::DatasetEach { n } => {
                write!(
                    out,
                    "each of the {n} datasets is read as one image; if there are several groups, they are the classes"
                )
            }
            Self::AssumedPixels { dtype } => write!(
                out,
                "the raw pixels have {} bytes per number and are read as {dtype}; to specify a different type, add a feature 'dtype'",
                dtype.size()
            ),
            _ => Ok(()),
        }
    }
}

/// Writes the warning about files of a type that is not read.
fn fmt_unread(out: &mut fmt::Formatter<'_>, name: &str, count: u64, first: &[u8]) -> fmt::Result {
    write!(out, "ignored {} of type {name}{}", counted(count, "file"), first_of(count, first))?;
    Unread::named(name).map_or(Ok(()), |row| write!(out, "; to read them, {}", row.hint))
}

/// Writes the warning about files of all other types.
fn fmt_other_files(out: &mut fmt::Formatter<'_>, groups: &[(String, u64, Vec<u8>)]) -> fmt::Result {
    const LISTED: usize = 6;
    let all: u64 = groups.iter().map(|(_, count, _)| count).sum();
    write!(out, "ignored {}: ", counted(all, "other file"))?;
    for (i, (extension, count, first)) in groups.iter().take(LISTED).enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        let kind = if extension.is_empty() { "without an extension".to_owned() } else { format!(".{extension}") };
        let first = if first.is_empty() { String::new() } else { first_of(*count, first) };
        write!(out, "{separator}{count} {kind}{first}")?;
    }
    let rest: u64 = groups.iter().skip(LISTED).map(|(_, count, _)| count).sum();
    if rest > 0 { write!(out, " and {rest} more") } else { Ok(()) }
}

/// A cell in quotes, shortened if it is long.
fn shown(cell: &str) -> String {
    const MAX_SHOWN: usize = 60;
    match cell.char_indices().nth(MAX_SHOWN) {
        None => format!("'{cell}'"),
        Some((end, _)) => format!("'{}...'", &cell[..end]),
    }
}
