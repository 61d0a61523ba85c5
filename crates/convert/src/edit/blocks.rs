//! Copies samples into blocks, on all cores. `chunks` copies the chunks that remain as they are.

use std::borrow::Cow;
use std::fs::File;

use packds_format::{
    Block, BlockBuilder, ChunkEntry, Field, FieldKind, FormatError, PackOptions, PackWriter, Role, Store, StoredChunk,
};
use packds_system::{counted, to_usize};

use super::Taken;
use super::chunks::{self, WholeChunk};
use super::joined::Joined;
use super::totals::Totals;
use crate::convert::write_error;
use crate::error::ConvertError;
use crate::opt::CHUNK;
use crate::options::ConvertOptions;
use crate::ordered::{Next, ordered};
use crate::output::Output;
use crate::pipeline::{Observer, Phase, Progress};

/// Copies the taken samples.
pub(super) struct Copier<'a, D> {
    pub(super) taken: &'a [Taken<'a, D>],
    pub(super) joined: &'a Joined,
    /// Whether some samples of a pack are left out.
    pub(super) is_partial: bool,
}

/// The samples of a block: runs of taken samples, each with the index of its pack, the first number and the length.
pub(super) type Runs = Vec<(usize, u64, u64)>;

/// What is copied at once.
enum Task {
    Block(Runs),
    Chunk(WholeChunk),
}

/// What a task gives to the writer.
enum Copied<'a> {
    Block(Block),
    Chunk(StoredChunk<'a>),
}

