//! TIFF directories: the sizes of TIFF files and the tags of EXIF blocks.

use std::ops::Range;

use super::bytes::{array, be16, be32, le16, le32, offset};
use super::{ImageInfo, exif};
use crate::error::PixelError;
use crate::format::ImageFormat;

const SUBFILE_TYPE: u16 = 254;
const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const BITS_PER_SAMPLE: u16 = 258;
const PHOTOMETRIC: u16 = 262;
const FILL_ORDER: u16 = 266;
const STRIP_OFFSETS: u16 = 273;
pub(super) const ORIENTATION: u16 = 274;
const SAMPLES_PER_PIXEL: u16 = 277;
const STRIP_BYTE_COUNTS: u16 = 279;
const COLOR_MAP: u16 = 320;
const TILE_OFFSETS: u16 = 324;
const TILE_BYTE_COUNTS: u16 = 325;
const PLANAR_CONFIGURATION: u16 = 284;
const EXTRA_SAMPLES: u16 = 338;
const SAMPLE_FORMAT: u16 = 339;
/// Maximum number of strips whose ends are checked. No reasonable file has more.
const MAX_VALUES: u64 = 1 << 20;

/// A directory of a TIFF or BigTIFF file.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    bytes: &'a [u8],
    little: bool,
    big_tiff: bool,
    first: usize,
    n_entries: usize,
}

/// A tag: its type, its number of values, and where they are.
#[derive(Clone, Copy)]
struct Entry {
    kind: u16,
    count: u64,
    values: usize,
}

