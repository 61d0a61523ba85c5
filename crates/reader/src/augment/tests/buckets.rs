//! Buckets: their sizes, which one an image belongs to, and the augmentation of its images.

use proptest::prelude::*;

use super::{augmenter, key, plan, raw};
use crate::augment::{Augment, AugmentError, Buckets, Input, Size};

fn size((width, height): (u32, u32)) -> Size {
    Size { width, height }
}

fn sizes(text: &str) -> String {
    Buckets::parse(text).unwrap().to_string()
}

#[test]
fn an_area_gives_the_sizes_that_fit_into_it() {
    assert_eq!(sizes("area:4096/16"), "48x80,64,80x48");
    assert_eq!(sizes("area:4096/16/1"), "64");
    assert_eq!(sizes("area:250000/64"), "384x576,384x640,448,448x512,512x448,576x384,640x384");
    let million = Buckets::parse("area:1048576/64").unwrap();
    for size in million.sizes() {
        let (width, height) = (size.width, size.height);
        assert!(width * height <= 1 << 20 && width % 64 == 0 && height % 64 == 0, "{size}");
        assert!(width.max(height) <= 2 * width.min(height), "{size}");
        assert!(million.sizes().contains(&Size { width: height, height: width }), "{size}");
    }
    assert!(million.sizes().contains(&size((1216, 832))));
}

#[test]
fn an_image_belongs_to_the_bucket_with_the_nearest_ratio() {
    let buckets = Buckets::parse("512x512,640x384,384x640").unwrap();
    for (image, expected) in [
        ((100, 100), 0),
        ((4000, 3000), 1), // 4/3 is above the geometric mean of 1 and 5/3.
        ((1290, 1000), 0),
        ((1292, 1000), 1),
        ((1000, 1292), 2),
        ((1, 4_000_000_000), 2),
        ((u32::MAX, u32::MAX), 0),
        ((0, 0), 0),
    ] {
        assert_eq!(buckets.nearest(image.0, image.1), expected, "{image:?}");
    }
}

proptest! {
    #[test]
    fn no_other_bucket_is_nearer(width in 1..9999_u32, height in 1..9999_u32) {
        let buckets = Buckets::parse("area:262144/64/3").unwrap();
        let distance = |size: &Size| {
            let own = f64::from(width) / f64::from(height);
            (own.ln() - (f64::from(size.width) / f64::from(size.height)).ln()).abs()
        };
        let nearest = usize::from(buckets.nearest(width, height));
        let least = buckets.sizes().iter().map(distance).fold(f64::MAX, f64::min);
        prop_assert!(distance(&buckets.sizes()[nearest]) <= least + 1e-12);
    }

    #[test]
    fn no_text_panics(text in "(area:)?[0-9x,/.]{0,24}") {
        if let Ok(buckets) = Buckets::parse(&text) {
            prop_assert_eq!(Buckets::parse(&buckets.to_string()), Ok(buckets));
        }
    }

    #[test]
    fn a_covered_image_fills_the_result((width, height) in (1..200_u32, 1..200_u32), sample in 0..99_u64) {
        let image = vec![200; (width * height * 3) as usize];
        for text in ["cover48x32", "cover48x32:center", "cover17x80,flip"] {
            let mut augmenter = augmenter(text, None);
            let mut out = vec![0; augmenter.plan().item_bytes()];
            let input = Input::new(key(sample), raw(&image, width, height, 3));
            augmenter.apply(input, &mut [&mut out], &mut []).unwrap();
            prop_assert!(out.iter().all(|value| *value == 200), "{}", text);
            let shown = augmenter.plan().geometry(key(sample), 0, (width, height), &[]).unwrap();
            prop_assert!(shown.x >= 0.0 && shown.y >= 0.0);
            prop_assert!(shown.x + shown.width <= f64::from(width) + 1e-6);
            prop_assert!(shown.y + shown.height <= f64::from(height) + 1e-6);
        }
    }
}

#[test]
fn a_cover_of_the_images_own_size_is_the_image() {
    let image: Vec<u8> = (0..40 * 30 * 3_u32).map(|n| (n % 251) as u8).collect();
    for text in ["cover40x30", "cover40x30:center"] {
        let mut augmenter = augmenter(text, Some((40, 30)));
        let mut out = vec![0; augmenter.plan().item_bytes()];
        augmenter.apply(Input::new(key(3), raw(&image, 40, 30, 3)), &mut [&mut out], &mut []).unwrap();
        assert_eq!(out, image);
    }
}

#[test]
fn the_size_of_a_bucket_becomes_that_of_the_crop() {
    let made = |text: &str| Augment::parse(text).unwrap().in_bucket(size((48, 32))).map(|made| made.to_string());
    assert_eq!(made(""), Ok("cover48x32".to_owned()));
    assert_eq!(made("flip,norm:imagenet"), Ok("cover48x32,flip,norm:imagenet".to_owned()));
    assert_eq!(made("cover,flip"), Ok("cover48x32,flip".to_owned()));
    assert_eq!(made("cover:center"), Ok("cover48x32:center".to_owned()));
    for text in ["rrc224", "resize256", "cover64", "crop32", "letterbox64"] {
        let error = made(text).unwrap_err().to_string();
        assert!(error.contains(&format!("found {text}")) && error.contains("buckets"), "{error}");
    }
}

#[test]
fn a_cover_without_a_size_needs_buckets() {
    let error = plan("cover,flip", None).unwrap_err();
    assert!(matches!(error, AugmentError::Parameter { what: "size", .. }), "{error}");
}

#[test]
fn buckets_that_cannot_be_used_are_refused() {
    for (text, what) in [
        ("", "the text"),
        ("512,", "the text"),
        ("512x", "the text"),
        ("area:4096", "the text"),
        ("area:4096/16/2/3", "the text"),
        ("area:4096/x", "the text"),
        ("0", "size"),
        ("70000", "size"),
        ("512,256", "the ratios of two sizes"),
        ("512x256,640x320", "the ratios of two sizes"),
        ("area:4096/0", "the step"),
        ("area:4096/16/0.5", "the largest ratio"),
        ("area:100/16", "the area"),
        ("area:4000000000/1", "the number of sizes"),
    ] {
        let error = Buckets::parse(text).unwrap_err();
        assert!(matches!(&error, AugmentError::Parameter { what: found, .. } if *found == what), "{text}: {error}");
    }
    assert!(Buckets::new([]).is_err());
}
