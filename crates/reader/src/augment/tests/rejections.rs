//! One test for each reason for rejection.

use packds_format::{DType, Field, FieldKind};
use packds_pixels::{Encoded, PixelError};

use super::{apply, augmenter, key, picture, plan, raw};
use crate::augment::{Augment, AugmentError, AugmentPlan, ImageSource, Input, Mix, Picture};

fn refused(text: &str) -> AugmentError {
    plan(text, Some((64, 64))).unwrap_err()
}

#[test]
fn unknown_words_are_named_with_what_is_known() {
    let message = refused("rrc32,spin").to_string();
    assert!(message.starts_with("augmentation \"spin\": expected one of rrc, crop"), "{message}");
    let message = refused("rrcx").to_string();
    assert!(message.contains("one of"), "{message}");
}

#[test]
fn words_in_capitals_are_named_as_they_are_written() {
    for (word, lower) in [
        ("RandAugment", "randaugment"),
        ("autoaugment:CIFAR10", "autoaugment:cifar10"),
        ("RRC224:0.2-1", "rrc224:0.2-1"),
        ("Norm:ImageNet", "norm:imagenet"),
    ] {
        let expected = format!("augmentation {word:?}: expected {lower}: words must be in lower case");
        assert_eq!(refused(word).to_string(), expected);
    }
}

#[test]
fn augmix_is_told_not_to_be_there() {
    for word in ["augmix", "AugMix", "augmix:3"] {
        let message = refused(word).to_string();
        assert!(message.contains("AugMix is not supported"), "{message}");
        assert!(message.contains("trivialaugment"), "{message}");
    }
}

#[test]
fn a_map_with_a_number_too_few_is_told_which() {
    for (word, missing) in [
        ("affine:10/0.2", "; Y is missing after X"),
        ("affine:10/a", "; Y is missing after X"),
        ("affine:1/0/0/1-1/2/3/4", "; found 7 values, expected at most 6"),
    ] {
        let message = refused(word).to_string();
        assert!(message.contains("expected affine:DEGREES["), "{message}");
        assert!(message.ends_with(missing), "{message}");
    }
}