impl<D: AsRef<[u8]> + Send + Sync> Copier<'_, D> {
    /// Writes the body of the new pack.
    pub(super) fn copy<'o>(
        &self,
        options: PackOptions,
        output: &'o Output,
        jobs: usize,
        observer: &dyn Observer,
    ) -> Result<(PackWriter<&'o File>, Totals), ConvertError> {
        let failed = |error| match error {
            FormatError::LimitExceeded { .. } => {
                ConvertError::options(error.to_string(), format!("make smaller chunks with {}", CHUNK.with("N")))
            }
            error => write_error(output, error),
        };
        let (chunk_samples, block_samples) = (options.chunk_samples, options.block_samples());
        let mut writer = PackWriter::new(output.file(), options).map_err(failed)?;
        let mut tasks = Tasks::new(self.taken.iter().map(Taken::len).collect(), chunk_samples, block_samples);
        let total = tasks.left;
        let kept = chunks::packs_with_kept_chunks(self, chunk_samples);
        let (mut totals, mut samples) = (Totals::of(self), 0_u64);
        let tell = |samples| {
            observer.progress(Progress { samples, total, bytes_in: 0, phase: Phase::Copy });
        };
        tell(samples);
        let jobs = ConvertOptions { jobs, ..ConvertOptions::default() }.n_jobs();
        let per_chunk = to_usize(chunk_samples.div_ceil(block_samples));
        let spare = std::cell::RefCell::new(Vec::new());
        ordered(
            jobs,
            jobs * 2 + per_chunk,
            || (),
            |(), (task, old): (Task, Option<Block>)| match task {
                Task::Block(runs) => self.block(&runs, old).map(|(block, totals)| (Copied::Block(block), totals)),
                Task::Chunk(whole) => self.chunk(&whole).map(|(chunk, totals)| (Copied::Chunk(chunk), totals)),
            },
            || {
                observer.check()?;
                if let Some(whole) = tasks.whole_chunk(self, &kept) {
                    return Ok::<_, ConvertError>(Some((Task::Chunk(whole), None)));
                }
                Ok(tasks.next().map(|runs| (Task::Block(runs), spare.borrow_mut().pop())))
            },
            |made: Result<(Copied<'_>, Totals), ConvertError>| {
                observer.check()?;
                let (copied, seen) = made?;
                totals.merge(&seen);
                match copied {
                    Copied::Block(block) => {
                        samples += u64::from(block.n_samples());
                        writer.append(block).map_err(failed)?;
                        spare.borrow_mut().extend(writer.reclaim());
                    }
                    Copied::Chunk(chunk) => {
                        samples += u64::from(chunk.n_samples);
                        writer.append_chunk(&chunk).map_err(failed)?;
                    }
                }
                tell(samples);
                Ok(Next::Continue)
            },
        )?;
        Ok((writer, totals))
    }

    fn block(&self, runs: &Runs, old: Option<Block>) -> Result<(Block, Totals), ConvertError> {
        let schema = &self.joined.schema;
        let mut builder = match old {
            Some(old) => BlockBuilder::recycle(schema, old),
            None => BlockBuilder::new(schema),
        };
        let mut totals = Totals::of(self);
        for (pack, first, n) in runs {
            let Some(taken) = self.taken.get(*pack) else { continue };
            let samples: Vec<u64> = (*first..first + n).map(|number| taken.sample(number)).collect();
            self.add(*pack, taken, &samples, &mut builder, &mut totals).map_err(|error| taken.located(error))?;
        }
        let block = builder.finish().map_err(ConvertError::Format)?;
        Ok((block, totals))
    }

    /// Adds samples of one pack to a block.
    fn add(
        &self,
        pack: usize,
        taken: &Taken<'_, D>,
        samples: &[u64],
        builder: &mut BlockBuilder,
        totals: &mut Totals,
    ) -> Result<(), FormatError> {
        let fields = self.joined.schema.fields();
        let unpacked = fields.iter().enumerate().map(|(number, field)| {
            if self.joined.added_at(number).is_some() {
                return Ok(Vec::new());
            }
            let origin = self.joined.origin(number)?;
            unpack(taken, origin, field, samples)
        });
        let unpacked = unpacked.collect::<Result<Vec<_>, _>>()?;
        for (place, &sample) in samples.iter().enumerate() {
            totals.begin((pack, taken.pack), self.joined, sample)?;
            for (number, field) in fields.iter().enumerate() {
                // The builder computes the checksum of each sample.
                if field.role == Some(Role::SampleCrc32c) {
                    continue;
                }
                let item = match unpacked.get(number).and_then(|items| items.get(place)) {
                    Some(item) => {
                        let origin = self.joined.origin(number)?;
                        self.joined.mapped(pack, origin, Cow::Borrowed(item.as_slice()))?
                    }
                    None => self.joined.item((pack, taken.pack), number, sample)?,
                };
                match (field.store, field.kind) {
                    (Store::Column, _) => builder.set_column(number, &item)?,
                    (_, FieldKind::Tensor) => put(builder.tensor_mut(number)?, &item)?,
                    _ => builder.item_mut(number)?.extend_from_slice(&item),
                }
                if field.store == Store::Body {
                    totals.add(number, &item);
                }
            }
            builder.finish_sample()?;
        }
        Ok(())
    }

    /// The size of all items in the body, as stored. For a part of a compressed chunk, the share of its samples.
    pub(super) fn body_bytes(&self) -> Result<u64, ConvertError> {
        let mut bytes = 0_u64;
        for taken in self.taken {
            let geometry = taken.pack.geometry();
            let mut counts = std::collections::BTreeMap::new();
            for sample in taken.each() {
                *counts.entry(geometry.locate(sample).0).or_insert(0_u64) += 1;
            }
            for (chunk, n) in counts {
                let entry = taken.pack.chunk_entry(chunk).map_err(|error| taken.located(error))?;
                let stored = self.stored_len(taken, chunk, &entry).map_err(|error| taken.located(error))?;
                let share = u128::from(stored) * u128::from(n) / u128::from(entry.n_samples.max(1));
                bytes = bytes.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
            }
        }
        Ok(bytes)
    }

    /// The size of what is copied of a chunk.
    fn stored_len(&self, taken: &Taken<'_, D>, chunk: u64, entry: &ChunkEntry) -> Result<u64, FormatError> {
        let old = taken.pack.schema();
        if self.joined.schema.body().count() == old.body().count() {
            return Ok(entry.stored_len);
        }
        let parts = old.body().zip(taken.pack.chunk_parts(chunk)?);
        let kept = parts.filter(|((_, field), _)| self.joined.schema.index_of(&field.name).is_ok());
        Ok(kept.map(|(_, part)| part.len).sum())
    }
}

