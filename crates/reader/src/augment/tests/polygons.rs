//! Polygons and their masks move like the pixels in them.

use packds_format::Polygons;
use proptest::prelude::*;

use super::{augmenter, key, plan, raw};
use crate::augment::{AugmentError, Input, fill_masks, stored_polygons};

const SIZE: (u32, u32) = (64, 48);

/// The bytes of a field: box, ring, x and y of each vertex.
fn field(vertices: &[[f32; 4]]) -> Vec<u8> {
    vertices.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}

/// A field with one box.
fn outline(rings: &[Vec<[f32; 2]>]) -> Vec<u8> {
    let vertices = (0_u8..).zip(rings).flat_map(|(ring, vertices)| vertices.iter().map(move |v| (ring, *v)));
    field(&vertices.map(|(ring, [x, y])| [0.0, f32::from(ring), x, y]).collect::<Vec<_>>())
}

fn masks(polygons: &Polygons, n: usize, size: (u32, u32)) -> Vec<u8> {
    let mut masks = vec![9; 3];
    fill_masks(polygons, n, size, &mut masks).unwrap();
    masks
}

/// A star around a place.
fn star([x, y]: [f32; 2], radius: f32, turn: f32) -> Vec<[f32; 2]> {
    let tip = |n: u8| {
        let (angle, length) =
            (f32::from(n).mul_add(0.628, turn), if n.is_multiple_of(2) { radius } else { radius * 0.5 });
        [angle.cos().mul_add(length, x), angle.sin().mul_add(length, y)]
    };
    (0..10).map(tip).collect()
}

/// Whether a pixel or one of its neighbours differs from it: the pixels at the border of a shape.
fn is_border(mask: &[u8], at: usize, (width, height): (u32, u32)) -> bool {
    let (width, height) = (i64::from(width), i64::from(height));
    let (x, y) = (i64::try_from(at).unwrap() % width, i64::try_from(at).unwrap() / width);
    let is_inside = |x: i64, y: i64| (0..width).contains(&x) && (0..height).contains(&y);
    let near = (-2..=2).flat_map(|down| (-2..=2).map(move |right| (x + right, y + down)));
    let value = |(x, y): (i64, i64)| mask[usize::try_from(y * width + x).unwrap()];
    near.filter(|(x, y)| is_inside(*x, *y)).any(|place| value(place) != mask[at])
}

