//! The test vectors of docs/reference/augmentation.md, and the distributions of the draws.

use std::path::Path;
use std::process::Command;

use packds_pixels::Area;
use serde_json::{Value, json};

use super::{key, plan};
use crate::augment::color::jitter_order;
use crate::augment::draws::{Draws, MIX};
use crate::augment::erase::{erased, normals};
use crate::augment::frame::{Frame, Scene, Shown};
use crate::augment::iou_crop::iou_crop;
use crate::augment::op::{CROP_RATIO, CROP_SCALE, ERASE_RATIO, ERASE_SCALE, Op, Size};
use crate::augment::policy::{self, POLICY_OPS, PolicyOp, Space};
use crate::augment::{Augment, BoundingBox, Policy, SampleKey};
use crate::device::Patch;

const VECTORS: &str = include_str!("../../../../../fixtures/augment/vectors.json");

fn close(found: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12, "found {found}, expected {expected}");
}

/// The area of a random resized crop whose op number is `number`. Each op has its own draws, so the crops before it do
/// not matter.
fn area(key: SampleKey, view: u32, size: (u32, u32), op: &Op, number: u32) -> Area {
    let mut ops = vec![Op::CenterCrop(Size::from(1)); usize::try_from(number).unwrap()];
    ops.push(op.clone());
    let size = Size { width: size.0, height: size.1 };
    match Frame::draw(&ops, Scene::of(size), key.root(), view).unwrap().shown {
        Shown::Area(area) => area,
        Shown::Window { .. } => panic!("a random resized crop is an area"),
    }
}

/// The boxes of the test vectors.
const BOXES: [BoundingBox; 3] = [[10.0, 20.0, 60.0, 50.5], [300.0, 40.0, 480.0, 360.0], [-5.0, 100.0, 40.0, 380.0]];

fn rrc(scale: (f64, f64)) -> Op {
    Op::RandomResizedCrop { size: Size::from(224), scale, ratio: CROP_RATIO }
}

fn corners(area: Area) -> Value {
    json!([area.x, area.y, area.width, area.height])
}

#[test]
fn draws_are_the_documented_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 36);
    for vector in &vectors {
        let at: Vec<u64> = (0..5).map(|i| vector["at"][i].as_str().unwrap().parse().unwrap()).collect();
        let key = SampleKey { seed: at[0], epoch: u32::try_from(at[1]).unwrap(), sample: at[2] };
        let (view, op) = (u32::try_from(at[3]).unwrap(), u32::try_from(at[4]).unwrap());
        let draws = Draws::new(key.root(), view, op);
        let words = [draws.word(0).to_string(), draws.word(1).to_string()];
        assert_eq!(json!(words), vector["words"]);
        assert_eq!(json!(draws.chance(0, 0.5)), vector["flip"]);
        let small = area(key, view, (500, 375), &rrc(CROP_SCALE), op);
        assert_eq!(corners(small), vector["rrc_500x375"]);
        for (name, (width, height), n, scale, ratio) in [
            ("ioucrop_500x375", (500, 375), 3, (0.3, 1.0), (0.5, 2.0)),
            ("ioucrop_90x60", (90, 60), 1, (0.1, 0.9), (0.25, 4.0)),
        ] {
            let scene = Scene { size: Size { width, height }, boxes: &BOXES[..n] };
            assert_eq!(json!(iou_crop(draws, scene, scale, ratio).map(corners)), vector[name]);
        }
        let wide = area(key, view, (900, 64), &rrc((0.5, 1.0)), op);
        assert_eq!(corners(wide), vector["rrc_900x64"]);
        let patch = erased(draws, Size::from(224), 0.75, ERASE_SCALE, ERASE_RATIO);
        let patch = patch.map(|Patch { x, y }| [x.0, y.0, x.1 - x.0, y.1 - y.0]);
        assert_eq!(json!(patch), vector["erase_224"]);
        for (idx, which) in jitter_order(draws).iter().enumerate() {
            assert_eq!(json!(which), vector["jitter"][idx]);
        }
        for (idx, value) in [normals(draws, 0), normals(draws, 1)].as_flattened().iter().enumerate() {
            let wanted = vector["normals"][idx].as_f64().unwrap();
            assert!((f64::from(*value) - wanted).abs() < 1e-6, "found {value}, expected {wanted}");
        }
        close(draws.uniform(4, (0.6, 1.4)), &vector["jitter"][4]);
        close(draws.uniform(7, (-0.1, 0.1)), &vector["jitter"][7]);
        let mix = Draws::new(key.root(), MIX, MIX);
        close(mix.beta(1, 0.2), &vector["mixup_0.2"]);
        let mixing = plan("cutmix:1", Some((224, 224))).unwrap();
        let share = mixing.share(key);
        assert_eq!(share.own, None);
        let Patch { x, y } = share.patch;
        assert_eq!(json!([x.0, x.1, y.0, y.1]), vector["cutmix_1_on_224"]);
        let tiles = plan("resize90x61,mosaic:0.5", None).unwrap().tiles(key);
        assert_eq!(json!(tiles.map(|[first, ..]| [first.to.x.1, first.to.y.1])), vector["mosaic_0.5_on_90x61"]);
    }
}

