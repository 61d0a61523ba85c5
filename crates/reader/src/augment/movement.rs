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
}

impl AugmentPlan {
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
        let frame = Frame::draw(&self.ops, scene, key.root(), view)?;
        let mut matrices = vec![matrix_of(frame, scene.size, self.size())];
        each_step(self, key.root(), view, |step| {
            if let Step::Map(map) = step {
                matrices.push(after(&map, IDENTITY));
            }
            Ok(())
        })?;
        let limits = self.min_box.unwrap_or(MinBox { side: MIN_SIDE, visible: 0.0 });
        Ok(Movement { frame, matrices, view: self.size(), limits })
    }
}

impl Movement {
    /// Whether the view is a mirror image. Both flips together turn the image by half a turn.
    pub(super) const fn is_mirrored(&self) -> bool {
        self.frame.flip_horizontal != self.frame.flip_vertical
    }
}

/// Where a matrix moves a place.
pub(super) fn moved([x, y]: [f64; 2], [a, b, c, d, e, f]: &Matrix) -> [f64; 2] {
    [a * x + b * y + c, d * x + e * y + f]
}
