//! Reads rows of an HDF5 dataset directly into the batch, like `read_direct` in h5py. The library runs only one thread
//! at a time.

use packds_system::to_usize;

use ::hdf5::{Dataset, Dataspace, Datatype, File, Hyperslab, SliceOrIndex};
use hdf5_metno_sys::h5d::{H5Dget_chunk_info_by_coord, H5Dread};
use hdf5_metno_sys::h5p::H5P_DEFAULT;

use super::Made;
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::order::Rows;

pub(crate) fn hdf5_per_sample(made: &Made) -> Result<Open, BenchError> {
    Ok(by(made, false))
}

/// Reads consecutive samples with one call. Uncompressed chunks bypass the library's cache.
pub(crate) fn hdf5_slices(made: &Made) -> Result<Open, BenchError> {
    Ok(by(made, true))
}

fn by(made: &Made, slices: bool) -> Open {
    let made = made.with_listed_labels();
    Box::new(move |threads| {
        let mut options = File::with_options();
        options.with_fapl(|access| access.chunk_cache(521, 0, 1.0));
        let dataset = options.open(&made.path).and_then(|file| file.dataset("image"));
        let dataset = dataset.map_err(|e| made.failed(e))?;
        let is_u8 = dataset.dtype().map(|kind| kind.is::<u8>());
        let sample: usize = dataset.shape().iter().skip(1).product();
        if !is_u8.map_err(|e| made.failed(e))? || sample != made.sample_bytes {
            return Err(made.odd("`image` does not have u8 pixels"));
        }
        readers(threads, || DatasetRows { made: made.clone(), slices, dataset: dataset.clone() })
    })
}

/// The file offset of the chunk that begins at `start`, its stored length, and the mask of skipped filters.
pub(super) fn chunk_place(dataset: &Dataset, start: &[u64]) -> Option<(u64, u64, u32)> {
    if start.len() != dataset.ndim() {
        return None;
    }
    let (mut mask, mut address, mut bytes) = (0, 0, 0);
    let result = ::hdf5::sync::sync(|| {
        // SAFETY: the identifier belongs to `dataset`, which is alive. `start` has one number for each of its
        // dimensions. The other pointers refer to variables of the types that the library writes. The call holds the
        // library's lock.
        unsafe {
            H5Dget_chunk_info_by_coord(dataset.id(), start.as_ptr(), &raw mut mask, &raw mut address, &raw mut bytes)
        }
    });
    // A chunk that was never written has no address.
    (result >= 0 && address != u64::MAX).then_some((address, bytes, mask))
}

struct DatasetRows {
    made: Made,
    /// Whether consecutive rows are read with one call.
    slices: bool,
    dataset: Dataset,
}

impl DatasetRows {
    /// Reads `out.len()` bytes, starting at row `first`.
    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), ::hdf5::Error> {
        let n = out.len() / self.made.sample_bytes.max(1);
        let first = to_usize(first);
        let mut slab = vec![SliceOrIndex::from(first..first.saturating_add(n))];
        slab.extend((1..self.dataset.ndim()).map(|_| SliceOrIndex::from(..)));
        let rows = self.dataset.space()?.select(Hyperslab::from(slab))?;
        if rows.selection_size() != out.len() {
            return Err("the rows do not exist".into());
        }
        // The memory space has the same rank as the dataset. With another rank, the library copies chunks element by
        // element instead of row by row.
        let mut shape = self.dataset.shape();
        if let Some(rows) = shape.first_mut() {
            *rows = n;
        }
        let memory = Dataspace::try_new(shape)?;
        let kind = Datatype::from_type::<u8>()?;
        let (dataset, kind, memory, rows) = (self.dataset.id(), kind.id(), memory.id(), rows.id());
        let result = ::hdf5::sync::sync(|| {
            let place = out.as_mut_ptr().cast();
            // SAFETY: the four identifiers belong to objects that live until the end of this function. `place` has as
            // many bytes as are selected (checked above) and as the memory space describes. Each element is one byte.
            // The call holds the lock of the library's Rust interface.
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
            Rows::Run(run) if self.slices => self.read(run.start, out.pixels_mut()),
            rows => rows.iter().zip(out.samples_mut()).try_for_each(|(sample, pixels)| self.read(sample, pixels)),
        }
        .map_err(|e| self.made.failed(e))?;
        out.set_labels(rows, &self.made.labels);
        Ok(())
    }
}
