//! Names files that packds does not read, and says how to get there from them.

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
                "this is a web page instead of the file, as a failed download leaves",
                "download the file again; some sites require a login",
            ),
            () if head.bytes.iter().all(|byte| *byte == 0)
                && head.named.is_none()
                && !head.name.ends_with(".beton") =>
            {
                Self("its first bytes are all zero", "copy or download the file again")
            }
            () if head.has(0, b"Rar!") => Self("a RAR archive", "unpack it ('unrar x FILE') and name the folder"),
            () if head.has(0, b"7z\xbc\xaf") => Self("a 7z archive", "unpack it ('7z x FILE') and name the folder"),
            () if head.has(0, b"MATLAB 5.0") => {
                Self("a MATLAB file of version 5", "in Python: numpy.savez(\"x.npz\", **scipy.io.loadmat(\"x.mat\"))")
            }
            () if head.has(0, b"MATLAB 7.3") => Self(
                "a MATLAB file of version 7.3, whose arrays have their dimensions reversed",
                "in Python: read its arrays with h5py, transpose them, and save them with numpy.savez",
            ),
            () if head.has(128, b"DICM") => {
                Self("a DICOM file", "write its pixels with pydicom and numpy.save, or as 8-bit PNG files")
            }
            () if head.has(344, b"n+1\0") => {
                Self("a NIfTI volume", "write its slices with nibabel and numpy.save, one .npy file for each")
            }
            () if head.has(0, b"\x0a\x23\xd7\xce") || head.has(0, &0xced7_230a_u32.to_le_bytes()) => {
                Self("an MXNet RecordIO file", "unpack its images with mxnet.recordio, one file for each")
            }
            () if head.name.ends_with(".beton") => {
                Self("an FFCV file", "convert the images that it was made from, or write its samples with packds.write")
            }
            () if head.name.ends_with(".mds") => Self(
                "a shard of MosaicML Streaming",
                "write its samples with packds.write, or export them to Parquet or a folder",
            ),
            () if packds_pixels::ImageFormat::sniff(head.bytes).is_some() => {
                Self("a single image", "name the folder that it is in")
            }
            () => return None,
        })
    }

    /// Recognizes a table that has its labels in another table beside it.
    pub(super) fn of_table(source: &Path) -> Option<Self> {
        const LABELS: &str = "image_class_labels.txt";
        const TABLES: [&str; 5] = ["images.txt", LABELS, "train_test_split.txt", "classes.txt", "bounding_boxes.txt"];
        let name = source.file_name()?.to_str()?;
        let is_one = TABLES.contains(&name) && source.with_file_name(LABELS).is_file();
        is_one.then_some(Self(
            "one of several tables as in CUB: images.txt has the files, image_class_labels.txt the labels, train_test_split.txt the splits",
            "join them by their first column, in Python: read = lambda f, n: pandas.read_csv(f, sep=' ', names=['id', n]); read('images.txt', 'path').merge(read('image_class_labels.txt', 'label')).drop(columns='id').to_csv('cub.csv', index=False)",
        ))
    }

    /// Recognizes a folder by the files that it has.
    pub(super) fn of_folder(names: &[String]) -> Option<Self> {
        let has = |name: &str| names.iter().any(|own| own == name);
        let ends = |end: &str| names.iter().any(|own| own.ends_with(end));
        let starts = |start: &str| names.iter().any(|own| own.starts_with(start));
        Some(match () {
            () if has("index.json") && (ends(".mds") || ends(".mds.zstd")) => {
                Self("a dataset of MosaicML Streaming (MDS)", "write its samples with packds.write")
            }
            () if has("index.json") && starts("chunk-") => {
                Self("a dataset of LitData", "write its samples with packds.write")
            }
            () if has("dataset_meta.json") => Self("a dataset of Deep Lake", "write its samples with packds.write"),
            () if has("_versions") && has("data") => {
                Self("a dataset of Lance", "write it as Parquet with pyarrow, and convert that")
            }
            () if ends(".beton") => Self(
                "a folder of FFCV files",
                "convert the images that they were made from, or write the samples with packds.write",
            ),
            () if ends(".dcm") => {
                Self("a folder of DICOM files", "write their pixels with pydicom and numpy.save, or as 8-bit PNG files")
            }
            () if ends(".nii") || ends(".nii.gz") => Self(
                "a folder of NIfTI volumes",
                "write their slices with nibabel and numpy.save, one .npy file for each",
            ),
            () => return None,
        })
    }
}
