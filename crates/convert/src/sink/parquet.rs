//! Parquet: one row group per batch, encoded and compressed on all threads. Writes one file, or a folder of files that
//! each have a fixed number of samples.
//!
//! `table` builds the columns.

use packds_system::to_u64;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::ColumnPath;
use arrow_array::RecordBatch;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{Schema, SchemaRef};

use super::table::TableLayout;
use super::{Batch, Encode, Sink, SinkStart};
use crate::error::ConvertError;
use crate::export::ExportCodec;

/// Number of values between checks of the page size. It is small because images are large.
const VALUES_A_LOOK: usize = 16;

pub(crate) struct ParquetSink {
    /// The file, or the folder of several files.
    path: PathBuf,
    is_folder: bool,
    encoder: ParquetEncoder,
    shards: u64,
    properties: WriterProperties,
    current: Option<(u64, SerializedFileWriter<File>)>,
}

#[derive(Clone)]
pub(crate) struct ParquetEncoder {
    layout: Arc<TableLayout>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    target: PathBuf,
    shard_samples: u64,
}

/// A row group: the index of its file, and its columns.
type Group = (u64, Vec<ArrowColumnChunk>);

impl ParquetSink {
    /// The writer of file `shard`. Closes the previous file when a new one begins.
    fn writer(&mut self, shard: u64) -> Result<&mut SerializedFileWriter<File>, ConvertError> {
        if self.current.as_ref().is_none_or(|(open, _)| *open != shard) {
            self.close()?;
            let path = if self.is_folder {
                let name = format!("data-{shard:05}-of-{:05}.parquet", self.shards);
                self.path.join(name)
            } else {
                self.path.clone()
            };
            let file = File::create(&path).map_err(ConvertError::io(&path))?;
            let opened = writer(file, &self.encoder.layout.schema, &self.properties);
            let opened = opened.and_then(ArrowWriter::into_serialized_writer);
            let (opened, _) = opened.map_err(|e| failed(&self.encoder.target, e))?;
            self.current = Some((shard, opened));
        }
        match &mut self.current {
            Some((_, writer)) => Ok(writer),
            None => Err(ConvertError::Interrupted),
        }
    }

    fn close(&mut self) -> Result<(), ConvertError> {
        let Some((_, writer)) = self.current.take() else { return Ok(()) };
        writer.close().map(drop).map_err(|e| failed(&self.encoder.target, e))
    }
}

impl Sink for ParquetSink {
    type Encoder = ParquetEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let layout = Arc::new(TableLayout::of(start, true)?);
        let properties = properties(&layout, start.options.codec)?;
        let nothing = writer(Vec::new(), &layout.schema, &properties);
        let nothing = nothing.and_then(ArrowWriter::into_serialized_writer);
        let (_, factory) = nothing.map_err(|e| failed(start.target, e))?;
        let shard_samples = start.options.shard_samples.unwrap_or(u64::MAX).max(1);
        Ok(Self {
            path: start.path.to_owned(),
            is_folder: start.path.is_dir(),
            encoder: ParquetEncoder {
                layout,
                factory: Arc::new(factory),
                target: start.target.to_owned(),
                shard_samples,
            },
            shards: start.n_samples.div_ceil(shard_samples).max(1),
            properties,
            current: None,
        })
    }

    fn encoder(&self) -> ParquetEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Vec<Group>) -> Result<(), ConvertError> {
        let target = self.encoder.target.clone();
        for (shard, chunks) in ready {
            let writer = self.writer(shard)?;
            let written = writer.next_row_group().and_then(|mut group| {
                for chunk in chunks {
                    chunk.append_to_row_group(&mut group)?;
                }
                group.close()
            });
            written.map_err(|e| failed(&target, e))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.close()?;
        let mut lost = self.encoder.layout.lost();
        lost.extend(tensors_summary(&self.encoder.layout.schema));
        Ok(lost)
    }
}

