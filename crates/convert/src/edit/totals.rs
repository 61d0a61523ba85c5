//! The statistics of the new pack. Nothing is decoded for them, so the pixels of encoded images are not counted.

use std::collections::BTreeMap;

use packds_format::{
    Classes, DType, Field, FieldKind, FieldStats, FormatError, LabelStats, Pack, Role, Scalar, SeekStats, Stats,
    label_icc,
};
use packds_pixels::Histogram;
use packds_system::to_u64;

use super::blocks::Copier;
use super::joined::Joined;
use crate::convert::field_stats;
use crate::error::ConvertError;
use crate::label_set;
use crate::opt::{CHECK_DECODE, SHUFFLE};
use crate::pipeline::ItemSizes;

/// The totals of some samples.
#[derive(Debug)]
pub(super) struct Totals {
    /// Bytes of the items in the body.
    pub(super) body_bytes: u64,
    n_valid: u64,
    /// Whether the current sample is valid. The zeros in place of a bad sample do not count.
    is_valid: bool,
    /// The field that says which samples are valid.
    valid: Option<usize>,
    sizes: BTreeMap<usize, ItemSizes>,
    /// By the field of the indexes, with the field of the images.
    seek: BTreeMap<usize, (usize, SeekStats)>,
    /// By image field whose pixels are counted.
    pixels: BTreeMap<usize, Histogram>,
}

impl Totals {
    /// No samples.
    pub(super) fn of<D: AsRef<[u8]>>(copier: &Copier<'_, D>) -> Self {
        let schema = &copier.joined.schema;
        let fields = || schema.fields().iter().enumerate();
        let is_image = |field: &Field| field.role == Some(Role::Image);
        let sized = fields().filter(|(_, field)| is_image(field) && field.kind != FieldKind::Tensor);
        let seek = fields().filter_map(|(number, field)| {
            let of = schema.index_of(field.seek_index_of.as_ref()?).ok()?;
            Some((number, (of, SeekStats::default())))
        });
        // The pixels of whole packs were counted when these packs were written.
        let counted = fields().filter(|(_, field)| is_image(field) && copier.is_partial && has_pixels(field));
        let histogram = |field: &Field| {
            let channels = field.image_shape().and_then(|(_, _, channels)| usize::try_from(channels).ok());
            Histogram::new(channels.unwrap_or(1))
        };
        Self {
            body_bytes: 0,
            n_valid: 0,
            is_valid: true,
            valid: schema.by_role(Role::Valid, None).map(|(number, _)| number),
            sizes: sized.map(|(number, _)| (number, ItemSizes::default())).collect(),
            seek: seek.collect(),
            pixels: counted.map(|(number, field)| (number, histogram(field))).collect(),
        }
    }

    /// Begins a sample.
    pub(super) fn begin<D: AsRef<[u8]>>(
        &mut self,
        pack: (usize, &Pack<D>),
        joined: &Joined,
        sample: u64,
    ) -> Result<(), FormatError> {
        self.is_valid = match self.valid {
            None => true,
            Some(valid) => joined.item(pack, valid, sample)?.first() != Some(&0),
        };
        self.n_valid += u64::from(self.is_valid);
        Ok(())
    }

    /// Whether the items themselves are counted, not only their sizes.
    pub(super) fn needs_items(&self) -> bool {
        !self.pixels.is_empty()
    }

    /// Counts an item in the body.
    pub(super) fn add(&mut self, number: usize, item: &[u8]) {
        self.add_size(number, to_u64(item.len()));
        if let Some(histogram) = self.pixels.get_mut(&number).filter(|_| self.is_valid) {
            histogram.add(item);
        }
    }

