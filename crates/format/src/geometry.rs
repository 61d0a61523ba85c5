//! The division of samples into chunks. This is pure arithmetic, validated on construction and infallible afterwards.

use std::ops::Range;

use crate::FormatError;
use crate::limits::{MAX_CHUNK_BYTES, MAX_CHUNK_SAMPLES, MAX_SAMPLES};

/// Tells whether any of these samples is in a range. `None` means all samples.
pub fn among(samples: Option<&[u64]>) -> impl Fn(Range<u64>) -> bool + use<> {
    let sorted = samples.map(|samples| {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        sorted
    });
    move |range| {
        let first = |sorted: &Vec<u64>| sorted.get(sorted.partition_point(|sample| *sample < range.start)).copied();
        sorted.as_ref().is_none_or(|sorted| first(sorted).is_some_and(|sample| sample < range.end))
    }
}

/// The division of a pack's samples into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    n_samples: u64,
    chunk_samples: u32,
}

impl Geometry {
    /// Divides `n_samples` samples into chunks of `chunk_samples`. Only the last chunk may be shorter.
    ///
    /// # Errors
    /// [`FormatError::LimitExceeded`] or [`FormatError::BadValue`] for invalid numbers.
    pub fn new(n_samples: u64, chunk_samples: u32) -> Result<Self, FormatError> {
        FormatError::check_limit("number of samples", MAX_SAMPLES, n_samples)?;
        if chunk_samples == 0 || chunk_samples > MAX_CHUNK_SAMPLES {
            return Err(FormatError::bad_value("samples per chunk", 36, "1 to 2^20", chunk_samples));
        }
        Ok(Self { n_samples, chunk_samples })
    }

    /// Number of samples.
    #[must_use]
    pub const fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// Samples per chunk. The last chunk may have fewer.
    #[must_use]
    pub const fn chunk_samples(&self) -> u32 {
        self.chunk_samples
    }

    /// Number of chunks.
    #[must_use]
    pub fn n_chunks(&self) -> u64 {
        self.n_samples.div_ceil(u64::from(self.chunk_samples))
    }

    /// The chunk of a sample, and the sample's index in it.
    #[must_use]
    pub fn locate(&self, sample: u64) -> (u64, u32) {
        let per_chunk = u64::from(self.chunk_samples);
        // The remainder of a u32 fits in a u32.
        (sample / per_chunk, u32::try_from(sample % per_chunk).unwrap_or(0))
    }

    /// The first sample of a chunk.
    #[must_use]
    pub fn first_sample(&self, chunk: u64) -> u64 {
        chunk.saturating_mul(u64::from(self.chunk_samples)).min(self.n_samples)
    }

    /// Number of samples in a chunk. 0 beyond the last chunk.
    #[must_use]
    pub fn samples_in(&self, chunk: u64) -> u32 {
        let rest = self.n_samples - self.first_sample(chunk);
        u32::try_from(rest.min(u64::from(self.chunk_samples))).unwrap_or(self.chunk_samples)
    }
}

/// The division of a pack's samples into chunks. The chunks of a set are those of its shards, one shard after the other,
/// so the last chunk of every shard may be shorter than `chunk_samples`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackGeometry {
    /// The division that the samples would have in one file.
    merged: Geometry,
    /// The shards of a set. Empty for one file.
    shards: Box<[ShardStart]>,
    n_chunks: u64,
}

/// The first sample and the first chunk of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardStart {
    pub(crate) sample: u64,
    pub(crate) chunk: u64,
}

impl PackGeometry {
    /// The division of one file.
    pub(crate) fn of_file(geometry: Geometry) -> Self {
        Self { n_chunks: geometry.n_chunks(), merged: geometry, shards: Box::default() }
    }

    /// The division of shards with these numbers of samples, each at least 1.
    ///
    /// # Errors
    /// As for [`Geometry::new`].
    pub(crate) fn of_shards(n_samples: impl Iterator<Item = u64>, chunk_samples: u32) -> Result<Self, FormatError> {
        let mut next = ShardStart { sample: 0, chunk: 0 };
        let mut shards = Vec::new();
        for n_samples in n_samples {
            let own = Geometry::new(n_samples, chunk_samples)?;
            shards.push(next);
            next.sample = next.sample.saturating_add(n_samples);
            next.chunk += own.n_chunks();
        }
        let merged = Geometry::new(next.sample, chunk_samples)?;
        Ok(Self { merged, shards: shards.into(), n_chunks: next.chunk })
    }

