//! The text form of an augmentation, for the command line. See docs/reference/augmentation.md, "Words".

use std::fmt;
use std::str::FromStr;

use packds_pixels::{Filter, Layout, PIXEL_TYPES, Padding, Resize};

use super::boxes::MinBox;
use super::description::IMAGENET;
use super::op::{
    CROP_RATIO, CROP_SCALE, ERASE_RATIO, ERASE_SCALE, Filling, IOU_CROP_RATIO, IOU_CROP_SCALE, JITTER_SCALE,
    LETTERBOX_FILL, MAGNITUDE_BINS, Op, RAND_AUGMENT, Size, Span,
};
use super::varied::Sides;
use super::{Augment, AugmentError, Policy};

/// The name and the syntax of each word.
const WORDS: [(&str, &str); 32] = [
    ("rrc", "rrcSIZE[:SCALE-SCALE[/RATIO-RATIO]]"),
    ("crop", "cropSIZE[+PADDING][?][:edge|reflect|symmetric|VALUE[/VALUE...]]"),
    ("center", "centerSIZE"),
    ("ioucrop", "ioucropSIZE[:SCALE-SCALE[/RATIO-RATIO]]"),
    ("letterbox", "letterboxSIZE[:VALUE[/VALUE...]]"),
    ("scalejitter", "scalejitterSIZE[:SCALE-SCALE[/VALUE...]]"),
    ("cover", "coverSIZE[:center]"),
    ("shortside", "shortside:SIDE[-SIDE[+STEP]][/LONGEST]"),
    ("resize", "resizeSHORT or resizeWIDTHxHEIGHT"),
    ("flip", "flip[:P]"),
    ("vflip", "vflip[:P]"),
    ("rotate", "rotate:DEGREES"),
    ("affine", "affine:DEGREES[/X/Y[/SCALE-SCALE[/SHEAR[/SHEAR]]]]"),
    ("randaugment", "randaugment[:OPERATIONS/MAGNITUDE[/BINS]]"),
    ("trivialaugment", "trivialaugment[:BINS]"),
    ("autoaugment", "autoaugment[:imagenet|cifar10|svhn]"),
    ("jitter", "jitter:BRIGHTNESS/CONTRAST/SATURATION/HUE[/P]"),
    ("gray", "gray[:P]"),
    ("blur", "blur:KERNEL/SIGMA-SIGMA[/P]"),
    ("solarize", "solarize:THRESHOLD[/P]"),
    ("erase", "erase[:P[/SCALE-SCALE/RATIO-RATIO][/random|/VALUE...]]"),
    ("cutout", "cutout:SIDE"),
    ("mixup", "mixup:ALPHA"),
    ("cutmix", "cutmix:ALPHA"),
    ("mosaic", "mosaic[:P]"),
    ("views", "views:N"),
    ("filter", "filter:nearest|box|bilinear|bicubic|lanczos"),
    ("fill", "fill:VALUE[/VALUE/VALUE]"),
    ("minbox", "minbox:SIDE[/VISIBLE]"),
    ("dct", "dct"),
    ("norm", "norm:imagenet or norm:MEAN[/MEAN/MEAN]/STD[/STD/STD]"),
    ("chw", "chw or hwc"),
];

impl Augment {
    /// Parses the text form: words separated by commas, such as `rrc224:0.2-1,flip,norm:imagenet`.
    ///
    /// # Errors
    ///
    /// `Word` for an unknown or malformed word, `Parameter` for an invalid number, `Twice` for a repeated setting.
    pub fn parse(text: &str) -> Result<Self, AugmentError> {
        let mut augment = Self::new();
        let mut settings: Vec<&str> = Vec::new();
        let words = text.split(',').map(str::trim);
        // Empty text means no ops. An empty word between commas is an error.
        for word in words.filter(|word| !(word.is_empty() && text.trim().is_empty())) {
            let known = augment.ops.len();
            augment = augment.word(word)?;
            if let Some(op) = augment.ops.get(known) {
                op.check()?;
                continue;
            }
            let same = |previous: &&&str| setting_kind(previous) == setting_kind(word);
            if let Some(previous) = settings.iter().find(same) {
                return Err(AugmentError::Twice { op: word.to_owned(), previous: (*previous).to_owned() });
            }
            settings.push(word);
        }
        Ok(augment)
    }

