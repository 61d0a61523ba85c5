//! NumPy's `.npz`: each field is an array in a zip file, stored or deflated.

use packds_system::{to_u64, to_usize};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use flate2::{Compress, Compression, FlushCompress, Status};

use super::fields::held_names;
use super::npy::header_of;
use super::npy_header::npy_header_of;
use super::placed::{
    CLASSES, PieceEncoder, Pieces, PlacedFile, Planned, bf16_notes, crc32, crc32_joined, hidden_notes, is_taken,
    planned,
};
use super::zip_file::{Member, directory};
use super::{Sink, SinkStart};
use crate::error::ConvertError;
use crate::export::ExportCodec;
use crate::metadata::METADATA_KEY;

const COPY_BYTES: usize = 1 << 20;
/// An empty block that is marked as the last, to end deflated data after a flush.
const DEFLATE_END: [u8; 2] = [3, 0];

pub(crate) struct NpzSink {
    arrays: Vec<Planned>,
    file: PlacedFile,
    target: PathBuf,
    members: Vec<Open>,
    /// Names and contents of small members that are known from the start.
    extras: Vec<(String, Vec<u8>)>,
    level: Option<u32>,
    lost: Vec<String>,
}

struct Open {
    member: Member,
    /// Length of the NumPy header that precedes the items.
    header: u64,
    item_bytes: u64,
    /// Holds deflated bytes until the end of the previous member is known. `None` for the first member.
    waiting: Option<std::fs::File>,
}

impl NpzSink {
    fn begin(&mut self, start: &SinkStart<'_>) -> Result<(), ConvertError> {
        let folder = start.path.parent().map_or(PathBuf::from("."), PathBuf::from);
        let mut end = 0;
        for array in &self.arrays {
            let head = header_of(array);
            let header = to_u64(head.len());
            let name = format!("{}.npy", array.name);
            let mut member = Member::stored(&name, header.saturating_add(array.bytes()), end);
            member.crc = crc32(&head);
            let mut open = Open { member, header, item_bytes: array.item_bytes, waiting: None };
            if let Some(level) = self.level {
                (open.member.is_deflated, open.member.stored) = (true, 0);
                if !self.members.is_empty() {
                    let waiting = tempfile::tempfile_in(&folder);
                    open.waiting = Some(waiting.map_err(ConvertError::io(&self.target))?);
                }
                let deflated = deflate(&head, level);
                open.append(&deflated, &self.file, &self.target)?;
            } else {
                self.file.write_at(&head, open.member.data())?;
                end = open.member.end();
            }
            self.members.push(open);
        }
        Ok(())
    }
}

impl Open {
    fn append(&mut self, bytes: &[u8], file: &PlacedFile, target: &std::path::Path) -> Result<(), ConvertError> {
        match &mut self.waiting {
            Some(waiting) => waiting.write_all(bytes).map_err(ConvertError::io(target))?,
            None => file.write_at(bytes, self.member.end())?,
        }
        self.member.stored += to_u64(bytes.len());
        Ok(())
    }

    /// Copies the waiting bytes to their final position.
    fn settle(&mut self, file: &PlacedFile, target: &std::path::Path) -> Result<(), ConvertError> {
        let Some(mut waiting) = self.waiting.take() else {
            return Ok(());
        };
        let mut at = self.member.data();
        let mut piece = vec![0; COPY_BYTES];
        waiting.seek(SeekFrom::Start(0)).map_err(ConvertError::io(target))?;
        loop {
            let n = waiting.read(&mut piece).map_err(ConvertError::io(target))?;
            if n == 0 {
                return Ok(());
            }
            file.write_at(piece.get(..n).unwrap_or_default(), at)?;
            at += to_u64(n);
        }
    }
}

