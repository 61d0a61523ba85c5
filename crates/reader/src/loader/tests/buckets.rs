//! Batches in buckets: their sizes and pixels, resuming, ranks, and what is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use packds_format::{Coding, DType, Field, FieldKind, Role};
use packds_pixels::Encoded;

use super::images::{jpeg_pack, put, sized, write};
use super::{builder, opened, some};
use crate::augment::{Augment, AugmentPlan, Augmenter, Buckets, ImageSource, Input, Picture, SampleKey, Size};
use crate::device::Staged;
use crate::loader::{BadSamples, Epoch, Kept, LoadError, LoaderBuilder};
use crate::plan::{Last, Order, PlanError, Ranks};
use crate::{Access, Pack};

const SIZES: &str = "32,40x24,24x40,28x32";

fn bucketed(pack: &Arc<Pack>, augment: &str) -> LoaderBuilder {
    let augment = Augment::parse(augment).unwrap();
    builder(pack).batch(6).order(Order::Random).augment(augment).buckets(Buckets::parse(SIZES).unwrap())
}

/// The bucket of a stored sample.
fn size_of(pack: &Pack, sample: u64) -> Size {
    let (height, width, _) = pack.item_shape("image", sample).unwrap().unwrap();
    let buckets = Buckets::parse(SIZES).unwrap();
    buckets.sizes()[usize::from(buckets.nearest(width as u32, height as u32))]
}

/// The samples and the pixels of each batch.
fn batches(epoch: Epoch) -> Vec<(Vec<u64>, Vec<usize>, Vec<u8>)> {
    let of = |batch: Result<super::super::Batch, LoadError>| {
        let batch = batch.unwrap();
        let image = batch.field("image").unwrap();
        (batch.ids().to_vec(), image.shape.clone(), image.bytes.to_vec())
    };
    epoch.map(of).collect()
}

