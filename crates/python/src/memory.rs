//! The memory of Python's arrays. It lives as long as any array that uses it.

use std::ops::Range;
use std::sync::Arc;

use packds_format::DType;
use packds_reader::{ItemPixels, Pack};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch::Held;
use crate::failure::Failure;

/// An array. `numpy.asarray` does not copy it, and keeps it alive.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Memory {
    owner: Owner,
    dtype: DType,
    shape: Vec<usize>,
}

/// The owner of the memory.
#[derive(Debug)]
pub(crate) enum Owner {
    /// Bytes that belong only to this array.
    Bytes(Vec<u8>),
    /// A range of a pack's bytes, read-only.
    Pack(Arc<Pack>, Range<usize>),
    /// A field of a batch, by number.
    Batch(Arc<Held>, usize),
    /// One row of a field of a batch.
    Row(Arc<Held>, usize, usize),
}

impl Memory {
    pub(crate) const fn new(owner: Owner, dtype: DType, shape: Vec<usize>) -> Self {
        Self { owner, dtype, shape }
    }

    /// An array that owns these numbers.
    pub(crate) fn of_u64(numbers: &[u64]) -> Self {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        Self::new(Owner::Bytes(bytes), DType::I64, vec![numbers.len()])
    }

    /// An array that owns these pixels.
    pub(crate) fn of_pixels(ItemPixels { data, shape }: ItemPixels) -> Self {
        Self::new(Owner::Bytes(data), DType::U8, shape)
    }

    fn bytes(&self) -> &[u8] {
        match &self.owner {
            Owner::Bytes(bytes) => bytes,
            Owner::Pack(pack, range) => pack.whole_file().get(range.clone()).unwrap_or_default(),
            Owner::Batch(held, number) => held.bytes(*number),
            Owner::Row(held, number, row) => held.item(*number, *row),
        }
    }

    fn is_read_only(&self) -> bool {
        match &self.owner {
            Owner::Bytes(_) | Owner::Row(..) => false,
            Owner::Pack(..) => true,
            Owner::Batch(held, _) => held.is_lent(),
        }
    }

    /// The number of bytes that the shape needs. `None` if it overflows.
    fn needed(&self) -> Option<usize> {
        let item = usize::try_from(self.dtype.size()).ok()?;
        let mut sides = self.shape.iter();
        sides.try_fold(item, |bytes, side| bytes.checked_mul(*side))
    }
}

#[pymethods]
impl Memory {
    /// The element type, by its name in packds.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The dimensions of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// NumPy's array interface. Bfloat16 is reported as `uint16`.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let bytes = self.bytes();
        // NumPy trusts the shape, and would read past the end if the memory were smaller.
        if self.needed() != Some(bytes.len()) {
            let text = format!("{}: the shape does not match the {} bytes of memory", self.__repr__(), bytes.len());
            return Err(Failure::Damaged(text).into());
        }
        let interface = PyDict::new(py);
        let address = bytes.as_ptr().expose_provenance();
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.dtype.numpy_typestr())?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (address, self.is_read_only()))?;
        Ok(interface)
    }

    fn __repr__(&self) -> String {
        format!("<packds memory: {} {:?}>", self.dtype, self.shape)
    }
}

/// All element types with NumPy's names.
pub(crate) fn numpy_names() -> Vec<(&'static str, &'static str)> {
    let names = DType::ALL.iter().map(|dtype| (dtype.name(), dtype.numpy_name()));
    names.collect()
}
