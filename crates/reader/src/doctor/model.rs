//! From times to what they mean: which stage binds, and how fast training would be. Arithmetic alone; docs/explanation/doctor.md has the
//! reasons.

/// Tracks that take no more than this much longer than the one with the step are hidden behind it.
const HIDDEN: f64 = 0.05;

/// What a batch goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Training on it.
    Step,
    /// To the device.
    Copy,
    /// Crops, flips, colours, floats, and putting samples together.
    Transform,
    /// From files to pixels.
    Decode,
    /// From the disk or the page cache, with checksums and decompression.
    Read,
}

impl Stage {
    /// From the last one that a batch goes through to the first.
    pub const ALL: [Self; 5] = [
        Self::Step,
        Self::Copy,
        Self::Transform,
        Self::Decode,
        Self::Read,
    ];

    /// Its name: `step`, `copy`, `transform`, `decode` or `read`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Copy => "copy",
            Self::Transform => "transform",
            Self::Decode => "decode",
            Self::Read => "read",
        }
    }
}

/// Milliseconds that each stage takes for a batch, each alone with all threads there are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stages {
    /// Of the step.
    pub step: f64,
    /// Of the copy to the device.
    pub copy: f64,
    /// Of transforming.
    pub transform: f64,
    /// Of decoding.
    pub decode: f64,
    /// Of reading.
    pub read: f64,
}

impl Stages {
    /// Milliseconds of one of them.
    #[must_use]
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

/// Which stages go on side by side: each track works on a batch of its own, stages of a track one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// A loader onto a device: step, copy, threads, disk.
    Everything,
    /// A loader whose batches the training itself copies: step and copy, threads, disk.
    Loading,
    /// Worker processes, of which each reads, decodes and transforms: step and copy, workers.
    Workers,
    /// One process that does everything in turn.
    Nothing,
}

impl Overlap {
    /// The stages of each track; the first track is that of the step.
    #[must_use]
    pub const fn tracks(self) -> &'static [&'static [Stage]] {
        use Stage::{Copy, Decode, Read, Step, Transform};
        match self {
            Self::Everything => &[&[Step], &[Copy], &[Transform, Decode], &[Read]],
            Self::Loading => &[&[Step, Copy], &[Transform, Decode], &[Read]],
            Self::Workers => &[&[Step, Copy], &[Transform, Decode, Read]],
            Self::Nothing => &[&[Step, Copy, Transform, Decode, Read]],
        }
    }

    /// Milliseconds for a batch: those of the slowest track.
    #[must_use]
    pub fn batch_ms(self, stages: &Stages) -> f64 {
        let tracks = self.tracks().iter();
        tracks
            .map(|track| track_ms(track, stages))
            .fold(0.0, f64::max)
    }

    /// Milliseconds for a batch whose loading takes so long in all.
    #[must_use]
    pub fn with_loading(self, step: f64, copy: f64, loading: f64) -> f64 {
        match self {
            Self::Everything => step.max(copy).max(loading),
            Self::Loading | Self::Workers => (step + copy).max(loading),
            Self::Nothing => step + copy + loading,
        }
    }

    /// The stage to make faster: the slowest of the slowest track, the step where it hides all others.
    #[must_use]
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

/// Reading from the disk takes at least this much longer than from the page cache.
const FROM_DISK: f64 = 1.1;

/// How much of a batch's way lies behind it: what is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One batch on the device: the step alone.
    DeviceBatch,
    /// One batch on the host: it is copied for each step.
    HostBatch,
    /// Processed samples: they are put together for each step.
    ProcessedSample,
    /// Decoded samples: they are transformed for each step.
    DecodedSample,
    /// Samples as they are stored: they are decoded for each step.
    RawSample,
    /// The page cache: samples are found, checked and read from memory.
    PageCache,
    /// Nothing: everything comes from where it is.
    Source,
}

impl Level {
    /// From all to nothing cached.
    pub const ALL: [Self; 7] = [
        Self::DeviceBatch,
        Self::HostBatch,
        Self::ProcessedSample,
        Self::DecodedSample,
        Self::RawSample,
        Self::PageCache,
        Self::Source,
    ];

    /// Its name, such as `page_cache`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeviceBatch => "device_batch",
            Self::HostBatch => "host_batch",
            Self::ProcessedSample => "processed_sample",
            Self::DecodedSample => "decoded_sample",
            Self::RawSample => "raw_sample",
            Self::PageCache => "page_cache",
            Self::Source => "source",
        }
    }
}

/// Milliseconds for a batch, and how much they differ.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Time {
    /// Of a run the mean, of single times the median.
    pub ms: f64,
    /// The quickest slice, or single time.
    pub low: f64,
    /// The slowest.
    pub high: f64,
    /// Whether it is of too few batches to say how much they differ.
    pub is_short: bool,
}

impl Time {
    /// A time that was told, not measured.
    #[must_use]
    pub const fn exactly(ms: f64) -> Self {
        Self {
            ms,
            low: ms,
            high: ms,
            is_short: false,
        }
    }

    /// Of these single times in milliseconds; zero where there are none.
    #[must_use]
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

    /// Half of what lies between the quickest and the slowest, as a part of the time.
    #[must_use]
    pub fn spread(&self) -> f64 {
        if self.ms > 0.0 {
            (self.high - self.low) / 2.0 / self.ms
        } else {
            0.0
        }
    }

    /// What caching more cannot take longer than.
    pub(super) fn at_most(self, other: Self) -> Self {
        if self.ms > other.ms { other } else { self }
    }
}

/// Loading alone, without step and copy, by what is cached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loading {
    /// Processed samples.
    pub processed: Time,
    /// Decoded samples.
    pub decoded: Time,
    /// Samples as they are stored.
    pub raw: Time,
    /// The page cache.
    pub page_cache: Time,
    /// Nothing.
    pub source: Time,
}

