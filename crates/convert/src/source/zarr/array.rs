//! A Zarr array as described by its metadata, in version 2 or 3.
//!
//! `chunks` reads its chunks.

use std::path::{Path, PathBuf};

use packds_format::DType;
use packds_system::read_regular;
use serde_json::{Map, Value, json};
use zarrs::array::chunk_grid::RegularChunkGridConfiguration;
use zarrs::array::{ArrayMetadataV3, ChunkKeyEncoding, ChunkShape, DataType, FillValue};
use zarrs::metadata::v2::{ArrayMetadataV2, ArrayMetadataV2Order, MetadataV2};
use zarrs::metadata::v3::MetadataV3;

use super::codec::{Chain, Sharding, extension};
use crate::dtypes::of_numpy_kind;
use crate::error::ConvertError;
use crate::source::grid::MAX_BAND_BYTES;

/// Maximum size of a metadata file, in bytes.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// The element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Number(DType),
    /// Strings of a fixed size, with one or four bytes per character.
    FixedText {
        bytes: u64,
        wide: bool,
    },
    Text,
    Bytes,
}

/// An array.
#[derive(Debug)]
pub(super) struct Array {
    /// The array's name, including its groups.
    pub(super) path: String,
    pub(super) folder: PathBuf,
    pub(super) shape: Vec<u64>,
    /// Elements of a stored chunk in each dimension.
    pub(super) chunk: ChunkShape,
    pub(super) element: Element,
    pub(super) data_type: DataType,
    /// The value of unwritten elements.
    pub(super) fill: FillValue,
    /// The codecs of chunks that can be unpacked individually.
    pub(super) chain: Chain,
    pub(super) sharding: Option<Sharding>,
    /// How the chunks are named.
    pub(super) keys: ChunkKeyEncoding,
    pub(super) attributes: Map<String, Value>,
}

