//! Reads mapped Arrow IPC files. The arrays of a record batch are used in place.

use std::sync::Arc;

use ::arrow_array::RecordBatch;
use ::arrow_buffer::Buffer;
use ::arrow_ipc::convert::try_fb_to_schema;
use ::arrow_ipc::reader::{FileDecoder, read_footer_length};
use ::arrow_ipc::root_as_footer;
use ::arrow_schema::ArrowError;
use ::bytes::Bytes;

use super::Made;
use super::columns::{label, pixels};
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::map::Map;
use crate::formats::order::Rows;

/// The record batches of an Arrow file. Each contains the samples of one batch.
pub(crate) fn arrow(made: &Made) -> Result<Open, BenchError> {
    let made = made.clone();
    Ok(Box::new(move |threads| {
        let batches = batches(Bytes::from_owner(Map::open(&made.path)?));
        let batches: Arc<[RecordBatch]> = batches.map_err(|e| made.failed(e))?.into();
        readers(threads, || MappedBatches { made: made.clone(), batches: Arc::clone(&batches) })
    }))
}

/// All record batches of a file. Their arrays refer to the file's bytes.
fn batches(file: Bytes) -> Result<Vec<RecordBatch>, ArrowError> {
    let odd = |reason: &str| ArrowError::IpcError(reason.to_owned());
    let file = Buffer::from(file);
    let (rest, tail) = file.split_last_chunk::<10>().ok_or_else(|| odd("too short"))?;
    let footer = rest.len().checked_sub(read_footer_length(*tail)?);
    let footer = footer.and_then(|start| rest.get(start..));
    let footer = footer.ok_or_else(|| odd("too short for its footer"))?;
    let footer = root_as_footer(footer).map_err(|e| odd(&e.to_string()))?;
    let schema = footer.schema().ok_or_else(|| odd("no schema"))?;
    let schema = Arc::new(try_fb_to_schema(schema)?);
    let mut columns = vec![schema.index_of("image")?, schema.index_of("label")?];
    columns.sort_unstable();
    let decoder = FileDecoder::new(schema, footer.version()).with_projection(columns);
    let blocks = footer.recordBatches().ok_or_else(|| odd("no batches"))?;
    let mut all = Vec::new();
    for block in blocks {
        let len = i64::from(block.metaDataLength()) + block.bodyLength();
        let (start, len) = (usize::try_from(block.offset()), usize::try_from(len));
        let (Ok(start), Ok(len)) = (start, len) else {
            return Err(odd("a record batch without a valid location"));
        };
        if start.saturating_add(len) > file.len() {
            return Err(odd("a record batch beyond the end of the file"));
        }
        let buffer = file.slice_with_length(start, len);
        all.extend(decoder.read_record_batch(block, &buffer)?);
    }
    Ok(all)
}

struct MappedBatches {
    made: Made,
    batches: Arc<[RecordBatch]>,
}

impl Reader for MappedBatches {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        let odd = || self.made.odd("`image` or `label` is missing");
        let size = self.made.batch.max(1);
        let place = |sample: u64| {
            let number = usize::try_from(sample / size).ok()?;
            let row = usize::try_from(sample % size).ok()?;
            Some((self.batches.get(number)?, row))
        };
        let sample_bytes = self.made.sample_bytes;
        let whole = match rows {
            Rows::Run(run) if run.start.is_multiple_of(size) => Some(run.start),
            _ => None,
        };
        if let Some(start) = whole {
            let (batch, _) = place(start).ok_or_else(odd)?;
            let pixels = pixels(batch, "image").ok_or_else(odd)?;
            let out = out.pixels_mut();
            out.copy_from_slice(pixels.get(..out.len()).ok_or_else(odd)?);
        }
        for (sample, (out, to_label)) in rows.iter().zip(out.rows_mut()) {
            let (batch, row) = place(sample).ok_or_else(odd)?;
            *to_label = label(batch, "label", row).ok_or_else(odd)?;
            if whole.is_none() {
                let pixels = pixels(batch, "image").ok_or_else(odd)?;
                let start = row * sample_bytes;
                out.copy_from_slice(pixels.get(start..start + out.len()).ok_or_else(odd)?);
            }
        }
        Ok(())
    }
}
