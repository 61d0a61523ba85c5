//! TFRecord: a file, or a folder of files, with `tf.Example` messages. A frame with two checksums encloses each
//! message.

use packds_format::{DType, Field, Role, Scalar, crc32c};
use packds_pixels::probe;
use packds_system::to_u64;

use super::protobuf::{bytes_field, varint};
use super::shard_files::{Piece, ShardFiles, Spread, gzip_level};
use super::{Batch, Encode, Exported, ExportedField, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;
use crate::opt::SHARD;

pub(crate) struct TfRecordSink {
    files: ShardFiles,
    encoder: ExampleEncoder,
    metadata: String,
    lost: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct ExampleEncoder {
    exported: Exported,
    classes: Vec<String>,
    spread: Spread,
    level: Option<u32>,
}

impl Sink for TfRecordSink {
    type Encoder = ExampleEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let spread = Spread::of(start);
        let files = ShardFiles::create(start);
        let mut lost = Vec::new();
        if !files.is_folder() {
            lost.push(format!(
                "the pack's metadata (a single TFRecord file cannot store it). When the file is read back, small integers and bool become int64, JSON becomes text, gray pixels become rgb, and channels-first pixels become hwc. Normalization, statistics, provenance and classes without samples are lost. To keep everything, export to a folder ({}).",
                SHARD.with("N")
            ));
        }
        Ok(Self {
            files,
            encoder: ExampleEncoder {
                exported: start.exported.clone(),
                classes: start.metadata.class_names("label").to_vec(),
                spread,
                level: gzip_level(start),
            },
            metadata: start.metadata.to_text(),
            lost,
        })
    }

    fn encoder(&self) -> ExampleEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Vec<Piece>) -> Result<(), ConvertError> {
        let n_files = self.encoder.spread.n_files();
        let end = if self.encoder.level.is_some() { ".gz" } else { "" };
        self.files.put(ready, |number| format!("data.tfrecord-{number:05}-of-{n_files:05}{end}"))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.files.end()?;
        self.files.beside(METADATA_FILE, &self.metadata)?;
        Ok(self.lost)
    }
}

impl Encode for ExampleEncoder {
    type Ready = Vec<Piece>;

    fn encode(&self, batch: Batch) -> Result<Vec<Piece>, ConvertError> {
        self.spread.pieces(&batch, self.level, (&[], &[]), |k, _, bytes| {
            frame(&self.example(&batch, k), bytes);
            Ok(())
        })
    }
}

fn frame(record: &[u8], out: &mut Vec<u8>) {
    let masked = |bytes: &[u8]| crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8);
    let len = to_u64(record.len()).to_le_bytes();
    out.extend_from_slice(&len);
    out.extend_from_slice(&masked(&len).to_le_bytes());
    out.extend_from_slice(record);
    out.extend_from_slice(&masked(record).to_le_bytes());
}

/// The features of a message under construction.
#[derive(Default)]
struct Features(Vec<u8>);

impl Features {
    /// Adds a feature with these bytes. `kind` is the type of list: 1 for byte strings, 2 for floats, 3 for integers.
    fn add(&mut self, name: &str, kind: u8, value: &[u8]) {
        let (mut list, mut feature, mut entry) = (Vec::new(), Vec::new(), Vec::new());
        bytes_field(1, value, &mut list);
        bytes_field(kind, &list, &mut feature);
        bytes_field(1, name.as_bytes(), &mut entry);
        bytes_field(2, &feature, &mut entry);
        bytes_field(1, &entry, &mut self.0);
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.add(name, 1, value);
    }

    fn float(&mut self, name: &str, value: &[u8]) {
        self.add(name, 2, value);
    }

    fn ints(&mut self, name: &str, values: impl IntoIterator<Item = i64>) {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| varint(value.cast_unsigned(), &mut packed));
        self.add(name, 3, &packed);
    }
}

impl ExampleEncoder {
    fn example(&self, batch: &Batch, k: usize) -> Vec<u8> {
        let mut features = Features::default();
        for (place, field) in self.exported.fields.iter().enumerate() {
            let Some(column) = batch.columns.get(place) else {
                continue;
            };
            let item = column.item(k);
            let extension = column.extensions.get(k).copied().unwrap_or_default();
            self.field(field, place, (item, extension), &mut features);
        }
        if let Some(path) = batch.paths.get(k) {
            features.bytes("image/filename", path);
        }
        let mut message = Vec::new();
        bytes_field(1, &features.0, &mut message);
        message
    }

