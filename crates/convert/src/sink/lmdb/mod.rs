//! LMDB. The key `KEY` holds the image of a sample, and keys such as `KEY/FIELD.EXTENSION` hold its other fields.
//! `__len__`, `__classes__` and `__packds__` describe the dataset.

mod tree;

use packds_system::to_u64;
use std::fs::File;
use std::path::PathBuf;

use self::tree::TreeWriter;
use super::item_bytes::{digits, item_bytes};
use super::renamed::paths_as_field;
use super::{Batch, Encode, Exported, Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::{LMDB_CLASSES, LMDB_METADATA};
use crate::safe_name::safe_names;
use crate::source::PATHS;

const DATA_FILE: &str = "data.mdb";

pub(crate) struct LmdbSink {
    path: PathBuf,
    tree: TreeWriter,
    encoder: EntryEncoder,
    /// The entries that follow all samples, in key order.
    last: Vec<(&'static str, String)>,
    lost: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct EntryEncoder {
    exported: Exported,
    /// The fields other than the image, in key order: index and name.
    others: Vec<(usize, String)>,
    label: Option<usize>,
    has_paths: bool,
    digits: usize,
}

impl Sink for LmdbSink {
    type Encoder = EntryEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let exported = start.exported.clone();
        let names = safe_names(exported.fields.iter().map(|f| f.field.name.as_bytes()));
        let mut others: Vec<(usize, String)> = names.into_iter().enumerate().skip(1).collect();
        others.sort_by(|a, b| a.1.cmp(&b.1));
        let label = exported.label_in_digits();
        let path = start.path.join(DATA_FILE);
        let tree = File::create_new(&path).and_then(TreeWriter::create);
        let classes = start.metadata.class_names("label");
        let mut last = vec![("__len__", start.n_samples.to_string()), (LMDB_METADATA, start.metadata.to_text())];
        if !classes.is_empty() {
            last.insert(0, (LMDB_CLASSES, serde_json::Value::from(classes.to_vec()).to_string()));
        }
        let mut lost = Vec::new();
        let has_paths = paths_as_field(start, others.iter().map(|(_, name)| name.as_str()), &mut lost);
        Ok(Self {
            lost,
            tree: tree.map_err(ConvertError::io(&path))?,
            path,
            encoder: EntryEncoder {
                has_paths,
                exported,
                others,
                label,
                digits: start.n_samples.saturating_sub(1).to_string().len().max(8),
            },
            last,
        })
    }

    fn encoder(&self) -> EntryEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Vec<(String, Vec<u8>)>) -> Result<(), ConvertError> {
        let mut entries = ready.iter();
        let added = entries.try_for_each(|(key, value)| self.tree.add(key.as_bytes(), value));
        added.map_err(ConvertError::io(&self.path))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        let mut last = self.last.iter();
        let added = last.try_for_each(|(key, value)| self.tree.add(key.as_bytes(), value.as_bytes()));
        let finished = added.and_then(|()| self.tree.finish());
        finished.map_err(ConvertError::io(&self.path))?;
        Ok(self.lost)
    }
}

impl Encode for EntryEncoder {
    type Ready = Vec<(String, Vec<u8>)>;

    fn encode(&self, batch: Batch) -> Result<Self::Ready, ConvertError> {
        let mut entries = Vec::new();
        for k in 0..batch.n {
            let sample = batch.first.saturating_add(to_u64(k));
            let key = format!("{sample:0digits$}", digits = self.digits);
            if let Some(image) = self.exported.fields.first() {
                let (_, value) = item_bytes(image, &batch, 0, k);
                entries.push((key.clone(), value.into_owned()));
            }
            let from = entries.len();
            for (place, name) in &self.others {
                let Some(field) = self.exported.fields.get(*place) else {
                    continue;
                };
                if self.label == Some(*place) {
                    entries.push((format!("{key}/{name}.txt"), digits(field, &batch, *place, k).into_bytes()));
                    continue;
                }
                let (extension, value) = item_bytes(field, &batch, *place, k);
                entries.push((format!("{key}/{name}.{extension}"), value.into_owned()));
            }
            if let Some(path) = batch.paths.get(k).filter(|_| self.has_paths) {
                let path = String::from_utf8_lossy(path).into_owned();
                entries.push((format!("{key}/{PATHS}.txt"), path.into_bytes()));
            }
            // The fields are sorted by name, but the extension affects the order of the keys: `a.npy` sorts after
            // `a-b.npy`.
            if let Some(own) = entries.get_mut(from..) {
                own.sort_by(|a, b| a.0.cmp(&b.0));
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use packds_format::{DType, Field, FieldKind};

    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::test_pack::{assert_same, back, fields, pack_of, to};

    fn options(jobs: usize) -> ExportOptions {
        ExportOptions { to: Some(DataFormat::Lmdb), jobs, ..ExportOptions::default() }
    }

    #[test]
    fn everything_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        // Covers a single leaf, and three levels with large values in separate pages.
        for n in [1, 10, 3000] {
            let mut fields = fields();
            fields.insert(2, Field::tensor("large", DType::F64, &[1 + 2999 / n, 25]));
            let pack = pack_of(usize::try_from(n).unwrap(), fields);
            let target = folder.path().join(n.to_string());
            let report = to(&pack, &target, &options(2)).unwrap();
            assert_eq!(report.lost, Vec::<String>::new());
            let again = back(&target, None);
            assert_same(&pack, &again);
            assert_eq!(again.path(0).unwrap(), pack.path(0).unwrap());
            let file = back(&target.join(DATA_FILE), None);
            assert_same(&pack, &file);
        }
    }

    #[test]
    fn the_same_bytes_at_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let pack = pack_of(40, fields());
        let written = [1, 3].map(|jobs| {
            let target = folder.path().join(jobs.to_string());
            to(&pack, &target, &options(jobs)).unwrap();
            std::fs::read(target.join(DATA_FILE)).unwrap()
        });
        assert_eq!(written[0], written[1]);
        assert_eq!(written[0].len() % 4096, 0);
    }

    #[test]
    fn fields_come_in_the_order_of_their_keys() {
        let folder = tempfile::tempdir().unwrap();
        let mut fields = fields();
        fields.insert(2, Field::tensor("a", DType::U8, &[3]));
        fields.insert(3, Field::variable("a-b", FieldKind::String));
        let pack = pack_of(5, fields);
        to(&pack, &folder.path().join("l"), &options(1)).unwrap();
        assert_same(&pack, &back(&folder.path().join("l"), None));
    }
}
