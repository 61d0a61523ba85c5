//! Batches with a different number of entries per sample.

use std::sync::Arc;

use packds_format::{BlockBuilder, Codec, DType, Field, Filter, FooterParts, PackOptions, PackWriter, Schema};

use super::{ORDERS, builder, some};
use crate::loader::BadSamples;
use crate::{Access, Pack, open_bytes};

/// The boxes of a sample: between none and six.
fn boxes(sample: u64) -> Vec<f32> {
    let n = (sample * 5 % 7) * 4;
    (0..n).map(|i| (sample * 100 + i) as f32 / 8.0).collect()
}

fn pack(n: u64, codec: Codec) -> Arc<Pack> {
    let mut found = Field::ragged("boxes", DType::F32, &[4]);
    found.codec = codec;
    let fields = vec![Field::tensor("image", DType::U8, &[3]), found, Field::ragged("ids", DType::I64, &[])];
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(Schema::new(fields).unwrap(), 8)).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        block.tensor_mut(0).unwrap().fill(sample as u8);
        block.item_mut(1).unwrap().extend(boxes(sample).iter().flat_map(|side| side.to_le_bytes()));
        let ids = 0..boxes(sample).len() as i64 / 4;
        block.item_mut(2).unwrap().extend(ids.flat_map(i64::to_le_bytes));
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    Arc::new(open_bytes("boxes.pack", writer.finish(FooterParts::default()).unwrap().0).unwrap())
}

#[test]
fn a_batch_has_the_entries_of_its_samples_one_after_another() {
    for codec in [Codec::None, Codec::Zstd { level: 1, filter: Filter::NONE }] {
        let pack = pack(50, codec);
        for order in ORDERS {
            let loader = builder(&pack).threads(some(2)).order(order).access(Access::Mapped).build().unwrap();
            for batch in loader.epoch(0).unwrap() {
                let batch = batch.unwrap();
                let (entries, offsets) = batch.entries("boxes").unwrap();
                let expected: Vec<f32> = batch.ids().iter().flat_map(|id| boxes(*id)).collect();
                assert_eq!(entries.elements::<f32>().unwrap(), expected, "{order:?}");
                assert_eq!(entries.shape, [expected.len() / 4, 4]);
                assert_eq!(offsets.len(), batch.len() + 1);
                for (row, id) in batch.ids().iter().enumerate() {
                    let n = boxes(*id).len() / 4;
                    assert_eq!(offsets[row + 1] - offsets[row], n);
                    assert_eq!(batch.item_shape("boxes", row).unwrap(), [n, 4]);
                    assert_eq!(batch.item("boxes", row).unwrap().len(), n * 16);
                }
                assert_eq!(batch.entries("ids").unwrap().0.shape, [expected.len() / 4]);
            }
        }
    }
}

#[test]
fn a_ragged_field_is_described_by_its_entries() {
    let loader = builder(&pack(16, Codec::None)).build().unwrap();
    let described: Vec<_> = loader.fields().iter().map(|f| (f.dtype, f.shape.clone(), f.entry.clone())).collect();
    let image = (DType::U8, Some(vec![3]), None);
    assert_eq!(described, [image, (DType::F32, None, Some(vec![4])), (DType::I64, None, Some(Vec::new()))]);
}

#[test]
fn only_ragged_fields_have_entries() {
    let loader = builder(&pack(16, Codec::None)).bad_samples(BadSamples::Error).build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let error = batch.entries("image").unwrap_err().to_string();
    assert!(error.contains("field `image` is not ragged"), "{error}");
    let error = batch.field("boxes").unwrap_err().to_string();
    assert!(error.contains("vary in size"), "{error}");
}

#[test]
fn samples_of_a_ragged_field_have_their_shape() {
    let pack = pack(9, Codec::None);
    for id in 0..9 {
        let item = pack.sample(id).unwrap().field("boxes").unwrap();
        assert_eq!(item.elements::<f32>().unwrap(), boxes(id));
        assert_eq!(item.shape, [boxes(id).len() / 4, 4]);
    }
}
