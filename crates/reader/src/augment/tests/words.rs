//! The text form of every augmentation can be parsed again.

use packds_format::DType;
use packds_pixels::{Filter, Layout, Resize};
use proptest::prelude::*;

use crate::augment::{Augment, Padding, Policy, Size};

fn op() -> impl Strategy<Value = fn(Augment, f64, u32) -> Augment> {
    let ops: Vec<fn(Augment, f64, u32) -> Augment> = vec![
        |a, _, n| a.random_resized_crop(n),
        |a, p, n| a.random_resized_crop_with(Size { width: n, height: 7 }, (p / 2.0, p), (0.5, 1.0 + p)),
        |a, _, n| a.random_crop(n, 4, Padding::Constant([1, 2, 3, 0]), true),
        |a, _, n| a.random_crop(n, 0, Padding::Reflect, false),
        |a, _, n| a.center_crop(n),
        |a, p, n| a.iou_crop(n, (p / 2.0, p), (0.5, 1.0 + p)),
        |a, _, n| a.iou_crop(n, (0.3, 1.0), (0.5, 2.0)),
        |a, _, n| a.letterbox(n, [114; 4]),
        |a, _, n| a.letterbox(Size { width: n, height: 9 }, [1, 2, 3, 0]),
        |a, _, n| a.scale_jitter(n, (0.1, 2.0), [0; 4]),
        |a, p, n| a.scale_jitter(n, (0.1, 1.0 + p), [7; 4]),
        |a, _, n| a.short_side((n, n + 9), 3, Some(n + 99)),
        |a, _, n| a.short_side((n, n), 1, None),
        |a, _, n| a.cover(Some(Size::from(n)), false),
        |a, _, n| a.cover(Some(Size { width: n, height: 9 }), true),
        |a, _, _| a.cover(None, true),
        |a, p, _| a.min_box(p * 9.0, 0.0),
        |a, p, _| a.min_box(2.0, p),
        |a, _, n| a.resize(Resize::Short(n)),
        |a, _, n| a.resize(Resize::Exact { width: n, height: n }),
        |a, p, _| a.horizontal_flip(p),
        |a, p, _| a.vertical_flip(p),
        |a, p, _| a.rotation(p * 180.0),
        |a, p, _| a.affine(p, (p, 0.5), (0.5, 1.0 + p), (p, 0.0)),
        |a, p, _| a.color_jitter(p, p, p, p / 2.0),
        |a, p, _| a.color_jitter_with(p, 0.0, p, p / 2.0, p),
        |a, p, _| a.random_grayscale(p),
        |a, p, _| a.gaussian_blur(23, (0.1, 0.1 + p), p),
        |a, p, _| a.solarize(128, p),
        |a, p, _| a.random_erasing(p),
        |a, p, _| a.random_erasing_with(p, (0.0, p), (0.3, 3.3), &[-1.5, 0.25, 3.0]),
        |a, p, _| a.random_erasing_randomly(p, (0.02, 0.33), (0.3, 3.3)),
        |a, p, _| a.random_erasing_randomly(p, (0.0, p), (0.3, 3.3)),
        |a, _, n| a.rand_augment(1 + n % 16, n % 31, 31),
        |a, _, n| a.rand_augment(2, 9, 10 + n % 900),
        |a, _, _| a.rand_augment(2, 9, 31),
        |a, _, n| a.trivial_augment(2 + n % 900),
        |a, _, _| a.trivial_augment(31),
        |a, _, _| a.auto_augment(Policy::ImageNet),
        |a, _, _| a.auto_augment(Policy::Svhn),
        |a, _, _| a.fill(&[1, 2, 3]),
        |a, _, _| a.fill(&[7]),
        |a, _, n| a.cutout(n),
        |a, p, _| a.mixup(0.1 + p),
        |a, p, _| a.cutmix(0.1 + p),
        |a, p, _| a.mosaic(p),
        |a, _, _| a.mosaic(1.0),
        |a, _, n| a.views(n),
        |a, _, _| a.filter(Filter::Lanczos),
        |a, _, _| a.dct_scaling(true),
        |a, _, _| a.normalize_imagenet(),
        |a, _, _| a.normalize(&[0.5], &[0.1]),
        |a, _, _| a.dtype(DType::Bf16),
        |a, _, _| a.layout(Layout::Chw),
    ];
    prop::sample::select(ops)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(steps in prop::collection::vec((op(), 0.0..1.0_f64, 1..999_u32), 0..8)) {
        let augment = steps.iter().fold(Augment::new(), |a, (step, p, n)| step(a, *p, *n));
        prop_assert_eq!(Augment::parse(&augment.to_string()), Ok(augment));
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9:/+?.,x-]{0,24}") {
        let _ = Augment::parse(&text);
    }
}

#[test]
fn every_word_of_the_page_is_read() {
    let page = "rrc224|rrc224:0.2-1.0|crop32+4|center224|ioucrop300|ioucrop300:0.3-1|ioucrop300:0.3-1/0.5-2|letterbox640|letterbox640x384:114|letterbox640:124/116/104|\
        scalejitter1024|scalejitter1024:0.1-2|scalejitter1024:0.8-1.2/128|minbox:8|minbox:8/0.25|cover512|cover512x384:center|cover|shortside:800|shortside:800/1333|shortside:480-800|shortside:480-800+32/1333|resize256|resize256x128|flip|vflip|rotate:15|affine:15|\
        affine:15/0.1/0.1|affine:15/0.1/0.1/0.9-1.1/10|jitter:0.4/0.4/0.4/0.1|gray:0.2|blur:23/0.1-2|solarize:128/0.2|\
        randaugment|randaugment:2/9|randaugment:1/5/10|trivialaugment|trivialaugment:10|autoaugment|autoaugment:imagenet|\
        autoaugment:cifar10|autoaugment:svhn|fill:128|fill:1/2/3|erase:0.25|erase:0.25/random|\
        erase:0.25/0.02-0.4/0.3-3.3/random|erase:0.1/0.02-0.4/0.3-3.3/1/2/3|cutout:16|mixup:0.2|cutmix:1|views:2|filter:bicubic|dct|norm:imagenet|norm:0.5/0.5|u8|f32|f16|bf16|chw|hwc";
    for word in page.split('|') {
        let augment = Augment::parse(word).unwrap();
        assert_eq!(Augment::parse(&augment.to_string()).unwrap(), augment, "{word}");
    }
}
