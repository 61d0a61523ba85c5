//! Reads NumPy's `.npz`: arrays in a zip file. Stored arrays are read in place; deflated arrays are unpacked once.

use packds_system::{to_u64, to_usize};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::ListOptions;
use super::arrays::ArraySet;
use super::found::{Found, is_made_anew};
use super::key_split::SplitNames;
use super::npy::{Elements, MAX_HEADER, NpyHeader, header_error};
use super::packed::{Packed, Piece};
use super::per_file::PerFile;
use super::roles::Keys;
use super::shards::Shards;
use super::spool::Spool;
use super::store::OpenFile;
use super::there::MAX_TEXT;
use super::warning::Warning;
use super::whole::FileValue;
use super::zip_dir::{Method, ZipEntry, damaged_member, pieces, unpack, zip_entries};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

/// One part for each split in the file names. If the file names mention no split, the array names of the first file decide.
pub(crate) fn parts(shards: Shards) -> Result<Vec<Shards>, ConvertError> {
    ArraySet::parts_by_names(shards, |file| Ok(zip_entries(file)?.iter().filter_map(key).map(str::to_owned).collect()))
}

/// The name of the array in a member. `None` if the member is not an array.
fn key(entry: &ZipEntry) -> Option<&str> {
    entry.name.strip_suffix(".npy")
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    // Passes the split, so that only its arrays are unpacked.
    let read = |file: &_| read_file(file, part.split.as_deref(), options, PerFile::Many);
    ArraySet::join_split(part, options, read, |file| read(file).map(|(set, _)| set))
}

/// The values of a file with one sample.
pub(crate) fn read_whole(path: &Path, options: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
    let (set, _) = read_file(&file, None, options, PerFile::One)?;
    set.into_values(&file)
}

/// The arrays of a split in a file, and the caller's keys for them.
fn read_file<'a>(
    file: &Arc<OpenFile>,
    split: Option<&str>,
    options: &'a ListOptions,
    per_file: PerFile,
) -> Result<(ArraySet, Keys<'a>), ConvertError> {
    let entries = zip_entries(file)?;
    let names = SplitNames::new(entries.iter().filter_map(key), split);
    let set = read_arrays(file, &entries, &names, (options, per_file))?;
    Ok((set, names.keys(Keys::of(options))))
}

fn read_arrays(
    file: &Arc<OpenFile>,
    entries: &[ZipEntry],
    names: &SplitNames<'_>,
    (options, per_file): (&ListOptions, PerFile),
) -> Result<ArraySet, ConvertError> {
    let mut set = ArraySet::new(DataFormat::Npz, &file.path, per_file);
    // All deflated arrays share one temporary file.
    let mut spool: Option<Spool> = None;
    let mut unpacked = Vec::new();
    for (place, entry) in (0_u64..).zip(entries) {
        let Some(name) = key(entry).and_then(|name| names.plain(name)) else {
            continue;
        };
        if is_made_anew(name) {
            continue;
        }
        if options.is_left_out(name) {
            set.left_out.push(name.to_owned());
            continue;
        }
        let member = match Member::open(file, entry) {
            // This array is not required, and the others may be readable.
            Err(ConvertError::SourceUnsupported { reason, .. }) if !options.needs(name) => {
                let field = name.to_owned();
                set.warnings.push(Warning::LeftOut { field, reason });
                continue;
            }
            member => member?,
        };
        if name == METADATA_KEY {
            let text = member.text(file, entry)?;
            set.take_metadata(&text);
        } else if entry.method != Method::Stored {
            let spool = match &mut spool {
                Some(spool) => spool,
                None => spool.insert(Spool::create(&options.spool_folder())?),
            };
            let packed = spool.unpacks(Packed::Zip(file.path.as_path().into()));
            spool.begin(Piece { packed, place, ..Piece::default() });
            let offset = member.unpack_into(spool, file, entry)?;
            unpacked.push((name, member.header, offset));
        } else {
            member.pieces(file, entry, |_| Ok(()))?;
            let (header, data) = (&member.header, member.header.data);
            let (offset, room) = (entry.offset.saturating_add(data), entry.stored.saturating_sub(data));
            set.push(file, &header.described(name, offset, room))?;
        }
    }
    if let Some(spool) = spool {
        let spooled = Arc::new(spool.finish(&file.path)?);
        for (name, header, offset) in unpacked {
            set.push(&spooled, &header.described(name, offset, header.bytes))?;
        }
    }
    Ok(set)
}

/// An array of the file.
struct Member {
    header: NpyHeader,
}

impl Member {
    /// Reads the header.
    fn open(file: &OpenFile, entry: &ZipEntry) -> Result<Self, ConvertError> {
        let mut head = Vec::new();
        let read = unpack(file, entry)?.take(to_u64(MAX_HEADER)).read_to_end(&mut head);
        read.map_err(|error| damaged_member(file, entry, &error))?;
        let header = NpyHeader::parse(&head);
        let header = header.map_err(|error| header_error(&file.path, &entry.name, error))?;
        if entry.method == Method::Stored && entry.stored != header.data.saturating_add(header.bytes) {
            let found = entry.stored.saturating_sub(header.data);
            let reason = format!("expected {} bytes of data, found {found}", header.bytes);
            return Err(ConvertError::malformed(&file.path, &entry.name, reason));
        }
        Ok(Self { header })
    }

    /// Passes all bytes, including the header, to `take` piece by piece. Expects the length stated in the header, and verifies the
    /// checksum.
    fn pieces(
        &self,
        file: &OpenFile,
        entry: &ZipEntry,
        take: impl FnMut(&[u8]) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        pieces(file, entry, self.header.data.saturating_add(self.header.bytes), take)
    }

    /// Unpacks the data. Returns its start.
    fn unpack_into(&self, spool: &mut Spool, file: &OpenFile, entry: &ZipEntry) -> Result<u64, ConvertError> {
        let mut start = None;
        self.pieces(file, entry, |bytes| {
            let at = spool.append(bytes)?;
            start.get_or_insert(at);
            Ok(())
        })?;
        Ok(start.unwrap_or(0).saturating_add(self.header.data))
    }

    /// The text of a single-element array.
    fn text(&self, file: &OpenFile, entry: &ZipEntry) -> Result<String, ConvertError> {
        let Elements::Text { wide, .. } = self.header.elements else {
            return Ok(String::new());
        };
        if self.header.bytes > MAX_TEXT {
            return Ok(String::new());
        }
        let mut bytes = Vec::new();
        self.pieces(file, entry, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let data = to_usize(self.header.data);
        let data = bytes.get(data..).unwrap_or_default();
        Ok(super::numbers::text_of(data, wide))
    }
}

#[cfg(test)]
mod tests;
