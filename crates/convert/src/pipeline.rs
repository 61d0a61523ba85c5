//! Turns listed files into blocks of encoded samples, in the pack's order, on all cores.

use packds_system::{to_u64, to_usize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use packds_format::{Block, BlockBuilder, SeekStats, SizeStats};
use packds_pixels::Histogram;

use crate::ConvertError;
use crate::mask_values::MaskValues;
use crate::options::{ConvertOptions, OnError};
use crate::ordered::{Next, ordered};
use crate::plan::{Order, Plan};
use crate::sample::{SampleError, SampleReader, Times};
use crate::source::Listing;

pub(crate) struct Findings {
    pub(crate) histogram: Histogram,
    /// Number of samples whose pixels are in the histogram.
    pub(crate) counted: u64,
    /// Number of samples of zeros that replaced bad samples when the source was made.
    pub(crate) invalid: u64,
    /// Number of pixels in the source's valid images.
    pub(crate) n_pixels: u64,
    pub(crate) n_samples: u64,
    pub(crate) bytes_in: u64,
    pub(crate) oriented: u64,
    /// Number of images that were reduced from more than 8 bits per channel.
    pub(crate) cut: u64,
    /// Number of images whose alpha channel was left out.
    pub(crate) had_alpha: u64,
    /// Number of images with boxes whose size differs from what the source says, and the first of them.
    pub(crate) other_sizes: Option<(u64, usize)>,
    /// Number of images whose files contain further frames or pages, and the listing index of the first such image.
    pub(crate) with_more: Option<(u64, usize)>,
    /// Number of masks that were resized to the size of their images, and the listing index of the first such sample.
    pub(crate) resized_masks: Option<(u64, usize)>,
    /// The values of all masks that were decoded.
    pub(crate) mask_values: MaskValues,
    pub(crate) sizes: ItemSizes,
    /// Number and size of the images' seek indexes, if requested.
    pub(crate) seek: SeekStats,
    /// Skipped or substituted samples by listing index, with the reason.
    pub(crate) bad: Vec<(usize, String)>,
    pub(crate) times: Times,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ItemSizes {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) total: u64,
}

/// A task for a thread: the samples of one block.
struct Task {
    ids: Vec<usize>,
    /// A block that was already written. Its memory is reused.
    old: Option<Block>,
}

/// A finished block, with its findings and the errors of its bad samples.
struct Made {
    ids: Vec<usize>,
    block: Result<Block, ConvertError>,
    bad: Vec<(usize, SampleError)>,
    findings: Findings,
}

/// Progress of a pass.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Number of samples done.
    pub samples: u64,
    /// Total number of samples.
    pub total: u64,
    /// Bytes read from the source's files.
    pub bytes_in: u64,
    /// The current phase.
    pub phase: Phase,
}

/// The phase of a conversion or an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Converting.
    #[default]
    Convert,
    /// Reading image headers to plan the pack.
    Plan,
    /// Measuring the dataset's mean and standard deviation.
    Measure,
    /// Finding the first bad file in listing order.
    FindFirst,
    /// Exporting.
    Export,
    /// Copying samples from packs to a pack.
    Copy,
    /// Reading the footers of shards.
    ReadShards,
    /// Syncing to disk.
    Sync,
}

/// Receives progress and can cancel.
pub trait Observer: Sync {
    /// Called from the thread that runs the conversion or export, when a phase begins and periodically after that.
    fn progress(&self, _progress: Progress) {}

    /// Whether to stop. If so, the output is removed and [`ConvertError::Interrupted`] is returned.
    fn cancelled(&self) -> bool {
        false
    }

    /// Returns an error if the run was cancelled.
    ///
    /// # Errors
    /// [`ConvertError::Interrupted`].
    fn check(&self) -> Result<(), ConvertError> {
        if self.cancelled() { Err(ConvertError::Interrupted) } else { Ok(()) }
    }
}

impl Observer for () {}

