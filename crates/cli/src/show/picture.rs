//! Converts any item to an RGB thumbnail.

use packds_system::{counted, to_usize};
use std::borrow::Cow;
use std::collections::BTreeSet;

use packds_convert::interleave;
use packds_format::{Coding, DType, Field, FieldKind, Normalize, Role, Scalar};
use packds_pixels::{Color, DecodeOptions, Decoder, Filter, Geometry, Image, ImageFormat, resize};
use packds_reader::Pack;
use packds_report::Rgb;

/// Whether a field seems to contain images.
pub(crate) fn is_viewable(field: &Field) -> bool {
    matches!(field.role, Some(Role::Image | Role::Mask))
        || field.kind == FieldKind::Image
        || field.image_shape().is_some()
}

/// The `(height, width, channels)` of an array of pixels. A two-dimensional array has one channel.
pub(crate) fn pixel_shape(field: &Field) -> Option<(u64, u64, u64)> {
    let plane = match field.shape.as_slice() {
        &[height, width] => Some((height, width, 1)),
        _ => None,
    };
    field.image_shape().or(plane)
}

/// Whether the values of a field are class ids.
fn is_index(field: &Field) -> bool {
    field.role == Some(Role::Mask) || field.color.as_deref() == Some("index")
}

/// An item at full size.
pub(super) struct Picture {
    /// An image with 1 or 3 channels.
    image: Image,
    /// The class ids that occur in the item, if its values are class ids.
    pub(super) classes: Option<BTreeSet<i64>>,
}

impl Picture {
    pub(super) fn read(pack: &Pack, field: &Field, sample: u64, item: &[u8]) -> Result<Self, String> {
        let image = pixels(pack, field, sample, item)?;
        let classes = (image.channels == 1 && is_index(field)).then(|| match field.kind {
            FieldKind::Tensor => distinct(Scalar::each(field.dtype, item).map(class_id)),
            _ => distinct(image.data.iter().map(|value| i64::from(*value))),
        });
        Ok(Self { image, classes })
    }

    /// Width and height at full size.
    pub(super) fn size(&self) -> (u32, u32) {
        (self.image.width, self.image.height)
    }

    /// The picture in RGB, scaled to fit in a square of `side` pixels.
    pub(super) fn thumbnail(&self, side: u32) -> Result<Image, String> {
        let image = &self.image;
        let long = image.width.max(image.height).max(1);
        if long <= side {
            // Small images are enlarged by a whole factor, so that all of their pixels have the same size.
            let factor = side / long;
            return self.resized(image.width * factor, image.height * factor, Filter::Nearest);
        }
        let scaled = |n: u32| u64::from(n) * u64::from(side) / u64::from(long);
        let shrunk = |n: u32| u32::try_from(scaled(n)).unwrap_or(side).max(1);
        let filter = if self.classes.is_some() { Filter::Nearest } else { Filter::Bilinear };
        self.resized(shrunk(image.width), shrunk(image.height), filter)
    }

    fn resized(&self, width: u32, height: u32, filter: Filter) -> Result<Image, String> {
        let small = resize(&self.image, width, height, filter).map_err(|e| e.to_string())?;
        let data = match small.channels {
            1 if self.classes.is_some() => small.data.iter().flat_map(|v| class_color(*v)).collect(),
            1 => small.data.iter().flat_map(|v| [*v; 3]).collect(),
            _ => small.data,
        };
        Ok(Image { channels: 3, data, ..small })
    }

    /// A thumbnail of the image `below` in gray, with this mask over it, half transparent. Only classes have colours;
    /// class 0 has none. `None` if this is not a mask of class ids, or if the mask and the image have different aspect
    /// ratios.
    pub(super) fn over(&self, below: &Self, side: u32) -> Option<Result<Image, String>> {
        let (mask, image) = (&self.image, &below.image);
        let [width, height] = [mask.width, mask.height].map(u64::from);
        let (by_width, by_height) = (u64::from(image.width) * height, u64::from(image.height) * width);
        // The sides may differ by rounding, because resizing rounds one side to a whole pixel.
        let has_shape = by_width.abs_diff(by_height) <= u64::from(image.width).max(width);
        (has_shape && self.classes.is_some()).then(|| {
            let mut shown = below.thumbnail(side)?;
            let mask = resize(mask, shown.width, shown.height, Filter::Nearest).map_err(|e| e.to_string())?;
            for (pixel, class) in shown.data.as_chunks_mut::<3>().0.iter_mut().zip(&mask.data) {
                let gray = luma(*pixel);
                *pixel = if *class == 0 { [gray; 3] } else { class_color(*class).map(|value| value.midpoint(gray)) };
            }
            Ok(shown)
        })
    }
}

/// The brightness of a pixel, as defined by JPEG.
fn luma([red, green, blue]: Rgb) -> u8 {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    u8::try_from((sum + 500) / 1000).unwrap_or(u8::MAX)
}

