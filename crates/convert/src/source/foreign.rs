//! Recognizes files that packds does not read, and says how to convert them.

use std::path::Path;

use super::detect::Head;
use crate::error::ConvertError;

/// What a file is, and what to do with it.
pub(super) struct Foreign(&'static str, &'static str);

impl Foreign {
    /// The error about a file.
    pub(super) fn error(&self, source: &Path) -> ConvertError {
        ConvertError::unsupported(source, "", self.0, self.1)
    }

    /// Recognizes a file by its first bytes, and otherwise by its extension.
    pub(super) fn of_file(head: &Head<'_>) -> Option<Self> {
        let text = head.bytes.trim_ascii_start();
        let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        Some(match () {
            () if starts(b"version https://git-lfs") => {
                Self("this is a Git LFS pointer instead of the file", "run 'git lfs pull' in its repository")
            }
            () if starts(b"<!doctype html") || starts(b"<html") => Self(
                "this is a web page instead of the file, probably from a failed download",
                "download the file again; some sites require a login",
            ),
            () if head.bytes.iter().all(|byte| *byte == 0)
                && head.named.is_none()
                && !head.name.ends_with(".beton") =>
            {
                Self("its first bytes are all zero", "copy or download the file again")
            }
            () if head.has(0, b"Rar!") => {
                Self("this is a RAR archive", "unpack it ('unrar x FILE') and name the folder")
            }
            () if head.has(0, b"7z\xbc\xaf") => {
                Self("this is a 7z archive", "unpack it ('7z x FILE') and name the folder")
            }
            () if head.has(0, b"MATLAB 5.0") => Self(
                "this is a version 5 MATLAB file",
                "in Python: numpy.savez(\"x.npz\", **scipy.io.loadmat(\"x.mat\"))",
            ),
            () if head.has(0, b"MATLAB 7.3") => Self(
                "this is a version 7.3 MATLAB file, which stores dimensions in reverse order",
                "in Python: read its arrays with h5py, transpose them, and save them with numpy.savez",
            ),
            () if head.has(128, b"DICM") => {
                Self("this is a DICOM file", "write its pixels with pydicom and numpy.save, or as 8-bit PNG files")
            }
            () if head.has(344, b"n+1\0") => {
                Self("this is a NIfTI volume", "write its slices with nibabel and numpy.save, one .npy file per slice")
            }
            () if head.has(0, b"\x0a\x23\xd7\xce") || head.has(0, &0xced7_230a_u32.to_le_bytes()) => {
                Self("this is an MXNet RecordIO file", "unpack it with mxnet.recordio, one file per image")
            }
            () if head.name.ends_with(".beton") => {
                Self("this is an FFCV file", "convert the original images, or write its samples with packds.write")
            }
            () if head.name.ends_with(".mds") => Self(
                "this is a MosaicML Streaming shard",
                "write its samples with packds.write, or export them to Parquet or a folder",
            ),
            () if packds_pixels::ImageFormat::sniff(head.bytes).is_some() => {
                Self("this is a single image", "name the folder that contains it")
            }
            () => return None,
        })
    }

    /// Recognizes a table whose labels are in another table beside it.
    pub(super) fn of_table(source: &Path) -> Option<Self> {
        const LABELS: &str = "image_class_labels.txt";
        const TABLES: [&str; 5] = ["images.txt", LABELS, "train_test_split.txt", "classes.txt", "bounding_boxes.txt"];
        let name = source.file_name()?.to_str()?;
        let is_one = TABLES.contains(&name) && source.with_file_name(LABELS).is_file();
        is_one.then_some(Self(
            "this is one of several tables, as in CUB: images.txt has the files, image_class_labels.txt the labels, and train_test_split.txt the splits",
            "join them on their first column in Python: read = lambda f, n: pandas.read_csv(f, sep=' ', names=['id', n]); read('images.txt', 'path').merge(read('image_class_labels.txt', 'label')).drop(columns='id').to_csv('cub.csv', index=False)",
        ))
    }

    /// Recognizes a folder by its files.
    pub(super) fn of_folder(names: &[String]) -> Option<Self> {
        let has = |name: &str| names.iter().any(|own| own == name);
        let ends = |end: &str| names.iter().any(|own| own.ends_with(end));
        let starts = |start: &str| names.iter().any(|own| own.starts_with(start));
        Some(match () {
            () if has("index.json") && (ends(".mds") || ends(".mds.zstd")) => {
                Self("this is a MosaicML Streaming dataset (MDS)", "write its samples with packds.write")
            }
            () if has("index.json") && starts("chunk-") => {
                Self("this is a LitData dataset", "write its samples with packds.write")
            }
            () if has("dataset_meta.json") => {
                Self("this is a Deep Lake dataset", "write its samples with packds.write")
            }
            () if has("_versions") && has("data") => {
                Self("this is a Lance dataset", "export it to Parquet with pyarrow, and convert the Parquet file")
            }
            () if ends(".beton") => Self(
                "this is a folder of FFCV files",
                "convert the original images, or write the samples with packds.write",
            ),
            () if ends(".dcm") => Self(
                "this is a folder of DICOM files",
                "write their pixels with pydicom and numpy.save, or as 8-bit PNG files",
            ),
            () if ends(".nii") || ends(".nii.gz") => Self(
                "this is a folder of NIfTI volumes",
                "write their slices with nibabel and numpy.save, one .npy file per slice",
            ),
            () => return None,
        })
    }
}
