//! Formats that store all pixels as one array in one file, which is mapped: `.npy`, `.npz`, `.pt`, `.safetensors`.

use packds_system::{to_u64, to_usize};
use std::fs::File;
use std::sync::Arc;

use serde_json::Value;
use zip::{CompressionMethod, ZipArchive};

use super::Made;
use super::npy::header_bytes;
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::map::Map;
use crate::formats::order::Rows;

/// The array in a `.npy` file.
pub(crate) fn npy(made: &Made) -> Result<Open, BenchError> {
    let map = Map::open(&made.path)?;
    at(made, header_bytes(map.as_ref()).ok_or_else(|| made.odd("not a .npy file"))?)
}

/// The array `image` in a `.npz` file, stored without compression.
pub(crate) fn npz(made: &Made) -> Result<Open, BenchError> {
    let map = Map::open(&made.path)?;
    let member = stored_members(made)?.into_iter().find(|member| member.name == "image.npy");
    let start = member.map_or(usize::MAX, |member| member.start);
    let header = map.as_ref().get(start..).and_then(header_bytes);
    at(made, start + header.ok_or_else(|| made.odd("no uncompressed image.npy"))?)
}

/// The tensor with the pixels in a `.pt` file: the first tensor that is as large as all pixels together.
pub(crate) fn pt(made: &Made) -> Result<Open, BenchError> {
    let mut members = stored_members(made)?.into_iter();
    let storage = members.find(|member| member.bytes == made.pixel_bytes());
    at(made, storage.ok_or_else(|| made.odd("no tensor holds all pixels"))?.start)
}

/// The tensor `image` in a `.safetensors` file.
pub(crate) fn safetensors(made: &Made) -> Result<Open, BenchError> {
    let map = Map::open(&made.path)?;
    let odd = || made.odd("no tensor `image`");
    let (len, rest) = map.as_ref().split_first_chunk::<8>().ok_or_else(odd)?;
    let len = to_usize(u64::from_le_bytes(*len));
    let header = serde_json::from_slice(rest.get(..len).ok_or_else(odd)?);
    let header: Value = header.map_err(|error| made.failed(error))?;
    let start = header["image"]["data_offsets"][0].as_u64().ok_or_else(odd)?;
    at(made, 8 + len + to_usize(start))
}

/// Opens the mapped array. The pixels of the first sample begin at `offset`.
fn at(made: &Made, offset: usize) -> Result<Open, BenchError> {
    let len = std::fs::metadata(&made.path).map_err(BenchError::io(&made.path))?.len();
    if to_u64(offset).saturating_add(made.pixel_bytes()) > len {
        return Err(made.odd("too short for all pixels"));
    }
    let made = made.with_listed_labels();
    Ok(Box::new(move |threads| {
        let map = Arc::new(Map::open(&made.path)?);
        readers(threads, || MappedRows { made: made.clone(), map: Arc::clone(&map), offset })
    }))
}

/// An uncompressed member of a zip file.
struct Member {
    name: String,
    start: usize,
    bytes: u64,
}

fn stored_members(made: &Made) -> Result<Vec<Member>, BenchError> {
    let file = File::open(&made.path).map_err(BenchError::io(&made.path))?;
    let odd = |error: zip::result::ZipError| made.failed(error);
    let mut archive = ZipArchive::new(file).map_err(odd)?;
    let mut members = Vec::new();
    for i in 0..archive.len() {
        let member = archive.by_index(i).map_err(odd)?;
        if member.compression() != CompressionMethod::Stored {
            continue;
        }
        let start = member.data_start().unwrap_or(u64::MAX);
        members.push(Member { name: member.name().to_owned(), start: to_usize(start), bytes: member.size() });
    }
    Ok(members)
}

struct MappedRows {
    made: Made,
    map: Arc<Map>,
    offset: usize,
}

impl MappedRows {
    /// The pixels of consecutive samples.
    fn pixels(&self, first: u64, bytes: usize) -> &[u8] {
        let start = to_usize(first).saturating_mul(self.made.sample_bytes).saturating_add(self.offset);
        let all: &[u8] = (*self.map).as_ref();
        all.get(start..start.saturating_add(bytes)).unwrap_or_default()
    }
}

impl Reader for MappedRows {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        match rows {
            Rows::Run(run) => {
                let out = out.pixels_mut();
                out.copy_from_slice(self.pixels(run.start, out.len()));
            }
            Rows::Each(samples) => {
                for (out, sample) in out.samples_mut().zip(samples) {
                    out.copy_from_slice(self.pixels(*sample, out.len()));
                }
            }
        }
        out.set_labels(rows, &self.made.labels);
        Ok(())
    }
}