impl<'a> Entries<'a> {
    /// Opens the first directory, if there is one.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let little = match bytes.get(..2)? {
            b"II" => true,
            b"MM" => false,
            _ => return None,
        };
        let mut entries = Self { bytes, little, big_tiff: false, first: 0, n_entries: 0 };
        let at = match entries.u16(2)? {
            42 => offset(entries.u32(4)?)?,
            43 => {
                entries.big_tiff = true;
                usize::try_from(entries.u64(8)?).ok()?
            }
            _ => return None,
        };
        entries.at(at)
    }

    /// The directory at `at`.
    fn at(mut self, at: usize) -> Option<Self> {
        let (n_entries, head) = if self.big_tiff { (self.u64(at)?, 8) } else { (u64::from(self.u16(at)?), 2) };
        self.first = at.checked_add(head)?;
        self.n_entries = usize::try_from(n_entries.min(4096)).ok()?;
        Some(self)
    }

    /// The position of the next directory, or 0 if there is none. `None` if the position is not in the bytes that were
    /// read.
    fn next(&self) -> Option<usize> {
        let link = self.first.checked_add(self.n_entries * self.entry_bytes())?;
        match self.big_tiff {
            true => usize::try_from(self.u64(link)?).ok(),
            false => offset(self.u32(link)?),
        }
    }

    /// Whether another page follows. A smaller copy of the first page does not count.
    fn has_more(&self) -> bool {
        let next = self.next().filter(|at| *at != 0).and_then(|at| self.at(at));
        next.is_some_and(|next| {
            next.first_value(WIDTH).is_some() && next.first_value(SUBFILE_TYPE).unwrap_or(0) & 1 == 0
        })
    }

    fn u16(&self, at: usize) -> Option<u16> {
        if self.little { le16(self.bytes, at) } else { be16(self.bytes, at) }
    }

    fn u32(&self, at: usize) -> Option<u32> {
        if self.little { le32(self.bytes, at) } else { be32(self.bytes, at) }
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let value = u64::from_le_bytes(array(self.bytes, at)?);
        Some(if self.little { value } else { value.swap_bytes() })
    }

    fn entry_bytes(&self) -> usize {
        if self.big_tiff { 20 } else { 12 }
    }

    fn find(&self, tag: u16) -> Option<Entry> {
        let at = (0..self.n_entries)
            .map_while(|index| self.first.checked_add(index * self.entry_bytes()))
            .map_while(|at| self.u16(at).map(|found| (at, found)))
            .find(|&(_, found)| found == tag)?
            .0;
        self.entry(at)
    }

    /// The end of the directory and of all data that it refers to. `None` if this is beyond the end of the file.
    fn end(&self) -> Option<usize> {
        let link = if self.big_tiff { 8 } else { 4 };
        let end = self.first.checked_add(self.n_entries * self.entry_bytes() + link)?;
        let mut end = Some(end).filter(|&end| end <= self.bytes.len())?;
        for index in 0..self.n_entries {
            let at = self.first + index * self.entry_bytes();
            // Data of unknown types cannot be checked, because its size is unknown.
            let Some(entry) = self.entry(at) else { continue };
            let n_bytes = entry.count.checked_mul(width_of(entry.kind)?)?;
            end = end.max(entry.values.checked_add(usize::try_from(n_bytes).ok()?)?);
        }
        Some(end).filter(|&end| end <= self.bytes.len())
    }

    /// The entry at `at`.
    fn entry(&self, at: usize) -> Option<Entry> {
        let kind = self.u16(at + 2)?;
        let (count, field, room) =
            if self.big_tiff { (self.u64(at + 4)?, at + 12, 8) } else { (u64::from(self.u32(at + 4)?), at + 8, 4) };
        let inline = count.checked_mul(width_of(kind)?)? <= room;
        let values = match (inline, self.big_tiff) {
            (true, _) => field,
            (false, true) => usize::try_from(self.u64(field)?).ok()?,
            (false, false) => offset(self.u32(field)?)?,
        };
        Some(Entry { kind, count, values })
    }

    fn value(&self, entry: Entry, index: u64) -> Option<u64> {
        if index >= entry.count {
            return None;
        }
        let skip = usize::try_from(index.checked_mul(width_of(entry.kind)?)?).ok()?;
        let at = entry.values.checked_add(skip)?;
        match entry.kind {
            1 | 6 | 7 => self.bytes.get(at).map(|&byte| u64::from(byte)),
            3 | 8 => self.u16(at).map(u64::from),
            4 | 9 | 13 => self.u32(at).map(u64::from),
            16 => self.u64(at),
            _ => None,
        }
    }

    /// The first value of a tag.
    pub(super) fn first_value(&self, tag: u16) -> Option<u64> {
        self.find(tag).and_then(|entry| self.value(entry, 0))
    }

    /// The value of a tag that has the same value for each channel. `None` if the tag is missing, if the values differ,
    /// or if one of them cannot be read.
    fn value_of_all(&self, tag: u16, channels: u64) -> Option<u64> {
        let entry = self.find(tag)?;
        let first = self.value(entry, 0)?;
        (1..entry.count.min(channels)).all(|index| self.value(entry, index) == Some(first)).then_some(first)
    }

    /// The colour map: all red values, then all green ones, then all blue ones. Only the high bytes are used.
    fn palette(&self) -> Option<Vec<[u8; 3]>> {
        let entry = self.find(COLOR_MAP)?;
        let n_colors = (entry.count / 3).min(256);
        let value = |index: u64| {
            let value = self.value(entry, index).unwrap_or(0);
            u8::try_from(value >> 8).unwrap_or(u8::MAX)
        };
        let step = entry.count / 3;
        Some((0..n_colors).map(|i| [value(i), value(step + i), value(2 * step + i)]).collect())
    }

    /// The entries that hold the offsets and the lengths of all strips or tiles.
    fn strips(&self) -> Option<(Entry, Entry)> {
        let tags = [(STRIP_OFFSETS, STRIP_BYTE_COUNTS), (TILE_OFFSETS, TILE_BYTE_COUNTS)];
        tags.into_iter().find_map(|(at, len)| Some((self.find(at)?, self.find(len)?)))
    }

    /// Where strip `index` starts and ends.
    fn strip(&self, (offsets, lengths): (Entry, Entry), index: u64) -> Option<Range<usize>> {
        let start = self.value(offsets, index)?;
        let end = start.checked_add(self.value(lengths, index)?)?;
        Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// The strips whose bytes have their bits in reverse order: all strips if the file says that the lowest bit comes
    /// first, otherwise none. Strips beyond the end are left out. `None` if there are no strips, if they share bytes,
    /// or if there are too many.
    fn reversed(&self) -> Option<Vec<Range<usize>>> {
        if self.first_value(FILL_ORDER) != Some(2) {
            return Some(Vec::new());
        }
        let entries = self.strips()?;
        let n_strips = Some(entries.0.count).filter(|count| *count <= MAX_VALUES)?;
        let strips = (0..n_strips).filter_map(|index| self.strip(entries, index));
        let mut strips: Vec<Range<usize>> = strips.filter(|strip| strip.end <= self.bytes.len()).collect();
        strips.sort_unstable_by_key(|strip| strip.start);
        let is_apart = |pair: &[Range<usize>]| pair[0].end <= pair[1].start;
        strips.windows(2).all(is_apart).then_some(strips)
    }

    fn side(&self, tag: u16) -> Option<u32> {
        self.first_value(tag).and_then(|value| u32::try_from(value).ok())
    }
}