#[test]
fn malformed_words_are_named_with_their_form() {
    for word in [
        "rrc",
        "rrc32:1",
        "crop32+",
        "center32:1",
        "resize",
        "flip:",
        "flip:x",
        "jitter:1/2",
        "u8:1",
        "f3",
        "norm:1",
        "views:-1",
        "blur:3",
        "erase:0.5/0-1",
        "erase:random",
        "randaugment:2",
        "autoaugment:mnist",
        "trivialaugment:a",
        "fill",
        "fill:256",
        "fill:1/2",
        "dct9",
    ] {
        let error = refused(word);
        assert!(matches!(&error, AugmentError::Word { word: w, .. } if w == word), "{word}: {error}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (text, what) in [
        ("rrc0", "size"),
        ("rrc32:0.5-0.2", "scale"),
        ("rrc32:0.1-1/0-1", "ratio"),
        ("crop32+70000", "padding"),
        ("flip:1.5", "probability"),
        ("rotate:181", "angle"),
        ("affine:1/2/0", "horizontal shift"),
        ("affine:1/0/0/0-1", "scale"),
        ("affine:1/0/0/1-1/90", "horizontal shear"),
        ("jitter:0/0/0/0.6", "hue"),
        ("jitter:-1/0/0/0", "brightness"),
        ("blur:4/1-2", "kernel"),
        ("blur:3/0-2", "sigma"),
        ("erase:0.5/0.1-0.2/1-2/256", "value"),
        ("erase:0.5/random", "value"),
        ("randaugment:0/9", "number of operations"),
        ("randaugment:2/31", "magnitude"),
        ("randaugment:2/0/1", "number of bins"),
        ("trivialaugment:1", "number of bins"),
        ("fill:9,flip", "setting"),
        ("cutout:0", "size"),
        ("views:0", "number"),
        ("mixup:0", "alpha"),
        ("norm:0/0", "deviation"),
        ("norm:0/1,u8", "type of the result"),
        ("norm:0/0/1/1", "mean"),
        ("mixup:1,views:2", "number of views"),
        ("mosaic:1.5", "probability"),
        ("mosaic,views:2", "number of views"),
    ] {
        let error = refused(text);
        assert!(matches!(error, AugmentError::Parameter { what: w, .. } if w == what), "{text}: {error}");
    }
}

#[test]
fn ops_out_of_order_are_refused_with_the_reason() {
    for (text, reason) in [
        ("resize40,rrc32", "omit the resize"),
        ("rrc32,resize40", "move it to the front"),
        ("flip,center32", "move the crop forward"),
        ("center32,crop16", "only one crop"),
        ("rotate:5,flip", "right after the crop"),
        ("gray,rotate:5", "come before policies, colours"),
        ("gray,randaugment", "policies must come before colours"),
        ("autoaugment,rotate:5", "come before policies"),
        ("cutout:4,gray", "erasing must come last"),
    ] {
        let error = refused(text);
        assert!(matches!(error, AugmentError::Order { .. }), "{text}: {error}");
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
}

#[test]
fn what_may_stand_once_may_not_stand_twice() {
    for text in ["flip,flip:0.1", "rrc32,rrc32", "f32,f16", "chw,hwc", "views:2,views:2"] {
        let error = refused(text);
        assert!(matches!(error, AugmentError::Twice { .. }), "{text}: {error}");
    }
}

#[test]
fn sources_that_are_no_bytes_of_pixels_are_refused() {
    let source = |change: fn(&mut ImageSource)| {
        let mut source = ImageSource::raw(None, 3);
        change(&mut source);
        AugmentPlan::new(&Augment::new().center_crop(8), &source).unwrap_err()
    };
    let errors = [
        source(|s| s.dtype = DType::F32),
        source(|s| s.layout = packds_pixels::Layout::Chw),
        source(|s| s.channels = 4),
        ImageSource::of_field(&Field::variable("text", FieldKind::String)).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, AugmentError::Source { .. }), "{error}");
    }
}

#[test]
fn sizes_that_vary_need_an_op_that_gives_one() {
    for text in ["", "flip", "resize32,flip"] {
        assert_eq!(plan(text, None).unwrap_err(), AugmentError::SizesVary);
    }
    assert!(plan("resize32,center32", None).is_ok());
}

#[test]
fn crops_larger_than_the_picture_are_refused() {
    let error = refused("crop100+4");
    assert!(error.to_string().contains("at least 100x100, found 72x72"), "{error}");
    assert!(plan("crop100+4?", Some((64, 64))).is_ok());
    let image = picture(20, 20, 3, 1);
    let mut out = vec![0; 32 * 32 * 3];
    let error = augmenter("crop32", None)
        .apply(Input::new(key(0), raw(&image, 20, 20, 3)), &mut [&mut out], &mut [])
        .unwrap_err();
    assert!(matches!(error, AugmentError::TooSmall { .. }));
}

#[test]
fn pictures_without_pixels_have_no_crops() {
    for text in ["rrc8", "crop8", "crop8+8", "center8", "resize8,center8"] {
        let plan = plan(text, None).unwrap();
        for (width, height) in [(0, 0), (0, 9), (9, 0)] {
            let error = plan.crops(key(0), (width, height), &[]).unwrap_err();
            let AugmentError::Picture { what: "size", found, .. } = error else {
                panic!("{text}: {error}");
            };
            assert_eq!(found, format!("{width}x{height}"));
        }
    }
}

