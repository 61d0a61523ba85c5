//! Zarr, versions 2 and 3: one array per field in a group, split into chunks or shards of samples.
//!
//! `source::zarr` reads the format. Here, the zarrs crate is used only for compression, because it builds a whole shard
//! in memory, and a shard may be larger than memory.

mod array;
mod chunk;

use packds_system::{to_u64, to_usize};
use std::fs;
use std::path::{Path, PathBuf};

use packds_format::DType;
use serde_json::{Value, json};

use self::array::{Array, Grid, Kind, dims};
use self::chunk::{Shards, framed, packed};
use super::fields::held_names;
use super::renamed::not_utf8;
use super::{Batch, Encode, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::export::ExportCodec;
use crate::metadata::METADATA_KEY;
use crate::opt::{CHUNK, SHARD, ZARR_VERSION};
use crate::source::PATHS;

/// Maximum uncompressed size of a chunk in bytes. Both the reader and Blosc have this limit.
const MAX_CHUNK_BYTES: u64 = 1 << 30;

pub(crate) struct ZarrSink {
    target: PathBuf,
    folder: PathBuf,
    encoder: ZarrEncoder,
    /// One entry per array. Empty if there are no shards.
    shards: Vec<Shards>,
    lost: Vec<String>,
    /// Number of paths that are not UTF-8.
    bent_paths: u64,
}

impl ZarrSink {
    /// Creates the folders, and writes the metadata of the group and its arrays.
    fn describe(&self, metadata: &str) -> std::io::Result<()> {
        let attributes = json!({METADATA_KEY: metadata});
        let group = match self.encoder.grid.version {
            2 => vec![(".zgroup", json!({"zarr_format": 2})), (".zattrs", attributes)],
            _ => vec![("zarr.json", json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))],
        };
        write_all(&self.folder, group)?;
        for array in &self.encoder.arrays {
            let folder = self.folder.join(&array.name);
            fs::create_dir_all(&folder)?;
            write_all(&folder, array.files(&self.encoder.grid))?;
        }
        Ok(())
    }
}

