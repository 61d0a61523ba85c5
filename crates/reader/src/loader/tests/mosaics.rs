//! Mosaics and blended images, with the boxes of all their images.

#![expect(clippy::cast_sign_loss, clippy::float_cmp, reason = "sides are whole numbers from 0")]

use super::instance_masks::cover;
use super::keypoints::{augmented, boxes, pack};
use crate::augment::Buckets;
use crate::loader::{Batch, LoadError};

/// The entries of a field, for each row.
fn rows<const N: usize>(batch: &Batch, field: &str) -> Vec<Vec<[f32; N]>> {
    let (entries, offsets) = batch.entries(field).unwrap();
    let all: Vec<[f32; N]> = entries.elements::<f32>().unwrap().as_chunks::<N>().0.to_vec();
    offsets.windows(2).map(|ends| all[ends[0]..ends[1]].to_vec()).collect()
}

#[test]
fn boxes_points_and_masks_of_a_mosaic_are_where_their_pixels_are() {
    let pack = pack(41, true, false, u64::MAX);
    let fields = ["image", "boxes", "joints", "outlines"];
    let build = |masks| {
        let loader = augmented(&pack, "crop24,mosaic:0.7").fields(&fields);
        loader.instance_masks(masks).build().unwrap()
    };
    let (with, without) = (build(true), build(false));
    let (mut n_boxes, mut n_points) = (0, 0);
    for (masked, plain) in with.epoch(3).unwrap().zip(without.epoch(3).unwrap()) {
        let (masked, plain) = (masked.unwrap(), plain.unwrap());
        assert!(plain.geometry().is_none());
        let (masks, offsets) = masked.entries("outlines").unwrap();
        let (found, joints) = (rows::<4>(&plain, "boxes"), rows::<9>(&plain, "joints"));
        let outlines = rows::<4>(&plain, "outlines");
        for row in 0..plain.len() {
            let pixels = plain.item("image", row).unwrap();
            let masks = &masks.bytes[offsets[row] * 576..offsets[row + 1] * 576];
            assert!(cover(masks, pixels), "row {row}");
            assert_eq!(found[row].len(), offsets[row + 1] - offsets[row]);
            for (n, [left, top, right, bottom]) in found[row].iter().copied().enumerate() {
                // All boxes are rectangles of white pixels with whole numbers as sides.
                let white = |x: f32, y: f32| masks[n * 576 + y as usize * 24 + x as usize] == 1;
                assert!(white(left, top) && white(right - 1.0, bottom - 1.0), "{n} of row {row}");
                let own = outlines[row].iter().filter(|vertex| vertex[0] == n as f32);
                assert!(own.clone().count() >= 4);
                for [_, ring, x, y] in own {
                    assert!(*ring == 0.0 && (left..=right).contains(x) && (top..=bottom).contains(y));
                }
                let points = joints[row][n].as_chunks::<3>().0;
                let shown = points.iter().filter(|point| point[2] > 0.0);
                n_points += shown.clone().count();
                assert!(shown.clone().all(|[x, y, _]| (left..=right).contains(x) && (top..=bottom).contains(y)));
                n_boxes += 1;
            }
        }
    }
    assert!(n_boxes > 60 && n_points > 60, "{n_boxes} boxes, {n_points} points");
}