    fn word(self, word: &str) -> Result<Self, AugmentError> {
        let digits = |c: char| c.is_ascii_digit();
        let (head, options) = word.split_once(':').map_or((word, None), |(head, options)| (head, Some(options)));
        // The names of types end in digits. After any other name, digits are a size.
        if PIXEL_TYPES.contains(&head) {
            let dtype = head.parse().ok().filter(|_| options.is_none());
            return dtype.map(|dtype| self.dtype(dtype)).ok_or_else(|| refused(word, head.to_owned()));
        }
        let name = head.find(digits).map_or(head, |at| &head[..at]);
        let name = if name == "hwc" { "chw" } else { name };
        let Some((_, form)) = WORDS.iter().find(|(known, _)| *known == name) else {
            return Err(refused(word, unknown(name)));
        };
        let size = &head[name.len()..];
        let parsed = match name {
            "rrc" | "crop" | "center" | "ioucrop" | "letterbox" | "scalejitter" | "cover" | "resize" => {
                sized(self, name, size, options)
            }
            _ if !size.is_empty() => None,
            _ => {
                let options = options.map_or_else(Vec::new, |options| options.split('/').collect());
                with_options(self, head, &options)
            }
        };
        parsed.ok_or_else(|| refused(word, format!("{form}{}", missing(name, options))))
    }
}

/// The error for an unknown or malformed word. If only the case of the word is wrong, the error contains the correct
/// word.
fn refused(word: &str, expected: String) -> AugmentError {
    let lower = word.to_ascii_lowercase();
    let is_lower_meant = lower != word && Augment::new().word(&lower).is_ok();
    AugmentError::Word {
        word: word.to_owned(),
        expected: if is_lower_meant { format!("{lower}: words must be in lower case") } else { expected },
    }
}

/// Suggestions for an unknown name.
fn unknown(name: &str) -> String {
    if name.eq_ignore_ascii_case("augmix") {
        return "randaugment, trivialaugment or autoaugment (AugMix is not supported, because it blends several images)"
            .to_owned();
    }
    let names: Vec<&str> = WORDS.iter().map(|(known, _)| *known).chain(["hwc"]).chain(PIXEL_TYPES).collect();
    format!("one of {}", names.join(", "))
}

/// Explains missing or extra numbers if the syntax of the word alone does not explain them.
fn missing(name: &str, options: Option<&str>) -> String {
    match options.map_or(0, |options| options.split('/').count()) {
        2 if name == "affine" => "; Y is missing after X".to_owned(),
        n @ 7.. if name == "affine" => format!("; found {n} values, expected at most 6"),
        _ => String::new(),
    }
}

/// The setting that a word changes. Words for the same setting exclude each other.
fn setting_kind(word: &str) -> &str {
    match word.split(':').next().unwrap_or(word) {
        name if PIXEL_TYPES.contains(&name) => "dtype",
        "hwc" | "chw" => "layout",
        name => name,
    }
}

/// Parses a word with a size after the name.
fn sized(augment: Augment, name: &str, text: &str, options: Option<&str>) -> Option<Augment> {
    match (name, options) {
        ("rrc", options) => {
            let (scale, ratio) = spans(options, (CROP_SCALE, CROP_RATIO))?;
            Some(augment.random_resized_crop_with(size(text)?, scale, ratio))
        }
        ("ioucrop", options) => {
            let (scale, ratio) = spans(options, (IOU_CROP_SCALE, IOU_CROP_RATIO))?;
            Some(augment.iou_crop(size(text)?, scale, ratio))
        }
        ("letterbox", options) => {
            let fill = options.map_or(Some([LETTERBOX_FILL; 4]), color)?;
            Some(augment.letterbox(size(text)?, fill))
        }
        ("scalejitter", options) => {
            let (scale, fill) = match options.map(|o| o.split_once('/').unwrap_or((o, "0"))) {
                None => (JITTER_SCALE, [0; 4]),
                Some((scale, fill)) => (span(scale)?, color(fill)?),
            };
            Some(augment.scale_jitter(size(text)?, scale, fill))
        }
        ("cover", None | Some("center")) => {
            let size = if text.is_empty() { None } else { Some(size(text)?) };
            Some(augment.cover(size, options.is_some()))
        }
        ("crop", options) => {
            let mode = options.map_or(Some(Padding::Constant([0; 4])), padding)?;
            let needed = text.ends_with('?');
            let text = text.strip_suffix('?').unwrap_or(text);
            let (text, around) = text.split_once('+').unwrap_or((text, "0"));
            Some(augment.random_crop(size(text)?, whole(around)?, mode, needed))
        }
        ("center", None) => Some(augment.center_crop(size(text)?)),
        ("resize", None) if text.contains('x') => {
            let Size { width, height } = size(text)?;
            Some(augment.resize(Resize::Exact { width, height }))
        }
        ("resize", None) => Some(augment.resize(Resize::Short(whole(text)?))),
        _ => None,
    }
}

