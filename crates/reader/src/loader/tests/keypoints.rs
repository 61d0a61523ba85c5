//! Keypoints and polygons that move with augmented images.

use std::sync::Arc;

use packds_format::{BlockBuilder, DType, Field, FooterParts, Keypoints, PackOptions, PackWriter, Role, Schema};

use super::{builder, some};
use crate::augment::Augment;
use crate::loader::{BadSamples, LoadError, LoaderBuilder};
use crate::{Pack, open_bytes};

pub(super) const SIDE: u32 = 32;

/// The boxes of a sample: between none and three, with whole numbers as sides.
pub(super) fn boxes(sample: u64) -> Vec<[f32; 4]> {
    let of = |n: u64| {
        let (x, y) = ((sample * 7 + n * 5) % 20, (sample * 3 + n * 11) % 20);
        [x as f32, y as f32, (x + 8) as f32, (y + 6 + n) as f32]
    };
    (0..sample % 4).map(of).collect()
}

/// The corners of a box: its middle, then left and right.
fn points([left, top, right, bottom]: [f32; 4]) -> [[f32; 3]; 3] {
    [[f32::midpoint(left, right), f32::midpoint(top, bottom), 2.0], [left, top, 1.0], [right, top, 2.0]]
}

/// A field of polygons: the outline of each box, with one vertex more in sample `bad`, of a box that does not exist.
fn outlines(sample: u64, bad: u64) -> Vec<[f32; 4]> {
    let ring = |(of, [left, top, right, bottom]): (usize, [f32; 4])| {
        [[left, top], [right, top], [right, bottom], [left, bottom]].map(|[x, y]| [of as f32, 0.0, x, y])
    };
    let mut vertices: Vec<[f32; 4]> = boxes(sample).into_iter().enumerate().flat_map(ring).collect();
    if sample == bad {
        vertices.push([9.0, 0.0, 1.0, 1.0]);
    }
    vertices
}

fn image(variable: bool) -> Vec<Field> {
    if !variable {
        let field = Field::tensor("image", DType::U8, &[SIDE.into(), SIDE.into(), 3]);
        return vec![Field { layout: Some("hwc".to_owned()), ..field }.with_role(Role::Image)];
    }
    let column = |name: &str, dtype, role| Field {
        of: Some("image".to_owned()),
        ..Field::column(name, dtype, &[]).with_role(role)
    };
    vec![
        Field::variable("image", packds_format::FieldKind::Image).with_role(Role::Image),
        column("coding", DType::U8, Role::Coding),
        column("width", DType::U32, Role::Width),
        column("height", DType::U32, Role::Height),
        column("channels", DType::U8, Role::Channels),
    ]
}

/// The height of a sample's image, if they vary in size.
pub(super) fn height(sample: u64) -> u32 {
    SIDE + (sample % 3) as u32
}

/// A pack of images with boxes, keypoints and polygons. Pixels in a box are white.
pub(super) fn pack(n: u64, names: bool, variable: bool, bad: u64) -> Arc<Pack> {
    let mut joints = Field::ragged("joints", DType::F32, &[3, 3]).with_role(Role::Keypoints);
    if names {
        let list = ["nose", "left_eye", "right_eye"].map(str::to_owned).to_vec();
        joints.keypoints = Some(Keypoints::named(list, Vec::new()));
    }
    let mut fields = image(variable);
    let first = fields.len();
    fields.extend([
        Field::ragged("boxes", DType::F32, &[4]).with_role(Role::Boxes),
        joints,
        Field::ragged("outlines", DType::F32, &[4]).with_role(Role::Polygons),
    ]);
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(Schema::new(fields).unwrap(), 8)).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        let boxes = boxes(sample);
        let is_white = |x: u32, y: u32| {
            let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
            boxes.iter().any(|[left, top, right, bottom]| *left < x && x < *right && *top < y && y < *bottom)
        };
        let rows = if variable { height(sample) } else { SIDE };
        let places = (0..rows).flat_map(|y| (0..SIDE).map(move |x| (x, y)));
        let pixels: Vec<u8> = places.flat_map(|(x, y)| [255 * u8::from(is_white(x, y)); 3]).collect();
        if variable {
            block.item_mut(0).unwrap().extend(pixels);
            block.set_column(1, &[0]).unwrap();
            block.set_column(2, &SIDE.to_le_bytes()).unwrap();
            block.set_column(3, &rows.to_le_bytes()).unwrap();
            block.set_column(4, &[3]).unwrap();
        } else {
            block.tensor_mut(0).unwrap().copy_from_slice(&pixels);
        }
        let floats = |floats: &[f32]| floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<u8>>();
        block.item_mut(first).unwrap().extend(floats(boxes.as_flattened()));
        let points: Vec<[[f32; 3]; 3]> = boxes.iter().copied().map(points).collect();
        block.item_mut(first + 1).unwrap().extend(floats(points.as_flattened().as_flattened()));
        block.item_mut(first + 2).unwrap().extend(floats(outlines(sample, bad).as_flattened()));
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    Arc::new(open_bytes("people.pack", writer.finish(FooterParts::default()).unwrap().0).unwrap())
}

pub(super) fn augmented(pack: &Arc<Pack>, text: &str) -> LoaderBuilder {
    builder(pack).threads(some(2)).augment(Augment::parse(text).unwrap())
}