#[test]
fn images_are_those_of_a_cover_of_the_size_of_their_bucket() {
    let (_folder, pack) = jpeg_pack(100, None);
    let mut seen = BTreeSet::new();
    for (given, cover) in [("flip", "cover"), ("cover:center,flip,f32,chw", "cover:center")] {
        let loader = bucketed(&pack, given).threads(some(3)).build().unwrap();
        assert!(loader.has_buckets());
        let epoch = loader.epoch(2).unwrap();
        for batch in epoch {
            let batch = batch.unwrap();
            let size = size_of(&pack, batch.ids()[0]);
            seen.insert(size.to_string());
            let own = format!("cover{size}{}", cover.strip_prefix("cover").unwrap());
            let text = given.replace(cover, &own);
            let text = if given == "flip" { format!("{own},flip") } else { text };
            let plan = AugmentPlan::new(&Augment::parse(&text).unwrap(), &ImageSource::raw(None, 3)).unwrap();
            let mut augmenter = Augmenter::new(Arc::new(plan));
            let (width, height) = (size.width as usize, size.height as usize);
            let shape = if given == "flip" { [height, width, 3] } else { [3, height, width] };
            assert_eq!(batch.field("image").unwrap().shape, [&[6], &shape[..]].concat());
            assert_eq!(batch.fields()[0].shape.as_deref(), Some(&shape[..]));
            for (row, id) in batch.ids().iter().enumerate() {
                assert_eq!(size_of(&pack, *id), size);
                let sample = pack.sample(*id).unwrap();
                let bytes = &sample.field("image").unwrap().bytes;
                let picture = Picture::Encoded(Encoded { bytes, seek_index: None });
                let mut out = vec![0; augmenter.plan().item_bytes()];
                let key = SampleKey { seed: 7, epoch: 2, sample: *id };
                augmenter.apply(Input::new(key, picture), &mut [&mut out], &mut []).unwrap();
                assert!(batch.item("image", row).unwrap() == out, "{text} {id}");
            }
            let geometry = batch.geometry().unwrap();
            let sizes = geometry.view(0).unwrap().into_iter().map(|part| (part.out_width, part.out_height));
            assert_eq!(sizes.collect::<Vec<_>>(), [(size.width, size.height); 6]);
        }
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn the_number_of_threads_and_the_access_do_not_change_batches() {
    let (_folder, pack) = jpeg_pack(100, None);
    for order in [Order::Random, Order::Window { chunks: Some(3) }, Order::Sequential, Order::Chunks] {
        let with = |threads, access| {
            let loader = bucketed(&pack, "flip,jitter:0.4/0.4/0.4/0.1").order(order).threads(some(threads));
            let loader = loader.access(access).build().unwrap();
            let all = batches(loader.epoch(0).unwrap());
            assert_eq!(all.len() as u64, loader.steps().unwrap());
            all
        };
        let expected = with(1, Access::Mapped);
        assert!(expected == with(2, Access::Mapped));
        assert!(expected == with(5, Access::Direct));
    }
}

#[test]
fn an_epoch_can_be_continued_at_every_step() {
    let (_folder, pack) = jpeg_pack(80, None);
    for last in [Last::Drop, Last::Pad] {
        let loader = bucketed(&pack, "flip").last(last).build().unwrap();
        let whole = batches(loader.epoch(1).unwrap());
        for taken in 1..whole.len() {
            let mut epoch = loader.epoch(1).unwrap();
            epoch.by_ref().take(taken).for_each(|batch| drop(batch.unwrap()));
            let state = epoch.state();
            drop(epoch);
            let resumed = bucketed(&pack, "flip").last(last).resume(&state).build().unwrap();
            assert!(batches(resumed.epoch_at(&state).unwrap()) == whole[taken..]);
        }
    }
}

#[test]
fn all_ranks_have_the_same_bucket_at_each_step() {
    let (_folder, pack) = jpeg_pack(150, None);
    let of_rank = |rank| {
        let loader = bucketed(&pack, "").batch(3).ranks(Ranks::new(rank, 2).unwrap()).build().unwrap();
        batches(loader.epoch(0).unwrap())
    };
    let (first, second) = (of_rank(0), of_rank(1));
    assert_eq!(first.len(), second.len());
    let mut seen = BTreeSet::new();
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.1, other.1);
        seen.extend(one.0.iter().chain(&other.0).copied());
    }
    assert_eq!(seen.len(), first.len() * 6);
}

#[test]
fn bad_samples_are_left_out_or_replaced() {
    let (_folder, pack) = jpeg_pack(60, Some(17));
    for (policy, n) in [(BadSamples::Skip, 5), (BadSamples::Substitute, 6)] {
        let loader = bucketed(&pack, "flip").last(Last::Pad).bad_samples(policy).build().unwrap();
        let bad = loader.epoch(0).unwrap().map(Result::unwrap).find(|batch| !batch.bad_samples().is_empty()).unwrap();
        assert_eq!((bad.len(), bad.bad_samples()[0].sample), (n, 17));
        let size = size_of(&pack, 17);
        let shape = vec![n, size.height as usize, size.width as usize, 3];
        assert_eq!(bad.field("image").unwrap().shape, shape);
    }
}

#[test]
fn a_batch_can_be_repeated_to_measure_it() {
    let (_folder, pack) = jpeg_pack(60, None);
    let loader = bucketed(&pack, "flip").build().unwrap();
    let first = batches(loader.epoch(0).unwrap()).swap_remove(0);
    let kept = Arc::new(Kept::take(&loader).unwrap());
    let decoded = Arc::new(kept.decoded().unwrap());
    let processed = Arc::new(kept.processed(&loader).unwrap().unwrap());
    for form in [kept, decoded, processed] {
        let batch = loader.repeat(&form).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.field("image").unwrap().shape, first.1);
        assert!(batch.field("image").unwrap().bytes == first.2);
    }
}