impl Loading {
    /// The same where no level takes longer than one with less cached: what looks so is chance.
    fn in_order(self) -> Self {
        let page_cache = self.page_cache.at_most(self.source);
        let raw = self.raw.at_most(page_cache);
        let decoded = self.decoded.at_most(raw);
        Self {
            processed: self.processed.at_most(decoded),
            decoded,
            raw,
            page_cache,
            source: self.source,
        }
    }
}

/// All that was measured of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Samples of a batch.
    pub batch: u32,
    /// What goes on side by side.
    pub overlap: Overlap,
    /// The step alone.
    pub step: Time,
    /// Whether the step is only a number: nothing was trained.
    pub step_is_modelled: bool,
    /// The copy alone.
    pub copy: Time,
    /// Loading alone.
    pub loading: Loading,
    /// Reading alone.
    pub read: Time,
    /// Training as it is: steps with all their loading, where there is a step to run.
    pub trained: Option<Time>,
    /// What advice needs to know.
    pub facts: Facts,
}

/// What advice needs to know, where it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Threads of the loader, or workers of a DataLoader.
    pub threads: usize,
    /// Cores that this process may use.
    pub cores: usize,
    /// Bytes of an image's pixels for each byte that is stored of it; none where pixels are stored.
    pub growth: Option<f64>,
    /// The part of an image's pixels that a smaller one would need to have; none where it is not larger than it must be.
    pub needed: Option<f64>,
    /// The same batches as bytes.
    pub as_bytes: Option<AsBytes>,
    /// Whether chunks are compressed.
    pub is_compressed: bool,
    /// Whether images are 32-bit floats.
    pub is_f32: bool,
    /// Milliseconds of reading a batch in the order `window`.
    pub window_read: Option<f64>,
    /// Milliseconds of reading a batch in one run after the other.
    pub long_read: Option<f64>,
    /// Milliseconds of copying a batch from pinned memory.
    pub pinned_copy: Option<f64>,
    /// Milliseconds of loading a batch from a pack of the same samples.
    pub converted: Option<f64>,
    /// What these samples went through that such a pack's loader does anew for every batch, and that its time leaves out.
    pub left_out: Option<String>,
}

/// What batches would take as bytes, normalized on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AsBytes {
    /// Their bytes for each byte of the batches as they are.
    pub bytes: f64,
    /// Milliseconds of transforming.
    pub transform: f64,
}

/// Images a second at a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// What is cached.
    pub level: Level,
    /// Images a second, the step included.
    pub images_per_s: f64,
    /// By the slowest slice.
    pub low: f64,
    /// By the quickest.
    pub high: f64,
}

impl Case {
    /// Milliseconds of each stage.
    #[must_use]
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

    /// Images a second at each level, with the step.
    #[must_use]
    pub fn ladder(&self) -> Vec<Rung> {
        let rung = |level| {
            let time = self.time(level);
            Rung {
                level,
                images_per_s: self.rate(time.ms),
                low: self.rate(time.high),
                high: self.rate(time.low),
            }
        };
        Level::ALL.map(rung).to_vec()
    }

    /// The time of a batch where it is cached so far, as the ladder shows it.
    pub(super) fn time(&self, level: Level) -> Time {
        let loading = self.loading.in_order();
        let time = match level {
            Level::DeviceBatch => self.step,
            // Without a step that is the time of a copy, if that: nothing is trained so fast.
            Level::HostBatch if self.step.ms <= 0.0 => Time::default(),
            Level::HostBatch => self.onto(Time::default()),
            Level::ProcessedSample => self.onto(loading.processed),
            Level::DecodedSample => self.onto(loading.decoded),
            Level::RawSample => self.onto(loading.raw),
            Level::PageCache => self.onto(loading.page_cache),
            Level::Source => self.trained.unwrap_or_else(|| self.onto(loading.source)),
        };
        // Nor can it take longer with anything cached.
        self.trained.map_or(time, |trained| time.at_most(trained))
    }

    /// The stage to make faster. How long loading takes says what the source showed, as in the ladder; which of its stages
    /// it is, what they take alone.
    #[must_use]
    pub fn binds(&self) -> Stage {
        let mut stages = self.stages();
        let trained = self.trained.map_or(f64::INFINITY, |time| time.ms);
        let shown = self.loading.source.ms.min(trained);
        let loading_alone = Stages {
            step: 0.0,
            copy: 0.0,
            ..stages
        };
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

    /// The time of a batch with its step and its copy, where loading takes so long.
    fn onto(&self, loading: Time) -> Time {
        let with = |step, copy, loading| self.overlap.with_loading(step, copy, loading);
        Time {
            ms: with(self.step.ms, self.copy.ms, loading.ms),
            low: with(self.step.low, self.copy.low, loading.low),
            high: with(self.step.high, self.copy.high, loading.high),
            is_short: self.step.is_short || loading.is_short,
        }
    }

    /// Whether it makes a difference that the source is not in the page cache.
    #[must_use]
    pub fn reads_from_disk(&self) -> bool {
        self.loading.source.ms > self.loading.page_cache.ms * FROM_DISK
    }

    /// Milliseconds for a batch as it is now.
    #[must_use]
    pub fn batch_ms(&self) -> f64 {
        let time = self.trained;
        time.unwrap_or_else(|| self.onto(self.loading.source)).ms
    }

    /// Images a second where a batch takes so many milliseconds; 0 where it takes none: nobody knows.
    #[must_use]
    pub fn rate(&self, ms: f64) -> f64 {
        if ms > 0.0 {
            f64::from(self.batch) * 1e3 / ms
        } else {
            0.0
        }
    }
}
