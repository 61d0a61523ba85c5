//! A random crop that overlaps a box, as in torchvision's `RandomIoUCrop` (Liu et al., "SSD: Single Shot MultiBox
//! Detector", 2016).

use packds_pixels::Area;

use super::boxes::BoundingBox;
use super::draws::Draws;
use super::frame::{Scene, pixels};
use super::op::Span;

/// The overlaps that are drawn from. A crop must overlap at least one box by this much (intersection over union). 1
/// means that the image is not cropped.
const OVERLAPS: [f64; 7] = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0];
/// Crops that are tried for each overlap.
const TRIALS: u64 = 40;
/// Overlaps that are tried. After them, the image is not cropped. torchvision has no limit.
const ROUNDS: u64 = 50;
/// Draws of a round: one for the overlap, and four for each crop.
const DRAWS: u64 = 1 + 4 * TRIALS;

/// The part of the image to show. `None` if the image is not cropped.
pub(super) fn iou_crop(draws: Draws, scene: Scene<'_>, scale: Span, ratio: Span) -> Option<Area> {
    if scene.boxes.is_empty() {
        return None;
    }
    for round in 0..ROUNDS {
        let first = round * DRAWS;
        let overlap = draws.below(first, 7);
        // Cannot fail: `below(7)` is an index of the list.
        let overlap = OVERLAPS.get(usize::try_from(overlap).unwrap_or(0)).copied().unwrap_or(1.0);
        if overlap >= 1.0 {
            return None;
        }
        let tries = (0..TRIALS).filter_map(|trial| candidate(draws, first + 1 + 4 * trial, scene, scale, ratio));
        let mut fitting = tries.filter(|area| {
            let overlaps = scene.boxes.iter().filter(|sides| has_center(*area, sides)).map(|sides| iou(*area, sides));
            overlaps.fold(f64::NEG_INFINITY, f64::max) >= overlap
        });
        if let Some(area) = fitting.next() {
            return Some(area);
        }
    }
    None
}

/// A random part of the image. `None` if it has no area, or a ratio that is not allowed.
fn candidate(draws: Draws, first: u64, scene: Scene<'_>, scale: Span, ratio: Span) -> Option<Area> {
    let (full_width, full_height) = (scene.size.width, scene.size.height);
    let width = pixels(f64::from(full_width) * draws.uniform(first, scale));
    let height = pixels(f64::from(full_height) * draws.uniform(first + 1, scale));
    let is_allowed = |ratio_of: f64| ratio.0 <= ratio_of && ratio_of <= ratio.1;
    if width == 0 || height == 0 || !is_allowed(f64::from(width) / f64::from(height)) {
        return None;
    }
    let x = pixels(f64::from(full_width - width) * draws.unit(first + 2));
    let y = pixels(f64::from(full_height - height) * draws.unit(first + 3));
    Some(Area { x, y, width, height })
}

/// Whether the centre of the box is in the area.
pub(super) fn has_center(area: Area, sides: &BoundingBox) -> bool {
    let [left, top, right, bottom] = sides.map(f64::from);
    let (x, y) = (0.5 * (left + right), 0.5 * (top + bottom));
    let [from_x, from_y, to_x, to_y] = corners(area);
    from_x < x && x < to_x && from_y < y && y < to_y
}

/// Intersection over union.
fn iou(area: Area, sides: &BoundingBox) -> f64 {
    let [left, top, right, bottom] = sides.map(f64::from);
    let [from_x, from_y, to_x, to_y] = corners(area);
    let common = (right.min(to_x) - left.max(from_x)).max(0.0) * (bottom.min(to_y) - top.max(from_y)).max(0.0);
    common / ((right - left) * (bottom - top) + (to_x - from_x) * (to_y - from_y) - common)
}

fn corners(Area { x, y, width, height }: Area) -> [f64; 4] {
    let (x, y) = (f64::from(x), f64::from(y));
    [x, y, x + f64::from(width), y + f64::from(height)]
}
