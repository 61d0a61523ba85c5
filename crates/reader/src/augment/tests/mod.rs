//! Tests of augmentation.

#![cfg(test)]

mod boxes;
mod draws;
mod files;
mod keypoints;
mod pipeline;
mod polygons;
mod rejections;
mod torchvision;
mod windows;
mod words;

use std::sync::Arc;

use packds_pixels::{Encoded, Pixels};

use super::{Augment, AugmentError, AugmentPlan, Augmenter, ImageSource, Input, Picture, SampleKey, Size};

/// An image of random bytes.
pub(super) fn picture(width: u32, height: u32, channels: u8, seed: u64) -> Vec<u8> {
    let n = u64::from(width) * u64::from(height) * u64::from(channels);
    (0..n).map(|i| crate::plan::random(seed, i).to_le_bytes()[0]).collect()
}

pub(super) fn raw(data: &[u8], width: u32, height: u32, channels: u8) -> Picture<'_> {
    Picture::Raw(Pixels { data, width, height, channels })
}

pub(super) fn plan(text: &str, size: Option<(u32, u32)>) -> Result<AugmentPlan, AugmentError> {
    let size = size.map(|(width, height)| Size { width, height });
    AugmentPlan::new(&Augment::parse(text)?, &ImageSource::raw(size, 3))
}

pub(super) fn augmenter(text: &str, size: Option<(u32, u32)>) -> Augmenter {
    augmenter_of(text, size, 3)
}

pub(super) fn augmenter_of(text: &str, size: Option<(u32, u32)>, channels: u8) -> Augmenter {
    let size = size.map(|(width, height)| Size { width, height });
    let source = ImageSource::raw(size, channels);
    let plan = AugmentPlan::new(&Augment::parse(text).unwrap(), &source);
    Augmenter::new(Arc::new(plan.unwrap()))
}

pub(super) fn encoded(bytes: &[u8]) -> Picture<'_> {
    Picture::Encoded(Encoded { bytes, seek_index: None })
}

pub(super) fn key(sample: u64) -> SampleKey {
    SampleKey { seed: 42, epoch: 3, sample }
}

/// Returns all views of one sample, one after another.
pub(super) fn apply(augmenter: &mut Augmenter, sample: u64, image: Picture<'_>) -> Vec<u8> {
    let n = augmenter.plan().item_bytes();
    let views = usize::try_from(augmenter.plan().output().views).unwrap();
    let mut out = vec![0; n * views];
    let mut outs: Vec<&mut [u8]> = out.chunks_exact_mut(n).collect();
    augmenter.apply(Input::new(key(sample), image), &mut outs, &mut []).unwrap();
    out
}