/// Reads a metadata file.
pub(super) fn json(path: &Path) -> Result<Value, ConvertError> {
    let bytes = std::fs::metadata(path).map_err(ConvertError::io(path))?.len();
    if bytes > MAX_METADATA_BYTES {
        let reason = format!("the metadata is too large ({bytes} bytes)");
        return Err(ConvertError::malformed(path, "", reason));
    }
    let text = read_regular(path).map_err(ConvertError::io(path))?;
    serde_json::from_slice(&text).map_err(|e| ConvertError::malformed(path, "", e.to_string()))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl Array {
    /// Parses version 3's metadata, or version 2's with its attributes.
    pub(super) fn parse(
        folder: &Path,
        path: String,
        metadata: Value,
        attributes: Map<String, Value>,
    ) -> Result<Self, ConvertError> {
        let folder_and_name = (folder.to_owned(), path.clone());
        let parsed = match metadata.get("zarr_format").and_then(Value::as_u64) {
            Some(3) => Self::version3(folder_and_name, metadata),
            Some(2) => Self::version2(folder_and_name, metadata, attributes),
            Some(other) => Err(format!("expected Zarr version 2 or 3, found {other}")),
            None => Err("expected Zarr version 2 or 3, found none".to_owned()),
        };
        let array = parsed.map_err(|reason| {
            let hint = "write the array again with zarr-python and one of the listed codecs";
            ConvertError::unsupported(folder, &path, reason, hint)
        })?;
        array.check().map_err(|reason| ConvertError::malformed(folder, &path, reason))?;
        Ok(array)
    }

    fn version3((folder, path): (PathBuf, String), metadata: Value) -> Result<Self, String> {
        let metadata: ArrayMetadataV3 = serde_json::from_value(metadata).map_err(text)?;
        if metadata.chunk_grid.name() != "regular" {
            return Err("the chunk grid is not 'regular'".to_owned());
        }
        let grid = metadata.chunk_grid.to_typed_configuration::<RegularChunkGridConfiguration>();
        // Other encodings could name files outside the array's folder.
        if !matches!(metadata.chunk_key_encoding.name(), "default" | "v2") {
            return Err(format!("unsupported encoding of chunk names: {}", metadata.chunk_key_encoding.name()));
        }
        if !metadata.storage_transformers.is_empty() {
            return Err("storage transformers are not supported".to_owned());
        }
        let element = element3(&json!(metadata.data_type))?;
        let data_type = data_type(&element)?;
        let (chain, sharding) = Chain::version3(&metadata.codecs, metadata.shape.len())?;
        Ok(Self {
            path,
            folder,
            chunk: grid.map_err(text)?.chunk_shape,
            fill: fill(&element, &data_type, &json!(metadata.fill_value))?,
            data_type,
            element,
            chain,
            sharding,
            keys: ChunkKeyEncoding::from_metadata(&metadata.chunk_key_encoding).map_err(text)?,
            shape: metadata.shape,
            attributes: metadata.attributes,
        })
    }

    fn version2(
        (folder, path): (PathBuf, String),
        metadata: Value,
        attributes: Map<String, Value>,
    ) -> Result<Self, String> {
        let metadata: ArrayMetadataV2 = serde_json::from_value(metadata).map_err(text)?;
        let dims = metadata.shape.len();
        let filters = metadata.filters.unwrap_or_default();
        let (element, big) = match (metadata.dtype.to_string().as_str(), filters.first().map(MetadataV2::id)) {
            ("|O", Some("vlen-utf8")) => (Element::Text, false),
            ("|O", Some("vlen-bytes")) => (Element::Bytes, false),
            (dtype, _) => element2(dtype)?,
        };
        let endian = json!({"endian": if big { "big" } else { "little" }});
        let mut array = vec![extension("bytes", endian)?];
        if metadata.order == ArrayMetadataV2Order::F {
            array.insert(0, extension("transpose", json!({"order": (0..dims).rev().collect::<Vec<_>>()}))?);
        }
        let data_type = data_type(&element)?;
        let keys = extension("v2", json!({"separator": metadata.dimension_separator}))?;
        Ok(Self {
            path,
            folder,
            chunk: metadata.chunks,
            fill: fill(&element, &data_type, &json!(metadata.fill_value))?,
            chain: Chain::version2(&array, dims, &[filters, metadata.compressor.into_iter().collect()].concat())?,
            data_type,
            element,
            sharding: None,
            keys: ChunkKeyEncoding::from_metadata(&keys).map_err(text)?,
            shape: metadata.shape,
            attributes,
        })
    }

    /// Elements per dimension of the smallest chunks that can be unpacked individually.
    pub(super) fn unit(&self) -> &ChunkShape {
        self.sharding.as_ref().map_or(&self.chunk, |sharding| &sharding.chunk)
    }

    /// Checks that the sizes are consistent and that no chunk is too large.
    fn check(&self) -> Result<(), String> {
        let (chunk, unit, shape) = (&self.chunk, self.unit(), &self.shape);
        if chunk.len() != shape.len() {
            return Err(format!("expected chunks with as many dimensions as the array {shape:?}, found {chunk:?}"));
        }
        let mut inner = unit.iter().zip(chunk);
        if unit.len() != chunk.len() || !inner.all(|(unit, chunk)| chunk.get() % unit.get() == 0) {
            return Err(format!(
                "expected a shard shape that is a multiple of the chunk shape {unit:?}, found {chunk:?}"
            ));
        }
        if self.chain.is_variable() != matches!(self.element, Element::Text | Element::Bytes) {
            return Err(format!("the codecs cannot store elements of type {:?}", self.element));
        }
        // A chunk of variable-length items also stores the length of each item.
        let bytes = if self.chain.is_variable() { 4 } else { self.element_bytes() };
        let bytes = unit.iter().try_fold(bytes, |n, dim| n.checked_mul(dim.get()));
        match bytes {
            Some(bytes) if bytes <= MAX_BAND_BYTES => Ok(()),
            _ => Err(format!("expected chunks of at most 1 GiB, found chunks of {unit:?} elements")),
        }
    }

    /// Bytes per element in memory. 1 if elements have variable lengths.
    pub(super) fn element_bytes(&self) -> u64 {
        match &self.element {
            Element::Number(dtype) => dtype.size(),
            Element::FixedText { bytes, .. } => *bytes,
            Element::Text | Element::Bytes => 1,
        }
    }
}

fn element3(name: &Value) -> Result<Element, String> {
    let unknown = || format!("elements of type {name} are not supported");
    let bytes = name.get("configuration").and_then(|c| c.get("length_bytes"));
    let fixed = |wide| {
        let bytes = bytes.and_then(Value::as_u64).filter(|n| (1..1 << 22).contains(n));
        let bytes = bytes.ok_or_else(unknown)?;
        Ok(Element::FixedText { bytes, wide })
    };
    let text = name.as_str().or_else(|| name.get("name")?.as_str());
    let number = match text.unwrap_or_default() {
        "string" => return Ok(Element::Text),
        "bytes" | "variable_length_bytes" => return Ok(Element::Bytes),
        "fixed_length_utf32" => return fixed(true),
        "null_terminated_bytes" | "fixed_length_ascii" => return fixed(false),
        name => DType::from_numpy_name(name).ok_or_else(unknown)?,
    };
    Ok(Element::Number(number))
}

/// Parses a NumPy type string. Also returns whether the elements are big-endian.
fn element2(dtype: &str) -> Result<(Element, bool), String> {
    let unknown = || format!("elements of type {dtype} are not supported");
    let (order, kind) = dtype.split_at_checked(1).ok_or_else(unknown)?;
    let big = order == ">";
    let length = |text: &str| text.parse::<u64>().ok().filter(|n| (1..1 << 20).contains(n));
    if let Some(dtype) = of_numpy_kind(kind.as_bytes()) {
        return Ok((Element::Number(dtype), big));
    }
    let (bytes, wide) = match kind.split_at_checked(1) {
        Some(("S", n)) => (length(n), false),
        Some(("U", n)) if !big => (length(n).map(|n| n * 4), true),
        _ => (None, false),
    };
    Ok((Element::FixedText { bytes: bytes.ok_or_else(unknown)?, wide }, false))
}

/// The zarrs type for a fixed-size element. Strings are treated as raw bytes.
fn data_type(element: &Element) -> Result<DataType, String> {
    let name = match element {
        Element::Number(dtype) => dtype.numpy_name().to_owned(),
        Element::FixedText { bytes, .. } => format!("r{}", bytes.saturating_mul(8)),
        Element::Text | Element::Bytes => "uint8".to_owned(),
    };
    DataType::from_metadata(&MetadataV3::new(name)).map_err(text)
}

/// The value of unwritten elements. Unwritten strings are empty.
fn fill(element: &Element, data_type: &DataType, value: &Value) -> Result<FillValue, String> {
    let zeros = || FillValue::new(vec![0; data_type.fixed_size().unwrap_or(0)]);
    let value = match (element, value) {
        (Element::Number(DType::Bool), Value::Number(number)) => json!(number.as_f64() != Some(0.0)),
        (Element::Number(_), value) if !value.is_null() => value.clone(),
        _ => return Ok(zeros()),
    };
    let unknown = || format!("{value} is not a valid fill value for {element:?}");
    let metadata = serde_json::from_value(value.clone()).map_err(|_| unknown())?;
    data_type.fill_value_v3(&metadata).map_err(|_| unknown())
}