/// The rectangle around the vertices of a box.
fn around(vertices: &[[f32; 4]], of: usize) -> [f32; 4] {
    let own = vertices.iter().filter(|vertex| vertex[0].total_cmp(&(of as f32)).is_eq());
    own.fold([f32::MAX, f32::MAX, f32::MIN, f32::MIN], |[left, top, right, bottom], [_, _, x, y]| {
        [left.min(*x), top.min(*y), right.max(*x), bottom.max(*y)]
    })
}

#[test]
fn keypoints_and_polygons_move_with_their_boxes() {
    let pack = pack(40, true, false, u64::MAX);
    let (mut n_lost, mut n_swapped) = (0, 0);
    for batch in augmented(&pack, "crop16,flip,views:2").build().unwrap().epoch(2).unwrap() {
        let batch = batch.unwrap();
        let geometry = batch.geometry().unwrap();
        for view in 0..2 {
            let floats = |name: &str| {
                let (entries, offsets) = batch.view_entries(name, view).unwrap();
                (entries.elements::<f32>().unwrap().to_vec(), offsets)
            };
            let ((boxes_of, offsets), (joints, of_joints)) = (floats("boxes"), floats("joints"));
            assert_eq!(offsets, of_joints);
            let (vertices, of_vertices) = floats("outlines");
            let mut expected = Vec::new();
            for (id, part) in batch.ids().iter().zip(geometry.view(view).unwrap()) {
                let [a, _, c, _, e, f] = part.matrix.map(|v| v as f32);
                for sides in boxes(*id) {
                    let [left, top, right, bottom] = sides;
                    let across = [a * left + c, a * right + c].map(|x| x.clamp(0.0, 16.0));
                    let down = [e * top + f, e * bottom + f].map(|y| y.clamp(0.0, 16.0));
                    if (across[0] - across[1]).abs() < 1.0 || (down[0] - down[1]).abs() < 1.0 {
                        continue;
                    }
                    let point = |[x, y, v]: [f32; 3]| {
                        let [x, y] = [a * x + c, e * y + f];
                        let is_inside = (0.0..=16.0).contains(&x) && (0.0..=16.0).contains(&y);
                        if is_inside { [x, y, v] } else { [0.0; 3] }
                    };
                    let [nose, left, right] = points(sides).map(point);
                    expected.extend(if part.flip_horizontal { [nose, right, left] } else { [nose, left, right] });
                    n_swapped += usize::from(part.flip_horizontal);
                }
            }
            assert_eq!(joints, expected.as_flattened());
            n_lost += expected.iter().filter(|point| point[2] == 0.0).count();
            // The outline of a box is as large as the box.
            for (of_boxes, of_vertices) in offsets.windows(2).zip(of_vertices.windows(2)) {
                let (sides, _) = boxes_of[of_boxes[0] * 4..of_boxes[1] * 4].as_chunks::<4>();
                let (vertices, _) = vertices[of_vertices[0] * 4..of_vertices[1] * 4].as_chunks::<4>();
                let found: Vec<[f32; 4]> = (0..sides.len()).map(|of| around(vertices, of)).collect();
                assert_eq!(found, sides);
            }
        }
    }
    assert!(n_lost > 10 && n_swapped > 10, "{n_lost} {n_swapped}");
}

#[test]
fn unmoved_keypoints_and_polygons_stay_as_stored() {
    let pack = pack(16, true, false, u64::MAX);
    let stored = |name: &str, loader: LoaderBuilder| -> Vec<f32> {
        let batches = loader.build().unwrap().epoch(0).unwrap().map(Result::unwrap);
        batches.flat_map(|batch| batch.entries(name).unwrap().0.elements::<f32>().unwrap().to_vec()).collect()
    };
    for name in ["joints", "outlines"] {
        let plain = stored(name, builder(&pack));
        assert!(plain.len() > 100);
        assert_eq!(stored(name, augmented(&pack, "jitter:0.4/0.4/0.4/0.1")), plain);
    }
}

#[test]
fn polygons_of_boxes_that_do_not_exist_are_errors_that_name_the_sample() {
    let pack = pack(16, true, false, 5);
    let loader = augmented(&pack, "crop16").bad_samples(BadSamples::Error).build().unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, LoadError::Sample { sample: 5, .. }), "{error}");
    assert!(error.to_string().contains("polygons: the box of vertex 4: expected an index below 1, found 9"), "{error}");
}

#[test]
fn keypoints_without_names_are_doubtful_in_flipped_images() {
    let doubts =
        |text: &str, names: bool| augmented(&pack(16, names, false, u64::MAX), text).build().unwrap().doubts().unwrap();
    assert!(doubts("crop16,flip", true).is_empty());
    assert!(doubts("crop16", false).is_empty());
    let doubt = doubts("crop16,flip", false);
    assert!(doubt.len() == 1 && doubt[0].contains("left and right points of `joints` do not swap"), "{doubt:?}");
}

#[test]
fn packs_with_other_names_of_keypoints_are_not_mixed() {
    let (first, other) = (pack(16, true, false, u64::MAX), pack(16, false, false, u64::MAX));
    let error = builder(&first).mix(other, 1.0).build().unwrap_err();
    let LoadError::OtherFields { field, what, expected, found, .. } = &error else { panic!("{error}") };
    let expected_names = "nose, left_eye, right_eye (swaps [0, 2, 1])";
    assert_eq!(
        (field.as_str(), *what, expected.as_str(), found.as_str()),
        ("joints", "names of keypoints", expected_names, "none")
    );
}