/// Parses a word without a size after the name. `options` are the values after its colon, if there are any.
fn with_options(augment: Augment, name: &str, options: &[&str]) -> Option<Augment> {
    Some(match (name, options) {
        ("shortside", [sides]) => short_side(augment, sides, None)?,
        ("shortside", [sides, long]) => short_side(augment, sides, Some(whole(long)?))?,
        ("flip", []) => augment.horizontal_flip(0.5),
        ("vflip", []) => augment.vertical_flip(0.5),
        ("gray", []) => augment.random_grayscale(0.1),
        ("erase", []) => augment.random_erasing(0.5),
        ("randaugment", []) => augment.rand_augment(RAND_AUGMENT.0, RAND_AUGMENT.1, MAGNITUDE_BINS),
        ("trivialaugment", []) => augment.trivial_augment(MAGNITUDE_BINS),
        ("autoaugment", []) => augment.auto_augment(Policy::ImageNet),
        ("dct", []) => augment.dct_scaling(true),
        ("chw", []) => augment.layout(Layout::Chw),
        ("hwc", []) => augment.layout(Layout::Hwc),
        ("flip", [p]) => augment.horizontal_flip(number(p)?),
        ("vflip", [p]) => augment.vertical_flip(number(p)?),
        ("gray", [p]) => augment.random_grayscale(number(p)?),
        ("rotate", [degrees]) => augment.rotation(number(degrees)?),
        ("affine", parts) => return affine(augment, parts),
        ("jitter", [b, c, s, h]) => augment.color_jitter(number(b)?, number(c)?, number(s)?, number(h)?),
        ("jitter", [b, c, s, h, p]) => {
            augment.color_jitter_with(number(b)?, number(c)?, number(s)?, number(h)?, number(p)?)
        }
        ("blur", [kernel, sigma]) => augment.gaussian_blur(whole(kernel)?, span(sigma)?, 0.5),
        ("blur", [kernel, sigma, p]) => augment.gaussian_blur(whole(kernel)?, span(sigma)?, number(p)?),
        ("solarize", [threshold]) => augment.solarize(byte(threshold)?, 0.5),
        ("solarize", [threshold, p]) => augment.solarize(byte(threshold)?, number(p)?),
        ("erase", [p]) => augment.random_erasing(number(p)?),
        ("erase", [p, "random"]) => augment.random_erasing_randomly(number(p)?, ERASE_SCALE, ERASE_RATIO),
        ("erase", [p, scale, ratio, "random"]) => {
            augment.random_erasing_randomly(number(p)?, span(scale)?, span(ratio)?)
        }
        ("erase", [p, scale, ratio]) => augment.random_erasing_with(number(p)?, span(scale)?, span(ratio)?, &[0.0]),
        ("erase", [p, scale, ratio, values @ ..]) => {
            let values: Vec<f32> = values.iter().map(|v| single(v)).collect::<Option<_>>()?;
            augment.random_erasing_with(number(p)?, span(scale)?, span(ratio)?, &values)
        }
        ("cutout", [side]) => augment.cutout(whole(side)?),
        ("randaugment", [n, magnitude]) => augment.rand_augment(whole(n)?, whole(magnitude)?, MAGNITUDE_BINS),
        ("randaugment", [n, magnitude, bins]) => augment.rand_augment(whole(n)?, whole(magnitude)?, whole(bins)?),
        ("trivialaugment", [bins]) => augment.trivial_augment(whole(bins)?),
        ("autoaugment", [policy]) => augment.auto_augment(Policy::from_str(policy).ok()?),
        ("fill", [value]) => augment.fill(&[byte(value)?]),
        ("fill", [red, green, blue]) => augment.fill(&[byte(red)?, byte(green)?, byte(blue)?]),
        ("mixup", [alpha]) => augment.mixup(number(alpha)?),
        ("cutmix", [alpha]) => augment.cutmix(number(alpha)?),
        ("mosaic", []) => augment.mosaic(1.0),
        ("mosaic", [p]) => augment.mosaic(number(p)?),
        ("minbox", [side]) => augment.min_box(number(side)?, 0.0),
        ("minbox", [side, visible]) => augment.min_box(number(side)?, number(visible)?),
        ("views", [n]) => augment.views(whole(n)?),
        ("filter", [name]) => augment.filter(Filter::from_str(name).ok()?),
        ("norm", ["imagenet"]) => augment.normalize_imagenet(),
        ("norm", values) if !values.is_empty() && values.len() % 2 == 0 => {
            let values: Vec<f32> = values.iter().map(|v| single(v)).collect::<Option<_>>()?;
            let (mean, std) = values.split_at(values.len() / 2);
            augment.normalize(mean, std)
        }
        _ => return None,
    })
}

