//! WebDataset: a tar file, or a folder of tar files, in which the members `KEY.EXTENSION` of a sample are adjacent.
//!
//! Members have ustar headers without times or owners. The pack's metadata is in a global pax record, which tar readers
//! ignore.

use super::item_bytes::{digits, item_bytes};
use super::shard_files::{Piece, ShardFiles, Spread, gzip_level};
use super::{Batch, Encode, Exported, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::{CLASSES_FILE, METADATA_RECORD};
use crate::safe_name::safe_names;

/// Headers and data are stored in blocks of this size.
const BLOCK: usize = 512;

pub(crate) struct WebDatasetSink {
    files: ShardFiles,
    encoder: TarEncoder,
    classes: String,
    lost: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct TarEncoder {
    exported: Exported,
    /// For each field, the part of its member names between the key and the extension.
    infixes: Vec<String>,
    /// The field that is written as an integer in text form.
    label: Option<usize>,
    spread: Spread,
    digits: usize,
    level: Option<u32>,
    /// The global pax header at the start of each file.
    head: Vec<u8>,
}

impl Sink for WebDatasetSink {
    type Encoder = TarEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let spread = Spread::of(start);
        let exported = start.exported.clone();
        let exported_paths = exported.has_paths;
        let names = safe_names(exported.fields.iter().map(|f| f.field.name.as_bytes()));
        let mut infixes: Vec<String> = names.iter().map(|name| format!("{name}.")).collect();
        // By convention, only the format follows the key in the name of an image file.
        if let (Some(first), Some(image)) = (infixes.first_mut(), exported.fields.first())
            && image.form == Form::File
        {
            first.clear();
        }
        let classes = start.metadata.class_names("label");
        let encoder = TarEncoder {
            infixes,
            label: exported.label_in_digits(),
            exported,
            spread,
            digits: start.n_samples.saturating_sub(1).to_string().len().max(6),
            level: gzip_level(start),
            head: global_header(&start.metadata.to_text())?,
        };
        let is_line = |name: &String| !name.contains(['\n', '\r']);
        Ok(Self {
            files: ShardFiles::create(start),
            encoder,
            classes: match classes.iter().all(is_line) {
                true => classes.iter().map(|name| format!("{name}\n")).collect(),
                false => String::new(),
            },
            lost: match exported_paths {
                true => vec!["the samples' paths, because samples are named by number".to_owned()],
                false => Vec::new(),
            },
        })
    }

    fn encoder(&self) -> TarEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Vec<Piece>) -> Result<(), ConvertError> {
        let end = if self.encoder.level.is_some() { ".gz" } else { "" };
        self.files.put(ready, |number| format!("shard-{number:06}.tar{end}"))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.files.end()?;
        if !self.classes.is_empty() {
            self.files.beside(CLASSES_FILE, &self.classes)?;
        }
        Ok(self.lost)
    }
}

impl Encode for TarEncoder {
    type Ready = Vec<Piece>;

    fn encode(&self, batch: Batch) -> Result<Vec<Piece>, ConvertError> {
        // Two blocks of zeros end a tar file.
        let ends = (self.head.as_slice(), &[0; 2 * BLOCK][..]);
        self.spread.pieces(&batch, self.level, ends, |k, sample, bytes| self.sample(&batch, k, sample, bytes))
    }
}

impl TarEncoder {
    fn sample(&self, batch: &Batch, k: usize, sample: u64, out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let key = format!("{sample:0digits$}", digits = self.digits);
        for (place, (field, infix)) in self.exported.fields.iter().zip(&self.infixes).enumerate() {
            if self.label == Some(place) {
                member(&format!("{key}.cls"), b'0', digits(field, batch, place, k).as_bytes(), out)?;
                continue;
            }
            let (extension, bytes) = item_bytes(field, batch, place, k);
            member(&format!("{key}.{infix}{extension}"), b'0', &bytes, out)?;
        }
        Ok(())
    }
}

