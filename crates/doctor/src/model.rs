//! Interprets times: which stage limits the speed, and how fast training would be. It is pure arithmetic.
//! docs/explanation/doctor.md explains the model.

/// A track counts as hidden if it takes at most this fraction longer than the track with the step.
const HIDDEN: f64 = 0.05;

/// The stages of a batch, from the last to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The training step.
    Step,
    /// Copying to the device.
    Copy,
    /// Crops, flips, colours, conversion to floats, and assembling samples into a batch.
    Transform,
    /// Decoding files to pixels.
    Decode,
    /// Reading from the disk or the page cache, with checksums and decompression.
    Read,
}

packds_system::named!(Stage {
    Step = "step",
    Copy = "copy",
    Transform = "transform",
    Decode = "decode",
    Read = "read",
});

/// Milliseconds per batch of each stage. Each stage is measured alone, with all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stages {
    /// The training step.
    pub step: f64,
    /// The copy to the device.
    pub copy: f64,
    /// Transforming.
    pub transform: f64,
    /// Decoding.
    pub decode: f64,
    /// Reading.
    pub read: f64,
}

impl Stages {
    /// Milliseconds of one stage.
    pub const fn of(&self, stage: Stage) -> f64 {
        match stage {
            Stage::Step => self.step,
            Stage::Copy => self.copy,
            Stage::Transform => self.transform,
            Stage::Decode => self.decode,
            Stage::Read => self.read,
        }
    }
}

/// Which stages overlap: those of different tracks. Each track works on its own batch. The stages of a track run one
/// after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// A loader that also copies to the device. Its tracks: step; copy; threads; disk.
    Everything,
    /// A loader, with the copy in the training process. The tracks: step and copy; threads; disk.
    Loading,
    /// Worker processes that each read, decode and transform. The tracks: step and copy; workers.
    Workers,
    /// One process that does everything in sequence: a single track.
    Nothing,
}

impl Overlap {
    /// The stages of each track. The first track contains the step.
    pub const fn tracks(self) -> &'static [&'static [Stage]] {
        use Stage::{Copy, Decode, Read, Step, Transform};
        match self {
            Self::Everything => &[&[Step], &[Copy], &[Transform, Decode], &[Read]],
            Self::Loading => &[&[Step, Copy], &[Transform, Decode], &[Read]],
            Self::Workers => &[&[Step, Copy], &[Transform, Decode, Read]],
            Self::Nothing => &[&[Step, Copy, Transform, Decode, Read]],
        }
    }

    /// Milliseconds per batch: the time of the slowest track.
    pub fn batch_ms(self, stages: &Stages) -> f64 {
        let tracks = self.tracks().iter();
        tracks.map(|track| track_ms(track, stages)).fold(0.0, f64::max)
    }

    /// Milliseconds per batch if loading takes `loading` in total.
    pub fn with_loading(self, step: f64, copy: f64, loading: f64) -> f64 {
        match self {
            Self::Everything => step.max(copy).max(loading),
            Self::Loading | Self::Workers => (step + copy).max(loading),
            Self::Nothing => step + copy + loading,
        }
    }

    /// The bottleneck: the slowest stage of the slowest track. The track with the step counts as the slowest if it
    /// hides the others.
    pub fn binds(self, stages: &Stages) -> Stage {
        let first_longest = |values: Vec<f64>| {
            let most = values.iter().copied().fold(0.0, f64::max);
            values.iter().position(|value| *value >= most).unwrap_or(0)
        };
        let tracks = self.tracks();
        let mut times: Vec<f64> = tracks.iter().map(|t| track_ms(t, stages)).collect();
        if let Some(own) = times.first_mut() {
            *own *= 1.0 + HIDDEN;
        }
        let track = tracks.get(first_longest(times)).copied().unwrap_or(&[]);
        let times = track.iter().map(|stage| stages.of(*stage)).collect();
        let stage = track.get(first_longest(times));
        stage.copied().unwrap_or(Stage::Step)
    }
}

fn track_ms(track: &[Stage], stages: &Stages) -> f64 {
    track.iter().map(|stage| stages.of(*stage)).sum()
}

/// Loading counts as reading from the disk if it takes over this many times as long as loading from the page cache.
const FROM_DISK: f64 = 1.1;

