//! Predicts a conversion without running it: the size of each form, the chunk layout, and the read speed.

use packds_system::{counted, to_u64};
use std::time::Instant;

use packds_format::{BlockBuilder, Field, FooterParts, Pack, PackWriter, chunk_samples_for};
use packds_pixels::Histogram;
use serde::Serialize;

use crate::ConvertError;
use crate::convert::{path_of, refuse_fault, resized_masks};
use crate::opt::ON_ERROR;
use crate::options::{Compression, ConvertOptions, Mode, OnError};
use crate::plan::{ImageForm, Plan, plan};
use crate::restored::Restored;
use crate::sample::{SampleError, SampleReader};
use crate::source::store::Content;
use crate::source::{Listing, Reading};
use crate::survey::{evenly, mean_item_bytes, mean_other_bytes};

/// Number of images decoded to measure the speed.
const TRIED: usize = 32;
/// Bytes copied to measure the speed.
const COPY_BYTES: usize = 64 << 20;

/// One form in which the images can be stored.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FormForecast {
    /// The name of the form: `raw`, `encoded` or `mixed`.
    pub mode: &'static str,
    /// Total size of the samples in bytes.
    pub bytes: u64,
    /// Samples per chunk.
    pub chunk_samples: u32,
    /// Number of chunks.
    pub n_chunks: u64,
    /// Images per second that one thread is expected to read from memory by copying, decompressing or decoding.
    pub images_per_s: f64,
}

/// The predicted result of a conversion.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// Always true. In JSON, it distinguishes a forecast from a report.
    dry_run: bool,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of classes.
    pub n_classes: usize,
    /// How the source is read.
    pub source: Reading,
    /// Total size of the source's samples in bytes.
    pub bytes_in: u64,
    /// A description of how images would be stored.
    pub images: String,
    /// The fields of the pack.
    pub fields: Vec<Field>,
    /// The requested form.
    pub chosen: FormForecast,
    /// All forms, including the chosen one.
    pub forms: Vec<FormForecast>,
    /// Number of shards of a set. `None` for a single pack.
    pub n_shards: Option<u64>,
    /// Approximate size of a shard in bytes. The last one may be smaller.
    pub shard_bytes: Option<u64>,
    /// Decisions made by default.
    pub notes: Vec<String>,
    /// Warnings about the source.
    pub warnings: Vec<String>,
}

/// Predicts the conversion of `listing`. Decodes a few images, but writes nothing.
///
/// # Errors
/// The errors that a conversion can return before it reads the first image.
pub fn forecast(listing: &Listing, options: &ConvertOptions) -> Result<Forecast, ConvertError> {
    options.check()?;
    refuse_fault(listing, options)?;
    let Restored { options, warnings } = &Restored::of(listing, options, &())?;
    let chosen = plan(listing, options, &())?;
    let n = to_u64(listing.len());
    let bytes_in = (0..listing.len()).map(|i| listing.sample(i).bytes).fold(0, u64::saturating_add);
    let raw_options = ConvertOptions { mode: Mode::Raw, quality: None, check_decode: false, ..options.clone() };
    let raw_plan = if options.mode == Mode::Raw { chosen.clone() } else { plan(listing, &raw_options, &())? };
    let raw_bytes = raw_item_bytes(listing, &raw_options, &raw_plan)?;
    let copied = copy_rate(raw_bytes);
    let (decoded, resized) = match decode_rate(listing, &raw_options, &raw_plan) {
        Err((id, source)) if options.mode == Mode::Raw && options.on_error == OnError::Stop => {
            return Err(ConvertError::BadSample { path: listing.file_path(id), source });
        }
        tried => tried.unwrap_or_default(),
    };
    let (raw_stored, raw_rate) = match options.compression {
        Compression::None => (raw_bytes + mean_other_bytes(listing, &raw_plan), copied),
        Compression::Zstd(_) => compressed(listing, &raw_options, &raw_plan)?,
    };
    let others = mean_other_bytes(listing, &chosen);
    // The chunk layout depends on item sizes before compression. The total size depends on stored sizes.
    let form = |mode, item: u64, stored: u64, images_per_s| {
        let chunk_samples = match (mode, options.chunk_samples) {
            ("raw", _) => raw_plan.pack.chunk_samples,
            (mode, _) if mode == options.mode.name() => chosen.pack.chunk_samples,
            (_, Some(n)) => n,
            (_, None) => chunk_samples_for(item.saturating_add(others), options.batch),
        };
        let n_chunks = n.div_ceil(u64::from(chunk_samples));
        FormForecast { mode, bytes: stored.saturating_mul(n), chunk_samples, n_chunks, images_per_s }
    };
    let measured = || mean_item_bytes(listing, options, &chosen);
    let encoded_item = match chosen.form {
        ImageForm::Encoded { quality: Some(_) } => measured()?,
        _ => bytes_in / n.max(1),
    };
    let (share, mixed_item) = match chosen.form {
        ImageForm::Mixed { raw_fraction, .. } => (raw_fraction, measured()?),
        _ => (0.5, u64::midpoint(raw_bytes, encoded_item)),
    };
    let mixed_rate = 1.0 / (share / copied + (1.0 - share) / decoded);
    let forms = vec![
        form("raw", raw_bytes, raw_stored, raw_rate),
        form("encoded", encoded_item, encoded_item + others, decoded),
        form("mixed", mixed_item, mixed_item + others, mixed_rate),
    ];
    let of_mode = forms.iter().find(|f| f.mode == options.mode.name()).or(forms.first());
    let of_mode = of_mode.cloned().unwrap_or_else(|| form("raw", raw_bytes, raw_stored, raw_rate));
    let shards = shards(options, &of_mode);
    Ok(Forecast {
        dry_run: true,
        n_samples: n,
        n_classes: listing.n_classes(),
        source: Reading::of(listing, &options.list),
        bytes_in,
        images: chosen.describe_images(options),
        fields: chosen.pack.schema.fields().to_vec(),
        chosen: of_mode,
        forms,
        n_shards: shards.map(|(n, _)| n),
        shard_bytes: shards.map(|(_, bytes)| bytes),
        notes: chosen.notes.clone(),
        warnings: warnings
            .iter()
            .cloned()
            .chain(empty_images(listing, options))
            .chain(resized.map(|first| resized_masks("masks", &path_of(listing, first))))
            .collect(),
    })
}

