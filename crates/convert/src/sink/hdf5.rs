//! HDF5: one dataset per field, readable with h5py.
//!
//! The HDF5 library compresses one chunk at a time.

use packds_system::{to_u64, to_usize};
use std::fs::File as Plain;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::hdf5::dataset::{AllocTime, FillTime, Layout};
use ::hdf5::types::{IntSize, TypeDescriptor, VarLenArray, VarLenUnicode};
use ::hdf5::{Dataset, File, H5Type, Hyperslab, SliceOrIndex};
use ndarray::{ArrayViewD, IxDyn};
use packds_format::{Classes, DType};

use super::batch::Column;
use super::fields::held_names;
use super::renamed::not_utf8;
use super::{AsItIs, Batch, ExportedField, Form, Sink, SinkStart};
use crate::dtypes::{Native, with_native};
use crate::error::ConvertError;
use crate::export::ExportCodec;
use crate::metadata::METADATA_KEY;
use crate::source::{CLASSES_ATTRIBUTE, PATHS};

/// Attributes are stored in an object's header, which is limited to 64 KiB. Each string in a list takes 16 bytes of it.
const MAX_CLASSES: usize = 4000;

pub(crate) struct Hdf5Sink {
    target: PathBuf,
    fields: Vec<ExportedField>,
    has_paths: bool,
    n_samples: usize,
    classes: Vec<Classes>,
    metadata: String,
    /// Whether arrays are stored in chunks, compressed or not.
    chunked: bool,
    gzip: Option<u8>,
    file: File,
    /// The same file, for datasets that are written without the library.
    plain: Plain,
    /// Created when the first batch arrives, because that batch has as many samples as a chunk.
    datasets: Vec<Place>,
    paths: Option<Dataset>,
    lost: Vec<String>,
    /// Number of paths that are not valid UTF-8.
    bent_paths: u64,
}

enum Place {
    /// An array at this offset in the file, with this many bytes per sample.
    Plain { offset: u64, bytes: u64 },
    /// A dataset that the library writes.
    Library(Dataset),
}

impl Hdf5Sink {
    /// Creates the datasets, unless they already exist.
    fn begin(&mut self, chunk: usize) -> Result<(), ConvertError> {
        let made = if self.datasets.is_empty() { self.make_datasets(chunk) } else { Ok(()) };
        made.map_err(|e| failed(&self.target, &e))
    }

    fn make_datasets(&mut self, chunk: usize) -> ::hdf5::Result<()> {
        for field in self.fields.clone() {
            let place = match &field.form {
                Form::Array(array) => {
                    if array.dtype == DType::Bf16 {
                        self.lost.push(format!(
                            "the type of field `{}`, because HDF5 has no bfloat16: its bits are stored as uint16",
                            field.field.name
                        ));
                    }
                    self.make_array(&field.field.name, array.dtype, &array.shape, chunk)?
                }
                Form::File | Form::Bytes => {
                    let bytes = TypeDescriptor::VarLenArray(Box::new(TypeDescriptor::Unsigned(IntSize::U1)));
                    Place::Library(self.make(&field.field.name, &bytes, &[], None)?)
                }
                Form::Text | Form::Json => {
                    Place::Library(self.make(&field.field.name, &TypeDescriptor::VarLenUnicode, &[], None)?)
                }
            };
            self.datasets.push(place);
        }
        if self.has_paths {
            if self.fields.iter().any(|f| f.field.name == PATHS) {
                self.has_paths = false;
                self.lost.push(format!("the samples' paths, because another field is named `{PATHS}`"));
            } else {
                self.paths = Some(self.make(PATHS, &TypeDescriptor::VarLenUnicode, &[], None)?);
            }
        }
        self.describe()
    }

