//! A look at the images before they are converted: whether they have one size, and how large their items will be.

use packds_format::BlockBuilder;
use packds_pixels::{Geometry, Histogram, ImageInfo, probe};

use crate::ConvertError;
use crate::options::ConvertOptions;
use crate::ordered::{Next, ordered};
use crate::plan::Plan;
use crate::sample::SampleReader;
use crate::source::Listing;
use crate::source::store::Content;

/// The sizes that a geometry gives the images of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All the same.
    One {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// At least two different ones.
    Several,
    /// No image could be read.
    Unknown,
}

/// Files looked at in one go.
const BATCH: usize = 256;
/// Bytes that hold the header of most image files.
const HEAD_BYTES: u64 = 32 << 10;
/// Samples that are encoded to learn how large items of variable size will be.
const MEAN_SAMPLES: usize = 32;

/// Reads image headers, in listing order, until two sizes differ; files that are no images are left to the conversion.
pub(crate) fn survey(
    listing: &Listing,
    options: &ConvertOptions,
    geometry: &Geometry,
) -> Result<Sizes, ConvertError> {
    let mut next = 0;
    let mut found = Sizes::Unknown;
    // Pixels that are all alike need no look at each.
    let mut contents = listing.image_contents();
    if let (Some(Content::Pixels(shape)), None) = (contents.next(), contents.next()) {
        let (width, height) = geometry.output_size(shape.width, shape.height, 1);
        return Ok(Sizes::One { width, height });
    }
    let fold = |all: Sizes, one: Sizes| match (all, one) {
        (Sizes::Unknown, other) | (other, Sizes::Unknown) => other,
        (all, one) if all == one => all,
        _ => Sizes::Several,
    };
    let jobs = options.n_jobs();
    ordered(
        jobs,
        jobs * 2,
        Vec::new,
        |head: &mut Vec<u8>, range: std::ops::Range<usize>| {
            let mut sizes = Sizes::Unknown;
            for i in range {
                let size =
                    info(listing, i, head).map(|(w, h, turn)| geometry.output_size(w, h, turn));
                let one = size.map_or(Sizes::Unknown, |(width, height)| Sizes::One {
                    width,
                    height,
                });
                sizes = fold(sizes, one);
                if sizes == Sizes::Several {
                    break;
                }
            }
            sizes
        },
        || {
            // The first batches are small: images of several sizes show it at once.
            let len = if next == 0 { 8 } else { BATCH };
            let range = next..listing.len().min(next + len);
            next = range.end;
            Ok::<_, ConvertError>((!range.is_empty()).then_some(range))
        },
        |sizes| {
            found = fold(found, sizes);
            Ok(if found == Sizes::Several {
                Next::Stop
            } else {
                Next::Continue
            })
        },
    )?;
    Ok(found)
}

/// Width, height and orientation: of a file from its first bytes, or from all of it where these are not enough.
fn info(listing: &Listing, idx: usize, head: &mut Vec<u8>) -> Option<(u32, u32, u8)> {
    if let Content::Pixels(shape) = listing.image_content(idx) {
        return Some((shape.width, shape.height, 1));
    }
    let of = |i: ImageInfo| (i.width, i.height, i.orientation);
    for limit in [HEAD_BYTES, u64::MAX] {
        head.clear();
        listing.append_image(idx, limit, head).ok()?;
        if let Ok(info) = probe(head) {
            return Some(of(info));
        }
    }
    None
}

/// The mean size of the image's item, over evenly spaced samples encoded for real.
pub(crate) fn mean_item_bytes(
    listing: &Listing,
    options: &ConvertOptions,
    plan: &Plan,
) -> Result<u64, ConvertError> {
    let mut reader = SampleReader::new(listing, options, plan);
    let mut histogram = Histogram::new(options.color.channels());
    let (mut total, mut n) = (0_u64, 0_u64);
    let wanted = listing.len().min(MEAN_SAMPLES);
    for k in 0..wanted {
        let mut block = BlockBuilder::new(&plan.pack.schema);
        if let Ok(facts) = reader.add(k * listing.len() / wanted, &mut block, &mut histogram) {
            total = total.saturating_add(facts.item_bytes);
            n += 1;
        }
    }
    Ok(total / n.max(1))
}
