//! NumPy's `.npy`: one file of images, a folder with one file per field, or a folder with one file per sample.

use packds_system::to_u64;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use packds_format::{DType, Role};

use super::npy_header::{npy_header, npy_header_of};
use super::placed::{PieceEncoder, Pieces, PlacedFile, Places, Planned, planned};
use super::renamed::Renamed;
use super::{Batch, Encode, Exported, Sink, SinkStart, is_folder};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;
use crate::opt::PER_SAMPLE;
use crate::safe_name::{safe_name, safe_names, stem};
use crate::source::store::ArrayType;

/// Writes the samples.
pub(crate) struct NpySink {
    form: Form,
    encoder: Encoder,
    lost: Vec<String>,
}

/// The kind of output.
enum Form {
    /// One file for each of the first arrays.
    Arrays(Vec<Places>),
    /// One file per sample.
    Samples(Samples),
}

/// The encoder of either form.
#[derive(Clone)]
pub(crate) struct Encoder {
    arrays: Vec<Planned>,
    per_sample: bool,
}

/// An encoded batch.
pub(crate) enum Ready {
    Pieces(Pieces),
    Batch(Batch),
}

impl Encode for Encoder {
    type Ready = Ready;

    fn encode(&self, batch: Batch) -> Result<Ready, ConvertError> {
        if self.per_sample {
            return Ok(Ready::Batch(batch));
        }
        let encoder = PieceEncoder::new(&self.arrays, false);
        Ok(Ready::Pieces(encoder.pieces(batch)))
    }
}

impl NpySink {
    pub(crate) fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let arrays = planned(start);
        let mut lost = Vec::new();
        let mut write_arrays = arrays.clone();
        let form = if start.options.per_sample {
            write_text(start, METADATA_KEY, &start.metadata.to_text())?;
            let hint = format!("leave {PER_SAMPLE} out to have a file for each field");
            lost.extend(others(&arrays, &["image", "label", "path"], &hint));
            Form::Samples(Samples::new(start)?)
        } else if is_folder(DataFormat::Npy, start.target, start.options) {
            Form::Arrays(Self::folder(start, &arrays)?)
        } else {
            let hint = "name a folder (without .npy) to get a file for each field";
            lost.extend(others(&arrays, &["image"], hint));
            lost.push(
                "class names, statistics, provenance, normalization, and whether pixels are bgr or planes: a single .npy file cannot hold them, but a folder (a name without .npy) can"
                    .to_owned(),
            );
            write_arrays.truncate(1);
            let file = PlacedFile::open(start.path, start.target)?;
            let first = write_arrays.first();
            let places = first.map(|array| place(file, array)).transpose()?;
            Form::Arrays(places.into_iter().collect())
        };
        let bits = arrays.iter().filter(|a| a.dtype == Some(DType::Bf16));
        lost.extend(
            bits.map(|a| format!("the type bf16 of `{}`: NumPy lacks it, so its bits are stored as uint16", a.name)),
        );
        Ok(Self { form, encoder: Encoder { arrays: write_arrays, per_sample: start.options.per_sample }, lost })
    }

    fn folder(start: &SinkStart<'_>, arrays: &[Planned]) -> Result<Vec<Places>, ConvertError> {
        write_text(start, METADATA_KEY, &start.metadata.to_text())?;
        let classes = start.metadata.class_names("label");
        if !classes.is_empty() {
            let names = serde_json::to_string(classes).unwrap_or_default();
            write_text(start, "classes", &names)?;
        }
        let names = safe_names(arrays.iter().map(|array| array.name.as_bytes()));
        let mut places = Vec::new();
        for (array, name) in arrays.iter().zip(names) {
            let path = start.path.join(format!("{name}.npy"));
            places.push(place(PlacedFile::open(&path, start.target)?, array)?);
        }
        Ok(places)
    }
}

/// The fields that a single image file, or one file per sample, leaves out.
fn others(arrays: &[Planned], kept: &[&str], hint: &str) -> Option<String> {
    let others = arrays.iter().map(|a| a.name.as_str());
    let others: Vec<&str> = others.filter(|name| !kept.contains(name)).collect();
    (!others.is_empty()).then(|| format!("{}: {hint}", others.join(", ")))
}

fn write_text(start: &SinkStart<'_>, name: &str, text: &str) -> Result<(), ConvertError> {
    let path = start.path.join(format!("{name}.json"));
    std::fs::write(&path, text).map_err(ConvertError::io(start.target))
}

/// The header of an exported array.
pub(super) fn header_of(array: &Planned) -> Vec<u8> {
    match array.dtype {
        Some(dtype) => npy_header(dtype, &array.shape),
        None => npy_header_of(&format!("|S{}", array.item_bytes), &array.shape),
    }
}