#[test]
fn padded_crops_are_the_documented_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let Augment { ops, .. } = Augment::parse("crop32+4").unwrap();
    let Augment { ops: jitter, .. } = Augment::parse("scalejitter256").unwrap();
    let Augment { ops: cover, .. } = Augment::parse("cover192x256").unwrap();
    let short_side = plan("shortside:480-800+32/1000", None).unwrap();
    for vector in vectors.iter().filter(|vector| vector["at"][4] == "0") {
        let number = |idx: usize| vector["at"][idx].as_str().unwrap().parse::<u64>().unwrap();
        let key = SampleKey { seed: number(0), epoch: u32::try_from(number(1)).unwrap(), sample: number(2) };
        let view = u32::try_from(number(3)).unwrap();
        let frame = Frame::draw(&ops, Scene::of(Size::from(32)), key.root(), view).unwrap();
        let Shown::Window { x, y, .. } = frame.shown else { panic!("a random crop is a window") };
        assert_eq!(json!([x, y]), vector["crop32_4"]);
        let scene = Scene::of(Size { width: 500, height: 375 });
        let frame = Frame::draw(&jitter, scene, key.root(), view).unwrap();
        let Shown::Window { resized, x, y } = frame.shown else { panic!("a resized image is a window") };
        assert_eq!(json!([resized.width, resized.height, x, y]), vector["scalejitter256_500x375"]);
        let frame = Frame::draw(&cover, scene, key.root(), view).unwrap();
        let Shown::Window { resized, x, y } = frame.shown else { panic!("a resized image is a window") };
        assert_eq!(json!([resized.width, resized.height, x, y]), vector["cover192x256_500x375"]);
        if view == 0 {
            let shown = short_side.geometry(key, view, (500, 375), &[]).unwrap();
            assert_eq!(json!([shown.out_width, shown.out_height]), vector["shortside480_500x375"]);
        }
    }
}

/// Asserts that a policy draws what a test vector says.
fn assert_policy_ops(text: &str, draws: Draws, (width, height): (u32, u32), wanted: &Value) {
    let Augment { ops, .. } = Augment::parse(text).unwrap();
    let drawn: Vec<_> = policy::drawn(&ops[0], draws, Size { width, height }).collect();
    let wanted = wanted.as_array().unwrap();
    assert_eq!(drawn.len(), wanted.len(), "{text} {drawn:?} {wanted:?}");
    for (found, wanted) in drawn.iter().zip(wanted) {
        assert_eq!(json!(format!("{:?}", found.op)), wanted[0], "{text}");
        close(found.magnitude, &wanted[1]);
    }
}