/// The photometric interpretation of CMYK.
const CMYK: u64 = 5;

/// Size of a TIFF type in bytes.
fn width_of(kind: u16) -> Option<u64> {
    match kind {
        1 | 2 | 6 | 7 => Some(1),
        3 | 8 => Some(2),
        4 | 9 | 11 | 13 => Some(4),
        5 | 10 | 12 | 16 | 17 | 18 => Some(8),
        _ => None,
    }
}

fn missing(what: &str) -> PixelError {
    PixelError::malformed(ImageFormat::Tiff, format!("no {what} in the first directory"))
}

pub(super) fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let entries = Entries::open(bytes).ok_or_else(|| PixelError::truncated(ImageFormat::Tiff, "no image directory"))?;
    let width = entries.side(WIDTH).ok_or_else(|| missing("width"))?;
    let height = entries.side(HEIGHT).ok_or_else(|| missing("height"))?;
    let photometric = entries.first_value(PHOTOMETRIC).unwrap_or(0);
    let palette = photometric == 3;
    let samples = entries.first_value(SAMPLES_PER_PIXEL).unwrap_or(1);
    let channels = if palette { 3 } else { u8::try_from(samples.clamp(1, 255)).unwrap_or(1) };
    let bits = entries.first_value(BITS_PER_SAMPLE).unwrap_or(1);
    // Pillow rotates a TIFF upright when it decodes it, so report the rotated size.
    let turned = exif::valid(entries.first_value(ORIENTATION)) >= 5;
    let (width, height) = if turned { (height, width) } else { (width, height) };
    let bit_depth = u8::try_from(bits.clamp(1, 64)).unwrap_or(1);
    let has_more = entries.has_more();
    let plain = ImageInfo::plain(ImageFormat::Tiff, width, height, channels);
    let has_alpha = plain.has_alpha && photometric != CMYK;
    Ok(ImageInfo { bit_depth, palette, has_alpha, has_more, ..plain })
}

/// The only page of a TIFF file that has bands instead of colours. Bands are several channels of gray, more than four
/// channels, or several channels of floats, signed numbers or more than 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TiffBands {
    /// Stored width. The orientation is ignored.
    pub width: u32,
    /// Stored height.
    pub height: u32,
    /// Number of channels.
    pub bands: u16,
    /// NumPy's name for the type of the numbers, such as `u2`.
    pub kind: &'static str,
    /// Whether the file stores one channel after the other.
    pub is_planar: bool,
}

impl TiffBands {
    /// Bytes of all numbers. `None` if they exceed 64 bits.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let n = u64::from(self.width).checked_mul(self.height.into())?;
        n.checked_mul(self.bands.into())?.checked_mul(self.bytes_of_one())
    }

    /// Bytes of one number.
    pub(crate) fn bytes_of_one(&self) -> u64 {
        self.kind.bytes().last().map_or(1, |digit| u64::from(digit.saturating_sub(b'0')))
    }
}

