//! A Zarr array as described by its metadata, in either version.
//!
//! `chunks` reads its chunks.

use std::path::{Path, PathBuf};

use packds_format::DType;
use packds_system::{read_regular, to_usize};
use serde_json::{Map, Value};

use super::codec::{Chain, Packing, ToBytes};
use crate::error::ConvertError;
use crate::source::grid::MAX_BAND_BYTES;

/// Most bytes of metadata to read.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// The element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Number(DType),
    /// Texts of this many bytes, with one or four bytes per character.
    FixedText {
        bytes: u64,
        wide: bool,
    },
    Text,
    Bytes,
}

/// An array.
#[derive(Debug, Clone)]
pub(super) struct Array {
    /// Its name including its groups.
    pub(super) path: String,
    pub(super) folder: PathBuf,
    pub(super) shape: Vec<u64>,
    /// Elements of a stored chunk in each dimension.
    pub(super) chunk: Vec<u64>,
    pub(super) element: Element,
    /// The value of unwritten elements.
    pub(super) fill: Vec<u8>,
    pub(super) chain: Chain,
    /// The prefix of chunk names, and the separator between their numbers.
    pub(super) key: (&'static str, char),
    pub(super) attributes: Map<String, Value>,
}

/// Reads a metadata file.
pub(super) fn json(path: &Path) -> Result<Value, ConvertError> {
    let bytes = std::fs::metadata(path)
        .map_err(ConvertError::io(path))?
        .len();
    if bytes > MAX_METADATA_BYTES {
        let reason = format!("{bytes} bytes of metadata");
        return Err(ConvertError::malformed(path, "", reason));
    }
    let text = read_regular(path).map_err(ConvertError::io(path))?;
    serde_json::from_slice(&text).map_err(|e| ConvertError::malformed(path, "", e.to_string()))
}

/// The numbers of a list.
fn numbers(value: Option<&Value>) -> Option<Vec<u64>> {
    value?.as_array()?.iter().map(Value::as_u64).collect()
}

impl Array {
    /// Parses version 3's metadata, or version 2's with its attributes.
    pub(super) fn parse(
        folder: &Path,
        path: String,
        metadata: &Value,
        attributes: Map<String, Value>,
    ) -> Result<Self, ConvertError> {
        let parsed = match metadata.get("zarr_format").and_then(Value::as_u64) {
            Some(3) => Self::version3(folder, path.clone(), metadata),
            Some(2) => Self::version2(folder, path.clone(), metadata, attributes),
            Some(other) => Err(format!("expected the Zarr version 2 or 3, found {other}")),
            None => Err("expected the Zarr version 2 or 3, found none".to_owned()),
        };
        let array = parsed.map_err(|reason| {
            ConvertError::unsupported(
                folder,
                &path,
                reason,
                "write the array again with zarr-python and codecs of the list",
            )
        })?;
        array
            .check()
            .map_err(|reason| ConvertError::malformed(folder, &path, reason))?;
        Ok(array)
    }

