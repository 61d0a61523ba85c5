//! Bytes that are unpacked before they are read. Each part of a spool may say where it comes from, so that another process can
//! unpack only the parts that it needs.

mod again;

use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use packds_system::to_usize;
use serde::{Deserialize, Serialize};

pub(crate) use self::again::Again;
pub(super) use self::again::unpack;
use super::ListOptions;
use super::compressed::{self, Compression};
use super::paths::FilePath;
use super::store::{OpenFile, ReadAt};
use super::whole::{ReadWhole, value_bytes};
use super::zip_dir::{self, ZipEntry, zip_entries};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::formats::Input;

/// A file, and how its pieces are unpacked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Packed {
    /// A compressed file. It is one piece.
    Stream(FilePath),
    /// A file whose samples or batches are compressed with zstd one by one. A piece is `rows` bytes from `start` on.
    Parts(FilePath),
    /// An ArrayRecord file. A piece is the records of the chunk at byte `place`, one after the other.
    ArrayRecord(FilePath),
    /// A zip file. A piece is the member at `place` in its directory.
    Zip(FilePath),
    /// An array of a file that holds one sample. It is one piece.
    Value { file: FilePath, format: String, name: String },
    /// A column of a Parquet file. A piece is `rows` rows from `start` on of the row group `place`.
    #[cfg(feature = "arrow")]
    Parquet(FilePath, super::table::Column),
    /// A column of an Arrow file. A piece is the record batch `place`.
    #[cfg(feature = "arrow")]
    Arrow(FilePath, super::table::Column),
    /// An HDF5 file. A piece is `rows` rows from `start` on of the dataset `place`.
    #[cfg(feature = "hdf5")]
    Hdf5(FilePath),
    /// A Zarr group. A piece is `rows` rows from `start` on of the array `place`.
    #[cfg(feature = "zarr")]
    Zarr(FilePath),
}

/// A part of a file that is unpacked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(super) struct Piece {
    /// The index of the file.
    pub(super) packed: u32,
    pub(super) place: u64,
    pub(super) start: u64,
    pub(super) rows: u64,
}

/// Where the bytes of a spool come from.
#[derive(Debug, Default)]
pub(super) struct Origin {
    packed: Vec<Packed>,
    pieces: Vec<Piece>,
    marks: Vec<Mark>,
}

/// The origin of the bytes up to the next mark.
#[derive(Debug)]
struct Mark {
    /// The offset in the spool.
    start: u64,
    /// The index of the piece. `None` if the bytes cannot be unpacked again by themselves.
    piece: Option<u32>,
    /// The offset in the unpacked piece.
    offset: u64,
}

impl Origin {
    /// Adds a file. Returns its index.
    pub(super) fn add(&mut self, packed: Packed) -> u32 {
        self.packed.push(packed);
        u32::try_from(self.packed.len() - 1).unwrap_or(u32::MAX)
    }

    /// Says that the bytes of the spool from `start` on are those of a piece.
    pub(super) fn begin(&mut self, start: u64, piece: Piece) {
        self.pieces.push(piece);
        self.at(start, 0);
    }

    /// Says that the bytes of the spool from `start` on are those of the last piece from `offset` on.
    pub(super) fn at(&mut self, start: u64, offset: u64) {
        let piece = self.pieces.len().checked_sub(1).and_then(|last| u32::try_from(last).ok());
        self.marks.push(Mark { start, piece, offset });
    }

    /// Says that the bytes of the spool from `start` on have no origin.
    #[cfg(any(test, feature = "arrow"))]
    pub(super) fn end(&mut self, start: u64) {
        if !self.marks.is_empty() {
            self.marks.push(Mark { start, piece: None, offset: 0 });
        }
    }

    /// The file and the piece that contain these bytes of the spool, and their offset in it.
    pub(super) fn find(&self, offset: u64, bytes: u64) -> Option<(&Packed, Piece, u64)> {
        let after = self.marks.partition_point(|mark| mark.start <= offset);
        let mark = self.marks.get(after.checked_sub(1)?)?;
        let end = self.marks.get(after).map_or(u64::MAX, |next| next.start);
        offset.checked_add(bytes).filter(|last| *last <= end)?;
        let piece = *self.pieces.get(usize::try_from(mark.piece?).ok()?)?;
        let packed = self.packed.get(usize::try_from(piece.packed).ok()?)?;
        Some((packed, piece, mark.offset.checked_add(offset - mark.start)?))
    }
}

/// An open file whose pieces are unpacked on any thread.
pub(super) trait Unpack: Send + Sync {
    /// The unpacked bytes of a piece.
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError>;
}

/// The error about a piece that is not in the file.
pub(super) fn no_piece(path: &std::path::Path, piece: &Piece) -> ConvertError {
    ConvertError::malformed(path, "", format!("the plan refers to {piece:?}, which is not in this file"))
}

