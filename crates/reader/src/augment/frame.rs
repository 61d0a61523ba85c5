//! Draws the crop and flips that decide which part of an image a view shows.

use packds_pixels::{Area, CropResize, Filter, Resize};

use super::AugmentError;
use super::Size;
use super::boxes::BoundingBox;
use super::draws::Draws;
use super::iou_crop::{has_center, iou_crop};
use super::op::{Op, Span};

/// What a frame is drawn for: an image, and the boxes in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) size: Size,
    pub(super) boxes: &'a [BoundingBox],
}

impl Scene<'_> {
    /// An image without boxes.
    pub(super) const fn of(size: Size) -> Self {
        Self { size, boxes: &[] }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) shown: Shown,
    pub(super) flip_horizontal: bool,
    pub(super) flip_vertical: bool,
    /// Whether boxes are left out if their centre is outside the shown area.
    by_center: bool,
}

/// The part of the image that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// An area that is resized to the size of the output.
    Area(Area),
    /// A window of the size of the output. It starts at (x, y) of the image resized to `resized`, and may extend
    /// beyond it.
    Window { resized: Size, x: i64, y: i64 },
}

impl Frame {
    /// All of an image.
    pub(super) fn of(picture: Size) -> Self {
        Self { shown: Shown::Area(whole(picture)), flip_horizontal: false, flip_vertical: false, by_center: false }
    }

    /// Draws the frame of a view for an image. `root` and `view` select the draws.
    pub(super) fn draw(ops: &[Op], scene: Scene<'_>, root: u64, view: u32) -> Result<Self, AugmentError> {
        let picture = scene.size;
        if picture.width == 0 || picture.height == 0 {
            return Err(AugmentError::Picture {
                what: "size",
                expected: "at least 1x1".to_owned(),
                found: format!("{}x{}", picture.width, picture.height),
            });
        }
        let mut resized = None;
        let mut frame = Self::of(picture);
        for (number, op) in (0_u32..).zip(ops) {
            let draws = || Draws::new(root, view, number);
            let size = resized.unwrap_or(picture);
            match *op {
                Op::Resize(resize) => resized = Some(resized_size(resize, picture)),
                Op::RandomResizedCrop { scale, ratio, .. } => {
                    frame.shown = Shown::Area(random_area(draws(), picture, scale, ratio))
                }
                Op::RandomCrop { size: out, padding, if_needed, .. } => {
                    let draw = draws();
                    let y = random_start(draw, 0, size.height, out.height, padding, if_needed);
                    let x = random_start(draw, 1, size.width, out.width, padding, if_needed);
                    let (Some(x), Some(y)) = (x, y) else {
                        return Err(too_small(op, size, out, padding));
                    };
                    frame.shown = Shown::Window { resized: size, x, y };
                }
                Op::CenterCrop(out) => {
                    frame.shown = Shown::Window {
                        resized: size,
                        x: center_start(size.width, out.width),
                        y: center_start(size.height, out.height),
                    };
                }
                Op::IouCrop { scale, ratio, .. } => {
                    if let Some(area) = iou_crop(draws(), scene, scale, ratio) {
                        (frame.shown, frame.by_center) = (Shown::Area(area), true);
                    }
                }
                Op::Letterbox { size: out, .. } => {
                    let resized = fitted(picture, out, 1.0, f64::round_ties_even);
                    let (x, y) = (center_start(resized.width, out.width), center_start(resized.height, out.height));
                    frame.shown = Shown::Window { resized, x, y };
                }
                Op::ScaleJitter { size: out, scale, .. } => frame.shown = scaled_window(draws(), picture, out, scale),
                Op::Cover { size: Some(out), center } => frame.shown = covered(draws(), picture, out, center),
                Op::HorizontalFlip(p) => frame.flip_horizontal = draws().chance(0, p),
                Op::VerticalFlip(p) => frame.flip_vertical = draws().chance(0, p),
                _ => break,
            }
        }
        Ok(frame)
    }

    /// Whether the crop keeps this box of the stored image.
    pub(super) fn keeps(&self, sides: &BoundingBox) -> bool {
        match self.shown {
            Shown::Area(area) if self.by_center => has_center(area, sides),
            _ => true,
        }
    }

    /// The visible area of the image, which is resized to `out`. `None` if the frame needs padding or a resize of the
    /// whole image.
    pub(super) fn crop_resize(&self, picture: Size, out: Size, filter: Filter) -> Option<CropResize> {
        let area = match self.shown {
            Shown::Area(area) => area,
            Shown::Window { resized, x, y } => {
                let x = start_inside(x, out.width, resized.width)?;
                let y = start_inside(y, out.height, resized.height)?;
                if resized != picture {
                    return None;
                }
                Area { x, y, width: out.width, height: out.height }
            }
        };
        Some(CropResize {
            area,
            width: out.width,
            height: out.height,
            filter,
            flip_horizontal: self.flip_horizontal,
            flip_vertical: self.flip_vertical,
        })
    }
}

pub(super) fn whole(picture: Size) -> Area {
    Area { x: 0, y: 0, width: picture.width, height: picture.height }
}

pub(super) fn resized_size(resize: Resize, picture: Size) -> Size {
    let (width, height) = resize.output_size(picture.width, picture.height);
    Size { width, height }
}