    /// The division that the same samples would have in one file. Orders are computed from it.
    #[must_use]
    pub const fn merged(&self) -> Geometry {
        self.merged
    }

    /// Whether the chunks are those of the merged file: only the last chunk may be shorter than the others.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.shards.iter().all(|start| start.sample.is_multiple_of(self.chunk_samples().into()))
    }

    /// Number of samples.
    #[must_use]
    pub const fn n_samples(&self) -> u64 {
        self.merged.n_samples
    }

    /// Samples per chunk. The last chunk of a file may have fewer.
    #[must_use]
    pub const fn chunk_samples(&self) -> u32 {
        self.merged.chunk_samples
    }

    /// Number of chunks.
    #[must_use]
    pub const fn n_chunks(&self) -> u64 {
        self.n_chunks
    }

    /// The chunk of a sample, and the sample's index in it.
    #[inline]
    #[must_use]
    pub fn locate(&self, sample: u64) -> (u64, u32) {
        let Some((_, start)) = self.shard_of(|start| start.sample <= sample) else {
            return self.merged.locate(sample);
        };
        let (chunk, index) = self.merged.locate(sample - start.sample);
        (start.chunk + chunk, index)
    }

    /// The first sample of a chunk.
    #[must_use]
    pub fn first_sample(&self, chunk: u64) -> u64 {
        let Some((shard, start)) = self.shard_of(|start| start.chunk <= chunk) else {
            return self.merged.first_sample(chunk);
        };
        let before = (chunk - start.chunk).saturating_mul(self.chunk_samples().into());
        start.sample.saturating_add(before).min(self.end_of(shard))
    }

    /// Number of samples in a chunk. 0 beyond the last chunk.
    #[must_use]
    pub fn samples_in(&self, chunk: u64) -> u32 {
        let Some((shard, _)) = self.shard_of(|start| start.chunk <= chunk) else {
            return self.merged.samples_in(chunk);
        };
        let rest = self.end_of(shard) - self.first_sample(chunk);
        u32::try_from(rest.min(self.chunk_samples().into())).unwrap_or(0)
    }

    /// The last shard of a set whose start satisfies `is_before`. `None` for one file.
    #[inline]
    pub(crate) fn shard_of(&self, is_before: impl Fn(&ShardStart) -> bool) -> Option<(usize, ShardStart)> {
        let shard = self.shards.partition_point(is_before).checked_sub(1)?;
        self.shards.get(shard).map(|start| (shard, *start))
    }

    /// The start of a shard of a set. `None` for one file.
    pub(crate) fn start_of(&self, shard: usize) -> Option<ShardStart> {
        self.shards.get(shard).copied()
    }

    /// One past the last sample of a shard.
    fn end_of(&self, shard: usize) -> u64 {
        self.shards.get(shard + 1).map_or(self.n_samples(), |next| next.sample)
    }
}

/// Default maximum size of a chunk.
const TARGET_CHUNK_BYTES: u64 = 16 << 20;
/// Default maximum number of samples per chunk. Small datasets still need enough chunks to shuffle.
const TARGET_CHUNK_SAMPLES: u64 = 1024;

/// The default number of samples per chunk: the largest power of two up to 1024 for which a chunk is at most 16 MiB. If
/// `batch` is given: the largest divisor of `batch` within the same limits. The result is at least 1.
#[must_use]
pub fn chunk_samples_for(sample_bytes: u64, batch: Option<u32>) -> u32 {
    let fit = (TARGET_CHUNK_BYTES / sample_bytes.max(1)).clamp(1, TARGET_CHUNK_SAMPLES);
    let fit = u32::try_from(fit).unwrap_or(1);
    match batch {
        None => 1 << fit.ilog2(),
        Some(batch) => (1..=fit.min(batch)).rev().find(|n| batch.is_multiple_of(*n)).unwrap_or(1),
    }
}

/// The number of samples per chunk, at most `most`, for a pack whose last chunk is padded to the length of the others.
/// If the padding would exceed an eighth of all samples, the samples are divided evenly among the same number of
/// chunks.
#[must_use]
pub fn chunk_samples_without_padding(most: u32, n_samples: u64) -> u32 {
    let n_chunks = n_samples.div_ceil(u64::from(most.max(1))).max(1);
    let room = n_chunks.saturating_mul(most.into());
    if room.saturating_sub(n_samples) <= n_samples / 8 {
        return most;
    }
    u32::try_from(n_samples.div_ceil(n_chunks)).map_or(most, |even| even.clamp(1, most))
}

