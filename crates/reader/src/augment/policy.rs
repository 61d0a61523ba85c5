//! torchvision's policies `RandAugment`, `TrivialAugmentWide` and `AutoAugment`, as the steps selected by a view's
//! draws. docs/reference/augmentation.md, "Policies", has the tables and the draws.

use packds_pixels::PixelError;
use packds_pixels::ops::{Adjustment, Affine};
use packds_system::to_usize;

use super::color::single;
use super::draws::Draws;
use super::op::{Op, Size};
use super::steps::Step;

/// The dataset from which the `AutoAugment` policy was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// ImageNet.
    ImageNet,
    /// CIFAR-10.
    Cifar10,
    /// SVHN.
    Svhn,
}

packds_system::named!(Policy { ImageNet = "imagenet", Cifar10 = "cifar10", Svhn = "svhn" });

/// The operations of policies, with torchvision's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyOp {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

use PolicyOp::{
    AutoContrast, Brightness, Color, Contrast, Equalize, Identity, Invert, Posterize, Rotate, Sharpness, ShearX,
    ShearY, Solarize, TranslateX, TranslateY,
};

/// The operations that `RandAugment` and `TrivialAugmentWide` draw from.
pub(super) const POLICY_OPS: [PolicyOp; 14] = [
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
];

/// A drawn operation with its magnitude: degrees, pixels, the tangent of a shear, bits, a threshold, or a factor minus
/// 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drawn {
    pub(super) op: PolicyOp,
    pub(super) magnitude: f64,
}

/// The range that magnitudes are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// The range of `RandAugment` and `AutoAugment`. It depends on the image's size.
    Sized(Size),
    /// The range of `TrivialAugmentWide`.
    Wide,
}

/// Number of bins of `AutoAugment`.
const BINS: u32 = 10;

/// The operations on a view of `size`, in order. Empty for ops other than policies.
pub(super) fn drawn(op: &Op, draws: Draws, size: Size) -> impl Iterator<Item = Drawn> {
    let (policy, n) = match *op {
        Op::AutoAugment(policy) => (Some(policy), 2),
        Op::RandAugment { n, .. } => (None, n),
        Op::TrivialAugment { .. } => (None, 1),
        _ => (None, 0),
    };
    let learned = policy.map(|policy| learned(policy, draws, size));
    let random = (0..u64::from(n)).map(move |number| match *op {
        Op::RandAugment { magnitude, bins, .. } => {
            let op = POLICY_OPS[below(draws, 2 * number, POLICY_OPS.len())];
            let of = Space::Sized(size).magnitude(op, magnitude, bins);
            Some(signed(op, of, draws.chance(2 * number + 1, 0.5)))
        }
        Op::TrivialAugment { bins } => {
            let op = POLICY_OPS[below(draws, 0, POLICY_OPS.len())];
            let of = Space::Wide.magnitude(op, draws.below(1, bins), bins);
            Some(signed(op, of, draws.chance(2, 0.5)))
        }
        _ => learned.and_then(|pair| pair[usize::from(number > 0)]),
    });
    random.flatten()
}

/// The two operations of a learned policy. Draw 0 selects the pair, draws 1 and 2 decide whether each operation is
/// applied, and draws 3 and 4 decide their signs.
fn learned(policy: Policy, draws: Draws, size: Size) -> [Option<Drawn>; 2] {
    let table = table(policy);
    let pair = table[below(draws, 0, table.len())];
    [(1, pair.0), (2, pair.1)].map(|(index, (op, tenths, bin))| {
        draws.chance(index, f64::from(tenths) / 10.0).then(|| {
            let of = Space::Sized(size).magnitude(op, bin, BINS);
            signed(op, of, draws.chance(index + 2, 0.5))
        })
    })
}

/// A draw as an index into a short list.
fn below(draws: Draws, index: u64, len: usize) -> usize {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    to_usize(draws.below(index, len))
}

fn signed(op: PolicyOp, magnitude: f64, negative: bool) -> Drawn {
    let turns = !matches!(op, Identity | Posterize | Solarize | AutoContrast | Equalize | Invert);
    Drawn { op, magnitude: if turns && negative { -magnitude } else { magnitude } }
}

