//! Reads the bytes of a pickle from part of a file, one piece at a time.

use super::super::store::OpenFile;
use crate::error::ConvertError;

/// Bytes read at a time.
const PIECE_BYTES: u64 = 1 << 16;

/// A position in part of a file.
pub(super) struct Input<'a> {
    file: &'a OpenFile,
    /// The current offset in the file.
    pub(super) at: u64,
    end: u64,
    piece: Vec<u8>,
    /// The piece's offset in the file.
    piece_at: u64,
}

impl<'a> Input<'a> {
    pub(super) fn new(file: &'a OpenFile, start: u64, end: u64) -> Self {
        Self { file, at: start, end: end.min(file.bytes), piece: Vec::new(), piece_at: start }
    }

    /// An error at an offset.
    pub(super) fn wrong(&self, at: u64, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(&self.file.path, &format!("pickle, byte {at}"), reason)
    }

    /// The error for valid but unsupported content at an offset.
    pub(super) fn refused(&self, at: u64, reason: impl Into<String>, hint: &str) -> ConvertError {
        let place = format!("pickle, byte {at}");
        ConvertError::unsupported(&self.file.path, &place, reason, hint)
    }

    /// Number of remaining bytes.
    fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ConvertError> {
        if self.left() == 0 {
            return Err(self.wrong(self.at, "the pickle is truncated"));
        }
        let place = |input: &Self| usize::try_from(input.at.checked_sub(input.piece_at)?).ok();
        let found = place(self).and_then(|at| self.piece.get(at).copied());
        let byte = match found {
            Some(byte) => byte,
            None => {
                self.piece.clear();
                self.piece_at = self.at;
                let bytes = self.left().min(PIECE_BYTES);
                let read = self.file.append_at(self.at, bytes, &mut self.piece);
                read.map_err(|e| self.wrong(self.at, e.to_string()))?;
                self.piece.first().copied().unwrap_or(0)
            }
        };
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ConvertError> {
        let mut out = [0; N];
        for byte in &mut out {
            *byte = self.byte()?;
        }
        Ok(out)
    }

    /// Reads a few bytes into memory.
    pub(super) fn bytes(&mut self, n: u64) -> Result<Vec<u8>, ConvertError> {
        let at = self.skip(n)?;
        self.file.bytes_at(at, n).map_err(|e| self.wrong(at, e.to_string()))
    }

    /// Skips `n` bytes. Returns the offset of the first.
    pub(super) fn skip(&mut self, n: u64) -> Result<u64, ConvertError> {
        let (at, left) = (self.at, self.left());
        if n > left {
            return Err(self.wrong(at, format!("expected {n} bytes, found {left}")));
        }
        self.at += n;
        Ok(at)
    }

    /// Reads text to the end of the line: a number or a name.
    pub(super) fn line(&mut self) -> Result<Vec<u8>, ConvertError> {
        self.long_line(4096)
    }

    /// Reads at most `limit` bytes of text to the end of the line.
    pub(super) fn long_line(&mut self, limit: u64) -> Result<Vec<u8>, ConvertError> {
        let (start, mut line) = (self.at, Vec::new());
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                byte => line.push(byte),
            }
            if self.at.saturating_sub(start) > limit {
                let reason = format!("expected a line of at most {limit} bytes");
                return Err(self.wrong(start, reason));
            }
        }
    }
}
