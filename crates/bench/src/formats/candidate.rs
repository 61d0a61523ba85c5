//! The interface of a format: its readers fill batches in reused memory, on several threads.

use std::sync::Arc;

use packds_reader::arena::{Arena, SlotMut};

use super::order::Rows;
use crate::BenchError;

/// Opens a format's files and returns one reader for each thread. The argument is the number of threads.
pub(crate) type Open = Box<dyn Fn(usize) -> Result<Readers, BenchError>>;
/// One reader for each thread.
pub(crate) type Readers = Vec<Box<dyn Reader>>;

pub(crate) fn readers<R: Reader + 'static>(threads: usize, reader: impl Fn() -> R) -> Result<Readers, BenchError> {
    Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
}

pub(crate) trait Reader: Send {
    /// Writes the pixels and labels of these samples to `out`, one row per sample.
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError>;
}

/// A batch that is being filled. It has labels, and contiguous pixels in huge pages, like the batches of packds.
pub(crate) struct Batch {
    memory: SlotMut,
    sample_bytes: usize,
    labels: Vec<i64>,
}

impl Batch {
    /// A batch in a free slot of `arena`. `None` if no slot is free.
    pub(crate) fn take(arena: &Arc<Arena>, sample_bytes: usize, rows: usize) -> Option<Self> {
        Some(Self { memory: arena.try_take()?, sample_bytes, labels: vec![0; rows] })
    }

    pub(crate) fn begin(&mut self, rows: usize) {
        self.labels.clear();
        self.labels.resize(rows, 0);
    }

    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        let len = self.labels.len() * self.sample_bytes;
        self.memory.get_mut(..len).unwrap_or_default()
    }

    pub(crate) fn samples_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.rows_mut().map(|(pixels, _)| pixels)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = (&mut [u8], &mut i64)> {
        let len = self.labels.len() * self.sample_bytes;
        let pixels = self.memory.get_mut(..len).unwrap_or_default();
        let samples = pixels.chunks_exact_mut(self.sample_bytes.max(1));
        samples.zip(&mut self.labels)
    }

    /// Copies the labels of these samples from the list of all labels.
    pub(crate) fn set_labels(&mut self, rows: &Rows, all: &[i64]) {
        for (to, sample) in self.labels.iter_mut().zip(rows.iter()) {
            let label = usize::try_from(sample).ok().and_then(|i| all.get(i));
            *to = label.copied().unwrap_or(-1);
        }
    }

    pub(crate) fn pixels(&self) -> &[u8] {
        let len = self.labels.len() * self.sample_bytes;
        self.memory.get(..len).unwrap_or_default()
    }

    pub(crate) fn labels(&self) -> &[i64] {
        &self.labels
    }
}