/// Lets an atomic flag act as an observer. Setting the flag cancels the conversion.
impl Observer for AtomicBool {
    fn cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

pub(crate) struct Pass<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) options: &'a ConvertOptions,
    pub(crate) plan: &'a Plan,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) phase: Phase,
}

impl Pass<'_> {
    /// Builds blocks from all samples of the listing in `order`, and passes the blocks to `write` in that order.
    /// `write` also receives the findings of the block, and may return a block to be reused. Bad samples are handled according to the options. With
    /// [`OnError::Stop`], the error is that of the first bad sample in listing order, even if another bad sample was
    /// found earlier.
    pub(crate) fn run(
        &self,
        order: Order,
        mut write: impl FnMut(Block, &[usize], &Findings) -> Result<Option<Block>, ConvertError>,
    ) -> Result<Findings, ConvertError> {
        let jobs = self.options.n_jobs();
        let channels = self.options.color().channels();
        let state = std::cell::RefCell::new(Dispatch::new(order, self.plan));
        let mut all = Findings::new(channels);
        let mut failed: Option<(usize, SampleError)> = None;
        self.tell(&all);
        ordered(
            jobs,
            // Enough tasks to keep every thread busy while the oldest block is slow or a chunk is being written.
            jobs * 2 + self.blocks_per_chunk(),
            || SampleReader::new(self.listing, self.options, self.plan),
            |reader, task| self.make(reader, task),
            || {
                self.observer.check()?;
                Ok::<_, ConvertError>(state.borrow_mut().next_task())
            },
            |made: Made| {
                // Cancellation is checked here too, because all tasks may already have been dispatched.
                self.observer.check()?;
                let mut dispatch = state.borrow_mut();
                dispatch.taken();
                if !made.bad.is_empty() && self.options.on_error == OnError::Stop {
                    failed = made.bad.into_iter().min_by_key(|(id, _)| *id);
                    return Ok(Next::Stop);
                }
                let skip = self.options.on_error == OnError::Skip && !made.bad.is_empty();
                let mut made = made;
                made.findings.bad = made.bad.iter().map(|(id, e)| (*id, e.to_string())).collect();
                if skip {
                    all.bad.append(&mut made.findings.bad);
                    // Later samples move up, so the rest of this block and all dispatched tasks must be redone.
                    let bad: Vec<usize> = made.bad.iter().map(|(id, _)| *id).collect();
                    dispatch.redo(made.ids.into_iter().filter(|id| !bad.contains(id)).collect());
                    return Ok(Next::Restart);
                }
                let block = made.block?;
                all.merge(&made.findings, block.n_samples());
                if let Some(old) = write(block, &made.ids, &made.findings)? {
                    dispatch.spare.push(old);
                }
                self.tell(&all);
                Ok(Next::Continue)
            },
        )?;
        if let Some((id, error)) = failed {
            let (id, error) = self.first_bad(id, error)?;
            return Err(ConvertError::BadSample { path: self.listing.file_path(id), source: error });
        }
        all.bad.sort_unstable_by_key(|(id, _)| *id);
        Ok(all)
    }

    fn tell(&self, all: &Findings) {
        self.observer.progress(Progress {
            samples: all.n_samples,
            total: to_u64(self.listing.len()),
            bytes_in: all.bytes_in,
            phase: self.phase,
        });
    }

    fn blocks_per_chunk(&self) -> usize {
        let pack = &self.plan.pack;
        to_usize(pack.chunk_samples.div_ceil(pack.block_samples()))
    }

    fn make(&self, reader: &mut SampleReader<'_>, task: Task) -> Made {
        let schema = &self.plan.pack.schema;
        let mut builder = match task.old {
            Some(old) => BlockBuilder::recycle(schema, old),
            None => BlockBuilder::new(schema),
        };
        let mut findings = Findings::new(self.options.color().channels());
        let mut bad = Vec::new();
        let mut broken = None;
        for &id in &task.ids {
            match reader.add(id, &mut builder, &mut findings.histogram) {
                Ok(facts) => {
                    findings.bytes_in += facts.bytes_in;
                    findings.oriented += u64::from(facts.oriented);
                    findings.cut += u64::from(facts.cut);
                    findings.had_alpha += u64::from(facts.had_alpha);
                    add_cases(&mut findings.other_sizes, facts.other_size.then_some((1, id)));
                    add_cases(&mut findings.with_more, facts.has_more.then_some((1, id)));
                    add_cases(&mut findings.resized_masks, facts.resized_mask.then_some((1, id)));
                    findings.counted += u64::from(facts.counted);
                    if facts.valid {
                        findings.sizes.add(facts.item_bytes);
                        findings.n_pixels = findings.n_pixels.saturating_add(facts.n_pixels);
                    } else {
                        findings.invalid += 1;
                    }
                    findings.seek.n_indexed += u64::from(facts.index_bytes > 0);
                    findings.seek.bytes += facts.index_bytes;
                    findings.seek.image_bytes += facts.item_bytes;
                }
                Err(error) => {
                    bad.push((id, error));
                    match self.options.on_error {
                        OnError::Stop => break,
                        OnError::Skip => {}
                        OnError::Substitute => broken = reader.substitute(id, &mut builder).err(),
                    }
                }
            }
        }
        let started = std::time::Instant::now();
        let block = match broken {
            Some(source) => Err(ConvertError::BadSample {
                path: bad.last().map(|(id, _)| self.listing.file_path(*id)).unwrap_or_default(),
                source,
            }),
            None => builder.finish().map_err(ConvertError::Format),
        };
        reader.times.encode += started.elapsed();
        findings.times = std::mem::take(&mut reader.times);
        findings.mask_values = std::mem::take(&mut reader.mask_values);
        Made { ids: task.ids, block, bad, findings }
    }

    /// Given a bad sample, finds the first bad sample in listing order. Tries all earlier samples and discards the
    /// results.
    fn first_bad(&self, known: usize, error: SampleError) -> Result<(usize, SampleError), ConvertError> {
        const BATCH: usize = 16;
        let jobs = self.options.n_jobs();
        let (mut next, mut done, mut found) = (0, 0_u64, None);
        ordered(
            jobs,
            jobs * 2,
            || SampleReader::new(self.listing, self.options, self.plan),
            |reader, ids: std::ops::Range<usize>| {
                let mut unused = Histogram::new(self.options.color().channels());
                let n = ids.len();
                let first = ids.into_iter().find_map(|id| {
                    let mut builder = BlockBuilder::new(&self.plan.pack.schema);
                    reader.add(id, &mut builder, &mut unused).err().map(|e| (id, e))
                });
                (n, first)
            },
            || {
                self.observer.check()?;
                let range = next..known.min(next + BATCH);
                next = range.end;
                Ok::<_, ConvertError>((!range.is_empty()).then_some(range))
            },
            |(n, first)| {
                done += to_u64(n);
                let total = to_u64(known);
                self.observer.progress(Progress { samples: done, total, bytes_in: 0, phase: Phase::FindFirst });
                found = first;
                Ok(if found.is_some() { Next::Stop } else { Next::Continue })
            },
        )?;
        Ok(found.unwrap_or((known, error)))
    }
}

