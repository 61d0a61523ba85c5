//! The rows of a dataset. Contiguous rows are read in place. Other rows are unpacked.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use ::hdf5::dataset::Layout;
use ::hdf5::{Conversion, Dataset, H5Type, Hyperslab, SliceOrIndex};
use ndarray::IxDyn;
use packds_format::DType;

use super::chunks::{self, Chunks};
use super::file::{Element, H5Dataset, H5File};
use crate::dtypes::{Native, with_native};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::grid::{bands, is_plausible};
use crate::source::packed::{Packed, Piece};
use crate::source::spool::Spool;
use crate::source::store::RowPart;

/// Approximate number of bytes that the library reads at a time.
const BAND_BYTES: u64 = 4 << 20;
/// Size of the library's reference to a variable-length item, for 8-byte addresses.
const REFERENCE_BYTES: u64 = 16;

/// Bytes per element, as stored in the file or as converted by the library.
pub(super) fn element_bytes(element: &Element) -> u64 {
    match element {
        Element::Number { dtype, .. } => dtype.size(),
        Element::FixedText(bytes) => *bytes,
        Element::Text | Element::Bytes => REFERENCE_BYTES,
        Element::Other(_) => 0,
    }
}

/// Bytes of a row.
pub(super) fn row_bytes(file: &H5File, dataset: &H5Dataset) -> Result<u64, ConvertError> {
    let mut dims = dataset.shape.iter().skip(1);
    let bytes = dims.try_fold(element_bytes(&dataset.element), |n, d| n.checked_mul(*d));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        dataset.malformed(file, format!("rows must not be empty or too large, found shape {:?}", dataset.shape))
    })
}

/// Number of rows. Refuses sizes that a file of this length cannot contain under any compression.
pub(super) fn count(file: &H5File, dataset: &H5Dataset) -> Result<usize, ConvertError> {
    let rows = dataset.shape.first().copied().unwrap_or(0);
    let plausible = is_plausible(rows, row_bytes(file, dataset)?, file.open.bytes);
    let n = usize::try_from(rows).ok();
    n.filter(|_| plausible).ok_or_else(|| {
        dataset.malformed(
            file,
            format!("an array of shape {:?} does not fit in a file of {} bytes", dataset.shape, file.open.bytes),
        )
    })
}

/// The location of the rows, if they can be read in place. `None` if they must be unpacked.
pub(super) fn in_place(file: &H5File, dataset: &H5Dataset) -> Result<Option<RowPart>, ConvertError> {
    let rows = count(file, dataset)?;
    let stride = row_bytes(file, dataset)?;
    let exact = !matches!(dataset.element, Element::Number { exact: false, .. });
    if dataset.dataset.layout() != Layout::Contiguous || !exact {
        return Ok(None);
    }
    refuse_other_files(file, dataset)?;
    let Some(offset) = dataset.dataset.offset() else {
        return Ok(None);
    };
    let bytes = stride.checked_mul(dataset.shape.first().copied().unwrap_or(0));
    let end = bytes.and_then(|bytes| bytes.checked_add(offset));
    if end.is_none_or(|end| end > file.open.bytes) {
        return Err(dataset.malformed(
            file,
            format!(
                "expected {} bytes at {offset}, found {}",
                bytes.unwrap_or(u64::MAX),
                file.open.bytes.saturating_sub(offset)
            ),
        ));
    }
    Ok(Some(RowPart { file: Arc::clone(&file.open), offset, rows, stride }))
}

/// Refuses datasets stored in external files: they could name any file.
pub(super) fn refuse_other_files(file: &H5File, dataset: &H5Dataset) -> Result<(), ConvertError> {
    let plist = dataset.dataset.dcpl();
    let plist = plist.map_err(|e| dataset.malformed(file, e.to_string()))?;
    let virtual_layout = plist.layout() == Layout::Virtual;
    if virtual_layout || !plist.external().is_empty() {
        let reason = "its data is in other files (virtual or external storage)";
        let hint = "pass those files, or copy the dataset into one file (h5repack, or h5py)";
        return Err(ConvertError::unsupported(&file.open.path, &dataset.path, reason, hint));
    }
    Ok(())
}

/// How the rows of a dataset are unpacked.
pub(super) enum Unpacker {
    /// Chunk by chunk, on all threads.
    Chunks(Chunks),
    /// Through the library.
    Library(Read),
    /// The dataset was never written, so its values are null references or empty strings.
    Zeros,
}

impl Unpacker {
    pub(super) fn of(file: &H5File, dataset: &H5Dataset) -> Result<Self, ConvertError> {
        refuse_other_files(file, dataset)?;
        let exact = !matches!(dataset.element, Element::Number { exact: false, .. });
        if exact && let Some(chunks) = Chunks::of(file, dataset)? {
            return Ok(Self::Chunks(chunks));
        }
        let read = match dataset.element {
            Element::Number { dtype, .. } => reader(dtype),
            _ => None,
        };
        if let Some(read) = read {
            return Ok(Self::Library(read));
        }
        let unwritten = dataset.dataset.offset().is_none();
        if unwritten && dataset.dataset.layout() == Layout::Contiguous {
            return Ok(Self::Zeros);
        }
        let reason = "strings and bytes are read only from chunked or contiguous storage, with the filters gzip, lzf, shuffle and fletcher32";
        let hint = "rewrite the dataset with gzip or without compression (h5repack -f GZIP=4, or h5py)";
        Err(ConvertError::unsupported(&file.open.path, &dataset.path, reason, hint))
    }

