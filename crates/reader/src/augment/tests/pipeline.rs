//! Whole pipelines, compared with the functions that they consist of.

use std::sync::Arc;

use packds_pixels::ops::{Affine, adjust_brightness, solarize, to_grayscale};
use packds_pixels::{Area, Filter, Image, Pixels, encode_jpeg, encode_png, resize};

use super::{apply, augmenter, encoded, key, picture, plan, raw};
use crate::augment::draws::Draws;
use crate::augment::erase::{cut_out, erased, normals};
use crate::augment::frame::{Frame, Scene, Shown};
use crate::augment::op::Size;
use crate::augment::policy::drawn;
use crate::augment::steps::Step;
use crate::augment::{Augment, Augmenter, Input, Mix};
use crate::device::Patch;

const SIMCLR: &str = "rrc32:0.2-1,flip,jitter:0.4/0.4/0.4/0.1/0.8,gray:0.2,blur:5/0.1-2,solarize:128/0.2,erase:0.5,\
    views:2,norm:imagenet,f16,chw";

fn cut(image: &[u8], width: u32, area: Area) -> Image {
    let n = |v: u32| usize::try_from(v).unwrap();
    let rows = (area.y..area.y + area.height).flat_map(|y| {
        let start = (n(y) * n(width) + n(area.x)) * 3;
        image[start..start + n(area.width) * 3].to_vec()
    });
    Image { width: area.width, height: area.height, channels: 3, data: rows.collect() }
}

fn mirrored(pixels: &[u8], width: usize) -> Vec<u8> {
    let rows = pixels.chunks_exact(width * 3);
    rows.flat_map(|row| row.chunks_exact(3).rev().flatten().copied().collect::<Vec<u8>>()).collect()
}

#[test]
fn a_random_resized_crop_is_the_resize_of_its_area() {
    let image = picture(60, 40, 3, 1);
    let jpeg = encode_jpeg(60, 40, 3, &image, 90).unwrap();
    let decoded = packds_pixels::Decoder::new(packds_pixels::DecodeOptions::default()).decode(&jpeg).unwrap().data;
    let mut augmenter = augmenter("rrc16,flip", None);
    let size = Size { width: 60, height: 40 };
    for sample in 0..30 {
        let frame = Frame::draw(&augmenter.plan().ops, Scene::of(size), key(sample).root(), 0).unwrap();
        let Shown::Area(area) = frame.shown else { panic!("not an area") };
        for (from, pixels) in [(raw(&image, 60, 40, 3), &image), (encoded(&jpeg), &decoded)] {
            let mut wanted = resize(&cut(pixels, 60, area), 16, 16, Filter::Bilinear).unwrap().data;
            if frame.flip_horizontal {
                wanted = mirrored(&wanted, 16);
            }
            assert_eq!(apply(&mut augmenter, sample, from), wanted);
        }
    }
}

#[test]
fn centre_crops_show_the_middle_of_the_resized_picture() {
    let image = picture(51, 40, 3, 2);
    let source = Image { width: 51, height: 40, channels: 3, data: image.clone() };
    let half = resize(&source, 25, 20, Filter::Bilinear).unwrap();
    let middle = cut(&half.data, 25, Area { x: 4, y: 2, width: 16, height: 16 });
    let found = apply(&mut augmenter("resize20,center16", None), 0, raw(&image, 51, 40, 3));
    assert_eq!(found, middle.data);
    // Half of 51 - 20 is between two pixels. Python's round chooses the even one, 16.
    let even = Area { x: 16, y: 10, width: 20, height: 20 };
    let found = apply(&mut augmenter("center20", None), 0, raw(&image, 51, 40, 3));
    assert_eq!(found, cut(&image, 51, even).data);
    let larger = apply(&mut augmenter("center60", None), 0, raw(&image, 51, 40, 3));
    assert_eq!(larger[..60 * 3 * 10], vec![0; 60 * 3 * 10]);
    assert_eq!(larger[(60 * 10 + 4) * 3..][..51 * 3], image[..51 * 3]);
}

