//! Images whose size depends on the sample.

use std::sync::Arc;

use packds_format::{Coding, Role};
use packds_pixels::Encoded;

use super::images::{jpeg_pack, put, sized, write};
use super::{builder, some};
use crate::Pack;
use crate::augment::{Augment, AugmentPlan, Augmenter, ImageSource, Input, Picture, SampleKey};
use crate::device::Staged;
use crate::loader::{BadSamples, Batch, Kept, LoadError, LoaderBuilder};

const WORDS: &str = "shortside:20-40/60,flip";

fn varied(pack: &Arc<Pack>) -> LoaderBuilder {
    builder(pack).batch(6).augment(Augment::parse(WORDS).unwrap())
}

/// The samples of a batch, with the shapes and the pixels of their images.
type Images = Vec<(u64, Vec<usize>, Vec<u8>)>;

fn images(batch: Result<Batch, LoadError>) -> Images {
    let batch = batch.unwrap();
    let of_row = |(row, id): (usize, &u64)| {
        let shape = batch.item_shape("image", row).unwrap().to_vec();
        (*id, shape, batch.item("image", row).unwrap().to_vec())
    };
    batch.ids().iter().enumerate().map(of_row).collect()
}

#[test]
fn images_are_those_that_the_augmentation_makes_of_each_sample() {
    let (_folder, pack) = jpeg_pack(50, None);
    let plan = AugmentPlan::new(&Augment::parse(WORDS).unwrap(), &ImageSource::raw(None, 3)).unwrap();
    let mut augmenter = Augmenter::new(Arc::new(plan));
    for threads in [1, 4] {
        let loader = varied(&pack).threads(some(threads)).build().unwrap();
        assert_eq!(loader.fields()[0].shape, None);
        for batch in loader.epoch(2).unwrap() {
            for (id, shape, found) in images(batch) {
                let sample = pack.sample(id).unwrap();
                let bytes = &sample.field("image").unwrap().bytes;
                let picture = Picture::Encoded(Encoded { bytes, seek_index: None });
                let key = SampleKey { seed: 7, epoch: 2, sample: id };
                let mut expected = Vec::new();
                let made = augmenter.apply_varied(Input::new(key, picture), &mut expected, &mut Vec::new());
                let (width, height) = made.unwrap();
                assert_eq!(shape, [height as usize, width as usize, 3]);
                assert!(found == expected, "{id}");
            }
        }
    }
}

#[test]
fn masks_have_the_size_of_their_images() {
    let fields = [sized("image", Role::Image), sized("mask", Role::Mask)].concat();
    let (_folder, pack) = write(24, fields, |block, sample| {
        let (width, height) = (30 + sample as u32, 50 - sample as u32);
        let pixels: Vec<u8> = (0..width * height).map(|n| (n * 7 + sample as u32) as u8).collect();
        let image: Vec<u8> = pixels.iter().flat_map(|value| [*value; 3]).collect();
        put(block, 0, &image, Coding::Raw, (width, height, 3));
        put(block, 5, &pixels, Coding::Raw, (width, height, 1));
    });
    let words = Augment::parse(&format!("{WORDS},filter:nearest")).unwrap();
    for batch in varied(&pack).augment(words).build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let geometry = batch.geometry().unwrap().view(0).unwrap();
        for (row, shown) in geometry.into_iter().enumerate() {
            let shape = batch.item_shape("mask", row).unwrap();
            assert_eq!(shape, [shown.out_height as usize, shown.out_width as usize]);
            let image = batch.item("image", row).unwrap().chunks_exact(3);
            assert!(image.map(|pixel| pixel[0]).eq(batch.item("mask", row).unwrap().iter().copied()));
        }
    }
}

#[test]
fn bad_samples_are_left_out_or_replaced() {
    let (_folder, pack) = jpeg_pack(30, Some(11));
    for (policy, n) in [(BadSamples::Skip, 5), (BadSamples::Substitute, 6)] {
        let epoch = varied(&pack).bad_samples(policy).build().unwrap().epoch(0).unwrap();
        let mut batches = epoch.map(Result::unwrap);
        let bad = batches.find(|batch| !batch.bad_samples().is_empty()).unwrap();
        let all = images(Ok(bad));
        assert_eq!(all.len(), n);
        assert!(all.iter().all(|(id, _, pixels)| *id != 11 && !pixels.is_empty()));
    }
    let error = varied(&pack).build().unwrap().epoch(0).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, LoadError::Sample { sample: 11, .. }), "{error}");
}

#[test]
fn an_epoch_can_be_continued() {
    let (_folder, pack) = jpeg_pack(40, None);
    let loader = varied(&pack).build().unwrap();
    let whole: Vec<Images> = loader.epoch(1).unwrap().map(images).collect();
    let mut epoch = loader.epoch(1).unwrap();
    epoch.by_ref().take(2).for_each(|batch| drop(batch.unwrap()));
    let state = epoch.state();
    drop(epoch);
    let rest: Vec<Images> = loader.epoch_at(&state).unwrap().map(images).collect();
    assert!(rest == whole[2..]);
}

#[test]
fn a_device_that_finishes_pixels_gets_the_images_of_the_host() {
    let (_folder, pack) = jpeg_pack(30, None);
    let words = format!("{WORDS},f32,chw,norm:imagenet");
    let with = |builder: LoaderBuilder| -> Vec<Images> {
        let loader = builder.augment(Augment::parse(&words).unwrap()).build().unwrap();
        loader.epoch(0).unwrap().map(images).collect()
    };
    assert!(with(varied(&pack)) == with(varied(&pack).device(Arc::new(Staged))));
}

#[test]
fn a_batch_can_be_repeated_to_measure_it() {
    let (_folder, pack) = jpeg_pack(30, None);
    let loader = varied(&pack).build().unwrap();
    let first = images(loader.epoch(0).unwrap().next().unwrap());
    let kept = Arc::new(Kept::take(&loader).unwrap());
    assert!(kept.processed(&loader).unwrap().is_none());
    let decoded = Arc::new(kept.decoded().unwrap());
    for form in [kept, decoded] {
        assert!(images(loader.repeat(&form).unwrap().next().unwrap()) == first);
    }
}

#[test]
fn a_field_of_images_of_different_sizes_has_no_array() {
    let (_folder, pack) = jpeg_pack(30, None);
    let batch = varied(&pack).build().unwrap().epoch(0).unwrap().next().unwrap().unwrap();
    let error = batch.field("image").unwrap_err().to_string();
    assert!(error.contains("vary in size: read them one by one with `item`"), "{error}");
}