impl Space {
    /// The magnitude of an operation for bin `bin` of `bins`. 0 if the operation has no magnitude.
    pub(super) fn magnitude(self, op: PolicyOp, bin: u32, bins: u32) -> f64 {
        let by_space = |sized, wide| match self {
            Self::Sized(_) => sized,
            Self::Wide => wide,
        };
        let by_side = |side: fn(Size) -> u32| match self {
            Self::Sized(size) => 150.0 / 331.0 * f64::from(side(size)),
            Self::Wide => 32.0,
        };
        let most = match op {
            ShearX | ShearY => by_space(0.3, 0.99),
            TranslateX => by_side(|size| size.width),
            TranslateY => by_side(|size| size.height),
            Rotate => by_space(30.0, 135.0),
            Brightness | Color | Contrast | Sharpness => by_space(0.9, 0.99),
            Posterize => return bits(by_space(4.0, 6.0), bin, bins),
            Solarize => return even(255.0, 0.0, bin, bins),
            Identity | AutoContrast | Equalize | Invert => return 0.0,
        };
        even(0.0, most, bin, bins)
    }
}

/// Number of bits that are kept of a value: 8 in the first bin, and `most` fewer in the last.
fn bits(most: f64, bin: u32, bins: u32) -> f64 {
    let part = f64::from(bins - 1) / most;
    let cleared = single(f64::from(bin)) / single(part);
    8.0 - f64::from(cleared.round_ties_even())
}

/// `torch.linspace(from, to, n)[place]` in `f32`, computed from the nearer end.
fn even(from: f64, to: f64, place: u32, n: u32) -> f64 {
    let (from, to) = (single(from), single(to));
    let count = |steps: u32| single(f64::from(steps));
    let step = (to - from) / count(n - 1);
    f64::from(if place < n / 2 { from + step * count(place) } else { to - step * count(n - 1 - place) })
}

