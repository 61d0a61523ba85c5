//! Keypoints move with the image.

use proptest::prelude::*;

use super::{key, plan};
use crate::augment::Keypoint;

const SIZE: (u32, u32) = (64, 48);
const BOX: [f32; 4] = [8.0, 8.0, 56.0, 40.0];
/// The first point has no side, and the others swap.
const SWAPS: [u32; 3] = [0, 2, 1];

fn bytes(points: &[Keypoint]) -> Vec<u8> {
    points.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}

fn moved(text: &str, sample: u64, points: &[Keypoint], swaps: &[u32]) -> Vec<Keypoint> {
    let movement = plan(text, Some(SIZE)).unwrap().movement(key(sample), 0, SIZE, &[BOX]).unwrap();
    movement.keypoints(&bytes(points), swaps)
}

#[test]
fn points_outside_the_view_and_unlabelled_points_are_zeros() {
    // The crop shows the columns 22 to 42 and the rows 14 to 34.
    let points = [[22.0, 14.0, 1.0], [21.9, 20.0, 2.0], [42.0, 34.0, 2.0], [30.0, 34.1, 2.0], [30.0, 20.0, 0.0]];
    let expected = [[0.0, 0.0, 1.0], [0.0; 3], [20.0, 20.0, 2.0], [0.0; 3], [0.0; 3]];
    assert_eq!(moved("center20", 0, &points, &[]), expected);
    assert_eq!(moved("center20", 0, &[[f32::NAN, 20.0, 2.0], [30.0, 20.0, f32::NAN]], &[]), [[0.0; 3]; 2]);
}

#[test]
fn left_and_right_swap_in_a_mirror_image_only() {
    let points = [[10.0, 12.0, 2.0], [20.0, 24.0, 2.0], [30.0, 40.0, 1.0]];
    let places = |text: &str| moved(text, 0, &points, &SWAPS);
    assert_eq!(places("center64x48"), points);
    let across = [[54.0, 12.0, 2.0], [34.0, 40.0, 1.0], [44.0, 24.0, 2.0]];
    assert_eq!(places("center64x48,flip:1"), across);
    assert_eq!(places("center64x48,vflip:1"), [[10.0, 36.0, 2.0], [30.0, 8.0, 1.0], [20.0, 24.0, 2.0]]);
    // Half a turn.
    assert_eq!(places("center64x48,flip:1,vflip:1"), [[54.0, 36.0, 2.0], [44.0, 24.0, 2.0], [34.0, 8.0, 1.0]]);
    // Without names, points keep their numbers.
    let unnamed = moved("center64x48,flip:1", 0, &points, &[]);
    assert_eq!(unnamed, [across[0], across[2], across[1]]);
}

#[test]
fn a_point_that_a_crop_cuts_off_does_not_come_back() {
    let mut n_lost = 0;
    for sample in 0..50 {
        let drawn = plan("center20,affine:0/0.4/0.4", Some(SIZE)).unwrap();
        let [_, _, right, _, _, down] = drawn.geometry(key(sample), 0, SIZE, &[]).unwrap().matrix;
        // It is two pixels beyond the left edge of the crop.
        let found = moved("center20,affine:0/0.4/0.4", sample, &[[20.0, 24.0, 2.0]], &[]);
        assert_eq!(found, [[0.0; 3]]);
        n_lost += usize::from((0.0..=20.0).contains(&(20.0 + right)) && (0.0..=20.0).contains(&(24.0 + down)));
    }
    assert!(n_lost > 10, "{n_lost}");
}

proptest! {
    #[test]
    fn any_bytes_are_keypoints(
        text in prop::sample::select(vec!["rrc32,flip,rotate:30", "scalejitter48,flip", "center20"]),
        entry in prop::collection::vec(any::<u8>(), 0..80),
        swaps in prop::collection::vec(any::<u32>(), 0..5),
    ) {
        let movement = plan(text, Some(SIZE)).unwrap().movement(key(3), 0, SIZE, &[BOX]).unwrap();
        let found = movement.keypoints(&entry, &swaps);
        prop_assert_eq!(found.len(), entry.len() / 12);
        prop_assert!(found.iter().all(|[x, y, _]| x.is_finite() && y.is_finite()));
    }
}
