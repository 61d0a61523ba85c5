//! Writes the class folders that torchvision's `ImageFolder` reads. Data that file names cannot express goes into a
//! manifest and into the pack's metadata next to the folders.
//!
//! No other folders are written next to the class folders, because `ImageFolder` treats every folder as a class, even a
//! hidden one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use packds_format::Field;
use serde_json::{Map, Value};

use super::image_files::ImageFiles;
use super::rows::{self, Rows};
use super::{AsItIs, Batch, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;
use crate::safe_name::safe_names;

/// The manifest, which lists all images with their labels and columns.
const MANIFEST_FILE: &str = "manifest.jsonl";

pub(crate) struct ImageFolderSink {
    folder: PathBuf,
    manifest: BufWriter<File>,
    metadata: String,
    rows: Rows,
    files: ImageFiles,
    /// The folder of each class. Empty if classes have no names.
    folders: Vec<String>,
    /// The class ids used so far, with their folders.
    used: BTreeMap<i64, String>,
    lost: Vec<String>,
}

/// Why an image folder cannot store a field. `None` if it can.
pub(crate) fn left_out(field: &Field, form: &Form) -> Option<String> {
    rows::left_out(field, form, "an image folder", &["path"])
}

impl ImageFolderSink {
    /// The folder name of class `id`. Creates the folder if necessary.
    fn class_folder(&mut self, id: i64) -> Result<String, ConvertError> {
        let known = usize::try_from(id).ok().and_then(|i| self.folders.get(i));
        let folder = known.cloned().unwrap_or_else(|| id.to_string());
        if !self.used.contains_key(&id) {
            let path = self.folder.join(&folder);
            fs::create_dir_all(&path).map_err(ConvertError::io(&path))?;
            self.used.insert(id, folder.clone());
        }
        Ok(folder)
    }

    fn write_sample(&mut self, batch: &Batch, k: usize) -> Result<(), ConvertError> {
        let folder = match self.rows.label(batch, k) {
            Some(id) => self.class_folder(id)?,
            None => String::new(),
        };
        let mut row = Map::new();
        row.insert("path".to_owned(), self.files.write(&folder, batch, k)?.into());
        self.rows.add(batch, k, &mut row);
        let line = Value::Object(row).to_string();
        writeln!(self.manifest, "{line}").map_err(ConvertError::io(Path::new(MANIFEST_FILE)))
    }

    /// Reports how the classes that `ImageFolder` will find differ from those of the pack.
    fn class_notes(&mut self) {
        let changed = self.rows.class_names().iter().zip(&self.folders).find(|(n, f)| n != f);
        if let Some((name, folder)) = changed {
            self.lost.push(format!(
                "class names that are not valid folder names (the first, '{}', became '{folder}'); {MANIFEST_FILE} has the original names",
                name.escape_debug()
            ));
        }
        let mut folders: BTreeMap<i64, String> = (0..).zip(self.folders.iter().cloned()).collect();
        let named = folders.len();
        folders.extend(std::mem::take(&mut self.used));
        let mut sorted: Vec<&String> = folders.values().collect();
        sorted.sort_unstable();
        let other = folders.iter().find_map(|(id, folder)| {
            let place = sorted.binary_search(&folder).unwrap_or_default();
            (i64::try_from(place) != Ok(*id)).then_some((id, folder, place))
        });
        if let Some((id, folder, place)) = other {
            self.lost.push(format!(
                "class ids, because ImageFolder numbers folders by name: '{folder}' has the id {place} there, but {id} in the pack ({MANIFEST_FILE} has the ids of the pack)"
            ));
        }
        let n_empty = self.rows.class_names().len().min(named);
        let empty = folders.values().take(n_empty).find(|folder| {
            let entries = fs::read_dir(self.folder.join(folder));
            entries.is_ok_and(|mut entries| entries.next().is_none())
        });
        if let Some(folder) = empty {
            self.lost.push(format!(
                "classes without samples (first: '{folder}'), unless torchvision's ImageFolder gets allow_empty=True"
            ));
        }
    }
}

impl Sink for ImageFolderSink {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let files = ImageFiles::create(start, "an image folder")?;
        let rows = Rows::of(start, |_| true);
        let folders = safe_names(rows.class_names().iter().map(String::as_bytes));
        for folder in &folders {
            let path = start.path.join(folder);
            fs::create_dir(&path).map_err(ConvertError::io(&path))?;
        }
        let manifest = start.path.join(MANIFEST_FILE);
        let file = File::create_new(&manifest).map_err(ConvertError::io(&manifest))?;
        Ok(Self {
            folder: start.path.to_owned(),
            manifest: BufWriter::new(file),
            metadata: start.metadata.to_text(),
            rows,
            files,
            folders,
            used: BTreeMap::new(),
            lost: Vec::new(),
        })
    }

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, batch: Batch) -> Result<(), ConvertError> {
        (0..batch.n).try_for_each(|k| self.write_sample(&batch, k))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.class_notes();
        self.lost.extend(self.rows.notes(MANIFEST_FILE));
        self.lost.extend(self.files.note());
        let flushed = self.manifest.flush();
        flushed.map_err(ConvertError::io(&self.folder.join(MANIFEST_FILE)))?;
        let path = self.folder.join(METADATA_FILE);
        fs::write(&path, self.metadata).map_err(ConvertError::io(&path))?;
        Ok(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use packds_format::DType;

    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::test_pack::{assert_same_field, back, fields, pack_of, to};

    fn options() -> ExportOptions {
        ExportOptions { to: Some(DataFormat::ImageFolder), ..ExportOptions::default() }
    }

    #[test]
    fn the_manifest_brings_back_order_labels_class_names_and_columns() {
        let mut all = fields();
        let narrow = [DType::U8, DType::U64, DType::F32, DType::F16, DType::Bf16];
        let narrow = narrow.map(|dtype| Field::column(&format!("column_{dtype}"), dtype, &[]));
        all.splice(4..4, narrow);
        let (pack, folder) = (pack_of(10, all), tempfile::tempdir().unwrap());
        let target = folder.path().join("images");
        let report = to(&pack, &target, &options()).unwrap();
        let notes = report.lost.join("\n");
        assert!(notes.contains("field `points`"), "{notes}");
        assert!(notes.contains("'zebra' has the id 3 there, but 0"), "{notes}");
        assert!(notes.contains("first: 'none'"), "{notes}");
        let again = back(&target.join(MANIFEST_FILE), None);
        for name in ["image", "label", "caption", "meta", "weight", "flag"] {
            assert_same_field(&pack, &again, name);
        }
        for name in ["angle", "column_u8", "column_u64", "column_f32"] {
            assert_same_field(&pack, &again, name);
        }
        for name in ["column_f16", "column_bf16"] {
            assert_same_field(&pack, &again, name);
        }
        // The report lists only the fields that were written.
        assert!(!report.fields.contains(&"points".to_owned()));
        assert!(report.fields.contains(&"column_f16".to_owned()));
        assert_eq!(pack.classes().unwrap()[0].names, again.classes().unwrap()[0].names);
    }

    #[test]
    fn the_folder_is_one_of_class_folders() {
        let (pack, folder) = (pack_of(10, fields()), tempfile::tempdir().unwrap());
        let target = folder.path().join("images");
        to(&pack, &target, &options()).unwrap();
        let again = back(&target, None);
        assert_eq!(again.classes().unwrap()[0].names, ["ant", "none", "sea lion", "zebra"]);
        assert_eq!(again.path(0).unwrap().unwrap(), b"ant/im.1.png");
        assert_eq!(again.item(0, 0).unwrap(), pack.item(0, 1).unwrap());
    }
}
