//! Measures how long it takes to open a pack with as many samples as ImageNet and to read what `info` shows.

use packds_system::to_usize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use packds_format::{BlockBuilder, Classes, DType, Field, FooterParts, PackOptions, PackWriter, Paths, Role, Schema};

use crate::BenchError;
use crate::watch::Progress;

/// Approximate size of ImageNet's training set.
pub(crate) const SAMPLES: u64 = 1_280_000;
const CLASSES: u64 = 1000;

/// Writes a pack of 1.28 million tiny samples with labels and paths.
pub(crate) fn write_large(path: &Path, progress: &Progress<'_>) -> Result<(), BenchError> {
    let schema = Schema::new(vec![
        Field::tensor("image", DType::U8, &[4, 4, 1]),
        Field::column("label", DType::I32, &[]).with_role(Role::Label),
        Field::column("source_id", DType::U64, &[]).with_role(Role::SourceId),
        Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c),
    ])?;
    let file = BufWriter::new(File::create(path).map_err(BenchError::io(path))?);
    // Use 64 samples per chunk, as in packs of 224 x 224 x 3 images. The size of the images does not matter, because
    // opening a pack reads only its tables.
    let mut writer = PackWriter::new(file, PackOptions::new(schema, 64))?;
    let mut block = BlockBuilder::new(writer.schema());
    let mut paths = Paths::default();
    for i in 0..SAMPLES {
        let label = i % CLASSES;
        block.tensor_mut(0)?.fill(u8::try_from(i % 251).unwrap_or(0));
        block.set_column(1, &i32::try_from(label).unwrap_or(0).to_le_bytes())?;
        block.set_column(2, &i.to_le_bytes())?;
        block.finish_sample()?;
        paths.push(format!("n{label:08}/n{label:08}_{i}.JPEG").as_bytes())?;
        if writer.block_room(block.n_samples()) == 0 {
            progress.check()?;
            writer.append(block.finish()?)?;
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish()?)?;
    let classes = Classes {
        field: "label".to_owned(),
        names: (0..CLASSES).map(|c| format!("n{c:08}")).collect(),
        counts: vec![SAMPLES / CLASSES; to_usize(CLASSES)],
    };
    let (mut file, _) = writer.finish(FooterParts { classes: vec![classes], paths, ..FooterParts::default() })?;
    file.flush().map_err(BenchError::io(path))
}

pub(crate) fn open_and_inform(path: &Path) -> Result<Duration, BenchError> {
    let started = Instant::now();
    let pack = packds_reader::open(path)?;
    let (classes, _stats, _provenance) = (pack.classes()?, pack.stats()?, pack.provenance()?);
    let time = started.elapsed();
    let found = classes.first().map_or(0, |c| c.counts.iter().sum());
    if (pack.n_samples(), found) != (SAMPLES, SAMPLES) {
        let found = format!("{} samples, {found} counted", pack.n_samples());
        return Err(BenchError::wrong("opening a large pack", SAMPLES.to_string(), found));
    }
    Ok(time)
}
