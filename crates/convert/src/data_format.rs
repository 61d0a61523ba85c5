//! The dataset formats that can be read or written.

use std::borrow::Cow;

use crate::formats::{self, Entry, Input};

/// A dataset format other than packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataFormat {
    /// Class folders of image files, or one folder of image files.
    ImageFolder,
    /// A table that names image files, in a form such as CSV, TSV, JSON or JSON Lines.
    Manifest,
    /// NumPy's `.npy`: one array of all images, or one file per sample.
    Npy,
    /// NumPy's `.npz`: several arrays in a zip file.
    Npz,
    /// PyTorch's `.pt` or `.pth`.
    Pt,
    /// Hugging Face's `.safetensors`.
    Safetensors,
    /// HDF5.
    Hdf5,
    /// Zarr, version 2 or 3.
    Zarr,
    /// Parquet.
    Parquet,
    /// Arrow IPC: files (also called Feather) and streams.
    Arrow,
    /// WebDataset: tar files as shards.
    WebDataset,
    /// TFRecord: TensorFlow's record files of `tf.Example` messages.
    TfRecord,
    /// LMDB.
    Lmdb,
    /// CIFAR-10 and CIFAR-100, binary or Python version.
    Cifar,
    /// MNIST's IDX files, and other datasets in the same format.
    Mnist,
    /// MATLAB's `.mat`, version 5.
    Matlab,
    /// MosaicML Streaming's MDS.
    Mds,
    /// LitData.
    LitData,
    /// FFCV's `.beton`.
    Beton,
    /// ArrayRecord: Google's files of records with an index.
    ArrayRecord,
    /// COCO's boxes.
    Coco,
    /// YOLO's boxes, as Ultralytics reads them.
    Yolo,
}

packds_system::named!(DataFormat {
    ImageFolder = "image-folder",
    Manifest = "manifest",
    Npy = "npy",
    Npz = "npz",
    Pt = "pt",
    Safetensors = "safetensors",
    Hdf5 = "hdf5",
    Zarr = "zarr",
    Parquet = "parquet",
    Arrow = "arrow",
    WebDataset = "webdataset",
    TfRecord = "tfrecord",
    Lmdb = "lmdb",
    Cifar = "cifar",
    Mnist = "mnist",
    Matlab = "matlab",
    Mds = "mds",
    LitData = "litdata",
    Beton = "beton",
    ArrayRecord = "arrayrecord",
    Coco = "coco",
    Yolo = "yolo",
});

impl DataFormat {
    const N_SINKS: usize = {
        let (mut i, mut n) = (0, 0);
        while i < Self::ALL.len() {
            n += if Self::ALL[i].is_sink() { 1 } else { 0 };
            i += 1;
        }
        n
    };

    /// The names of the formats that packs can be exported to.
    pub(crate) const SINKS: [&str; Self::N_SINKS] = {
        let mut names = [""; Self::N_SINKS];
        let (mut i, mut n) = (0, 0);
        while i < Self::ALL.len() {
            if Self::ALL[i].is_sink() {
                names[n] = Self::ALL[i].name();
                n += 1;
            }
            i += 1;
        }
        names
    };

