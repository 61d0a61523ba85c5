//! Applies crops, flips, colours, erasing, normalization and mixing to samples at load time.
//!
//! [`Augment`] is the description. [`AugmentPlan`] is the description checked against a field of a pack. An
//! [`Augmenter`], one per thread, applies it. All random draws are pure functions of seed, epoch, sample and view, as
//! specified in docs/reference/augmentation.md. This module does not read packs or assemble batches. Images are passed
//! in as bytes, and results go into the caller's memory.
//!
//! ```
//! use std::sync::Arc;
//! use packds_pixels::Pixels;
//! use packds_reader::augment::{Augment, AugmentPlan, Augmenter, ImageSource, Input, Picture, SampleKey, Size};
//!
//! let source = ImageSource::raw(Some(Size::from(32)), 3);
//! let plan = AugmentPlan::new(&Augment::parse("crop32+4,flip,norm:imagenet,chw")?, &source)?;
//! let mut augmenter = Augmenter::new(Arc::new(plan));
//! let image = vec![128; 32 * 32 * 3];
//! let picture = Picture::Raw(Pixels { data: &image, width: 32, height: 32, channels: 3 });
//! let mut out = vec![0; augmenter.plan().item_bytes()];
//! let key = SampleKey { seed: 42, epoch: 0, sample: 17 };
//! augmenter.apply(Input::new(key, picture), &mut [&mut out], &mut [])?;
//! # Ok::<(), packds_reader::augment::AugmentError>(())
//! ```

mod augmenter;
mod boxes;
mod color;
mod description;
mod draws;
mod erase;
mod error;
mod finish;
mod frame;
mod geometry;
mod grammar;
mod iou_crop;
mod keypoints;
mod mix;
mod movement;
mod op;
mod picture;
mod plan;
mod policy;
mod polygons;
mod render;
mod steps;
#[cfg(test)]
mod tests;

pub use description::Augment;
pub use error::AugmentError;
pub use geometry::Geometry;
pub use mix::Mix;
pub use op::Size;
pub use packds_pixels::Padding;
pub use policy::Policy;

// Internals for the other crates of this workspace. They may change in any version.
#[doc(hidden)]
pub use self::{
    augmenter::Augmenter,
    boxes::{BoundingBox, ShownBox, stored_boxes},
    keypoints::Keypoint,
    mix::blend,
    movement::Movement,
    picture::{Input, Picture, SampleKey},
    plan::{AugmentPlan, ImageSource, Output},
    polygons::{fill_masks, stored_polygons},
};

pub(crate) use finish::Located;
