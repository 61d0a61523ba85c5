//! LitData: a folder of chunks with an `index.json`. The pack's metadata is in `packds.json`. Nothing is pickled.

use std::fs;
use std::path::PathBuf;

use packds_format::DType;
use packds_system::to_u64;
use serde_json::{Value, json};

use super::sized_samples::{Encoding, SizedEncoder, SizedSamples, Values};
use super::sized_shards::{SHARD_BYTES, Shard, SizedShards};
use super::{Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;
use crate::source::store::ArrayType;
use crate::source::{INDEX, litdata};

pub(crate) struct LitDataSink {
    folder: PathBuf,
    shards: SizedShards,
    encoder: SizedEncoder,
    config: Value,
    metadata: String,
    lost: Vec<String>,
}

impl Sink for LitDataSink {
    type Encoder = SizedEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let mut lost = Vec::new();
        let encoder = SizedEncoder::of(start, encoding, &mut lost);
        let formats: Vec<&str> = encoder.columns.iter().map(|column| column.encoding.name.as_str()).collect();
        let names: Vec<&str> = encoder.columns.iter().map(|column| column.name.as_str()).collect();
        let shard = start.options.shard_samples;
        let config = json!({
            "chunk_bytes": shard.is_none().then_some(SHARD_BYTES),
            "chunk_size": shard,
            "compression": null,
            "data_format": formats,
            "data_spec": dictionary(&names),
            "encryption": null,
            "item_loader": "PyTreeLoader",
        });
        Ok(Self {
            folder: start.path.to_owned(),
            shards: SizedShards::new(start, Vec::new(), |number| format!("chunk-0-{number}.bin")),
            encoder,
            config,
            metadata: start.metadata.to_text(),
            lost,
        })
    }

    fn encoder(&self) -> SizedEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: SizedSamples) -> Result<(), ConvertError> {
        self.shards.add(&ready)
    }

    fn finish(self) -> Result<Vec<String>, ConvertError> {
        let chunks: Vec<Value> = self.shards.finish()?.into_iter().map(chunk).collect();
        let index = json!({ "chunks": chunks, "config": self.config }).to_string();
        for (name, text) in [(INDEX, index), (METADATA_FILE, self.metadata)] {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(ConvertError::io(&path))?;
        }
        Ok(self.lost)
    }
}

/// What the index says of a chunk.
fn chunk(shard: Shard) -> Value {
    json!({
        "chunk_bytes": shard.bytes,
        "chunk_size": shard.samples,
        "dim": null,
        "filename": shard.name,
    })
}

/// The text that PyTorch writes for the tree of a dictionary with these keys.
fn dictionary(keys: &[&str]) -> String {
    let leaves = keys.iter().map(|_| json!({ "type": null, "context": null, "children_spec": [] }));
    let leaves: Vec<Value> = leaves.collect();
    let keys = json!(keys).to_string();
    json!([1, { "type": "builtins.dict", "context": keys, "children_spec": leaves }]).to_string()
}

fn encoding(values: &Values<'_>) -> Encoding {
    Encoding::stated(match values {
        Values::Ids => "int",
        Values::Arrays(array) => return array_encoding(array),
        Values::Files(Some("jpg")) => "jpeg",
        Values::Files(_) | Values::Bytes => "bytes",
        Values::Text => "str",
        Values::Json => "json",
    })
}

/// Numbers are Python numbers if these have their type. Arrays are tensors if PyTorch has their type. A vector has no
/// shape before its values.
fn array_encoding(array: &ArrayType) -> Encoding {
    let find = |types: &[Option<DType>]| types.iter().position(|dtype| *dtype == Some(array.dtype));
    let (number, kind, bytes): (_, _, fn(u32) -> [u8; 4]) = match find(&litdata::TORCH) {
        Some(number) => (number, "tensor", u32::to_be_bytes),
        None => (find(&litdata::NUMPY).unwrap_or_default(), "numpy", u32::to_le_bytes),
    };
    match (array.dtype, array.shape.as_slice()) {
        (DType::I64, []) => Encoding::stated("int"),
        (DType::F64, []) => Encoding::stated("float"),
        (DType::Bool, []) => Encoding::stated("bool"),
        (_, [_]) => Encoding::stated(format!("no_header_{kind}:{number}")),
        (_, shape) => {
            let head = [to_u64(number), to_u64(shape.len())].into_iter().chain(shape.iter().copied());
            // A dimension of 2^32 exceeds the maximum size of an item of a sample.
            let prefix = head.flat_map(|number| bytes(u32::try_from(number).unwrap_or(u32::MAX)));
            Encoding { prefix: prefix.collect(), ..Encoding::stated(kind) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::ImagesAs;
    use crate::sink::test_pack::{assert_same, back, pack_of, to, typed_fields};

    fn options(shard_samples: Option<u64>) -> ExportOptions {
        ExportOptions { to: Some(DataFormat::LitData), shard_samples, jobs: 2, ..ExportOptions::default() }
    }

    fn index(folder: &std::path::Path) -> Value {
        serde_json::from_slice(&fs::read(folder.join(INDEX)).unwrap()).unwrap()
    }

    #[test]
    fn everything_comes_back_from_one_chunk_and_from_several() {
        let (pack, folder) = (pack_of(10, typed_fields()), tempfile::tempdir().unwrap());
        for (name, shard, images, n_chunks) in
            [("one", None, None, 1), ("some", Some(4), None, 3), ("files", Some(10), Some(ImagesAs::Files), 1)]
        {
            let target = folder.path().join(name);
            let report = to(&pack, &target, &ExportOptions { images, ..options(shard) }).unwrap();
            assert_eq!(report.lost, Vec::<String>::new());
            assert_eq!(index(&target)["chunks"].as_array().unwrap().len(), n_chunks);
            let again = back(&target, None);
            assert_same(&pack, &again);
            assert_eq!(again.path(3).unwrap(), pack.path(3).unwrap());
        }
    }

    #[test]
    fn each_field_has_the_serializer_of_its_type() {
        let (pack, folder) = (pack_of(3, typed_fields()), tempfile::tempdir().unwrap());
        to(&pack, &folder.path().join("out"), &options(None)).unwrap();
        let index = index(&folder.path().join("out"));
        let formats = index["config"]["data_format"].as_array().unwrap();
        let spec = index["config"]["data_spec"].as_str().unwrap();
        let spec: Value = serde_json::from_str(spec).unwrap();
        let names: Vec<String> = serde_json::from_str(spec[1]["context"].as_str().unwrap()).unwrap();
        let of = |name: &str| formats[names.iter().position(|own| own == name).unwrap()].as_str().unwrap();
        for (name, serializer) in [
            ("image", "tensor"),
            ("points", "tensor"),
            ("vector", "no_header_tensor:0"),
            ("words", "no_header_numpy:6"),
            ("caption", "str"),
            ("meta", "json"),
            ("angle", "tensor"),
            ("column_u64", "numpy"),
            ("weight", "float"),
            ("flag", "bool"),
            ("label", "int"),
            ("path", "str"),
        ] {
            assert_eq!(of(name), serializer, "{name}");
        }
    }
}
