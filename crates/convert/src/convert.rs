//! Runs a conversion: lists the source, plans the pack, builds blocks, writes chunks, finishes the file and renames it.

use packds_system::{counted, to_u64};
use std::path::Path;
use std::time::{Duration, Instant};

use packds_format::{Classes, DType, FieldStats, LabelStats, Role, Scalar, Stats, Uuid, WriteSummary, label_icc};
use serde_json::Value;

use packds_pixels::Histogram;

use crate::ConvertError;
use crate::identity;
use crate::open_pack::{OpenPack, Origin};
use crate::opt::{CHECK_DECODE, FORCE, KEEP_ORDER, SHARD_SIZE};
use crate::options::{ConvertOptions, NormalizeBy, OnError};
use crate::output::{Output, check_no_version, check_output, is_set_name};
use crate::pipeline::{Findings, Observer, Pass, Phase, Progress};
use crate::plan::{ImageForm, Order, Plan, plan};
use crate::provenance::{VERSION, options_json, origin};
use crate::report::{Report, Skipped, Stages};
use crate::restored::Restored;
use crate::sample::Times;
use crate::set::{AllShards, Shards, check_set_name};
use crate::source::{Listing, list};

/// Converts a source into a pack at `output`.
///
/// The output gets its name only once it is complete and on disk. The same source and options always give the same
/// bytes, whatever the number of threads and the name of the output.
///
/// # Errors
/// [`ConvertError`] says what failed, where, and whether the data is to blame. Nothing is left at `output`.
pub fn convert(
    source: &Path,
    output: &Path,
    options: &ConvertOptions,
    observer: &dyn Observer,
) -> Result<Report, ConvertError> {
    options.check()?;
    check_apart(source, output)?;
    check_target(output, options)?;
    let started = Instant::now();
    let listing = list(source, &options.list)?;
    convert_listing(&listing, started.elapsed(), output, options, observer)
}

/// Converts a source that has already been listed. `list_time` is how long listing took. See [`convert`].
///
/// # Errors
/// As for [`convert`].
pub fn convert_listing(
    listing: &Listing,
    list_time: Duration,
    output: &Path,
    options: &ConvertOptions,
    observer: &dyn Observer,
) -> Result<Report, ConvertError> {
    let started = Instant::now();
    options.check()?;
    refuse_fault(listing, options)?;
    let restored = Restored::of(listing, options, observer)?;
    let options = &restored.options;
    let output = create_output(output, options)?;
    let mut stages = Stages { list: list_time, ..Stages::default() };
    let mut plan = plan(listing, options, observer)?;
    stages.plan = started.elapsed();
    if options.normalize == NormalizeBy::Dataset && options.dtype != DType::U8 {
        let started = Instant::now();
        measure(listing, options, &mut plan, observer)?;
        stages.measure = started.elapsed();
    }
    let identity = Identity::of(listing, options, &plan);
    let written = write_pack(listing, options, &plan, &identity, &output, observer, &mut stages)?;
    nothing_left(listing, &written.findings)?;
    let started_sync = Instant::now();
    let target = output.target().to_owned();
    name(output, written.summary.n_samples, observer)?;
    stages.sync = started_sync.elapsed();
    stages.total = list_time + started.elapsed();
    Ok(report(listing, &plan, written, target, stages, restored))
}

/// The file of a pack, or the folder of a set.
fn create_output(target: &Path, options: &ConvertOptions) -> Result<Output, ConvertError> {
    check_target(target, options)?;
    Output::create_kind(target, options.force, options.shards.is_some())
}

/// Rejects a target that cannot become the pack or the set, before any work is done.
///
/// # Errors
/// [`ConvertError::Options`] if the name is that of a set, but shards were not requested, or the reverse. Otherwise as
/// for [`check_output`].
pub fn check_target(target: &Path, options: &ConvertOptions) -> Result<(), ConvertError> {
    check_target_name(target, options)?;
    match options.shards {
        None => check_output(target, options.force),
        Some(_) if target.exists() => {
            let reason = format!("{}: this set already exists", target.display());
            let hint = format!(
                "a set is never replaced, not even with {FORCE}: choose another name, or convert to a pack and add it with `packds append`"
            );
            Err(ConvertError::options(reason, hint))
        }
        Some(_) => Ok(()),
    }
}