/// Reads the header of a TIFF file with bands. `None` if the file has several pages, or if its page is an image, has
/// only one channel, colours other than gray and RGB, or numbers of an unusual type.
///
/// # Errors
/// `Truncated` if `bytes` does not contain the complete header, or is not a TIFF file.
pub fn tiff_bands(bytes: &[u8]) -> Result<Option<TiffBands>, PixelError> {
    let short = || PixelError::truncated(ImageFormat::Tiff, "the directory is incomplete");
    let entries = Entries::open(bytes).ok_or_else(short)?;
    let next = entries.next().ok_or_else(short)?;
    let channels = entries.first_value(SAMPLES_PER_PIXEL).unwrap_or(1);
    let photometric = entries.first_value(PHOTOMETRIC).unwrap_or(0);
    let (Some(width), Some(height), Ok(bands), 0..=2) =
        (entries.side(WIDTH), entries.side(HEIGHT), u16::try_from(channels), photometric)
    else {
        return Ok(None);
    };
    let bits = entries.value_of_all(BITS_PER_SAMPLE, channels);
    let format = match entries.find(SAMPLE_FORMAT) {
        Some(_) => entries.value_of_all(SAMPLE_FORMAT, channels),
        None => Some(1),
    };
    // The values may lie beyond the part of the file that was read.
    let values_end = [BITS_PER_SAMPLE, SAMPLE_FORMAT].into_iter().filter_map(|tag| entries.find(tag));
    if values_end.map(|entry| entry.values.saturating_add(2)).max() > Some(bytes.len()) {
        return Err(short());
    }
    let is_image = photometric == 2 && bands <= 4 && format == Some(1) && matches!(bits, Some(8 | 16));
    let kind = match (format, bits) {
        (Some(1), Some(8)) => "u1",
        (Some(1), Some(16)) => "u2",
        (Some(1), Some(32)) => "u4",
        (Some(1), Some(64)) => "u8",
        (Some(2), Some(8)) => "i1",
        (Some(2), Some(16)) => "i2",
        (Some(2), Some(32)) => "i4",
        (Some(2), Some(64)) => "i8",
        (Some(3), Some(16)) => "f2",
        (Some(3), Some(32)) => "f4",
        (Some(3), Some(64)) => "f8",
        _ => return Ok(None),
    };
    if bands < 2 || width == 0 || height == 0 || is_image {
        return Ok(None);
    }
    if next != 0 && entries.at(next).and_then(|next| next.next()).is_none() {
        return Err(short());
    }
    let is_planar = entries.first_value(PLANAR_CONFIGURATION) == Some(2);
    Ok((!entries.has_more()).then_some(TiffBands { width, height, bands, kind, is_planar }))
}

/// How to interpret the samples of a TIFF.
#[derive(Debug)]
pub(crate) struct TiffColors {
    pub(crate) little: bool,
    /// Location of the photometric interpretation, if it is white-is-zero or a palette.
    pub(crate) photometric_at: Option<Range<usize>>,
    pub(crate) white_is_zero: bool,
    pub(crate) palette: Option<Vec<[u8; 3]>>,
    pub(crate) orientation: u8,
    /// Whether the colours are multiplied by alpha.
    pub(crate) multiplied: bool,
    /// The bytes whose bits are in reverse order. `None` if they cannot be determined.
    pub(crate) reversed: Option<Vec<Range<usize>>>,
}

/// Reads `TiffColors` from the first directory. Returns defaults if there is none.
pub(crate) fn tiff_colors(bytes: &[u8]) -> TiffColors {
    let Some(entries) = Entries::open(bytes) else {
        let (photometric_at, palette) = (None, None);
        let (multiplied, reversed) = (false, Some(Vec::new()));
        return TiffColors {
            little: true,
            photometric_at,
            white_is_zero: false,
            palette,
            orientation: 1,
            multiplied,
            reversed,
        };
    };
    let photometric = entries.find(PHOTOMETRIC);
    let value = photometric.and_then(|entry| entries.value(entry, 0));
    let is_short = photometric.is_some_and(|entry| entry.kind == 3);
    let at = photometric.map(|entry| entry.values..entry.values.saturating_add(2));
    TiffColors {
        little: entries.little,
        photometric_at: at.filter(|_| is_short && matches!(value, Some(0 | 3))),
        white_is_zero: value == Some(0),
        palette: if value == Some(3) { entries.palette() } else { None },
        orientation: exif::valid(entries.first_value(ORIENTATION)),
        multiplied: entries.first_value(EXTRA_SAMPLES) == Some(1),
        reversed: entries.reversed(),
    }
}

/// Like `tiff_colors`, but for bands. They are not colours, so the decoder must ignore their photometric
/// interpretation.
pub(crate) fn colors_of_bands(bytes: &[u8]) -> TiffColors {
    let photometric = Entries::open(bytes).and_then(|entries| entries.find(PHOTOMETRIC));
    let at = photometric.filter(|entry| entry.kind == 3).map(|entry| entry.values..entry.values.saturating_add(2));
    TiffColors { photometric_at: at, ..tiff_colors(bytes) }
}

pub(super) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    let entries = Entries::open(bytes).ok_or_else(|| missing("directory"))?;
    if entries.end().is_none() {
        return Err(PixelError::truncated(ImageFormat::Tiff, "the directory refers to data beyond the end"));
    }
    let Some(strips) = entries.strips() else { return Err(missing("strips or tiles")) };
    for index in 0..strips.0.count.min(MAX_VALUES) {
        if entries.strip(strips, index).is_none_or(|strip| strip.end > bytes.len()) {
            let reason = format!("strip {index} ends beyond the file's {} bytes", bytes.len());
            return Err(PixelError::truncated(ImageFormat::Tiff, reason));
        }
    }
    Ok(())
}
