//! Inspects the images before conversion: whether all have one size, and how large their items will be.

use packds_format::BlockBuilder;
use packds_pixels::{Geometry, Histogram, ImageInfo, probe};
use packds_system::to_u64;

use crate::ConvertError;
use crate::options::ConvertOptions;
use crate::ordered::{Next, ordered};
use crate::pipeline::{Observer, Phase, Progress};
use crate::plan::Plan;
use crate::sample::SampleReader;
use crate::source::store::Content;
use crate::source::{ColumnValues, Listing};

/// The image sizes of a listing after resize and crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All the same.
    One {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// At least two sizes.
    Several,
    /// No image could be read.
    Unknown,
}

/// Files inspected per batch.
const BATCH: usize = 256;
/// Enough bytes for the header of most image files.
const HEAD_BYTES: u64 = 32 << 10;
/// Samples encoded to estimate the size of variable-size items.
const MEAN_SAMPLES: usize = 32;

/// Reads image headers in listing order until two sizes differ. Bad files and images with too many pixels are ignored: the
/// conversion reports them before it allocates memory for pixels.
pub(crate) fn survey(
    listing: &Listing,
    options: &ConvertOptions,
    geometry: &Geometry,
    observer: &dyn Observer,
) -> Result<Sizes, ConvertError> {
    let size = |width: u32, height: u32, turn: u8| {
        if u64::from(width) * u64::from(height) > options.max_pixels {
            return Sizes::Unknown;
        }
        let (width, height) = geometry.output_size(width, height, turn);
        Sizes::One { width, height }
    };
    // Arrays of one type need no individual inspection.
    let mut contents = listing.image_contents();
    if let (Some(Content::Pixels(shape)), None) = (contents.next(), contents.next()) {
        return Ok(size(shape.width, shape.height, 1));
    }
    let size_of = |idx: usize, head: &mut Vec<u8>| match listing.image_content(idx) {
        Content::Pixels(shape) => size(shape.width, shape.height, 1),
        _ => header(listing, idx, head).map_or(Sizes::Unknown, |i| size(i.width, i.height, i.orientation)),
    };
    let fold = |all: Sizes, one: Sizes| match (all, one) {
        (Sizes::Unknown, other) | (other, Sizes::Unknown) => other,
        (all, one) if all == one => all,
        _ => Sizes::Several,
    };
    let look = Look { unit: Sizes::Unknown, one: size_of, fold, is_enough: |sizes: &Sizes| *sizes == Sizes::Several };
    look.run(listing, options.n_jobs(), observer)
}

/// The first sample in listing order whose image is not gray. Bad files are left to the conversion.
pub(crate) fn first_in_colour(
    listing: &Listing,
    options: &ConvertOptions,
    observer: &dyn Observer,
) -> Result<Option<usize>, ConvertError> {
    let look = Look {
        unit: None,
        one: |idx: usize, head: &mut Vec<u8>| {
            let info = header(listing, idx, head)?;
            (info.channels != 1).then_some(idx)
        },
        fold: Option::or,
        is_enough: Option::is_some,
    };
    look.run(listing, options.n_jobs(), observer)
}

/// Inspects images in order until enough is known.
struct Look<T, One, Fold, Enough> {
    /// The result for no images.
    unit: T,
    /// The result for one image; the buffer is for its first bytes.
    one: One,
    /// Combines the result of the first images with that of the next.
    fold: Fold,
    is_enough: Enough,
}

impl<T, One, Fold, Enough> Look<T, One, Fold, Enough>
where
    T: Copy + Send + Sync,
    One: Fn(usize, &mut Vec<u8>) -> T + Sync,
    Fold: Fn(T, T) -> T + Sync,
    Enough: Fn(&T) -> bool + Sync,
{
    /// The result for all images, or for the first ones if they suffice.
    fn run(&self, listing: &Listing, jobs: usize, observer: &dyn Observer) -> Result<T, ConvertError> {
        let mut next = 0;
        let mut found = self.unit;
        let tell = |done: usize| {
            observer.progress(Progress {
                samples: to_u64(done),
                total: to_u64(listing.len()),
                bytes_in: 0,
                phase: Phase::Plan,
            });
        };
        let mut done = 0;
        tell(done);
        ordered(
            jobs,
            jobs * 2,
            Vec::new,
            |head: &mut Vec<u8>, range: std::ops::Range<usize>| {
                let mut known = self.unit;
                let n = range.len();
                for idx in range {
                    known = (self.fold)(known, (self.one)(idx, head));
                    if (self.is_enough)(&known) {
                        break;
                    }
                }
                (known, n)
            },
            || {
                // The first batch is small because a few images usually suffice.
                let len = if next == 0 { 8 } else { BATCH };
                let range = next..listing.len().min(next + len);
                next = range.end;
                Ok::<_, ConvertError>((!range.is_empty()).then_some(range))
            },
            |(known, n)| {
                observer.check()?;
                done += n;
                tell(done);
                found = (self.fold)(found, known);
                Ok(match (self.is_enough)(&found) {
                    true => Next::Stop,
                    false => Next::Continue,
                })
            },
        )?;
        Ok(found)
    }
}

/// The header of an image file. Reads the whole file if the first bytes are not enough.
fn header(listing: &Listing, idx: usize, head: &mut Vec<u8>) -> Option<ImageInfo> {
    for limit in [HEAD_BYTES, u64::MAX] {
        head.clear();
        listing.append_image(idx, limit, head).ok()?;
        if let Ok(info) = probe(head) {
            return Some(info);
        }
    }
    None
}

/// The mean size of variable-size image and mask items, measured by encoding evenly spaced samples.
pub(crate) fn mean_item_bytes(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Result<u64, ConvertError> {
    let mut reader = SampleReader::new(listing, options, plan);
    let mut histogram = Histogram::new(options.color().channels());
    let (mut total, mut n) = (0_u64, 0_u64);
    let wanted = listing.len().min(MEAN_SAMPLES);
    for k in 0..wanted {
        let mut block = BlockBuilder::new(&plan.pack.schema);
        if let Ok(facts) = reader.add(k * listing.len() / wanted, &mut block, &mut histogram) {
            total = total.saturating_add(facts.item_bytes + facts.mask_bytes);
            n += 1;
        }
    }
    Ok(total / n.max(1))
}

/// Mean bytes per sample of other variable-size items: texts, JSON and bytes.
pub(crate) fn mean_other_bytes(listing: &Listing, plan: &Plan) -> u64 {
    let texts = listing.columns().iter().map(|column| match &column.values {
        ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.n_bytes(),
        _ => 0,
    });
    let texts = texts.map(to_u64);
    let fields = listing.fields().iter().zip(&plan.fields.source_fields);
    let variable = fields.filter(|(_, number)| plan.item_bytes(**number) == 0);
    let items = variable.flat_map(|(field, _)| {
        let all = 0..listing.len();
        all.map(|idx| field.store.bytes(idx))
    });
    mean(texts.chain(items), listing)
}

/// Mean size of the source's files per sample: the image and its mask.
pub(crate) fn mean_file_bytes(listing: &Listing) -> u64 {
    let of = |idx| listing.sample(idx).bytes.saturating_add(listing.mask_bytes(idx));
    mean((0..listing.len()).map(of), listing)
}

/// The mean of a sum over all samples.
fn mean(bytes: impl Iterator<Item = u64>, listing: &Listing) -> u64 {
    let total = bytes.fold(0, u64::saturating_add);
    total / to_u64(listing.len()).max(1)
}