fn distinct(ids: impl Iterator<Item = i64>) -> BTreeSet<i64> {
    let mut last = None;
    // Skips repeated ids quickly: neighbouring pixels mostly have the same class.
    ids.filter(|id| last.replace(*id) != Some(*id)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "class ids are small whole numbers")]
fn class_id(value: Scalar) -> i64 {
    value.nearest_f64() as i64
}

/// Maps a class id to a byte that has a colour. Ids from 0 to 255 are unchanged, -1 becomes 255, and other ids become a
/// byte from 1 to 254.
fn class_byte(id: i64) -> u8 {
    let byte = match id {
        -1 => 255,
        0..=255 => id,
        _ => 1 + id.rem_euclid(254),
    };
    u8::try_from(byte).unwrap_or(u8::MAX)
}

/// The colour of a class.
pub(super) fn color_of(id: i64) -> Rgb {
    class_color(class_byte(id))
}

/// The item at full size, with 1 or 3 channels.
fn pixels(pack: &Pack, field: &Field, sample: u64, item: &[u8]) -> Result<Image, String> {
    let coding = pack.coding(&field.name, sample).map_err(|error| error.to_string())?;
    match field.kind {
        FieldKind::Image if coding == Some(Coding::Raw) => {
            let shape = pack.item_shape(&field.name, sample).map_err(|error| error.to_string())?;
            viewable(Cow::Borrowed(item), shape.ok_or("unknown size")?, false)
        }
        FieldKind::Image | FieldKind::Bytes => {
            if field.kind == FieldKind::Bytes && ImageFormat::sniff(item).is_none() {
                return Err(counted(item.len(), "byte"));
            }
            let color = if is_index(field) { Color::Index } else { Color::Rgb };
            let options = DecodeOptions { color, ..DecodeOptions::default() };
            let image = Decoder::new(options).render(item, &Geometry::default());
            image.map_err(|e| e.to_string())
        }
        FieldKind::Tensor => tensor(field, item),
        FieldKind::Ragged => Err("a ragged array".to_owned()),
        FieldKind::String | FieldKind::Json => Err("text".to_owned()),
    }
}

fn tensor(field: &Field, item: &[u8]) -> Result<Image, String> {
    let shape = pixel_shape(field).ok_or_else(|| format!("{} {:?}", field.dtype, field.shape))?;
    let (height, width, channels) = shape;
    let is_chw = field.layout.as_deref() == Some("chw");
    let bytes = if field.dtype == DType::U8 && field.normalize.as_ref().is_none_or(|n| !n.applied) {
        Cow::Borrowed(item)
    } else if is_index(field) {
        Scalar::each(field.dtype, item).map(|value| class_byte(class_id(value))).collect()
    } else {
        Cow::Owned(visible(field, item, if is_chw { height * width } else { 1 }, channels))
    };
    viewable(bytes, shape, is_chw)
}

/// Reduces the channels to 1 or 3. Keeps the first three of three or four channels, and only the first of any other
/// number.
fn viewable(data: Cow<'_, [u8]>, shape: (u64, u64, u64), is_chw: bool) -> Result<Image, String> {
    let (height, width, channels) = shape;
    let shown = if matches!(channels, 3 | 4) { 3 } else { 1 };
    let kept: Cow<[u8]> = if shown == channels {
        data
    } else if is_chw {
        data.iter().take(to_usize(height * width * shown)).copied().collect()
    } else {
        let pixels = data.chunks_exact(to_usize(channels).max(1));
        pixels.flat_map(|pixel| pixel.iter().take(to_usize(shown)).copied()).collect()
    };
    raw(if shown == 3 && is_chw { interleave(&kept) } else { kept }, (height, width, shown))
}

fn raw(data: Cow<'_, [u8]>, (height, width, channels): (u64, u64, u64)) -> Result<Image, String> {
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    let len = width.checked_mul(height).and_then(|n| n.checked_mul(channels));
    match (size, u8::try_from(channels)) {
        (Some((width, height)), Ok(channels)) if len == u64::try_from(data.len()).ok() => {
            Ok(Image { width, height, channels, data: data.into_owned() })
        }
        _ => Err(format!("expected {width}x{height}x{channels} pixels, found {}", counted(data.len(), "byte"))),
    }
}

/// Converts values to bytes for display. A normalization is undone if the field has one. Otherwise, values within 0..1
/// are scaled by 255, and other ranges are stretched to 0..255. The channel changes every `run` values.
fn visible(field: &Field, item: &[u8], run: u64, channels: u64) -> Vec<u8> {
    let values: Vec<f64> = Scalar::each(field.dtype, item).map(Scalar::nearest_f64).collect();
    if let Some(normalize) = field.normalize.as_ref().filter(|n| n.applied) {
        let channel = |i: u64| to_usize(i / run.max(1) % channels.max(1));
        let undone = (0_u64..).zip(&values).map(|(i, v)| to_byte(255.0 * undo(normalize, channel(i), *v)));
        return undone.collect();
    }
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (min, max) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let (low, high) = if min >= 0.0 && max <= 1.0 { (0.0, 1.0) } else { (min, max) };
    let span = if high > low { high - low } else { 1.0 };
    values.iter().map(|v| to_byte(255.0 * (v - low) / span)).collect()
}

