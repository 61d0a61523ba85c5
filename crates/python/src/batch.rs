//! The batches of a loader as Python classes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use packds_format::DType;
use packds_reader::loader::{self, BatchField, BatchGeometry};
use packds_system::to_u64;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::cuda;
use crate::failure::Failure;
use crate::memory::{Memory, Owner};

/// Number of batches that Python holds in the loader's own memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// A batch of the loader. It is counted while an array refers to it.
#[derive(Debug)]
pub(crate) struct Held {
    batch: loader::Batch,
    count: Count,
}

impl Held {
    pub(crate) fn new(batch: loader::Batch, count: Count) -> Self {
        count.0.fetch_add(1, Ordering::AcqRel);
        Self { batch, count }
    }

    /// All bytes of a field that is fixed-size or ragged.
    pub(crate) fn bytes(&self, number: usize) -> &[u8] {
        let Some(field) = self.batch.fields().get(number) else { return &[] };
        let view = match &field.entry {
            None => self.batch.view(&field.name, field.view),
            Some(_) => self.batch.view_entries(&field.name, field.view).map(|(entries, _)| entries),
        };
        view.map_or(&[], |view| view.bytes)
    }

    /// The bytes of one row of a field.
    pub(crate) fn item(&self, number: usize, row: usize) -> &[u8] {
        let field = self.batch.fields().get(number);
        let item = field.and_then(|field| self.batch.item(&field.name, row).ok());
        item.unwrap_or_default()
    }

    /// Whether the batch's arrays are read-only because they show the pack's own memory.
    pub(crate) fn is_lent(&self) -> bool {
        self.batch.is_lent()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The samples of one rank in one step. Their arrays may outlive the batch.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Batch {
    held: Arc<Held>,
    /// Whether arrays are copies, because the program holds too many batches.
    copies: bool,
}

impl Batch {
    pub(crate) fn new(held: Held, copies: bool) -> Self {
        Self { held: Arc::new(held), copies }
    }

    fn batch(&self) -> &loader::Batch {
        &self.held.batch
    }

    fn value<'py>(&self, py: Python<'py>, number: usize, field: &BatchField) -> PyResult<Bound<'py, PyAny>> {
        if field.entry.is_some() {
            let (entries, offsets) = self.batch().view_entries(&field.name, field.view).map_err(Failure::from)?;
            let whole = entries.shape;
            let offsets: Vec<u64> = offsets.into_iter().map(to_u64).collect();
            return Ok((self.memory(py, number, field, whole), Memory::of_u64(&offsets)).into_pyobject(py)?.into_any());
        }
        let Some(shape) = &field.shape else {
            let items = (0..self.batch().len()).map(|row| self.item(py, number, field, row));
            return Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any());
        };
        let mut whole = vec![self.batch().len()];
        whole.extend(shape);
        Ok(Bound::new(py, self.memory(py, number, field, whole))?.into_any())
    }

    /// All elements of a field that is fixed-size or ragged.
    fn memory(&self, py: Python<'_>, number: usize, field: &BatchField, shape: Vec<usize>) -> Memory {
        let owner = if self.copies {
            Owner::Bytes(py.detach(|| self.held.bytes(number).to_vec()))
        } else {
            Owner::Batch(Arc::clone(&self.held), number)
        };
        Memory::new(owner, field.dtype, shape)
    }

    /// A variable-size item: a [`Memory`] if it has pixels, otherwise bytes.
    fn item<'py>(&self, py: Python<'py>, number: usize, field: &BatchField, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(shape) = self.batch().item_shape(&field.name, row) else {
            return Ok(PyBytes::new(py, self.held.item(number, row)).into_any());
        };
        let owner = if self.copies {
            Owner::Bytes(self.held.item(number, row).to_vec())
        } else {
            Owner::Row(Arc::clone(&self.held), number, row)
        };
        let memory = Memory::new(owner, field.dtype, shape.to_vec());
        Ok(Bound::new(py, memory)?.into_any())
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.batch().len()
    }

    /// The value of each field, in the order of the loader's fields. A fixed-size field is a [`Memory`]. A ragged field
    /// is its entries and its offsets, both a [`Memory`]. Any other variable-size field is a list: of [`Memory`] if its
    /// items are images, else of bytes.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let fields = self.batch().fields().iter().enumerate();
        fields.map(|(number, field)| self.value(py, number, field)).collect()
    }

    /// Queues writes of the fields to tensors on the loader's GPU, on this stream. Without a stream, waits for
    /// completion. The address of a variable-size field is `None`.
    fn write_on_gpu(&self, py: Python<'_>, stream: Option<u64>, addresses: Vec<Option<u64>>) -> PyResult<()> {
        Ok(py.detach(|| cuda::write(self.batch(), stream, &addresses))?)
    }

    /// The position of each sample in its pack.
    fn ids(&self) -> Memory {
        Memory::of_u64(self.batch().ids())
    }

    /// The index of each sample's pack.
    fn packs(&self) -> Vec<usize> {
        self.batch().packs()
    }

    #[getter]
    fn step(&self) -> u64 {
        self.batch().step()
    }

    #[getter]
    fn epoch(&self) -> u32 {
        self.batch().epoch()
    }

    #[getter]
    fn padding(&self) -> usize {
        self.batch().padding()
    }

    #[getter]
    fn is_lent(&self) -> bool {
        self.held.is_lent()
    }

    #[getter]
    fn is_copied(&self) -> bool {
        self.copies
    }

    /// The index of the pack, the sample and the error of each sample that was skipped or replaced.
    fn bad_samples(&self) -> Vec<(usize, u64, String)> {
        let bad = self.batch().bad_samples().iter();
        bad.map(|bad| (bad.pack, bad.sample, bad.error.clone())).collect()
    }

    /// The geometry of the images, if they are augmented.
    fn geometry(&self) -> Option<Geometry> {
        self.batch().geometry().map(Geometry)
    }

    /// If images were mixed: each image's partner, and the image's own share of the result.
    fn mix(&self) -> Option<(Memory, Memory)> {
        let mix = self.batch().mix()?;
        let n = mix.partner.len();
        let partner: Vec<u64> = mix.partner.iter().map(|p| u64::from(*p)).collect();
        let lambda = mix.lambda.iter().flat_map(|share| share.to_le_bytes());
        Some((Memory::of_u64(&partner), Memory::new(Owner::Bytes(lambda.collect()), DType::F32, vec![n])))
    }
}

/// The geometry of a batch's images. It does not keep the batch's slot in use.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Geometry(BatchGeometry);

#[pymethods]
impl Geometry {
    /// For each sample, the geometry of the view with index `view`: left, top, width, height, the two flips, width and
    /// height of the result, and the six numbers of the matrix. The shape is `[samples, 14]`.
    fn view(&self, py: Python<'_>, view: u32) -> PyResult<Memory> {
        let drawn = py.detach(|| self.0.view(view).map_err(Failure::from))?;
        let flip = |flips| f64::from(u8::from(flips));
        let numbers = drawn.iter().flat_map(|one| {
            let window = [one.x, one.y, one.width, one.height];
            let flips = [flip(one.flip_horizontal), flip(one.flip_vertical)];
            let out = [one.out_width, one.out_height].map(f64::from);
            window.into_iter().chain(flips).chain(out).chain(one.matrix)
        });
        let bytes = numbers.flat_map(f64::to_le_bytes).collect();
        let shape = vec![drawn.len(), 14];
        Ok(Memory::new(Owner::Bytes(bytes), DType::F64, shape))
    }
}
