//! Inspects the images before the conversion: whether all have the same size, and how large their items will be.

use std::path::Path;

use packds_format::BlockBuilder;
use packds_pixels::{Color, DecodeOptions, Decoder, Geometry, Histogram, ImageInfo, probe};
use packds_system::to_u64;

use crate::ConvertError;
use crate::convert::path_of;
use crate::error::files_to_npy;
use crate::opt::SPLIT;
use crate::options::ConvertOptions;
use crate::ordered::{Next, ordered};
use crate::pipeline::{Observer, Phase, Progress};
use crate::plan::Plan;
use crate::sample::SampleReader;
use crate::source::store::Content;
use crate::source::{ColumnValues, Listing, SourceKind};

/// The image sizes of a listing after resize and crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All images have the same size.
    One { width: u32, height: u32 },
    /// At least two sizes.
    Several,
    /// No image could be read.
    Unknown,
}

/// Number of files that are inspected per batch.
const BATCH: usize = 256;
/// Number of images that are decoded to find out whether they would become white.
const WHITE_SAMPLES: usize = 8;
/// Number of bytes that suffice for the header of most image files.
const HEAD_BYTES: u64 = 32 << 10;
/// Number of samples that are encoded to estimate the size of variable-size items.
const MEAN_SAMPLES: usize = 32;

/// Reads image headers in listing order until two sizes differ. Bad files and images with too many pixels are ignored,
/// because the conversion reports them before it allocates memory for pixels.
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
    // Arrays of one type do not need to be inspected one by one.
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
    let is_enough = |sizes: &Sizes| *sizes == Sizes::Several;
    look(listing, options.n_jobs(), observer, Sizes::Unknown, size_of, fold, is_enough)
}

/// The first sample in listing order whose image is not gray. Bad files are ignored, because the conversion reports
/// them.
pub(crate) fn first_in_colour(
    listing: &Listing,
    options: &ConvertOptions,
    observer: &dyn Observer,
) -> Result<Option<usize>, ConvertError> {
    let one = |idx: usize, head: &mut Vec<u8>| {
        let info = header(listing, idx, head)?;
        (info.channels != 1).then_some(idx)
    };
    look(listing, options.n_jobs(), observer, None, one, Option::or, Option::is_some)
}

/// Refuses gray images with more than 8 bits, unless few images are, if their conversion to 8 bits would make nearly all of their values
/// white. Looks at a few images.
pub(crate) fn refuse_white(listing: &Listing, options: &ConvertOptions) -> Result<(), ConvertError> {
    let (mut counts, mut looked, mut n_seen) = ([0_u64; 256], Vec::new(), 0);
    let (mut head, mut file) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(DecodeOptions { color: Color::Gray, ..DecodeOptions::default() });
    for idx in evenly(listing, WHITE_SAMPLES) {
        if listing.image_content(idx) != Content::File {
            return Ok(());
        }
        let Some(info) = header(listing, idx, &mut head) else { continue };
        let pixels = u64::from(info.width) * u64::from(info.height);
        n_seen += 1;
        // Images of both kinds may be mixed, such as photos and their depth.
        if info.bit_depth <= 8 {
            continue;
        }
        if info.channels != 1 || pixels > options.max_pixels {
            return Ok(());
        }
        file.clear();
        let Some(image) = listing.append_image(idx, u64::MAX, &mut file).ok().and_then(|_| decoder.decode(&file).ok())
        else {
            continue;
        };
        image.data.iter().for_each(|value| counts[usize::from(*value)] += 1);
        looked.push(idx);
    }
    let (white, not_black) = (counts[255], counts[1..].iter().sum::<u64>());
    let Some(first) = looked.first().filter(|_| 4 * looked.len() >= n_seen) else { return Ok(()) };
    if 20 * white < 19 * not_black || white == 0 {
        return Ok(());
    }
    let is_mixed = looked.len() < n_seen;
    let path = path_of(listing, *first);
    let pattern = path.rsplit_once('.').map_or("*".to_owned(), |(_, extension)| format!("*.{extension}"));
    let line = files_to_npy(
        listing.folder().unwrap_or(Path::new("images")),
        &pattern,
        "; from PIL import Image",
        ("numpy.asarray(Image.open(f))", if is_mixed { " if Image.open(f).mode.startswith(\"I\")" } else { "" }),
    );
    let reason = format!(
        "the images have more than 8 bits, such as '{path}', and nearly all of their values are above 255, so as 8-bit images they would be white"
    );
    let others = if is_mixed {
        format!(
            "; to pack the other images, move these out of the folder; to pack another split, add {}",
            SPLIT.with("NAME")
        )
    } else {
        String::new()
    };
    let hint = match listing.kind() {
        SourceKind::Container(_) => {
            "write the images to the source as arrays, such as numpy.asarray(Image.open(file)), which keep their values"
                .to_owned()
        }
        _ => format!(
            "write the images as arrays, which keep their values, into another folder, and convert that folder; in Python, run: {line}{others}"
        ),
    };
    Err(ConvertError::Options { reason, hint })
}

