//! Arrays with known positions in the output. Every field is contiguous, although each batch contains all fields.

use packds_system::{to_u64, to_usize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;
use packds_format::DType;

use super::fields::Form;
use super::npz::deflate;
use super::zip_file::Member;
use super::{Batch, Encode, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;
use crate::source::PATHS;

/// The name under which class names are stored in formats that store strings like fields.
pub(super) const CLASSES: &str = "classes";

/// An array to write: an exported field, or the samples' paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(super) name: String,
    /// The element type. `None` for paths, which are zero-padded bytes.
    pub(super) dtype: Option<DType>,
    /// The first dimension is the number of samples. Paths have no other dimension.
    pub(super) shape: Vec<u64>,
    pub(super) item_bytes: u64,
}

impl Planned {
    pub(super) fn bytes(&self) -> u64 {
        let n = self.shape.first().copied().unwrap_or(0);
        n.saturating_mul(self.item_bytes)
    }

    /// The type and shape of the array if only numbers can be stored. Paths become rows of bytes.
    pub(super) fn as_numbers(&self) -> (DType, Vec<u64>) {
        match self.dtype {
            Some(dtype) => (dtype, self.shape.clone()),
            None => (DType::U8, [self.shape.as_slice(), &[self.item_bytes]].concat()),
        }
    }
}

/// All arrays: the exported fields in order, then the paths.
pub(super) fn planned(start: &SinkStart<'_>) -> Vec<Planned> {
    let mut arrays = Vec::new();
    for exported in &start.exported.fields {
        if let Form::Array(array) = &exported.form {
            arrays.push(Planned {
                name: exported.field.name.clone(),
                dtype: Some(array.dtype),
                shape: [&[start.n_samples], array.shape.as_slice()].concat(),
                item_bytes: array.bytes().unwrap_or(0),
            });
        }
    }
    let longest = start.paths.iter().map(Vec::len).max().unwrap_or(0);
    if longest > 0 && !is_taken(&arrays, PATHS) {
        arrays.push(Planned {
            name: PATHS.to_owned(),
            dtype: None,
            shape: vec![start.n_samples],
            item_bytes: to_u64(longest),
        });
    }
    arrays
}

/// Notes on data that is not written because a field already has its name. `with_texts` says whether class names and
/// metadata are stored like fields.
pub(super) fn hidden_notes(start: &SinkStart<'_>, arrays: &[Planned], with_texts: bool) -> Vec<String> {
    let has_classes = !start.metadata.class_names("label").is_empty();
    let own = [
        (PATHS, "the samples' paths", start.exported.has_paths),
        (CLASSES, "class names", with_texts && has_classes),
        (METADATA_KEY, "the pack's metadata", with_texts),
    ];
    let is_field = |name: &str| arrays.iter().any(|array| array.name == name && array.dtype.is_some());
    let hidden = own.into_iter().filter(|(name, _, is_written)| *is_written && is_field(name));
    hidden.map(|(name, what, _)| format!("{what}, because another field is named `{name}`")).collect()
}

/// Notes on bf16 arrays, which NumPy cannot represent.
pub(super) fn bf16_notes(arrays: &[Planned]) -> Vec<String> {
    let arrays = arrays.iter().filter(|array| array.dtype == Some(DType::Bf16));
    let note =
        |name| format!("the type of field `{name}`, because NumPy has no bfloat16: its bits are stored as uint16");
    arrays.map(|array| note(&array.name)).collect()
}

pub(super) fn is_taken(arrays: &[Planned], name: &str) -> bool {
    arrays.iter().any(|array| array.name == name)
}

pub(crate) struct Pieces {
    pub(super) first: u64,
    pub(super) pieces: Vec<Piece>,
}

pub(crate) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// The CRC-32 for zip files, if requested.
    pub(super) crc: u32,
    /// Number of bytes before compression.
    pub(super) len: u64,
}

pub(crate) struct PieceEncoder {
    arrays: Vec<Planned>,
    with_crc: bool,
    /// The level of deflate. `None` if pieces are not compressed.
    level: Option<u32>,
}

impl PieceEncoder {
    pub(super) fn new(arrays: &[Planned], with_crc: bool, level: Option<u32>) -> Self {
        Self { arrays: arrays.to_vec(), with_crc, level }
    }
}

impl Encode for PieceEncoder {
    type Ready = Pieces;

    fn encode(&self, batch: Batch) -> Result<Pieces, ConvertError> {
        let Batch { first, columns, paths, .. } = batch;
        let mut columns = columns.into_iter();
        let piece = |array: &Planned| {
            let bytes = match array.dtype {
                Some(_) => columns.next().map(|column| column.bytes).unwrap_or_default(),
                None => padded(&paths, array.item_bytes),
            };
            let (len, crc) = (to_u64(bytes.len()), if self.with_crc { crc32(&bytes) } else { 0 });
            let bytes = match self.level {
                Some(level) => deflate(&bytes, level),
                None => bytes,
            };
            Piece { bytes, crc, len }
        };
        Ok(Pieces { first, pieces: self.arrays.iter().map(piece).collect() })
    }
}