    fn field(&self, field: &ExportedField, place: usize, (item, extension): (&[u8], &str), features: &mut Features) {
        let name = field.field.name.as_str();
        match &field.form {
            Form::File if place == 0 => image(&field.field, item, extension, features),
            Form::File | Form::Bytes | Form::Text | Form::Json => features.bytes(name, item),
            Form::Array(array) if array.shape.is_empty() => {
                let number = Scalar::of(array.dtype, item);
                match number.and_then(Scalar::integer) {
                    Some(id) if field.field.role == Some(Role::Label) => {
                        features.ints("image/class/label", [id]);
                        let class = usize::try_from(id).ok().and_then(|id| self.classes.get(id));
                        if let Some(class) = class {
                            features.bytes("image/class/text", class.as_bytes());
                        }
                    }
                    // Fields of unsigned 64-bit integers are excluded, because some of their values may not fit in an
                    // i64, even if this value does.
                    Some(value) if array.dtype != DType::U64 => features.ints(name, [value]),
                    _ if array.dtype == DType::F32 => features.float(name, item),
                    _ => raw(name, &[], array.dtype, item, features),
                }
            }
            Form::Array(array) => raw(name, &array.shape, array.dtype, item, features),
        }
    }
}

/// Adds an array: its bytes, its dimensions and its NumPy type.
fn raw(name: &str, shape: &[u64], dtype: DType, item: &[u8], features: &mut Features) {
    let shape = shape.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX));
    features.bytes(name, item);
    features.ints(&format!("{name}/shape"), shape);
    features.bytes(&format!("{name}/dtype"), dtype.numpy_name().as_bytes());
}

fn image(field: &Field, item: &[u8], extension: &str, features: &mut Features) {
    let format = match extension {
        "jpg" => "JPEG".to_owned(),
        other => other.to_uppercase(),
    };
    features.bytes("image/encoded", item);
    features.bytes("image/format", format.as_bytes());
    let known = field.image_shape();
    let size = known.or_else(|| {
        let info = probe(item).ok()?;
        Some((info.height.into(), info.width.into(), 0))
    });
    let Some((height, width, channels)) = size else {
        return;
    };
    let int = |n: u64| i64::try_from(n).ok();
    features.ints("image/height", int(height));
    features.ints("image/width", int(width));
    if channels > 0 {
        features.ints("image/channels", int(channels));
    }
}

#[cfg(test)]
mod tests {
    use crate::data_format::DataFormat;
    use crate::export::{ExportCodec, ExportOptions};
    use crate::sink::test_pack::{assert_same, assert_same_field, back, fields, pack_of, to};

    #[test]
    fn everything_comes_back_from_a_folder_and_most_from_a_file() {
        let (pack, folder) = (pack_of(10, fields()), tempfile::tempdir().unwrap());
        for (name, shard, codec) in [
            ("plain", Some(3), None),
            ("gzip", Some(4), Some(ExportCodec::Gzip(1))),
            ("one.tfrecord", None, None),
            ("one.tfrecord.gz", None, None),
        ] {
            let target = folder.path().join(name);
            let options = ExportOptions {
                to: Some(DataFormat::TfRecord),
                shard_samples: shard,
                codec,
                jobs: 2,
                ..ExportOptions::default()
            };
            let report = to(&pack, &target, &options).unwrap();
            let again = back(&target, None);
            assert_eq!(report.lost.len(), usize::from(shard.is_none()), "{name}");
            match shard {
                Some(_) => assert_same(&pack, &again),
                None => {
                    for name in ["image", "points", "caption", "weight", "label"] {
                        assert_same_field(&pack, &again, name);
                    }
                    // Only the metadata contains the class that has no samples.
                    let names = &again.classes().unwrap()[0].names;
                    assert_eq!(*names, ["zebra", "ant", "sea lion"]);
                }
            }
            assert_eq!(again.path(3).unwrap(), pack.path(3).unwrap(), "{name}");
        }
        let names = std::fs::read_dir(folder.path().join("gzip")).unwrap();
        let mut names: Vec<_> = names.map(|f| f.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "data.tfrecord-00000-of-00003.gz",
                "data.tfrecord-00001-of-00003.gz",
                "data.tfrecord-00002-of-00003.gz",
                "packds.json"
            ]
        );
    }
}