#[test]
fn pictures_masks_and_buffers_that_do_not_fit_are_refused() {
    let image = picture(20, 20, 3, 1);
    let mut augmenter = augmenter("center8", None);
    let mut out = vec![0; 8 * 8 * 3];
    let mut apply = |channels, mask, out: &mut [u8], mask_outs: &mut [&mut [u8]]| {
        let pixels = &image[..20 * 20 * usize::from(channels)];
        augmenter
            .apply(Input::new(key(0), raw(pixels, 20, 20, channels)).with_mask(mask), &mut [out], mask_outs)
            .unwrap_err()
    };
    let error = apply(1, None, &mut out, &mut []);
    assert!(matches!(error, AugmentError::Picture { .. }));
    let error = apply(3, None, &mut out[1..], &mut []);
    assert!(matches!(error, AugmentError::Buffer { expected: 192, found: 191, .. }));
    let mask = raw(&image[..19 * 20], 19, 20, 1);
    let error = apply(3, Some(mask), &mut out, &mut [&mut [0; 64]]);
    assert!(matches!(error, AugmentError::MaskSize { .. }));
    let mask = raw(&image[..400], 20, 20, 1);
    let error = apply(3, Some(mask), &mut out, &mut []);
    assert!(matches!(error, AugmentError::Buffer { expected: 1, found: 0, .. }));
}

#[test]
fn errors_of_the_pixels_pass_through() {
    let garbage = Picture::Encoded(Encoded { bytes: b"not an image", seek_index: None });
    let mut out = vec![0; 8 * 8 * 3];
    let error = augmenter("center8", None).apply(Input::new(key(0), garbage), &mut [&mut out], &mut []).unwrap_err();
    let unknown = matches!(error, AugmentError::Pixels(PixelError::UnknownFormat { .. }));
    assert!(unknown, "{error}");
}

#[test]
fn labels_of_no_class_are_refused() {
    let mix = Mix { partner: vec![1, 0], lambda: vec![0.5, 0.5] };
    for (labels, n_classes, place, found) in
        [([0, 10], 10, 1, 10), ([-1, 0], 10, 0, -1), ([0, 0], 0, 0, 0), ([0, i64::MAX], usize::MAX, 1, i64::MAX)]
    {
        let error = mix.soft_labels(&labels, n_classes).unwrap_err();
        let wanted = AugmentError::Label { place, n_classes, found };
        if n_classes < usize::MAX {
            assert_eq!(error, wanted);
        } else {
            let no_memory = matches!(error, AugmentError::Pixels(PixelError::OutOfMemory { .. }));
            assert!(no_memory, "{error}");
        }
    }
    let message = mix.soft_labels(&[0, 10], 10).unwrap_err().to_string();
    assert_eq!(message, "label 1 of the batch: expected a class id of at least 0 and below 10, found 10");
}

#[test]
fn labels_that_are_not_those_of_the_batch_are_refused() {
    let mix = |partner: &[u32], lambda: &[f32]| Mix { partner: partner.to_vec(), lambda: lambda.to_vec() };
    for (mix, expected, found) in
        [(mix(&[1, 0], &[0.5; 2]), 2, 3), (mix(&[1, 0, 2], &[0.5; 2]), 3, 2), (mix(&[1, 3, 0], &[0.5; 3]), 4, 3)]
    {
        let error = mix.soft_labels(&[0, 0, 0], 5).unwrap_err();
        let fits = matches!(error, AugmentError::Buffer { expected: e, found: f, .. } if (e, f) == (expected, found));
        assert!(fits, "{error}");
    }
}

#[test]
fn dct_scaling_without_a_resize_is_refused() {
    for text in ["rrc32,dct", "crop32,flip,dct", "center32,dct", "dct"] {
        let error = refused(text);
        let is_dct = matches!(&error, AugmentError::Parameter { op, .. } if op == "dct");
        assert!(is_dct, "{text}: {error}");
    }
    assert!(plan("resize32,crop24,dct", None).is_ok());
}

#[test]
fn batches_of_another_length_are_not_mixed() {
    let plan = plan("mixup:1", Some((2, 2))).unwrap();
    let error = plan.mix(&[key(0), key(1)], &mut [0; 23]).unwrap_err();
    assert!(matches!(error, AugmentError::Buffer { expected: 24, found: 23, .. }));
    let plain = super::plan("flip", Some((2, 2))).unwrap();
    assert_eq!(plain.mix(&[], &mut []).unwrap(), None);
    let image = picture(2, 2, 3, 0);
    assert_eq!(apply(&mut augmenter("", Some((2, 2))), 0, raw(&image, 2, 2, 3)), image);
}
