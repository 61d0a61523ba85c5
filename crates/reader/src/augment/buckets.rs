//! The sizes of batches, one for each aspect ratio: [`Buckets`].

use std::fmt;
use std::str::FromStr;

use super::grammar::{number, size, whole};
use super::op::{MAX_SIDE, Op, Size, Stage};
use super::{Augment, AugmentError};

/// Maximum number of buckets. The bucket of each sample is kept in one byte.
const MAX_BUCKETS: usize = 256;
/// Default for the longest side divided by the shortest one.
const RATIO: f64 = 2.0;

/// The sizes that the images of a batch can have. All images of a batch have the same one. Each image belongs to the
/// bucket whose aspect ratio is nearest to its own.
///
/// ```
/// use packds_reader::augment::{Buckets, Size};
/// let buckets = Buckets::parse("area:4096/16")?;
/// assert_eq!(buckets.to_string(), "48x80,64,80x48");
/// assert_eq!(buckets, Buckets::new([(48, 80), (64, 64), (80, 48)].map(|(width, height)| Size { width, height }))?);
/// # Ok::<(), packds_reader::augment::AugmentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    sizes: Vec<Size>,
}

impl Buckets {
    /// Buckets of these sizes.
    ///
    /// # Errors
    /// `Parameter` if there are none or too many, if a side is 0 or too long, or if two sizes have the same ratio.
    pub fn new(sizes: impl IntoIterator<Item = Size>) -> Result<Self, AugmentError> {
        let sizes: Vec<Size> = sizes.into_iter().take(MAX_BUCKETS + 1).collect();
        if !(1..=MAX_BUCKETS).contains(&sizes.len()) {
            let found = if sizes.is_empty() { "none" } else { "more" };
            return Err(wrong("the number of sizes", "1 to 256", found.to_owned()));
        }
        for (number, size) in sizes.iter().enumerate() {
            Op::CenterCrop(*size).check()?;
            let ratio = |size: &Size| (size.width, size.height);
            let is_same = |other: &&Size| is_same_ratio(ratio(size), ratio(other));
            if let Some(other) = sizes.iter().take(number).find(is_same) {
                let expected = "different, because an image belongs to the bucket with the nearest ratio";
                return Err(wrong("the ratios of two sizes", expected, format!("{other} and {size}")));
            }
        }
        Ok(Self { sizes })
    }

    /// The largest square of at most `area` pixels with sides that are multiples of `step`, and for each longer multiple
    /// the longest other side that the area allows, both upright and lying. Sizes whose longest side is more than
    /// `ratio` times the other one are left out.
    ///
    /// # Errors
    /// `Parameter` as for [`new`](Self::new), or if a number is 0 or too large.
    pub fn of_area(area: u32, step: u32, ratio: f64) -> Result<Self, AugmentError> {
        if !(1..=MAX_SIDE).contains(&step) {
            return Err(wrong("the step", "1 to 65535", step.to_string()));
        }
        if !(1.0..=100.0).contains(&ratio) {
            return Err(wrong("the largest ratio", "1 to 100", ratio.to_string()));
        }
        let mut sizes = Vec::new();
        let square = area.isqrt() / step;
        let sides = (square.max(1)..=MAX_SIDE / step).map(|n| n * step);
        for long in sides.take_while(|side| side.saturating_mul(step) <= area) {
            let short = (area / long / step * step).min(long);
            if f64::from(long) > ratio * f64::from(short) {
                continue;
            }
            sizes.extend([(short, long), (long, short)].map(|(width, height)| Size { width, height }));
        }
        sizes.sort_unstable_by_key(|size| (size.width, size.height));
        sizes.dedup();
        // Of sizes with the same ratio, only the largest one is used.
        let ratio_of = |size: &Size| (size.width, size.height);
        let all = sizes.clone();
        sizes.retain(|size| {
            let larger = |other: &Size| other.width > size.width && is_same_ratio(ratio_of(size), ratio_of(other));
            !all.iter().any(larger)
        });
        if sizes.is_empty() {
            return Err(wrong("the area", "at least a step times a step", area.to_string()));
        }
        Self::new(sizes)
    }