#[test]
fn a_mosaic_shows_the_sample_and_the_three_before_it() {
    let pack = pack(40, true, false, u64::MAX);
    let [plain, mosaics] = ["u8", "mosaic"].map(|text| augmented(&pack, text).build().unwrap());
    let [planar, floats] = ["mosaic,chw", "mosaic,f32"].map(|text| augmented(&pack, text).build().unwrap());
    let epochs = [&plain, &mosaics, &planar, &floats].map(|loader| loader.epoch(1).unwrap());
    let [plain, mosaics, planar, floats] = epochs;
    for (((plain, mosaic), planar), floats) in plain.zip(mosaics).zip(planar).zip(floats) {
        let (plain, mosaic, planar, floats) = (plain.unwrap(), mosaic.unwrap(), planar.unwrap(), floats.unwrap());
        let n = plain.len();
        for row in 0..n {
            let pixels = mosaic.item("image", row).unwrap();
            let corner = |bytes: &[u8], (x, y): (usize, usize)| bytes[(y * 32 + x) * 3];
            let stored = |back: usize| plain.item("image", (row + 4 * n - back) % n).unwrap();
            // The parts meet in the middle half of each side, so the pixels near the corners are known.
            let meets = meeting(pixels, &[stored(0), stored(1), stored(2), stored(3)]);
            assert!(meets, "row {row}");
            let (planes, values) = (planar.item("image", row).unwrap(), floats.item("image", row).unwrap());
            let value = f32::from_le_bytes(values[..4].try_into().unwrap());
            assert_eq!((planes[0], (value * 255.0).round() as u8), (corner(pixels, (0, 0)), corner(pixels, (0, 0))));
        }
    }
}

/// Whether there is a point in the middle half at which parts of these four images meet.
fn meeting(mosaic: &[u8], parts: &[&[u8]; 4]) -> bool {
    let pixel = |image: &[u8], x: usize, y: usize| image[(y * 32 + x) * 3];
    let is_at = |cx: usize, cy: usize| {
        (0..32).all(|y| {
            (0..32).all(|x| {
                let part = parts[usize::from(x >= cx) + 2 * usize::from(y >= cy)];
                let from = |at: usize, meet: usize| if at < meet { at + 32 - meet } else { at - meet };
                pixel(mosaic, x, y) == pixel(part, from(x, cx), from(y, cy))
            })
        })
    };
    (8..=24).any(|cx| (8..=24).any(|cy| is_at(cx, cy)))
}

#[test]
fn blended_images_have_the_boxes_of_both() {
    let pack = pack(40, true, false, u64::MAX);
    for text in ["mixup:1", "mixup:1,mosaic:0"] {
        for batch in augmented(&pack, text).build().unwrap().epoch(0).unwrap() {
            let batch = batch.unwrap();
            let (found, outlines) = (rows::<4>(&batch, "boxes"), rows::<4>(&batch, "outlines"));
            let ids = batch.ids();
            for (row, id) in ids.iter().enumerate() {
                let partner = ids[row.checked_sub(1).unwrap_or(ids.len() - 1)];
                let expected = [boxes(*id), boxes(partner)].concat();
                assert_eq!(found[row], expected);
                let of: Vec<usize> = outlines[row].iter().step_by(4).map(|vertex| vertex[0] as usize).collect();
                assert_eq!(of, (0..expected.len()).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn boxes_are_refused_where_they_cannot_follow() {
    let pack = pack(8, true, false, u64::MAX);
    for (text, fields, expected) in [
        ("cutmix:1", &["image", "boxes"][..], "cutmix does not work with boxes"),
        ("mosaic", &["image", "joints"], "mosaic joins the boxes of images, so load the field `boxes` too"),
        ("mixup:1", &["image", "outlines"], "mixup joins the boxes of images, so load the field `boxes` too"),
    ] {
        let error = augmented(&pack, text).fields(fields).build().unwrap_err();
        assert!(matches!(&error, LoadError::Option(text) if text.contains(expected)), "{error}");
    }
    augmented(&pack, "cutmix:1").fields(&["image"]).build().unwrap();
}

#[test]
fn mosaics_of_buckets_have_the_sizes_of_their_buckets() {
    let pack = pack(60, true, true, u64::MAX);
    let buckets = Buckets::parse("32x32,32x34").unwrap();
    let loader = augmented(&pack, "mosaic").fields(&["image", "boxes", "outlines"]).buckets(buckets);
    let mut sizes = std::collections::BTreeSet::new();
    for batch in loader.instance_masks(true).build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let shape = batch.field("image").unwrap().shape[1..3].to_vec();
        let (masks, offsets) = batch.entries("outlines").unwrap();
        assert_eq!((&masks.shape[1..], batch.entries("boxes").unwrap().1), (&shape[..], offsets));
        sizes.insert(shape);
    }
    assert_eq!(sizes.len(), 2);
}