impl Drawn {
    /// The step for this operation. `None` if it does nothing.
    pub(super) fn step(self, size: Size) -> Result<Option<Step>, PixelError> {
        let Self { op, magnitude } = self;
        let Size { width, height } = size;
        let factor = single(1.0 + magnitude);
        // Translations are truncated, as in torchvision, which uses `int()`.
        let moved = |x, y| Affine::new(width, height, 0.0, (x, y), 1.0, (0.0, 0.0));
        let slant = magnitude.atan().to_degrees();
        Ok(Some(match op {
            Identity => return Ok(None),
            ShearX => Step::Map(Affine::shear(slant, 0.0)?),
            ShearY => Step::Map(Affine::shear(0.0, slant)?),
            TranslateX => Step::Map(moved(magnitude.trunc(), 0.0)?),
            TranslateY => Step::Map(moved(0.0, magnitude.trunc())?),
            Rotate => Step::Map(Affine::rotation(width, height, magnitude)?),
            Brightness => Step::Adjust(Adjustment::Brightness(factor)),
            Color => Step::Adjust(Adjustment::Saturation(factor)),
            Contrast => Step::Adjust(Adjustment::Contrast(factor)),
            Sharpness => Step::Sharpen(factor),
            Posterize => Step::Posterize(byte(magnitude)),
            // Bytes are integers, so the threshold can be rounded up.
            Solarize => Step::Adjust(Adjustment::Solarize(byte(magnitude.ceil()))),
            AutoContrast => Step::Autocontrast,
            Equalize => Step::Equalize,
            Invert => Step::Adjust(Adjustment::Solarize(0)),
        }))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bits and thresholds are 0 to 255")]
fn byte(value: f64) -> u8 {
    value as u8
}

/// An operation, its probability in tenths, and its bin.
type Chosen = (PolicyOp, u8, u32);

fn table(policy: Policy) -> &'static [(Chosen, Chosen); 25] {
    match policy {
        Policy::ImageNet => &IMAGENET,
        Policy::Cifar10 => &CIFAR10,
        Policy::Svhn => &SVHN,
    }
}

const IMAGENET: [(Chosen, Chosen); 25] = [
    ((Posterize, 4, 8), (Rotate, 6, 9)),
    ((Solarize, 6, 5), (AutoContrast, 6, 0)),
    ((Equalize, 8, 0), (Equalize, 6, 0)),
    ((Posterize, 6, 7), (Posterize, 6, 6)),
    ((Equalize, 4, 0), (Solarize, 2, 4)),
    ((Equalize, 4, 0), (Rotate, 8, 8)),
    ((Solarize, 6, 3), (Equalize, 6, 0)),
    ((Posterize, 8, 5), (Equalize, 10, 0)),
    ((Rotate, 2, 3), (Solarize, 6, 8)),
    ((Equalize, 6, 0), (Posterize, 4, 6)),
    ((Rotate, 8, 8), (Color, 4, 0)),
    ((Rotate, 4, 9), (Equalize, 6, 0)),
    ((Equalize, 0, 0), (Equalize, 8, 0)),
    ((Invert, 6, 0), (Equalize, 10, 0)),
    ((Color, 6, 4), (Contrast, 10, 8)),
    ((Rotate, 8, 8), (Color, 10, 2)),
    ((Color, 8, 8), (Solarize, 8, 7)),
    ((Sharpness, 4, 7), (Invert, 6, 0)),
    ((ShearX, 6, 5), (Equalize, 10, 0)),
    ((Color, 4, 0), (Equalize, 6, 0)),
    ((Equalize, 4, 0), (Solarize, 2, 4)),
    ((Solarize, 6, 5), (AutoContrast, 6, 0)),
    ((Invert, 6, 0), (Equalize, 10, 0)),
    ((Color, 6, 4), (Contrast, 10, 8)),
    ((Equalize, 8, 0), (Equalize, 6, 0)),
];

const CIFAR10: [(Chosen, Chosen); 25] = [
    ((Invert, 1, 0), (Contrast, 2, 6)),
    ((Rotate, 7, 2), (TranslateX, 3, 9)),
    ((Sharpness, 8, 1), (Sharpness, 9, 3)),
    ((ShearY, 5, 8), (TranslateY, 7, 9)),
    ((AutoContrast, 5, 0), (Equalize, 9, 0)),
    ((ShearY, 2, 7), (Posterize, 3, 7)),
    ((Color, 4, 3), (Brightness, 6, 7)),
    ((Sharpness, 3, 9), (Brightness, 7, 9)),
    ((Equalize, 6, 0), (Equalize, 5, 0)),
    ((Contrast, 6, 7), (Sharpness, 6, 5)),
    ((Color, 7, 7), (TranslateX, 5, 8)),
    ((Equalize, 3, 0), (AutoContrast, 4, 0)),
    ((TranslateY, 4, 3), (Sharpness, 2, 6)),
    ((Brightness, 9, 6), (Color, 2, 8)),
    ((Solarize, 5, 2), (Invert, 0, 0)),
    ((Equalize, 2, 0), (AutoContrast, 6, 0)),
    ((Equalize, 2, 0), (Equalize, 6, 0)),
    ((Color, 9, 9), (Equalize, 6, 0)),
    ((AutoContrast, 8, 0), (Solarize, 2, 8)),
    ((Brightness, 1, 3), (Color, 7, 0)),
    ((Solarize, 4, 5), (AutoContrast, 9, 0)),
    ((TranslateY, 9, 9), (TranslateY, 7, 9)),
    ((AutoContrast, 9, 0), (Solarize, 8, 3)),
    ((Equalize, 8, 0), (Invert, 1, 0)),
    ((TranslateY, 7, 9), (AutoContrast, 9, 0)),
];

const SVHN: [(Chosen, Chosen); 25] = [
    ((ShearX, 9, 4), (Invert, 2, 0)),
    ((ShearY, 9, 8), (Invert, 7, 0)),
    ((Equalize, 6, 0), (Solarize, 6, 6)),
    ((Invert, 9, 0), (Equalize, 6, 0)),
    ((Equalize, 6, 0), (Rotate, 9, 3)),
    ((ShearX, 9, 4), (AutoContrast, 8, 0)),
    ((ShearY, 9, 8), (Invert, 4, 0)),
    ((ShearY, 9, 5), (Solarize, 2, 6)),
    ((Invert, 9, 0), (AutoContrast, 8, 0)),
    ((Equalize, 6, 0), (Rotate, 9, 3)),
    ((ShearX, 9, 4), (Solarize, 3, 3)),
    ((ShearY, 8, 8), (Invert, 7, 0)),
    ((Equalize, 9, 0), (TranslateY, 6, 6)),
    ((Invert, 9, 0), (Equalize, 6, 0)),
    ((Contrast, 3, 3), (Rotate, 8, 4)),
    ((Invert, 8, 0), (TranslateY, 0, 2)),
    ((ShearY, 7, 6), (Solarize, 4, 8)),
    ((Invert, 6, 0), (Rotate, 8, 4)),
    ((ShearY, 3, 7), (TranslateX, 9, 3)),
    ((ShearX, 1, 6), (Invert, 6, 0)),
    ((Solarize, 7, 2), (TranslateY, 6, 7)),
    ((ShearY, 8, 4), (Invert, 8, 0)),
    ((ShearX, 7, 9), (TranslateY, 8, 3)),
    ((ShearY, 8, 5), (AutoContrast, 7, 0)),
    ((ShearX, 7, 2), (Invert, 1, 0)),
];