/// The number of shards of a set, and the approximate size of each.
fn shards(options: &ConvertOptions, form: &FormForecast) -> Option<(u64, u64)> {
    let chunk_bytes = form.bytes / form.n_chunks.max(1);
    let n_shards = options.shards?.n_shards(form.n_chunks, chunk_bytes).max(1);
    Some((n_shards, chunk_bytes.saturating_mul(form.n_chunks.div_ceil(n_shards))))
}

/// A warning about empty image files. File sizes are already known, so nothing is read.
fn empty_images(listing: &Listing, options: &ConvertOptions) -> Option<String> {
    let is_empty = |id: &usize| matches!(listing.image_content(*id), Content::File) && listing.sample(*id).bytes == 0;
    let mut empty = (0..listing.len()).filter(is_empty);
    let first = path_of(listing, empty.next()?);
    let n = 1 + empty.count();
    let then = match options.on_error {
        OnError::Stop => format!("the conversion fails; {} leaves out bad samples", ON_ERROR.with("skip")),
        OnError::Skip => "the conversion leaves out their samples".to_owned(),
        OnError::Substitute => "the conversion replaces them with zeros".to_owned(),
    };
    Some(format!("{}, such as '{first}': {then}", counted(n, "empty image file")))
}

fn raw_item_bytes(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Result<u64, ConvertError> {
    let fixed: u64 = plan.pack.schema.body().filter_map(|(_, f)| f.item_bytes()).sum();
    match plan.form {
        ImageForm::Fixed { .. } | ImageForm::Array(_) => Ok(fixed),
        _ => Ok(fixed + mean_item_bytes(listing, options, plan)?),
    }
}

/// Encodes a small pack in memory. Returns the mean stored size of a compressed sample, and the number of samples that
/// one thread decompresses per second.
fn compressed(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Result<(u64, f64), ConvertError> {
    let mut reader = SampleReader::new(listing, options, plan);
    let mut histogram = Histogram::new(options.color().channels());
    let mut writer = PackWriter::new(Vec::new(), plan.pack.clone())?;
    let mut block = BlockBuilder::new(&plan.pack.schema);
    for id in evenly(listing, TRIED) {
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish()?)?;
            block = BlockBuilder::new(&plan.pack.schema);
        }
        // Bad files are ignored here; the conversion reports them.
        let _ = reader.add(id, &mut block, &mut histogram);
    }
    writer.append(block.finish()?)?;
    let pack = Pack::open(writer.finish(FooterParts::default())?.0)?;
    let (mut stored, started) = (0, Instant::now());
    for chunk in 0..pack.n_chunks() {
        let bytes = pack.chunk_bytes(chunk)?;
        stored += to_u64(bytes.len());
        pack.for_each_item(plan.fields.image, chunk, bytes, |_, item| {
            std::hint::black_box(item);
            Ok::<_, ConvertError>(())
        })?;
    }
    let n = pack.n_samples().max(1);
    #[expect(clippy::cast_precision_loss, reason = "a forecast needs few digits")]
    let rate = n as f64 / started.elapsed().as_secs_f64().max(1e-9);
    Ok((stored / n, rate))
}

/// How many samples of this size one thread copies per second.
fn copy_rate(item_bytes: u64) -> f64 {
    let source = vec![1_u8; COPY_BYTES];
    let mut target = vec![0_u8; COPY_BYTES];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&target);
        best = best.min(started.elapsed().as_secs_f64());
    }
    #[expect(clippy::cast_precision_loss, reason = "a forecast needs few digits")]
    let rate = COPY_BYTES as f64 / best / item_bytes.max(1) as f64;
    rate
}

/// The number of images decoded per second, and the first tried sample whose mask is resized.
type Tried = (f64, Option<usize>);

/// How many images one thread decodes, resizes and crops per second. Also returns the first tried sample whose mask is
/// resized.
///
/// # Errors
/// The first bad sample if all samples that were tried are bad. The conversion reports single bad samples.
fn decode_rate(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Result<Tried, (usize, SampleError)> {
    let mut reader = SampleReader::new(listing, options, plan);
    let mut histogram = Histogram::new(options.color().channels());
    let (mut file, mut n, mut seconds, mut bad, mut resized) = (Vec::new(), 0.0, 0.0, None, None);
    for id in evenly(listing, TRIED) {
        // Read the file into memory first, to exclude the speed of the disk from the measurement.
        file.clear();
        if let Err(error) = listing.append_image(id, u64::MAX, &mut file) {
            bad = bad.or(Some((id, listing.named(error))));
            continue;
        }
        let mut block = BlockBuilder::new(&plan.pack.schema);
        let started = Instant::now();
        match reader.add(id, &mut block, &mut histogram) {
            Ok(facts) => {
                resized = resized.or(facts.resized_mask.then_some(id));
                seconds += started.elapsed().as_secs_f64();
                n += 1.0;
            }
            Err(error) => bad = bad.or(Some((id, error))),
        }
    }
    match bad {
        Some(bad) if n == 0.0 => Err(bad),
        _ => Ok((if seconds > 0.0 { n / seconds } else { 0.0 }, resized)),
    }
}
