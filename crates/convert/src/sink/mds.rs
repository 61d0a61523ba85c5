//! MosaicML Streaming's MDS: a folder of shards with an `index.json`. The pack's metadata is in `packds.json`.

use std::fs;
use std::path::PathBuf;

use packds_format::DType;
use serde_json::{Value, json};

use super::sized_samples::{Encoding, SizedEncoder, SizedSamples, Values};
use super::sized_shards::{SHARD_BYTES, SizedShards};
use super::{Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;
use crate::source::INDEX;

/// The only version that was ever published.
const VERSION: u32 = 2;

pub(crate) struct MdsSink {
    folder: PathBuf,
    shards: SizedShards,
    encoder: SizedEncoder,
    /// What the index says of each shard.
    config: Value,
    metadata: String,
    lost: Vec<String>,
}

impl Sink for MdsSink {
    type Encoder = SizedEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let mut lost = Vec::new();
        let encoder = SizedEncoder::of(start, encoding, &mut lost);
        let columns = || encoder.columns.iter();
        let config = json!({
            "column_encodings": columns().map(|column| column.encoding.name.as_str()).collect::<Vec<_>>(),
            "column_names": columns().map(|column| column.name.as_str()).collect::<Vec<_>>(),
            "column_sizes": columns().map(|column| column.encoding.fixed).collect::<Vec<_>>(),
            "compression": null,
            "format": "mds",
            "hashes": [],
            "size_limit": start.options.shard_samples.is_none().then_some(SHARD_BYTES),
            "version": VERSION,
        });
        let name = |number| format!("shard.{number:05}.mds");
        Ok(Self {
            folder: start.path.to_owned(),
            shards: SizedShards::new(start, config.to_string().into_bytes(), name),
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
        let mut shards = Vec::new();
        for shard in self.shards.finish()? {
            let mut entry = self.config.clone();
            entry["raw_data"] = json!({ "basename": shard.name, "bytes": shard.bytes, "hashes": {} });
            entry["samples"] = shard.samples.into();
            entry["zip_data"] = Value::Null;
            shards.push(entry);
        }
        let index = json!({ "shards": shards, "version": VERSION }).to_string();
        for (name, text) in [(INDEX, index), (METADATA_FILE, self.metadata)] {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(ConvertError::io(&path))?;
        }
        Ok(self.lost)
    }
}

/// MDS has no bool and no bf16. They are written as integers, and the metadata says what they are.
fn encoding(values: &Values<'_>) -> Encoding {
    let name = match values {
        Values::Ids => return Encoding { fixed: Some(DType::I64.size()), ..Encoding::stated("int") },
        Values::Arrays(array) => {
            let dtype = match array.dtype {
                DType::Bool => DType::U8,
                DType::Bf16 => DType::U16,
                dtype => dtype,
            };
            let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
            let name = match shape.as_slice() {
                [] => dtype.numpy_name().to_owned(),
                shape => format!("ndarray:{}:{}", dtype.numpy_name(), shape.join(",")),
            };
            return Encoding { fixed: array.bytes(), ..Encoding::stated(name) };
        }
        Values::Files(Some("jpg")) => "jpeg",
        Values::Files(Some("png")) => "png",
        Values::Files(_) | Values::Bytes => "bytes",
        Values::Text => "str",
        Values::Json => "json",
    };
    Encoding::stated(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::ImagesAs;
    use crate::sink::test_pack::{assert_same, back, pack_of, to, typed_fields};

    fn options(shard_samples: Option<u64>) -> ExportOptions {
        ExportOptions { to: Some(DataFormat::Mds), shard_samples, jobs: 2, ..ExportOptions::default() }
    }

    fn index(folder: &std::path::Path) -> Value {
        serde_json::from_slice(&fs::read(folder.join(INDEX)).unwrap()).unwrap()
    }

    #[test]
    fn everything_comes_back_from_one_shard_and_from_several() {
        let (pack, folder) = (pack_of(10, typed_fields()), tempfile::tempdir().unwrap());
        for (name, shard, n_shards) in [("one", None, 1), ("some", Some(4), 3)] {
            let target = folder.path().join(name);
            let report = to(&pack, &target, &options(shard)).unwrap();
            assert_eq!(report.lost, Vec::<String>::new());
            assert_eq!(index(&target)["shards"].as_array().unwrap().len(), n_shards);
            let again = back(&target, None);
            assert_same(&pack, &again);
            assert_eq!(again.path(3).unwrap(), pack.path(3).unwrap());
        }
    }

    #[test]
    fn each_field_has_the_encoding_of_its_type() {
        let (pack, folder) = (pack_of(3, typed_fields()), tempfile::tempdir().unwrap());
        for (images, expected) in [(None, "ndarray:uint8:4,6,3"), (Some(ImagesAs::Files), "png")] {
            let target = folder.path().join(expected);
            to(&pack, &target, &ExportOptions { images, ..options(None) }).unwrap();
            let index = index(&target);
            let shard = &index["shards"][0];
            let list = |name: &str| shard[name].as_array().unwrap().clone();
            let encodings = list("column_names").into_iter().zip(list("column_encodings"));
            let encodings: Vec<(String, String)> =
                encodings.map(|(a, b)| (a.as_str().unwrap().to_owned(), b.as_str().unwrap().to_owned())).collect();
            let of = |name: &str| encodings.iter().find(|(own, _)| own == name).unwrap().1.as_str();
            assert_eq!(of("image"), expected);
            for (name, encoding) in [
                ("points", "ndarray:float32:2,3"),
                ("bits", "ndarray:uint8:3,4"),
                ("column_bf16", "uint16"),
                ("caption", "str"),
                ("meta", "json"),
                ("angle", "int16"),
                ("weight", "float64"),
                ("flag", "uint8"),
                ("label", "int"),
                ("path", "str"),
            ] {
                assert_eq!(of(name), encoding, "{name}");
            }
            assert_same(&pack, &back(&target, None));
        }
    }

    #[test]
    fn the_same_bytes_at_any_number_of_threads_and_no_time() {
        let (pack, folder) = (pack_of(10, typed_fields()), tempfile::tempdir().unwrap());
        let written = [1, 3].map(|jobs| {
            let target = folder.path().join(jobs.to_string());
            to(&pack, &target, &ExportOptions { jobs, ..options(Some(3)) }).unwrap();
            ["index.json", "shard.00000.mds", "shard.00003.mds"].map(|name| fs::read(target.join(name)).unwrap())
        });
        assert_eq!(written[0], written[1]);
    }
}
