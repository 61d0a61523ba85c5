//! Raw packs need neither image codecs nor Zstandard. For other packs, the error says what is missing.
//!
//! `cargo test -p packds-reader --no-default-features --test raw` runs this without either.

#![cfg(test)]

use std::path::Path;
use std::sync::Arc;

use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema};
use packds_reader::augment::Augment;
use packds_reader::loader::{Batch, LoadError, Loader};
use packds_reader::{Pack, VerifyOptions, open_bytes, verify};

/// A pack of 10 raw images, each in a single colour.
fn raw() -> Pack {
    let mut image = Field::tensor("image", DType::U8, &[4, 4, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    let options = PackOptions::new(Schema::new(vec![image]).unwrap(), 2);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..10_u8).step_by(2) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..first + 2 {
            block.tensor_mut(0).unwrap().fill(sample);
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    open_bytes("raw", writer.finish(FooterParts::default()).unwrap().0).unwrap()
}

fn golden(name: &str) -> Arc<Pack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
    Arc::new(packds_reader::open(folder.join(name)).unwrap())
}

/// The first batch of a pack.
fn load(pack: &Arc<Pack>, augment: &str) -> Result<Batch, LoadError> {
    let builder = Loader::builder(Arc::clone(pack)).batch(1);
    let loader = match augment {
        "" => builder,
        words => builder.augment(Augment::parse(words).unwrap()),
    };
    loader.build()?.epoch(0)?.next().unwrap()
}

#[test]
fn a_raw_pack_is_verified_loaded_and_augmented() {
    let pack = Arc::new(raw());
    assert!(verify(&pack, VerifyOptions::default(), &|_, _| {}).unwrap().is_ok());
    let loader = Loader::builder(Arc::clone(&pack)).batch(10).seed(1).build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let pixels = batch.elements::<u8>("image").unwrap();
    let mut colours: Vec<u8> = pixels.iter().copied().step_by(4 * 4 * 3).collect();
    colours.sort_unstable();
    assert_eq!(colours, (0..10).collect::<Vec<u8>>());
    let batch = load(&pack, "rrc8,flip,f32").unwrap();
    assert_eq!(batch.elements::<f32>("image").unwrap().len(), 8 * 8 * 3);
}

#[test]
fn a_compressed_pack_names_the_feature_that_it_needs() {
    let loaded = load(&golden("zstd_hwc_rgb.pack"), "").map(|_| ());
    if cfg!(feature = "zstd") {
        loaded.unwrap();
    } else {
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("packds was built without Zstandard (feature `zstd`)"), "{error}");
    }
}

#[test]
fn a_pack_of_image_files_names_the_feature_that_it_needs() {
    let loaded = load(&golden("encoded_images.pack"), "resize8x8").map(|_| ());
    if cfg!(feature = "codecs") {
        loaded.unwrap();
    } else {
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("built without image codecs (feature `codecs`)"), "{error}");
    }
}