    /// The number of rows to unpack together.
    fn step(&self, file: &H5File, dataset: &H5Dataset) -> Result<u64, ConvertError> {
        // Reads whole chunks, because the library caches only small chunks between reads.
        let chunk = match self {
            Self::Chunks(chunks) => Some(chunks.rows()),
            Self::Library(_) => dataset.dataset.chunk().and_then(|chunk| chunk.first().map(|rows| to_u64(*rows))),
            Self::Zeros => None,
        };
        match chunk {
            Some(rows) => chunks::check_band(file, dataset, to_usize(rows)).map(|_| rows.max(1)),
            None => Ok((BAND_BYTES / row_bytes(file, dataset)?.max(1)).max(1)),
        }
    }

    fn band(&self, file: &H5File, dataset: &H5Dataset, start: u64, count: u64) -> Result<Vec<u8>, ConvertError> {
        match self {
            Self::Chunks(chunks) => chunks.band((file, dataset), start, count),
            Self::Library(read) => by_library(file, dataset, *read, (start, count)),
            Self::Zeros => Ok(vec![0; to_usize(row_bytes(file, dataset)?.saturating_mul(count))]),
        }
    }

    /// Any rows that start where rows are unpacked together.
    pub(super) fn rows(
        &self,
        file: &H5File,
        dataset: &H5Dataset,
        (start, rows): (u64, u64),
    ) -> Result<Vec<u8>, ConvertError> {
        let step = self.step(file, dataset)?;
        let (mut bytes, mut at) = (Vec::new(), start);
        while at < start.saturating_add(rows) {
            let count = step.min(start.saturating_add(rows) - at);
            bytes.extend_from_slice(&self.band(file, dataset, at, count)?);
            at = at.saturating_add(count);
        }
        Ok(bytes)
    }
}

/// Appends all rows to `spool`. `is_one` says that all rows together are one sample.
pub(super) fn unpack(
    file: &H5File,
    dataset: &H5Dataset,
    is_one: bool,
    options: &ListOptions,
    spool: &mut Spool,
) -> Result<(), ConvertError> {
    let unpacker = Unpacker::of(file, dataset)?;
    let step = unpacker.step(file, dataset)?;
    let all = to_u64(count(file, dataset)?);
    let jobs = if matches!(unpacker, Unpacker::Chunks(_)) { options.jobs } else { 1 };
    let packed = spool.unpacks(Packed::Hdf5(file.open.path.as_path().into()));
    let piece = |start, rows| Piece { packed, place: dataset.number, start, rows };
    if is_one {
        spool.begin(piece(0, all));
    }
    let band_bytes = row_bytes(file, dataset)?.saturating_mul(step.min(all));
    let unpack = |start, rows| Ok((start, rows, unpacker.band(file, dataset, start, rows)?));
    bands((all, step), band_bytes, jobs, unpack, |(start, rows, bytes): (u64, u64, Vec<u8>)| {
        if !is_one {
            spool.begin(piece(start, rows));
        }
        spool.append(&bytes).map(drop)
    })
}

pub(super) type Read = fn(&Dataset, Hyperslab) -> ::hdf5::Result<Vec<u8>>;

/// The function that reads elements of this type. Bools are enumerations, which the library reads into integers.
fn reader(dtype: DType) -> Option<Read> {
    let is_number = !matches!(dtype, DType::Bool | DType::Bf16);
    is_number.then(|| with_native!(dtype, T => bytes_of::<T> as Read))
}

fn bytes_of<T: H5Type + Native>(dataset: &Dataset, rows: Hyperslab) -> ::hdf5::Result<Vec<u8>> {
    let reader = dataset.as_reader().conversion(Conversion::Soft);
    let read = reader.read_slice::<T, _, IxDyn>(rows)?;
    let mut bytes = Vec::with_capacity(read.len().saturating_mul(size_of::<T>()));
    read.into_iter().for_each(|element| element.append_to(&mut bytes));
    Ok(bytes)
}

/// Reads rows through the library.
fn by_library(
    file: &H5File,
    dataset: &H5Dataset,
    read: Read,
    (start, count): (u64, u64),
) -> Result<Vec<u8>, ConvertError> {
    let rows = SliceOrIndex::SliceCount { start: to_usize(start), step: 1, count: to_usize(count), block: 1 };
    let mut slice = vec![rows];
    slice.resize(dataset.shape.len(), SliceOrIndex::from(..));
    let bytes = read(&dataset.dataset, Hyperslab::from(slice));
    bytes.map_err(|e| {
        let filters = dataset.dataset.filters();
        let known = dataset.dataset.dcpl().map(|p| p.all_filters_avail());
        match known {
            Ok(false) => ConvertError::unsupported(
                &file.open.path,
                &dataset.path,
                format!(
                    "it uses the filters {}, and the HDF5 library on this machine lacks some of them",
                    numbers(&filters)
                ),
                "rewrite the dataset with gzip or without compression (h5repack -f GZIP=4, or h5py)",
            ),
            _ => dataset.malformed(file, format!("cannot read the rows from {start} on: {e}")),
        }
    })
}

/// The registered numbers of filters, with the names of common ones.
fn numbers(filters: &[::hdf5::filters::Filter]) -> String {
    let name = |filter: &::hdf5::filters::Filter| match filter.id() {
        32001 => "Blosc (32001)".to_owned(),
        32004 => "LZ4 (32004)".to_owned(),
        32008 => "bitshuffle (32008)".to_owned(),
        32015 => "Zstandard (32015)".to_owned(),
        32026 => "Blosc2 (32026)".to_owned(),
        other => format!("number {other}"),
    };
    let names: Vec<String> = filters.iter().map(name).collect();
    names.join(", ")
}