proptest! {
    #[test]
    fn a_mask_is_where_the_pixels_of_its_shape_are(
        text in prop::sample::select(vec![
            "rrc32", "rrc40x24,flip,vflip", "crop32,flip", "crop60+12:0", "center20", "center100", "resize48x60,flip",
            "letterbox80:0", "letterbox40x90:0,flip", "scalejitter48", "ioucrop40,flip",
            "center64x48,affine:0/0.2/0.2", "resize64x48,flip,affine:0/0/0/0.6-1.4", "rrc48,rotate:40",
            "crop40,flip,affine:30/0.2/0.2/0.7-1.3/10/10",
        ]),
        sample in 0..500_u64,
        center in (12.0..52.0_f32, 12.0..36.0_f32),
        (radius, turn) in (8.0..20.0_f32, 0.0..6.0_f32),
        has_hole in any::<bool>(),
    ) {
        let mut rings = vec![star([center.0, center.1], radius, turn)];
        if has_hole {
            rings.push(star([center.0, center.1], radius * 0.4, turn).into_iter().rev().collect());
        }
        let stored = stored_polygons(&outline(&rings), 1).unwrap();
        let image: Vec<u8> = masks(&stored, 1, SIZE).iter().flat_map(|value| [value * 255; 3]).collect();
        let boxes = [[0.0, 0.0, 64.0, 48.0]];
        let mut augmenter = augmenter(&format!("{text},minbox:0/0,filter:nearest"), Some(SIZE));
        let out = augmenter.plan().output();
        let mut pixels = vec![0; augmenter.plan().item_bytes()];
        let input = Input { boxes: &boxes, ..Input::new(key(sample), raw(&image, SIZE.0, SIZE.1, 3)) };
        augmenter.apply(input, &mut [&mut pixels], &mut []).unwrap();
        let movement = augmenter.plan().movement(key(sample), 0, SIZE, &boxes).unwrap();
        let shown = movement.boxes(&boxes);
        prop_assert_eq!(shown.len(), 1);
        let size = (out.width, out.height);
        let mask = masks(&movement.polygons(&stored, &shown), 1, size);
        let seen: Vec<u8> = pixels.chunks_exact(3).map(|pixel| u8::from(pixel[0] > 127)).collect();
        // The nearest pixel of an enlarged image is some pixels of the view away.
        let scale = augmenter.plan().geometry(key(sample), 0, SIZE, &boxes).unwrap().matrix;
        let scale = scale.iter().take(5).fold(0.0_f64, |most, factor| if factor.abs() < 60.0 { most.max(factor.abs()) } else { most });
        prop_assume!(scale < 1.9);
        for at in 0..mask.len() {
            let is_near_border = is_border(&mask, at, size) || is_border(&seen, at, size);
            prop_assert!(mask[at] == seen[at] || is_near_border, "{} of {:?}", at, size);
        }
    }

    #[test]
    fn a_ring_that_is_cut_fills_the_same_pixels(
        rings in prop::collection::vec(prop::collection::vec(prop::array::uniform2(-90.0_f32..150.0), 3..9), 1..4),
    ) {
        let stored = stored_polygons(&outline(&rings), 1).unwrap();
        let boxes = [[0.0, 0.0, 64.0, 48.0]];
        let movement = plan("center64x48", Some(SIZE)).unwrap().movement(key(0), 0, SIZE, &boxes).unwrap();
        let cut = movement.polygons(&stored, &movement.boxes(&boxes));
        let is_inside = |[x, y]: &[f32; 2]| (0.0..=64.0).contains(x) && (0.0..=48.0).contains(y);
        prop_assert!(cut.rings_of(0).flatten().all(is_inside));
        prop_assert_eq!(masks(&cut, 1, SIZE), masks(&stored, 1, SIZE));
    }

    #[test]
    fn any_bytes_are_polygons_or_an_error(
        item in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), any::<u32>().prop_map(f32::from_bits)], 0..60),
        text in prop::sample::select(vec!["rrc32,flip,rotate:30", "scalejitter48", "minbox:0/0"]),
    ) {
        let item: Vec<u8> = item.iter().flat_map(|number| number.to_le_bytes()).collect();
        let boxes = [[0.0, 0.0, 64.0, 48.0], [4.0, 4.0, 60.0, 44.0]];
        if let Ok(stored) = stored_polygons(&item, 2) {
            let movement = plan(text, Some(SIZE)).unwrap().movement(key(3), 0, SIZE, &boxes).unwrap();
            let shown = movement.boxes(&boxes);
            let moved = movement.polygons(&stored, &shown);
            prop_assert!(stored_polygons(&moved.to_bytes(), shown.len()).is_ok());
            prop_assert_eq!(masks(&moved, 2, (32, 32)).len(), 2 * 32 * 32);
            prop_assert_eq!(masks(&stored, 2, (32, 32)).len(), 2 * 32 * 32);
        }
    }
}

#[test]
fn rings_of_boxes_that_are_left_out_are_left_out_and_the_others_are_renumbered() {
    // The crop shows the columns 22 to 42 and the rows 14 to 34.
    let boxes = [[0.0, 0.0, 10.0, 10.0], [26.0, 18.0, 36.0, 28.0], [30.0, 20.0, 40.0, 30.0]];
    let triangle = |of: f32, ring: f32, x: f32| [[of, ring, x, 20.0], [of, ring, x + 4.0, 20.0], [of, ring, x, 24.0]];
    let stored = [triangle(0.0, 0.0, 2.0), triangle(1.0, 0.0, 2.0), triangle(1.0, 1.0, 26.0), triangle(2.0, 0.0, 30.0)];
    let stored = stored_polygons(&field(stored.as_flattened()), 3).unwrap();
    let movement = plan("center20", Some(SIZE)).unwrap().movement(key(0), 0, SIZE, &boxes).unwrap();
    let moved = movement.polygons(&stored, &movement.boxes(&boxes));
    let triangle = |of: f32, x: f32| [[of, 0.0, x, 6.0], [of, 0.0, x + 4.0, 6.0], [of, 0.0, x, 10.0]];
    assert_eq!(moved.to_bytes(), field([triangle(0.0, 4.0), triangle(1.0, 8.0)].as_flattened()));
}

#[test]
fn masks_that_need_too_much_memory_are_refused() {
    let found = fill_masks(&Polygons::default(), 1 << 20, (1000, 1000), &mut Vec::new());
    let reason = "expected at most 2^30 bytes of masks, found 1048576 boxes in 1000 x 1000 pixels".to_owned();
    assert_eq!(found, Err(AugmentError::Polygons { reason }));
}
