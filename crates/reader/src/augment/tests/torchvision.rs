//! Compares policies, boxes and keypoints with torchvision's results in `fixtures/torchvision`, written by
//! `fixtures/make/make_policies.py`, `fixtures/make/make_boxes.py` and `fixtures/make/make_keypoints.py`.

use serde_json::Value;

use super::{apply, augmenter_of, key, plan, raw};

const RESULTS: &str = include_str!("../../../../../fixtures/torchvision/policies.json");

const BOXES: &str = include_str!("../../../../../fixtures/torchvision/boxes.json");

const KEYPOINTS: &str = include_str!("../../../../../fixtures/torchvision/keypoints.json");

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value["pixels"].as_str().unwrap();
    (0..digits.len() / 2).map(|index| u8::from_str_radix(&digits[2 * index..][..2], 16).unwrap()).collect()
}

#[test]
fn policies_give_the_bytes_of_torchvision() {
    let results: Value = serde_json::from_str(RESULTS).unwrap();
    let mut n_changed = 0;
    for image in results["images"].as_array().unwrap() {
        let number = |name: &str| u32::try_from(image[name].as_u64().unwrap()).unwrap();
        let (width, height) = (number("width"), number("height"));
        let channels = u8::try_from(number("channels")).unwrap();
        let pixels = bytes(image);
        for case in image["cases"].as_array().unwrap() {
            let words = case["words"].as_str().unwrap();
            let mut augmenter = augmenter_of(words, Some((width, height)), channels);
            let sample = case["sample"].as_u64().unwrap();
            let found = apply(&mut augmenter, sample, raw(&pixels, width, height, channels));
            assert_eq!(found, bytes(case), "{words}, sample {sample}, {channels} channels");
            n_changed += usize::from(found != pixels);
        }
    }
    assert!(n_changed > 80, "{n_changed}");
}

#[test]
fn boxes_are_where_torchvision_moves_them() {
    let results: Value = serde_json::from_str(BOXES).unwrap();
    let size: (u32, u32) = serde_json::from_value(results["size"].clone()).unwrap();
    let boxes: Vec<[f32; 4]> = serde_json::from_value(results["boxes"].clone()).unwrap();
    let mut n_left_out = 0;
    for case in results["cases"].as_array().unwrap() {
        let (words, sample) = (case["words"].as_str().unwrap(), case["sample"].as_u64().unwrap());
        let found = plan(words, Some(size)).unwrap().movement(key(sample), 0, size, &boxes).unwrap().boxes(&boxes);
        let expected: Vec<(usize, f64, f64, f64, f64)> = serde_json::from_value(case["boxes"].clone()).unwrap();
        let indices: Vec<usize> = expected.iter().map(|one| one.0).collect();
        assert_eq!(found.iter().map(|shown| shown.index).collect::<Vec<_>>(), indices, "{words}, sample {sample}");
        for (shown, (_, left, top, right, bottom)) in found.iter().zip(expected) {
            for (found, expected) in shown.sides.into_iter().zip([left, top, right, bottom]) {
                assert!((f64::from(found) - expected).abs() < 1e-3, "{words}, sample {sample}: {found} {expected}");
            }
        }
        n_left_out += boxes.len() - found.len();
    }
    assert!(n_left_out > 50, "{n_left_out}");
}

#[test]
fn keypoints_are_where_torchvision_moves_them() {
    let results: Value = serde_json::from_str(KEYPOINTS).unwrap();
    let size: (u32, u32) = serde_json::from_value(results["size"].clone()).unwrap();
    let boxes: Vec<[f32; 4]> = serde_json::from_value(results["boxes"].clone()).unwrap();
    let points: Vec<[[f32; 3]; 3]> = serde_json::from_value(results["points"].clone()).unwrap();
    let swaps: Vec<u32> = serde_json::from_value(results["swaps"].clone()).unwrap();
    let (mut n_lost, mut n_kept) = (0, 0);
    for case in results["cases"].as_array().unwrap() {
        let (words, sample) = (case["words"].as_str().unwrap(), case["sample"].as_u64().unwrap());
        let movement = plan(words, Some(size)).unwrap().movement(key(sample), 0, size, &boxes).unwrap();
        let expected: Vec<(usize, [[f64; 3]; 3])> = serde_json::from_value(case["points"].clone()).unwrap();
        let shown = movement.boxes(&boxes);
        assert_eq!(shown.len(), expected.len());
        for (shown, (index, expected)) in shown.iter().zip(expected) {
            assert_eq!(shown.index, index);
            let entry: Vec<u8> = points[index].iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
            let found = movement.keypoints(&entry, &swaps);
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                assert!((f64::from(*found) - expected).abs() < 1e-3, "{words}, sample {sample}: {found} {expected}");
            }
            n_lost += found.iter().filter(|point| point[2] == 0.0).count();
            n_kept += found.iter().filter(|point| point[2] > 0.0).count();
        }
    }
    assert!(n_lost > 50 && n_kept > 150, "{n_lost} {n_kept}");
}
