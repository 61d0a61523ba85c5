//! Decodes JPEG. Rows go from libjpeg directly to the resampler. Only the necessary rows are decoded.

use std::ops::Range;

use super::convert::{self, Kind};
use super::{Color, Decoder, byte_count, resize_zeroed, usize_of};
use crate::area::{Area, CropResize};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::Geometry;
use crate::jpeg::{JpegDecoder, Raw, Session};
use crate::probe::{ImageInfo, check_jpeg_end};
use crate::resize::Resampler;

/// Minimum number of decoded columns. If chroma has at most two columns, libjpeg repeats them instead of interpolating.
const MIN_COLUMNS: u32 = 8;

/// Reads rows of a JPEG and converts them to the output's channels.
struct RowReader<'a> {
    session: Session<'a>,
    raw: Raw,
    color: Color,
    scratch: &'a mut Vec<u8>,
    /// Number of decoded columns before the needed ones.
    lead: usize,
    /// Number of needed columns.
    n_columns: usize,
    /// Number of decoded columns.
    n_decoded: usize,
}

impl<'a> RowReader<'a> {
    /// Opens a complete JPEG. A truncated file is rejected before anything is decoded, so the result does not depend on
    /// the area.
    fn open(
        decoder: &'a mut Option<JpegDecoder>,
        bytes: &'a [u8],
        info: &ImageInfo,
        color: Color,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Self, PixelError> {
        check_jpeg_end(bytes)?;
        if color == Color::Index && info.channels != 1 {
            return Err(PixelError::NotSingleChannel { channels: info.channels });
        }
        let session = decoder.get_or_insert_with(JpegDecoder::new).open(bytes)?;
        if session.size() != (info.width, info.height) {
            return Err(PixelError::malformed(ImageFormat::Jpeg, "conflicting frame headers"));
        }
        let raw = session.raw(color != Color::Rgb)?;
        Ok(Self { session, raw, color, scratch, lead: 0, n_columns: 0, n_decoded: 0 })
    }

    /// Starts decoding at `eighths` / 8 of the size. Returns that size.
    fn start(&mut self, eighths: u32) -> Result<(u32, u32), PixelError> {
        self.session.start(self.raw, eighths)
    }

    /// Whether libjpeg can write directly to the output.
    fn is_direct(&self) -> bool {
        self.raw.channels() == self.color.channels()
    }

    /// Restricts decoding to the columns `wanted` of an image with `width` columns. Returns the columns that are
    /// decoded, which are a few more.
    ///
    /// One extra column is needed on each side, because chroma is interpolated between neighbours, and the neighbour
    /// outside the decoded columns is missing.
    fn restrict(&mut self, wanted: Range<usize>, width: u32) -> Result<Range<usize>, PixelError> {
        let of = |column: usize| u32::try_from(column).unwrap_or(u32::MAX);
        let first = of(wanted.start).saturating_sub(1);
        let last = of(wanted.end).saturating_add(1);
        let last = last.max(first.saturating_add(MIN_COLUMNS)).min(width);
        let first = first.min(last.saturating_sub(MIN_COLUMNS));
        let columns = self.session.crop(first, last - first)?;
        Ok(usize_of(columns.start)..usize_of(columns.end))
    }

    /// Sets the columns to take from each row: of the `n_decoded` columns that libjpeg writes, the output needs
    /// `n_columns`, after the first `lead`.
    fn take(&mut self, lead: usize, n_columns: usize, n_decoded: usize) -> Result<(), PixelError> {
        self.lead = lead;
        self.n_columns = n_columns;
        self.n_decoded = n_decoded;
        resize_zeroed(self.scratch, n_decoded * self.raw.channels())
    }

    fn read(&mut self, row: &mut [u8]) -> Result<(), PixelError> {
        if self.is_direct() && self.n_columns == self.n_decoded {
            return self.session.read_row(row);
        }
        self.session.read_row(self.scratch)?;
        let source = &self.scratch[self.lead * self.raw.channels()..];
        let source = &source[..self.n_columns * self.raw.channels()];
        let row = &mut row[..self.n_columns * self.color.channels()];
        let kind = match self.raw {
            Raw::Gray => Kind::Gray,
            Raw::Rgb => Kind::Rgb,
            Raw::Cmyk => Kind::InvertedCmyk,
        };
        match self.color {
            Color::Rgb => convert::write(&kind, source, row, |rgb| rgb),
            Color::Gray | Color::Index => convert::write(&kind, source, row, convert::gray),
        }
        Ok(())
    }

    /// Ends the session after the last needed row. `complete` means that all rows were needed.
    fn end(self, complete: bool) -> Result<(), PixelError> {
        if complete { self.session.finish() } else { Ok(()) }
    }
}

impl Decoder {
    /// Decodes the whole image into `self.pixels`, which must already have the right length.
    pub(super) fn decode_jpeg(&mut self, bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
        let color = self.options.color;
        let mut reader = RowReader::open(&mut self.jpeg, bytes, info, color, &mut self.samples)?;
        reader.start(8)?;
        let n_columns = usize_of(info.width);
        reader.take(0, n_columns, n_columns)?;
        for row in self.pixels.chunks_exact_mut(n_columns * color.channels()) {
            reader.read(row)?;
        }
        reader.session.finish()
    }

