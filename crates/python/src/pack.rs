//! A pack as a Python class.

use packds_system::{counted, to_u64, to_usize};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use packds_format::{Field, FieldKind, FormatError, Store};
use packds_reader::{ReadError, VerifyOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::decoders::Decoders;
use crate::failure::Failure;
use crate::memory::{Memory, Owner};
use crate::watch::{AfterInterrupt, watched};

/// An open pack.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Pack {
    pack: Arc<packds_reader::Pack>,
    /// Whether checksums of items in the body are verified.
    checks: bool,
    decoders: Decoders,
}

impl Pack {
    pub(crate) fn shared(&self) -> Arc<packds_reader::Pack> {
        Arc::clone(&self.pack)
    }

    /// The pack. If its file is truncated during the read that follows, the process does not end.
    fn pack(&self) -> Result<&packds_reader::Pack, Failure> {
        self.pack.protect()?;
        Ok(&self.pack)
    }

    fn field(&self, name: &str) -> Result<(usize, &Field), Failure> {
        let schema = self.pack.schema();
        let number = schema.index_of(name).map_err(|e| self.pack.error(e))?;
        let field = schema.fields().get(number);
        let missing = || Failure::Option(format!("there is no field `{name}`"));
        Ok((number, field.ok_or_else(missing)?))
    }

    /// A stored item. Its bytes are valid only if `still_good` succeeds afterwards.
    fn stored(&self, number: usize, sample: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        if self.checks { self.pack.item(number, sample) } else { self.pack.item_unchecked(number, sample) }
    }

    /// A copy of an item. Errors name the pack's path.
    fn bytes(&self, number: usize, sample: u64) -> Result<Vec<u8>, Failure> {
        Ok(self.pack()?.whole(self.stored(number, sample))?.into_owned())
    }

    /// Items of equal size, one after another in one buffer.
    fn stacked(&self, number: usize, field: &Field, samples: &[u64]) -> Result<Memory, Failure> {
        let Some(item_bytes) = field.item_bytes() else {
            let name = &field.name;
            let text = format!("the items of field `{name}` vary in size");
            return Err(Failure::Option(text));
        };
        let item_bytes = to_usize(item_bytes);
        let mut bytes = Vec::new();
        let room = item_bytes.checked_mul(samples.len());
        let room = room.filter(|room| bytes.try_reserve_exact(*room).is_ok());
        if room.is_none() {
            let (items, bytes) = (counted(samples.len(), "item"), counted(item_bytes, "byte"));
            let text = format!("not enough memory for {items} of {bytes}");
            return Err(Failure::Option(text));
        }
        self.pack()?;
        for &sample in samples {
            match self.stored(number, sample) {
                Ok(item) => bytes.extend_from_slice(&item),
                Err(error) => self.pack.whole(Err(error))?,
            }
        }
        self.pack.still_good()?;
        let mut shape = vec![samples.len()];
        shape.extend(dimensions(field));
        Ok(Memory::new(Owner::Bytes(bytes), field.dtype, shape))
    }
}

fn dimensions(field: &Field) -> Vec<usize> {
    field.shape.iter().map(|side| to_usize(*side)).collect()
}

/// An item, decoded without the GIL.
enum Decoded {
    Array(Memory),
    Text(String),
    Bytes(Vec<u8>),
}

#[pymethods]
impl Pack {
    /// Opens a pack and checks everything except its chunks and columns.
    #[staticmethod]
    #[pyo3(signature = (path, checks=true))]
    fn open(py: Python<'_>, path: PathBuf, checks: bool) -> PyResult<Self> {
        let pack = py.detach(|| packds_reader::open(&path).map_err(Failure::from))?;
        Ok(Self { pack: Arc::new(pack), checks, decoders: Decoders::default() })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.pack.file_path().to_owned()
    }

    #[getter]
    fn n_samples(&self) -> u64 {
        self.pack.n_samples()
    }

    #[getter]
    fn uuid(&self) -> String {
        self.pack.pack_uuid().to_string()
    }

    #[getter]
    fn file_len(&self) -> u64 {
        self.pack.file_len()
    }

