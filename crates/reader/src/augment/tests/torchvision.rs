//! Compares policies with torchvision's results in `fixtures/torchvision/policies.json`, written by
//! `fixtures/make/make_policies.py`.

use serde_json::Value;

use super::{apply, augmenter_of, raw};

const RESULTS: &str = include_str!("../../../../../fixtures/torchvision/policies.json");

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
