//! Tests images in files: the stored orientation, views made by the decoder, and all types and orders of results.

use packds_pixels::ops::{Affine, Emit, Sampling};
use packds_pixels::{
    DecodeOptions, Decoder, Filter, FloatType, Geometry, Layout, Pixels, encode_jpeg, probe, to_layout_into,
};

use super::{apply, augmenter, encoded, key, picture, raw};
use crate::augment::Augmenter;
use crate::augment::draws::Draws;

fn turned_jpeg() -> Vec<u8> {
    let path = "../../fixtures/images/formats/exif_orientation_6.jpg";
    std::fs::read(path).unwrap()
}

fn geometry(resize: &str, crop: &str) -> Geometry {
    Geometry { resize: resize.parse().unwrap(), crop: crop.parse().unwrap(), ..Geometry::default() }
}

/// The output of `packds convert` for a file with these options.
fn converted(file: &[u8], resize: &str, crop: &str, jpeg_scaling: bool) -> Vec<u8> {
    let options = DecodeOptions { jpeg_scaling, ..DecodeOptions::default() };
    let image = Decoder::new(options).render(file, &geometry(resize, crop));
    image.unwrap().data
}

#[test]
fn files_are_shown_as_stored_whatever_exif_says() {
    let file = turned_jpeg();
    assert_eq!(probe(&file).unwrap().orientation, 6);
    let stored = Decoder::new(DecodeOptions::default()).decode(&file).unwrap();
    let (width, height) = (stored.width, stored.height);
    assert_ne!(width, height);
    for text in [
        "rrc16,flip",
        "rrc16,flip,vflip,views:3",
        "crop24,flip",
        "crop24+9?:reflect,flip",
        "center20",
        "center200",
        "resize32,center24,flip",
        "resize20x30,flip",
        "resize40,crop32+2,flip",
    ] {
        let mut augmenter = augmenter(text, None);
        for sample in 0..8 {
            let found = apply(&mut augmenter, sample, encoded(&file));
            let wanted = apply(&mut augmenter, sample, raw(&stored.data, width, height, 3));
            assert!(found == wanted, "{text}, sample {sample}");
        }
    }
}

#[test]
fn resized_centres_are_those_that_are_converted() {
    let image = picture(301, 270, 3, 12);
    let large = encode_jpeg(301, 270, 3, &image, 90).unwrap();
    for file in [large, turned_jpeg()] {
        for (text, resize, crop) in [
            ("resize256,center224", "short:256", "center:224"),
            ("resize40,center40x20", "short:40", "center:40x20"),
            ("resize50x30,center64", "50x30", "center:64"),
            ("center32", "none", "center:32"),
            ("resize33x21", "33x21", "none"),
        ] {
            let wanted = converted(&file, resize, crop, false);
            let found = apply(&mut augmenter(text, None), 0, encoded(&file));
            assert!(found == wanted, "{text}");
            // Both views are flipped. The first one is flipped back for the comparison.
            let twice = format!("{text},flip:1,views:2");
            let found = apply(&mut augmenter(&twice, None), 0, encoded(&file));
            let (first, second) = found.split_at(wanted.len());
            assert!(first == second, "{twice}");
            let width = augmenter(text, None).plan().output().width;
            let back = first
                .chunks_exact(usize::try_from(width).unwrap() * 3)
                .flat_map(|row| row.rchunks_exact(3).flatten().copied());
            assert!(back.eq(wanted), "{twice}");
        }
    }
}

#[test]
fn dct_scaling_is_that_of_the_conversion() {
    let file = encode_jpeg(320, 240, 3, &picture(320, 240, 3, 13), 90).unwrap();
    for (text, resize, crop) in [("resize60,center48", "short:60", "center:48"), ("resize32x32", "32x32", "none")] {
        let found = apply(&mut augmenter(&format!("{text},dct"), None), 0, encoded(&file));
        assert!(found == converted(&file, resize, crop, true), "{text}");
        assert!(found != converted(&file, resize, crop, false), "{text}");
    }
    // A random window of the resized image.
    let whole = converted(&file, "short:60", "none", true);
    let found = apply(&mut augmenter("resize60,crop48,flip,dct", None), 3, encoded(&file));
    let wanted = apply(&mut augmenter("resize60,crop48,flip", Some((80, 60))), 3, raw(&whole, 80, 60, 3));
    assert!(found == wanted);
}

/// Compares the results of one sample in each type and order with those of `Emit`.
fn assert_emits(make: impl Fn(&str) -> Augmenter, channels: u8, norm: &str, norms: [(f32, f32); 3]) {
    let image = picture(37, 23, channels, 14);
    let of = |text: &str| apply(&mut make(text), 5, raw(&image, 37, 23, channels));
    let bytes = of("rrc19x13,flip,jitter:0.4/0/0/0");
    let n = usize::from(channels);
    let (mean, std): (Vec<f32>, Vec<f32>) = norms.into_iter().take(n).unzip();
    for layout in [Layout::Hwc, Layout::Chw] {
        for float in FloatType::ALL {
            let name = float.name();
            let mut wanted = vec![0; bytes.len() * float.n_bytes()];
            let emit = Emit::new(n, Some((&mean, &std)), Some(float), layout).unwrap();
            emit.write_into(&bytes, &mut wanted).unwrap();
            let text = format!("rrc19x13,flip,jitter:0.4/0/0/0,{norm}{name},{layout}");
            assert!(of(&text) == wanted, "{text}, {channels} channels");
        }
        let mut wanted = vec![0; bytes.len()];
        to_layout_into(&bytes, n, layout, &mut wanted).unwrap();
        let text = format!("rrc19x13,flip,jitter:0.4/0/0/0,u8,{layout}");
        assert!(of(&text) == wanted, "{text}, {channels} channels");
    }
}

#[test]
fn every_type_and_order_has_the_values_of_the_conversion() {
    let imagenet = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];
    for channels in [1, 3] {
        let make = |text: &str| super::augmenter_of(text, None, channels);
        assert_emits(make, channels, "", [(0.0, 1.0); 3]);
        assert_emits(make, channels, "norm:0.1307/0.3081,", [(0.1307, 0.3081); 3]);
    }
    let make = |text: &str| super::augmenter_of(text, None, 3);
    assert_emits(make, 3, "norm:imagenet,", imagenet);
}

#[test]
fn rotated_images_blend_as_many_pixels_as_the_filter_says() {
    let image = picture(20, 14, 3, 15);
    let degrees = Draws::new(key(2).root(), 0, 0).uniform(0, (-40.0, 40.0));
    let mut affine = Affine::rotation(20, 14, degrees).unwrap();
    let pixels = Pixels { data: &image, width: 20, height: 14, channels: 3 };
    let mut results = [(); 3].map(|()| vec![0; image.len()]);
    let filters = [
        (Sampling::Bilinear, Filter::Bilinear),
        (Sampling::Nearest, Filter::Nearest),
        (Sampling::Bicubic, Filter::Bicubic),
    ];
    for ((sampling, filter), wanted) in filters.into_iter().zip(&mut results) {
        affine.sampling = sampling;
        affine.apply_into(pixels, wanted).unwrap();
        let text = format!("rotate:40,filter:{filter}");
        let mut augmenter = augmenter(&text, Some((20, 14)));
        assert!(apply(&mut augmenter, 2, raw(&image, 20, 14, 3)) == *wanted, "{text}");
    }
    assert_ne!(results[0], results[1]);
    assert_ne!(results[0], results[2]);
    let mut default = augmenter("rotate:40", Some((20, 14)));
    assert!(apply(&mut default, 2, raw(&image, 20, 14, 3)) == results[0]);
}