#[test]
fn padded_crops_of_files_and_pixels_are_equal() {
    let image = picture(32, 32, 3, 3);
    let png = encode_png(32, 32, 3, &image).unwrap();
    for mode in ["", ":edge", ":reflect", ":symmetric", ":9"] {
        let mut augmenter = augmenter(&format!("crop32+4{mode},flip,vflip"), None);
        for sample in 0..20 {
            let from_pixels = apply(&mut augmenter, sample, raw(&image, 32, 32, 3));
            assert_eq!(from_pixels, apply(&mut augmenter, sample, encoded(&png)), "{mode}");
        }
    }
}

#[test]
fn colour_ops_get_their_own_draws() {
    let image = picture(8, 8, 3, 4);
    for sample in 0..20 {
        let root = key(sample).root();
        let mut wanted = image.clone();
        #[expect(clippy::cast_possible_truncation, reason = "rounds like the pipeline")]
        let factor = Draws::new(root, 0, 0).uniform(4, (0.5, 1.5)) as f32;
        adjust_brightness(&mut wanted, factor);
        if Draws::new(root, 0, 1).chance(0, 0.5) {
            to_grayscale(&mut wanted, 3);
        }
        solarize(&mut wanted, 100);
        let mut augmenter = augmenter("jitter:0.5/0/0/0,gray:0.5,solarize:100/1", Some((8, 8)));
        assert_eq!(apply(&mut augmenter, sample, raw(&image, 8, 8, 3)), wanted);
    }
}

#[test]
fn rotations_are_maps_of_the_crop_and_masks_follow() {
    let (image, mask) = (picture(16, 16, 3, 5), picture(16, 16, 1, 6));
    let mut augmenter = augmenter("flip:1,rotate:40,jitter:0.9/0/0/0,erase:1,f32", Some((16, 16)));
    let (mut out, mut mask_out) = (vec![0; 16 * 16 * 12], vec![0; 256]);
    augmenter
        .apply(
            Input::new(key(9), raw(&image, 16, 16, 3)).with_mask(Some(raw(&mask, 16, 16, 1))),
            &mut [&mut out],
            &mut [&mut mask_out],
        )
        .unwrap();
    let degrees = Draws::new(key(9).root(), 0, 1).uniform(0, (-40.0, 40.0));
    let affine = Affine::rotation(16, 16, degrees).unwrap();
    let flipped: Vec<u8> = mask.chunks(16).flat_map(|row| row.iter().rev().copied()).collect();
    let mut wanted = vec![0; 256];
    let pixels = Pixels { data: &flipped, width: 16, height: 16, channels: 1 };
    affine.apply_into(pixels, &mut wanted).unwrap();
    assert_eq!(mask_out, wanted);
    assert_ne!(wanted, flipped);
}

#[test]
fn masks_show_the_pixels_that_images_show() {
    // The mask is the image itself, so with nearest-neighbour resizing, both results must be equal.
    let image = picture(30, 20, 3, 7);
    for text in ["rrc8,flip,vflip,filter:nearest,views:2", "resize16,crop12+2,flip,filter:nearest,views:2"] {
        let mut augmenter = augmenter(text, None);
        let n = augmenter.plan().item_bytes();
        let mut memory = vec![vec![0; n]; 4];
        for sample in 0..20 {
            let [a, b, c, d] = memory.as_mut_slice() else { panic!("four") };
            let from = raw(&image, 30, 20, 3);
            augmenter.apply(Input::new(key(sample), from).with_mask(Some(from)), &mut [a, b], &mut [c, d]).unwrap();
            assert_eq!((&a, &b), (&c, &d), "{text}");
            assert_ne!(a, b, "views differ");
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_or_order() {
    let files: Vec<Vec<u8>> =
        (0..24).map(|seed| encode_jpeg(48, 40, 3, &picture(48, 40, 3, seed), 90).unwrap()).collect();
    let plan = Arc::new(plan(SIMCLR, None).unwrap());
    let mut one = Augmenter::new(Arc::clone(&plan));
    let in_order: Vec<Vec<u8>> =
        (0_u64..).zip(&files).map(|(sample, file)| apply(&mut one, sample, encoded(file))).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (plan, files, in_order) = (Arc::clone(&plan), &files, &in_order);
            scope.spawn(move || {
                let mut augmenter = Augmenter::new(plan);
                for step in 0..24_u64 {
                    let sample = (step * 7 + thread * 5) % 24;
                    let place = usize::try_from(sample).unwrap();
                    assert_eq!(apply(&mut augmenter, sample, encoded(&files[place])), in_order[place]);
                }
            });
        }
    });
}