/// The word `shortside` with these sides, such as `480-800+32`.
fn short_side(augment: Augment, sides: &str, long: Option<u32>) -> Option<Augment> {
    let (low, rest) = sides.split_once('-').unwrap_or((sides, sides));
    let (high, step) = rest.split_once('+').unwrap_or((rest, "1"));
    Some(augment.short_side((whole(low)?, whole(high)?), whole(step)?, long))
}

fn affine(augment: Augment, parts: &[&str]) -> Option<Augment> {
    let at = |idx: usize| parts.get(idx).map_or(Some(0.0), |part| number(part));
    let scale = parts.get(3).map_or(Some((1.0, 1.0)), |part| span(part))?;
    let known = matches!(parts.len(), 1 | 3..=6);
    let (translate, shear) = ((at(1)?, at(2)?), (at(4)?, at(5)?));
    known.then_some(augment.affine(at(0)?, translate, scale, shear))
}

fn padding(text: &str) -> Option<Padding> {
    Some(match text {
        "edge" => Padding::Edge,
        "reflect" => Padding::Reflect,
        "symmetric" => Padding::Symmetric,
        _ => Padding::Constant(color(text)?),
    })
}

/// A value for all channels, or one for each.
fn color(text: &str) -> Option<[u8; 4]> {
    let values: Vec<u8> = text.split('/').map(byte).collect::<Option<_>>()?;
    Some(match *values.as_slice() {
        [value] => [value; 4],
        [red, green, blue] => [red, green, blue, 0],
        _ => <[u8; 4]>::try_from(values).ok()?,
    })
}

/// The ranges `SCALE-SCALE[/RATIO-RATIO]`.
fn spans(options: Option<&str>, (scale, ratio): (Span, Span)) -> Option<(Span, Span)> {
    Some(match options.map(|o| o.split_once('/').unwrap_or((o, ""))) {
        None => (scale, ratio),
        Some((scale, "")) => (span(scale)?, ratio),
        Some((scale, ratio)) => (span(scale)?, span(ratio)?),
    })
}

pub(super) fn size(text: &str) -> Option<Size> {
    match text.split_once('x') {
        None => Some(Size::from(whole(text)?)),
        Some((width, height)) => Some(Size { width: whole(width)?, height: whole(height)? }),
    }
}

