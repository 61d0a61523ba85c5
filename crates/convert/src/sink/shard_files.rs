//! Writes the files of a set of shards one after another. Each file contains whole samples and may be compressed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use packds_system::to_u64;

use super::gzip_stream::{GzipPart, GzipStream};
use super::{Batch, SinkStart};
use crate::error::ConvertError;
use crate::export::ExportCodec;

const WRITE_BYTES: usize = 1 << 20;

pub(crate) struct ShardFiles {
    /// The folder, or the single file.
    path: PathBuf,
    is_folder: bool,
    file: Option<Out>,
    is_gzip: bool,
}

enum Out {
    Plain(BufWriter<File>),
    Gzip(GzipStream<BufWriter<File>>),
}

pub(crate) enum Piece {
    Begin(u64),
    Plain(Vec<u8>),
    Packed(GzipPart),
}

impl Piece {
    /// A piece of a file with these bytes. They are compressed if `level` is set.
    pub(super) fn of(bytes: Vec<u8>, level: Option<u32>) -> Result<Self, ConvertError> {
        match level {
            None => Ok(Self::Plain(bytes)),
            Some(level) => GzipPart::new(&bytes, level).map(Self::Packed).map_err(ConvertError::io(Path::new("gzip"))),
        }
    }
}

/// How samples are distributed over files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(super) n_samples: u64,
    pub(super) samples: u64,
}

impl Spread {
    pub(super) fn of(start: &SinkStart<'_>) -> Self {
        let all = start.n_samples.max(1);
        Self { n_samples: start.n_samples, samples: start.options.shard_samples.unwrap_or(all).clamp(1, all) }
    }

    pub(super) fn n_files(self) -> u64 {
        self.n_samples.div_ceil(self.samples).max(1)
    }

    /// Splits a batch where a file ends, and marks where each file begins. Each file begins with `head` and ends with
    /// `tail`. `sample` appends one sample, given its position in the batch and its index in the export.
    pub(super) fn pieces(
        self,
        batch: &Batch,
        level: Option<u32>,
        (head, tail): (&[u8], &[u8]),
        sample: impl Fn(usize, u64, &mut Vec<u8>) -> Result<(), ConvertError>,
    ) -> Result<Vec<Piece>, ConvertError> {
        let (mut pieces, mut bytes) = (Vec::new(), Vec::new());
        for k in 0..batch.n {
            let number = batch.first.saturating_add(to_u64(k));
            if number.is_multiple_of(self.samples) {
                pieces.push(Piece::Begin(number / self.samples));
                bytes.extend_from_slice(head);
            }
            sample(k, number, &mut bytes)?;
            let is_last = number + 1 == self.n_samples || (number + 1).is_multiple_of(self.samples);
            if is_last {
                bytes.extend_from_slice(tail);
            }
            if is_last || k + 1 == batch.n {
                pieces.push(Piece::of(std::mem::take(&mut bytes), level)?);
            }
        }
        Ok(pieces)
    }
}

impl ShardFiles {
    pub(crate) fn create(start: &SinkStart<'_>) -> Self {
        Self {
            path: start.path.to_owned(),
            is_folder: start.path.is_dir(),
            file: None,
            is_gzip: gzip_level(start).is_some(),
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Writes pieces in order. In a folder, `name` returns the name of the file with the given index.
    pub(super) fn put(&mut self, pieces: Vec<Piece>, name: impl Fn(u64) -> String) -> Result<(), ConvertError> {
        pieces.into_iter().try_for_each(|piece| match piece {
            Piece::Begin(number) => self.begin(&name(number)),
            piece => self.append(&piece),
        })
    }

    /// Starts the next file. In a folder, it is called `name`.
    fn begin(&mut self, name: &str) -> Result<(), ConvertError> {
        self.end()?;
        let (path, file) = if self.is_folder {
            let path = self.path.join(name);
            let file = File::create_new(&path);
            (path, file)
        } else {
            (self.path.clone(), File::create(&self.path))
        };
        let file = file.map_err(ConvertError::io(&path))?;
        let file = BufWriter::with_capacity(WRITE_BYTES, file);
        self.file = Some(match self.is_gzip {
            true => Out::Gzip(GzipStream::begin(file).map_err(ConvertError::io(&path))?),
            false => Out::Plain(file),
        });
        Ok(())
    }

    fn append(&mut self, piece: &Piece) -> Result<(), ConvertError> {
        let written = match (&mut self.file, piece) {
            (Some(Out::Plain(file)), Piece::Plain(bytes)) => file.write_all(bytes),
            (Some(Out::Gzip(file)), Piece::Packed(part)) => file.append(part),
            // This cannot happen: the pieces always match the current file.
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        };
        written.map_err(ConvertError::io(&self.path))
    }

    pub(super) fn end(&mut self) -> Result<(), ConvertError> {
        let flushed = match self.file.take() {
            Some(Out::Plain(mut file)) => file.flush(),
            Some(Out::Gzip(file)) => file.finish().and_then(|mut out| out.flush()),
            None => Ok(()),
        };
        flushed.map_err(ConvertError::io(&self.path))
    }

    /// Writes a file next to the shards if they are in a folder.
    pub(super) fn beside(&self, name: &str, text: &str) -> Result<(), ConvertError> {
        if self.is_folder {
            let path = self.path.join(name);
            std::fs::write(&path, text).map_err(ConvertError::io(&path))?;
        }
        Ok(())
    }
}

/// The gzip level, if requested by an option or by the name of a single file.
pub(super) fn gzip_level(start: &SinkStart<'_>) -> Option<u32> {
    const DEFAULT_LEVEL: u32 = 6;
    let is_gzip_name = |path: &Path| {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        extension.eq_ignore_ascii_case("gz") || extension.eq_ignore_ascii_case("tgz")
    };
    match start.options.codec {
        Some(ExportCodec::Gzip(level)) => Some(level),
        None if start.path.is_file() && is_gzip_name(start.target) => Some(DEFAULT_LEVEL),
        _ => None,
    }
}
