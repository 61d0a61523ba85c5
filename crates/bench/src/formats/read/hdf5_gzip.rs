//! Reads HDF5 with one gzip chunk per sample. The library is only used to locate the chunks, because it would inflate
//! only one chunk at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};
use packds_system::to_usize;

use super::Made;
use super::hdf5::chunk_place;
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::order::Rows;

/// Locates all chunks before anything is timed.
pub(crate) fn hdf5_gzip(made: &Made) -> Result<Open, BenchError> {
    let dataset = ::hdf5::File::open(&made.path).and_then(|file| file.dataset("image"));
    let dataset = dataset.map_err(|e| made.failed(e))?;
    let sample: Option<usize> = dataset.chunk().map(|chunk| chunk.iter().product());
    if sample != Some(made.sample_bytes) {
        return Err(made.odd("the chunks of `image` do not hold one sample each"));
    }
    let mut start = vec![0; dataset.ndim()];
    let place = |number| {
        *start.first_mut()? = number;
        let (offset, bytes, skipped) = chunk_place(&dataset, &start)?;
        (skipped == 0).then_some((offset, to_usize(bytes)))
    };
    let chunks: Option<Arc<[_]>> = (0..made.n_samples).map(place).collect();
    let chunks = chunks.ok_or_else(|| made.odd("`image` has chunks without gzip"))?;
    let made = made.with_listed_labels();
    Ok(Box::new(move |threads| {
        let file = Arc::new(File::open(&made.path).map_err(BenchError::io(&made.path))?);
        readers(threads, || Inflated {
            made: made.clone(),
            chunks: Arc::clone(&chunks),
            file: Arc::clone(&file),
            deflated: Vec::new(),
        })
    }))
}

struct Inflated {
    made: Made,
    /// Offset and length of each chunk, in the order of samples.
    chunks: Arc<[(u64, usize)]>,
    file: Arc<File>,
    deflated: Vec<u8>,
}

impl Inflated {
    /// Reads the chunk of a sample and inflates it into `out`.
    fn sample(&mut self, sample: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let odd = || self.made.odd("a chunk of `image` differs from what was written");
        let place = usize::try_from(sample).ok();
        let (offset, bytes) = place.and_then(|n| self.chunks.get(n)).ok_or_else(odd)?;
        self.deflated.resize(*bytes, 0);
        let read = self.file.read_exact_at(&mut self.deflated, *offset);
        read.map_err(BenchError::io(&self.made.path))?;
        let mut inflate = Decompress::new(true);
        let done = inflate.decompress(&self.deflated, out, FlushDecompress::Finish);
        let whole = u64::try_from(out.len()) == Ok(inflate.total_out());
        match done {
            Ok(Status::StreamEnd) if whole => Ok(()),
            _ => Err(odd()),
        }
    }
}

impl Reader for Inflated {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        for (sample, pixels) in rows.iter().zip(out.samples_mut()) {
            self.sample(sample, pixels)?;
        }
        out.set_labels(rows, &self.made.labels);
        Ok(())
    }
}