/// Rejects the name of a set for a pack, and the reverse.
///
/// # Errors
/// [`ConvertError::Options`].
pub fn check_target_name(target: &Path, options: &ConvertOptions) -> Result<(), ConvertError> {
    match options.shards {
        None if is_set_name(target) => {
            let reason = format!("{}: this is the name of a set of packs", target.display());
            let hint =
                format!("{} divides the samples among packs; a single pack ends with .pack", SHARD_SIZE.with("8GB"));
            Err(ConvertError::options(reason, hint))
        }
        None => check_no_version(target),
        Some(_) => check_set_name(target),
    }
}

/// Syncs the output to disk and renames it. A cancelled conversion leaves no output.
pub(crate) fn name(output: Output, n_samples: u64, observer: &dyn Observer) -> Result<(), ConvertError> {
    observer.check()?;
    observer.progress(Progress { samples: n_samples, total: n_samples, bytes_in: 0, phase: Phase::Sync });
    output.sync()?;
    observer.check()?;
    output.commit()
}

/// Rejects a target that is the source itself, because writing it would destroy the source.
///
/// # Errors
/// [`ConvertError::Options`] if they are the same.
pub fn check_apart(source: &Path, target: &Path) -> Result<(), ConvertError> {
    let (from, to) = (source.canonicalize(), target.canonicalize());
    if from.is_ok() && from.ok() == to.ok() {
        let reason = format!("{}: this is the source itself", target.display());
        return Err(ConvertError::options(reason, "choose a different target"));
    }
    Ok(())
}

/// Returns the error for the first sample that was found to be bad during listing, if bad samples stop the conversion.
pub(crate) fn refuse_fault(listing: &Listing, options: &ConvertOptions) -> Result<(), ConvertError> {
    let first = listing.faulty().next().filter(|_| options.on_error == OnError::Stop);
    match first.and_then(|id| Some((id, listing.fault(id)?))) {
        None => Ok(()),
        Some((id, source)) => Err(ConvertError::BadSample { path: listing.file_path(id), source }),
    }
}

/// Measures mean and standard deviation in a separate pass that writes nothing, and puts them into the plan.
pub(crate) fn measure(
    listing: &Listing,
    options: &ConvertOptions,
    plan: &mut Plan,
    observer: &dyn Observer,
) -> Result<(), ConvertError> {
    let pass = Pass { listing, options, plan, observer, phase: Phase::Measure };
    // Runs in listing order, so that the first bad file is the one reported. The sums are exact, so they do not depend
    // on the order.
    let findings = pass.run(Order::Kept(listing.len()), |block, _, _| Ok(Some(block)))?;
    let (mean, mut std) = mean_and_std(&findings.histogram);
    // Avoids a division by 0 for constant channels.
    std.iter_mut().filter(|s| **s <= 0.0).for_each(|s| *s = 1.0);
    plan.affine = Some((mean, std));
    plan.build_schema(listing, options)
}

/// Mean and standard deviation of each channel, for values scaled to 0..1.
fn mean_and_std(histogram: &Histogram) -> (Vec<f64>, Vec<f64>) {
    (0..histogram.channels()).map(|c| (histogram.mean_scaled(c), histogram.std_scaled(c))).unzip()
}

/// What identifies a pack, and says where it comes from.
pub(crate) struct Identity {
    pub(crate) dataset_uuid: Uuid,
    pub(crate) pack_uuid: Uuid,
    /// See [`crate::provenance::origin`].
    pub(crate) origin: Value,
}

