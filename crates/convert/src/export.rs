//! Exports a pack's samples, in file order, to another format.

use packds_system::{BadValue, counted, to_u64, to_usize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use packds_format::Pack;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::ConvertError;
use crate::convert::name;
use crate::data_format::DataFormat;
use crate::metadata::Metadata;
use crate::opt::{LIST_FORMATS, TO};
use crate::options::ConvertOptions;
pub(crate) use crate::options::ExportOptions;
use crate::ordered::{Next, ordered};
use crate::output::Output;
use crate::pipeline::{Observer, Phase, Progress};
use crate::sink::{self, Batch, BatchReader, Encode, Exported, Sink, SinkStart};

/// Compression, for formats that support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportCodec {
    /// Uncompressed.
    None,
    /// Deflate (gzip or zlib), at level 1 to 9.
    Gzip(u32),
    /// Zstandard, at level 1 to 19.
    Zstd(i32),
    /// Blosc (LZ4 with byte shuffling).
    Blosc,
    /// LZ4.
    Lz4,
    /// Snappy.
    Snappy,
}

impl ExportCodec {
    /// The name of the codec, without its level.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
            Self::Blosc => "blosc",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }
}

impl FromStr for ExportCodec {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let level = |default: u32, most: u32| match level {
            None => Some(default),
            Some(level) => level.parse().ok().filter(|level| (1..=most).contains(level)),
        };
        let codec = match name {
            "gzip" => level(4, 9).map(Self::Gzip),
            "zstd" => level(3, 19).and_then(|level| i32::try_from(level).ok()).map(Self::Zstd),
            "none" if text == name => Some(Self::None),
            "blosc" if text == name => Some(Self::Blosc),
            "lz4" if text == name => Some(Self::Lz4),
            "snappy" if text == name => Some(Self::Snappy),
            _ => None,
        };
        codec.ok_or_else(|| BadValue::new("none, gzip[:1-9], zstd[:1-19], blosc, lz4 or snappy", text))
    }
}

/// The result of an export.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportReport {
    /// The written file or folder.
    pub output: PathBuf,
    /// Its format.
    pub format: DataFormat,
    /// Number of samples.
    pub n_samples: u64,
    /// The names of the fields that were written.
    pub fields: Vec<String>,
    /// Bytes written.
    pub bytes_out: u64,
    /// Descriptions of what the format could not store.
    pub lost: Vec<String>,
    /// Time from the first sample to the last written byte.
    pub export: Duration,
    /// Time to sync the output to disk.
    pub sync: Duration,
}