/// An array of fixed-width strings as a complete `.npy` file.
fn texts(texts: &[String], shape: &[u64]) -> Vec<u8> {
    let width = texts.iter().map(|text| text.chars().count()).max();
    let width = width.unwrap_or(0).max(1);
    let mut file = npy_header_of(&format!("<U{width}"), shape);
    for text in texts {
        let end = file.len() + 4 * width;
        text.chars().for_each(|c| file.extend_from_slice(&u32::from(c).to_le_bytes()));
        file.resize(end, 0);
    }
    file
}

/// Deflates `bytes` without a header. The result ends at a byte boundary, so the next piece can follow directly.
pub(super) fn deflate(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut state = Compress::new(Compression::new(level), false);
    let mut out = Vec::with_capacity(bytes.len() / 2 + 64);
    let mut taken = 0;
    loop {
        let rest = bytes.get(taken..).unwrap_or_default();
        let before = (state.total_in(), out.len());
        let status = state.compress_vec(rest, &mut out, FlushCompress::Full);
        taken += to_usize(state.total_in() - before.0);
        // If the output buffer has space left, everything has been flushed.
        let done = taken == bytes.len() && out.len() < out.capacity();
        if done || !matches!(status, Ok(Status::Ok | Status::BufError)) {
            return out;
        }
        out.reserve(bytes.len() / 4 + 64);
    }
}

impl Sink for NpzSink {
    type Encoder = PieceEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let level = match start.options.codec {
            Some(ExportCodec::Gzip(level)) => Some(level.clamp(1, 9)),
            _ => None,
        };
        let mut arrays = planned(start);
        let of: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
        let mut lost = Vec::new();
        // Names are made safe, because a member named `../x` could be unpacked outside its folder.
        let names = held_names(&of, &of, "a member of a zip file", &mut lost);
        for (array, name) in arrays.iter_mut().zip(names) {
            array.name = name;
        }
        let mut extras = Vec::new();
        let classes = start.metadata.class_names("label");
        if !classes.is_empty() && !is_taken(&arrays, CLASSES) {
            let n = to_u64(classes.len());
            extras.push((CLASSES.to_owned(), texts(classes, &[n])));
        }
        if !is_taken(&arrays, METADATA_KEY) {
            let text = texts(&[start.metadata.to_text()], &[]);
            extras.push((METADATA_KEY.to_owned(), text));
        }
        lost.extend(hidden_notes(start, &arrays, true));
        lost.extend(bf16_notes(&arrays));
        let mut sink = Self {
            file: PlacedFile::open(start.path, start.target)?,
            target: start.target.to_owned(),
            members: Vec::new(),
            extras,
            level,
            lost,
            arrays,
        };
        sink.begin(start)?;
        Ok(sink)
    }

    fn encoder(&self) -> PieceEncoder {
        PieceEncoder::new(&self.arrays, true, self.level)
    }

    fn write(&mut self, Pieces { first, pieces }: Pieces) -> Result<(), ConvertError> {
        for (open, piece) in self.members.iter_mut().zip(&pieces) {
            open.member.crc = crc32_joined(open.member.crc, piece.crc, piece.len);
            if self.level.is_some() {
                open.append(&piece.bytes, &self.file, &self.target)?;
            } else {
                let at = open.header.saturating_add(first.saturating_mul(open.item_bytes));
                self.file.write_at(&piece.bytes, open.member.data().saturating_add(at))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        let mut end = 0;
        for open in &mut self.members {
            open.member.header = end;
            if self.level.is_some() {
                open.append(&DEFLATE_END, &self.file, &self.target)?;
                open.settle(&self.file, &self.target)?;
            }
            self.file.write_at(&open.member.local_header(), end)?;
            end = open.member.end();
        }
        let mut members: Vec<Member> = self.members.into_iter().map(|open| open.member).collect();
        for (name, bytes) in &self.extras {
            members.push(self.file.write_member(&format!("{name}.npy"), bytes, &mut end)?);
        }
        self.file.write_at(&directory(&members, end), end)?;
        Ok(self.lost)
    }
}