/// Groups samples into tasks, in the given order.
struct Dispatch {
    order: Order,
    position: usize,
    /// Samples to dispatch again before continuing with the order.
    again: VecDeque<usize>,
    /// Dispatched tasks whose results have not been taken yet: for each, its start position in the chunk, and its
    /// samples.
    out: VecDeque<(usize, Vec<usize>)>,
    chunk_samples: usize,
    block_samples: usize,
    /// Number of samples dispatched for the current chunk.
    in_chunk: usize,
    /// The start position in the chunk of the task whose result was taken last.
    last_start: usize,
    spare: Vec<Block>,
}

impl Dispatch {
    fn new(order: Order, plan: &Plan) -> Self {
        Self {
            order,
            position: 0,
            again: VecDeque::new(),
            out: VecDeque::new(),
            chunk_samples: to_usize(plan.pack.chunk_samples),
            block_samples: to_usize(plan.pack.block_samples()),
            in_chunk: 0,
            last_start: 0,
            spare: Vec::new(),
        }
    }

    fn next_task(&mut self) -> Option<Task> {
        let n = self.block_samples.min(self.chunk_samples - self.in_chunk);
        let mut ids = Vec::with_capacity(n);
        while ids.len() < n {
            let id = self.again.pop_front().or_else(|| {
                let id = self.order.at(self.position)?;
                self.position += 1;
                Some(id)
            });
            let Some(id) = id else { break };
            ids.push(id);
        }
        if ids.is_empty() {
            return None;
        }
        self.out.push_back((self.in_chunk, ids.clone()));
        self.in_chunk = (self.in_chunk + n) % self.chunk_samples;
        Some(Task { ids, old: self.spare.pop() })
    }