#[test]
fn erasing_sets_finished_values_in_every_layout() {
    let image = picture(12, 10, 3, 8);
    let patch = cut_out(Draws::new(key(4).root(), 0, 0), Size { width: 12, height: 10 }, 5);
    for (layout, pixel, plane) in [("hwc", 3, 1), ("chw", 1, 120)] {
        let found = apply(
            &mut augmenter(&format!("cutout:5,{layout},norm:0.5/0.5"), Some((12, 10))),
            4,
            raw(&image, 12, 10, 3),
        );
        let whole = apply(&mut augmenter(&format!("{layout},norm:0.5/0.5"), Some((12, 10))), 4, raw(&image, 12, 10, 3));
        for (y, x, c) in (0..10).flat_map(|y| (0..12).flat_map(move |x| (0..3).map(move |c| (y, x, c)))) {
            let at = 4 * usize::try_from((y * 12 + x) * pixel + c * plane).unwrap();
            let inside = (patch.x.0..patch.x.1).contains(&x) && (patch.y.0..patch.y.1).contains(&y);
            let wanted = if inside { &[0; 4][..] } else { &whole[at..at + 4] };
            assert_eq!(&found[at..at + 4], wanted, "{layout} {x} {y} {c}");
        }
    }
}

#[test]
fn mixing_blends_with_the_sample_before() {
    let keys = [key(0), key(1), key(2)];
    let values = [[0.5_f32; 12], [1.0; 12], [-2.0; 12]];
    let batch: Vec<u8> = values.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let plan_f32 = plan("mixup:1,f32", Some((2, 2))).unwrap();
    let mut mixed = batch.clone();
    let Mix { partner, lambda } = plan_f32.mix(&keys, &mut mixed).unwrap().unwrap();
    assert_eq!(partner, [2, 0, 1]);
    let floats: Vec<f32> = mixed.as_chunks::<4>().0.iter().map(|v| f32::from_le_bytes(*v)).collect();
    for (place, item) in floats.chunks(12).enumerate() {
        let other = values[[2, 0, 1][place]][0];
        let wanted = lambda[place] * values[place][0] + (1.0 - lambda[place]) * other;
        assert!(item.iter().all(|value| value.to_bits() == wanted.to_bits()));
    }
    let alone = plan_f32.mix(&keys[1..2], &mut batch[..48].to_vec()).unwrap().unwrap();
    assert_eq!(alone.lambda[0].to_bits(), lambda[1].to_bits(), "shares do not depend on the batch");
}

#[test]
fn cutmix_shows_as_much_of_the_partner_as_lambda_says() {
    for layout in ["hwc", "chw"] {
        let plan = plan(&format!("cutmix:1,{layout}"), Some((10, 8))).unwrap();
        let keys: Vec<_> = (0..40).map(key).collect();
        let mut batch: Vec<u8> = (0..40_u8).flat_map(|sample| [sample; 240]).collect();
        let Mix { partner, lambda } = plan.mix(&keys, &mut batch).unwrap().unwrap();
        for (place, item) in batch.chunks(240).enumerate() {
            let own = item.iter().filter(|v| usize::from(**v) == place).count();
            let other = item.iter().filter(|v| u32::from(**v) == partner[place]).count();
            assert_eq!(own + other, 240);
            assert!((own as f64 / 240.0 - f64::from(lambda[place])).abs() < 1e-6);
        }
    }
}