impl Serialize for ExportReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "output": self.output.to_string_lossy(),
            "format": self.format.name(),
            "n_samples": self.n_samples,
            "fields": self.fields,
            "bytes_out": self.bytes_out,
            "lost": self.lost,
            "seconds": {"export": self.export.as_secs_f64(), "sync": self.sync.as_secs_f64(), "total": (self.export + self.sync).as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// Exports `pack` to `target`.
///
/// The output gets its name only once it is complete and on disk. The same pack and options always give the same
/// samples in the same order, whatever the number of threads.
///
/// # Errors
/// [`ConvertError`] says what failed, where, and whether the data is to blame. Nothing is left at `target`.
pub fn export<D: AsRef<[u8]> + Send + Sync>(
    pack: &Pack<D>,
    target: &Path,
    options: &ExportOptions,
    observer: &dyn Observer,
) -> Result<ExportReport, ConvertError> {
    let format = target_format(target, options)?;
    sink::check_options(format, target, options)?;
    let kind = sink::output_of(format, target)?;
    let exported = Exported::of(pack, format, kind, options.images);
    let exported = exported.map_err(ConvertError::of_pack)?;
    let described = exported.fields.iter().map(|f| f.field.clone()).collect();
    let mut metadata = Metadata::of_pack(pack, described).map_err(ConvertError::BadPack)?;
    let mut lost = exported.lost.clone();
    let n_samples = match &options.samples {
        None => pack.n_samples(),
        Some(samples) => {
            check_samples(pack, samples)?;
            if metadata.drop_totals() {
                lost.push("statistics and class counts, because they cover all samples of the pack".to_owned());
            }
            to_u64(samples.len())
        }
    };
    let is_folder = sink::is_folder(format, target, options);
    let output = Output::create_kind(target, options.force, is_folder)?;
    let started = Instant::now();
    let paths = paths_of(pack, &exported, options.samples.as_deref()).map_err(ConvertError::of_pack)?;
    let batch_samples = options.chunk_samples.unwrap_or(pack.geometry().chunk_samples());
    let start = SinkStart {
        path: output.working(),
        target,
        exported: &exported,
        n_samples,
        #[cfg(feature = "zarr")]
        batch_samples,
        paths: &paths,
        metadata: &metadata,
        options,
    };
    let reader = BatchReader { pack, exported: &exported, samples: options.samples.as_deref(), paths: &paths };
    let run = Run {
        n_samples,
        read: &|first, n| reader.read(first, n),
        observer,
        jobs: ConvertOptions { jobs: options.jobs, ..ConvertOptions::default() }.n_jobs(),
        batch_samples,
    };
    lost.extend((kind.write)(&start, &run)?);
    let export = started.elapsed();
    let started = Instant::now();
    let bytes_out = output.bytes()?;
    name(output, n_samples, observer)?;
    Ok(ExportReport {
        output: target.to_owned(),
        format,
        n_samples,
        fields: sink::written_fields(&exported, format, target, options),
        bytes_out,
        lost,
        export,
        sync: started.elapsed(),
    })
}

/// The format set in the options, otherwise the format inferred from the target's name.
///
/// # Errors
/// [`ConvertError::Options`] if there is neither, or if packs cannot be exported to the format.
pub fn target_format(target: &Path, options: &ExportOptions) -> Result<DataFormat, ConvertError> {
    let name = target.file_name().and_then(|name| name.to_str());
    let named = name.and_then(DataFormat::from_file_name);
    let hint = || format!("choose one with {}; {LIST_FORMATS} lists them", TO.with("FORMAT"));
    let wrong = |reason: String| ConvertError::options(reason, hint());
    let format = options
        .to
        .or(named)
        .ok_or_else(|| wrong(format!("{}: cannot infer a format from this name", target.display())))?;
    if format.is_sink() { Ok(format) } else { Err(wrong(format!("packs cannot be exported to {format}"))) }
}

fn check_samples<D: AsRef<[u8]>>(pack: &Pack<D>, samples: &[u64]) -> Result<(), ConvertError> {
    let n_samples = pack.n_samples();
    if samples.is_empty() {
        return Err(ConvertError::options("no samples are chosen", "there is nothing to export"));
    }
    match samples.iter().find(|sample| **sample >= n_samples) {
        None => Ok(()),
        Some(sample) => {
            let samples = counted(n_samples, "sample");
            Err(ConvertError::options(format!("no sample {sample}: the pack has {samples}"), "the first sample is 0"))
        }
    }
}

/// The paths of the exported samples. Empty if the pack has none.
fn paths_of<D: AsRef<[u8]>>(
    pack: &Pack<D>,
    exported: &Exported,
    samples: Option<&[u64]>,
) -> Result<Vec<Vec<u8>>, ConvertError> {
    let mut paths = Vec::new();
    if exported.has_paths {
        pack.for_each_path(|_, path| {
            paths.push(path.to_vec());
            Ok::<_, ConvertError>(())
        })?;
    }
    Ok(match samples {
        Some(samples) => samples.iter().filter_map(|sample| paths.get(to_usize(*sample)).cloned()).collect(),
        None => paths,
    })
}

/// A running export. It reads batches on all threads and passes them to a sink in order.
pub(crate) struct Run<'a> {
    n_samples: u64,
    /// Reads a batch, given the index of its first sample and the number of samples.
    read: &'a (dyn Fn(u64, usize) -> Result<Batch, ConvertError> + Sync),
    observer: &'a dyn Observer,
    jobs: usize,
    batch_samples: u32,
}

impl Run<'_> {
    /// Writes all samples to `sink`. Returns descriptions of what its format could not store.
    pub(crate) fn write_to<S: Sink>(&self, mut sink: S) -> Result<Vec<String>, ConvertError> {
        let total = self.n_samples;
        let step = u64::from(self.batch_samples.max(1));
        let encoder = sink.encoder();
        let mut next = 0_u64;
        let mut done = 0_u64;
        let tell = |samples| {
            self.observer.progress(Progress { samples, total, bytes_in: 0, phase: Phase::Export });
        };
        tell(done);
        ordered(
            self.jobs,
            self.jobs * 2,
            || (),
            |(), (first, n): (u64, usize)| {
                let batch = (self.read)(first, n)?;
                Ok((n, encoder.encode(batch)?))
            },
            || {
                self.observer.check()?;
                let first = next;
                next = total.min(first.saturating_add(step));
                let n = to_usize(next - first);
                Ok::<_, ConvertError>((n > 0).then_some((first, n)))
            },
            |encoded: Result<_, ConvertError>| {
                // Checked here too, because all batches may already have been dispatched.
                self.observer.check()?;
                let (n, ready) = encoded?;
                sink.write(ready)?;
                done += to_u64(n);
                tell(done);
                Ok(Next::Continue)
            },
        )?;
        sink.finish()
    }
}