    /// Counts an item of this size in the body.
    pub(super) fn add_size(&mut self, number: usize, bytes: u64) {
        self.body_bytes += bytes;
        for (index, (image, seek)) in &mut self.seek {
            if *index == number {
                seek.n_indexed += u64::from(bytes > 0);
                seek.bytes += bytes;
            } else if *image == number {
                seek.image_bytes += bytes;
            }
        }
        if let Some(sizes) = self.sizes.get_mut(&number).filter(|_| self.is_valid) {
            sizes.add(bytes);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.body_bytes += other.body_bytes;
        self.n_valid += other.n_valid;
        for (own, other) in self.sizes.values_mut().zip(other.sizes.values()) {
            own.merge(other);
        }
        for ((_, own), (_, other)) in self.seek.values_mut().zip(other.seek.values()) {
            own.n_indexed += other.n_indexed;
            own.bytes += other.bytes;
            own.image_bytes += other.image_bytes;
        }
        for (own, other) in self.pixels.values_mut().zip(other.pixels.values()) {
            own.merge(other);
        }
    }
}

/// Whether the items are interleaved `u8` pixels.
fn has_pixels(field: &Field) -> bool {
    field.kind == FieldKind::Tensor && field.dtype == DType::U8 && field.layout.as_deref() == Some("hwc")
}

/// The statistics, and a warning if pixel statistics of the packs are lost.
pub(super) fn stats<D: AsRef<[u8]>>(
    copier: &Copier<'_, D>,
    totals: &Totals,
    labels: BTreeMap<String, LabelStats>,
) -> Result<(Stats, Option<String>), ConvertError> {
    let mut stats = Stats { labels, ..Stats::default() };
    let fields = copier.joined.schema.fields();
    let mut lost = None;
    let used = copier.taken.iter().filter(|taken| taken.len() > 0);
    let all = used.map(|taken| taken.pack.stats().map_err(|error| taken.located(error)));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    for (number, field) in fields.iter().enumerate() {
        let of_whole_packs = known_pixels(&all, &field.name);
        let counted = totals.pixels.get(&number).filter(|_| of_whole_packs.is_some() && totals.n_valid > 0);
        match (counted, of_whole_packs) {
            (Some(histogram), _) => {
                stats.fields.insert(field.name.clone(), field_stats(histogram));
            }
            (None, Some(histogram)) if !copier.is_partial => {
                stats.fields.insert(field.name.clone(), field_stats(&histogram));
            }
            (None, Some(_)) => lost = Some(field.name.clone()),
            (None, None) => {}
        }
        if let Some(sizes) = totals.sizes.get(&number).filter(|_| totals.n_valid > 0) {
            stats.sizes.insert(field.name.clone(), sizes.stats(totals.n_valid));
        }
        if let Some((_, seek)) = totals.seek.get(&number) {
            stats.seek.insert(field.name.clone(), *seek);
        }
    }
    let lost = lost.map(|field| {
        format!(
            "the new pack has no statistics of the pixels of `{field}`, because they are counted only when images are decoded; {} when converting the source counts them",
            CHECK_DECODE.on()
        )
    });
    Ok((stats, lost))
}

/// The pixel statistics of all packs together. `None` if a pack has no statistics of this field.
pub(crate) fn pixels_of_all(all: &[Stats], field: &str) -> Option<FieldStats> {
    known_pixels(all, field).map(|pixels| field_stats(&pixels))
}

/// How the labels of the new pack are ordered.
pub(super) fn label_stats<D: AsRef<[u8]>>(
    copier: &Copier<'_, D>,
    chunk_samples: u32,
) -> Result<BTreeMap<String, LabelStats>, ConvertError> {
    let mut stats = BTreeMap::new();
    let fields = copier.joined.schema.fields().iter().enumerate();
    for (number, field) in fields.filter(|(_, field)| field.role == Some(Role::Label)) {
        let mut labels = Vec::new();
        each_label(copier, number, field, |id| labels.push(id))?;
        stats.insert(field.name.clone(), LabelStats { icc: label_icc(labels.into_iter(), chunk_samples) });
    }
    Ok(stats)
}

/// The intra-chunk correlation that shuffled samples of a small pack may have by chance: three standard errors of the
/// intraclass correlation of unrelated values.
#[expect(clippy::cast_precision_loss, reason = "a bound needs no more than 53 bits")]
fn by_chance(n_samples: u64, chunk_samples: u32) -> f64 {
    let pairs = n_samples as f64 * (f64::from(chunk_samples) - 1.0);
    3.0 * (2.0 / pairs.max(1.0)).sqrt()
}

/// A warning if the samples of the new pack are sorted by class, and those of the packs were not. With a single chunk,
/// the order does no harm.
pub(super) fn sorted<D: AsRef<[u8]>>(
    copier: &Copier<'_, D>,
    labels: &BTreeMap<String, LabelStats>,
    (n_samples, chunk_samples): (u64, u32),
) -> Result<Option<String>, ConvertError> {
    let n_chunks = n_samples.div_ceil(chunk_samples.into());
    let least = LabelStats::SHUFFLED_ICC.max(by_chance(n_samples, chunk_samples));
    let sorted = |(field, stats): (&String, &LabelStats)| {
        let icc = stats.icc.filter(|icc| n_chunks > 1 && *icc > least)?;
        Some((field.clone(), icc))
    };
    let Some((field, icc)) = labels.iter().find_map(sorted) else { return Ok(None) };
    for taken in copier.taken {
        let stats = taken.pack.stats().map_err(|error| taken.located(error))?;
        if taken.pack.n_chunks() > 1
            && stats.labels.iter().any(|of_field| *of_field.0 == field && sorted(of_field).is_some())
        {
            return Ok(None);
        }
    }
    Ok(Some(format!(
        "the samples of the new pack are sorted by class (`{field}`, icc {icc:.2}): training on such a pack needs a large window; {SHUFFLE} shuffles the samples"
    )))
}

/// The pixels of all packs together. `None` if a pack has no statistics of this field.
fn known_pixels(all: &[Stats], field: &str) -> Option<Histogram> {
    let mut known = all.iter().map(|stats| stats.fields.get(field).and_then(histogram));
    let mut sum = known.next()??;
    for other in known {
        let other = other.filter(|other| other.channels() == sum.channels())?;
        sum.merge(&other);
    }
    Some(sum)
}

fn histogram(stats: &FieldStats) -> Option<Histogram> {
    let counts = stats.histogram.iter().map(|counts| <[u64; 256]>::try_from(counts.as_slice()).ok());
    Histogram::of_counts(counts.collect::<Option<Vec<_>>>()?)
}

/// The class names, with the number of samples of each class.
pub(super) fn classes<D: AsRef<[u8]>>(copier: &Copier<'_, D>) -> Result<Vec<Classes>, ConvertError> {
    let mut all = copier.joined.classes.clone();
    for classes in &mut all {
        let mut counts = vec![0_u64; classes.names.len()];
        let fields = copier.joined.schema.fields().iter().enumerate();
        for (number, field) in fields.filter(|(_, field)| field.name == classes.field) {
            each_label(copier, number, field, |id| {
                if let Some(count) = usize::try_from(id).ok().and_then(|id| counts.get_mut(id)) {
                    *count += 1;
                }
            })?;
        }
        classes.counts = counts;
    }
    Ok(all)
}

/// Calls `each` with every label of the new pack, in order. A set gives all of its labels, and so do boxes.
fn each_label<D: AsRef<[u8]>>(
    copier: &Copier<'_, D>,
    number: usize,
    field: &Field,
    mut each: impl FnMut(i64),
) -> Result<(), ConvertError> {
    for (pack, taken) in copier.taken.iter().enumerate() {
        let located = |error| taken.located(error);
        for sample in taken.each() {
            let item = copier.joined.item((pack, taken.pack), number, sample).map_err(located)?;
            if field.role == Some(Role::Labels) {
                label_set::ids(&item).for_each(&mut each);
            } else {
                Scalar::each(field.dtype, &item).filter_map(Scalar::integer).for_each(&mut each);
            }
        }
    }
    Ok(())
}