/// Writes an array's header to a separate file.
fn place(file: PlacedFile, array: &Planned) -> Result<Places, ConvertError> {
    let header = header_of(array);
    file.write_at(&header, 0)?;
    let start = to_u64(header.len());
    Ok(Places { file, starts: vec![(start, array.item_bytes)] })
}

impl Sink for NpySink {
    type Encoder = Encoder;

    fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Ready) -> Result<(), ConvertError> {
        match (&mut self.form, ready) {
            (Form::Arrays(files), Ready::Pieces(Pieces { first, pieces })) => {
                for (places, piece) in files.iter().zip(pieces) {
                    let pieces = vec![piece];
                    places.write(&Pieces { first, pieces })?;
                }
                Ok(())
            }
            (Form::Samples(samples), Ready::Batch(batch)) => samples.write(&batch),
            // The encoder always matches the form.
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        if let Form::Samples(samples) = self.form {
            self.lost.extend(samples.renamed.summary());
        }
        Ok(self.lost)
    }
}

/// Files of one sample each.
struct Samples {
    folder: PathBuf,
    target: PathBuf,
    header: Vec<u8>,
    /// The column of labels, and its number type.
    label: Option<(usize, DType)>,
    /// The folder of each class id; empty if classes have no names.
    classes: Vec<String>,
    taken: BTreeSet<String>,
    renamed: Renamed,
}

impl Samples {
    fn new(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let image = start.exported.fields.first().map(|field| &field.form);
        let header = match image {
            Some(super::Form::Array(ArrayType { dtype, shape })) => npy_header(*dtype, shape),
            _ => Vec::new(),
        };
        let names = start.metadata.class_names("label");
        let samples = Self {
            folder: start.path.to_owned(),
            target: start.target.to_owned(),
            header,
            label: label_column(start.exported),
            classes: safe_names(names.iter().map(String::as_bytes)),
            taken: BTreeSet::new(),
            renamed: Renamed::default(),
        };
        // Empty folders keep the ids of classes without samples.
        for class in samples.classes.iter().filter(|_| samples.label.is_some()) {
            samples.make_folder(class)?;
        }
        Ok(samples)
    }

    fn make_folder(&self, name: &str) -> Result<(), ConvertError> {
        let made = std::fs::create_dir_all(self.folder.join(name));
        made.map_err(ConvertError::io(&self.target))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), ConvertError> {
        for idx in 0..batch.n {
            let number = batch.first.saturating_add(to_u64(idx));
            let name = match batch.paths.get(idx) {
                Some(path) => safe_name(stem(path)),
                None => format!("{number:08}"),
            };
            let folder = self.folder_of(batch, idx)?;
            let mut unique = Path::new(&folder).join(&name).to_string_lossy().into_owned();
            // The extensions and folders that made paths unique have been removed.
            if !self.taken.insert(unique.clone()) {
                unique = format!("{unique}-{number}");
                self.taken.insert(unique.clone());
            }
            let mut file = self.header.clone();
            let image = batch.columns.first().map(|column| column.item(idx));
            file.extend_from_slice(image.unwrap_or_default());
            let written = format!("{unique}.npy");
            self.renamed.note(batch.paths.get(idx), &written);
            let path = self.folder.join(written);
            std::fs::write(&path, file).map_err(ConvertError::io(&self.target))?;
        }
        Ok(())
    }

    /// The class folder of a sample; empty without labels.
    fn folder_of(&self, batch: &Batch, idx: usize) -> Result<String, ConvertError> {
        let Some((column, dtype)) = self.label else {
            return Ok(String::new());
        };
        let item = batch.columns.get(column).map(|column| column.item(idx));
        let id = label_id(item.unwrap_or_default(), dtype);
        let class = usize::try_from(id).ok().and_then(|id| self.classes.get(id));
        match class {
            Some(class) => Ok(class.clone()),
            None => {
                let name = id.to_string();
                self.make_folder(&name)?;
                Ok(name)
            }
        }
    }
}

/// The column of class ids.
fn label_column(exported: &Exported) -> Option<(usize, DType)> {
    let (column, label) = exported.by_role(Role::Label)?;
    matches!(label.field.dtype, DType::I32 | DType::I64).then_some((column, label.field.dtype))
}

fn label_id(item: &[u8], dtype: DType) -> i64 {
    let narrow = item.first_chunk::<4>().map(|b| i32::from_le_bytes(*b).into());
    let wide = item.first_chunk::<8>().map(|b| i64::from_le_bytes(*b));
    let id = if dtype == DType::I32 { narrow } else { wide };
    id.unwrap_or(-1)
}
