//! Recognizes files that packds cannot read, and says how to convert them.

use std::borrow::Cow;
use std::path::Path;

use super::detect::Head;
use super::litdata;
use super::mds;
use super::unread::Unread;
use crate::error::ConvertError;

/// How to convert a shard that needs its index.
const WITH_INDEX: &str = "pass the folder that contains it and its index.json";

/// What the file is, and how to convert it.
pub(super) struct Foreign(Cow<'static, str>, &'static str);

impl Foreign {
    const fn of(what: &'static str, hint: &'static str) -> Self {
        Self(Cow::Borrowed(what), hint)
    }

    /// Returns the error for a file.
    pub(super) fn error(&self, source: &Path) -> ConvertError {
        ConvertError::unsupported(source, "", self.0.as_ref(), self.1)
    }

    /// Recognizes a file by its first bytes or else by its extension.
    pub(super) fn of_file(head: &Head<'_>) -> Option<Self> {
        if let Some(row) = Unread::of_bytes(head.bytes) {
            return Some(Self::unread(row));
        }
        Some(match () {
            () if head.bytes.iter().all(|byte| *byte == 0) && head.named.is_none() => {
                Self::of("its first bytes are all zero", "copy or download the file again")
            }
            () if head.has(0, b"Rar!") => {
                Self::of("this is a RAR archive", "unpack it ('unrar x FILE') and pass the folder")
            }
            () if head.has(0, b"7z\xbc\xaf") => {
                Self::of("this is a 7z archive", "unpack it ('7z x FILE') and pass the folder")
            }
            () if head.has(0, b"\x0a\x23\xd7\xce") || head.has(0, &0xced7_230a_u32.to_le_bytes()) => {
                Self::of("this is an MXNet RecordIO file", "unpack it with mxnet.recordio into one file per image")
            }
            () if mds::is_shard(head.name) => Self::of("this is a shard of MosaicML Streaming (MDS)", WITH_INDEX),
            () if litdata::is_chunk(head.name) => Self::of("this is a chunk of LitData", WITH_INDEX),
            () if packds_pixels::ImageFormat::sniff(head.bytes).is_some() => {
                Self::of("this is a single image", "pass the folder that contains it")
            }
            () => return Unread::of_name(head.name.as_bytes()).map(Self::unread),
        })
    }

    fn unread(row: &Unread) -> Self {
        let what = match row.name {
            "Git LFS pointer" => "this is a Git LFS pointer instead of the file".into(),
            "web page" => "this is a web page instead of the file, probably from a failed download".into(),
            name => format!("this is a file of type {name}").into(),
        };
        Self(what, row.hint)
    }

    /// Recognizes a table whose labels are in another table next to it.
    pub(super) fn of_table(source: &Path) -> Option<Self> {
        const LABELS: &str = "image_class_labels.txt";
        const TABLES: [&str; 5] = ["images.txt", LABELS, "train_test_split.txt", "classes.txt", "bounding_boxes.txt"];
        let name = source.file_name()?.to_str()?;
        let is_one = TABLES.contains(&name) && source.with_file_name(LABELS).is_file();
        is_one.then_some(Self::of(
            "this is one of several tables, as in CUB: images.txt has the files, image_class_labels.txt the labels, and train_test_split.txt the splits",
            "join them on their first column in Python: read = lambda f, n: pandas.read_csv(f, sep=' ', names=['id', n]); read('images.txt', 'path').merge(read('image_class_labels.txt', 'label')).drop(columns='id').to_csv('cub.csv', index=False)",
        ))
    }

    /// Recognizes a folder by its files.
    pub(super) fn of_folder(names: &[String]) -> Option<Self> {
        let has = |name: &str| names.iter().any(|own| own == name);
        let ends = |end: &str| names.iter().any(|own| own.ends_with(end));
        Some(match () {
            () if names.iter().any(|name| mds::is_shard(name)) => Self::of(
                "this folder has shards of MosaicML Streaming (MDS), but not their index.json",
                "copy index.json into it, or pass the folder that contains index.json",
            ),
            () if names.iter().any(|name| litdata::is_chunk(name)) => Self::of(
                "this folder has chunks of LitData, but not their index.json",
                "copy index.json into it, or pass the folder that contains index.json",
            ),
            () if has("dataset_meta.json") => {
                Self::of("this is a Deep Lake dataset", "write its samples with packds.write")
            }
            () if has("_versions") && has("data") => {
                Self::of("this is a Lance dataset", "export it to Parquet with pyarrow, and convert the Parquet file")
            }
            () if has("train_X.bin") && has("train_y.bin") => Self::of(
                "this is STL-10 in its binary format, which stores images column by column",
                "convert both splits in Python: for s in ('train', 'test'): numpy.savez(s + '.npz', images=numpy.fromfile(s + '_X.bin', 'uint8').reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1), labels=numpy.fromfile(s + '_y.bin', 'uint8') - 1, classes=open('class_names.txt').read().split()); and the images without labels: numpy.savez('unlabeled.npz', images=numpy.fromfile('unlabeled_X.bin', 'uint8').reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1))",
            ),
            () if ends(".rec") && ends(".idx") => Self::of(
                "this is a folder of MXNet RecordIO files",
                "write the images to class folders with mxnet.recordio, and convert these",
            ),
            () => return None,
        })
    }
}