/// How much of the pipeline is cached, from everything to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One batch on the device: only the step runs.
    DeviceBatch,
    /// One batch on the host: it is copied for each step.
    HostBatch,
    /// Processed samples: they are assembled for each step.
    ProcessedSample,
    /// Decoded samples: they are transformed for each step.
    DecodedSample,
    /// Stored samples: they are decoded for each step.
    RawSample,
    /// The page cache: samples are located, verified and read from memory.
    PageCache,
    /// Nothing is cached: all data comes from its source.
    Source,
}

packds_system::named!(Level {
    DeviceBatch = "device_batch",
    HostBatch = "host_batch",
    ProcessedSample = "processed_sample",
    DecodedSample = "decoded_sample",
    RawSample = "raw_sample",
    PageCache = "page_cache",
    Source = "source",
});

/// Milliseconds per batch, with their spread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Time {
    /// The mean for a run, or the median of repeated measurements.
    pub ms: f64,
    /// The fastest slice or measurement.
    pub low: f64,
    /// The slowest slice or measurement.
    pub high: f64,
    /// Whether there are too few batches for a spread.
    pub is_short: bool,
}

impl Time {
    /// A given time that was not measured.
    pub const fn exactly(ms: f64) -> Self {
        Self { ms, low: ms, high: ms, is_short: false }
    }

    /// The median and the range of measurements in milliseconds. Zero if there are none.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let n = times.len();
        let at = |place: usize| times.get(place).copied().unwrap_or(0.0);
        Self {
            ms: f64::midpoint(at(n.saturating_sub(1) / 2), at(n / 2)),
            low: at(0),
            high: at(n.saturating_sub(1)),
            is_short: false,
        }
    }

    /// Half the difference between the slowest and the fastest time, relative to the time.
    pub fn spread(&self) -> f64 {
        if self.ms > 0.0 { (self.high - self.low) / 2.0 / self.ms } else { 0.0 }
    }

    /// Limits the time to that of `other`, which has less cached and therefore cannot be faster.
    pub(crate) fn at_most(self, other: Self) -> Self {
        if self.ms > other.ms { other } else { self }
    }
}

/// Times of loading alone, without step and copy, at each level of caching.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loading {
    /// With processed samples in memory.
    pub processed: Time,
    /// With decoded samples in memory.
    pub decoded: Time,
    /// With stored samples in memory.
    pub raw: Time,
    /// With the data in the page cache.
    pub page_cache: Time,
    /// With nothing cached.
    pub source: Time,
}

impl Loading {
    /// Makes the times consistent. A level with more data cached cannot take longer than a level with less. If it does,
    /// the difference is noise.
    fn in_order(self) -> Self {
        let page_cache = self.page_cache.at_most(self.source);
        let raw = self.raw.at_most(page_cache);
        let decoded = self.decoded.at_most(raw);
        Self { processed: self.processed.at_most(decoded), decoded, raw, page_cache, source: self.source }
    }
}

/// All measurements of a training run.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Samples per batch.
    pub batch: u32,
    /// Which stages overlap.
    pub overlap: Overlap,
    /// Time of the step alone.
    pub step: Time,
    /// Whether the step time was given and not measured.
    pub step_is_modelled: bool,
    /// Time of the copy alone.
    pub copy: Time,
    /// Times of loading alone.
    pub loading: Loading,
    /// Time of reading alone.
    pub read: Time,
    /// Time of a complete training step with loading, if it was measured.
    pub trained: Option<Time>,
    /// Inputs for advice.
    pub facts: Facts,
}

/// Inputs for advice, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Threads of the loader, or workers of a DataLoader.
    pub threads: usize,
    /// Cores available to this process.
    pub cores: usize,
    /// Decoded bytes per stored byte of an image. `None` if pixels are stored.
    pub growth: Option<f64>,
    /// The fraction of an image's pixels that is needed. `None` if images are not too large.
    pub needed: Option<f64>,
    /// The cost of the same batches as u8. `None` if they are already u8, or cannot be converted to u8.
    pub as_bytes: Option<AsBytes>,
    /// Whether chunks are compressed.
    pub is_compressed: bool,
    /// Whether images are 32-bit floats.
    pub is_f32: bool,
    /// Milliseconds to read a batch in the order `window`.
    pub window_read: Option<f64>,
    /// Milliseconds to read a batch sequentially.
    pub long_read: Option<f64>,
    /// Milliseconds to copy a batch from pinned memory.
    pub pinned_copy: Option<f64>,
    /// Milliseconds to load a batch from a pack of the same samples.
    pub converted: Option<f64>,
    /// Processing of these samples that a pack's loader would have to repeat for every batch. The time in `converted`
    /// does not include it.
    pub left_out: Option<String>,
}

