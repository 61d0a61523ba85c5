//! Results whose size depends on the sample.

use proptest::prelude::*;

use super::{augmenter, key, plan, raw};
use crate::augment::{Augment, AugmentError, Input};

proptest! {
    #[test]
    fn the_image_and_its_mask_are_those_of_a_resize_to_the_drawn_size(
        (width, height) in (1..60_u32, 1..60_u32),
        sample in 0..500_u64,
        rest in prop::sample::select(vec!["", ",flip", ",flip,rotate:20", ",f32,chw", ",erase:1,norm:imagenet"]),
    ) {
        let image: Vec<u8> = (0..width * height * 3).map(|n| (n * 7 % 251) as u8).collect();
        let mask: Vec<u8> = (0..width * height).map(|n| (n % 251) as u8).collect();
        let masked = |mask| Some(raw(mask, width, height, 1));
        let input = |image, mask| Input::new(key(sample), raw(image, width, height, 3)).with_mask(masked(mask));
        let mut varied = augmenter(&format!("shortside:10-40+3/50{rest}"), None);
        let (mut out, mut mask_out) = (vec![1; 7], vec![1; 99_999]);
        let size = varied.apply_varied(input(&image, &mask), &mut out, &mut mask_out).unwrap();
        prop_assert!(size.0.max(size.1) <= 50 && size.0.min(size.1) <= 40);
        let mut fixed = augmenter(&format!("resize{}x{}{rest}", size.0, size.1), None);
        let mut expected = vec![0; fixed.plan().item_bytes()];
        let mut expected_mask = vec![0; (size.0 * size.1) as usize];
        fixed.apply(input(&image, &mask), &mut [&mut expected], &mut [&mut expected_mask]).unwrap();
        prop_assert!(out == expected && mask_out == expected_mask);
        let shown = varied.plan().geometry(key(sample), 0, (width, height), &[]).unwrap();
        prop_assert_eq!((shown.out_width, shown.out_height), size);
        prop_assert_eq!(Ok(shown), fixed.plan().geometry(key(sample), 0, (width, height), &[]));
    }
}

#[test]
fn every_length_of_the_range_is_drawn() {
    let plan = plan("shortside:20-40+5", None).unwrap();
    let sides = (0..200).map(|sample| plan.geometry(key(sample), 0, (100, 50), &[]).unwrap().out_height);
    assert_eq!(sides.collect::<std::collections::BTreeSet<_>>(), [20, 25, 30, 35, 40].into());
}

#[test]
fn a_crop_after_a_random_short_side_fixes_the_size() {
    let plan = plan("shortside:40-60,crop32,flip", None).unwrap();
    assert!(!plan.sizes_vary());
    assert_eq!((plan.output().width, plan.item_bytes()), (32, 32 * 32 * 3));
}

#[test]
fn a_short_side_that_cannot_be_used_is_refused() {
    for text in
        ["shortside", "shortside:", "shortside:4-", "shortside:4-8+", "shortside:8/", "shortside:8/9/10", "shortside8"]
    {
        assert!(matches!(Augment::parse(text), Err(AugmentError::Word { .. })), "{text}");
    }
    for text in
        ["shortside:0", "shortside:8-4", "shortside:4-70000", "shortside:4-8+0", "shortside:8/4", "shortside:8/0"]
    {
        assert!(matches!(Augment::parse(text), Err(AugmentError::Parameter { .. })), "{text}");
    }
    for text in ["shortside:8,mixup:1", "shortside:8,cutmix:1", "shortside:8,views:2"] {
        assert!(matches!(plan(text, None), Err(AugmentError::Parameter { .. })), "{text}");
    }
    for text in
        ["resize9,shortside:8", "shortside:8,resize9", "shortside:8,rrc9", "shortside:8,letterbox9", "flip,shortside:8"]
    {
        assert!(matches!(plan(text, None), Err(AugmentError::Order { .. })), "{text}");
    }
}

#[test]
fn a_picture_that_would_become_too_large_is_refused() {
    let image = vec![0; 30_000 * 3];
    let mut augmenter = augmenter("shortside:60000", None);
    let input = Input::new(key(0), raw(&image, 30_000, 1, 3));
    let error = augmenter.apply_varied(input, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, AugmentError::Pixels(_)), "{error}");
}
