//! Files that are read from start to end: tar files of WebDataset, and TFRecord files.

use packds_system::{to_u64, to_usize};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::Made;
use super::decode::Pictures;
use super::npy::header_bytes;
use super::proto::example;
use crate::BenchError;
use crate::formats::cache::files_of;
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::order::Rows;

/// Size of the read buffer in bytes. Larger reads bypass it.
const BUFFER: usize = 256 << 10;
/// Headers and data of tar files come in blocks of this many bytes.
const BLOCK: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tar,
    Records,
}

pub(crate) fn tar(made: &Made) -> Result<Open, BenchError> {
    shards(made, Kind::Tar, ".tar")
}

pub(crate) fn records(made: &Made) -> Result<Open, BenchError> {
    // TensorFlow's own file names continue after the extension: `.tfrecord-00000-of-00004`.
    shards(made, Kind::Records, ".tfrecord")
}

/// Opens the files with `part` in their names. Each file is a shard.
fn shards(made: &Made, kind: Kind, part: &str) -> Result<Open, BenchError> {
    let mut files = files_of(&made.path)?;
    files.retain(|path| path.file_name().unwrap_or_default().to_string_lossy().contains(part));
    let expected = made.n_samples.div_ceil(made.shard.max(1));
    if !made.shard.is_multiple_of(made.batch.max(1)) {
        return Err(made.odd("a batch extends over two shards"));
    }
    if to_u64(files.len()) != expected {
        return Err(made.odd(&format!("{} shards, not {expected}", files.len())));
    }
    let (shard, channels, files): (_, _, Arc<[PathBuf]>) = (made.shard.max(1), made.channels, files.into());
    Ok(Box::new(move |threads| {
        readers(threads, || Walk {
            kind,
            shard,
            files: Arc::clone(&files),
            next: 0,
            open: None,
            scratch: Vec::new(),
            pictures: Pictures::new(channels),
        })
    }))
}

/// The progress of one thread through its shards.
struct Walk {
    kind: Kind,
    shard: u64,
    files: Arc<[PathBuf]>,
    /// The next sample in the open file.
    next: u64,
    open: Option<(PathBuf, BufReader<File>)>,
    scratch: Vec<u8>,
    pictures: Pictures,
}

impl Reader for Walk {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        for (sample, (pixels, label)) in rows.iter().zip(out.rows_mut()) {
            self.go_to(sample)?;
            let Some((path, file)) = &mut self.open else {
                continue;
            };
            let read = match self.kind {
                Kind::Tar => {
                    let mut member = Members { file, scratch: &mut self.scratch, pictures: &mut self.pictures };
                    member.sample(pixels, label)
                }
                Kind::Records => record(file, &mut self.scratch, pixels, label),
            };
            read.map_err(BenchError::io(path.as_path()))?;
            self.next = sample + 1;
        }
        Ok(())
    }
}

impl Walk {
    /// Opens the sample's shard, unless it is already open.
    fn go_to(&mut self, sample: u64) -> Result<(), BenchError> {
        let begins = sample.is_multiple_of(self.shard);
        if self.open.is_some() && self.next == sample && !begins {
            return Ok(());
        }
        let number = to_usize(sample / self.shard);
        let path = self.files.get(number).cloned().unwrap_or_default();
        let file = File::open(&path).map_err(BenchError::io(&path))?;
        if !begins {
            let odd = std::io::Error::other("shards can only be read from the beginning");
            return Err(BenchError::io(&path)(odd));
        }
        self.open = Some((path, BufReader::with_capacity(BUFFER, file)));
        Ok(())
    }
}

fn odd(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}

struct Members<'a> {
    file: &'a mut BufReader<File>,
    scratch: &'a mut Vec<u8>,
    pictures: &'a mut Pictures,
}