    /// The contents of header and footer, as JSON.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| {
            let info = packds_cli::info_document(self.pack()?)?;
            self.pack.still_good()?;
            Ok::<_, Failure>(info.to_string())
        })?)
    }

    /// The names of the fields with training data.
    fn data_fields(&self) -> Vec<String> {
        let fields = self.pack.schema().fields().iter();
        let data = fields.filter(|field| field.is_data());
        data.map(|field| field.name.clone()).collect()
    }

    /// A mapped column, after verifying its checksums.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Memory> {
        let memory = py.detach(|| {
            let (number, field) = self.field(name)?;
            let not_a_column = || {
                let text = format!("field `{name}` is not a column");
                Failure::from(self.pack.error(FormatError::WrongUse(text)))
            };
            if field.store != Store::Column {
                return Err(not_a_column());
            }
            let view = self.pack.whole(self.pack()?.column(number))?;
            let owner = match self.pack.one() {
                // The values of a set are in several files.
                None => Owner::Bytes(view.to_bytes().into_owned()),
                Some(file) => {
                    let entry = file.columns().iter().find(|c| c.field == number).ok_or_else(not_a_column)?;
                    let place = to_usize(entry.offset)..to_usize(entry.offset.saturating_add(entry.len));
                    Owner::Pack(Arc::clone(&self.pack), place)
                }
            };
            let mut shape = vec![to_usize(self.pack.n_samples())];
            shape.extend(dimensions(field));
            Ok::<_, Failure>(Memory::new(owner, field.dtype, shape))
        })?;
        Ok(memory)
    }

    /// Returns an error if the file is no longer the one that was opened. Mapped arrays show the current contents of
    /// the file.
    fn still_good(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.pack()?.still_good().map_err(Failure::from))?)
    }

    /// Verifies the samples' own checksums, even if they were verified before. Without such checksums, verifies their
    /// chunks' checksums on first access.
    fn check(&self, py: Python<'_>, samples: Vec<u64>) -> PyResult<()> {
        let checked = py.detach(|| {
            let mut samples = samples.into_iter();
            samples.try_for_each(|sample| self.pack.sample(sample)?.check())
        });
        Ok(checked.map_err(|error: ReadError| Failure::from(error))?)
    }

    /// An item: a [`Memory`] for a tensor or a decoded image, otherwise text or bytes.
    fn item<'py>(&self, py: Python<'py>, name: &str, sample: u64) -> PyResult<Bound<'py, PyAny>> {
        let decoded = py.detach(|| {
            let (number, field) = self.field(name)?;
            let bytes = self.bytes(number, sample)?;
            let damaged = |reason: String| {
                let path = self.pack.file_path().display();
                Failure::Damaged(format!("{path}: sample {sample}: field `{name}`: {reason}"))
            };
            Ok::<_, Failure>(match field.kind {
                FieldKind::Tensor | FieldKind::Ragged => {
                    let entries = field.entries(to_u64(bytes.len())).map(to_usize);
                    let shape = entries.into_iter().chain(dimensions(field)).collect();
                    Decoded::Array(Memory::new(Owner::Bytes(bytes), field.dtype, shape))
                }
                FieldKind::Image => {
                    let pixels = self.decoders.pixels(&self.pack, field, sample, &bytes);
                    let pixels = pixels.map_err(|error| damaged(error.to_string()))?;
                    Decoded::Array(Memory::of_pixels(pixels))
                }
                kind if kind.is_text() => {
                    let text = String::from_utf8(bytes);
                    Decoded::Text(text.map_err(|error| damaged(error.to_string()))?)
                }
                _ => Decoded::Bytes(bytes),
            })
        })?;
        Ok(match decoded {
            Decoded::Array(memory) => Bound::new(py, memory)?.into_any(),
            Decoded::Text(text) => PyString::new(py, &text).into_any(),
            Decoded::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        })
    }

    /// The stored bytes of an item, decompressed.
    fn raw<'py>(&self, py: Python<'py>, name: &str, sample: u64) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let (number, _) = self.field(name)?;
            self.bytes(number, sample)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Items of equal size as one array.
    fn rows(&self, py: Python<'_>, name: &str, samples: Vec<u64>) -> PyResult<Memory> {
        Ok(py.detach(|| {
            let (number, field) = self.field(name)?;
            self.stacked(number, field, &samples)
        })?)
    }

    /// The samples that meet a condition.
    fn select(&self, py: Python<'_>, condition: &str) -> PyResult<Memory> {
        let samples = py.detach(|| self.pack.select(condition).map_err(Failure::from))?;
        Ok(Memory::of_u64(&samples))
    }

    /// A sample's path in the source.
    fn sample_path(&self, py: Python<'_>, sample: u64) -> PyResult<Option<String>> {
        let path = py.detach(|| Ok::<_, Failure>(self.pack.whole(self.pack()?.path(sample))?))?;
        Ok(path.map(|path| String::from_utf8_lossy(&path).into_owned()))
    }

    /// A sample's image, or another field of images, as a PNG file.
    #[pyo3(signature = (sample, side, field=None))]
    fn picture<'py>(
        &self,
        py: Python<'py>,
        sample: u64,
        side: u32,
        field: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let png = py.detach(|| {
            let png = packds_cli::sample_picture(self.pack()?, sample, side, field);
            png.map_err(|reason| Failure::Damaged(format!("sample {sample}: {reason}")))
        })?;
        Ok(PyBytes::new(py, &png))
    }

    /// Reads every byte and reports damage, as JSON. Calls `progress` with the bytes done and the total.
    #[pyo3(signature = (jobs=0, progress=None))]
    fn verify(&self, py: Python<'_>, jobs: usize, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let pack = Arc::clone(&self.pack);
        let report = watched(py, progress, AfterInterrupt::Abandon, move |watch| {
            let options = VerifyOptions::jobs(jobs);
            packds_reader::verify(&pack, options, &|done, total| watch.tell(done, total))
        })?;
        let report = report.map_err(Failure::from)?;
        Ok(packds_cli::verify_document(&report, self.pack.file_path()).to_string())
    }
}
