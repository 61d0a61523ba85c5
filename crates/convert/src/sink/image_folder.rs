//! Writes the class folders that torchvision's `ImageFolder` reads. Data that file names cannot express goes into a
//! manifest and into the pack's metadata next to the folders.
//!
//! No other folders are written next to the class folders, because `ImageFolder` treats every folder as a class, even a
//! hidden one.

use packds_system::{counted, to_u64};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use packds_format::{DType, Field, Role, Scalar};
use serde_json::{Map, Value};

use super::fields::is_in_digits;
use super::renamed::Renamed;
use super::{AsItIs, Batch, Exported, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::label_set;
use crate::metadata::METADATA_FILE;
use crate::opt::IMAGES;
use crate::safe_name::{safe_name, safe_names, stem};

/// The manifest, which lists all images with their labels and columns.
const MANIFEST_FILE: &str = "manifest.jsonl";

pub(crate) struct ImageFolderSink {
    folder: PathBuf,
    manifest: BufWriter<File>,
    metadata: String,
    columns: Columns,
    /// The name of each class and, in `folders`, its folder. Both lists are empty if classes have no names.
    names: Vec<String>,
    folders: Vec<String>,
    /// The class ids used so far, with their folders.
    used: BTreeMap<i64, String>,
    /// The image paths used so far, without extensions.
    taken: HashSet<String>,
    renamed: Renamed,
    digits: usize,
    lost: Vec<String>,
}

struct Columns {
    label: Option<(usize, DType)>,
    /// The field with sets of classes. A set has one bit per class.
    label_set: Option<usize>,
    rest: Vec<Column>,
}

struct Column {
    name: String,
    place: usize,
    form: Form,
    /// Number of infinities written as null.
    infinite: u64,
}

/// Why an image folder cannot store a field. `None` if it can.
pub(super) fn left_out(field: &Field, form: &Form) -> Option<String> {
    let name = &field.name;
    let is_held = match form {
        Form::Text | Form::Json => true,
        Form::Array(array) => array.shape.is_empty() || field.role == Some(Role::Labels),
        Form::File | Form::Bytes => false,
    };
    match name.as_str() {
        _ if field.role == Some(Role::Image) => None,
        "path" => Some("field `path`, because the manifest has its own column with that name".to_owned()),
        _ if is_held => None,
        _ => Some(format!("field `{name}`, because besides images an image folder can store only numbers and text")),
    }
}

impl Columns {
    fn of(exported: &Exported) -> Self {
        let mut columns = Self { label: None, label_set: None, rest: Vec::new() };
        for (place, field) in exported.fields.iter().enumerate().skip(1) {
            let dtype = field.field.dtype;
            match (&field.form, field.field.role) {
                (Form::Array(_), Some(Role::Label)) if is_in_digits(dtype) => {
                    columns.label = Some((place, dtype));
                }
                (Form::Array(_), Some(Role::Labels)) => columns.label_set = Some(place),
                _ => columns.rest.push(Column {
                    name: field.field.name.clone(),
                    place,
                    form: field.form.clone(),
                    infinite: 0,
                }),
            }
        }
        columns
    }
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

    /// A unique path for the image of sample `sample`, without an extension.
    fn image_path(&mut self, folder: &str, sample: u64, path: Option<&Vec<u8>>) -> String {
        let number = format!("{sample:0digits$}", digits = self.digits);
        let own = path.map(|path| stem(path)).filter(|stem| !stem.is_empty()).map_or_else(|| number.clone(), safe_name);
        let slash = if folder.is_empty() { "" } else { "/" };
        let mut name = format!("{folder}{slash}{own}");
        while !self.taken.insert(name.clone()) {
            name = format!("{name}-{number}");
        }
        name
    }

    fn write_sample(&mut self, batch: &Batch, k: usize) -> Result<(), ConvertError> {
        let sample = batch.first.saturating_add(to_u64(k));
        let item = |place: usize| batch.columns.get(place).map_or(&[][..], |c| c.item(k));
        let label = self.columns.label;
        let label = label.and_then(|(place, dtype)| Scalar::of(dtype, item(place)).and_then(Scalar::integer));
        let folder = match label {
            Some(id) => self.class_folder(id)?,
            None => String::new(),
        };
        let path = self.image_path(&folder, sample, batch.paths.get(k));
        let extension = batch.columns.first().and_then(|c| c.extensions.get(k));
        let path = format!("{path}.{}", extension.copied().unwrap_or("bin"));
        self.renamed.note(batch.paths.get(k), &path);
        let file = self.folder.join(&path);
        fs::write(&file, item(0)).map_err(ConvertError::io(&file))?;

        let mut row = Map::new();
        row.insert("path".to_owned(), path.into());
        if let Some(id) = label {
            row.insert("label".to_owned(), self.class_value(id));
        }
        if let Some(place) = self.columns.label_set {
            let ids = label_set::ids(item(place)).map(|id| self.class_value(id));
            row.insert("labels".to_owned(), ids.collect());
        }
        for column in &mut self.columns.rest {
            let item = item(column.place);
            row.insert(column.name.clone(), column.value(item));
        }
        let line = Value::Object(row).to_string();
        writeln!(self.manifest, "{line}").map_err(ConvertError::io(Path::new(MANIFEST_FILE)))
    }

    /// The name of a class, or its id if it has no name.
    fn class_value(&self, id: i64) -> Value {
        let name = usize::try_from(id).ok().and_then(|i| self.names.get(i));
        name.map_or_else(|| id.into(), |name| name.clone().into())
    }

    /// Reports how the classes that `ImageFolder` will find differ from those of the pack.
    fn class_notes(&mut self) {
        let changed = self.names.iter().zip(&self.folders).find(|(n, f)| n != f);
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
        let n_empty = self.names.len().min(named);
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

/// Converts a number to JSON. NaN and infinities become `null`, because JSON cannot represent them.
fn json(number: Scalar) -> Value {
    match number {
        Scalar::Bool(value) => value.into(),
        Scalar::Unsigned(value) => value.into(),
        other => other.float().map_or(other.integer().into(), Value::from),
    }
}

impl Column {
    fn value(&mut self, item: &[u8]) -> Value {
        match &self.form {
            Form::Array(array) => {
                let number = Scalar::of(array.dtype, item);
                let float = number.and_then(Scalar::float);
                self.infinite += u64::from(float.is_some_and(f64::is_infinite));
                number.map_or(Value::Null, json)
            }
            Form::Json => serde_json::from_slice(item).unwrap_or_default(),
            _ => String::from_utf8_lossy(item).into_owned().into(),
        }
    }

    fn note(&self) -> Option<String> {
        (self.infinite > 0).then(|| {
            format!(
                "infinities in field `{}`, because JSON has none: {} became null in {MANIFEST_FILE} and will be read as NaN",
                self.name,
                counted(self.infinite, "value")
            )
        })
    }
}

impl Sink for ImageFolderSink {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let image = start.exported.fields.first();
        if image.is_none_or(|image| image.form != Form::File) {
            return Err(match start.options.images {
                Some(_) => ConvertError::options(
                    format!("an image folder stores image files, but {} requests arrays", IMAGES.with("pixels")),
                    format!("omit {IMAGES}, or choose a format that stores arrays"),
                ),
                None => ConvertError::options(
                    "an image folder stores image files, but this pack's images are arrays that image files cannot store",
                    "choose a format that stores arrays, such as zarr, hdf5 or npy",
                ),
            });
        }
        let columns = Columns::of(start.exported);
        let (names, folders) = match columns.label {
            Some(_) => {
                let names = start.metadata.class_names("label");
                (names, safe_names(names.iter().map(String::as_bytes)))
            }
            None => (start.metadata.class_names("labels"), Vec::new()),
        };
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
            columns,
            names: names.to_vec(),
            folders,
            used: BTreeMap::new(),
            taken: HashSet::new(),
            renamed: Renamed::default(),
            digits: start.n_samples.saturating_sub(1).to_string().len(),
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
        let notes = self.columns.rest.iter().filter_map(Column::note);
        self.lost.extend(notes);
        self.lost.extend(self.renamed.summary());
        let flushed = self.manifest.flush();
        flushed.map_err(ConvertError::io(&self.folder.join(MANIFEST_FILE)))?;
        let path = self.folder.join(METADATA_FILE);
        fs::write(&path, self.metadata).map_err(ConvertError::io(&path))?;
        Ok(self.lost)
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn names_that_are_taken_get_the_number() {
        let (pack, folder) = (pack_of(3, fields()), tempfile::tempdir().unwrap());
        let exported = Exported::of(&pack, DataFormat::ImageFolder, crate::sink::Holds::FilesFirst, None).unwrap();
        let manifest = File::create_new(folder.path().join("m")).unwrap();
        let mut sink = ImageFolderSink {
            folder: folder.path().to_owned(),
            manifest: BufWriter::new(manifest),
            metadata: String::new(),
            columns: Columns::of(&exported),
            names: Vec::new(),
            folders: Vec::new(),
            used: BTreeMap::new(),
            taken: HashSet::new(),
            renamed: Renamed::default(),
            digits: 2,
            lost: Vec::new(),
        };
        let mut name = |sample, path: &[u8]| sink.image_path("c", sample, Some(&path.to_vec()));
        assert_eq!(name(1, b"a/x.png"), "c/x");
        assert_eq!(name(2, b"b/x.png"), "c/x-02");
        assert_eq!(name(3, b"x-02.png"), "c/x-02-03");
        assert_eq!(name(4, b"../.."), "c/_");
        assert_eq!(name(5, b"a/"), "c/05");
    }
}
