//! How a view moves what refers to places in its image: boxes, keypoints and polygons.

use super::boxes::{BoundingBox, MIN_SIDE, MinBox};
use super::frame::{Frame, Scene};
use super::geometry::{IDENTITY, Matrix, after, matrix_of};
use super::op::Size;
use super::steps::{Step, each_step};
use super::{AugmentError, AugmentPlan, SampleKey};

/// The steps in which one view of a sample moves places of the stored image. After each of them, only what is inside
/// the view is left of the image.
#[derive(Debug, Clone)]
pub struct Movement {
    pub(super) frame: Frame,
    /// The crop with its resize and flips, then each rotation and affine transform.
    pub(super) matrices: Vec<Matrix>,
    pub(super) view: Size,
    pub(super) limits: MinBox,
    /// Where the view begins in the image that is delivered. Not 0, 0 in a mosaic.
    pub(super) origin: [f64; 2],
}

impl AugmentPlan {
    /// Places that stay where they are.
    pub(crate) fn no_movement(&self) -> Movement {
        self.movement_by(Frame::of(self.size()), Vec::new())
    }

    fn movement_by(&self, frame: Frame, matrices: Vec<Matrix>) -> Movement {
        let limits = self.min_box.unwrap_or(MinBox { side: MIN_SIDE, visible: 0.0 });
        Movement { frame, matrices, view: self.size(), limits, origin: [0.0; 2] }
    }

    /// How a view of a sample moves places, if the stored image has this size and these boxes.
    ///
    /// # Errors
    /// `TooSmall` if the image is smaller than the crop.
    pub fn movement(
        &self,
        key: SampleKey,
        view: u32,
        (width, height): (u32, u32),
        boxes: &[BoundingBox],
    ) -> Result<Movement, AugmentError> {
        let scene = Scene { size: Size { width, height }, boxes };
        let plan = &*self.for_sample(key.root(), scene.size)?;
        let frame = Frame::draw(&plan.ops, scene, key.root(), view)?;
        let mut matrices = vec![matrix_of(frame, scene.size, plan.size())];
        each_step(plan, key.root(), view, |step| {
            if let Step::Map(map) = step {
                matrices.push(after(&map, IDENTITY));
            }
            Ok(())
        })?;
        Ok(plan.movement_by(frame, matrices))
    }
}

impl Movement {
    /// A place of the view in the image that is delivered.
    #[expect(clippy::cast_possible_truncation, reason = "places are stored as f32")]
    pub(super) fn delivered(&self, [x, y]: [f64; 2]) -> [f32; 2] {
        let [left, top] = self.origin;
        [(x + left) as f32, (y + top) as f32]
    }

    /// Width and height of the view.
    pub fn size(&self) -> (u32, u32) {
        (self.view.width, self.view.height)
    }

    /// Whether the view is a mirror image. Both flips together turn the image by half a turn.
    pub(super) const fn is_mirrored(&self) -> bool {
        self.frame.flip_horizontal != self.frame.flip_vertical
    }
}

/// Where a matrix moves a place.
pub(super) fn moved([x, y]: [f64; 2], [a, b, c, d, e, f]: &Matrix) -> [f64; 2] {
    [a * x + b * y + c, d * x + e * y + f]
}
