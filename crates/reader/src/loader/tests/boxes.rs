//! Boxes that move with augmented images.

use std::sync::Arc;

use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema};

use super::{builder, some};
use crate::augment::Augment;
use crate::loader::{BadSamples, LoadError, LoaderBuilder};
use crate::{Pack, open_bytes};

const SIDE: u32 = 32;

/// The boxes of a sample: between none and four.
fn boxes(sample: u64) -> Vec<[f32; 4]> {
    let of = |n: u64| {
        let (x, y) = ((sample * 7 + n * 5) % 20, (sample * 3 + n * 11) % 20);
        [x as f32, y as f32, (x + 4 + n) as f32, (y + 6) as f32]
    };
    (0..sample % 5).map(of).collect()
}

/// A pack of images with boxes, their labels, and a field that has `extra` entries too many in sample 7.
fn pack(n: u64, extra: usize) -> Arc<Pack> {
    let fields = vec![
        Field { layout: Some("hwc".to_owned()), ..Field::tensor("image", DType::U8, &[32, 32, 3]) }
            .with_role(Role::Image),
        Field::ragged("boxes", DType::F32, &[4]).with_role(Role::Boxes),
        Field::ragged("box_labels", DType::I64, &[]).with_role(Role::BoxLabels),
        Field::ragged("corner", DType::F32, &[2]).with_role(Role::BoxAttribute),
        Field::ragged("words", DType::U8, &[]),
    ];
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(Schema::new(fields).unwrap(), 8)).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        let boxes = boxes(sample);
        block.tensor_mut(0).unwrap().fill(sample as u8);
        block.item_mut(1).unwrap().extend(boxes.iter().flatten().flat_map(|side| side.to_le_bytes()));
        let ids = 0..boxes.len() as u64;
        block.item_mut(2).unwrap().extend(ids.flat_map(|id| (sample * 10 + id).to_le_bytes()));
        let corners = boxes.iter().flat_map(|sides| [sides[0], sides[1]]);
        block.item_mut(3).unwrap().extend(corners.flat_map(f32::to_le_bytes));
        if sample == 7 {
            block.item_mut(3).unwrap().extend(vec![0; 8 * extra]);
        }
        block.item_mut(4).unwrap().extend([1, 2, 3]);
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    Arc::new(open_bytes("boxes.pack", writer.finish(FooterParts::default()).unwrap().0).unwrap())
}

fn augmented(pack: &Arc<Pack>, text: &str) -> LoaderBuilder {
    builder(pack).threads(some(2)).augment(Augment::parse(text).unwrap())
}

#[test]
fn boxes_that_a_view_does_not_show_are_left_out_of_all_fields_that_describe_them() {
    let pack = pack(40, 0);
    let mut n_left_out = 0;
    for batch in augmented(&pack, "crop16,flip,views:2").build().unwrap().epoch(2).unwrap() {
        let batch = batch.unwrap();
        let geometry = batch.geometry().unwrap();
        for view in 0..2 {
            let (found, offsets) = batch.view_entries("boxes", view).unwrap();
            let found: Vec<f32> = found.elements().unwrap().to_vec();
            let labels: Vec<i64> = batch.view_entries("box_labels", view).unwrap().0.elements().unwrap().to_vec();
            let corners: Vec<f32> = batch.view_entries("corner", view).unwrap().0.elements().unwrap().to_vec();
            assert_eq!(batch.view_entries("corner", view).unwrap().1, offsets);
            let mut expected = (Vec::new(), Vec::new(), Vec::new());
            for (id, part) in batch.ids().iter().zip(geometry.view(view).unwrap()) {
                let [a, _, c, _, e, f] = part.matrix.map(|v| v as f32);
                for (n, sides) in boxes(*id).iter().enumerate() {
                    let xs = [sides[0], sides[2]].map(|x| (a * x + c).clamp(0.0, 16.0));
                    let ys = [sides[1], sides[3]].map(|y| (e * y + f).clamp(0.0, 16.0));
                    let (left, right) = (xs[0].min(xs[1]), xs[0].max(xs[1]));
                    if right - left < 1.0 || ys[1] - ys[0] < 1.0 {
                        n_left_out += 1;
                        continue;
                    }
                    expected.0.extend([left, ys[0], right, ys[1]]);
                    expected.1.push(*id as i64 * 10 + n as i64);
                    expected.2.extend([sides[0], sides[1]]);
                }
            }
            assert_eq!((found, labels, corners), expected);
        }
        let (words, offsets) = batch.entries("words").unwrap();
        assert_eq!((words.shape[0], offsets.len()), (3 * batch.len(), batch.len() + 1));
    }
    assert!(n_left_out > 20, "{n_left_out}");
}

