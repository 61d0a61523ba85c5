//! Inspects image files if their names do not show what a folder contains.

use std::io::Read;
use std::path::Path;

use packds_pixels::{Color, DecodeOptions, Decoder, Image, probe};
use packds_system::open_regular;

/// Number of bytes to read. Most headers fit.
const HEAD_BYTES: u64 = 64 << 10;
/// Maximum size of a file that is decoded for inspection, in bytes.
const MAX_BYTES: u64 = 32 << 20;
/// Maximum number of pixels of an image that is decoded for inspection.
const MAX_PIXELS: u64 = 64 << 20;
/// Minimum number of files with equal names. With fewer, equal names may be a coincidence.
pub(super) const MIN_FILES: usize = 3;
/// Maximum number of pairs of files with equal names that are inspected.
pub(super) const MAX_LOOKED: usize = 4;
/// Rows and columns of a thumbnail.
const SIDE: usize = 8;
/// Number of gray levels that cover most pixels of a mask.
const FEW_LEVELS: usize = 8;
/// Two images that correlate more than this may be versions of the same image.
const ALIKE: f64 = 0.5;

/// What a header shows about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// Whether it may be a mask: it has a palette, or one channel of at most 8 bits.
    pub(super) is_mask: bool,
    /// Whether it has several channels, which masks of class numbers never have.
    pub(super) is_color: bool,
}

/// Inspects an image file. `None` if the header cannot be read.
pub(super) fn look_at(path: &Path) -> Option<Look> {
    let info = probe(&bytes(path, HEAD_BYTES)?).ok()?;
    let is_color = !info.palette && info.channels > 1;
    Some(Look { is_mask: !is_color && info.bit_depth <= 8, is_color })
}

/// Whether most pixels of an image have one of a few gray levels, as in a mask.
pub(super) fn has_few_levels(path: &Path) -> bool {
    let Some(image) = gray(path) else { return false };
    let mut counts = [0_usize; 256];
    image.data.iter().for_each(|level| counts[usize::from(*level)] += 1);
    counts.sort_unstable();
    4 * counts[256 - FEW_LEVELS..].iter().sum::<usize>() >= 3 * image.data.len()
}

/// Whether the images of each pair resemble each other, and do so more than images of different pairs.
pub(super) fn are_alike<P: AsRef<Path>>(pairs: &[[P; 2]]) -> bool {
    let thumbnails = |pair: &[P; 2]| Some([thumbnail(pair[0].as_ref())?, thumbnail(pair[1].as_ref())?]);
    let Some(all) = pairs.iter().map(thumbnails).collect::<Option<Vec<_>>>() else { return false };
    all.len() >= MIN_FILES
        && all.iter().enumerate().all(|(idx, [one, other])| {
            let own = correlation(one, other);
            let is_less = |(at, [_, other]): (usize, &[Thumbnail; 2])| at == idx || correlation(one, other) < own;
            own > ALIKE && all.iter().enumerate().all(is_less)
        })
}

type Thumbnail = [f64; SIDE * SIDE];

/// The mean gray level of each cell of a grid, minus the mean of all cells.
fn thumbnail(path: &Path) -> Option<Thumbnail> {
    let image = gray(path)?;
    let [width, height] = [image.width, image.height].map(|n| usize::try_from(n).unwrap_or(0));
    if width == 0 || height == 0 {
        return None;
    }
    let (mut sums, mut counts) = ([0.0; SIDE * SIDE], [0.0; SIDE * SIDE]);
    for (y, row) in image.data.chunks_exact(width).enumerate() {
        for (x, level) in row.iter().enumerate() {
            let cell = y * SIDE / height * SIDE + x * SIDE / width;
            sums[cell] += f64::from(*level);
            counts[cell] += 1.0;
        }
    }
    let mut cells: Thumbnail = std::array::from_fn(|cell| sums[cell] / f64::max(counts[cell], 1.0));
    let mean = cells.iter().sum::<f64>() / f64::from(u32::try_from(cells.len()).ok()?);
    cells.iter_mut().for_each(|cell| *cell -= mean);
    Some(cells)
}

/// Correlation of two thumbnails; 0 if either has only one level.
fn correlation(one: &Thumbnail, other: &Thumbnail) -> f64 {
    let product = |a: &Thumbnail, b: &Thumbnail| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let length = (product(one, one) * product(other, other)).sqrt();
    if length > 0.0 { product(one, other) / length } else { 0.0 }
}

/// The gray levels of an image. `None` if it is large or cannot be decoded.
fn gray(path: &Path) -> Option<Image> {
    let options = DecodeOptions { color: Color::Gray, max_pixels: MAX_PIXELS, ..DecodeOptions::default() };
    Decoder::new(options).decode(&bytes(path, MAX_BYTES)?).ok()
}

/// The first bytes of a file.
fn bytes(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