impl Identity {
    pub(crate) fn of(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Self {
        let options = options_json(listing, options, plan);
        let (dataset_uuid, pack_uuid) = identity::uuids(listing, &options, VERSION);
        Self { dataset_uuid, pack_uuid, origin: origin(listing, options) }
    }
}

/// What was written, with the findings of the conversion.
pub(crate) struct Written {
    pub(crate) findings: Findings,
    pub(crate) summary: WriteSummary,
    skipped: Vec<Skipped>,
    substituted: Vec<Skipped>,
    /// Number of shards. `None` for a single pack.
    n_shards: Option<u64>,
    /// Warnings about statistics that the source had but the pack lacks.
    lost: Vec<String>,
    /// Warning if the samples are sorted by class.
    sorted: Option<String>,
}

/// Refuses to write a pack without samples.
fn nothing_left(listing: &Listing, findings: &Findings) -> Result<(), ConvertError> {
    let (path, skipped) = (listing.root().to_owned(), findings.bad.len());
    if findings.n_samples == 0 { Err(ConvertError::NothingLeft { path, skipped }) } else { Ok(()) }
}

pub(crate) fn write_pack(
    listing: &Listing,
    options: &ConvertOptions,
    plan: &Plan,
    identity: &Identity,
    output: &Output,
    observer: &dyn Observer,
    stages: &mut Stages,
) -> Result<Written, ConvertError> {
    let started = Instant::now();
    let failed = |e| write_error(output, e);
    let from = Origin { listing, options, plan };
    let pass = Pass { listing, options, plan, observer, phase: Phase::Convert };
    let order = Order::new(listing, options);
    let (findings, file) = match options.shards {
        None => {
            let file = output.file().try_clone().map_err(ConvertError::io(output.target()))?;
            let mut open = OpenPack::new(from, file, identity).map_err(failed)?;
            let findings = pass.run(order, |block, ids, found| open.append(block, ids, found).map_err(failed))?;
            let done = open.finish(Some(&findings)).map_err(failed)?;
            (findings, AllShards::one(done))
        }
        Some(rule) => {
            let mut shards = Shards::new(from, output.working(), rule, identity);
            let findings = pass.run(order, |block, ids, found| shards.append(block, ids, found))?;
            nothing_left(listing, &findings)?;
            let file = shards.finish(&findings)?;
            (findings, file)
        }
    };
    let AllShards { stats, n_shards, summary, warnings, write_time } = file;
    let (skipped, substituted) = bad_samples(listing, &findings, options);
    let lost = lost_stats(listing, plan, &stats).into_iter().chain(warnings).collect();
    let sorted = kept_sorted(&stats, plan.pack.chunk_samples, options.keep_order, summary.n_samples);
    let n_shards = options.shards.map(|_| n_shards);
    let Times { read, decode, stats, encode } = findings.times;
    *stages = Stages { read, decode, stats, encode, write: write_time, convert: started.elapsed(), ..*stages };
    Ok(Written { findings, summary, n_shards, skipped, substituted, lost, sorted })
}

/// Returns the skipped samples and the substituted samples, with reasons.
pub(crate) fn bad_samples(
    listing: &Listing,
    findings: &Findings,
    options: &ConvertOptions,
) -> (Vec<Skipped>, Vec<Skipped>) {
    let skipped = |(id, reason): &(usize, String)| Skipped { path: path_of(listing, *id), reason: reason.clone() };
    let bad = findings.bad.iter().map(skipped).collect();
    if options.on_error == OnError::Substitute { (Vec::new(), bad) } else { (bad, Vec::new()) }
}

/// A sample's path. Invalid UTF-8 is replaced.
pub(crate) fn path_of(listing: &Listing, id: usize) -> String {
    let mut path = Vec::new();
    listing.path_into(id, &mut path);
    String::from_utf8_lossy(&path).into_owned()
}

/// Adds the path of the output to an error that occurs while writing it.
pub(crate) fn write_error(output: &Output, error: packds_format::FormatError) -> ConvertError {
    match error {
        packds_format::FormatError::Io(source) => ConvertError::Io { path: output.target().to_owned(), source },
        other => ConvertError::Format(other),
    }
}

pub(crate) fn stats(
    listing: &Listing,
    plan: &Plan,
    findings: &Findings,
    ids: &[usize],
    options: &ConvertOptions,
) -> Stats {
    let mut stats = Stats::default();
    let substituted = if options.on_error == OnError::Substitute { findings.bad.len() } else { 0 };
    let samples = to_u64(ids.len() - substituted);
    // Zeros in place of bad samples do not count, whether this conversion or an earlier one wrote them.
    let valid = samples.saturating_sub(findings.invalid);
    // Statistics of only some images would be mistaken for statistics of all images.
    if findings.counted == valid && valid > 0 {
        stats.fields.insert("image".to_owned(), field_stats(&findings.histogram));
    } else if let Some(known) = exported_stats(listing, plan, findings, options, valid) {
        stats.fields.insert("image".to_owned(), known.clone());
    }
    if !plan.form.is_fixed() && valid > 0 {
        stats.sizes.insert("image".to_owned(), findings.sizes.stats(valid));
    }
    if options.seekable {
        stats.seek.insert("image.seek".to_owned(), findings.seek);
    }
    if listing.has_labels() {
        let labels = ids.iter().filter_map(|id| listing.label(*id));
        let icc = label_icc(labels, plan.pack.chunk_samples);
        stats.labels.insert("label".to_owned(), LabelStats { icc });
    }
    stats
}

/// The statistics of counted pixels.
pub(crate) fn field_stats(h: &Histogram) -> FieldStats {
    let channels = 0..h.channels();
    let (mean, std) = mean_and_std(h);
    FieldStats {
        n_pixels: h.count(),
        mean,
        std,
        min: channels.clone().map(|c| bin_value(h.counts(c).iter().position(|n| *n > 0))).collect(),
        max: channels.clone().map(|c| bin_value(h.counts(c).iter().rposition(|n| *n > 0))).collect(),
        histogram: channels.map(|c| h.counts(c).to_vec()).collect(),
    }
}

/// The statistics of the pack that the images were exported from, if the samples are the same. Used only if this
/// conversion did not count all pixels.
fn exported_stats<'a>(
    listing: &'a Listing,
    plan: &Plan,
    findings: &Findings,
    options: &ConvertOptions,
    valid: u64,
) -> Option<&'a FieldStats> {
    let stats = &listing.metadata()?.stats;
    let known = stats.fields.get("image")?;
    let same = match &plan.form {
        ImageForm::Array(array) => {
            let channels = u64::try_from(known.mean.len()).ok()?;
            let mut dims = array.shape.iter();
            let values = dims.try_fold(valid, |n, dim| n.checked_mul(*dim));
            known.n_pixels.checked_mul(channels) == values
        }
        ImageForm::Encoded { .. } | ImageForm::Mixed { .. } => {
            // Re-encoded images have the same number of pixels, but their files differ in size.
            let total = stats.sizes.get("image").map(|sizes| sizes.total);
            known.n_pixels == findings.n_pixels
                && total == Some(findings.sizes.total)
                && known.mean.len() == options.color().channels()
        }
        ImageForm::Fixed { .. } | ImageForm::Variable => false,
    };
    same.then_some(known)
}