impl Members<'_> {
    /// Reads members until there is an image and a label.
    fn sample(&mut self, pixels: &mut [u8], label: &mut i64) -> std::io::Result<()> {
        let (mut has_pixels, mut has_label) = (false, false);
        while !(has_pixels && has_label) {
            let mut header = [0; BLOCK];
            self.file.read_exact(&mut header)?;
            let (name, len) = member(&header)?;
            let padding = len.next_multiple_of(BLOCK) - len;
            let name = String::from_utf8_lossy(name);
            let (_, extension) = name.split_once('.').unwrap_or(("", ""));
            match extension {
                "cls" => {
                    *label = self.text(len)?.trim().parse().map_err(|_| odd("a label is not a number"))?;
                    has_label = true;
                }
                "image.npy" | "npy" => {
                    self.array(len, pixels)?;
                    has_pixels = true;
                }
                "png" | "jpg" | "jpeg" => {
                    self.bytes(len)?;
                    let decoded = self.pictures.decode(self.scratch, pixels);
                    if !decoded.map_err(std::io::Error::other)? {
                        return Err(odd("an image has a different size than was written"));
                    }
                    has_pixels = true;
                }
                _ => self.bytes(len)?,
            }
            let mut rest = [0; BLOCK];
            let rest = rest.get_mut(..padding).unwrap_or_default();
            self.file.read_exact(rest)?;
        }
        Ok(())
    }

    fn bytes(&mut self, len: usize) -> std::io::Result<()> {
        self.scratch.resize(len, 0);
        self.file.read_exact(self.scratch)
    }

    fn text(&mut self, len: usize) -> std::io::Result<&str> {
        self.bytes(len)?;
        std::str::from_utf8(self.scratch).map_err(std::io::Error::other)
    }

    /// Reads the data of a `.npy` member directly into place.
    fn array(&mut self, len: usize, pixels: &mut [u8]) -> std::io::Result<()> {
        let header = len.checked_sub(pixels.len()).filter(|header| *header < 4096);
        let header = header.ok_or_else(|| odd("an array has a different size than was written"))?;
        self.bytes(header)?;
        if header_bytes(self.scratch) != Some(header) {
            return Err(odd("an array has a different size than was written"));
        }
        self.file.read_exact(pixels)
    }
}

fn member(header: &[u8; BLOCK]) -> std::io::Result<(&[u8], usize)> {
    let field = |from: usize, to: usize| {
        let field = header.get(from..to).unwrap_or_default();
        field.split(|byte| *byte == 0).next().unwrap_or_default()
    };
    let digits = std::str::from_utf8(field(124, 136)).unwrap_or_default();
    let len = usize::from_str_radix(digits.trim(), 8);
    Ok((field(0, 100), len.map_err(|_| odd("a member has no valid length"))?))
}

/// Reads one record: its length, the length's checksum, its bytes, and their checksum. The checksums are not verified.
fn record(
    file: &mut BufReader<File>,
    scratch: &mut Vec<u8>,
    pixels: &mut [u8],
    label: &mut i64,
) -> std::io::Result<()> {
    let mut head = [0; 12];
    file.read_exact(&mut head)?;
    let [a, b, c, d, e, f, g, h, ..] = head;
    let len = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let len = usize::try_from(len).ok().filter(|len| *len < 1 << 31);
    scratch.resize(len.ok_or_else(|| odd("a record has no valid length"))? + 4, 0);
    file.read_exact(scratch)?;
    let found = example(scratch.split_last_chunk::<4>().map_or(&[][..], |(r, _)| r));
    let found = found.ok_or_else(|| odd("a record is not a tf.Example"))?;
    let image = found.bytes.iter().find(|bytes| bytes.len() == pixels.len());
    pixels.copy_from_slice(image.ok_or_else(|| odd("a record has no pixels"))?);
    *label = found.label.ok_or_else(|| odd("a record has no label"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lengths_of_members_are_read() {
        let mut header = [0; BLOCK];
        header[..10].copy_from_slice(b"000001.cls");
        header[124..135].copy_from_slice(b"00000000012");
        assert_eq!(member(&header).unwrap(), (&b"000001.cls"[..], 10));
        header[124] = b'x';
        assert!(member(&header).is_err());
    }
}