    fn version3(folder: &Path, path: String, metadata: &Value) -> Result<Self, String> {
        let shape = numbers(metadata.get("shape")).ok_or("no shape")?;
        let at = |name: &str, key: &str| metadata.get(name)?.get("configuration")?.get(key);
        let grid = metadata.get("chunk_grid").and_then(|g| g.get("name"));
        if grid.and_then(Value::as_str) != Some("regular") {
            return Err("a chunk grid other than 'regular'".to_owned());
        }
        let chunk = numbers(at("chunk_grid", "chunk_shape")).ok_or("no chunk_shape")?;
        let encoding = metadata.get("chunk_key_encoding");
        let encoding = encoding.and_then(|e| e.as_str().or_else(|| e.get("name")?.as_str()));
        let separator = at("chunk_key_encoding", "separator").and_then(Value::as_str);
        let key = match (encoding, separator) {
            (Some("default"), None | Some("/")) => ("c", '/'),
            (Some("default"), Some(".")) => ("c", '.'),
            (Some("v2"), None | Some(".")) => ("", '.'),
            (Some("v2"), Some("/")) => ("", '/'),
            (encoding, separator) => {
                let (encoding, separator) =
                    (encoding.unwrap_or("none"), separator.unwrap_or("none"));
                return Err(format!(
                    "names of chunks with the encoding {encoding} and the separator {separator}"
                ));
            }
        };
        let transformers = metadata
            .get("storage_transformers")
            .and_then(Value::as_array);
        if transformers.is_some_and(|list| !list.is_empty()) {
            return Err("storage transformers".to_owned());
        }
        let element = element3(metadata.get("data_type").unwrap_or(&Value::Null))?;
        let fill = metadata.get("fill_value").unwrap_or(&Value::Null);
        let attributes = metadata.get("attributes").and_then(Value::as_object);
        let codecs = metadata.get("codecs").unwrap_or(&Value::Null);
        Ok(Self {
            path,
            folder: folder.to_owned(),
            chain: Chain::parse(codecs, shape.len(), false)?,
            fill: fill_bytes(&element, fill)?,
            shape,
            chunk,
            element,
            key,
            attributes: attributes.cloned().unwrap_or_default(),
        })
    }

    fn version2(
        folder: &Path,
        path: String,
        metadata: &Value,
        attributes: Map<String, Value>,
    ) -> Result<Self, String> {
        let shape = numbers(metadata.get("shape")).ok_or("no shape")?;
        let chunk = numbers(metadata.get("chunks")).ok_or("no chunks")?;
        let text = |key: &str| metadata.get(key).and_then(Value::as_str);
        let filters = metadata.get("filters").and_then(Value::as_array);
        let filters = filters.into_iter().flatten().map(|f| f.get("id")?.as_str());
        let filters: Vec<&str> = filters.map(Option::unwrap_or_default).collect();
        let dtype = text("dtype").ok_or("a dtype that is no text")?;
        let (element, big) = match (dtype, filters.as_slice()) {
            ("|O", ["vlen-utf8"]) => (Element::Text, false),
            ("|O", ["vlen-bytes"]) => (Element::Bytes, false),
            (dtype, []) => element2(dtype)?,
            (dtype, filters) => {
                return Err(format!(
                    "the filters {} of {dtype}; only vlen-utf8 and vlen-bytes of |O are known",
                    filters.join(", ")
                ));
            }
        };
        let packing = match metadata.get("compressor") {
            None | Some(Value::Null) => Vec::new(),
            Some(compressor) => {
                let id = compressor.get("id").and_then(Value::as_str);
                vec![Packing::named(id.unwrap_or_default())?]
            }
        };
        let transpose = match text("order") {
            Some("F") => Some((0..shape.len()).rev().collect()),
            _ => None,
        };
        let key = match text("dimension_separator") {
            None | Some(".") => ("", '.'),
            Some("/") => ("", '/'),
            Some(other) => return Err(format!("names of chunks with '{other}' in them")),
        };
        let variable = matches!(element, Element::Text | Element::Bytes);
        let fill = metadata.get("fill_value").unwrap_or(&Value::Null);
        Ok(Self {
            path,
            folder: folder.to_owned(),
            fill: fill_bytes(&element, fill)?,
            shape,
            chunk,
            chain: Chain {
                transpose,
                to_bytes: match variable {
                    true => ToBytes::Variable,
                    false => ToBytes::Plain { big },
                },
                packing,
            },
            element,
            key,
            attributes,
        })
    }