/// Returns a warning if the source's pack had pixel statistics but this pack has none.
fn lost_stats(listing: &Listing, plan: &Plan, stats: &Stats) -> Option<String> {
    let known = &listing.metadata()?.stats.fields;
    if !known.contains_key("image") || stats.fields.contains_key("image") {
        return None;
    }
    let why = match plan.form {
        ImageForm::Array(_) => "the samples have changed, and statistics are computed only for u8".to_owned(),
        _ => format!(
            "not all images are decoded, and the image files differ from those in that pack; {} decodes and counts all images",
            CHECK_DECODE.on()
        ),
    };
    Some(format!("the original pack had pixel statistics, but the new one has none: {why}"))
}

/// Returns a warning if samples keep the order of a source that is sorted by class. With a single chunk, the order does
/// no harm.
pub(crate) fn kept_sorted(stats: &Stats, chunk_samples: u32, keep_order: bool, n_samples: u64) -> Option<String> {
    let icc = stats.labels.get("label")?.icc?;
    let is_sorted = keep_order && n_samples > chunk_samples.into() && icc > LabelStats::SHUFFLED_ICC;
    is_sorted.then(|| {
        format!(
            "the samples keep the order of the source, which is sorted by class (icc {icc:.2}): training on such a pack needs a large window; without {KEEP_ORDER}, the samples are shuffled"
        )
    })
}

/// The byte value that a histogram bin counts.
fn bin_value(bin: Option<usize>) -> u8 {
    bin.and_then(|bin| u8::try_from(bin).ok()).unwrap_or(0)
}

/// Names and sample counts of the classes. Invalid UTF-8 is replaced.
pub(crate) fn classes(listing: &Listing, ids: &[usize]) -> Vec<Classes> {
    let names: Vec<String> = listing.classes().iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect();
    let boxes = box_classes(listing, ids);
    if names.is_empty() {
        return boxes.into_iter().collect();
    }
    let mut counts = vec![0_u64; names.len()];
    let mut count = |label: i64| {
        if let Some(n) = usize::try_from(label).ok().and_then(|label| counts.get_mut(label)) {
            *n += 1;
        }
    };
    for &id in ids {
        listing.label(id).into_iter().for_each(&mut count);
        listing.label_list(id).unwrap_or(&[]).iter().copied().for_each(&mut count);
    }
    let field = if listing.has_label_lists() { "labels" } else { "label" };
    std::iter::once(Classes { field: field.to_owned(), names, counts }).chain(boxes).collect()
}