    pub(crate) const fn entry(self) -> &'static Entry {
        match self {
            Self::ImageFolder => &formats::image_folder::ENTRY,
            Self::Manifest => &formats::manifest::ENTRY,
            Self::Npy => &formats::npy::ENTRY,
            Self::Npz => &formats::npz::ENTRY,
            Self::Pt => &formats::pt::ENTRY,
            Self::Safetensors => &formats::safetensors::ENTRY,
            Self::Hdf5 => &formats::hdf5::ENTRY,
            Self::Zarr => &formats::zarr::ENTRY,
            Self::Parquet => &formats::parquet::ENTRY,
            Self::Arrow => &formats::arrow::ENTRY,
            Self::WebDataset => &formats::webdataset::ENTRY,
            Self::TfRecord => &formats::tfrecord::ENTRY,
            Self::Lmdb => &formats::lmdb::ENTRY,
            Self::Cifar => &formats::cifar::ENTRY,
            Self::Mnist => &formats::mnist::ENTRY,
            Self::Matlab => &formats::matlab::ENTRY,
            Self::Mds => &formats::mds::ENTRY,
            Self::LitData => &formats::litdata::ENTRY,
            Self::Beton => &formats::beton::ENTRY,
            Self::ArrayRecord => &formats::array_record::ENTRY,
            Self::Coco => &formats::coco::ENTRY,
            Self::Yolo => &formats::yolo::ENTRY,
        }
    }

    /// The file and folder extensions of the format, the most common one first. Empty if names do not reveal the
    /// format.
    #[must_use]
    pub fn extensions(self) -> &'static [&'static str] {
        self.entry().extensions
    }

    /// Whether a file in this format may hold a single sample.
    pub(crate) fn may_hold_one_sample(self) -> bool {
        matches!(self.entry().input, Some(Input::Samples { whole: Some(_), .. }))
    }

    /// Whether this format can be converted to packs.
    #[must_use]
    pub const fn is_source(self) -> bool {
        self.entry().is_source
    }

    /// Whether packs can be exported to this format.
    #[must_use]
    pub const fn is_sink(self) -> bool {
        self.entry().is_sink
    }

    /// Whether this build supports the format.
    #[must_use]
    pub fn is_built(self) -> bool {
        self.entry().input.is_some() || self.entry().output.is_some()
    }

    /// A short description of the format's contents.
    #[must_use]
    pub fn describe(self) -> &'static str {
        self.entry().describe
    }

    /// The format whose extension matches the end of this name. The longest extension wins.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = without_shard_number(&name);
        let ends =
            |extension: &str| name.strip_suffix(extension).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'));
        let known = Self::ALL.into_iter().flat_map(|format| {
            let extensions = format.extensions().iter();
            extensions.map(move |extension| (extension, format))
        });
        known
            .filter(|(extension, _)| ends(extension))
            .max_by_key(|(extension, _)| extension.len())
            .map(|(_, format)| format)
    }
}

/// Removes a shard number after the extension: `data.tfrecord-00003-of-00010.gz` becomes `data.tfrecord.gz`.
fn without_shard_number(name: &str) -> Cow<'_, str> {
    let (stem, end) = name.strip_suffix(".gz").map_or((name, ""), |stem| (stem, ".gz"));
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|b| b.is_ascii_digit());
    let numbered = stem.rsplit_once("-of-").and_then(|(front, total)| {
        let (front, number) = front.rsplit_once('-')?;
        (is_number(total) && is_number(number)).then_some(front)
    });
    match numbered {
        Some(front) if front.contains(".tfrecord") || front.contains(".array_record") => {
            Cow::Owned(format!("{front}{end}"))
        }
        // Names of shards in TensorFlow: `train-00000-of-01024`, `coco_train.record-00000-of-00100`.
        Some(front) if front.ends_with(".record") || !front.contains('.') => {
            Cow::Owned(format!("{front}.tfrecord{end}"))
        }
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_extension_names_the_format() {
        for (name, format) in [
            ("a.tar.gz", Some(DataFormat::WebDataset)),
            ("a.H5", Some(DataFormat::Hdf5)),
            ("train.tfrecord.gz", Some(DataFormat::TfRecord)),
            ("a.tfrecord-00001-of-00010", Some(DataFormat::TfRecord)),
            ("a.tfrecord-00001-of-00010.gz", Some(DataFormat::TfRecord)),
            ("a.tfrecord-1-of-2", None),
            ("mnist-train.array_record-00000-of-00010", Some(DataFormat::ArrayRecord)),
            ("a.arrayrecord", Some(DataFormat::ArrayRecord)),
            (".npy", None),
            ("npy", None),
            ("folder", None),
        ] {
            assert_eq!(DataFormat::from_file_name(name), format, "{name}");
        }
    }

    #[test]
    fn names_parse_back() {
        for format in DataFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
    }
}