    fn taken(&mut self) {
        if let Some((start, _)) = self.out.pop_front() {
            self.last_start = start;
        }
    }

    /// Redoes the task whose result was just taken, but only with `ids`, and every task dispatched after it.
    fn redo(&mut self, ids: Vec<usize>) {
        let again: Vec<usize> = ids.into_iter().chain(self.out.drain(..).flat_map(|(_, ids)| ids)).collect();
        again.into_iter().rev().for_each(|id| self.again.push_front(id));
        self.in_chunk = self.last_start;
    }
}

/// Adds the number of `more` to that of `own`, and keeps the lower listing index.
fn add_cases(own: &mut Option<(u64, usize)>, more: Option<(u64, usize)>) {
    let sum = |(n, first): (u64, usize), (more, id): (u64, usize)| (n + more, first.min(id));
    *own = match (*own, more) {
        (Some(own), Some(more)) => Some(sum(own, more)),
        (own, more) => own.or(more),
    };
}

impl Findings {
    pub(crate) fn new(channels: usize) -> Self {
        Self {
            histogram: Histogram::new(channels),
            counted: 0,
            invalid: 0,
            n_pixels: 0,
            n_samples: 0,
            bytes_in: 0,
            oriented: 0,
            cut: 0,
            had_alpha: 0,
            other_sizes: None,
            with_more: None,
            resized_masks: None,
            mask_values: MaskValues::default(),
            sizes: ItemSizes::default(),
            seek: SeekStats::default(),
            bad: Vec::new(),
            times: Times::default(),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self, n_samples: u32) {
        self.histogram.merge(&other.histogram);
        self.counted += other.counted;
        self.invalid += other.invalid;
        self.n_pixels = self.n_pixels.saturating_add(other.n_pixels);
        self.n_samples += u64::from(n_samples);
        self.bytes_in += other.bytes_in;
        self.oriented += other.oriented;
        self.cut += other.cut;
        self.had_alpha += other.had_alpha;
        add_cases(&mut self.other_sizes, other.other_sizes);
        add_cases(&mut self.with_more, other.with_more);
        add_cases(&mut self.resized_masks, other.resized_masks);
        self.mask_values.merge(&other.mask_values);
        self.sizes.merge(&other.sizes);
        self.seek.n_indexed += other.seek.n_indexed;
        self.seek.bytes += other.seek.bytes;
        self.seek.image_bytes += other.seek.image_bytes;
        self.times.add(&other.times);
        self.bad.extend_from_slice(&other.bad);
    }
}

impl ItemSizes {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.merge(&Self { min: bytes, max: bytes, total: bytes });
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        self.min = if self.total == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.total += other.total;
    }

    /// The statistics of these sizes. `n` is the number of items.
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
    pub(crate) fn stats(self, n: u64) -> SizeStats {
        let mean = self.total as f64 / n as f64;
        SizeStats { min: self.min, mean, max: self.max, total: self.total }
    }
}