/// Parses digits without a sign or whitespace.
pub(super) fn whole(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn byte(text: &str) -> Option<u8> {
    u8::try_from(whole(text)?).ok()
}

pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

fn single(text: &str) -> Option<f32> {
    text.parse().ok().filter(|value: &f32| value.is_finite())
}

fn span(text: &str) -> Option<Span> {
    let (from, to) = text.split_once('-')?;
    Some((number(from)?, number(to)?))
}

impl FromStr for Augment {
    type Err = AugmentError;

    fn from_str(text: &str) -> Result<Self, AugmentError> {
        Self::parse(text)
    }
}

/// The text form that [`Augment::parse`] reads. `Resize::Long` and `Resize::Max` have no word, so they are written in
/// the notation of the command's other options.
impl fmt::Display for Augment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.ops.iter().map(Op::to_string).collect();
        let mut say = |word: String| words.push(word);
        if let Some(alpha) = self.mixup {
            say(format!("mixup:{alpha}"));
        }
        if let Some(alpha) = self.cutmix {
            say(format!("cutmix:{alpha}"));
        }
        match self.mosaic {
            Some(1.0) => say("mosaic".to_owned()),
            Some(p) => say(format!("mosaic:{p}")),
            None => {}
        }
        if self.views != 1 {
            say(format!("views:{}", self.views));
        }
        if self.filter != Filter::Bilinear {
            say(format!("filter:{}", self.filter));
        }
        if !self.fill.is_empty() {
            say(format!("fill:{}", joined(&self.fill)));
        }
        match self.min_box {
            Some(MinBox { side, visible: 0.0 }) => say(format!("minbox:{side}")),
            Some(MinBox { side, visible }) => say(format!("minbox:{side}/{visible}")),
            None => {}
        }
        if self.dct_scaling {
            say("dct".to_owned());
        }
        match &self.normalize {
            Some((mean, std)) if *mean == IMAGENET.0 && *std == IMAGENET.1 => {
                say("norm:imagenet".to_owned());
            }
            Some((mean, std)) => say(format!("norm:{}/{}", joined(mean), joined(std))),
            None => {}
        }
        if let Some(dtype) = self.dtype {
            say(dtype.to_string());
        }
        if self.layout != Layout::Hwc {
            say(self.layout.to_string());
        }
        f.write_str(&words.join(","))
    }
}

fn joined(values: &[impl ToString]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join("/")
}

fn padding_text(mode: Padding) -> String {
    match mode {
        Padding::Constant([0, 0, 0, 0]) => String::new(),
        Padding::Constant(color) => format!(":{}", color_text(color)),
        Padding::Edge => ":edge".to_owned(),
        Padding::Reflect => ":reflect".to_owned(),
        Padding::Symmetric => ":symmetric".to_owned(),
    }
}

fn color_text([red, green, blue, alpha]: [u8; 4]) -> String {
    if [red, green, blue] == [alpha; 3] {
        alpha.to_string()
    } else if alpha == 0 {
        format!("{red}/{green}/{blue}")
    } else {
        format!("{red}/{green}/{blue}/{alpha}")
    }
}

/// A crop with ranges. Ranges that are the default are left out.
fn crop_text(name: &str, size: Size, (scale, ratio): (Span, Span), usual: (Span, Span)) -> String {
    match (scale == usual.0, ratio == usual.1) {
        (true, true) => format!("{name}{size}"),
        (false, true) => format!("{name}{size}:{}", range(scale)),
        _ => format!("{name}{size}:{}/{}", range(scale), range(ratio)),
    }
}

fn cover_text(size: Option<Size>, center: bool) -> String {
    let size = size.map_or_else(String::new, |size| size.to_string());
    format!("cover{size}{}", if center { ":center" } else { "" })
}