/// Inspects images in order until no more are needed. `unit` is the result for no images. `one` computes the result for
/// one image, with a buffer for its first bytes. `fold` combines the results of earlier images with the next one.
fn look<T: Copy + Send + Sync>(
    listing: &Listing,
    jobs: usize,
    observer: &dyn Observer,
    unit: T,
    one: impl Fn(usize, &mut Vec<u8>) -> T + Sync,
    fold: impl Fn(T, T) -> T + Sync,
    is_enough: impl Fn(&T) -> bool + Sync,
) -> Result<T, ConvertError> {
    let (mut next, mut done, mut found) = (0, 0, unit);
    let tell = |done: usize| {
        let (samples, total) = (to_u64(done), to_u64(listing.len()));
        observer.progress(Progress { samples, total, bytes_in: 0, phase: Phase::Plan });
    };
    tell(done);
    ordered(
        jobs,
        jobs * 2,
        Vec::new,
        |head: &mut Vec<u8>, range: std::ops::Range<usize>| {
            let mut known = unit;
            let n = range.len();
            for idx in range {
                known = fold(known, one(idx, head));
                if is_enough(&known) {
                    break;
                }
            }
            (known, n)
        },
        || {
            // The first batch is small, because a few images are usually enough.
            let len = if next == 0 { 8 } else { BATCH };
            let range = next..listing.len().min(next + len);
            next = range.end;
            Ok::<_, ConvertError>((!range.is_empty()).then_some(range))
        },
        |(known, n)| {
            observer.check()?;
            done += n;
            tell(done);
            found = fold(found, known);
            Ok(if is_enough(&found) { Next::Stop } else { Next::Continue })
        },
    )?;
    Ok(found)
}

/// The header of an image file. Reads the whole file if the first bytes are not enough.
pub(crate) fn header(listing: &Listing, idx: usize, head: &mut Vec<u8>) -> Option<ImageInfo> {
    for limit in [HEAD_BYTES, u64::MAX] {
        head.clear();
        listing.append_image(idx, limit, head).ok()?;
        if let Ok(info) = probe(head) {
            return Some(info);
        }
    }
    None
}

/// At most `most` samples of a listing, evenly spaced.
pub(crate) fn evenly(listing: &Listing, most: usize) -> impl Iterator<Item = usize> {
    let (n, all) = (listing.len().min(most), listing.len());
    (0..n).map(move |k| k * all / n)
}

/// The mean size of variable-size image and mask items, measured by encoding evenly spaced samples.
pub(crate) fn mean_item_bytes(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Result<u64, ConvertError> {
    let mut reader = SampleReader::new(listing, options, plan);
    let mut histogram = Histogram::new(options.color().channels());
    let (mut total, mut n) = (0_u64, 0_u64);
    for id in evenly(listing, MEAN_SAMPLES) {
        let mut block = BlockBuilder::new(&plan.pack.schema);
        if let Ok(facts) = reader.add(id, &mut block, &mut histogram) {
            total = total.saturating_add(facts.item_bytes + facts.mask_bytes);
            n += 1;
        }
    }
    Ok(total / n.max(1))
}

/// Mean size per sample of other variable-size items: text, JSON and bytes.
pub(crate) fn mean_other_bytes(listing: &Listing, plan: &Plan) -> u64 {
    let texts = listing.columns().iter().map(|column| match &column.values {
        ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.n_bytes(),
        _ => 0,
    });
    let fields = listing.fields().iter().zip(&plan.fields.source_fields);
    let variable = fields.filter(|(_, number)| plan.item_bytes(**number) == 0);
    let items = variable.flat_map(|(field, _)| (0..listing.len()).map(|idx| field.store.bytes(idx)));
    mean(texts.map(to_u64).chain(items), listing)
}

/// Mean size per sample of the image and its mask, as stored in the source.
pub(crate) fn mean_file_bytes(listing: &Listing) -> u64 {
    let of = |idx| listing.sample(idx).bytes.saturating_add(listing.mask_bytes(idx));
    mean((0..listing.len()).map(of), listing)
}

fn mean(bytes: impl Iterator<Item = u64>, listing: &Listing) -> u64 {
    let total = bytes.fold(0, u64::saturating_add);
    total / to_u64(listing.len()).max(1)
}
