//! HDF5 with chunks of gzip: the library tells where the chunks lie; threads read and inflate them side by side, which the
//! library would do for one at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};

use super::Made;
use super::hdf5::{failed, labels};
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
        let chunk = dataset.chunk().unwrap_or_default();
        let samples = chunk.first().and_then(|n| u64::try_from(*n).ok());
        let whole = dataset.shape().get(1..) == chunk.get(1..);
        if samples != Some(made.batch) || !whole {
            return Err(made.odd("`image` has chunks of another size"));
        }
        let n = dataset.num_chunks().unwrap_or(0);
        let infos = (0..n).map(|number| dataset.chunk_info(number));
        let mut infos: Vec<_> = infos.collect::<Option<_>>().unwrap_or_default();
        infos.sort_by(|a, b| a.offset.cmp(&b.offset));
        let place = |info: ::hdf5::dataset::ChunkInfo| {
            let deflated = info.filter_mask == 0;
            let bytes = usize::try_from(info.size).ok().filter(|_| deflated);
            bytes.map(|bytes| (info.addr, bytes))
        };
        let chunks: Option<Vec<_>> = infos.into_iter().map(place).collect();
        Ok(Self {
            chunks: chunks
                .ok_or_else(|| made.odd("`image` has chunks without gzip"))?
                .into(),
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
            kept: None,
            pixels: Vec::new(),
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
    /// The number of the chunk that was inflated last for single samples, and its pixels.
    kept: Option<u64>,
    pixels: Vec<u8>,
}

impl Inflated {
    /// Reads a chunk and inflates it into `out`, which has room for as many pixels as are in it.
    fn chunk(&mut self, number: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let odd = || self.made.odd("a chunk of `image` is not what was written");
        let place = usize::try_from(number).ok();
        let (offset, bytes) = place.and_then(|n| self.chunks.get(n)).ok_or_else(odd)?;
        self.deflated.resize(*bytes, 0);
        let read = self.file.read_exact_at(&mut self.deflated, *offset);
        read.map_err(BenchError::io(&self.made.path))?;
        let mut inflate = Decompress::new(true);
        let done = inflate.decompress(&self.deflated, out, FlushDecompress::Finish);
        let whole = usize::try_from(inflate.total_out()) == Ok(out.len());
        match done {
            Ok(Status::StreamEnd) if whole => Ok(()),
            _ => Err(odd()),
        }
    }

    fn sample(&mut self, sample: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let batch = self.made.batch.max(1);
        let number = sample / batch;
        if self.kept != Some(number) {
            let samples = usize::try_from(batch).unwrap_or(1);
            let mut pixels = std::mem::take(&mut self.pixels);
            pixels.resize(samples * self.made.sample_bytes, 0);
            self.chunk(number, &mut pixels)?;
            (self.pixels, self.kept) = (pixels, Some(number));
        }
        let row = usize::try_from(sample % batch).unwrap_or(0);
        let start = row * self.made.sample_bytes;
        let found = self.pixels.get(start..start + out.len());
        let odd = || self.made.odd("a sample of `image` is not there");
        out.copy_from_slice(found.ok_or_else(odd)?);
        Ok(())
    }
}

impl Reader for Inflated {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        let batch = self.made.batch.max(1);
        match rows {
            Rows::Run(run) if run.start.is_multiple_of(batch) && run.end - run.start == batch => {
                self.chunk(run.start / batch, out.pixels_mut())?;
            }
            rows => {
                for (sample, pixels) in rows.iter().zip(out.samples_mut()) {
                    self.sample(sample, pixels)?;
                }
            }
        }
        out.set_labels(rows, &self.labels);
        Ok(())
    }
}
