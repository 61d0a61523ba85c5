//! Minimal loops that measure the limits of loading.

mod direct_read;
mod memcpy;
mod pictures;

use std::time::Duration;

use packds_reader::augment::{Augment, Buckets};
use packds_reader::loader::Loader;

use crate::BenchError;
pub(super) use direct_read::DirectRead;
use memcpy::Memcpy;
use pictures::CropResizes;

pub(crate) enum Limit<'a> {
    /// Copies blocks of a batch to reused buffers, on the same number of threads.
    Memcpy(Memcpy<'a>),
    /// Decodes or copies the crops of the same samples and resizes them, on the same number of threads.
    CropResizes(Box<CropResizes<'a>>),
    /// Reads the same chunks in the same order, bypassing the page cache, and discards them.
    DirectRead(DirectRead<'a>),
}

impl<'a> Limit<'a> {
    pub(crate) fn new(
        loader: &'a Loader,
        (augment, buckets): (Option<&Augment>, Option<&'a Buckets>),
        threads: usize,
        cold: bool,
        seed: u64,
    ) -> Result<Self, BenchError> {
        Ok(match augment {
            _ if cold => Self::DirectRead(DirectRead::new(loader)?),
            None => Self::Memcpy(Memcpy::new(loader, threads)?),
            Some(augment) => Self::CropResizes(Box::new(CropResizes::new(loader, (augment, buckets), seed, threads)?)),
        })
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Memcpy(_) => "memcpy",
            Self::CropResizes(loop_) => loop_.name(),
            Self::DirectRead(_) => "direct_read",
        }
    }

    pub(crate) fn run(&self, epoch: u32, n_batches: u64) -> Result<Duration, BenchError> {
        match self {
            Self::Memcpy(memcpy) => memcpy.run(n_batches),
            Self::CropResizes(loop_) => loop_.run(epoch, n_batches),
            Self::DirectRead(read) => read.run(epoch, n_batches),
        }
    }
}