fn short_side_text(Sides { low, high, step }: Sides, long: Option<u32>) -> String {
    let step = if step == 1 { String::new() } else { format!("+{step}") };
    let sides = if low == high { low.to_string() } else { format!("{low}-{high}{step}") };
    let long = long.map_or_else(String::new, |long| format!("/{long}"));
    format!("shortside:{sides}{long}")
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Resize(Resize::Short(side)) => format!("resize{side}"),
            Self::Resize(Resize::Exact { width, height }) => format!("resize{width}x{height}"),
            Self::Resize(other) => format!("resize {other}"),
            Self::RandomResizedCrop { size, scale, ratio } => {
                crop_text("rrc", *size, (*scale, *ratio), (CROP_SCALE, CROP_RATIO))
            }
            Self::IouCrop { size, scale, ratio } => {
                crop_text("ioucrop", *size, (*scale, *ratio), (IOU_CROP_SCALE, IOU_CROP_RATIO))
            }
            Self::Letterbox { size, fill } if *fill == [LETTERBOX_FILL; 4] => format!("letterbox{size}"),
            Self::Letterbox { size, fill } => format!("letterbox{size}:{}", color_text(*fill)),
            Self::ScaleJitter { size, scale, fill: [0, 0, 0, 0] } => {
                if *scale == JITTER_SCALE {
                    format!("scalejitter{size}")
                } else {
                    format!("scalejitter{size}:{}", range(*scale))
                }
            }
            Self::ScaleJitter { size, scale, fill } => {
                format!("scalejitter{size}:{}/{}", range(*scale), color_text(*fill))
            }
            Self::Cover { size, center } => cover_text(*size, *center),
            Self::ShortSide { sides, long } => short_side_text(*sides, *long),
            Self::RandomCrop { size, padding, mode, if_needed } => {
                let around = if *padding == 0 { String::new() } else { format!("+{padding}") };
                let needed = if *if_needed { "?" } else { "" };
                format!("crop{size}{around}{needed}{}", padding_text(*mode))
            }
            Self::CenterCrop(size) => format!("center{size}"),
            Self::HorizontalFlip(p) => chance("flip", *p, 0.5),
            Self::VerticalFlip(p) => chance("vflip", *p, 0.5),
            Self::Rotation(degrees) => format!("rotate:{degrees}"),
            Self::Affine { degrees, translate: (x, y), scale, shear } => {
                format!("affine:{degrees}/{x}/{y}/{}/{}/{}", range(*scale), shear.0, shear.1)
            }
            Self::Jitter { brightness, contrast, saturation, hue, p } => {
                let text = format!("jitter:{brightness}/{contrast}/{saturation}/{hue}");
                if p.to_bits() == 1.0_f64.to_bits() { text } else { format!("{text}/{p}") }
            }
            Self::Grayscale(p) => chance("gray", *p, 0.1),
            Self::Blur { kernel, sigma, p } => format!("blur:{kernel}/{}/{p}", range(*sigma)),
            Self::Solarize { threshold, p } => format!("solarize:{threshold}/{p}"),
            Self::Erase { p, scale, ratio, value } => {
                let usual = (*scale, *ratio) == (ERASE_SCALE, ERASE_RATIO);
                let spans = format!("{}/{}", range(*scale), range(*ratio));
                match value {
                    Filling::Random if usual => format!("erase:{p}/random"),
                    Filling::Random => format!("erase:{p}/{spans}/random"),
                    Filling::Values(value) if usual && *value == [0.0] => chance("erase", *p, 0.5),
                    Filling::Values(value) => format!("erase:{p}/{spans}/{}", joined(value)),
                }
            }
            Self::Cutout(side) => format!("cutout:{side}"),
            Self::RandAugment { n, magnitude, bins } if *bins != MAGNITUDE_BINS => {
                format!("randaugment:{n}/{magnitude}/{bins}")
            }
            Self::RandAugment { n, magnitude, .. } if (*n, *magnitude) == RAND_AUGMENT => "randaugment".to_owned(),
            Self::RandAugment { n, magnitude, .. } => format!("randaugment:{n}/{magnitude}"),
            Self::TrivialAugment { bins: MAGNITUDE_BINS } => "trivialaugment".to_owned(),
            Self::TrivialAugment { bins } => format!("trivialaugment:{bins}"),
            Self::AutoAugment(Policy::ImageNet) => "autoaugment".to_owned(),
            Self::AutoAugment(policy) => format!("autoaugment:{policy}"),
        })
    }
}

/// Writes only the name if the probability is the default.
fn chance(name: &str, p: f64, usual: f64) -> String {
    if p.to_bits() == usual.to_bits() { name.to_owned() } else { format!("{name}:{p}") }
}

fn range((from, to): Span) -> String {
    format!("{from}-{to}")
}
