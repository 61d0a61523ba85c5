//! All pixels as one array somewhere in one file, mapped: `.npy`, `.npz`, `.pt`, `.safetensors`.

use packds_system::{to_u64, to_usize};
use std::fs::File;
use std::sync::Arc;

use serde_json::Value;
use zip::{CompressionMethod, ZipArchive};

use super::Made;
use super::npy::header_bytes;
use crate::BenchError;
use crate::formats::candidate::{Batch, Candidate, Reader};
use crate::formats::map::Map;
use crate::formats::order::Rows;

/// The file, and where in it the pixels of the first sample begin.
pub(crate) struct ArrayFile {
    made: Made,
    offset: usize,
    labels: Arc<[i64]>,
}

impl ArrayFile {
    /// The array that a `.npy` holds.
    pub(crate) fn npy(made: &Made) -> Result<Self, BenchError> {
        let map = Map::open(&made.path)?;
        let offset = header_bytes(map.as_ref()).ok_or_else(|| made.odd("not a .npy"))?;
        Self::at(made, offset)
    }

    /// The array `image` of a `.npz` that is stored without compression.
    pub(crate) fn npz(made: &Made) -> Result<Self, BenchError> {
        let map = Map::open(&made.path)?;
        let member = stored_members(made)?.into_iter().find(|member| member.name == "image.npy");
        let start = member.map_or(usize::MAX, |member| member.start);
        let header = map.as_ref().get(start..).and_then(header_bytes);
        let header = header.ok_or_else(|| made.odd("no stored image.npy"))?;
        Self::at(made, start + header)
    }

    /// The tensor of a `.pt` that is as large as all pixels.
    pub(crate) fn pt(made: &Made) -> Result<Self, BenchError> {
        let mut members = stored_members(made)?.into_iter();
        let storage = members.find(|member| member.bytes == made.pixel_bytes());
        let storage = storage.ok_or_else(|| made.odd("no tensor of all pixels"))?;
        Self::at(made, storage.start)
    }

    /// The tensor `image` of a `.safetensors`.
    pub(crate) fn safetensors(made: &Made) -> Result<Self, BenchError> {
        let map = Map::open(&made.path)?;
        let odd = || made.odd("no tensor `image`");
        let (len, rest) = map.as_ref().split_first_chunk::<8>().ok_or_else(odd)?;
        let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| odd())?;
        let header: Value =
            serde_json::from_slice(rest.get(..len).ok_or_else(odd)?).map_err(|error| made.odd(&error.to_string()))?;
        let start = header["image"]["data_offsets"][0].as_u64().ok_or_else(odd)?;
        let start = usize::try_from(start).map_err(|_| odd())?;
        Self::at(made, 8 + len + start)
    }

    fn at(made: &Made, offset: usize) -> Result<Self, BenchError> {
        let len = std::fs::metadata(&made.path).map_err(BenchError::io(&made.path))?;
        let start = to_u64(offset);
        if start.saturating_add(made.pixel_bytes()) > len.len() {
            return Err(made.odd("too short for all pixels"));
        }
        Ok(Self { labels: made.listed_labels(), made: made.clone(), offset })
    }
}

/// A member of a zip file that is stored as it is.
struct Member {
    name: String,
    start: usize,
    bytes: u64,
}

fn stored_members(made: &Made) -> Result<Vec<Member>, BenchError> {
    let file = File::open(&made.path).map_err(BenchError::io(&made.path))?;
    let odd = |error: zip::result::ZipError| made.odd(&error.to_string());
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

impl Candidate for ArrayFile {
    fn open(&self, threads: usize) -> Result<Vec<Box<dyn Reader>>, BenchError> {
        let map = Arc::new(Map::open(&self.made.path)?);
        let reader = || MappedRows {
            map: Arc::clone(&map),
            offset: self.offset,
            sample_bytes: self.made.sample_bytes,
            labels: Arc::clone(&self.labels),
        };
        Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
    }
}

struct MappedRows {
    map: Arc<Map>,
    offset: usize,
    sample_bytes: usize,
    labels: Arc<[i64]>,
}

impl MappedRows {
    /// The pixels of samples that lie one behind the other.
    fn pixels(&self, first: u64, bytes: usize) -> &[u8] {
        let first = to_usize(first);
        let start = first.saturating_mul(self.sample_bytes);
        let start = start.saturating_add(self.offset);
        let all = self.map.as_ref().as_ref();
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
        out.set_labels(rows, &self.labels);
        Ok(())
    }
}
