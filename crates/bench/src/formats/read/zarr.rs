//! Zarr, by the zarrs crate: whole chunks, samples of chunks, and samples of shards.

use std::sync::Arc;

use ::zarrs::array::CodecOptions;
use ::zarrs::array::{Array, ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset};
use ::zarrs::filesystem::FilesystemStore;

use super::Made;
use crate::BenchError;
use crate::formats::candidate::{Batch, Candidate, Reader};
use crate::formats::order::Rows;

type Images = Array<FilesystemStore>;

/// How much of it is read by one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBy {
    /// A chunk, which is a sample.
    Sample,
    /// A chunk, which is a batch; where samples are wanted alone, a part of it.
    Batch,
    /// A sample, which is a part of a chunk, always.
    PartOfChunk,
    /// Samples of a shard, whose index is kept once it was read.
    Shard,
}

/// The array, and how it is read.
pub(crate) struct ZarrArray {
    made: Made,
    by: ReadBy,
    labels: Arc<[i64]>,
}

impl ZarrArray {
    pub(crate) fn new(made: &Made, by: ReadBy) -> Result<Self, BenchError> {
        let labels = array(made, "/label")?;
        let all = ArraySubset::new_with_shape(labels.shape().to_vec());
        // Labels are stored in 32 bits where these are enough.
        let labels = match labels.retrieve_array_subset::<Vec<i32>>(&all) {
            Ok(narrow) => Ok(narrow.into_iter().map(i64::from).collect()),
            Err(_) => labels.retrieve_array_subset::<Vec<i64>>(&all),
        };
        Ok(Self { labels: labels.map_err(|e| made.odd(&e.to_string()))?.into(), made: made.clone(), by })
    }
}

fn array(made: &Made, name: &str) -> Result<Images, BenchError> {
    let store = FilesystemStore::new(&made.path).map_err(|e| made.odd(&e.to_string()))?;
    Array::open(Arc::new(store), name).map_err(|e| made.odd(&e.to_string()))
}

impl Candidate for ZarrArray {
    fn open(&self, threads: usize) -> Result<Vec<Box<dyn Reader>>, BenchError> {
        let images = Arc::new(array(&self.made, "/image")?);
        let cache = Arc::new(ArrayShardedReadableExtCache::new(&images));
        let reader = || ArrayRows {
            made: self.made.clone(),
            by: self.by,
            images: Arc::clone(&images),
            cache: Arc::clone(&cache),
            // Each of our threads reads for itself: together they are as many as are allowed.
            options: CodecOptions::default().with_concurrent_target(1),
            labels: Arc::clone(&self.labels),
        };
        Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
    }
}

struct ArrayRows {
    made: Made,
    by: ReadBy,
    images: Arc<Images>,
    cache: Arc<ArrayShardedReadableExtCache>,
    options: CodecOptions,
    labels: Arc<[i64]>,
}

impl ArrayRows {
    fn chunk(&self, number: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let mut place = vec![0; self.images.shape().len()];
        if let Some(first) = place.first_mut() {
            *first = number;
        }
        let options = &self.options;
        let found = self.images.retrieve_chunk_opt::<Vec<u8>>(&place, options);
        self.put(found.map_err(|e| self.made.odd(&e.to_string()))?, out)
    }

    fn rows(&self, first: u64, n: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let dimensions = self.images.shape().iter().skip(1).map(|n| 0..*n);
        let ranges: Vec<_> = std::iter::once(first..first + n).chain(dimensions).collect();
        let subset = ArraySubset::new_with_ranges(&ranges);
        let options = &self.options;
        let found = match self.by {
            ReadBy::Shard => self.images.retrieve_array_subset_sharded_opt::<Vec<u8>>(&self.cache, &subset, options),
            _ => self.images.retrieve_array_subset_opt::<Vec<u8>>(&subset, options),
        };
        self.put(found.map_err(|e| self.made.odd(&e.to_string()))?, out)
    }

    fn put(&self, found: Vec<u8>, out: &mut [u8]) -> Result<(), BenchError> {
        if found.len() != out.len() {
            return Err(self.made.odd("`image` has chunks of another size"));
        }
        out.copy_from_slice(&found);
        Ok(())
    }
}

impl Reader for ArrayRows {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        let batch = self.made.batch.max(1);
        match (self.by, rows) {
            (ReadBy::Batch, Rows::Run(run)) => self.chunk(run.start / batch, out.pixels_mut())?,
            (ReadBy::Shard, Rows::Run(run)) => {
                self.rows(run.start, run.end - run.start, out.pixels_mut())?;
            }
            (by, rows) => {
                for (sample, pixels) in rows.iter().zip(out.samples_mut()) {
                    match by {
                        ReadBy::Sample => self.chunk(sample, pixels)?,
                        _ => self.rows(sample, 1, pixels)?,
                    }
                }
            }
        }
        out.set_labels(rows, &self.labels);
        Ok(())
    }
}