/// A note on tensor columns, which some readers reject. `None` if there are no tensors.
fn tensors_summary(schema: &Schema) -> Option<String> {
    let fields = schema.fields().iter();
    let tensors = fields.filter(|field| field.metadata().contains_key(EXTENSION_TYPE_NAME_KEY));
    let names: Vec<String> = tensors.map(|f| format!("`{}`", f.name())).collect();
    (!names.is_empty()).then(|| {
        format!(
            "compatibility with the Hugging Face library datasets, which rejects columns of type arrow.fixed_shape_tensor ({}); packds and pyarrow read them",
            names.join(", ")
        )
    })
}

impl Encode for ParquetEncoder {
    type Ready = Vec<Group>;

    fn encode(&self, batch: Batch) -> Result<Vec<Group>, ConvertError> {
        let mut sample = batch.first;
        let batch = self.layout.record_batch(batch)?;
        let (mut groups, mut row) = (Vec::new(), 0);
        // A row group never extends beyond the end of its file.
        while row < batch.num_rows() {
            let shard = sample / self.shard_samples;
            let in_shard = self.shard_samples - sample % self.shard_samples;
            let left = batch.num_rows() - row;
            let rows = usize::try_from(in_shard).map_or(left, |n| n.min(left));
            let chunks = self.columns(&batch.slice(row, rows));
            groups.push((shard, chunks.map_err(|e| failed(&self.target, e))?));
            row += rows;
            sample = sample.saturating_add(to_u64(rows));
        }
        Ok(groups)
    }
}

impl ParquetEncoder {
    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        let mut writers = self.factory.create_column_writers(0)?.into_iter();
        let mut chunks = Vec::new();
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                let writer = writers.next();
                let mut writer = writer.ok_or_else(|| ParquetError::General("a column has no writer".to_owned()))?;
                writer.write(&leaf)?;
                chunks.push(writer.close()?);
            }
        }
        Ok(chunks)
    }
}

fn writer<W: std::io::Write + Send>(
    file: W,
    schema: &SchemaRef,
    properties: &WriterProperties,
) -> Result<ArrowWriter<W>, ParquetError> {
    let options = ArrowWriterOptions::new().with_properties(properties.clone());
    ArrowWriter::try_new_with_options(file, Arc::clone(schema), options)
}

/// Uses Snappy, the usual codec, except for image files, which do not compress further. An explicit codec applies to
/// all columns.
fn properties(layout: &TableLayout, codec: Option<ExportCodec>) -> Result<WriterProperties, ConvertError> {
    let refused = |reason: String| ConvertError::options(reason, "choose none, snappy, lz4, zstd or gzip");
    let compression = match codec {
        None | Some(ExportCodec::Snappy) => Compression::SNAPPY,
        Some(ExportCodec::None) => Compression::UNCOMPRESSED,
        Some(ExportCodec::Lz4) => Compression::LZ4_RAW,
        Some(ExportCodec::Zstd(level)) => {
            Compression::ZSTD(ZstdLevel::try_new(level).map_err(|e| refused(e.to_string()))?)
        }
        Some(ExportCodec::Gzip(level)) => {
            Compression::GZIP(GzipLevel::try_new(level).map_err(|e| refused(e.to_string()))?)
        }
        Some(ExportCodec::Blosc) => return Err(refused("Parquet does not support blosc".to_owned())),
    };
    // pyarrow reads the metadata from the Arrow schema, but other readers read it from the file's key-value metadata,
    // so write it to both.
    let metadata = layout.schema.metadata().iter();
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let mut builder = WriterProperties::builder()
        .set_compression(compression)
        .set_write_batch_size(VALUES_A_LOOK)
        .set_key_value_metadata(Some(metadata.collect()));
    for column in layout.bytes_columns() {
        let path = ColumnPath::new(column.parts);
        // Images rarely repeat, and queries do not need their minimum and maximum.
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        if column.is_files && codec.is_none() {
            builder = builder.set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    Ok(builder.build())
}

fn failed(target: &std::path::Path, error: ParquetError) -> ConvertError {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(error) => std::io::Error::other(error),
        },
        error => std::io::Error::other(error),
    };
    ConvertError::io(target)(error)
}