fn padded(paths: &[Vec<u8>], item_bytes: u64) -> Vec<u8> {
    let item_bytes = to_usize(item_bytes);
    let mut bytes = Vec::with_capacity(item_bytes.saturating_mul(paths.len()));
    for path in paths {
        let end = bytes.len().saturating_add(item_bytes);
        bytes.extend_from_slice(path);
        bytes.resize(end, 0);
    }
    bytes
}

/// The CRC-32 used in zip files.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    u32::try_from(crc_fast::checksum(Crc32IsoHdlc, bytes)).unwrap_or(0)
}

/// The CRC-32 of two concatenated byte sequences. The second has `len` bytes.
pub(super) fn crc32_joined(first: u32, second: u32, len: u64) -> u32 {
    let joined = crc_fast::checksum_combine(Crc32IsoHdlc, first.into(), second.into(), len);
    u32::try_from(joined).unwrap_or(0)
}

pub(crate) struct PlacedFile {
    file: File,
    /// The path for error messages.
    target: PathBuf,
}

impl PlacedFile {
    pub(super) fn open(path: &Path, target: &Path) -> Result<Self, ConvertError> {
        let file = File::create(path).map_err(ConvertError::io(target))?;
        Ok(Self { file, target: target.to_owned() })
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), ConvertError> {
        self.file.write_all_at(bytes, offset).map_err(ConvertError::io(&self.target))
    }

    /// Writes a whole member of a zip file at `end`, and moves `end` to the end of the member.
    pub(super) fn write_member(&self, name: &str, bytes: &[u8], end: &mut u64) -> Result<Member, ConvertError> {
        let mut member = Member::stored(name, to_u64(bytes.len()), *end);
        member.crc = crc32(bytes);
        self.write_at(&member.local_header(), member.header)?;
        self.write_at(bytes, member.data())?;
        *end = member.end();
        Ok(member)
    }
}

pub(crate) struct Places {
    pub(super) file: PlacedFile,
    /// Offset and item size of each array.
    pub(super) starts: Vec<(u64, u64)>,
}

impl Places {
    pub(super) fn write(&self, pieces: &Pieces) -> Result<(), ConvertError> {
        for (piece, (start, item_bytes)) in pieces.pieces.iter().zip(&self.starts) {
            let offset = start.saturating_add(pieces.first.saturating_mul(*item_bytes));
            self.file.write_at(&piece.bytes, offset)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use packds_format::Field;

    use super::super::test_pack::{fields, pack_of, to};
    use super::*;
    use crate::export::ExportOptions;

    #[test]
    fn what_a_field_takes_the_name_of_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Field { name: name.to_owned(), ..fields()[1].clone() };
        let pack = pack_of(3, [fields(), [PATHS, CLASSES, METADATA_KEY].map(of).to_vec()].concat());
        let lost = |name: &str, per_sample| {
            let to_npy = !name.contains('.');
            let to_format = to_npy.then(|| "npy".parse().unwrap());
            let options = ExportOptions { to: to_format, per_sample, ..ExportOptions::default() };
            to(&pack, &dir.path().join(name), &options).unwrap().lost
        };
        let paths = "the samples' paths, because another field is named `path`".to_owned();
        let texts = [
            "class names, because another field is named `classes`",
            "the pack's metadata, because another field is named `packds`",
        ];
        for name in ["a.npz", "a.pt", "a.safetensors", "a"] {
            let lost = lost(name, false);
            assert!(lost.contains(&paths), "{name}: {lost:?}");
            let has_texts = texts.iter().all(|text| lost.iter().any(|lost| lost == text));
            assert_eq!(has_texts, ["a.npz", "a.pt"].contains(&name), "{name}: {lost:?}");
        }
        // With one file per sample, the file names contain the paths.
        let lost = lost("b", true);
        let expected =
            "points, angle, weight, flag, path, classes, packds: omit per_sample to get a file for each field";
        assert!(lost.iter().any(|lost| lost == expected) && !lost.contains(&paths), "{lost:?}");
    }

    #[test]
    fn a_label_that_is_no_class_id_is_not_kept_with_one_file_per_sample() {
        let dir = tempfile::tempdir().unwrap();
        let mut fields = fields();
        fields.retain(|field| field.name != "label");
        fields.push(Field::column("label", DType::F32, &[]));
        let options = ExportOptions { to: Some("npy".parse().unwrap()), per_sample: true, ..ExportOptions::default() };
        let lost = to(&pack_of(3, fields), &dir.path().join("a"), &options).unwrap().lost;
        assert!(lost.iter().any(|lost| lost.contains("flag, label: ")), "{lost:?}");
    }

    #[test]
    fn checksums_of_pieces_join_to_that_of_the_whole() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32_joined(crc32(b"1234"), crc32(b"56789"), 5), 0xcbf4_3926);
        assert_eq!(crc32_joined(crc32(b""), crc32(b"ab"), 2), crc32(b"ab"));
    }

    #[test]
    fn paths_become_rows_of_one_width() {
        let paths = [b"a/b".to_vec(), b"c".to_vec()];
        assert_eq!(padded(&paths, 4), b"a/b\0c\0\0\0");
    }
}