#[test]
fn policies_draw_the_documented_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors {
        let number = |idx: usize| vector["at"][idx].as_str().unwrap().parse::<u64>().unwrap();
        let key = SampleKey { seed: number(0), epoch: u32::try_from(number(1)).unwrap(), sample: number(2) };
        let small = |idx| u32::try_from(number(idx)).unwrap();
        let draws = Draws::new(key.root(), small(3), small(4));
        for (text, size, name) in [
            ("randaugment", (224, 160), "randaugment_224x160"),
            ("trivialaugment", (9, 9), "trivialaugment"),
            ("autoaugment", (32, 32), "autoaugment_imagenet_32x32"),
            ("autoaugment:cifar10", (32, 32), "autoaugment_cifar10_32x32"),
            ("autoaugment:svhn", (32, 32), "autoaugment_svhn_32x32"),
        ] {
            assert_policy_ops(text, draws, size, &vector[name]);
        }
    }
}

/// The share of each of `n` results in 40,000 samples.
fn shares(n: usize, which: impl Fn(Draws) -> usize) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    for sample in 0..40_000 {
        counts[which(Draws::new(key(sample).root(), 0, 0))] += 1.0 / 40_000.0;
    }
    counts
}

fn assert_even(shares: &[f64]) {
    let even = 1.0 / shares.len() as f64;
    for share in shares {
        assert!((share - even).abs() < 5.0 * (even / 40_000.0).sqrt(), "{shares:?}");
    }
}

#[test]
fn random_policies_draw_operations_magnitudes_and_signs_evenly() {
    let size = Size::from(224);
    let of = |text: &str| Augment::parse(text).unwrap().ops.remove(0);
    let (rand, trivial) = (of("randaugment:3/9"), of("trivialaugment:11"));
    let place = |op: PolicyOp| POLICY_OPS.iter().position(|known| *known == op).unwrap();
    for number in 0..3 {
        assert_even(&shares(14, |draws| place(policy::drawn(&rand, draws, size).nth(number).unwrap().op)));
    }
    assert_even(&shares(14, |draws| place(policy::drawn(&trivial, draws, size).next().unwrap().op)));
    // Compares the bins and signs of magnitudes in the wide space, for the nine operations that have both. Index 22
    // counts the other operations.
    let bin = |drawn: policy::Drawn| {
        (0..11)
            .position(|bin| {
                let known = Space::Wide.magnitude(drawn.op, bin, 11);
                (known - drawn.magnitude.abs()).abs() < 1e-6
            })
            .unwrap()
    };
    let turned = |draws| policy::drawn(&trivial, draws, size).next().unwrap();
    let shares = shares(23, |draws| match turned(draws) {
        drawn if !(1..10).contains(&place(drawn.op)) => 22,
        drawn => 2 * bin(drawn) + usize::from(drawn.magnitude.is_sign_negative()),
    });
    assert!((shares[22] - 5.0 / 14.0).abs() < 0.012, "{shares:?}");
    for share in &shares[..22] {
        assert!((share - 9.0 / 14.0 / 22.0).abs() < 0.005, "{shares:?}");
    }
}

#[test]
fn learned_policies_draw_pairs_evenly_and_keep_their_probabilities() {
    let svhn = Augment::parse("autoaugment:svhn").unwrap().ops.remove(0);
    let first = |draws| policy::drawn(&svhn, draws, Size::from(32)).next();
    let shares = shares(3, |draws| match first(draws) {
        None => 0,
        Some(drawn) if drawn.op == PolicyOp::Solarize => 1,
        Some(_) => 2,
    });
    assert!(shares.iter().all(|share| *share > 0.01), "{shares:?}");
    let pairs = 25.0;
    // Solarize is applied first in two cases: it is the first operation of its pair and is applied (with a probability
    // of 0.7 in one of the pairs), or it is the second and the first is not applied.
    let second = [(0.6, 0.6), (0.9, 0.2), (0.9, 0.3), (0.7, 0.4)];
    let left: f64 = second.iter().map(|(p, q)| (1.0 - p) * q).sum();
    let wanted = (0.7 + left) / pairs;
    assert!((shares[1] - wanted).abs() < 0.004, "{shares:?} {wanted}");
    assert_eq!(Policy::Svhn.to_string(), "svhn");
}