fn write_all(folder: &Path, files: Vec<(&'static str, Value)>) -> std::io::Result<()> {
    let mut files = files.into_iter();
    files.try_for_each(|(name, value)| fs::write(folder.join(name), format!("{value:#}\n")))
}

fn grid(start: &SinkStart<'_>) -> Result<Grid, ConvertError> {
    let version = start.options.zarr_version.unwrap_or(3);
    if !matches!(version, 2 | 3) {
        let reason = format!("expected Zarr version 2 or 3, found {version}");
        return Err(ConvertError::options(reason, "choose one of them"));
    }
    let batch = u64::from(start.batch_samples.max(1));
    let (chunk, shard) = match start.options.shard_samples {
        None => (batch.min(start.n_samples.max(1)), None),
        Some(_) if version == 2 => {
            let hint = format!("omit {SHARD} or {ZARR_VERSION}");
            return Err(ConvertError::options("shards need Zarr version 3", hint));
        }
        Some(shard) if shard == 0 || !shard.is_multiple_of(batch) => {
            return Err(ConvertError::options(
                format!("the shard size {shard} is not a multiple of the chunk size {batch}"),
                format!("choose a multiple with {SHARD}, or another chunk size with {CHUNK}"),
            ));
        }
        // A larger shard would have index entries for chunks that do not exist.
        Some(shard) => {
            let all = start.n_samples.max(1).div_ceil(batch) * batch;
            (batch, Some(shard.min(all)))
        }
    };
    Ok(Grid {
        version,
        n_samples: start.n_samples,
        chunk,
        shard,
        codec: start.options.codec.unwrap_or(ExportCodec::None),
    })
}

fn arrays(start: &SinkStart<'_>, lost: &mut Vec<String>) -> Vec<Array> {
    let fields = &start.exported.fields;
    // Avoids the name of the group's own file, and the names that version 3 reserves.
    let free = |name: &str| match name == "zarr.json" || name.starts_with("__") {
        true => format!("field-{name}"),
        false => name.to_owned(),
    };
    let of: Vec<String> = fields.iter().map(|f| f.field.name.clone()).collect();
    let wanted: Vec<String> = of.iter().map(|name| free(name)).collect();
    let names = held_names(&of, &wanted, "a Zarr folder", lost);
    let mut arrays = Vec::with_capacity(fields.len());
    for (field, name) in fields.iter().zip(names) {
        let of = &field.field.name;
        let kind = match &field.form {
            Form::Array(array) => Kind::Numbers(array.clone()),
            Form::File | Form::Bytes => Kind::Bytes,
            Form::Text | Form::Json => Kind::Texts,
        };
        let dims = match &kind {
            Kind::Numbers(array) => dims(&field.field, &name, &array.shape),
            _ => Vec::new(),
        };
        if field.field.dtype == DType::Bf16 && matches!(kind, Kind::Numbers(_)) {
            lost.push(format!("the type of field `{of}`, because Zarr has no bfloat16: its bits are stored as uint16"));
        }
        arrays.push(Array { name, kind, dims, classes: start.metadata.class_names(of).to_vec() });
    }
    arrays
}

#[derive(Clone)]
pub(crate) struct ZarrEncoder {
    /// One array per field, and one for the paths, if there are any.
    arrays: Vec<Array>,
    has_paths: bool,
    grid: Grid,
}

pub(crate) struct Chunks {
    first: u64,
    chunks: Vec<Vec<u8>>,
    bent_paths: u64,
}

impl ZarrEncoder {
    fn chunk(&self, array: &Array, number: usize, batch: &mut Batch) -> Result<Vec<u8>, String> {
        let (element, samples) = (to_usize(array.element_bytes()), to_usize(self.grid.chunk));
        let Some(column) = batch.columns.get_mut(number) else {
            let paths = batch.paths.iter();
            let paths: Vec<_> = paths.map(|path| String::from_utf8_lossy(path)).collect();
            let bytes = framed(paths.iter().map(|path| path.as_bytes()), samples)?;
            return packed(bytes, self.grid.codec, element);
        };
        let bytes = match array.sample_bytes() {
            Some(bytes) => {
                let mut chunk = std::mem::take(&mut column.bytes);
                chunk.resize(to_usize(bytes).saturating_mul(samples), 0);
                chunk
            }
            None => {
                let items = (0..batch.n).map(|idx| column.item(idx));
                if matches!(array.kind, Kind::Texts) {
                    for item in items.clone() {
                        str::from_utf8(item).map_err(|e| e.to_string())?;
                    }
                }
                framed(items, samples)?
            }
        };
        packed(bytes, self.grid.codec, element)
    }
}

impl Encode for ZarrEncoder {
    type Ready = Chunks;

    fn encode(&self, mut batch: Batch) -> Result<Chunks, ConvertError> {
        let mut chunks = Vec::with_capacity(self.arrays.len());
        for (number, array) in self.arrays.iter().enumerate() {
            let chunk = self.chunk(array, number, &mut batch);
            chunks.push(chunk.map_err(|reason| ConvertError::BadItem {
                sample: batch.first,
                field: array.name.clone(),
                reason,
            })?);
        }
        let paths = batch.paths.iter().filter(|_| self.has_paths);
        let bent = paths.filter(|path| str::from_utf8(path).is_err()).count();
        Ok(Chunks { first: batch.first, chunks, bent_paths: to_u64(bent) })
    }
}

impl Sink for ZarrSink {
    type Encoder = ZarrEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let grid = grid(start)?;
        let mut lost = Vec::new();
        let mut arrays = arrays(start, &mut lost);
        for array in &arrays {
            let bytes = array.sample_bytes().unwrap_or(1).saturating_mul(grid.chunk);
            if bytes > MAX_CHUNK_BYTES {
                let reason = format!("chunks of {} samples of `{}` exceed 1 GiB", grid.chunk, array.name);
                return Err(ConvertError::options(reason, format!("choose fewer samples with {CHUNK}")));
            }
        }
        let mut has_paths = start.exported.has_paths;
        if has_paths && arrays.iter().any(|array| array.name == PATHS) {
            has_paths = false;
            lost.push(format!("the samples' paths, because another field is named `{PATHS}`"));
        }
        if has_paths {
            arrays.push(Array { name: PATHS.to_owned(), kind: Kind::Texts, dims: Vec::new(), classes: Vec::new() });
        }
        let per_shard = grid.shard.map(|shard| shard / grid.chunk);
        let per_shard = per_shard.and_then(|n| usize::try_from(n).ok());
        let shards = per_shard.map(|n| arrays.iter().map(|_| Shards::new(n)).collect());
        let sink = Self {
            target: start.target.to_owned(),
            folder: start.path.to_owned(),
            encoder: ZarrEncoder { arrays, has_paths, grid },
            shards: shards.unwrap_or_default(),
            lost,
            bent_paths: 0,
        };
        let described = sink.describe(&start.metadata.to_text());
        described.map_err(ConvertError::io(&sink.target))?;
        Ok(sink)
    }

    fn encoder(&self) -> ZarrEncoder {
        self.encoder.clone()
    }

    fn write(&mut self, ready: Chunks) -> Result<(), ConvertError> {
        self.bent_paths += ready.bent_paths;
        let ZarrEncoder { arrays, grid, .. } = &self.encoder;
        let number = ready.first / grid.shard.unwrap_or(grid.chunk);
        for (idx, (array, chunk)) in arrays.iter().zip(&ready.chunks).enumerate() {
            let key = array.key(grid.version, number);
            let path = self.folder.join(&array.name).join(key);
            match self.shards.get_mut(idx) {
                Some(shards) => shards.append(&path, chunk)?,
                None => fs::write(&path, chunk).map_err(ConvertError::io(&path))?,
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        for shards in &mut self.shards {
            shards.close()?;
        }
        if self.bent_paths > 0 {
            self.lost.push(not_utf8(self.bent_paths));
        }
        Ok(self.lost)
    }
}

#[cfg(test)]
mod tests;
