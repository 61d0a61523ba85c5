//! Tests images that the loader augments.

use std::path::PathBuf;
use std::sync::Arc;

use packds_format::{
    BlockBuilder, Coding, DType, Field, FieldKind, FooterParts, PackOptions, PackWriter, Role, Schema,
};
use packds_pixels::{Pixels, encode_jpeg};
use tempfile::TempDir;

use super::{builder, some};
use crate::augment::{Augment, AugmentPlan, Augmenter, ImageSource, Input, Picture, SampleKey, Size};
use crate::loader::{BadSamples, Kept, LoadError, Loader};
use crate::plan::{Order, Ranks};
use crate::{Access, Pack, open};

const SIDE: u32 = 20;

fn image(sample: u64) -> Vec<u8> {
    let byte = |i: u64| (packds_format::mix64(sample * 5000 + i) & 0xFF) as u8;
    (0..u64::from(SIDE * SIDE * 3)).map(byte).collect()
}

fn mask(sample: u64) -> Vec<u8> {
    image(sample + 1_000_000)[..(SIDE * SIDE) as usize].to_vec()
}

/// A pack of `n` raw images with masks and labels.
fn raw_pack(n: u64) -> (TempDir, Arc<Pack>) {
    let side = u64::from(SIDE);
    let layout = |mut field: Field| {
        field.layout = Some("hwc".to_owned());
        field
    };
    let fields = vec![
        layout(Field::tensor("image", DType::U8, &[side, side, 3]).with_role(Role::Image)),
        layout(Field::tensor("mask", DType::U8, &[side, side, 1]).with_role(Role::Mask)),
        Field::column("label", DType::I32, &[]).with_role(Role::Label),
    ];
    write(n, fields, |block, sample| {
        block.tensor_mut(0).unwrap().copy_from_slice(&image(sample));
        block.tensor_mut(1).unwrap().copy_from_slice(&mask(sample));
        block.set_column(2, &(sample as i32).to_le_bytes()).unwrap();
    })
}

/// A variable-size image field, and the columns that describe it.
pub(super) fn sized(name: &str, role: Role) -> Vec<Field> {
    let column = |what: &str, dtype, role| {
        let mut field = Field::column(&format!("{name}_{what}"), dtype, &[]).with_role(role);
        field.of = Some(name.to_owned());
        field
    };
    vec![
        Field::variable(name, FieldKind::Image).with_role(role),
        column("coding", DType::U8, Role::Coding),
        column("width", DType::U32, Role::Width),
        column("height", DType::U32, Role::Height),
        column("channels", DType::U8, Role::Channels),
    ]
}

/// Writes an item into field number `first`, and its properties into the four columns that follow.
pub(super) fn put(
    block: &mut BlockBuilder,
    first: usize,
    item: &[u8],
    coding: Coding,
    (width, height, channels): (u32, u32, u8),
) {
    block.item_mut(first).unwrap().extend(item);
    block.set_column(first + 1, &[coding.number()]).unwrap();
    block.set_column(first + 2, &width.to_le_bytes()).unwrap();
    block.set_column(first + 3, &height.to_le_bytes()).unwrap();
    block.set_column(first + 4, &[channels]).unwrap();
}

/// A pack of `n` variable-size JPEG files. Sample `bad` is truncated.
pub(super) fn jpeg_pack(n: u64, bad: Option<u64>) -> (TempDir, Arc<Pack>) {
    write(n, sized("image", Role::Image), |block, sample| {
        let (width, height) = (40 + sample as u32 % 30, 30 + sample as u32 % 50);
        let pixels: Vec<u8> = (0..width * height * 3).map(|i| (i / 7 + sample as u32) as u8).collect();
        let mut file = encode_jpeg(width, height, 3, &pixels, 90).unwrap();
        if Some(sample) == bad {
            file.truncate(100);
        }
        put(block, 0, &file, Coding::Jpeg, (width, height, 3));
    })
}

/// Wrong sizes for 20 x 20 pixels with this many channels.
fn wrong_sizes(channels: u8) -> Vec<(u32, u32, u8)> {
    let most = u32::MAX;
    let mut sizes = vec![(20, 20, 0), (20, 20, channels + 1), (20, 20, u8::MAX)];
    for (width, height) in
        [(0, 0), (0, 20), (20, 0), (1, 1), (20, 21), (21, 20), (1, most), (most, 1), (most, most), (1 << 31, 1 << 31)]
    {
        sizes.push((width, height, channels));
    }
    sizes
}

/// A pack of 4 raw images with masks, all of 20 x 20 pixels. The columns of sample 2 are wrong.
fn missized(image_size: (u32, u32, u8), mask_size: (u32, u32, u8)) -> (TempDir, Arc<Pack>) {
    let fields = [sized("image", Role::Image), sized("mask", Role::Mask)].concat();
    write(4, fields, |block, sample| {
        let (mut of_image, mut of_mask) = ((SIDE, SIDE, 3), (SIDE, SIDE, 1));
        if sample == 2 {
            (of_image, of_mask) = (image_size, mask_size);
        }
        put(block, 0, &image(sample), Coding::Raw, of_image);
        put(block, 5, &mask(sample), Coding::Raw, of_mask);
    })
}