#[test]
fn soft_labels_give_each_class_its_share() {
    let mix = Mix { partner: vec![2, 0, 1], lambda: vec![0.75, 0.5, 1.0] };
    let soft = mix.soft_labels(&[3, 0, 0], 4).unwrap();
    let wanted = [[0.25, 0.0, 0.0, 0.75], [0.5, 0.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0]];
    assert_eq!(soft, wanted.concat());
    // A sample and its partner have the same class.
    assert_eq!(mix.soft_labels(&[1, 1, 1], 2).unwrap(), [0.0, 1.0].repeat(3));
    let empty = Mix { partner: vec![], lambda: vec![] };
    assert!(empty.soft_labels::<i64>(&[], 0).unwrap().is_empty());
}

#[test]
fn bytes_are_mixed_to_the_nearest() {
    let plan = plan("mixup:0.5", Some((1, 1))).unwrap();
    let mut batch = [10, 20, 30, 110, 120, 255];
    let Mix { lambda, .. } = plan.mix(&[key(0), key(1)], &mut batch).unwrap().unwrap();
    for (found, (own, other)) in batch.iter().zip([(10, 110), (20, 120), (30, 255)]) {
        let exact = f64::from(lambda[0]) * f64::from(own) + (1.0 - f64::from(lambda[0])) * f64::from(other);
        assert!((f64::from(*found) - exact).abs() < 0.501);
    }
    assert_eq!(Augment::new(), Augment::default());
}

#[test]
fn every_channel_is_erased_with_its_own_value() {
    let image = picture(9, 9, 3, 10);
    for layout in ["hwc", "chw"] {
        let text = format!("erase:1/0.2-0.3/1-1/7/8/9,{layout}");
        let found = apply(&mut augmenter(&text, Some((9, 9))), 1, raw(&image, 9, 9, 3));
        let plain = apply(&mut augmenter(layout, Some((9, 9))), 1, raw(&image, 9, 9, 3));
        let mut erased = [0; 3];
        for (at, (value, before)) in found.iter().zip(&plain).enumerate() {
            let channel = if layout == "hwc" { at % 3 } else { at / 81 };
            if value != before {
                assert_eq!(*value, [7, 8, 9][channel], "{layout} {at}");
                erased[channel] += 1;
            }
        }
        assert!(erased.iter().all(|n| (14..=25).contains(n)), "{erased:?}");
    }
}

#[test]
fn affine_maps_take_their_documented_draws() {
    let image = picture(20, 10, 3, 11);
    let mut augmenter = augmenter("affine:30/0.2/0.3/0.8-1.2/10/5,filter:nearest", Some((20, 10)));
    for sample in 0..10 {
        let draws = Draws::new(key(sample).root(), 0, 0);
        let both = |index, most: f64| draws.uniform(index, (-most, most));
        let moved = (both(1, 4.0).round_ties_even(), both(2, 3.0).round_ties_even());
        let scale = draws.uniform(3, (0.8, 1.2));
        let shear = (both(4, 10.0), both(5, 5.0));
        let affine = Affine::new(20, 10, both(0, 30.0), moved, scale, shear).unwrap();
        let mut wanted = vec![0; image.len()];
        let pixels = Pixels { data: &image, width: 20, height: 10, channels: 3 };
        affine.apply_into(pixels, &mut wanted).unwrap();
        assert_eq!(apply(&mut augmenter, sample, raw(&image, 20, 10, 3)), wanted);
    }
}

