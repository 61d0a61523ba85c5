//! A checksum of all delivered samples.

use packds_format::{Crc32c, mix64};
use packds_reader::loader::{Batch, Loader};

use crate::BenchError;

/// The sum over all samples of a hash of their number and fields, for epoch 0 with its last batch padded. It is the
/// same in any order.
pub(crate) fn of_epoch(loader: &Loader) -> Result<u64, BenchError> {
    let mut sum = 0_u64;
    for batch in loader.epoch(0)? {
        sum = sum.wrapping_add(of_batch(&batch?)?);
    }
    Ok(sum)
}

fn of_batch(batch: &Batch) -> Result<u64, BenchError> {
    let mut sum = 0_u64;
    let all = batch.len() - batch.padding();
    for (row, id) in batch.ids().iter().enumerate().take(all) {
        let mut crc = Crc32c::new();
        for field in batch.fields() {
            if field.shape.is_none() {
                crc.update(batch.item(&field.name, row)?);
                continue;
            }
            let view = batch.view(&field.name, field.view)?;
            let n = view.bytes.len() / batch.len().max(1);
            crc.update(view.bytes.get(row * n..(row + 1) * n).unwrap_or_default());
        }
        sum = sum.wrapping_add(mix64(mix64(*id) ^ u64::from(crc.value())));
    }
    Ok(sum)
}
