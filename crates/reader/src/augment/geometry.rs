//! The mapping from a stored image to a view, as a window and as a matrix. Use it to transform other data that refers
//! to positions in the image.

use packds_pixels::ops::Affine;
use packds_pixels::{Area, CropResize, Filter};

use super::boxes::BoundingBox;
use super::frame::{self, Frame, Scene, Shown};
use super::op::{Op, Size, Stage};
use super::steps::{Step, each_step};
use super::{AugmentError, AugmentPlan, SampleKey};

/// The coefficients a to f of (a x + b y + c, d x + e y + f).
pub(super) type Matrix = [f64; 6];

pub(super) const IDENTITY: Matrix = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// The part of a stored image that a view shows, and how it is transformed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// Left edge of the part, in pixels of the stored image. With padding, the part may extend beyond the image.
    pub x: f64,
    /// Top edge of the part.
    pub y: f64,
    /// Width of the part.
    pub width: f64,
    /// Height of the part.
    pub height: f64,
    /// Whether left and right are swapped.
    pub flip_horizontal: bool,
    /// Whether top and bottom are swapped.
    pub flip_vertical: bool,
    /// The coefficients a to f. The point (x, y) of the stored image is at (a x + b y + c, d x + e y + f) in the view,
    /// after resize, flips, rotations and shears. The centre of the first pixel is (0.5, 0.5).
    pub matrix: [f64; 6],
    /// Width of the view.
    pub out_width: u32,
    /// Height of the view.
    pub out_height: u32,
}

impl AugmentPlan {
    /// Whether the augmentation moves pixels.
    pub fn moves_pixels(&self) -> bool {
        let stays = |op: &Op| matches!(op.stage(), Stage::Color | Stage::Erase);
        self.has_mosaics() || !self.ops.iter().all(stays)
    }

    /// What a view of a sample shows, if the stored image has this size and these boxes.
    ///
    /// # Errors
    /// `TooSmall` if the image is smaller than the crop.
    pub fn geometry(
        &self,
        key: SampleKey,
        view: u32,
        (width, height): (u32, u32),
        boxes: &[BoundingBox],
    ) -> Result<Geometry, AugmentError> {
        let size = Size { width, height };
        let plan = &*self.for_sample(key.root(), size)?;
        let frame = Frame::draw(&plan.ops, Scene { size, boxes }, key.root(), view)?;
        let mut geometry = Geometry::of_frame(frame, size, plan.size());
        each_step(plan, key.root(), view, |step| {
            if let Step::Map(map) = step {
                geometry.matrix = after(&map, geometry.matrix);
            }
            Ok(())
        })?;
        Ok(geometry)
    }
}

impl Geometry {
    fn of_frame(frame: Frame, picture: Size, out: Size) -> Self {
        let [x, y, width, height] = part(frame, picture, out);
        Self {
            x,
            y,
            width,
            height,
            flip_horizontal: frame.flip_horizontal,
            flip_vertical: frame.flip_vertical,
            matrix: matrix_of(frame, picture, out),
            out_width: out.width,
            out_height: out.height,
        }
    }
}

/// Left, top, width and height of the part that a frame shows, in pixels of the stored image.
fn part(frame: Frame, picture: Size, out: Size) -> [f64; 4] {
    match frame.shown {
        Shown::Area(area) => [area.x, area.y, area.width, area.height].map(f64::from),
        Shown::Window { resized, x, y } => {
            let across = f64::from(picture.width) / f64::from(resized.width);
            let down = f64::from(picture.height) / f64::from(resized.height);
            let (width, height) = (f64::from(out.width), f64::from(out.height));
            [pixels(x) * across, pixels(y) * down, width * across, height * down]
        }
    }
}

/// The part that a frame shows, rounded to pixels of the stored image and clipped to it.
pub(super) fn rounded_crop(frame: Frame, picture: Size, out: Size, filter: Filter) -> CropResize {
    let [x, y, width, height] = part(frame, picture, out);
    let axis = |start: f64, len: f64, side: u32| {
        let first = frame::pixels(start).min(side.saturating_sub(1));
        let end = frame::pixels((start + len).round_ties_even()).clamp(first + 1, side.max(first + 1));
        (first, end - first)
    };
    let ((x, width), (y, height)) = (axis(x, width, picture.width), axis(y, height, picture.height));
    CropResize {
        area: Area { x, y, width, height },
        width: out.width,
        height: out.height,
        filter,
        flip_horizontal: frame.flip_horizontal,
        flip_vertical: frame.flip_vertical,
    }
}

/// The mapping from the stored image to a frame.
pub(super) fn matrix_of(frame: Frame, picture: Size, out: Size) -> Matrix {
    let [x, y, width, height] = part(frame, picture, out);
    // The factor and the offset of an axis. A flipped axis starts at the opposite edge of the part.
    let axis = |start: f64, len: f64, out: f64, flips: bool| {
        if flips { (-out / len, out + start * out / len) } else { (out / len, -start * out / len) }
    };
    let (a, c) = axis(x, width, f64::from(out.width), frame.flip_horizontal);
    let (e, f) = axis(y, height, f64::from(out.height), frame.flip_vertical);
    [a, 0.0, c, 0.0, e, f]
}

/// Combines `before` with a transform that is applied after it. The matrix of an [`Affine`] is the inverse mapping,
/// from the result to the source.
pub(super) fn after(map: &Affine, before: Matrix) -> Matrix {
    let [p, q, r, s, t, u] = map.matrix;
    // The determinant is positive, because scales are positive and shears are below 90 degrees.
    let det = p * t - q * s;
    let forward = [t / det, -q / det, -s / det, p / det];
    let to = |x: f64, y: f64| {
        let [h, i, j, k] = forward;
        (h * x + i * y, j * x + k * y)
    };
    let [a, b, c, d, e, f] = before;
    let ((a, d), (b, e), (c, f)) = (to(a, d), to(b, e), to(c - r, f - u));
    [a, b, c, d, e, f]
}

#[expect(clippy::cast_precision_loss, reason = "pixels are far below 2^53")]
fn pixels(n: i64) -> f64 {
    n as f64
}
