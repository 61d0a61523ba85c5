//! NumPy's `.npy`: one file with all images, a folder with one file per field, or a folder with one file per sample.

use packds_system::to_u64;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use packds_format::{DType, Role, Scalar};

use super::npy_header::{npy_header, npy_header_of};
use super::placed::{PieceEncoder, Pieces, PlacedFile, Places, Planned, bf16_notes, hidden_notes, planned};
use super::renamed::Renamed;
use super::{AsItIs, Batch, Exported, Form, Sink, SinkStart, is_folder};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::export::{ExportOptions, Run};
use crate::metadata::METADATA_KEY;
use crate::opt::PER_SAMPLE;
use crate::safe_name::{safe_name, safe_names, stem};
use crate::source::store::ArrayType;

pub(crate) fn write(start: &SinkStart<'_>, run: &Run<'_>) -> Result<Vec<String>, ConvertError> {
    match start.options.per_sample {
        true => run.write_to(Samples::create(start)?),
        false => run.write_to(Arrays::create(start)?),
    }
}

/// Whether a field is written, given its position among the exported fields. With one file per sample, class ids are
/// written as folder names.
pub(crate) fn is_written(exported: &Exported, place: usize, target: &Path, options: &ExportOptions) -> bool {
    if options.per_sample {
        place == 0 || label_column(exported).is_some_and(|(label, _)| label == place)
    } else {
        place == 0 || is_folder(DataFormat::Npy, target, options)
    }
}

/// Writes one file for each array, or a single file for the first array.
struct Arrays {
    files: Vec<Places>,
    arrays: Vec<Planned>,
    lost: Vec<String>,
}

impl Sink for Arrays {
    type Encoder = PieceEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let mut arrays = planned(start);
        let bits = bf16_notes(&arrays);
        let mut lost = Vec::new();
        let mut files = Vec::new();
        if is_folder(DataFormat::Npy, start.target, start.options) {
            write_text(start, METADATA_KEY, &start.metadata.to_text())?;
            let classes = start.metadata.class_names("label");
            if !classes.is_empty() {
                write_text(start, "classes", &serde_json::to_string(classes).unwrap_or_default())?;
            }
            lost.extend(hidden_notes(start, &arrays, false));
            let names = safe_names(arrays.iter().map(|array| array.name.as_bytes()));
            for (array, name) in arrays.iter().zip(names) {
                files.push(place(&start.path.join(format!("{name}.npy")), start, array)?);
            }
        } else {
            let hint = "pass the name of a folder (without .npy) to get a file for each field";
            lost.extend(left_out(arrays.iter().skip(1), hint));
            lost.push(
                "class names, statistics, provenance, normalization, and the layout of pixels (bgr or planes), because a single .npy file cannot store them; a folder (a name without .npy) can"
                    .to_owned(),
            );
            arrays.truncate(1);
            for array in &arrays {
                files.push(place(start.path, start, array)?);
            }
        }
        lost.extend(bits);
        Ok(Self { files, arrays, lost })
    }

    fn encoder(&self) -> PieceEncoder {
        PieceEncoder::new(&self.arrays, false, None)
    }

    fn write(&mut self, Pieces { first, pieces }: Pieces) -> Result<(), ConvertError> {
        let mut files = self.files.iter().zip(pieces);
        files.try_for_each(|(places, piece)| places.write(&Pieces { first, pieces: vec![piece] }))
    }

    fn finish(self) -> Result<Vec<String>, ConvertError> {
        Ok(self.lost)
    }
}

