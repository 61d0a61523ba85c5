//! Reads mapped Parquet files: whole row groups, or selected rows of them.

use ::arrow_array::RecordBatch;
use ::bytes::Bytes;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::PageIndexPolicy;
use packds_system::{to_u64, to_usize};

use super::Made;
use super::columns::{label, pixels};
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::map::Map;
use crate::formats::order::Rows;

/// The row groups of a Parquet file. Each contains the samples of one batch.
pub(crate) fn parquet(made: &Made) -> Result<Open, BenchError> {
    let made = made.clone();
    Ok(Box::new(move |threads| {
        let file = Bytes::from_owner(Map::open(&made.path)?);
        // The page index contains the location of each page, so pages without selected rows are skipped.
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(|e| made.failed(e))?;
        readers(threads, || RowGroups { made: made.clone(), file: file.clone(), metadata: metadata.clone() })
    }))
}

struct RowGroups {
    made: Made,
    file: Bytes,
    metadata: ArrowReaderMetadata,
}

impl RowGroups {
    /// Reads rows of some row groups in file order, in the pieces that the reader returns.
    fn read(&self, groups: Vec<usize>, rows: Option<RowSelection>, n: usize) -> Result<Vec<RecordBatch>, ParquetError> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let columns = ProjectionMask::columns(builder.parquet_schema(), ["image", "label"]);
        let mut builder = builder.with_projection(columns).with_row_groups(groups).with_batch_size(n);
        if let Some(rows) = rows {
            builder = builder.with_row_selection(rows);
        }
        let batches: Result<Vec<_>, _> = builder.build()?.collect();
        Ok(batches?)
    }

    /// The rows of the samples `sorted`. The selection treats the given row groups as one sequence of rows.
    fn selection(&self, sorted: &[u64], groups: &[usize]) -> RowSelection {
        let size = self.made.batch.max(1);
        let mut selectors = Vec::new();
        for group in groups {
            let mut at = 0;
            let group = to_u64(*group);
            for sample in sorted.iter().filter(|sample| **sample / size == group) {
                let row = sample % size;
                if row > at {
                    selectors.push(RowSelector::skip(to_usize(row - at)));
                }
                selectors.push(RowSelector::select(1));
                at = row + 1;
            }
            let rest = size.min(self.made.n_samples - group * size) - at;
            if rest > 0 {
                selectors.push(RowSelector::skip(to_usize(rest)));
            }
        }
        RowSelection::from(selectors)
    }
}

impl Reader for RowGroups {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        let size = self.made.batch.max(1);
        // The samples in file order, each with its row in the batch.
        let mut wanted: Vec<(u64, usize)> = rows.iter().zip(0..).collect();
        wanted.sort_unstable();
        let sorted: Vec<u64> = wanted.iter().map(|(sample, _)| *sample).collect();
        let group = |sample: &u64| to_usize(sample / size);
        let mut groups: Vec<usize> = sorted.iter().map(group).collect();
        groups.dedup();
        let selection = match rows {
            Rows::Run(_) => None,
            Rows::Each(_) => Some(self.selection(&sorted, &groups)),
        };
        let odd = |reason: &str| self.made.odd(reason);
        let batches = self.read(groups, selection, rows.len());
        let batches = batches.map_err(|e| odd(&e.to_string()))?;
        let mut places: Vec<Option<(&mut [u8], &mut i64)>> = out.rows_mut().map(Some).collect();
        let mut next = wanted.iter();
        for batch in &batches {
            let missing = || odd("`image` or `label` is missing");
            let pixels = pixels(batch, "image").ok_or_else(missing)?;
            let found = pixels.chunks_exact(self.made.sample_bytes.max(1));
            for (row, (found, (_, place))) in found.zip(next.by_ref()).enumerate() {
                let place = places.get_mut(*place).and_then(Option::take);
                let (to, to_label) = place.ok_or_else(missing)?;
                to.copy_from_slice(found);
                *to_label = label(batch, "label", row).ok_or_else(missing)?;
            }
        }
        if next.next().is_some() {
            return Err(odd("the rows do not exist"));
        }
        Ok(())
    }
}
