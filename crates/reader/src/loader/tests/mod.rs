//! Tests of the loader: delivered data, ownership, and failures.

#![cfg(test)]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of these tests are small")]

mod boxes;
mod delivery;
mod faults;
mod images;
mod instance_masks;
mod keypoints;
mod lifetimes;
mod limits;
mod mixture;
mod ragged;
mod resuming;
mod storage;
mod tuning;

use std::fs::OpenOptions;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use packds_format::{
    BlockBuilder, Crc32c, DType, Field, FieldKind, FooterParts, PackOptions, PackWriter, Role, Schema,
};
use tempfile::TempDir;

use super::{Epoch, Loader, LoaderBuilder};
use crate::plan::Order;
use crate::{Pack, open};

const SAMPLE_BYTES: u64 = 5000;
const ORDERS: [Order; 4] = [Order::Sequential, Order::Random, Order::Chunks, Order::Window { chunks: Some(3) }];

/// The pixels of a sample. They differ between samples and between adjacent bytes.
fn pixels(sample: u64) -> Vec<u8> {
    let byte = |i: u64| (packds_format::mix64(sample * SAMPLE_BYTES + i) & 0xFF) as u8;
    (0..SAMPLE_BYTES).map(byte).collect()
}

fn text(sample: u64) -> String {
    "x".repeat((sample % 7) as usize) + &sample.to_string()
}

/// A pack of `n` samples in chunks of 8: an image of [`SAMPLE_BYTES`], a label, and text if `ragged`.
fn write_pack(n: u64, ragged: bool) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    let mut fields = vec![
        Field::tensor("image", DType::U8, &[50, 100]).with_role(Role::Image),
        Field::column("label", DType::I32, &[]).with_role(Role::Label),
        Field::column("crc", DType::U32, &[]).with_role(Role::SampleCrc32c),
    ];
    if ragged {
        fields.push(Field::variable("text", FieldKind::String));
    }
    let options = PackOptions::new(Schema::new(fields).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..n).step_by(8) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + 8) {
            let mut crc = Crc32c::new();
            block.tensor_mut(0).unwrap().copy_from_slice(&pixels(sample));
            crc.update(&pixels(sample));
            if ragged {
                block.item_mut(3).unwrap().extend(text(sample).as_bytes());
                crc.update(text(sample).as_bytes());
            }
            block.set_column(1, &label(sample).to_le_bytes()).unwrap();
            block.set_column(2, &crc.value().to_le_bytes()).unwrap();
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    let bytes = writer.finish(FooterParts::default()).unwrap().0;
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn label(sample: u64) -> i32 {
    (sample % 10) as i32
}

fn opened(n: u64) -> (TempDir, Arc<Pack>) {
    let (folder, path) = write_pack(n, false);
    (folder, Arc::new(open(path).unwrap()))
}

fn builder(pack: &Arc<Pack>) -> LoaderBuilder {
    Loader::builder(Arc::clone(pack)).batch(16).seed(7)
}

fn some(n: usize) -> NonZero<usize> {
    NonZero::new(n).unwrap()
}

/// The samples of each batch.
fn ids(epoch: Epoch) -> Vec<Vec<u64>> {
    epoch.map(|batch| batch.unwrap().ids().to_vec()).collect()
}

/// A pack of `n` samples with a flipped bit in the images of `samples`.
fn damaged(n: u64, samples: impl IntoIterator<Item = u64>) -> (TempDir, Arc<Pack>) {
    let (folder, path) = write_pack(n, false);
    let data_off = open(&path).unwrap().one().unwrap().header().data_off;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for sample in samples {
        let offset = data_off + sample * SAMPLE_BYTES + 1234;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
    }
    (folder, Arc::new(open(path).unwrap()))
}

/// Number of threads in this process that belong to loaders.
fn loader_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("packds-"))
        .count()
}