/// A note on the arrays that are not written. `None` if there are none.
fn left_out<'a>(arrays: impl Iterator<Item = &'a Planned>, hint: &str) -> Option<String> {
    let names: Vec<&str> = arrays.map(|array| array.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{}: {hint}", names.join(", ")))
}

fn write_text(start: &SinkStart<'_>, name: &str, text: &str) -> Result<(), ConvertError> {
    let path = start.path.join(format!("{name}.json"));
    std::fs::write(&path, text).map_err(ConvertError::io(start.target))
}

pub(super) fn header_of(array: &Planned) -> Vec<u8> {
    match array.dtype {
        Some(dtype) => npy_header(dtype, &array.shape),
        None => npy_header_of(&format!("|S{}", array.item_bytes), &array.shape),
    }
}

/// Creates the file of an array and writes its header.
fn place(path: &Path, start: &SinkStart<'_>, array: &Planned) -> Result<Places, ConvertError> {
    let file = PlacedFile::open(path, start.target)?;
    let header = header_of(array);
    file.write_at(&header, 0)?;
    let start = to_u64(header.len());
    Ok(Places { file, starts: vec![(start, array.item_bytes)] })
}

/// Writes one file per sample.
struct Samples {
    folder: PathBuf,
    target: PathBuf,
    header: Vec<u8>,
    /// The index of the label field, and its element type.
    label: Option<(usize, DType)>,
    /// The folder of each class id. Empty if classes have no names.
    classes: Vec<String>,
    taken: BTreeSet<String>,
    renamed: Renamed,
    lost: Vec<String>,
}

impl Samples {
    fn make_folder(&self, name: &str) -> Result<(), ConvertError> {
        let made = std::fs::create_dir_all(self.folder.join(name));
        made.map_err(ConvertError::io(&self.target))
    }

    /// The class folder of a sample. Creates it if the class has no name. Empty if there are no labels.
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

impl Sink for Samples {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        write_text(start, METADATA_KEY, &start.metadata.to_text())?;
        let arrays = planned(start);
        let hint = format!("omit {PER_SAMPLE} to get a file for each field");
        let label = label_column(start.exported);
        // Labels and paths are not lost: they become the names of folders and files.
        let others = arrays.iter().enumerate().filter(|(place, array)| {
            array.dtype.is_some() && !is_written(start.exported, *place, start.target, start.options)
        });
        let mut lost: Vec<String> = left_out(others.map(|(_, array)| array), &hint).into_iter().collect();
        lost.extend(bf16_notes(&arrays));
        let header = match start.exported.fields.first().map(|field| &field.form) {
            Some(Form::Array(ArrayType { dtype, shape })) => npy_header(*dtype, shape),
            _ => Vec::new(),
        };
        let names = start.metadata.class_names("label");
        let samples = Self {
            folder: start.path.to_owned(),
            target: start.target.to_owned(),
            header,
            label,
            classes: safe_names(names.iter().map(String::as_bytes)),
            taken: BTreeSet::new(),
            renamed: Renamed::default(),
            lost,
        };
        // Classes without samples get empty folders, so that readers of the folders number the classes as in the pack.
        for class in samples.classes.iter().filter(|_| samples.label.is_some()) {
            samples.make_folder(class)?;
        }
        Ok(samples)
    }

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, batch: Batch) -> Result<(), ConvertError> {
        for idx in 0..batch.n {
            let number = batch.first.saturating_add(to_u64(idx));
            let name = match batch.paths.get(idx) {
                Some(path) => safe_name(stem(path)),
                None => format!("{number:08}"),
            };
            let folder = self.folder_of(&batch, idx)?;
            let mut unique = Path::new(&folder).join(&name).to_string_lossy().into_owned();
            // Paths may no longer be unique, because extensions and folders were removed.
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

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.lost.extend(self.renamed.summary());
        Ok(self.lost)
    }
}

fn label_column(exported: &Exported) -> Option<(usize, DType)> {
    let (column, label) = exported.by_role(Role::Label)?;
    matches!(label.field.dtype, DType::I32 | DType::I64).then_some((column, label.field.dtype))
}

fn label_id(item: &[u8], dtype: DType) -> i64 {
    Scalar::of(dtype, item).and_then(Scalar::integer).unwrap_or(-1)
}