/// Undoes a normalization: converts a value back to the scale of 0 to 1. A single mean or std applies to all channels.
fn undo(normalize: &Normalize, channel: usize, value: f64) -> f64 {
    let of = |list: &[f64], default| *list.get(channel).or(list.first()).unwrap_or(&default);
    value * of(&normalize.std, 1.0) + of(&normalize.mean, 0.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..255; NaN becomes 0")]
fn to_byte(value: f64) -> u8 {
    (value + 0.5).clamp(0.0, 255.0) as u8
}

/// The colour of a mask class. 0 is dark, and 255 (usually "ignore") is white. The hues of other classes are multiples
/// of the golden angle, so that consecutive classes look different.
fn class_color(class: u8) -> Rgb {
    match class {
        0 => return [32; 3],
        255 => return [255; 3],
        _ => {}
    }
    // A step of 949 is the golden ratio times the number of hues: 0.618034 * (6 * 256) = 949.
    let hue = u32::from(class) * 949 % 1536;
    let (sector, rising) = (hue / 256, hue % 256);
    let (high, low) = if class % 2 == 1 { (240, 50) } else { (190, 20) };
    let between = |share: u32| u8::try_from(low + (high - low) * share / 255).unwrap_or(255);
    let (full, up, down, none) = (between(255), between(rising), between(255 - rising), between(0));
    match sector {
        0 => [full, up, none],
        1 => [down, full, none],
        2 => [none, full, up],
        3 => [none, down, full],
        4 => [up, none, full],
        _ => [full, none, down],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalization_is_undone_for_the_eye() {
        let mut field = Field::tensor("image", DType::F32, &[3, 1, 2]);
        field.layout = Some("chw".to_owned());
        let (mean, std) = (vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]);
        let stored = [0_u8, 255, 10, 20, 128, 7];
        let item: Vec<u8> =
            (0..6).flat_map(|i| ((f64::from(stored[i]) / 255.0 - mean[i / 2]) / std[i / 2]).to_le_bytes()).collect();
        field.dtype = DType::F64;
        field.normalize = Some(Normalize { scale: 1.0 / 255.0, mean, std, applied: true });
        let image = tensor(&field, &item).unwrap();
        assert_eq!(image.data, [0, 10, 128, 255, 20, 7]);
    }

    #[test]
    fn floats_are_stretched_unless_they_lie_in_0_to_1() {
        let field = Field::tensor("x", DType::F32, &[1, 3]);
        let of = |values: [f32; 3]| {
            let item: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            tensor(&field, &item).unwrap().data
        };
        assert_eq!(of([0.0, 0.5, 1.0]), [0, 128, 255]);
        assert_eq!(of([-2.0, 0.0, 2.0]), [0, 128, 255]);
        assert_eq!(of([f32::NAN, 7.0, 7.0]), [0, 0, 0]);
    }

    #[test]
    fn no_class_but_0_is_drawn_as_0() {
        assert_eq!([-1, 0, 7, 255].map(class_byte), [255, 0, 7, 255]);
        for id in [256, 512, 510, -256, i64::MAX, i64::MIN] {
            assert!(!matches!(class_byte(id), 0 | 255), "{id}");
        }
    }

    #[test]
    fn a_mask_lies_only_over_an_image_of_its_shape() {
        let picture = |width, height, channels: u8, value: u8| Picture {
            image: Image { width, height, channels, data: vec![value; to_usize(width * height * u32::from(channels))] },
            classes: (channels == 1).then(|| BTreeSet::from([value.into()])),
        };
        let image = picture(8, 4, 3, 100);
        let over = |mask: Picture| mask.over(&image, 16).map(|image| image.unwrap().data[..3].to_vec());
        let tint = class_color(2).map(|value| value.midpoint(100));
        assert_eq!(over(picture(8, 4, 1, 2)), Some(tint.to_vec()));
        assert_eq!(over(picture(4, 2, 1, 2)), Some(tint.to_vec()));
        assert_eq!(over(picture(8, 4, 1, 0)), Some(vec![100; 3]));
        assert_eq!(over(picture(4, 8, 1, 2)), None);
        assert_eq!(over(picture(8, 4, 3, 2)), None);
    }

    #[test]
    fn neighbouring_classes_have_different_colors() {
        let colors: BTreeSet<Rgb> = (0..64).map(class_color).collect();
        assert_eq!(colors.len(), 64);
    }
}