#[test]
fn a_stored_size_that_the_pixels_do_not_have_is_an_error_that_names_the_sample() {
    let right = ((SIDE, SIDE, 3), (SIDE, SIDE, 1));
    let of_images = wrong_sizes(3).into_iter().map(|size| (size, right.1));
    let of_masks = wrong_sizes(1).into_iter().map(|size| (right.0, size));
    for (image_size, mask_size) in of_images.chain(of_masks) {
        let (_folder, pack) = missized(image_size, mask_size);
        for ops in [
            "rrc12",
            "rrc12,flip,views:2",
            "crop12",
            "crop24+2?:reflect",
            "center12",
            "center30",
            "resize12x12",
            "resize12,center12",
            "resize12,crop8+4",
            "rrc12,rotate:30",
            "center12,affine:30/0.1/0.1/0.5-2/10,jitter:0.4/0.4/0.4/0.1,blur:3/0.1-2",
        ] {
            let what = format!("{image_size:?} {mask_size:?} {ops}");
            let loader = augmented(&pack, ops).batch(4).build().unwrap();
            let error = loader.epoch(0).unwrap().find_map(Result::err).expect(&what);
            assert!(matches!(error, LoadError::Sample { sample: 2, .. }), "{what}: {error}");
            let told = error.to_string();
            assert!(told.contains("a.pack: sample 2 (chunk 0): "), "{what}: {told}");
        }
        let loader = augmented(&pack, "rrc12").batch(4).build().unwrap();
        if image_size != right.0 {
            let error = Kept::take(&loader).unwrap_err();
            assert!(matches!(error, LoadError::Sample { sample: 2, .. }), "{image_size:?}: {error}");
        }
    }
    // The other samples are correct.
    let (_folder, pack) = missized((0, SIDE, 3), right.1);
    let skips = augmented(&pack, "rrc12").batch(4).bad_samples(BadSamples::Skip);
    let batch = skips.build().unwrap().epoch(0).unwrap().next().unwrap();
    let mut ids = batch.unwrap().ids().to_vec();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 3]);
}

pub(super) fn write(
    n: u64,
    fields: Vec<Field>,
    sample_into: impl FnMut(&mut BlockBuilder, u64),
) -> (TempDir, Arc<Pack>) {
    write_with(n, fields, FooterParts::default(), sample_into)
}

/// Like `write`, with these additional parts in the footer.
pub(super) fn write_with(
    n: u64,
    fields: Vec<Field>,
    footer: FooterParts,
    mut sample_into: impl FnMut(&mut BlockBuilder, u64),
) -> (TempDir, Arc<Pack>) {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("a.pack");
    let options = PackOptions::new(Schema::new(fields).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..n).step_by(8) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + 8) {
            sample_into(&mut block, sample);
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    let bytes = writer.finish(footer).unwrap().0;
    std::fs::write(&path, bytes).unwrap();
    (folder, Arc::new(open(path).unwrap()))
}

fn augmented(pack: &Arc<Pack>, ops: &str) -> super::LoaderBuilder {
    builder(pack).order(Order::Random).augment(Augment::parse(ops).unwrap())
}

/// The result of augmenting one sample without a loader.
fn directly(ops: &str, epoch: u32, sample: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let source = ImageSource::raw(Some(Size::from(SIDE)), 3);
    let plan = AugmentPlan::new(&Augment::parse(ops).unwrap(), &source).unwrap();
    let output = plan.output();
    let mut outs = vec![vec![0; plan.item_bytes()]; output.views as usize];
    let mut masks = vec![vec![0; (output.width * output.height) as usize]; output.views as usize];
    let raw = |data, channels| Picture::Raw(Pixels { data, width: SIDE, height: SIDE, channels });
    let key = SampleKey { seed: 7, epoch, sample };
    let (image, mask) = (image(sample), mask(sample));
    Augmenter::new(Arc::new(plan))
        .apply(
            Input::new(key, raw(&image, 3)).with_mask(Some(raw(&mask, 1))),
            &mut outs.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
            &mut masks.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
        )
        .unwrap();
    (outs, masks)
}

#[test]
fn images_and_masks_are_what_the_augmentation_makes_of_each_sample() {
    let (_folder, pack) = raw_pack(64);
    for ops in ["crop16+4,flip", "rrc8,flip,views:2", "rrc8,norm:imagenet,f32,chw", "resize10x10,f16"] {
        for (threads, access) in [(1, Access::Mapped), (3, Access::Direct)] {
            let loader = augmented(&pack, ops).threads(some(threads)).access(access).build().unwrap();
            for batch in loader.epoch(3).unwrap() {
                let batch = batch.unwrap();
                for (row, id) in batch.ids().iter().enumerate() {
                    let (images, masks) = directly(ops, 3, *id);
                    for (view, (image, mask)) in images.iter().zip(&masks).enumerate() {
                        let got = batch.view("image", view as u32).unwrap().bytes;
                        assert_eq!(got[row * image.len()..][..image.len()], **image, "{ops}");
                        let got = batch.view("mask", view as u32).unwrap().bytes;
                        assert_eq!(got[row * mask.len()..][..mask.len()], **mask, "{ops}");
                    }
                    assert_eq!(batch.elements::<i32>("label").unwrap()[row], *id as i32);
                }
            }
        }
    }
}