fn put(place: &mut [u8], item: &[u8]) -> Result<(), FormatError> {
    if place.len() != item.len() {
        let expected = counted(place.len(), "byte");
        return Err(FormatError::WrongUse(format!("expected an item of {expected}, found {}", item.len())));
    }
    place.copy_from_slice(item);
    Ok(())
}

/// The items of a compressed field. All other items are read one by one without a copy.
fn unpack<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    number: usize,
    field: &Field,
    samples: &[u64],
) -> Result<Vec<Vec<u8>>, FormatError> {
    let mut items = Vec::new();
    if !field.codec.is_none() {
        taken.pack.for_each_item_in(number, samples.iter().copied(), |_, item| {
            items.push(item.to_vec());
            Ok::<_, FormatError>(())
        })?;
    }
    Ok(items)
}

/// Divides the taken samples into blocks. No block crosses the end of a chunk.
struct Tasks {
    /// Number of samples of each pack.
    lens: Vec<u64>,
    pack: usize,
    /// The number of the next sample of that pack.
    number: u64,
    left: u64,
    in_chunk: u32,
    chunk_samples: u32,
    block_samples: u32,
}

impl Tasks {
    /// The samples of the next chunk, if it is a chunk of a pack that remains as it is.
    fn whole_chunk<D: AsRef<[u8]>>(&mut self, copier: &Copier<'_, D>, kept: &[bool]) -> Option<WholeChunk> {
        while self.number == *self.lens.get(self.pack)? {
            (self.pack, self.number) = (self.pack + 1, 0);
        }
        let n = u64::from(self.chunk_samples).min(self.left);
        let is_open = self.in_chunk > 0 || !*kept.get(self.pack)? || self.lens.get(self.pack)? - self.number < n;
        let taken = copier.taken.get(self.pack).filter(|_| !is_open)?;
        let whole = WholeChunk::at((self.pack, taken), self.number, n)?;
        self.number += n;
        self.left -= n;
        Some(whole)
    }

    fn new(lens: Vec<u64>, chunk_samples: u32, block_samples: u32) -> Self {
        let left = lens.iter().sum();
        Self { lens, pack: 0, number: 0, left, in_chunk: 0, chunk_samples, block_samples }
    }
}

impl Iterator for Tasks {
    type Item = Runs;

    fn next(&mut self) -> Option<Runs> {
        let n = self.block_samples.min(self.chunk_samples - self.in_chunk);
        let mut want = u64::from(n).min(self.left);
        self.in_chunk = (self.in_chunk + n) % self.chunk_samples;
        self.left -= want;
        let mut runs = Vec::new();
        while want > 0 {
            let len = self.lens.get(self.pack).copied()?;
            let here = want.min(len - self.number);
            if here > 0 {
                runs.push((self.pack, self.number, here));
            }
            want -= here;
            self.number += here;
            if self.number == len {
                self.pack += 1;
                self.number = 0;
            }
        }
        (!runs.is_empty()).then_some(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cross_packs_but_not_chunks() {
        let runs: Vec<Runs> = Tasks::new(vec![3, 0, 4], 5, 2).collect();
        let expected = [vec![(0, 0, 2)], vec![(0, 2, 1), (2, 0, 1)], vec![(2, 1, 1)], vec![(2, 2, 2)]];
        assert_eq!(runs, expected);
        assert_eq!(Tasks::new(vec![], 5, 2).count(), 0);
    }
}
