//! HDF5: rows of a data set, read straight into the batch as h5py's `read_direct` does. The library lets one thread in at a
//! time, whatever the number of threads.

use packds_system::to_usize;
use std::sync::Arc;

use ::hdf5::{Dataset, Dataspace, Datatype, File, Hyperslab, SliceOrIndex};
use hdf5_metno_sys::h5d::{H5Dget_chunk_info_by_coord, H5Dread};
use hdf5_metno_sys::h5p::H5P_DEFAULT;

use super::Made;
use crate::BenchError;
use crate::formats::candidate::{Batch, Candidate, Reader};
use crate::formats::order::Rows;

/// The file, and how it is read.
pub(crate) struct Hdf5File {
    made: Made,
    /// Whether rows that lie one behind the other are read by one call.
    slices: bool,
    labels: Arc<[i64]>,
}

impl Hdf5File {
    /// One call a sample.
    pub(crate) fn per_sample(made: &Made) -> Result<Self, BenchError> {
        Self::new(made, false)
    }

    /// One call for samples that lie one behind the other. Chunks that are not compressed are read past the library's cache.
    pub(crate) fn slices(made: &Made) -> Result<Self, BenchError> {
        Self::new(made, true)
    }

    fn new(made: &Made, slices: bool) -> Result<Self, BenchError> {
        Ok(Self { labels: labels(made)?, made: made.clone(), slices })
    }
}

/// The labels of all samples.
pub(super) fn labels(made: &Made) -> Result<Arc<[i64]>, BenchError> {
    let file = File::open(&made.path).map_err(|e| failed(made, &e))?;
    let labels = file.dataset("label").and_then(|set| set.read_raw::<i64>());
    Ok(labels.map_err(|e| failed(made, &e))?.into())
}

/// Where the chunk that begins at `start` lies in the file, its length there, and the mask of filters that it was not put
/// through.
pub(super) fn chunk_place(dataset: &Dataset, start: &[u64]) -> Option<(u64, u64, u32)> {
    if start.len() != dataset.ndim() {
        return None;
    }
    let (mut mask, mut address, mut bytes) = (0, 0, 0);
    let result = ::hdf5::sync::sync(|| {
        // SAFETY: the identifier is that of `dataset`, which lives; `start` has as many numbers as it has dimensions; the
        // other pointers are to variables of the types that the library writes. It is called under its lock.
        unsafe {
            H5Dget_chunk_info_by_coord(dataset.id(), start.as_ptr(), &raw mut mask, &raw mut address, &raw mut bytes)
        }
    });
    // A chunk that was never written has no address.
    (result >= 0 && address != u64::MAX).then_some((address, bytes, mask))
}

pub(super) fn failed(made: &Made, error: &::hdf5::Error) -> BenchError {
    made.odd(&error.to_string())
}

impl Candidate for Hdf5File {
    fn open(&self, threads: usize) -> Result<Vec<Box<dyn Reader>>, BenchError> {
        let failed = |e: ::hdf5::Error| failed(&self.made, &e);
        let mut options = File::with_options();
        options.with_fapl(|access| access.chunk_cache(521, 0, 1.0));
        let file = options.open(&self.made.path).map_err(failed)?;
        let dataset = file.dataset("image").map_err(failed)?;
        let is_u8 = dataset.dtype().map(|kind| kind.is::<u8>());
        let sample: usize = dataset.shape().iter().skip(1).product();
        if !is_u8.map_err(failed)? || sample != self.made.sample_bytes {
            return Err(self.made.odd("`image` is not of u8 pixels"));
        }
        let reader = || DatasetRows {
            made: self.made.clone(),
            slices: self.slices,
            dataset: dataset.clone(),
            labels: Arc::clone(&self.labels),
        };
        Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
    }
}

struct DatasetRows {
    made: Made,
    slices: bool,
    dataset: Dataset,
    labels: Arc<[i64]>,
}

impl DatasetRows {
    /// Reads `out.len()` bytes of rows from `first` on.
    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), ::hdf5::Error> {
        let n = out.len() / self.made.sample_bytes.max(1);
        let first = to_usize(first);
        let mut slab = vec![SliceOrIndex::from(first..first.saturating_add(n))];
        slab.extend((1..self.dataset.ndim()).map(|_| SliceOrIndex::from(..)));
        let rows = self.dataset.space()?.select(Hyperslab::from(slab))?;
        if rows.selection_size() != out.len() {
            return Err("rows that are not there".into());
        }
        // Of the same rank: chunks are then copied row by row, and not element by element.
        let mut shape = self.dataset.shape();
        if let Some(rows) = shape.first_mut() {
            *rows = n;
        }
        let memory = Dataspace::try_new(shape)?;
        let kind = Datatype::from_type::<u8>()?;
        let (dataset, kind, memory, rows) = (self.dataset.id(), kind.id(), memory.id(), rows.id());
        let result = ::hdf5::sync::sync(|| {
            let place = out.as_mut_ptr().cast();
            // SAFETY: the four identifiers are of objects that live until the end of this function; `place` has as many
            // bytes as are selected, which was compared above, and as the memory's space says; elements are one byte
            // each. The library is called under the lock of its Rust interface.
            unsafe { H5Dread(dataset, kind, memory, rows, H5P_DEFAULT, place) }
        });
        if result < 0 {
            return Err("H5Dread failed".into());
        }
        Ok(())
    }
}

impl Reader for DatasetRows {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        match rows {
            Rows::Run(run) if self.slices => {
                self.read(run.start, out.pixels_mut()).map_err(|e| failed(&self.made, &e))?
            }
            rows => {
                for (sample, pixels) in rows.iter().zip(out.samples_mut()) {
                    let read = self.read(sample, pixels);
                    read.map_err(|e| failed(&self.made, &e))?;
                }
            }
        }
        out.set_labels(rows, &self.labels);
        Ok(())
    }
}
