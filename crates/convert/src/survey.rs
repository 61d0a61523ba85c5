//! A look at the images before they are converted: whether they have one size, and how large their items will be.

use std::io::Read;
use std::path::Path;

use packds_format::BlockBuilder;
use packds_pixels::{Geometry, Histogram, ImageInfo, probe};

use crate::ConvertError;
use crate::options::ConvertOptions;
use crate::ordered::{Next, ordered};
use crate::plan::Plan;
use crate::sample::SampleReader;
use crate::source::Listing;

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
                let size = info(&listing.file_path(i), head)
                    .map(|i| geometry.output_size(i.width, i.height, i.orientation));
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

/// The image's header: from the first bytes of the file, or from all of it where these are not enough.
fn info(path: &Path, head: &mut Vec<u8>) -> Option<ImageInfo> {
    let mut file = std::fs::File::open(path).ok()?;
    head.clear();
    (&mut file).take(HEAD_BYTES).read_to_end(head).ok()?;
    if let Ok(info) = probe(head) {
        return Some(info);
    }
    file.take(crate::sample::MAX_FILE_BYTES)
        .read_to_end(head)
        .ok()?;
    probe(head).ok()
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
