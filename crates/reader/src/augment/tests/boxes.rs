//! Boxes move like the pixels in them.

use proptest::prelude::*;

use super::{augmenter, encoded, key, plan, raw};
use crate::augment::{AugmentError, BoundingBox, Input, ShownBox};

const SIZE: (u32, u32) = (64, 48);

/// Images of [`SIZE`] that are black, except for the pixels in the box.
fn painted([left, top, right, bottom]: [u32; 4]) -> Vec<u8> {
    let (width, height) = SIZE;
    let is_inside = |x, y| (left..right).contains(&x) && (top..bottom).contains(&y);
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .flat_map(|(x, y)| [255 * u8::from(is_inside(x, y)); 3])
        .collect()
}

/// The rectangle around the white pixels of an image of this size.
fn white(pixels: &[u8], width: u32) -> Option<[f32; 4]> {
    let places = pixels.chunks_exact(3).zip(0_u32..).filter(|(pixel, _)| pixel[0] > 127);
    let places: Vec<(u32, u32)> = places.map(|(_, n)| (n % width, n / width)).collect();
    let (xs, ys) = (|| places.iter().map(|p| p.0), || places.iter().map(|p| p.1));
    Some([xs().min()?, ys().min()?, xs().max()? + 1, ys().max()? + 1].map(|side| side as f32))
}

fn shown(text: &str, sample: u64, boxes: &[BoundingBox]) -> Vec<ShownBox> {
    plan(text, Some(SIZE)).unwrap().movement(key(sample), 0, SIZE, boxes).unwrap().boxes(boxes)
}

proptest! {
    #[test]
    fn a_box_is_where_its_pixels_are(
        text in prop::sample::select(vec![
            "rrc32", "rrc40x24,flip,vflip", "crop32,flip", "crop60+12", "center20", "center100", "resize32x40,flip",
            "letterbox80", "letterbox40x90,flip", "scalejitter48", "scalejitter48:1-3,flip", "ioucrop40,flip",
            "shortside:20-90/100,flip", "shortside:50-60,crop30", "cover40,flip", "cover48x90,flip",
            "cover20x40:center",
            "center64,affine:0/0.2/0.2", "resize64x48,flip,affine:0/0/0/0.6-1.4",
        ]),
        sample in 0..500_u64,
        (left, width) in (0..50_u32, 6..14_u32),
        (top, height) in (0..34_u32, 6..14_u32),
    ) {
        let sides = [left, top, left + width, top + height];
        let image = painted(sides);
        let boxes = [sides.map(|side| side as f32)];
        let mut augmenter = augmenter(&format!("{text},filter:nearest"), Some(SIZE));
        let mut width = augmenter.plan().output().width;
        let mut pixels = vec![0; augmenter.plan().item_bytes()];
        let input = Input { boxes: &boxes, ..Input::new(key(sample), raw(&image, SIZE.0, SIZE.1, 3)) };
        if augmenter.plan().sizes_vary() {
            width = augmenter.apply_varied(input, &mut pixels, &mut Vec::new()).unwrap().0;
        } else {
            augmenter.apply(input, &mut [&mut pixels], &mut []).unwrap();
        }
        let moved = augmenter.plan().movement(key(sample), 0, SIZE, &boxes).unwrap().boxes(&boxes);
        let mut found = white(&pixels, width);
        if text.starts_with("ioucrop") && moved.is_empty() {
            found = None;
        }
        match (found, moved.first()) {
            (Some(found), Some(moved)) => {
                let scale = augmenter.plan().geometry(key(sample), 0, SIZE, &boxes).unwrap().matrix;
                // The nearest pixel of a resized image may be a pixel of the stored image away.
                let tolerance = 1.01 + scale[0].abs().max(scale[4].abs());
                for (found, side) in found.into_iter().zip(moved.sides) {
                    prop_assert!(f64::from(found - side).abs() <= tolerance, "{found:?} {moved:?}");
                }
            }
            (None, None) => {}
            // A sliver may be drawn or not.
            (Some([l, t, r, b]), None) => prop_assert!(r - l <= 2.0 || b - t <= 2.0),
            (None, Some(moved)) => {
                let [l, t, r, b] = moved.sides;
                prop_assert!(r - l <= 2.0 || b - t <= 2.0);
            }
        }
    }

    #[test]
    fn any_bytes_are_boxes(
        text in prop::sample::select(vec!["rrc32,rotate:30", "ioucrop40", "scalejitter48", "minbox:0", "center20,minbox:0/0"]),
        sides in prop::collection::vec(prop::array::uniform4(any::<u32>().prop_map(f32::from_bits)), 0..5),
    ) {
        for moved in shown(text, 3, &sides) {
            prop_assert!(moved.sides.iter().all(|side| side.is_finite()), "{moved:?}");
            prop_assert!(moved.index < sides.len());
        }
    }
}

#[test]
fn a_rotated_box_is_the_rectangle_around_its_corners() {
    let boxes = [[16.0, 12.0, 32.0, 36.0]];
    for sample in 0..20 {
        let text = "center64x48,rotate:40";
        let drawn = plan(text, Some(SIZE)).unwrap().geometry(key(sample), 0, SIZE, &[]).unwrap();
        let [a, b, c, d, e, f] = drawn.matrix;
        let corners = [(16.0, 12.0), (32.0, 12.0), (32.0, 36.0), (16.0, 36.0)];
        let moved = corners.map(|(x, y): (f64, f64)| (a * x + b * y + c, d * x + e * y + f));
        let left = moved.map(|p| p.0).into_iter().fold(f64::MAX, f64::min).max(0.0);
        let bottom = moved.map(|p| p.1).into_iter().fold(f64::MIN, f64::max).min(48.0);
        let found = shown(text, sample, &boxes)[0].sides.map(f64::from);
        assert!((found[0] - left).abs() < 1e-4 && (found[3] - bottom).abs() < 1e-4, "{found:?} {left} {bottom}");
    }
}