/// The cost of u8 batches that are normalized on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AsBytes {
    /// Size of such a batch, relative to a current batch.
    pub bytes: f64,
    /// Milliseconds to transform such a batch.
    pub transform: f64,
}

/// The speed at one level of the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// The level, which says what is cached.
    pub level: Level,
    /// Images per second, with the time of the step included.
    pub images_per_s: f64,
    /// Images per second of the slowest slice.
    pub low: f64,
    /// Images per second of the fastest slice.
    pub high: f64,
}

impl Case {
    /// Milliseconds of each stage.
    pub fn stages(&self) -> Stages {
        let loading = self.loading.in_order();
        Stages {
            step: self.step.ms,
            copy: self.copy.ms,
            transform: loading.decoded.ms,
            decode: (loading.raw.ms - loading.decoded.ms).max(0.0),
            read: self.read.ms,
        }
    }

    /// The speed at each level, with the time of the step included.
    pub fn ladder(&self) -> Vec<Rung> {
        let rung = |level| {
            let time = self.time(level);
            Rung { level, images_per_s: self.rate(time.ms), low: self.rate(time.high), high: self.rate(time.low) }
        };
        Level::ALL.map(rung).to_vec()
    }

    /// The time of a batch that is cached up to this level, as shown in the ladder.
    pub(crate) fn time(&self, level: Level) -> Time {
        let loading = self.loading.in_order();
        let time = match level {
            Level::DeviceBatch => self.step,
            // Without a step, only the copy would be left, and its time does not give a training speed.
            Level::HostBatch if self.step.ms <= 0.0 => Time::default(),
            Level::HostBatch => self.onto(Time::default()),
            Level::ProcessedSample => self.onto(loading.processed),
            Level::DecodedSample => self.onto(loading.decoded),
            Level::RawSample => self.onto(loading.raw),
            Level::PageCache => self.onto(loading.page_cache),
            Level::Source => self.trained.unwrap_or_else(|| self.onto(loading.source)),
        };
        // A batch with more data cached cannot take longer than complete training.
        self.trained.map_or(time, |trained| time.at_most(trained))
    }

    /// The bottleneck. As in the ladder, the total loading time is that of the source. The times of the single stages
    /// only decide each stage's share of it.
    pub fn binds(&self) -> Stage {
        let mut stages = self.stages();
        let trained = self.trained.map_or(f64::INFINITY, |time| time.ms);
        let shown = self.loading.source.ms.min(trained);
        let loading_alone = Stages { step: 0.0, copy: 0.0, ..stages };
        let alone = self.overlap.batch_ms(&loading_alone);
        if alone > 0.0 {
            let part = shown / alone;
            stages.transform *= part;
            stages.decode *= part;
            stages.read *= part;
        } else {
            stages.read = shown;
        }
        self.overlap.binds(&stages)
    }

    /// The time of a batch with its step and copy, if loading takes this long.
    fn onto(&self, loading: Time) -> Time {
        let with = |step, copy, loading| self.overlap.with_loading(step, copy, loading);
        Time {
            ms: with(self.step.ms, self.copy.ms, loading.ms),
            low: with(self.step.low, self.copy.low, loading.low),
            high: with(self.step.high, self.copy.high, loading.high),
            is_short: self.step.is_short || loading.is_short,
        }
    }

    /// Whether loading from the source is noticeably slower than from the page cache.
    pub fn reads_from_disk(&self) -> bool {
        self.loading.source.ms > self.loading.page_cache.ms * FROM_DISK
    }

    /// Current milliseconds per batch.
    pub fn batch_ms(&self) -> f64 {
        let time = self.trained;
        time.unwrap_or_else(|| self.onto(self.loading.source)).ms
    }

    /// Images per second for this time per batch. 0 if the time is 0, that is, unknown.
    pub fn rate(&self, ms: f64) -> f64 {
        if ms > 0.0 { f64::from(self.batch) * 1e3 / ms } else { 0.0 }
    }
}
