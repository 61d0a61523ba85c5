//! PBM, PGM and PPM headers, and the numbers of their plain forms.

use packds_system::{to_u64, to_usize};

use super::ImageInfo;
use crate::error::PixelError;
use crate::format::{ImageFormat, is_pnm_space};

const FORMAT: ImageFormat = ImageFormat::Pnm;
/// The largest sample that a header may declare.
const MAX_SAMPLE: u32 = 65535;

/// The header of a PBM, PGM or PPM file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PnmHeader {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) channels: u8,
    /// The largest valid sample. 1 for a bitmap, whose header does not state it.
    pub(crate) max: u32,
    pub(crate) is_bitmap: bool,
    /// Whether the samples are decimal numbers.
    pub(crate) is_plain: bool,
    pub(crate) data_at: usize,
}

impl PnmHeader {
    /// Number of samples in the image.
    pub(crate) fn n_samples(&self) -> u64 {
        let n_pixels = u64::from(self.width).saturating_mul(self.height.into());
        n_pixels.saturating_mul(self.channels.into())
    }

    /// Size of the image's data in bytes, if the image is not plain.
    pub(crate) fn n_bytes(&self) -> u64 {
        match self.is_bitmap {
            true => u64::from(self.width.div_ceil(8)).saturating_mul(self.height.into()),
            false => self.n_samples().saturating_mul(if self.max > 255 { 2 } else { 1 }),
        }
    }

    /// The image's data. Returns an error if the file does not have all of it.
    pub(crate) fn data<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], PixelError> {
        let data = bytes.get(self.data_at..).unwrap_or_default();
        let needed = self.n_bytes();
        let cut = || PixelError::truncated(FORMAT, format!("needs {needed} bytes of pixels, has {}", data.len()));
        data.get(..to_usize(needed)).ok_or_else(cut)
    }

    /// Passes every sample of a plain image to `each`.
    pub(crate) fn plain_samples(&self, bytes: &[u8], mut each: impl FnMut(u32)) -> Result<(), PixelError> {
        let mut numbers = Numbers { bytes, at: self.data_at };
        for index in 0..self.n_samples() {
            let number = if self.is_bitmap { numbers.bit()? } else { numbers.next()? };
            let cut = || PixelError::truncated(FORMAT, format!("ends after {index} of {} samples", self.n_samples()));
            let sample = number.ok_or_else(cut)?;
            if sample > self.max {
                let reason = format!("sample {index} is {sample}, more than {}", self.max);
                return Err(PixelError::malformed(FORMAT, reason));
            }
            each(sample);
        }
        Ok(())
    }
}

/// Reads decimal numbers. As in Pillow, a comment may be inside a number.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    /// The next byte outside of comments.
    fn byte(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if byte != b'#' {
                return Some(byte);
            }
            while !matches!(self.bytes.get(self.at), None | Some(b'\r' | b'\n')) {
                self.at += 1;
            }
            self.at += 1;
        }
    }

    /// Reads the next number, and skips the byte after it. `None` at the end.
    fn next(&mut self) -> Result<Option<u32>, PixelError> {
        let mut number: Option<u32> = None;
        while let Some(byte) = self.byte() {
            match (byte, number) {
                (b'0'..=b'9', _) => {
                    let next = number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add((byte - b'0').into()));
                    let too_large = || PixelError::malformed(FORMAT, "a number has too many digits");
                    number = Some(next.ok_or_else(too_large)?);
                }
                (space, None) if is_pnm_space(space) => {}
                (space, Some(_)) if is_pnm_space(space) => return Ok(number),
                _ => return Err(self.no_number(byte)),
            }
        }
        Ok(number)
    }

    /// The next digit of a plain bitmap. Digits need no space between them.
    fn bit(&mut self) -> Result<Option<u32>, PixelError> {
        while let Some(byte) = self.byte() {
            match byte {
                b'0' | b'1' => return Ok(Some((byte - b'0').into())),
                space if is_pnm_space(space) => {}
                _ => return Err(self.no_number(byte)),
            }
        }
        Ok(None)
    }

    fn no_number(&self, byte: u8) -> PixelError {
        let found = byte.escape_ascii();
        PixelError::malformed(FORMAT, format!("expected a number, found '{found}' at byte {}", self.at - 1))
    }
}

/// Reads the header.
pub(crate) fn pnm_header(bytes: &[u8]) -> Result<PnmHeader, PixelError> {
    let cut = || PixelError::truncated(FORMAT, "ends inside its header");
    let kind = *bytes.get(1).ok_or_else(cut)?;
    let mut numbers = Numbers { bytes, at: 2 };
    let mut number = || numbers.next()?.ok_or_else(cut);
    let (width, height) = (number()?, number()?);
    let is_bitmap = matches!(kind, b'1' | b'4');
    let max = if is_bitmap { 1 } else { number()? };
    if max == 0 || max > MAX_SAMPLE {
        let reason = format!("the largest sample is {max}, expected 1 to {MAX_SAMPLE}");
        return Err(PixelError::malformed(FORMAT, reason));
    }
    let channels = if matches!(kind, b'3' | b'6') { 3 } else { 1 };
    let is_plain = matches!(kind, b'1'..=b'3');
    Ok(PnmHeader { width, height, channels, max, is_bitmap, is_plain, data_at: numbers.at })
}

pub(super) fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let header = pnm_header(bytes)?;
    let bit_depth = match header.max {
        _ if header.is_bitmap => 1,
        256.. => 16,
        _ => 8,
    };
    Ok(ImageInfo { bit_depth, ..ImageInfo::plain(FORMAT, header.width, header.height, header.channels) })
}

pub(super) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    let header = pnm_header(bytes)?;
    if !header.is_plain {
        return header.data(bytes).map(|_| ());
    }
    // A sample takes at least one byte, so a header with a wrong size is detected before the samples are counted.
    if header.n_samples() > to_u64(bytes.len()) {
        let reason = format!("{} bytes cannot hold {} samples", bytes.len(), header.n_samples());
        return Err(PixelError::truncated(FORMAT, reason));
    }
    header.plain_samples(bytes, |_| {})
}
