//! Problems in a source that do not stop its listing.

use packds_format::DType;

use super::folder_note::FolderNote;
use super::table_note::TableNote;
use crate::metadata::Metadata;

/// A problem in a source that does not stop the conversion.
///
/// Most kinds appear at most once, with a count and the first case. [`Warning::LeftOut`], [`Warning::NotLabels`] and
/// [`Warning::Renamed`], for example, may appear once per field. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Classes without images. They keep their ids, so that ids match the folder names.
    EmptyClasses {
        /// Number of classes.
        count: u64,
        /// The folder name of the first class.
        first: Vec<u8>,
        /// Its id.
        id: i64,
    },
    /// Ignored images next to class folders. They do not belong to any class.
    FilesBesideClasses {
        /// Number of images.
        count: u64,
        /// The first image in name order.
        first: Vec<u8>,
    },
    /// Ignored folders next to the splits.
    FoldersBesideSplits {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Ignored folders next to the image and mask folders.
    FoldersBesidePairs {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Ignored images next to the image and mask folders.
    FilesBesidePairs {
        /// Number of images.
        count: u64,
        /// First image.
        first: Vec<u8>,
    },
    /// Ignored folders without images, next to folders that have images and masks.
    FoldersWithoutImages {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// A decision about folders that may not be classes.
    Folders(FolderNote),
    /// Pairs of files whose names differ only in the extension; each file is packed as a separate image.
    SameStems {
        /// Number of pairs.
        count: u64,
        /// One extension, with its dot.
        one: String,
        /// The other.
        other: String,
    },
    /// Files with one extension are read as the masks of the files with another extension.
    MasksByExtension {
        /// The images' extension, with its dot.
        images: String,
        /// The masks' extension.
        masks: String,
    },
    /// Many file names consist of another image's name and a prefix or suffix, like the names of masks or of versions of an image.
    MarkedNames {
        /// The first of these names.
        first: Vec<u8>,
        /// The image whose name it contains.
        of: Vec<u8>,
    },
    /// The names of images without labels begin with a few words, which may be the labels.
    LabelsInNames {
        /// The first word.
        word: Vec<u8>,
        /// The first image.
        image: Vec<u8>,
    },
    /// The labels are the words in names such as `cat.0.jpg`.
    LabelsFromNames {
        /// The first word.
        word: Vec<u8>,
        /// The first image.
        image: Vec<u8>,
    },
    /// A split has no labels, but another split does.
    SplitUnlabelled,
    /// Ignored masks whose names match no image.
    UnusedMasks {
        /// Number of masks.
        count: u64,
        /// The first of these masks.
        first: Vec<u8>,
    },
    /// Images with several mask files, one for each object; merged into one mask.
    MergedMasks {
        /// Number of images.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
    },
    /// Folders that each have one image with the name of the folder, in a subfolder such as `images`.
    ImageInEach {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Images in folders named `good` or `normal`, without any mask.
    BlankMasks {
        /// Number of images.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
    },
    /// Files named like masks, although most images have no mask; packed as images.
    FewMasks {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// Subfolders of an image folder. They are not used as classes.
    FoldersInImages {
        /// Number of subfolders.
        count: u64,
        /// The first of these subfolders.
        first: Vec<u8>,
    },
    /// A manifest next to the images of a folder; ignored.
    ManifestUnread {
        /// The name of the file.
        file: Vec<u8>,
        /// The names of other tables next to it, which may be meant instead.
        others: Vec<Vec<u8>>,
    },
    /// `.txt` files next to the images; packed as captions.
    Captions {
        /// Number of images without a caption.
        missing: u64,
    },
    /// Ignored `.txt` files of boxes next to the images.
    BoxesUnread {
        /// Number of files.
        count: u64,
    },
    /// The only subfolder of the source was read instead of the source itself.
    Wrapper {
        /// The subfolder.
        folder: Vec<u8>,
    },
    /// The only dataset in the source was read instead of the source itself.
    OnlySource {
        /// Its path in the source.
        path: Vec<u8>,
    },
    /// The masks of a split were left out, because no row of the split has one.
    NoMasks {
        /// The column.
        field: String,
    },
    /// Dangling or circular symbolic links without an image extension.
    BrokenLinks {
        /// Number of links.
        count: u64,
        /// The first of these links.
        first: Vec<u8>,
    },
    /// Ignored pipes, sockets and devices.
    SpecialFiles {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// Ignored links in an archive whose targets are not in it.
    LinksLeftOut {
        /// Number of links.
        count: u64,
        /// The first of these links.
        first: Vec<u8>,
    },
    /// Ignored images whose names suggest backups or partial downloads, such as `1.jpg.bak`.
    BackupFiles {
        /// Number of images.
        count: u64,
        /// The first of these images.
        first: Vec<u8>,
    },
    /// Ignored folders left by other programs, such as `.ipynb_checkpoints`, even if torchvision reads them as classes.
    SystemFolders {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Tar files that end after a whole member, without an end marker. They may be truncated.
    OpenEndedTars {
        /// Number of files.
        count: u64,
        /// The name of the first file.
        first: Vec<u8>,
    },
    /// Classes whose images are all in subfolders; the subfolders are not classes.
    NestedClasses {
        /// Number of classes.
        count: u64,
        /// The first such subfolder.
        first: Vec<u8>,
        /// The command that lists the images. `None` for an archive, and for paths with spaces.
        list: Option<String>,
    },
    /// Masks in JPEG files: JPEG changes class numbers.
    LossyMasks {
        /// Number of masks.
        count: u64,
        /// The first of these masks.
        first: Vec<u8>,
    },
    /// Ignored hidden folders next to folders that are not classes.
    HiddenFolders {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Ignored files of a type that is not read, such as HEIC. There is one warning for each type.
    UnreadType {
        /// The type.
        name: &'static str,
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// The source has only one class folder, which may not be a class.
    OneClass {
        /// The folder.
        class: Vec<u8>,
    },
    /// The names of class folders differ only in their numbers, so they may be clips or patients.
    ClipFolders {
        /// One folder.
        one: Vec<u8>,
        /// The next one.
        other: Vec<u8>,
    },
    /// An ignored folder that looks like a copy: its subfolders have the same names as the folders next to it.
    CopyOfClasses {
        /// The folder.
        folder: Vec<u8>,
    },
    /// The names of all class folders are numbers with at least four digits, such as `00000`.
    NumberedFolders {
        /// The first folder.
        first: Vec<u8>,
    },
    /// The file names in each class consist of the folder's name and the same endings, such as `a/a_B01.tif` and `a/a_B02.tif`.
    SampleFolders {
        /// The first folder.
        first: Vec<u8>,
        /// Number of files in this folder.
        count: u64,
    },
    /// GIF files among images of other types.
    Gifs {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// Ignored folders without images next to the folder that is read.
    FoldersBesideWrapper {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Ignored files of all other types, such as text files and tables.
    OtherFiles {
        /// Each extension, the number of files with it, and the first file. The extension is empty for files without one.
        groups: Vec<(String, u64, Vec<u8>)>,
    },
    /// Files without an image extension whose first bytes could not be read.
    UnreadableFiles {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// The metadata of the exported pack cannot be read and is ignored.
    BadMetadata {
        /// What is wrong with it.
        reason: String,
    },
    /// A field that is left out, because it cannot be read or a pack cannot store it.
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
    /// A field that is packed under another name, because packs reserve its own.
    Renamed {
        /// Its old name.
        field: String,
        /// Its new name.
        to: String,
    },
    /// Ignored arrays without one item per image.
    OtherArrays {
        /// Number of arrays.
        count: u64,
        /// The first of these arrays.
        first: Vec<u8>,
    },
    /// Ignored pickles, because pickles are never run.
    Pickles {
        /// Number of pickles.
        count: u64,
        /// The first of these pickles.
        first: Vec<u8>,
    },
    /// Folders in a tar file that contains only images; read as classes.
    FoldersInTar {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// Tar files that contain only images; read as classes.
    TarClasses {
        /// Number of files.
        count: u64,
        /// The first class.
        first: Vec<u8>,
    },
    /// TIFF files that are read as arrays.
    Bands {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
        /// The type and shape of the array of this file.
        array: (DType, Vec<u64>),
        /// Whether at least one file stores its bands one after the other.
        are_planar: bool,
    },
    /// Each file was read as one sample, but looks like several images; packed unchanged.
    Stacks {
        /// The shape of the first file.
        shape: Vec<u64>,
    },
    /// The first column of a manifest is left out, because it has no name, like an index written by pandas.
    IndexColumn,
    /// The first lines of a manifest are comments or the number of rows; skipped.
    LinesSkipped {
        /// Number of lines.
        count: u64,
    },
    /// The first line of a manifest contains a number, so it is a row, not a header.
    NoHeader {
        /// The start of the line.
        first: String,
    },
    /// The header of a manifest has one name too few, so the first column is read as the paths.
    NoPathName {
        /// The first path.
        first: Vec<u8>,
    },
    /// The rows of a manifest hold the pixels of gray images.
    PixelColumns {
        /// Height in pixels.
        height: u64,
        /// Width in pixels.
        width: u64,
    },
    /// The paths of a manifest lack the folder or the extension; the files were found below the root.
    FilesLocated {
        /// The column.
        column: String,
        /// The first path in it.
        named: Vec<u8>,
        /// The first file found.
        path: Vec<u8>,
    },
    /// File names differ from the paths in a manifest only in case or Unicode form.
    NearNames {
        /// Number of files.
        count: u64,
        /// The first path in the manifest.
        named: Vec<u8>,
        /// Its file.
        path: Vec<u8>,
    },
    /// Several rows of a manifest refer to the same image; each row is packed as a sample.
    RepeatedImages {
        /// The column of paths.
        column: String,
        /// Number of different images.
        n_images: u64,
        /// Number of rows.
        n_rows: u64,
        /// The first repeated image.
        first: Vec<u8>,
    },
    /// Class names of a field other than the labels. A pack has class names only for its labels.
    NamesLeftOut {
        /// The field.
        field: String,
        /// The names, in the order of their ids.
        names: Vec<String>,
    },
    /// Columns that look like boxes; packed as fields.
    BoxColumns {
        /// The columns.
        fields: Vec<String>,
    },
    /// The label of some rows is a word for missing values; packed as a class.
    MissingNames {
        /// The column.
        field: String,
        /// The first such word.
        name: String,
        /// Number of rows.
        n_rows: u64,
    },
    /// Labels are read as names because some are not numbers.
    NumbersAsNames {
        /// The column.
        field: String,
        /// The first label that is not a number.
        name: String,
        /// Its line.
        line: u64,
    },
    /// A column of numbers is packed as text because some cells have a decimal comma or are words for missing values.
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
    /// The labels are one-hot: a number for each class. They are packed as class numbers.
    OneHotLabels {
        /// The field.
        field: String,
        /// The number of classes.
        n: u64,
    },
    /// No field is named like a label, so the only field with a whole number for each image supplies the labels.
    OnlyIds {
        /// The field.
        field: String,
    },
    /// Masks in colour files that contain only gray.
    GrayMasks,
    /// Arrays of one dimension that may be images.
    FlatPixels {
        /// Numbers in each array.
        n: u64,
        /// Side of the square image.
        side: u64,
        /// Channels of the image.
        channels: u64,
    },
    /// Each colour in the masks is packed as a class number: the position of its row in a table.
    MaskColors {
        /// The name of the table.
        file: Vec<u8>,
        /// The class names by number.
        names: Vec<String>,
    },
    /// Each dataset of the source is read as one image.
    DatasetEach {
        /// Number of datasets.
        n: usize,
    },
    /// The type of raw pixels is not stated, so it was inferred from their number of bytes.
    AssumedPixels {
        /// The type.
        dtype: DType,
    },
    /// A column is read as labels because of its name.
    LabelColumn {
        /// The column.
        field: String,
    },
    /// Several columns of 0 and 1 are read as one label.
    Indicators {
        /// The columns.
        fields: Vec<String>,
    },
    /// A column is read as image paths because its cells are names of image files.
    PathColumn {
        /// The column.
        field: String,
    },
    /// A column is read as masks because its cells are names of image files.
    MaskColumn {
        /// The column.
        field: String,
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
        /// Whether a program declared the fields; otherwise they were read from a source.
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
    /// A file that was not read, although it may have the labels: its format cannot be read as a table of paths and labels.
    LabelsUnread {
        /// The name of the file.
        file: Vec<u8>,
    },
    /// Ignored lists in folders next to the image folder. They may contain labels or splits.
    ListsUnread {
        /// The most likely file.
        file: Vec<u8>,
        /// The others.
        others: Vec<Vec<u8>>,
    },
    /// Ignored tables and lists that name no image of the folder.
    NoLists {
        /// The first of these files.
        file: Vec<u8>,
        /// The others.
        others: Vec<Vec<u8>>,
    },
    /// Ignored folders with a text file for each image.
    TextsUnread {
        /// The folders.
        folders: Vec<Vec<u8>>,
        /// The folder of the images.
        images: Vec<u8>,
    },
    /// An ignored file that is named like boxes.
    BoxFile {
        /// The file.
        file: Vec<u8>,
    },
    /// The second column of a manifest without column names is read as the labels.
    SecondColumn {
        /// Its first cell.
        label: String,
        /// The name of the last column.
        last: String,
    },
    /// Captions at the end of rows contain the delimiter, although they are not in quotes.
    UnquotedCaptions {
        /// Number of rows.
        count: u64,
        /// The first such caption.
        first: String,
    },
    /// Most labels differ from each other, as texts do.
    TextLabels {
        /// The name of the labels.
        field: String,
        /// Number of different labels.
        different: u64,
        /// Number of labels.
        count: u64,
        /// Whether they are packed as texts instead of class names.
        are_texts: bool,
    },
    /// Images that have no row in a manifest, but are in the folders of images that have one.
    Unlisted {
        /// Number of images.
        count: u64,
        /// The first image.
        first: Vec<u8>,
    },
    /// The labels are the categories of a COCO file, in the order of their ids.
    CategoryLabels {
        /// The values of annotations and categories that are left out.
        left_out: Vec<String>,
        /// Whether the labels are lists.
        has_lists: bool,
    },
    /// A file of class names next to the images or the manifest; ignored.
    ClassNamesUnread {
        /// The name of the file.
        file: Vec<u8>,
        /// Whether the labels are class ids in a manifest.
        of_ids: bool,
    },
    /// Class names are read from a file next to the data.
    ClassNamesRead {
        /// The name of the file.
        file: Vec<u8>,
    },
    /// A dimension other than the first may count the images.
    OtherAxis {
        /// The shape of the array, and the dimension, counted from 0.
        array: ([u64; 4], usize),
    },
    /// The labels and splits are in MATLAB files. The names of the images end with their numbers.
    NumberedLabels {
        /// The file of labels, and the file of splits.
        files: [String; 2],
    },
    /// The last dimension of an array counts the samples; it becomes the first.
    SamplesLast {
        /// The array.
        field: String,
        /// Its shape in the file.
        shape: Vec<u64>,
    },
    /// The labels are the folders of a manifest's paths.
    FolderLabels {
        /// The first of these folders.
        first: String,
    },
    /// The words after the first on each line of a list are read as one label.
    RestOfLine {
        /// The label in the first line.
        label: String,
    },
    /// The folder is read as if its archives were unpacked in it.
    ArchivesUnpacked {
        /// Their names.
        names: Vec<String>,
    },
    /// The files of a manifest are in a folder next to the folder of the manifest.
    RootBeside {
        /// The folder.
        folder: Vec<u8>,
    },
    /// The channels of images in Caffe's `Datum` may be in the order blue, green, red.
    CaffeColors,
    /// A table next to the images is read instead of the folder, because it has their labels.
    TableRead {
        /// Its name.
        file: Vec<u8>,
        /// Number of ignored images: those that the table does not name.
        count: u64,
        /// The first ignored image.
        first: Vec<u8>,
        /// Whether the images are in folders that are not classes, such as splits.
        is_inside: bool,
    },
    /// The table of the source names no image in a folder that is named like a split. The folder is read as a split without labels.
    NotInTable {
        /// The folder.
        folder: Vec<u8>,
        /// The name of the table.
        table: Vec<u8>,
    },
    /// Ignored Parquet files that are named like the tar files next to them.
    TablesOfTars {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// Folders that are not used as classes, because each has a file with its name next to it, like the parts of one dataset.
    NumberedParts {
        /// Number of folders.
        count: u64,
        /// The first of these folders.
        first: Vec<u8>,
    },
    /// The values in the `.json` files next to the images are packed as fields.
    JsonFields {
        /// The fields.
        fields: Vec<String>,
        /// A field with a name commonly used for labels, if there are no other labels.
        label: Option<String>,
        /// Number of images without such values.
        missing: u64,
    },
    /// Ignored `.json` files next to the images.
    JsonUnread {
        /// Number of files.
        count: u64,
        /// The first of these files.
        first: Vec<u8>,
    },
    /// The source has one split, which is read.
    OnlySplit {
        /// The name of the split.
        split: String,
    },
    /// A decision about tables or lists next to the images.
    Table(TableNote),
    /// Images exist, but no label file.
    LabelsMissing {
        /// The expected label file.
        file: Vec<u8>,
    },
}

impl Warning {
    /// The warning for a label field with numbers other than class ids.
    pub(super) fn no_ids(field: &str, dtype: DType) -> Self {
        let found = match !dtype.is_float() {
            true => format!("{dtype} values above 2^63 - 1"),
            false => "numbers that are not whole".to_owned(),
        };
        Self::NotLabels { field: field.to_owned(), found }
    }

    /// The warning that files were not read, although they may be meant instead of the folder. The most likely one comes first.
    pub(super) fn manifests_unread(files: Vec<Vec<u8>>) -> Option<Self> {
        let mut files = files.into_iter();
        let file = files.next()?;
        Some(Self::ManifestUnread { file, others: files.collect() })
    }

    /// The warning that files were not read because they name no image of the folder.
    pub(super) fn no_lists(files: Vec<Vec<u8>>) -> Option<Self> {
        let mut files = files.into_iter();
        Some(Self::NoLists { file: files.next()?, others: files.collect() })
    }

    /// The warning for a label field with negative integers.
    pub(super) fn negative_ids(field: &str) -> Self {
        let found = "negative numbers (class ids count from 0)".to_owned();
        Self::NotLabels { field: field.to_owned(), found }
    }
}

/// The exported pack's metadata, if there is any and it can be read. Adds a warning if it cannot.
pub(super) fn readable(metadata: Option<Result<Metadata, String>>, warnings: &mut Vec<Warning>) -> Option<Metadata> {
    metadata?.map_err(|reason| warnings.push(Warning::BadMetadata { reason })).ok()
}