fn global_header(metadata: &str) -> Result<Vec<u8>, ConvertError> {
    let record = format!(" {METADATA_RECORD}={metadata}\n");
    // The length of a pax record includes the digits of the length itself.
    let mut len = record.len();
    while len != record.len() + len.to_string().len() {
        len = record.len() + len.to_string().len();
    }
    let mut out = Vec::new();
    member("pax_global_header", b'g', format!("{len}{record}").as_bytes(), &mut out)?;
    Ok(out)
}

/// Appends a member: its header, its data, and zeros up to the end of the block.
fn member(name: &str, kind: u8, data: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
    let mut block = [0_u8; BLOCK];
    let mut put = |from: usize, bytes: &[u8]| {
        let room = block.get_mut(from..from + bytes.len());
        room.map(|room| room.copy_from_slice(bytes)).is_some()
    };
    // 11 octal digits allow 8 GiB, more than any item of a pack.
    let size = format!("{:011o}", data.len());
    if name.len() > 100 || size.len() > 11 {
        let reason = format!("'{name}': the name or the size is too large for a tar file");
        return Err(ConvertError::options(reason, "use a shorter name for the field"));
    }
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, size.as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(room) = block.get_mut(148..156) {
        room.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    out.extend_from_slice(&block);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::{ExportCodec, ExportOptions};
    use crate::sink::test_pack::{assert_same, back, fields, pack_of, to};

    #[test]
    fn everything_comes_back_from_one_file_a_folder_and_compressed_shards() {
        let (pack, folder) = (pack_of(10, fields()), tempfile::tempdir().unwrap());
        for (name, shard, codec) in [
            ("one.tar", None, None),
            ("one.tar.gz", None, None),
            ("plain", Some(3), None),
            ("gzip", Some(4), Some(ExportCodec::Gzip(1))),
        ] {
            let target = folder.path().join(name);
            let options = ExportOptions {
                to: Some(DataFormat::WebDataset),
                shard_samples: shard,
                codec,
                jobs: 2,
                ..ExportOptions::default()
            };
            let report = to(&pack, &target, &options).unwrap();
            let lost = ["the samples' paths, because samples are named by number"];
            assert_eq!(report.lost, lost, "{name}");
            let again = back(&target, None);
            assert_same(&pack, &again);
            assert_eq!(again.path(3).unwrap().unwrap(), b"000003.png", "{name}");
        }
        let files = std::fs::read_dir(folder.path().join("plain")).unwrap();
        let mut files: Vec<_> = files.map(|f| f.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(
            files,
            ["classes.txt", "shard-000000.tar", "shard-000001.tar", "shard-000002.tar", "shard-000003.tar"]
        );
    }

    #[test]
    fn a_field_that_is_called_like_the_label_here_comes_back_as_well() {
        use packds_format::{DType, Field};
        let mut fields = fields();
        fields.insert(2, Field::tensor("cls", DType::I64, &[]));
        fields.insert(3, Field::tensor("txt", DType::U8, &[7]));
        let (pack, folder) = (pack_of(5, fields), tempfile::tempdir().unwrap());
        let target = folder.path().join("a.tar");
        to(&pack, &target, &ExportOptions::default()).unwrap();
        assert_same(&pack, &back(&target, None));
    }

    #[test]
    fn the_same_bytes_at_any_number_of_threads() {
        let (pack, folder) = (pack_of(23, fields()), tempfile::tempdir().unwrap());
        let written = [1, 2].map(|jobs| {
            let target = folder.path().join(format!("{jobs}.tar.gz"));
            let options = ExportOptions { jobs, ..ExportOptions::default() };
            to(&pack, &target, &options).unwrap();
            std::fs::read(target).unwrap()
        });
        assert_eq!(written[0], written[1]);
    }

    #[test]
    fn a_pax_record_counts_its_own_length() {
        for text in ["x".repeat(70), "y".repeat(77), "z".repeat(980)] {
            let header = global_header(&text).unwrap();
            let record = &header[BLOCK..];
            let end = record.iter().position(|b| *b == b'\n').unwrap() + 1;
            let len: usize = str::from_utf8(record).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert_eq!(len, end);
        }
    }
}
