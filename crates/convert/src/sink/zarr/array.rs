//! The metadata of the arrays in an exported Zarr group, in both versions.
//!
//! `chunk` writes their chunks.

use packds_format::{DType, Field};
use serde_json::{Value, json};

use crate::export::ExportCodec;
use crate::source::CLASSES_ATTRIBUTE;
use crate::source::store::ArrayType;

/// The compression level for Blosc. For other codecs, the options contain the level.
pub(super) const BLOSC_LEVEL: u8 = 5;

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Numbers(ArrayType),
    Texts,
    /// Variable-length bytes for each sample.
    Bytes,
}

#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The names of the dimensions after the first.
    pub(super) dims: Vec<String>,
    pub(super) classes: Vec<String>,
}

/// The chunking and compression of all arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// The Zarr version, 2 or 3.
    pub(super) version: u8,
    pub(super) n_samples: u64,
    pub(super) chunk: u64,
    /// Samples per shard, a multiple of the samples per chunk.
    pub(super) shard: Option<u64>,
    pub(super) codec: ExportCodec,
}

pub(super) fn dims(field: &Field, name: &str, shape: &[u64]) -> Vec<String> {
    let layout = field.layout.as_deref().unwrap_or_default();
    let letters: Vec<char> = layout.chars().collect();
    let dim = |idx: usize| match letters.get(idx) {
        Some('h') => "height".to_owned(),
        Some('w') => "width".to_owned(),
        Some('c') => "channel".to_owned(),
        _ => format!("{name}_{idx}"),
    };
    (0..shape.len()).map(dim).collect()
}

impl Array {
    /// The lengths of the dimensions after the first.
    fn shape(&self) -> &[u64] {
        match &self.kind {
            Kind::Numbers(array) => &array.shape,
            _ => &[],
        }
    }

    /// Size of an element in bytes. 1 if samples have variable length.
    pub(super) fn element_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Numbers(array) => array.dtype.size(),
            _ => 1,
        }
    }

    /// Size of a sample in bytes. `None` if samples have variable length.
    pub(super) fn sample_bytes(&self) -> Option<u64> {
        let shape = self.shape().iter();
        let bytes = shape.fold(self.element_bytes(), |n, dim| n.saturating_mul(*dim));
        matches!(self.kind, Kind::Numbers(_)).then_some(bytes)
    }

    fn of_samples(&self, samples: u64) -> Vec<u64> {
        [&[samples], self.shape()].concat()
    }

    fn attributes(&self) -> Value {
        if self.classes.is_empty() { json!({}) } else { json!({CLASSES_ATTRIBUTE: self.classes}) }
    }

    /// The file name of chunk (or shard) `number` along the first dimension.
    pub(super) fn key(&self, version: u8, number: u64) -> String {
        let rest = ".0".repeat(self.shape().len());
        match version {
            2 => format!("{number}{rest}"),
            _ => format!("c.{number}{rest}"),
        }
    }

    /// The names and contents of the metadata files.
    pub(super) fn files(&self, grid: &Grid) -> Vec<(&'static str, Value)> {
        match grid.version {
            2 => vec![(".zarray", self.version2(grid)), (".zattrs", self.attributes())],
            _ => vec![("zarr.json", self.version3(grid))],
        }
    }

    fn version2(&self, grid: &Grid) -> Value {
        let (dtype, fill, filters) = match &self.kind {
            Kind::Numbers(array) => (array.dtype.numpy_typestr(), fill(array.dtype), Value::Null),
            Kind::Texts => ("|O", json!(""), json!([{"id": "vlen-utf8"}])),
            Kind::Bytes => ("|O", json!(""), json!([{"id": "vlen-bytes"}])),
        };
        let compressor = match grid.codec {
            ExportCodec::Gzip(level) => json!({"id": "gzip", "level": level}),
            ExportCodec::Zstd(level) => json!({"id": "zstd", "level": level}),
            ExportCodec::Blosc => json!({
                "id": "blosc",
                "cname": "lz4",
                "clevel": BLOSC_LEVEL,
                "shuffle": u8::from(self.element_bytes() > 1),
                "blocksize": 0,
            }),
            _ => Value::Null,
        };
        json!({
            "zarr_format": 2,
            "shape": self.of_samples(grid.n_samples),
            "chunks": self.of_samples(grid.chunk),
            "dtype": dtype,
            "fill_value": fill,
            "order": "C",
            "filters": filters,
            "compressor": compressor,
            "dimension_separator": ".",
        })
    }

    fn version3(&self, grid: &Grid) -> Value {
        let (dtype, fill) = match &self.kind {
            Kind::Numbers(array) => (array.dtype.numpy(), fill(array.dtype)),
            Kind::Texts => ("string", json!("")),
            Kind::Bytes => ("variable_length_bytes", json!("")),
        };
        let mut dims = vec!["sample"];
        dims.extend(self.dims.iter().map(String::as_str));
        let (stored, codecs) = match grid.shard {
            None => (grid.chunk, self.codecs(grid.codec)),
            Some(shard) => (shard, vec![self.sharding(grid)]),
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.of_samples(grid.n_samples),
            "data_type": dtype,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": self.of_samples(stored)},
            },
            // With dots, each array has a single folder. With slashes, every chunk would get several folders.
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": fill,
            "codecs": codecs,
            "attributes": self.attributes(),
            "dimension_names": dims,
            "storage_transformers": [],
        })
    }

    fn sharding(&self, grid: &Grid) -> Value {
        json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": self.of_samples(grid.chunk),
            "codecs": self.codecs(grid.codec),
            "index_codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
            "index_location": "end",
        }})
    }

    fn codecs(&self, codec: ExportCodec) -> Vec<Value> {
        let mut codecs = vec![match &self.kind {
            Kind::Numbers(_) => json!({"name": "bytes", "configuration": {"endian": "little"}}),
            Kind::Texts => json!({"name": "vlen-utf8"}),
            Kind::Bytes => json!({"name": "vlen-bytes"}),
        }];
        let element = self.element_bytes();
        match codec {
            ExportCodec::Gzip(level) => {
                codecs.push(json!({"name": "gzip", "configuration": {"level": level}}));
            }
            ExportCodec::Zstd(level) => codecs.push(json!({
                "name": "zstd",
                "configuration": {"level": level, "checksum": false},
            })),
            ExportCodec::Blosc => codecs.push(json!({"name": "blosc", "configuration": {
                "typesize": element,
                "cname": "lz4",
                "clevel": BLOSC_LEVEL,
                "shuffle": if element > 1 { "shuffle" } else { "noshuffle" },
                "blocksize": 0,
            }})),
            _ => {}
        }
        codecs
    }
}

fn fill(dtype: DType) -> Value {
    match dtype {
        DType::Bool => json!(false),
        DType::F16 | DType::F32 | DType::F64 => json!(0.0),
        _ => json!(0),
    }
}