#[test]
fn boxes_are_clipped_and_small_ones_are_left_out() {
    // The crop shows the columns 22 to 42 and the rows 14 to 34.
    let boxes = [
        [0.0, 0.0, 22.5, 48.0],   // Half a pixel remains.
        [20.0, 10.0, 30.0, 20.0], // 8 x 6 of 10 x 10 pixels remain.
        [30.0, 20.0, 38.0, 24.0],
        [50.0, 0.0, 64.0, 10.0],
        [30.0, f32::NAN, 38.0, 24.0],
        [38.0, 24.0, 30.0, 20.0], // Left and right are swapped.
    ];
    let found = |text| -> Vec<usize> { shown(text, 0, &boxes).iter().map(|shown| shown.index).collect() };
    assert_eq!(found("center20"), [1, 2]);
    assert_eq!(shown("center20", 0, &boxes)[0].sides.to_vec(), [0.0, 0.0, 8.0, 6.0].to_vec());
    assert_eq!(found("center20,minbox:0.5"), [0, 1, 2]);
    assert_eq!(found("center20,minbox:5"), [1]);
    assert_eq!(found("center20,minbox:1/0.48"), [1, 2]);
    assert_eq!(found("center20,minbox:1/0.49"), [2]);
}

#[test]
fn an_overlapping_crop_keeps_a_box_and_only_boxes_with_their_centre_inside() {
    let boxes = [[2.0, 2.0, 20.0, 16.0], [30.0, 20.0, 60.0, 44.0]];
    let plan = plan("ioucrop32", Some(SIZE)).unwrap();
    let mut n_left_out = 0;
    for sample in 0..300 {
        let part = plan.geometry(key(sample), 0, SIZE, &boxes).unwrap();
        let is_inside = |[left, top, right, bottom]: [f64; 4]| {
            let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
            part.x < x && x < part.x + part.width && part.y < y && y < part.y + part.height
        };
        let expected: Vec<usize> = (0..2).filter(|n| is_inside(boxes[*n].map(f64::from))).collect();
        let found = plan.movement(key(sample), 0, SIZE, &boxes).unwrap().boxes(&boxes);
        assert_eq!(found.iter().map(|shown| shown.index).collect::<Vec<_>>(), expected);
        assert!(!expected.is_empty());
        n_left_out += 2 - expected.len();
    }
    assert!(n_left_out > 50, "{n_left_out}");
}

#[test]
fn an_image_without_boxes_is_not_cropped() {
    let plan = plan("ioucrop32", Some(SIZE)).unwrap();
    for sample in 0..20 {
        let part = plan.geometry(key(sample), 0, SIZE, &[]).unwrap();
        assert_eq!(vec![part.x, part.y, part.width, part.height], [0.0, 0.0, 64.0, 48.0].to_vec());
    }
}

#[test]
fn a_letterbox_shows_the_whole_image_between_its_borders() {
    let image = vec![200; 64 * 48 * 3];
    let mask = vec![7; 64 * 48];
    let mut augmenter = augmenter("letterbox80x40", Some(SIZE));
    let (mut out, mut mask_out) = (vec![0; 80 * 40 * 3], vec![9; 80 * 40]);
    let input = Input::new(key(0), raw(&image, 64, 48, 3)).with_mask(Some(raw(&mask, 64, 48, 1)));
    augmenter.apply(input, &mut [&mut out], &mut [&mut mask_out]).unwrap();
    // 64 x 48 pixels become 53 x 40. The border on the left has 13 columns.
    for (n, (pixel, class)) in out.chunks_exact(3).zip(mask_out).enumerate() {
        let is_inside = (13..66).contains(&(n % 80));
        assert_eq!((pixel[0], class), if is_inside { (200, 7) } else { (114, 0) }, "{n}");
    }
}

#[test]
fn files_are_resized_into_letterboxes_like_pixels() {
    let pixels = super::picture(64, 48, 3, 5);
    let file = packds_pixels::encode_png(64, 48, 3, &pixels).unwrap();
    for text in ["letterbox80", "letterbox20:0", "scalejitter32", "scalejitter32:1-2/7", "ioucrop32"] {
        let mut augmenter = augmenter(text, None);
        for sample in 0..5 {
            let of_pixels = super::apply(&mut augmenter, sample, raw(&pixels, 64, 48, 3));
            assert_eq!(super::apply(&mut augmenter, sample, encoded(&file)), of_pixels, "{text}");
        }
    }
}

#[test]
fn limits_of_boxes_outside_their_range_are_refused() {
    for (text, words) in [
        ("center20,minbox:-1", "side must be 0 to 65535 pixels"),
        ("center20,minbox:1/2", "visible part must be 0 to 1"),
        ("ioucrop32:0-2", "two fractions of the side from 0 to 1"),
        ("scalejitter32:0-2", "two numbers from 0.01 to 10"),
        ("scalejitter32,views:2", "number of views must be 1"),
        ("resize32,letterbox32", "this crop uses the stored image"),
    ] {
        let error = plan(text, Some(SIZE)).unwrap_err();
        assert!(matches!(error, AugmentError::Parameter { .. } | AugmentError::Order { .. }));
        assert!(error.to_string().contains(words), "{error}");
    }
}