    /// Checks that the sizes are consistent and that no chunk is too large.
    fn check(&self) -> Result<(), String> {
        let fits = |inner: &[u64], outer: &[u64]| {
            inner.len() == outer.len()
                && !inner.contains(&0)
                && inner.iter().zip(outer).all(|(i, o)| o % i == 0)
        };
        if self.chunk.len() != self.shape.len() || self.chunk.contains(&0) {
            return Err(format!(
                "chunks of {:?} of an array of {:?}",
                self.chunk, self.shape
            ));
        }
        let mut unit = &self.chunk;
        if let ToBytes::Shard(sharding) = &self.chain.to_bytes {
            if !fits(&sharding.chunk, &self.chunk) {
                return Err(format!(
                    "shards of {:?} of chunks of {:?}",
                    self.chunk, sharding.chunk
                ));
            }
            unit = &sharding.chunk;
        }
        let bytes = unit
            .iter()
            .copied()
            .try_fold(self.element_bytes(), u64::checked_mul);
        match bytes {
            Some(bytes) if bytes <= MAX_BAND_BYTES => Ok(()),
            _ => Err(format!(
                "chunks of {unit:?} elements, which are more than 1 GiB"
            )),
        }
    }

    /// Bytes per element in memory; 1 if variable.
    pub(super) fn element_bytes(&self) -> u64 {
        match &self.element {
            Element::Number(dtype) => dtype.size(),
            Element::FixedText { bytes, .. } => *bytes,
            Element::Text | Element::Bytes => 1,
        }
    }
}

fn element3(name: &Value) -> Result<Element, String> {
    let unknown = || format!("elements of the type {name}");
    let bytes = name
        .get("configuration")
        .and_then(|c| c.get("length_bytes"));
    let fixed = |wide| {
        let bytes = bytes.and_then(Value::as_u64).filter(|n| *n > 0);
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

/// The elements of a NumPy type, and whether they are big-endian.
fn element2(dtype: &str) -> Result<(Element, bool), String> {
    let unknown = || format!("elements of the type {dtype}");
    let (order, kind) = dtype.split_at_checked(1).ok_or_else(unknown)?;
    let big = order == ">";
    let length = |text: &str| {
        text.parse::<u64>()
            .ok()
            .filter(|n| (1..1 << 20).contains(n))
    };
    let number = match kind {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => {
            let (bytes, wide) = match kind.split_at_checked(1) {
                Some(("S", n)) => (length(n), false),
                Some(("U", n)) if !big => (length(n).map(|n| n * 4), true),
                _ => (None, false),
            };
            let bytes = bytes.ok_or_else(unknown)?;
            return Ok((Element::FixedText { bytes, wide }, false));
        }
    };
    Ok((Element::Number(number), big))
}

/// The bytes of an element with this value.
fn fill_bytes(element: &Element, value: &Value) -> Result<Vec<u8>, String> {
    let Element::Number(dtype) = element else {
        let bytes = match element {
            Element::FixedText { bytes, .. } => to_usize(*bytes),
            _ => 0,
        };
        return Ok(vec![0; bytes]);
    };
    let size = to_usize(dtype.size());
    let unknown = || format!("the fill value {value} of {dtype}");
    let float = match value {
        Value::Null => return Ok(vec![0; size]),
        Value::Bool(on) => f64::from(u8::from(*on)),
        Value::String(text) => match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => return Err(unknown()),
        },
        other => other.as_f64().ok_or_else(unknown)?,
    };
    let whole = value.as_i64().map(i64::to_le_bytes);
    let whole = whole.or_else(|| value.as_u64().map(u64::to_le_bytes));
    let bytes = match dtype {
        DType::F16 => half::f16::from_f64(float).to_le_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(float).to_le_bytes().to_vec(),
        DType::F32 => value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
            .parse::<f32>()
            .map_err(|_| unknown())?
            .to_le_bytes()
            .to_vec(),
        DType::F64 => float.to_le_bytes().to_vec(),
        DType::Bool => vec![u8::from(float > 0.0)],
        _ => whole.ok_or_else(unknown)?.to_vec(),
    };
    bytes.get(..size).map(<[u8]>::to_vec).ok_or_else(unknown)
}
