//! Writes samples from Python, one by one, to a pack.

use packds_system::lock;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use packds_convert::source::{Given, GivenKind, GivenValue};
use packds_convert::{ConvertOptions, check_output, convert_listing};
use packds_format::{DType, Keypoints, Role};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};

use crate::conversion::{GivenTexts, options_of};
use crate::failure::Failure;
use crate::watch::{AfterInterrupt, watched};

/// A field: its name, its kind, and for arrays also the element type and shape.
type FieldTuple = (String, String, Option<String>, Option<Vec<u64>>);

/// Collects samples. The pack appears under its name only when it is finished.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Writer {
    given: Mutex<Option<Given>>,
    target: PathBuf,
    options: ConvertOptions,
}

/// A value from Python that can be used without the GIL.
enum Value {
    Bytes(PyBackedBytes),
    Array(DType, Vec<u64>, PyBackedBytes),
    Text(PyBackedStr),
    Id(i64),
    Ids(Vec<i64>),
}

impl Value {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyBytes>() {
            return Ok(Self::Bytes(value.extract()?));
        }
        if value.is_instance_of::<PyString>() {
            return Ok(Self::Text(value.extract()?));
        }
        if value.is_instance_of::<PyInt>() {
            return Ok(Self::Id(value.extract()?));
        }
        if value.is_instance_of::<PyTuple>() {
            let (dtype, shape, bytes): (String, Vec<u64>, PyBackedBytes) = value.extract()?;
            return Ok(Self::Array(known(&dtype)?, shape, bytes));
        }
        Ok(Self::Ids(value.extract()?))
    }

    fn given(&self) -> GivenValue<'_> {
        match self {
            Self::Bytes(bytes) => GivenValue::Bytes(bytes),
            Self::Array(dtype, shape, bytes) => GivenValue::Array { dtype: *dtype, shape, bytes },
            Self::Text(text) => GivenValue::Text(text),
            Self::Id(id) => GivenValue::Id(*id),
            Self::Ids(ids) => GivenValue::Ids(ids),
        }
    }
}

fn known(dtype: &str) -> Result<DType, Failure> {
    dtype.parse().map_err(|_| Failure::Option(format!("packs do not support the element type {dtype}")))
}

fn kind((name, kind, dtype, shape): FieldTuple) -> Result<(String, GivenKind), Failure> {
    let kind = match (kind.as_str(), dtype, shape) {
        ("image", ..) => GivenKind::Image,
        ("mask", ..) => GivenKind::Mask,
        ("label", ..) => GivenKind::Label,
        ("labels", ..) => GivenKind::Labels,
        ("bytes", ..) => GivenKind::Bytes,
        ("text", ..) => GivenKind::Text,
        ("json", ..) => GivenKind::Json,
        ("array", Some(dtype), Some(shape)) => GivenKind::Array { dtype: known(&dtype)?, shape },
        ("ragged", Some(dtype), Some(shape)) => GivenKind::Ragged { dtype: known(&dtype)?, shape, role: None },
        ("box_attribute", Some(dtype), Some(shape)) => {
            GivenKind::Ragged { dtype: known(&dtype)?, shape, role: Some(Role::BoxAttribute) }
        }
        ("keypoints", _, Some(shape)) => GivenKind::Ragged { dtype: DType::F32, shape, role: Some(Role::Keypoints) },
        ("polygons", ..) => GivenKind::Ragged { dtype: DType::F32, shape: vec![4], role: Some(Role::Polygons) },
        ("boxes", ..) => GivenKind::Ragged { dtype: DType::F32, shape: vec![4], role: Some(Role::Boxes) },
        ("box_labels", ..) => GivenKind::Ragged { dtype: DType::I64, shape: Vec::new(), role: Some(Role::BoxLabels) },
        (other, ..) => {
            return Err(Failure::Option(format!(
                "field `{name}`: expected image, mask, label, labels, array, ragged, bytes, text or json, found {other:?}"
            )));
        }
    };
    Ok((name, kind))
}

impl Writer {}

fn closed() -> Failure {
    Failure::Option("this writer is closed".to_owned())
}

#[pymethods]
impl Writer {
    #[new]
    fn new(
        target: PathBuf,
        fields: Vec<FieldTuple>,
        classes: Vec<String>,
        keypoints: Option<(Vec<String>, Vec<[u32; 2]>)>,
        given: GivenTexts,
    ) -> PyResult<Self> {
        let options = options_of::<ConvertOptions>(&given)?.for_output(&target);
        options.check().map_err(|error| Failure::refused(&error))?;
        check_output(&target, options.force).map_err(Failure::from)?;
        let fields = fields.into_iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        let folder = options.list.spool.clone().unwrap_or_else(std::env::temp_dir);
        let mut given = Given::new(&target, &folder, &fields, classes).map_err(Failure::from)?;
        if let Some((names, skeleton)) = keypoints {
            given = given.with_keypoints(Keypoints::named(names, skeleton)).map_err(Failure::from)?;
        }
        Ok(Self { given: Mutex::new(Some(given)), target, options })
    }

    /// Adds a sample: one value for each field.
    fn add(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let values = values.iter().map(Value::read).collect::<PyResult<Vec<_>>>()?;
        let pushed = py.detach(|| {
            let values: Vec<GivenValue<'_>> = values.iter().map(Value::given).collect();
            let mut given = lock(&self.given);
            let given = given.as_mut().ok_or_else(closed)?;
            given.push(&values).map_err(Failure::from)
        });
        Ok(pushed?)
    }

    fn __len__(&self) -> usize {
        lock(&self.given).as_ref().map_or(0, Given::len)
    }

    /// Writes the pack. Returns the report as JSON.
    #[pyo3(signature = (progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let given = lock(&self.given).take().ok_or_else(closed)?;
        let (target, options) = (self.target.clone(), self.options.clone());
        let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
            let listing = given.into_listing()?;
            convert_listing(&listing, Duration::ZERO, &target, &options, &**watch)
        })?;
        Ok(serde_json::json!(report.map_err(Failure::Convert)?).to_string())
    }

    /// Discards all samples.
    fn abandon(&self) {
        *lock(&self.given) = None;
    }
}
