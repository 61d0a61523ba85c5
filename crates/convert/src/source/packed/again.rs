//! Unpacks the parts of files that a plan refers to, and no others, into one temporary file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_system::{to_u64, to_usize};

use super::{Packed, Piece, Unpack, no_piece};
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};
use crate::source::ListOptions;
use crate::source::compressed::is_damage;
use crate::source::spool::spool_error;
use crate::source::store::{OpenFile, Span};

/// Bytes that are copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// How the parts are unpacked.
pub(crate) struct Again<'a> {
    /// The folder of the temporary file, and the number of threads.
    pub(crate) options: ListOptions,
    /// Called often. An error stops the unpacking.
    pub(crate) check: &'a (dyn Fn() -> Result<(), ConvertError> + Sync),
}

/// Bytes of a piece, and where they go in the temporary file.
struct Want {
    offset: u64,
    bytes: u64,
    target: u64,
}

struct Task {
    path: PathBuf,
    opened: Arc<dyn Unpack>,
    piece: Piece,
    wants: Vec<Want>,
}

/// Unpacks the `spans`, each a piece's index and bytes in it, and points them to the temporary file that is returned.
pub(in crate::source) fn unpack(
    packed: &[Packed],
    pieces: &[Piece],
    mut spans: Vec<&mut Span>,
    again: &Again<'_>,
    plan: &Path,
) -> Result<OpenFile, ConvertError> {
    let folder = again.options.spool_folder().path;
    if spans.is_empty() {
        return OpenFile::empty().map_err(ConvertError::io(&folder));
    }
    let piece_of = |span: &Span| pieces.get(to_usize(span.file)).copied();
    // All pieces of a file follow one another, so each file is opened once.
    spans.sort_by_key(|span| (piece_of(span).map(|piece| piece.packed), span.file, span.offset));
    let (mut wanted, mut bytes): (Vec<(u32, Vec<Want>)>, u64) = (Vec::new(), 0);
    for span in spans {
        let end = span.offset.saturating_add(span.bytes);
        if wanted.last().is_none_or(|(piece, _)| *piece != span.file) {
            wanted.push((span.file, Vec::new()));
        }
        let wants = wanted.last_mut().map(|(_, wants)| wants);
        let Some(wants) = wants else { continue };
        // Samples may share bytes.
        let shared = wants.last_mut().filter(|last| span.offset < last.offset.saturating_add(last.bytes));
        let target = match shared {
            Some(last) => {
                let more = end.saturating_sub(last.offset.saturating_add(last.bytes));
                last.bytes = last.bytes.saturating_add(more);
                bytes = bytes.saturating_add(more);
                last.target.saturating_add(span.offset - last.offset)
            }
            None => {
                wants.push(Want { offset: span.offset, bytes: span.bytes, target: bytes });
                let target = bytes;
                bytes = bytes.saturating_add(span.bytes);
                target
            }
        };
        (span.file, span.offset) = (0, target);
    }
    let file = tempfile::tempfile_in(&folder).map_err(|error| spool_error(&folder, error))?;
    let mut opened: Option<(u32, Arc<dyn Unpack>)> = None;
    let mut wanted = wanted.into_iter();
    let task = || {
        (again.check)()?;
        let Some((number, wants)) = wanted.next() else { return Ok(None) };
        let piece = pieces.get(to_usize(number)).copied().unwrap_or_default();
        let of = packed.get(to_usize(piece.packed)).ok_or_else(|| no_piece(plan, &piece))?;
        let unpack = match &opened {
            Some((number, unpack)) if *number == piece.packed => Arc::clone(unpack),
            _ => Arc::clone(&opened.insert((piece.packed, of.open(&again.options)?)).1),
        };
        Ok(Some(Task { path: of.path().as_path().to_owned(), opened: unpack, piece, wants }))
    };
    let jobs = again.options.jobs.max(1);
    let work = |(): &mut (), task: Task| task.run(&file, &folder, again);
    ordered(jobs, jobs * 2, || (), work, task, |done: Result<(), ConvertError>| done.map(|()| Next::Continue))?;
    Ok(OpenFile::of(plan, Arc::new(file), 0, bytes))
}

impl Task {
    /// Unpacks the piece and copies the bytes that are wanted.
    fn run(&self, file: &File, folder: &Path, again: &Again<'_>) -> Result<(), ConvertError> {
        if self.wants.iter().all(|want| want.bytes == 0) {
            return Ok(());
        }
        let mut source = self.opened.read(&self.piece)?;
        let (mut at, mut buffer) = (0_u64, Vec::new());
        for want in &self.wants {
            // What lies before the bytes is passed over in steps, so that stopping takes effect.
            let mut rest = want.offset.saturating_sub(at).saturating_add(want.bytes);
            while rest > 0 {
                (again.check)()?;
                buffer.clear();
                let skips = rest.saturating_sub(want.bytes);
                let step = if skips > 0 { skips.min(PIECE_BYTES) } else { rest.min(PIECE_BYTES) };
                let read = source.by_ref().take(step).read_to_end(&mut buffer);
                read.map_err(|error| self.failed(error))?;
                if to_u64(buffer.len()) < step {
                    let expected = want.offset.saturating_add(want.bytes);
                    let reason = format!("expected at least {expected} bytes when unpacked, found fewer");
                    return Err(ConvertError::malformed(&self.path, "", reason));
                }
                if skips == 0 {
                    let target = want.target.saturating_add(want.bytes - rest);
                    file.write_all_at(&buffer, target).map_err(|error| spool_error(folder, error))?;
                }
                rest -= step;
            }
            at = want.offset.saturating_add(want.bytes);
        }
        Ok(())
    }

    fn failed(&self, error: std::io::Error) -> ConvertError {
        match is_damage(&error) {
            true => ConvertError::malformed(&self.path, "", format!("cannot be unpacked: {error}")),
            false => ConvertError::io(&self.path)(error),
        }
    }
}