    /// Parses sizes separated by commas (`512,640x384,384x640`), or `area:AREA/STEP[/RATIO]`.
    ///
    /// # Errors
    /// `Parameter` if the text or a number is invalid.
    pub fn parse(text: &str) -> Result<Self, AugmentError> {
        let malformed = || {
            let expected = "SIZE[,SIZE...] such as 512,640x384, or area:AREA/STEP[/RATIO] such as area:262144/64";
            wrong("the text", expected, format!("{text:?}"))
        };
        let Some(options) = text.trim().strip_prefix("area:") else {
            let sizes: Option<Vec<Size>> = text.split(',').map(|text| size(text.trim())).collect();
            return Self::new(sizes.ok_or_else(malformed)?);
        };
        let parts: Vec<&str> = options.split('/').collect();
        let (area, step, ratio) = match *parts.as_slice() {
            [area, step] => (whole(area), whole(step), Some(RATIO)),
            [area, step, ratio] => (whole(area), whole(step), number(ratio)),
            _ => return Err(malformed()),
        };
        match (area, step, ratio) {
            (Some(area), Some(step), Some(ratio)) => Self::of_area(area, step, ratio),
            _ => Err(malformed()),
        }
    }

    /// The sizes, by the number of their bucket.
    pub fn sizes(&self) -> &[Size] {
        &self.sizes
    }

    /// The bucket of an image of this size: the one whose ratio is nearest, compared by its logarithm. Of two that are
    /// equally near, the first one. The numbers are exact, so that it is the same on every machine.
    pub fn nearest(&self, width: u32, height: u32) -> u8 {
        let mut best = (0, None::<(u64, u64)>);
        for (number, size) in (0_u8..=u8::MAX).zip(&self.sizes) {
            let distance = distance((width, height), (size.width, size.height));
            if best.1.is_none_or(|least| is_less(distance, least)) {
                best = (number, Some(distance));
            }
        }
        best.0
    }
}

impl Augment {
    /// The same augmentation for images of a bucket of this size. If no word crops, the image is resized to cover the
    /// bucket and cropped at a random place.
    ///
    /// # Errors
    /// `Parameter` if a word sets another size.
    #[doc(hidden)]
    pub fn in_bucket(&self, out: Size) -> Result<Self, AugmentError> {
        let mut augment = self.clone();
        let sizes = |op: &Op| matches!(op.stage(), Stage::Resize | Stage::Crop);
        match augment.ops.iter_mut().find(|op| sizes(op)) {
            None => augment.ops.insert(0, Op::Cover { size: Some(out), center: false }),
            Some(Op::Cover { size: size @ None, .. }) => *size = Some(out),
            Some(op) => {
                let expected = "left out, or be `cover` or `cover:center`, because buckets set the size of the images";
                return Err(wrong("a resize or a crop", expected, op.to_string()));
            }
        }
        Ok(augment)
    }
}

/// How far two ratios are apart, as a fraction that is at least 1: one ratio divided by the other.
fn distance((width, height): (u32, u32), (other_width, other_height): (u32, u32)) -> (u64, u64) {
    let (a, b) = (u64::from(width) * u64::from(other_height), u64::from(height) * u64::from(other_width));
    (a.max(b), a.min(b))
}

fn is_less((a, b): (u64, u64), (c, d): (u64, u64)) -> bool {
    u128::from(a) * u128::from(d) < u128::from(c) * u128::from(b)
}

fn is_same_ratio(one: (u32, u32), other: (u32, u32)) -> bool {
    let (most, least) = distance(one, other);
    most == least
}

fn wrong(what: &'static str, expected: &'static str, found: String) -> AugmentError {
    AugmentError::Parameter { op: "buckets".to_owned(), what, expected, found }
}

impl FromStr for Buckets {
    type Err = AugmentError;

    fn from_str(text: &str) -> Result<Self, AugmentError> {
        Self::parse(text)
    }
}

/// The sizes, in the form that [`Buckets::parse`] reads.
impl fmt::Display for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(Size::to_string).collect();
        f.write_str(&sizes.join(","))
    }
}
