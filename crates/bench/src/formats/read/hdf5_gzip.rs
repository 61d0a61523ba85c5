//! HDF5 with a chunk of gzip for each sample: the library tells where the chunks lie; threads read and inflate them side by side, which the
//! library would do for one at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};

use super::Made;
use super::hdf5::{chunk_place, failed, labels};
use crate::BenchError;
use crate::formats::candidate::{Batch, Candidate, Reader};
use crate::formats::order::Rows;

/// The file, and where its chunks lie.
pub(crate) struct Hdf5Gzip {
    made: Made,
    /// Offset and length of each, in the order of samples.
    chunks: Arc<[(u64, usize)]>,
    labels: Arc<[i64]>,
}

impl Hdf5Gzip {
    pub(crate) fn new(made: &Made) -> Result<Self, BenchError> {
        let failed = |e: ::hdf5::Error| failed(made, &e);
        let file = ::hdf5::File::open(&made.path).map_err(failed)?;
        let dataset = file.dataset("image").map_err(failed)?;
        let sample: Option<usize> = dataset.chunk().map(|chunk| chunk.iter().product());
        if sample != Some(made.sample_bytes) {
            return Err(made.odd("`image` has no chunks of one sample"));
        }
        let mut start = vec![0; dataset.ndim()];
        let place = |number| {
            *start.first_mut()? = number;
            let (offset, bytes, skipped) = chunk_place(&dataset, &start)?;
            let bytes = usize::try_from(bytes).ok()?;
            (skipped == 0).then_some((offset, bytes))
        };
        let chunks: Option<Vec<_>> = (0..made.n_samples).map(place).collect();
        Ok(Self {
            chunks: chunks.ok_or_else(|| made.odd("`image` has chunks without gzip"))?.into(),
            labels: labels(made)?,
            made: made.clone(),
        })
    }
}

impl Candidate for Hdf5Gzip {
    fn open(&self, threads: usize) -> Result<Vec<Box<dyn Reader>>, BenchError> {
        let path = &self.made.path;
        let file = Arc::new(File::open(path).map_err(BenchError::io(path))?);
        let reader = || Inflated {
            made: self.made.clone(),
            chunks: Arc::clone(&self.chunks),
            labels: Arc::clone(&self.labels),
            file: Arc::clone(&file),
            deflated: Vec::new(),
        };
        Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
    }
}

struct Inflated {
    made: Made,
    chunks: Arc<[(u64, usize)]>,
    labels: Arc<[i64]>,
    file: Arc<File>,
    deflated: Vec<u8>,
}

impl Inflated {
    /// Reads the chunk of a sample and inflates it into `out`.
    fn sample(&mut self, sample: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let odd = || self.made.odd("a chunk of `image` is not what was written");
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
        out.set_labels(rows, &self.labels);
        Ok(())
    }
}