    /// Decodes the rows and columns that the geometry needs, and resizes them as they arrive.
    pub(super) fn render_jpeg(
        &mut self,
        bytes: &[u8],
        info: &ImageInfo,
        geometry: &Geometry,
        out: &mut [u8],
    ) -> Result<(), PixelError> {
        let color = self.options.color;
        let window = geometry.window(info.width, info.height);
        let mut reader = RowReader::open(&mut self.jpeg, bytes, info, color, &mut self.samples)?;
        let eighths = if self.options.jpeg_scaling {
            eighths_of((info.width, info.height), (window.x.full, window.y.full))
        } else {
            8
        };
        let (width, height) = reader.start(eighths)?;
        self.resampler.start(width, height, color.channels(), window, geometry.filter);
        stream(reader, &mut self.resampler, (0, 0), (width, height), out)
    }

    /// Decodes the rows and columns in a view's area, and resizes them as they arrive.
    pub(super) fn view_jpeg(
        &mut self,
        bytes: &[u8],
        info: &ImageInfo,
        view: &CropResize,
        out: &mut [u8],
    ) -> Result<(), PixelError> {
        let color = self.options.color;
        let mut reader = RowReader::open(&mut self.jpeg, bytes, info, color, &mut self.samples)?;
        let size = reader.start(8)?;
        self.resampler.start_view(view, color.channels());
        let corner = (usize_of(view.area.x), usize_of(view.area.y));
        stream(reader, &mut self.resampler, corner, size, out)
    }

    /// Decodes an area of the stored image into `self.pixels`.
    pub(super) fn decode_jpeg_area(&mut self, bytes: &[u8], info: &ImageInfo, area: Area) -> Result<(), PixelError> {
        let color = self.options.color;
        let mut reader = RowReader::open(&mut self.jpeg, bytes, info, color, &mut self.samples)?;
        let (width, height) = reader.start(8)?;
        let n_bytes = byte_count(area.width, area.height, color.channels())?;
        resize_zeroed(&mut self.pixels, n_bytes)?;
        let (first, n_columns) = (usize_of(area.x), usize_of(area.width));
        let columns = reader.restrict(first..first + n_columns, width)?;
        reader.take(first - columns.start, n_columns, columns.len())?;
        reader.session.skip(area.y)?;
        for row in self.pixels.chunks_exact_mut(n_columns * color.channels()) {
            reader.read(row)?;
        }
        reader.end(area.y + area.height == height)
    }
}

/// Reads the rows that the resampler needs from an image of `width` x `height`, and writes the result to `out`.
/// `corner` is the position of the resampler's first pixel in the image.
fn stream(
    mut reader: RowReader<'_>,
    resampler: &mut Resampler,
    corner: (usize, usize),
    (width, height): (u32, u32),
    out: &mut [u8],
) -> Result<(), PixelError> {
    let wanted = corner.0 + resampler.columns.start..corner.0 + resampler.columns.end;
    let decoded = reader.restrict(wanted.clone(), width)?;
    let before = wanted.start - decoded.start;
    if reader.is_direct() {
        resampler.widen(before, decoded.end - wanted.end);
        reader.take(0, decoded.len(), decoded.len())?;
    } else {
        reader.take(before, wanted.len(), decoded.len())?;
    }
    let rows = resampler.rows.clone();
    let first = corner.1 + rows.start;
    reader.session.skip(u32::try_from(first).unwrap_or(u32::MAX))?;
    for _ in rows.clone() {
        reader.read(resampler.input())?;
        resampler.commit(out);
    }
    reader.end(corner.1 + rows.end == usize_of(height))
}

/// The smallest scale, in eighths, whose result is at least as large as the requested size.
fn eighths_of(stored: (u32, u32), wanted: (u32, u32)) -> u32 {
    [1, 2, 4]
        .into_iter()
        .find(|eighths| {
            let scaled = |side: u32| (u64::from(side) * u64::from(*eighths)).div_ceil(8);
            scaled(stored.0) >= u64::from(wanted.0) && scaled(stored.1) >= u64::from(wanted.1)
        })
        .unwrap_or(8)
}