#[test]
fn boxes_stay_as_stored_if_the_images_do_not_move() {
    let pack = pack(16, 0);
    for batch in augmented(&pack, "jitter:0.4/0.4/0.4/0.1").build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let expected: Vec<f32> = batch.ids().iter().flat_map(|id| boxes(*id)).flatten().collect();
        assert_eq!(batch.entries("boxes").unwrap().0.elements::<f32>().unwrap(), expected);
    }
}

#[test]
fn labels_alone_are_those_of_the_boxes_that_are_shown() {
    let pack = pack(40, 0);
    let labels = |fields: &[&str]| -> Vec<i64> {
        let loader = augmented(&pack, "crop16").fields(fields).build().unwrap();
        let batches = loader.epoch(0).unwrap().map(Result::unwrap);
        batches.flat_map(|batch| batch.entries("box_labels").unwrap().0.elements::<i64>().unwrap().to_vec()).collect()
    };
    let alone = labels(&["image", "box_labels"]);
    assert!(alone.len() < 80);
    assert_eq!(alone, labels(&["image", "boxes", "box_labels"]));
}

#[test]
fn crops_that_depend_on_boxes_have_the_geometry_of_their_batches() {
    let pack = pack(24, 0);
    for batch in augmented(&pack, "ioucrop16").build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let parts = batch.geometry().unwrap().view(0).unwrap();
        assert!(parts.iter().any(|part| part.width < f64::from(SIDE)));
        let (_, offsets) = batch.entries("boxes").unwrap();
        for ((id, part), n) in batch.ids().iter().zip(parts).zip(offsets.windows(2).map(|pair| pair[1] - pair[0])) {
            let is_inside = |s: &&[f32; 4]| {
                let (x, y) = (f64::from(s[0] + s[2]) / 2.0, f64::from(s[1] + s[3]) / 2.0);
                part.x < x && x < part.x + part.width && part.y < y && y < part.y + part.height
            };
            assert_eq!(n, boxes(*id).iter().filter(is_inside).count());
        }
    }
}

#[test]
fn a_field_with_too_many_entries_is_an_error_that_names_the_sample() {
    let pack = pack(16, 1);
    let loader = augmented(&pack, "crop16").bad_samples(BadSamples::Error).build().unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, LoadError::Sample { sample: 7, .. }), "{error}");
    assert!(error.to_string().contains("field `corner`: expected 2 entries, one for each box, found 3"), "{error}");
    let skipped = augmented(&pack, "crop16").bad_samples(BadSamples::Skip).build().unwrap();
    let n: usize = skipped.epoch(0).unwrap().map(|batch| batch.unwrap().len()).sum();
    assert_eq!(n, 15);
}

#[test]
fn words_that_need_boxes_are_refused_without_them() {
    let pack = pack(16, 0);
    for (text, word) in [("ioucrop16", "ioucrop16 needs boxes"), ("center16,minbox:4", "minbox needs boxes")] {
        let loader = augmented(&pack, text).fields(&["image"]).build();
        let error = loader.unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("no loaded field has the role boxes"), "{error}");
    }
}

#[test]
fn boxes_that_move_cause_no_doubt() {
    let pack = pack(16, 0);
    assert_eq!(augmented(&pack, "crop16").build().unwrap().doubts().unwrap(), Vec::<String>::new());
}