#[test]
fn shapes_and_types_are_those_of_the_augmentation() {
    let (_folder, pack) = raw_pack(32);
    let loader = augmented(&pack, "rrc8,norm:imagenet,bf16,chw").build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let images = batch.field("image").unwrap();
    assert_eq!((images.dtype, images.shape), (DType::Bf16, vec![16, 3, 8, 8]));
    let masks = batch.field("mask").unwrap();
    assert_eq!((masks.dtype, masks.shape), (DType::U8, vec![16, 8, 8, 1]));
    assert_eq!(batch.elements::<half::bf16>("image").unwrap().len(), 16 * 3 * 64);
}

#[test]
fn what_is_drawn_for_a_sample_does_not_depend_on_ranks_or_batches() {
    let (_folder, pack) = jpeg_pack(64, None);
    let all = |loaders: Vec<Loader>| {
        let mut images: Vec<(u64, Vec<u8>)> = Vec::new();
        for loader in loaders {
            for batch in loader.epoch(1).unwrap() {
                let batch = batch.unwrap();
                for (row, id) in batch.ids().iter().enumerate() {
                    images.push((*id, batch.item("image", row).unwrap().to_vec()));
                }
            }
        }
        images.sort();
        images
    };
    let one = all(vec![augmented(&pack, "rrc12,flip").threads(some(1)).build().unwrap()]);
    let ranks = (0..4).map(|rank| {
        let ranks = Ranks::new(rank, 4).unwrap();
        augmented(&pack, "rrc12,flip").ranks(ranks).batch(2).threads(some(2)).build().unwrap()
    });
    assert_eq!(one.len(), 64);
    assert_eq!(all(ranks.collect()), one);
}

#[test]
fn mixing_tells_partners_and_shares() {
    let (_folder, pack) = raw_pack(32);
    let plain = augmented(&pack, "f32").build().unwrap();
    let mixed = augmented(&pack, "f32,mixup:0.4").build().unwrap();
    let (plain, mixed) = (plain.epoch(0).unwrap(), mixed.epoch(0).unwrap());
    for (plain, mixed) in plain.zip(mixed) {
        let (plain, mixed) = (plain.unwrap(), mixed.unwrap());
        assert!(plain.mix().is_none());
        let mix = mixed.mix().unwrap();
        let (from, to) = (plain.elements::<f32>("image").unwrap(), mixed.elements::<f32>("image").unwrap());
        let n = from.len() / plain.len();
        for row in 0..plain.len() {
            let (own, other) = (mix.lambda[row], mix.partner[row] as usize);
            let expected = own * from[row * n + 5] + (1.0 - own) * from[other * n + 5];
            assert!((to[row * n + 5] - expected).abs() < 1e-4);
        }
    }
}

#[test]
fn images_of_many_sizes_need_an_augmentation_that_gives_one() {
    let (_folder, pack) = jpeg_pack(8, None);
    let error = augmented(&pack, "flip").build().unwrap_err();
    assert!(matches!(error, LoadError::Augment { .. }), "{error}");
    assert!(error.to_string().contains("a.pack: the images vary in size"), "{error}");
    // Without augmentation, images are delivered as files.
    let loader = builder(&pack).batch(4).build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.item("image", 0).unwrap()[..2], [0xFF, 0xD8]);
}

#[test]
fn a_file_that_does_not_decode_is_named_with_its_sample() {
    let (_folder, pack) = jpeg_pack(16, Some(5));
    let loader = augmented(&pack, "rrc12").build().unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("a.pack: sample 5 (chunk 0)"), "{error}");
}

#[test]
fn an_augmentation_without_images_is_refused() {
    let (_folder, pack) = raw_pack(8);
    let error = augmented(&pack, "flip").fields(&["label"]).build().unwrap_err().to_string();
    assert!(error.contains("nothing to augment"), "{error}");
}

#[test]
fn masks_without_a_dimension_for_channels_follow_their_images() {
    let side = u64::from(SIDE);
    let mut image = Field::tensor("image", DType::U8, &[side, side, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    let mask_field = Field::tensor("mask", DType::U8, &[side, side]).with_role(Role::Mask);
    let (_folder, pack) = write(16, vec![image, mask_field], |block, sample| {
        block.tensor_mut(0).unwrap().copy_from_slice(&self::image(sample));
        block.tensor_mut(1).unwrap().copy_from_slice(&mask(sample));
    });
    let ops = "rrc8,flip";
    let loader = augmented(&pack, ops).build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.field("mask").unwrap().shape, [16, 8, 8]);
    for (row, id) in batch.ids().iter().enumerate() {
        assert_eq!(batch.item("mask", row).unwrap(), directly(ops, 0, *id).1[0]);
    }
}