impl Packed {
    /// The file.
    pub(super) fn path(&self) -> &FilePath {
        match self {
            Self::Stream(file)
            | Self::Parts(file)
            | Self::ArrayRecord(file)
            | Self::Zip(file)
            | Self::Value { file, .. } => file,
            #[cfg(feature = "arrow")]
            Self::Parquet(file, _) | Self::Arrow(file, _) => file,
            #[cfg(feature = "hdf5")]
            Self::Hdf5(file) => file,
            #[cfg(feature = "zarr")]
            Self::Zarr(folder) => folder,
        }
    }

    /// The same, with this file.
    pub(super) fn with_path(mut self, path: FilePath) -> Self {
        let own = match &mut self {
            Self::Stream(file)
            | Self::Parts(file)
            | Self::ArrayRecord(file)
            | Self::Zip(file)
            | Self::Value { file, .. } => file,
            #[cfg(feature = "arrow")]
            Self::Parquet(file, _) | Self::Arrow(file, _) => file,
            #[cfg(feature = "hdf5")]
            Self::Hdf5(file) => file,
            #[cfg(feature = "zarr")]
            Self::Zarr(folder) => folder,
        };
        *own = path;
        self
    }

    /// The files that contain these pieces.
    pub(super) fn files<'a>(&self, pieces: impl Iterator<Item = &'a Piece>) -> Vec<PathBuf> {
        #[cfg(feature = "zarr")]
        if let Self::Zarr(folder) = self {
            return super::zarr::chunk_files(folder.as_path(), pieces);
        }
        let _ = pieces;
        let path = self.path().as_path();
        // A folder, such as a Zarr array with one sample, has no size and time of its own.
        if path.is_dir() { Vec::new() } else { vec![path.to_owned()] }
    }

    fn open(&self, options: &ListOptions) -> Result<Arc<dyn Unpack>, ConvertError> {
        let path = self.path().as_path();
        let file = || OpenFile::open(path).map_err(ConvertError::io(path));
        Ok(match self {
            Self::Stream(_) => Arc::new(Stream(path.to_owned())),
            Self::Parts(_) => Arc::new(Parts(file()?)),
            Self::ArrayRecord(_) => super::array_record::pieces(path)?,
            Self::Zip(_) => {
                let file = file()?;
                Arc::new(Zip { entries: zip_entries(&file)?, file })
            }
            Self::Value { format, name, .. } => Arc::new(Value {
                read: reader(format).ok_or_else(|| no_piece(path, &Piece::default()))?,
                path: path.to_owned(),
                name: name.clone(),
                options: options.clone(),
            }),
            #[cfg(feature = "arrow")]
            Self::Parquet(_, column) => super::parquet::column_pieces(path, column)?,
            #[cfg(feature = "arrow")]
            Self::Arrow(_, column) => super::arrow::column_pieces(path, column)?,
            #[cfg(feature = "hdf5")]
            Self::Hdf5(_) => super::hdf5::pieces(path)?,
            #[cfg(feature = "zarr")]
            Self::Zarr(_) => super::zarr::pieces(path)?,
        })
    }
}

/// The function that reads the values of a file with one sample.
fn reader(format: &str) -> Option<ReadWhole> {
    match format.parse::<DataFormat>().ok()?.entry().input.as_ref()? {
        Input::Samples { whole, .. } => *whole,
        Input::Folder | Input::Manifest => None,
    }
}

struct Stream(PathBuf);

impl Unpack for Stream {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let opened = compressed::open(&self.0).map_err(ConvertError::io(&self.0))?;
        opened.map_or_else(|| Err(no_piece(&self.0, piece)), |unpacked| Ok(unpacked as Box<dyn Read>))
    }
}

struct Parts(OpenFile);

impl Unpack for Parts {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let part = BufReader::new(ReadAt::new(&self.0, piece.start).take(piece.rows));
        let unpacked = Compression::Zstd.unpack(part).map_err(ConvertError::io(&self.0.path))?;
        Ok(unpacked)
    }
}

struct Zip {
    file: OpenFile,
    entries: Vec<ZipEntry>,
}

impl Unpack for Zip {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let entry = self.entries.get(to_usize(piece.place)).ok_or_else(|| no_piece(&self.file.path, piece))?;
        zip_dir::unpack(&self.file, entry)
    }
}

struct Value {
    read: ReadWhole,
    path: PathBuf,
    name: String,
    options: ListOptions,
}

impl Unpack for Value {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let values = (self.read)(&self.path, &self.options)?;
        let value = values.iter().find(|value| value.name == self.name);
        let bytes = value_bytes(&self.path, value.ok_or_else(|| no_piece(&self.path, piece))?)?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

#[cfg(test)]
mod tests;
