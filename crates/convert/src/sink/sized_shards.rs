//! Writes shards of sized samples (see `sized_samples`): the number of samples, where each begins and the last ends,
//! and the samples.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use packds_system::{to_u64, to_usize};

use super::SinkStart;
use super::sized_samples::SizedSamples;
use crate::error::ConvertError;
use crate::opt::SHARD;

/// A shard holds about so many bytes, unless the option states the number of samples.
pub(super) const SHARD_BYTES: usize = 1 << 26;
const WORD: usize = 4;

pub(super) struct SizedShards {
    folder: PathBuf,
    /// Samples per shard, from the option.
    limit: Option<usize>,
    /// The bytes between the offsets and the samples of each shard.
    head: Vec<u8>,
    /// The name of the shard with this number.
    name: fn(usize) -> String,
    /// The samples of the next shard, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    written: Vec<Shard>,
}

/// A shard that was written.
pub(super) struct Shard {
    pub(super) name: String,
    pub(super) samples: usize,
    pub(super) bytes: u64,
}

impl SizedShards {
    pub(super) fn new(start: &SinkStart<'_>, head: Vec<u8>, name: fn(usize) -> String) -> Self {
        Self {
            folder: start.path.to_owned(),
            limit: start.options.shard_samples.map(to_usize),
            head,
            name,
            bytes: Vec::new(),
            ends: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Adds samples. Writes each shard that they fill.
    pub(super) fn add(&mut self, samples: &SizedSamples) -> Result<(), ConvertError> {
        let mut start = 0;
        for end in &samples.ends {
            let sample = samples.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            let is_full = match self.limit {
                Some(limit) => self.ends.len() >= limit,
                None => !self.ends.is_empty() && self.bytes.len().saturating_add(sample.len()) > SHARD_BYTES,
            };
            if is_full {
                self.write()?;
            }
            self.bytes.extend_from_slice(sample);
            self.ends.push(self.bytes.len());
            // Checked here, so that memory does not grow beyond what a shard can hold.
            self.offset(self.bytes.len())?;
        }
        Ok(())
    }

    /// Writes the last shard. Returns all shards.
    pub(super) fn finish(mut self) -> Result<Vec<Shard>, ConvertError> {
        if !self.ends.is_empty() {
            self.write()?;
        }
        Ok(self.written)
    }

    /// The offset of the byte `at` of the samples in the file.
    fn offset(&self, at: usize) -> Result<u32, ConvertError> {
        let before = self.ends.len().saturating_add(2).saturating_mul(WORD).saturating_add(self.head.len());
        u32::try_from(before.saturating_add(at)).map_err(|_| {
            let reason = format!(
                "{}: expected at most {} bytes in a file, which the format can number, found more",
                (self.name)(self.written.len()),
                u32::MAX
            );
            ConvertError::options(reason, format!("write fewer samples to each file with {}", SHARD.with("N")))
        })
    }

    fn write(&mut self) -> Result<(), ConvertError> {
        let n = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let mut front = n.to_le_bytes().to_vec();
        for at in std::iter::once(&0).chain(&self.ends) {
            front.extend_from_slice(&self.offset(*at)?.to_le_bytes());
        }
        front.extend_from_slice(&self.head);
        let name = (self.name)(self.written.len());
        let path = self.folder.join(&name);
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&front)?;
            file.write_all(&self.bytes)
        });
        written.map_err(ConvertError::io(&path))?;
        let bytes = to_u64(front.len().saturating_add(self.bytes.len()));
        self.written.push(Shard { name, samples: self.ends.len(), bytes });
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(folder: &std::path::Path, limit: Option<usize>) -> SizedShards {
        SizedShards {
            folder: folder.to_owned(),
            limit,
            head: b"head".to_vec(),
            name: |number| format!("{number}.bin"),
            bytes: Vec::new(),
            ends: Vec::new(),
            written: Vec::new(),
        }
    }

    #[test]
    fn a_shard_is_its_offsets_the_head_and_the_samples() {
        let folder = tempfile::tempdir().unwrap();
        let mut two = shards(folder.path(), Some(2));
        two.add(&SizedSamples { bytes: b"abbccc".to_vec(), ends: vec![1, 3, 6] }).unwrap();
        let written = two.finish().unwrap();
        assert_eq!(written.iter().map(|shard| (shard.samples, shard.bytes)).collect::<Vec<_>>(), [(2, 23), (1, 19)]);
        let first = [2_u32, 20, 21, 23].map(u32::to_le_bytes).concat();
        assert_eq!(std::fs::read(folder.path().join("0.bin")).unwrap(), [&first[..], b"headabb"].concat());
    }

    #[test]
    fn a_sample_that_exceeds_the_size_begins_a_shard() {
        let folder = tempfile::tempdir().unwrap();
        let mut sized = shards(folder.path(), None);
        let bytes = 2 * SHARD_BYTES + 1;
        sized.add(&SizedSamples { bytes: vec![0; bytes], ends: vec![SHARD_BYTES, bytes - 1, bytes] }).unwrap();
        let samples: Vec<usize> = sized.finish().unwrap().iter().map(|shard| shard.samples).collect();
        assert_eq!(samples, [1, 1, 1]);
    }

    #[test]
    fn a_shard_beyond_4_gib_is_refused() {
        let shards = shards(std::path::Path::new(""), Some(1));
        let error = shards.offset(usize::try_from(u32::MAX).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("0.bin: expected at most 4294967295 bytes"), "{error}");
        assert!(error.hint().unwrap().contains("shard"), "{error}");
    }
}