#[test]
fn every_word_that_turns_pictures_has_the_fill_outside() {
    let white = vec![255; 20 * 10 * 3];
    for text in ["rotate:40", "affine:40/0.3/0.3/0.5-0.8", "randaugment:6/30", "trivialaugment"] {
        let mut seen = [false; 2];
        for (fill, seen) in ["", ",fill:9/80/201"].into_iter().zip(&mut seen) {
            let mut augmenter = augmenter(&format!("{text}{fill},filter:nearest"), Some((20, 10)));
            for sample in 0..40 {
                let found = apply(&mut augmenter, sample, raw(&white, 20, 10, 3));
                let outside = if fill.is_empty() { [0, 0, 0] } else { [9, 80, 201] };
                *seen |= found.as_chunks::<3>().0.contains(&outside);
            }
        }
        assert_eq!(seen, [true; 2], "{text}");
    }
}

#[test]
fn policies_move_masks_with_their_images_and_leave_their_values() {
    // A mask of numbered pixels shows where each pixel of the image came from.
    let image = picture(15, 11, 3, 12);
    let mask: Vec<u8> = (1..=165).collect();
    let mut moved = 0;
    for text in ["randaugment:1/20", "trivialaugment", "autoaugment:svhn"] {
        let mut augmenter = augmenter(text, Some((15, 11)));
        for sample in 0..60 {
            let draws = Draws::new(key(sample).root(), 0, 0);
            let op = Augment::parse(text).unwrap().ops.remove(0);
            let (mut out, mut mask_out) = (vec![0; image.len()], vec![0; mask.len()]);
            let from = raw(&mask, 15, 11, 1);
            augmenter
                .apply(
                    Input::new(key(sample), raw(&image, 15, 11, 3)).with_mask(Some(from)),
                    &mut [&mut out],
                    &mut [&mut mask_out],
                )
                .unwrap();
            let (mut wanted, mut spare) = (mask.clone(), mask.clone());
            let size = Size { width: 15, height: 11 };
            for drawn in drawn(&op, draws, size) {
                if let Some(Step::Map(affine)) = drawn.step(size).unwrap() {
                    let pixels = Pixels { data: &wanted, width: 15, height: 11, channels: 1 };
                    affine.apply_into(pixels, &mut spare).unwrap();
                    std::mem::swap(&mut wanted, &mut spare);
                    moved += 1;
                }
            }
            assert_eq!(mask_out, wanted, "{text} {sample}");
        }
    }
    assert!(moved > 40, "{moved}");
}

#[test]
fn random_erasing_is_the_same_in_every_layout_and_type() {
    let image = picture(12, 10, 3, 8);
    let text = "erase:1/0.2-0.3/0.5-2/random,norm:0.5/0.5";
    let of = |layout: &str| {
        let bytes = apply(&mut augmenter(&format!("{text},{layout},f32"), Some((12, 10))), 4, raw(&image, 12, 10, 3));
        let floats: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|v| f32::from_le_bytes(*v)).collect();
        floats
    };
    let (planes, pixels) = (of("chw"), of("hwc"));
    let draws = Draws::new(key(4).root(), 0, 0);
    let size = Size { width: 12, height: 10 };
    let Patch { x, y } = erased(draws, size, 1.0, (0.2, 0.3), (0.5, 2.0)).unwrap();
    let mut number = 0;
    for (c, row, column) in
        (0..3).flat_map(|c| (0..10).flat_map(move |row| (0..12).map(move |column| (c, row, column))))
    {
        let at = |n: u32| usize::try_from(n).unwrap();
        let value = planes[at((c * 10 + row) * 12 + column)];
        assert_eq!(value.to_bits(), pixels[at((row * 12 + column) * 3 + c)].to_bits());
        if (x.0..x.1).contains(&column) && (y.0..y.1).contains(&row) {
            let wanted = normals(draws, number / 2)[usize::from(number % 2 == 1)];
            assert_eq!(value.to_bits(), wanted.to_bits(), "{c} {row} {column}");
            number += 1;
        } else {
            assert!((-1.0..=1.0).contains(&value));
        }
    }
    assert!(number > 40, "{number}");
}