/// Names of the classes of boxes, and the number of boxes of each.
fn box_classes(listing: &Listing, ids: &[usize]) -> Option<Classes> {
    let labels = listing.fields().iter().find(|field| field.role == Some(Role::BoxLabels))?;
    let names = listing.box_classes().to_vec();
    let mut counts = vec![0_u64; names.len()];
    let mut item = Vec::new();
    for &id in ids {
        item.clear();
        // A sample that cannot be read is reported elsewhere.
        if labels.store.append(id, u64::MAX, &mut item).is_err() {
            continue;
        }
        for label in Scalar::each(DType::I64, &item).filter_map(Scalar::integer) {
            if let Some(n) = usize::try_from(label).ok().and_then(|label| counts.get_mut(label)) {
                *n += 1;
            }
        }
    }
    (!names.is_empty()).then(|| Classes { field: labels.name.clone(), names, counts })
}

pub(crate) fn report(
    listing: &Listing,
    plan: &Plan,
    written: Written,
    output: std::path::PathBuf,
    stages: Stages,
    Restored { options, mut warnings }: Restored,
) -> Report {
    let options = &options;
    let Written { findings, summary, n_shards, skipped, substituted, lost, sorted } = written;
    warnings.extend(lost);
    if findings.cut > 0 {
        let images = counted(findings.cut, "image");
        warnings.push(format!(
            "reduced {images} with more than 8 bits per channel to 8 bits, as Pillow does; in gray images, all values above 255 become white. To keep 16 bits, save arrays instead, in Python: numpy.save('x.npy', numpy.asarray(Image.open('x.png')))"
        ));
    }
    if findings.oriented > 0 && listing.boxes().is_some() {
        let images = counted(findings.oriented, "image");
        warnings.push(format!("{images} with an EXIF rotation: boxes are taken as those of the stored pixels"));
    }
    if let Some((n, first)) = findings.other_sizes {
        warnings.push(format!(
            "{} with another width or height than the source says (first such image: '{}'): if images were resized after their boxes were drawn, the boxes are in the wrong places",
            counted(n, "image"),
            path_of(listing, first)
        ));
    }
    if let Some((n, first)) = findings.with_more {
        let mut path = Vec::new();
        listing.path_into(first, &mut path);
        let first = String::from_utf8_lossy(&path);
        warnings.push(format!(
            "packed only the first frame or page of {} with more than one (first such image: '{first}'): save each frame as a file if you need all",
            counted(n, "image")
        ));
    }
    if let Some((n, first)) = findings.resized_masks {
        warnings.push(resized_masks(&counted(n, "mask"), &path_of(listing, first)));
    }
    let mut notes = plan.notes.clone();
    notes.extend(sorted);
    notes.extend(findings.mask_values.note());
    if findings.had_alpha > 0 {
        let images = counted(findings.had_alpha, "image");
        notes.push(format!("left out the alpha channel of {images}, as Pillow's convert('RGB') does"));
    }
    if listing.has_only_images() {
        notes.push("the source has only images, so the pack has no labels".to_owned());
    }
    let invalid = findings.invalid + to_u64(substituted.len());
    let seen = findings.counted > 0 && findings.counted + invalid == summary.n_samples;
    let (mean, std) = if seen { mean_and_std(&findings.histogram) } else { (Vec::new(), Vec::new()) };
    Report {
        output,
        n_samples: summary.n_samples,
        n_chunks: summary.n_chunks,
        n_shards,
        chunk_samples: plan.pack.chunk_samples,
        n_classes: listing.n_classes(),
        images: plan.describe_images(options),
        fields: plan.pack.schema.fields().to_vec(),
        skipped,
        substituted,
        oriented: findings.oriented,
        ignored: listing.ignored(),
        seek: options.seekable.then_some(findings.seek),
        bytes_in: findings.bytes_in,
        bytes_out: summary.file_len,
        mean,
        std,
        warnings,
        notes,
        stages,
    }
}

/// The warning about masks that are resized to the size of their images.
pub(crate) fn resized_masks(masks: &str, first: &str) -> String {
    format!(
        "resized {masks} to the size of the image, like Pillow's resize with Image.NEAREST (first such image: '{first}')"
    )
}