/// Checks that every platform can read a chunk of `bytes` bytes in one call.
pub(crate) fn check_chunk_bytes(bytes: u64) -> Result<(), FormatError> {
    FormatError::check_limit("bytes of a chunk", MAX_CHUNK_BYTES, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_rule_is_the_documented_one() {
        assert_eq!(chunk_samples_for(224 * 224 * 3, None), 64);
        assert_eq!(chunk_samples_for(256 * 256 * 3, None), 64);
        assert_eq!(chunk_samples_for(32 * 32 * 3, None), 1024);
        assert_eq!(chunk_samples_for(1 << 40, None), 1);
        assert_eq!(chunk_samples_for(0, None), 1024);
        assert_eq!(chunk_samples_for(224 * 224 * 3, Some(256)), 64);
        assert_eq!(chunk_samples_for(224 * 224 * 3, Some(100)), 100);
        assert_eq!(chunk_samples_for(224 * 224 * 3, Some(250)), 50);
        assert_eq!(chunk_samples_for(224 * 224 * 3, Some(127)), 1);
    }

    #[test]
    fn padding_is_at_most_an_eighth_of_the_samples_or_one_in_each_chunk() {
        for (most, n_samples, expected) in [
            (1024, 20, 20),
            (1024, 1024, 1024),
            (1024, 911, 1024),
            (1024, 910, 910),
            (1024, 1025, 513),
            (64, 6400, 64),
            (64, 6401, 64),
            (1, 7, 1),
            (64, 0, 1),
            (64, u64::MAX, 64),
        ] {
            let found = chunk_samples_without_padding(most, n_samples);
            assert_eq!(found, expected, "{n_samples} samples, at most {most}");
        }
    }

    #[test]
    fn arithmetic_holds_beyond_2_to_the_32_samples_and_16_million_chunks() {
        let g = Geometry::new((1 << 40) + 7, 64).unwrap();
        assert_eq!(g.n_chunks(), (1 << 34) + 1);
        assert_eq!(g.locate((1 << 40) + 6), (1 << 34, 6));
        assert_eq!(g.samples_in(1 << 34), 7);
        assert_eq!(g.samples_in((1 << 34) - 1), 64);
        assert_eq!(g.samples_in((1 << 34) + 1), 0);
        assert_eq!(g.samples_in(u64::MAX), 0);
        assert_eq!(g.first_sample(3), 192);
    }

    #[test]
    fn chunks_of_a_set_end_with_their_shard() {
        let shards = [64, 10, 1, 130];
        let set = PackGeometry::of_shards(shards.into_iter(), 64).unwrap();
        assert_eq!((set.n_samples(), set.n_chunks(), set.merged().n_chunks()), (205, 6, 4));
        let (mut chunk, mut next) = (0, 0);
        for n_samples in shards {
            let own = Geometry::new(n_samples, 64).unwrap();
            for number in 0..own.n_chunks() {
                assert_eq!(set.first_sample(chunk), next);
                assert_eq!(set.samples_in(chunk), own.samples_in(number));
                for index in 0..own.samples_in(number) {
                    assert_eq!(set.locate(next), (chunk, index));
                    next += 1;
                }
                chunk += 1;
            }
        }
        assert_eq!((set.first_sample(6), set.samples_in(6), set.samples_in(u64::MAX)), (205, 0, 0));
        assert_eq!(PackGeometry::of_shards([64, 64, 3].into_iter(), 64).unwrap().locate(130), (2, 2));
    }

    #[test]
    fn empty_pack_has_no_chunks() {
        assert_eq!(Geometry::new(0, 64).unwrap().n_chunks(), 0);
    }

    #[test]
    fn impossible_counts_are_rejected() {
        assert!(matches!(Geometry::new(1 << 48, 1), Err(FormatError::LimitExceeded { .. })));
        assert!(matches!(Geometry::new(1, 0), Err(FormatError::BadValue { .. })));
        assert!(matches!(Geometry::new(1, (1 << 20) + 1), Err(FormatError::BadValue { .. })));
    }
}