    /// Creates a dataset with one item of this type and shape per sample.
    fn make(
        &self,
        name: &str,
        dtype: &TypeDescriptor,
        shape: &[usize],
        chunk: Option<usize>,
    ) -> ::hdf5::Result<Dataset> {
        let dims = |n: usize| [&[n], shape].concat();
        let builder = self.file.new_dataset_builder().empty_as(dtype);
        // With timestamps, no two files would be the same.
        let builder = builder.shape(dims(self.n_samples)).obj_track_times(false);
        let builder = match chunk {
            Some(chunk) => {
                let builder = builder.chunk(dims(chunk.clamp(1, self.n_samples.max(1))));
                match self.gzip {
                    Some(level) => builder.deflate(level),
                    None => builder,
                }
            }
            // Variable-length references must be initialized before they are written.
            None if matches!(dtype, TypeDescriptor::VarLenArray(_) | TypeDescriptor::VarLenUnicode) => {
                builder.layout(Layout::Contiguous)
            }
            None => builder.layout(Layout::Contiguous).alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never),
        };
        builder.create(name)
    }

    fn make_array(&self, name: &str, dtype: DType, shape: &[u64], chunk: usize) -> ::hdf5::Result<Place> {
        let dims: Vec<usize> = shape.iter().map(|n| to_usize(*n)).collect();
        let chunk = self.chunked.then_some(chunk);
        let dataset = self.make(name, &with_native!(dtype, T => T::type_descriptor()), &dims, chunk)?;
        let bytes = shape.iter().product::<u64>() * dtype.size();
        Ok(match dataset.offset() {
            Some(offset) if chunk.is_none() => Place::Plain { offset, bytes },
            _ => Place::Library(dataset),
        })
    }

    fn describe(&mut self) -> ::hdf5::Result<()> {
        let text = VarLenUnicode::from_str(&self.metadata).map_err(|e| e.to_string())?;
        let attribute = self.file.new_attr::<VarLenUnicode>();
        attribute.create(METADATA_KEY)?.write_scalar(&text)?;
        for classes in &self.classes {
            let known = self.fields.iter().any(|f| f.field.name == classes.field);
            if !known || classes.names.is_empty() {
                continue;
            }
            if classes.names.len() > MAX_CLASSES {
                self.lost.push(format!(
                    "the attribute with the class names of `{}`, because an attribute can store at most {MAX_CLASSES} names (packds reads them from the attribute `{METADATA_KEY}`)",
                    classes.field
                ));
                continue;
            }
            let names = classes.names.iter().map(|n| VarLenUnicode::from_str(n));
            let names: Vec<VarLenUnicode> = names.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
            let dataset = self.file.dataset(&classes.field)?;
            let attribute = dataset.new_attr::<VarLenUnicode>().shape(names.len());
            attribute.create(CLASSES_ATTRIBUTE)?.write_raw(names.as_slice())?;
        }
        Ok(())
    }

    fn write_column(
        &self,
        place: &Place,
        field: &ExportedField,
        column: &Column,
        batch: &Batch,
    ) -> Result<(), ConvertError> {
        let first = batch.first;
        let bad = |idx: usize, reason: String| ConvertError::BadItem {
            sample: first.saturating_add(to_u64(idx)),
            field: field.field.name.clone(),
            reason: format!("HDF5 cannot store this text: {reason}"),
        };
        match (place, &field.form) {
            (Place::Plain { offset, bytes }, _) => {
                let at = offset + first * bytes;
                self.plain.write_all_at(&column.bytes, at).map_err(ConvertError::io(&self.target))
            }
            (Place::Library(dataset), Form::Array(array)) => {
                write_array(dataset, array.dtype, first, batch.n, &column.bytes).map_err(|e| failed(&self.target, &e))
            }
            (Place::Library(dataset), Form::File | Form::Bytes) => {
                let items = (0..batch.n).map(|idx| VarLenArray::from_slice(column.item(idx)));
                write_rows(dataset, first, &items.collect::<Vec<VarLenArray<u8>>>())
                    .map_err(|e| failed(&self.target, &e))
            }
            (Place::Library(dataset), Form::Text | Form::Json) => {
                let text = |idx| {
                    let text = str::from_utf8(column.item(idx)).map_err(|e| bad(idx, e.to_string()))?;
                    VarLenUnicode::from_str(text).map_err(|e| bad(idx, e.to_string()))
                };
                let texts: Result<Vec<_>, _> = (0..batch.n).map(text).collect();
                write_rows(dataset, first, &texts?).map_err(|e| failed(&self.target, &e))
            }
        }
    }

    fn write_paths(&mut self, batch: &Batch) -> Result<(), ConvertError> {
        let Some(dataset) = &self.paths else {
            return Ok(());
        };
        let mut paths = Vec::with_capacity(batch.n);
        for path in &batch.paths {
            let text = String::from_utf8_lossy(path);
            self.bent_paths += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
            // This cannot fail, because file paths contain no zero bytes.
            paths.push(VarLenUnicode::from_str(&text).unwrap_or_default());
        }
        write_rows(dataset, batch.first, &paths).map_err(|e| failed(&self.target, &e))
    }
}

