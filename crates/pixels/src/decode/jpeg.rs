//! JPEG: rows go from libjpeg straight to the resampler, and no more of them than needed.

use super::{Color, Decoder, convert, resize_zeroed, usize_of};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::Geometry;
use crate::jpeg::{JpegDecoder, Raw, Session};
use crate::probe::{ImageInfo, jpeg_has_end};
use crate::resize::Resampler;

/// What turns a decoded row into one of the output's channels.
struct RowReader<'a> {
    session: Session<'a>,
    raw: Raw,
    color: Color,
    scratch: &'a mut Vec<u8>,
    /// Decoded columns that lie before the wanted ones, and how many are wanted.
    lead: usize,
    n_columns: usize,
}

impl RowReader<'_> {
    /// Whether libjpeg can write to the destination itself.
    fn is_direct(&self) -> bool {
        self.raw.channels() == self.color.channels()
    }

    fn read(&mut self, row: &mut [u8]) -> Result<(), PixelError> {
        if self.is_direct() && self.lead == 0 {
            return self.session.read_row(row);
        }
        self.session.read_row(self.scratch)?;
        let source = &self.scratch[self.lead * self.raw.channels()..];
        let source = &source[..self.n_columns * self.raw.channels()];
        let row = &mut row[..self.n_columns * self.color.channels()];
        match (self.raw, self.color) {
            (Raw::Cmyk, Color::Rgb) => convert::inverted_cmyk_to_rgb(source, row),
            (Raw::Cmyk, _) => convert::inverted_cmyk_to_gray(source, row),
            (Raw::Rgb, Color::Gray | Color::Index) => convert::rgb_to_gray(source, row),
            (Raw::Rgb, Color::Rgb) | (Raw::Gray, _) => row.copy_from_slice(source),
        }
        Ok(())
    }
}

/// Opens a JPEG whose end is there: a truncated one is an error before anything is decoded, so
/// that it does not depend on which part of it is wanted.
fn open<'a>(
    decoder: &'a mut Option<JpegDecoder>,
    bytes: &'a [u8],
    info: &ImageInfo,
    color: Color,
) -> Result<(Session<'a>, Raw), PixelError> {
    let format = ImageFormat::Jpeg;
    if !jpeg_has_end(bytes)? {
        return Err(PixelError::truncated(format, "no end-of-image marker"));
    }
    if color == Color::Index && info.channels != 1 {
        return Err(PixelError::NotSingleChannel {
            channels: info.channels,
        });
    }
    let session = decoder.get_or_insert_with(JpegDecoder::new).open(bytes)?;
    if session.size() != (info.width, info.height) {
        return Err(PixelError::malformed(
            format,
            "several frame headers that differ",
        ));
    }
    let raw = session.raw(color != Color::Rgb)?;
    Ok((session, raw))
}

impl Decoder {
    /// Fills `pixels`, which has the right length.
    pub(super) fn decode_jpeg(&mut self, bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
        let color = self.options.color;
        let (mut session, raw) = open(&mut self.jpeg, bytes, info, color)?;
        session.start(raw, 8)?;
        let n_columns = usize_of(info.width);
        resize_zeroed(&mut self.samples, n_columns * raw.channels())?;
        let scratch = &mut self.samples;
        let mut reader = RowReader {
            session,
            raw,
            color,
            scratch,
            lead: 0,
            n_columns,
        };
        for row in self.pixels.chunks_exact_mut(n_columns * color.channels()) {
            reader.read(row)?;
        }
        reader.session.finish()
    }

    /// Decodes the rows and columns that the geometry shows, resizing on the way.
    pub(super) fn render_jpeg(
        &mut self,
        bytes: &[u8],
        info: &ImageInfo,
        geometry: &Geometry,
        out: &mut [u8],
    ) -> Result<(), PixelError> {
        let color = self.options.color;
        let window = geometry.window(info.width, info.height);
        let (mut session, raw) = open(&mut self.jpeg, bytes, info, color)?;
        let eighths = if self.options.jpeg_scaling {
            eighths_of((info.width, info.height), (window.x.full, window.y.full))
        } else {
            8
        };
        let (width, height) = session.start(raw, eighths)?;
        let resampler = &mut self.resampler;
        resampler.start(width, height, color.channels(), window, geometry.filter);
        let lead = restrict(
            &mut session,
            resampler,
            width,
            raw.channels() == color.channels(),
        )?;
        let n_columns = resampler.columns().len();
        resize_zeroed(&mut self.samples, usize_of(width) * raw.channels())?;
        let scratch = &mut self.samples;
        let mut reader = RowReader {
            session,
            raw,
            color,
            scratch,
            lead,
            n_columns,
        };
        let rows = resampler.rows();
        reader
            .session
            .skip(u32::try_from(rows.start).unwrap_or(u32::MAX))?;
        for _ in rows.clone() {
            reader.read(resampler.input())?;
            resampler.commit(out);
        }
        if rows.end == usize_of(height) {
            reader.session.finish()
        } else {
            Ok(())
        }
    }
}

/// Restricts the session to the columns that the resampler needs; returns how many come before.
///
/// One column more on either side: chroma is interpolated between neighbours, and at the edge of
/// the decoded columns the neighbour is missing.
fn restrict(
    session: &mut Session<'_>,
    resampler: &mut Resampler,
    width: u32,
    direct: bool,
) -> Result<usize, PixelError> {
    let wanted = resampler.columns();
    let of = |column: usize| u32::try_from(column).unwrap_or(u32::MAX);
    let first = of(wanted.start).saturating_sub(1);
    let last = of(wanted.end).saturating_add(1).min(width);
    let columns = session.crop(first, last - first)?;
    let columns = usize_of(columns.start)..usize_of(columns.end);
    if direct && resampler.widen(columns.clone()) {
        return Ok(0);
    }
    let lead = wanted.start - columns.start;
    // A direct row must end where the wanted columns do: else it goes through the scratch row.
    if lead == 0 && columns.end == wanted.end {
        Ok(0)
    } else {
        Ok(lead)
    }
}

/// The smallest scale, in eighths, that still leaves at least the wanted size.
fn eighths_of(stored: (u32, u32), wanted: (u32, u32)) -> u32 {
    [1, 2, 4]
        .into_iter()
        .find(|eighths| {
            let scaled = |side: u32| (u64::from(side) * u64::from(*eighths)).div_ceil(8);
            scaled(stored.0) >= u64::from(wanted.0) && scaled(stored.1) >= u64::from(wanted.1)
        })
        .unwrap_or(8)
}
