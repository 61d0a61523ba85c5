//! Tests that the examples run and print the expected output.

#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;

use packds::format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema};
use tempfile::TempDir;

/// A pack of 8x8 images. Each has the colour of its class, plus some noise.
fn pack(n: u64) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("colours.pack");
    let mut image = Field::tensor("image", DType::U8, &[8, 8, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    let label = Field::column("label", DType::I32, &[]).with_role(Role::Label);
    let options = PackOptions::new(Schema::new(vec![image, label]).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..n).step_by(8) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + 8) {
            let class = sample % 10;
            for (i, byte) in (0..).zip(block.tensor_mut(0).unwrap()) {
                let noise = packds::format::mix64(sample * 192 + i) % 64;
                let colour = packds::format::mix64(class * 3 + i % 3) % 192;
                *byte = u8::try_from(colour + noise).unwrap();
            }
            let class = i32::try_from(class).unwrap();
            block.set_column(1, &class.to_le_bytes()).unwrap();
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    std::fs::write(&path, writer.finish(FooterParts::default()).unwrap().0).unwrap();
    (folder, path)
}

/// Runs an example. cargo has built it next to this test.
fn run(name: &str, args: &[&str], pack: &Path) -> String {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples");
    let output = Command::new(built.join(name)).arg(pack).args(args).output().unwrap();
    let (out, errors) = (output.stdout, output.stderr);
    let (out, errors) = (String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap());
    assert!(output.status.success(), "{name}: {out}{errors}");
    out
}

#[test]
fn sum_labels_counts_every_label() {
    let (_folder, pack) = pack(80);
    let out = run("sum_labels", &[], &pack);
    assert!(out.starts_with("{0: 8, 1: 8, 2: 8,"), "{out}");
    assert!(out.contains("samples: 80"), "{out}");
}

#[test]
fn resume_goes_on_with_the_same_samples() {
    let (_folder, pack) = pack(80);
    let out = run("resume", &[], &pack);
    assert!(out.ends_with("resumed with the same 80 samples\n"), "{out}");
}

#[test]
fn two_ranks_have_every_sample_once() {
    let (_folder, pack) = pack(83);
    let out = run("two_ranks", &[], &pack);
    assert!(out.ends_with("together they read every sample once\n"), "{out}");
    assert!(out.contains("rank 1: 11 steps, 40 samples"), "{out}");
}

#[test]
fn training_on_the_cpu_learns_the_colours() {
    let (_folder, pack) = pack(320);
    let out = run("train_candle", &["8"], &pack);
    let loss = |epoch: u32| -> f32 {
        let line = out.lines().find(|line| line.starts_with(&format!("epoch {epoch}:"))).unwrap();
        let loss = line.split("loss ").nth(1).unwrap().split(',').next().unwrap();
        loss.parse().unwrap()
    };
    assert!(loss(7) < loss(0) / 2.0, "{out}");
}
