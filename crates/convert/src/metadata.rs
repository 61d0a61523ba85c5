//! The metadata of an exported pack, as a JSON string that other formats can carry.
//!
//! Every sink writes the string where its format accepts text, and every source looks for it there.
//! docs/reference/formats.md lists the places. Other readers can ignore the string: metadata for which a format has its
//! own convention, such as the class names of a Parquet column, is also written according to that convention.

use std::io::Read;
use std::path::Path;

use packds_format::{Classes, DType, Field, FieldKind, FormatError, Pack, Role, Stats};
use packds_system::{is_regular, open_regular};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ConvertError;
use crate::source::store::ArrayType;

/// The name of the attribute, key or file that holds the metadata.
pub(crate) const METADATA_KEY: &str = "packds";
/// The file that holds the metadata in formats that are folders.
pub(crate) const METADATA_FILE: &str = "packds.json";
/// The global pax record that holds the metadata in tar files.
pub(crate) const METADATA_RECORD: &str = "PACKDS.metadata";
/// The file that lists the class names, one per line, next to shards.
pub(crate) const CLASSES_FILE: &str = "classes.txt";
/// The LMDB key that holds the metadata.
pub(crate) const LMDB_METADATA: &str = "__packds__";
/// The LMDB key that holds the class names, as a JSON list.
pub(crate) const LMDB_CLASSES: &str = "__classes__";

/// The version of the metadata that is written. Other versions are not read.
const VERSION: u32 = 1;

/// Fields, classes, statistics and provenance of a pack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Metadata {
    packds: u32,
    /// The exported fields, as in the pack's schema.
    pub(crate) fields: Vec<Field>,
    /// Class names and counts.
    #[serde(default)]
    pub(crate) classes: Vec<Classes>,
    /// Statistics of all samples.
    #[serde(default)]
    pub(crate) stats: Stats,
    /// Where the pack came from.
    #[serde(default)]
    pub(crate) provenance: Map<String, Value>,
}

impl Metadata {
    /// The metadata of `pack`, limited to these fields.
    pub(crate) fn of_pack<D: AsRef<[u8]>>(pack: &Pack<D>, fields: Vec<Field>) -> Result<Self, FormatError> {
        Ok(Self {
            packds: VERSION,
            fields,
            classes: pack.classes()?,
            stats: pack.stats()?,
            provenance: serde_json::from_str(&pack.provenance()?).unwrap_or_default(),
        })
    }

    /// Removes the statistics and class counts, which cover all samples of the pack. Returns whether there were any.
    pub(crate) fn drop_totals(&mut self) -> bool {
        let had_stats = std::mem::take(&mut self.stats) != Stats::default();
        let counts = self.classes.iter_mut().map(|classes| std::mem::take(&mut classes.counts));
        // Every field loses its counts, so the fold must visit all of them.
        counts.fold(had_stats, |had, counts| had || !counts.is_empty())
    }

    /// The metadata as JSON on a single line.
    pub(crate) fn to_text(&self) -> String {
        // Cannot fail: every map key is a string.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the JSON text. The error is a description, because callers only report it: the data is usable without the
    /// metadata.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let metadata: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if metadata.packds == VERSION {
            Ok(metadata)
        } else {
            Err(format!("expected version {VERSION}, found {}", metadata.packds))
        }
    }

    /// The content of [`METADATA_FILE`] in `folder`, if it exists.
    pub(crate) fn in_folder(folder: &Path) -> Result<Option<Result<Self, String>>, ConvertError> {
        // The file may have been written by another program, so its size is limited. The limit far exceeds what the
        // class names of any dataset need.
        const MAX_BYTES: u64 = 1 << 28;
        let path = folder.join(METADATA_FILE);
        if !is_regular(&path).map_err(ConvertError::io(&path))? {
            return Ok(None);
        }
        let file = open_regular(&path).map_err(ConvertError::io(&path))?;
        let mut text = String::new();
        let read = file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| error.to_string());
        Ok(Some(read.and_then(|_| Self::parse(&text))))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The original type of an array that was exported as integers: bf16 as u16, bool as u8.
    pub(crate) fn restored(&self, name: &str, array: &ArrayType) -> ArrayType {
        let field = self.field(name).filter(|field| {
            let stored = (array.dtype, field.dtype);
            let is_bits = matches!(stored, (DType::U16, DType::Bf16) | (DType::U8, DType::Bool));
            is_bits && field.kind == FieldKind::Tensor && field.shape == array.shape
        });
        ArrayType { dtype: field.map_or(array.dtype, |field| field.dtype), shape: array.shape.clone() }
    }

    pub(crate) fn image(&self) -> Option<&Field> {
        self.fields.iter().find(|field| field.role == Some(Role::Image))
    }

    /// The class names of a label field. Empty if there are none.
    pub(crate) fn class_names(&self, field: &str) -> &[String] {
        let classes = self.classes.iter().find(|classes| classes.field == field);
        classes.map_or(&[], |classes| &classes.names)
    }
}