#[test]
fn masks_and_images_of_one_size_are_in_one_bucket() {
    let fields = [sized("image", Role::Image), sized("mask", Role::Mask)].concat();
    let (_folder, pack) = write(12, fields, |block, sample| {
        let pixels: Vec<u8> = (0..24 * 20).map(|n| (n * 7 + sample as usize) as u8).collect();
        put(block, 0, &pixels.iter().flat_map(|value| [*value; 3]).collect::<Vec<_>>(), Coding::Raw, (24, 20, 3));
        put(block, 5, &pixels, Coding::Raw, (24, 20, 1));
    });
    for batch in bucketed(&pack, "flip,filter:nearest").build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.field("mask").unwrap().shape, [6, 32, 32]);
        let image = batch.field("image").unwrap().bytes.chunks_exact(3);
        assert!(image.map(|pixel| pixel[0]).eq(batch.field("mask").unwrap().bytes.iter().copied()));
    }
}

#[test]
fn a_pack_whose_images_have_one_size_has_one_bucket() {
    let mut image = Field::tensor("image", DType::U8, &[20, 40, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    let (_folder, pack) = write(20, vec![image], |block, sample| block.tensor_mut(0).unwrap().fill(sample as u8));
    let loader = bucketed(&pack, "").build().unwrap();
    let all = batches(loader.epoch(0).unwrap());
    assert_eq!(all.len(), 3);
    for (ids, shape, pixels) in all {
        assert_eq!(shape, [6, 24, 40, 3]);
        assert!(
            ids.iter().zip(pixels.chunks_exact(24 * 40 * 3)).all(|(id, own)| own.iter().all(|v| u64::from(*v) == *id))
        );
    }
}

#[test]
fn the_notices_say_how_many_samples_are_left_out() {
    let (_folder, pack) = jpeg_pack(100, None);
    let loader = bucketed(&pack, "").build().unwrap();
    let dropped = 100 - 6 * loader.steps().unwrap();
    let expected = format!("each batch has samples of one of 4 buckets: an epoch leaves out {dropped} samples");
    assert!(loader.notices().unwrap().iter().any(|notice| notice.starts_with(&expected)));
}

#[test]
fn a_word_that_sets_another_size_is_refused() {
    let (_folder, pack) = jpeg_pack(40, None);
    let error = bucketed(&pack, "rrc32,flip").build().unwrap_err();
    assert!(matches!(error, LoadError::Augment { .. }) && error.to_string().contains("found rrc32"), "{error}");
}

#[test]
fn several_packs_with_buckets_are_refused() {
    let (_folder, pack) = jpeg_pack(40, None);
    let error = bucketed(&pack, "").mix(Arc::clone(&pack), 1.0).build().unwrap_err();
    assert!(error.to_string().contains("several packs cannot be put into buckets"), "{error}");
}

#[test]
fn buckets_for_a_device_that_makes_images_are_refused() {
    let (_folder, pack) = jpeg_pack(40, None);
    let error = bucketed(&pack, "").device(Arc::new(Staged)).build().unwrap_err();
    assert!(error.to_string().contains("a device takes images of one size"), "{error}");
}

#[test]
fn images_without_stored_sizes_are_refused() {
    let fields = vec![Field::variable("image", FieldKind::Image).with_role(Role::Image)];
    let (_folder, pack) = write(12, fields, |block, _| block.item_mut(0).unwrap().extend([0; 9]));
    let error = bucketed(&pack, "").build().unwrap_err();
    assert!(error.to_string().contains("has no columns with the width and the height of `image`"), "{error}");
}

#[test]
fn packs_without_images_are_refused() {
    let (_folder, pack) = opened(40);
    let error = bucketed(&pack, "").fields(&["label"]).build().unwrap_err();
    assert!(error.to_string().contains("no loaded field contains images"), "{error}");
}

#[test]
fn an_epoch_in_which_no_bucket_is_full_is_refused() {
    let (_folder, pack) = jpeg_pack(40, None);
    let loader = bucketed(&pack, "").batch(40).build().unwrap();
    let error = loader.epoch(0).unwrap_err();
    assert!(matches!(error, LoadError::Plan(PlanError::NoFullBucket { samples: 40, batch: 40, .. })), "{error}");
}