/// The area of torchvision's `RandomResizedCrop.get_params`. Attempt `t` uses draws `2 t` (area) and `2 t + 1` (ratio).
/// Draws 20 (y) and 21 (x) decide the position.
fn random_area(draws: Draws, picture: Size, scale: Span, ratio: Span) -> Area {
    let (full_width, full_height) = (f64::from(picture.width), f64::from(picture.height));
    let full = full_width * full_height;
    for attempt in 0..10 {
        let area = full * draws.uniform(2 * attempt, scale);
        let aspect = draws.log_uniform(2 * attempt + 1, ratio);
        let width = (area * aspect).sqrt().round_ties_even();
        let height = (area / aspect).sqrt().round_ties_even();
        if width >= 1.0 && width <= full_width && height >= 1.0 && height <= full_height {
            let (width, height) = (pixels(width), pixels(height));
            return Area {
                x: draws.below(21, picture.width - width + 1),
                y: draws.below(20, picture.height - height + 1),
                width,
                height,
            };
        }
    }
    let aspect = full_width / full_height;
    let (width, height) = if aspect < ratio.0 {
        (full_width, (full_width / ratio.0).round_ties_even())
    } else if aspect > ratio.1 {
        ((full_height * ratio.1).round_ties_even(), full_height)
    } else {
        (full_width, full_height)
    };
    let width = pixels(width).clamp(1, picture.width);
    let height = pixels(height).clamp(1, picture.height);
    Area { x: (picture.width - width) / 2, y: (picture.height - height) / 2, width, height }
}

/// The size of an image that is resized to fit into `out`, times `scale`.
fn fitted(picture: Size, out: Size, scale: f64, round: fn(f64) -> f64) -> Size {
    let (width, height) = (f64::from(picture.width), f64::from(picture.height));
    let factor = (f64::from(out.width) / width).min(f64::from(out.height) / height) * scale;
    Size { width: pixels(round(width * factor)).max(1), height: pixels(round(height * factor)).max(1) }
}

/// torchvision's `ScaleJitter`, then `FixedSizeCrop`. Draw 0 decides the size, and draw 1 the position on both axes.
fn scaled_window(draws: Draws, picture: Size, out: Size, scale: Span) -> Shown {
    let resized = fitted(picture, out, draws.uniform(0, scale), f64::trunc);
    let place = draws.unit(1);
    let start = |side: u32, out: u32| i64::from(pixels(f64::from(side.saturating_sub(out)) * place));
    Shown::Window { resized, x: start(resized.width, out.width), y: start(resized.height, out.height) }
}

/// A window of an image that is resized to cover `out`. Draw 0 decides its place on the vertical axis, and draw 1 on
/// the horizontal one. At least one of the axes has only one place.
fn covered(draws: Draws, picture: Size, out: Size, center: bool) -> Shown {
    let (width, height) = (f64::from(picture.width), f64::from(picture.height));
    let factor = (f64::from(out.width) / width).max(f64::from(out.height) / height);
    let side = |side: f64, least: u32| pixels((side * factor).round_ties_even()).max(least);
    let resized = Size { width: side(width, out.width), height: side(height, out.height) };
    let start = |index, side: u32, out: u32| match center {
        true => center_start(side, out),
        false => draws.below(index, (side - out).saturating_add(1)).into(),
    };
    Shown::Window { resized, x: start(1, resized.width, out.width), y: start(0, resized.height, out.height) }
}

/// Converts a number of pixels. Fractions are cut off. Negative numbers become 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative and clamped to u32")]
pub(super) fn pixels(value: f64) -> u32 {
    value.clamp(0.0, f64::from(u32::MAX)) as u32
}

/// The start of a random window of `out` pixels on one axis. `None` if the window does not fit.
fn random_start(draws: Draws, index: u64, side: u32, out: u32, padding: u32, if_needed: bool) -> Option<i64> {
    let mut before = i64::from(padding);
    let mut padded = i64::from(side) + 2 * before;
    let out = i64::from(out);
    if if_needed && padded < out {
        let more = out - padded;
        before += more;
        padded += 2 * more;
    }
    let starts = u32::try_from(padded - out + 1).ok().filter(|&n| n > 0)?;
    Some(i64::from(draws.below(index, starts)) - before)
}

/// The start of the central `out` pixels. As in torchvision's `center_crop`, halves are rounded to even.
fn center_start(side: u32, out: u32) -> i64 {
    if out >= side {
        return -i64::from((out - side) / 2);
    }
    let rest = side - out;
    let half = rest / 2;
    i64::from(half + (rest & half & 1))
}

fn start_inside(start: i64, out: u32, side: u32) -> Option<u32> {
    let start = u32::try_from(start).ok()?;
    let end = start.checked_add(out)?;
    (end <= side).then_some(start)
}

fn too_small(op: &Op, size: Size, out: Size, padding: u32) -> AugmentError {
    let padded = |side: u32| u64::from(side) + 2 * u64::from(padding);
    AugmentError::TooSmall {
        op: op.to_string(),
        expected: format!("{}x{}", out.width, out.height),
        found: format!("{}x{}", padded(size.width), padded(size.height)),
    }
}
