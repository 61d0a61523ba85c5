//! Reads Zarr through the zarrs crate: whole chunks, samples of chunks, or samples of shards.

use std::sync::Arc;

use ::zarrs::array::CodecOptions;
use ::zarrs::array::{Array, ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset};
use ::zarrs::filesystem::FilesystemStore;

use super::Made;
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::order::Rows;

type Images = Array<FilesystemStore>;

/// What one call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadBy {
    /// A whole chunk, which contains one sample.
    Sample,
    /// A whole chunk, which contains one batch, or a part of the chunk if single samples are needed.
    Batch,
    /// A single sample, which is always a part of a chunk.
    PartOfChunk,
    /// Samples of a shard. The index of the shard is cached once it has been read.
    Shard,
}

pub(crate) fn zarr_sample(made: &Made) -> Result<Open, BenchError> {
    Ok(open(made, ReadBy::Sample))
}

pub(crate) fn zarr_batch(made: &Made) -> Result<Open, BenchError> {
    Ok(open(made, ReadBy::Batch))
}

pub(crate) fn zarr_part(made: &Made) -> Result<Open, BenchError> {
    Ok(open(made, ReadBy::PartOfChunk))
}

pub(crate) fn zarr_shard(made: &Made) -> Result<Open, BenchError> {
    Ok(open(made, ReadBy::Shard))
}

fn open(made: &Made, by: ReadBy) -> Open {
    let made = made.with_listed_labels();
    Box::new(move |threads| {
        let store = FilesystemStore::new(&made.path).map_err(|e| made.failed(e))?;
        let images = Arc::new(Array::open(Arc::new(store), "/image").map_err(|e| made.failed(e))?);
        let cache = Arc::new(ArrayShardedReadableExtCache::new(&images));
        readers(threads, || ArrayRows {
            made: made.clone(),
            by,
            images: Arc::clone(&images),
            cache: Arc::clone(&cache),
            // Each reader works on its own thread without further concurrency, so the number of threads is as
            // requested.
            options: CodecOptions::default().with_concurrent_target(1),
        })
    })
}

struct ArrayRows {
    made: Made,
    by: ReadBy,
    images: Arc<Images>,
    cache: Arc<ArrayShardedReadableExtCache>,
    options: CodecOptions,
}

impl ArrayRows {
    fn chunk(&self, number: u64, out: &mut [u8]) -> Result<(), BenchError> {
        let mut place = vec![0; self.images.shape().len()];
        if let Some(first) = place.first_mut() {
            *first = number;
        }
        let found = self.images.retrieve_chunk_opt::<Vec<u8>>(&place, &self.options);
        self.put(found.map_err(|e| self.made.failed(e))?, out)
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
        self.put(found.map_err(|e| self.made.failed(e))?, out)
    }

    fn put(&self, found: Vec<u8>, out: &mut [u8]) -> Result<(), BenchError> {
        if found.len() != out.len() {
            return Err(self.made.odd("the array `image` has a different size than was written"));
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
        out.set_labels(rows, &self.made.labels);
        Ok(())
    }
}