impl Sink for Hdf5Sink {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let failed = |e: ::hdf5::Error| failed(start.target, &e);
        // HDF5 must not lock the file, because the caller has already locked it.
        let mut options = File::with_options();
        options.with_fapl(|access| access.libver_earliest().file_locking(false));
        let file = options.create(start.path).map_err(failed)?;
        let plain = Plain::options().write(true).open(start.path);
        let gzip = match start.options.codec {
            Some(ExportCodec::Gzip(level)) => u8::try_from(level).ok(),
            _ => None,
        };
        let mut lost = Vec::new();
        let mut fields = start.exported.fields.clone();
        let mut classes = start.metadata.classes.clone();
        let of: Vec<String> = fields.iter().map(|f| f.field.name.clone()).collect();
        let names = held_names(&of, &of, "an HDF5 dataset", &mut lost);
        for classes in &mut classes {
            let place = of.iter().position(|name| *name == classes.field);
            if let Some(name) = place.and_then(|place| names.get(place)) {
                classes.field.clone_from(name);
            }
        }
        for (field, name) in fields.iter_mut().zip(names) {
            field.field.name = name;
        }
        Ok(Self {
            target: start.target.to_owned(),
            fields,
            has_paths: start.exported.has_paths,
            n_samples: to_usize(start.n_samples),
            classes,
            metadata: start.metadata.to_text(),
            chunked: start.options.chunk_samples.is_some() || gzip.is_some(),
            gzip,
            file,
            plain: plain.map_err(ConvertError::io(start.target))?,
            datasets: Vec::new(),
            paths: None,
            lost,
            bent_paths: 0,
        })
    }

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, batch: Batch) -> Result<(), ConvertError> {
        self.begin(batch.n)?;
        let fields = self.fields.iter().zip(&self.datasets).zip(&batch.columns);
        for ((field, place), column) in fields {
            self.write_column(place, field, column, &batch)?;
        }
        self.write_paths(&batch)
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.begin(1)?;
        if self.bent_paths > 0 {
            self.lost.push(not_utf8(self.bent_paths));
        }
        self.datasets.clear();
        self.paths = None;
        self.plain.flush().map_err(ConvertError::io(&self.target))?;
        self.file.close().map_err(|e| failed(&self.target, &e))?;
        Ok(self.lost)
    }
}

fn failed(target: &Path, error: &::hdf5::Error) -> ConvertError {
    ConvertError::Io { path: target.to_owned(), source: of_library(&error.to_string()) }
}

/// Converts an error of the library. If the message contains the number of a system error, returns that error, because
/// it is clearer than the rest of the message.
fn of_library(text: &str) -> std::io::Error {
    let behind = text.split_once("errno = ").map_or("", |(_, behind)| behind);
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next();
    match digits.unwrap_or_default().parse() {
        Ok(number) => std::io::Error::from_raw_os_error(number),
        Err(_) => std::io::Error::other(text.to_owned()),
    }
}

fn slab(dims: usize, first: u64, count: usize) -> Hyperslab {
    let mut slice = vec![SliceOrIndex::SliceCount { start: to_usize(first), step: 1, count, block: 1 }];
    slice.resize(dims, SliceOrIndex::from(..));
    Hyperslab::from(slice)
}

fn write_rows<T: H5Type>(dataset: &Dataset, first: u64, items: &[T]) -> ::hdf5::Result<()> {
    let view = ArrayViewD::from_shape(IxDyn(&[items.len()]), items);
    let view = view.map_err(|e| e.to_string())?;
    dataset.write_slice(view, slab(1, first, items.len()))
}

fn write_array(dataset: &Dataset, dtype: DType, first: u64, n: usize, bytes: &[u8]) -> ::hdf5::Result<()> {
    with_native!(dtype, T => {
        let elements = bytes.chunks_exact(size_of::<T>()).map(T::from_bytes);
        let elements: Vec<T> = elements.collect();
        let mut shape = dataset.shape();
        if let Some(first) = shape.first_mut() {
            *first = n;
        }
        let view = ArrayViewD::from_shape(IxDyn(&shape), &elements);
        let view = view.map_err(|e| e.to_string())?;
        dataset.write_slice(view, slab(shape.len(), first, n))
    })
}
