//! Polygons that become masks.

use packds_format::DType;

use super::keypoints::{SIDE, augmented, boxes, height, pack};
use super::{builder, some};
use crate::loader::LoaderBuilder;

/// Whether the masks of a batch's view cover exactly the white pixels of its images. Images are `[h, w, 3]`.
fn cover(masks: &[u8], pixels: &[u8]) -> bool {
    let n_pixels = pixels.len() / 3;
    let white = pixels.chunks_exact(3).map(|pixel| u8::from(pixel[0] > 127));
    let united = |at: usize| masks.chunks_exact(n_pixels).map(|mask| mask[at]).max().unwrap_or(0);
    (0..n_pixels).map(united).eq(white)
}

#[test]
fn masks_show_the_objects_of_each_view() {
    let pack = pack(40, true, false, u64::MAX);
    let loader = augmented(&pack, "crop16,flip,vflip,views:2,minbox:0/0").instance_masks(true).build().unwrap();
    assert!(loader.fields().iter().any(|field| field.name == "outlines" && field.dtype == DType::U8));
    let mut n_masks = 0;
    for batch in loader.epoch(1).unwrap() {
        let batch = batch.unwrap();
        for view in 0..2 {
            let (masks, offsets) = batch.view_entries("outlines", view).unwrap();
            assert_eq!(masks.shape, [*offsets.last().unwrap(), 16, 16]);
            assert_eq!(batch.view_entries("boxes", view).unwrap().1, offsets);
            let images = batch.view("image", view).unwrap();
            for (row, pixels) in images.bytes.chunks_exact(16 * 16 * 3).enumerate() {
                let masks = &masks.bytes[offsets[row] * 256..offsets[row + 1] * 256];
                assert!(cover(masks, pixels), "{}, view {view}", batch.ids()[row]);
            }
            n_masks += masks.shape[0];
        }
    }
    assert!(n_masks > 50, "{n_masks}");
}

#[test]
fn masks_of_unmoved_images_have_their_size() {
    let pack = pack(16, true, false, u64::MAX);
    let plain = |loader: LoaderBuilder| {
        for batch in loader.instance_masks(true).build().unwrap().epoch(0).unwrap() {
            let batch = batch.unwrap();
            let (masks, offsets) = batch.entries("outlines").unwrap();
            assert_eq!(masks.shape[1..], [32, 32]);
            for (row, id) in batch.ids().iter().enumerate() {
                assert_eq!(offsets[row + 1] - offsets[row], boxes(*id).len());
                let pixels = batch.item("image", row).unwrap();
                assert!(cover(&masks.bytes[offsets[row] * 1024..offsets[row + 1] * 1024], pixels));
            }
        }
    };
    plain(builder(&pack));
    plain(augmented(&pack, "jitter:0.1/0/0/0"));
}

#[test]
fn masks_of_images_that_vary_in_size_have_shapes_of_their_own() {
    let pack = pack(16, true, true, u64::MAX);
    let loader = builder(&pack).threads(some(2)).instance_masks(true).build().unwrap();
    for batch in loader.epoch(0).unwrap() {
        let batch = batch.unwrap();
        for (row, id) in batch.ids().iter().enumerate() {
            let shape = [boxes(*id).len(), height(*id) as usize, SIDE as usize];
            assert_eq!(batch.item_shape("outlines", row), Some(&shape[..]));
            assert!(cover(batch.item("outlines", row).unwrap(), batch.item("image", row).unwrap()));
        }
    }
}

#[test]
fn masks_can_be_loaded_without_boxes() {
    let pack = pack(16, true, false, u64::MAX);
    let count = |loader: LoaderBuilder| -> usize {
        let loader = loader.instance_masks(true).fields(&["image", "outlines"]).build().unwrap();
        loader.epoch(0).unwrap().map(|batch| batch.unwrap().entries("outlines").unwrap().0.shape[0]).sum()
    };
    assert_eq!(count(builder(&pack)), (0..16).map(|sample| boxes(sample).len()).sum::<usize>());
    assert!(count(augmented(&pack, "center8")) < count(builder(&pack)));
}

#[test]
fn masks_without_polygons_are_refused() {
    let pack = pack(16, true, false, u64::MAX);
    let error = builder(&pack).instance_masks(true).fields(&["image", "boxes"]).build().unwrap_err().to_string();
    assert!(
        error.ends_with("instance masks are made from polygons, but no loaded field has the role polygons"),
        "{error}"
    );
}