#[test]
fn random_values_are_normally_distributed() {
    let draws = Draws::new(key(1).root(), 0, 0);
    let value = |n: u64| f64::from(normals(draws, n / 2)[usize::from(n % 2 == 1)]);
    let (mean, variance) = moments(40_000, value);
    assert!(mean.abs() < 0.02, "{mean}");
    assert!((variance - 1.0).abs() < 0.03, "{variance}");
    let (fourth, _) = moments(40_000, |n| value(n).powi(4));
    assert!((fourth - 3.0).abs() < 0.25, "{fourth}");
    let (product, _) = moments(20_000, |n| value(2 * n) * value(2 * n + 1));
    assert!(product.abs() < 0.03, "{product}");
}

#[test]
fn the_script_of_the_page_computes_the_same_vectors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("PACKDS_PYTHON").map_or(root.join(".venv/bin/python"), Into::into);
    let output = Command::new(&python)
        .arg(root.join("docs/reference/augment_draws.py"))
        .arg(root.join("fixtures/augment/vectors.json"))
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}: run scripts/setup", python.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

/// Mean and variance of `n` numbers.
fn moments(n: u64, number: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (0..n).map(number).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, squares / values.len() as f64)
}

#[test]
fn crops_have_the_moments_of_their_distribution() {
    // In a large square, areas up to 3/4 fit with every ratio up to 4/3, so no attempt is rejected. Both the area and
    // the logarithm of the ratio are then exactly uniform.
    let crop = rrc((0.08, 0.7));
    let of = |sample| area(key(sample), 0, (4000, 4000), &crop, 0);
    let share = |area: Area| f64::from(area.width) * f64::from(area.height) / 16e6;
    let (mean, variance) = moments(40_000, |sample| share(of(sample)));
    assert!((mean - 0.39).abs() < 0.004, "{mean}");
    assert!((variance - 0.62_f64.powi(2) / 12.0).abs() < 0.0006, "{variance}");
    let ratio = |area: Area| (f64::from(area.width) / f64::from(area.height)).ln();
    let (mean, variance) = moments(40_000, |sample| ratio(of(sample)));
    let width = 2.0 * (4.0_f64 / 3.0).ln();
    assert!(mean.abs() < 0.004, "{mean}");
    assert!((variance - width.powi(2) / 12.0).abs() < 0.0007, "{variance}");
    let middle = |area: Area| f64::from(area.x) / f64::from(4000 - area.width);
    let (mean, variance) = moments(40_000, |sample| middle(of(sample)));
    assert!((mean - 0.5).abs() < 0.006, "{mean}");
    assert!((variance - 1.0 / 12.0).abs() < 0.0015, "{variance}");
}

#[test]
fn shares_are_beta_distributed() {
    for alpha in [0.1, 0.2, 0.5, 1.0, 2.0, 8.0] {
        let draw = |sample| Draws::new(key(sample).root(), MIX, MIX).beta(1, alpha);
        let (mean, variance) = moments(40_000, draw);
        let expected = 0.25 / (2.0 * alpha + 1.0);
        assert!((mean - 0.5).abs() < 0.01, "{alpha}: {mean}");
        assert!((variance - expected).abs() < 0.03 * expected, "{alpha}: {variance}");
        let (fourth, _) = moments(40_000, |sample| (draw(sample) - 0.5).powi(4));
        let fourth_expected = 3.0 / 16.0 / ((2.0 * alpha + 1.0) * (2.0 * alpha + 3.0));
        let error = (fourth - fourth_expected).abs();
        assert!(error < 0.05 * fourth_expected, "{alpha}: {fourth}");
    }
}

#[test]
fn chances_of_0_and_1_are_never_and_always() {
    for sample in 0..1000 {
        let draws = Draws::new(key(sample).root(), 0, 0);
        assert!(!draws.chance(0, 0.0) && draws.chance(0, 1.0));
    }
    assert!(plan("flip:0", Some((2, 2))).is_ok());
}
