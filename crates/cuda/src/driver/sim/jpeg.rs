//! A JPEG decoder on the simulated driver. It uses the host's decoder. Like all queued work, it writes after a delay,
//! but it can also be made to write early.

use std::sync::Arc;

use packds_pixels::{Color, DecodeOptions, Decoder, Image, PixelError};

use super::memory::{address, bytes_at, checksum, copy};
use super::op::{Kind, Op};
use super::state::State;
use super::{Fault, Shared};
use crate::driver::{JpegDecoder, JpegFile, Stream};
use crate::error::CudaError;

#[derive(Debug)]
pub(super) struct SimJpeg {
    shared: Arc<Shared>,
}

/// A file queued for decoding.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedFile {
    pub(super) from: u64,
    pub(super) bytes: u64,
    sum: u64,
    pub(super) to: u64,
    width: u32,
    height: u32,
    channels: u32,
    row_bytes: u32,
}

impl SimJpeg {
    pub(super) fn open(shared: &Arc<Shared>) -> Result<Self, CudaError> {
        shared.call("open_jpeg")?.decoders += 1;
        Ok(Self { shared: Arc::clone(shared) })
    }
}

impl JpegDecoder for SimJpeg {
    unsafe fn decode(&self, files: &[JpegFile<'_>], channels: u32, stream: Stream) -> Result<Vec<usize>, CudaError> {
        let mut state = self.shared.call("decode_jpeg")?;
        let mut refused = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let Ok(found) = decoded(file.bytes, channels) else {
                refused.push(number);
                continue;
            };
            let text = state.refused_jpeg.as_deref().filter(|text| !text.is_empty());
            if text.is_some_and(|text| file.bytes.windows(text.len()).any(|part| part == text)) {
                refused.push(number);
            }
            if (found.width, found.height) != (file.width, file.height) {
                let (width, height) = (file.width, file.height);
                let text =
                    format!("expected a file of {width}x{height} pixels, found {}x{}", found.width, found.height);
                state.faults.push(Fault::BadLaunch(text));
            }
        }
        let queued: Vec<Kind> = files.iter().map(|file| Kind::Decode(QueuedFile::of(file, channels))).collect();
        if state.decodes_early {
            for kind in &queued {
                let (number, kind) = (state.number(), *kind);
                state.run(&Op { number, kind });
            }
        }
        if !refused.is_empty() {
            state.refusals += 1;
            return Ok(refused);
        }
        let n_queued = if state.fails_decoding { queued.len() / 2 } else { queued.len() };
        for kind in queued.into_iter().take(n_queued) {
            state.push(stream, kind);
        }
        self.shared.changed.notify_all();
        match state.fails_decoding {
            true => Err(CudaError::Call {
                call: "decode_jpeg",
                name: "SIMULATED".to_owned(),
                text: "the simulated decoder has no memory".to_owned(),
            }),
            false => Ok(refused),
        }
    }
}

impl Drop for SimJpeg {
    fn drop(&mut self) {
        self.shared.lock().decoders -= 1;
    }
}

/// The pixels of a file, in the orientation in which they are stored.
fn decoded(bytes: &[u8], channels: u32) -> Result<Image, PixelError> {
    let color = match channels {
        1 => Color::Gray,
        _ => Color::Rgb,
    };
    let options = DecodeOptions { color, ..DecodeOptions::default() };
    Decoder::new(options).decode(bytes)
}

impl QueuedFile {
    fn of(file: &JpegFile<'_>, channels: u32) -> Self {
        let from = address(file.bytes.as_ptr().expose_provenance());
        let bytes = address(file.bytes.len());
        Self {
            from,
            bytes,
            sum: checksum(from, bytes),
            to: file.to.0,
            width: file.width,
            height: file.height,
            channels,
            row_bytes: file.row_bytes,
        }
    }

    fn pixel_row(&self) -> u64 {
        u64::from(self.width) * u64::from(self.channels)
    }

    /// Number of bytes from the image's first pixel to its last.
    pub(super) fn pixel_bytes(&self) -> u64 {
        let before = u64::from(self.height).saturating_sub(1) * u64::from(self.row_bytes);
        before + self.pixel_row()
    }

    /// Decodes the file. Checks all rules except those for writes, which [`State::run`] checks.
    pub(super) fn run(&self, state: &mut State) {
        if !state.is_allocated(&(self.to..self.to + self.pixel_bytes())) {
            state.faults.push(Fault::NotAllocated);
            return;
        }
        if checksum(self.from, self.bytes) != self.sum {
            state.faults.push(Fault::ChangedUnderCopy);
            return;
        }
        let Ok(image) = decoded(bytes_at(self.from, self.bytes), self.channels) else {
            return;
        };
        let rows = (0..u64::from(self.height)).map(|row| (row * self.pixel_row(), row));
        let all = address(image.data.len());
        for (start, row) in rows.filter(|(start, _)| start + self.pixel_row() <= all) {
            let from = address(image.data.as_ptr().expose_provenance()) + start;
            let to = self.to + row * u64::from(self.row_bytes);
            copy(from, to, self.pixel_row());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use packds_pixels::encode_jpeg;

    use super::super::POISON;
    use super::*;
    use crate::driver::{DevicePtr, Driver, SimDriver};

    const MEMORY: usize = 4 << 10;

    fn jpeg(width: u32, height: u32, channels: u8) -> Vec<u8> {
        let n = u64::from(width * height) * u64::from(channels);
        let pixels: Vec<u8> = (0..n).map(|at| packds_format::mix64(at / 40).to_le_bytes()[0]).collect();
        encode_jpeg(width, height, channels, &pixels, 90).unwrap()
    }

    fn file(bytes: &[u8], (width, height): (u32, u32), to: DevicePtr) -> JpegFile<'_> {
        JpegFile { bytes, width, height, to, row_bytes: width * 3 + 5 }
    }

    fn driver(longest: u64) -> (SimDriver, DevicePtr) {
        let driver = SimDriver::new(3, Duration::from_millis(longest), 1 << 20);
        let memory = driver.allocate(MEMORY as u64, "pixels").unwrap();
        (driver, memory)
    }

    #[test]
    fn files_of_any_size_become_the_hosts_pixels_in_rows_of_their_own() {
        for channels in [1, 3] {
            let (driver, memory) = driver(1);
            let decoder = driver.open_jpeg().unwrap();
            let sizes = [(17, 9), (1, 1), (8, 20)];
            let files: Vec<Vec<u8>> = sizes.iter().map(|s| jpeg(s.0, s.1, channels)).collect();
            let at = |number: u64| memory.plus(number * 1000);
            let placed: Vec<JpegFile<'_>> = (0..)
                .zip(sizes.iter().zip(&files))
                .map(|(number, (size, bytes))| file(bytes, *size, at(number)))
                .collect();
            // SAFETY: the files and the memory are kept until all work is done.
            let refused = unsafe { decoder.decode(&placed, channels.into(), Stream(1)) };
            assert!(refused.unwrap().is_empty());
            driver.finish_all();
            let found = driver.read(memory, MEMORY).unwrap();
            let mut wanted = vec![POISON; MEMORY];
            for (number, ((width, height), bytes)) in sizes.iter().zip(&files).enumerate() {
                let image = decoded(bytes, channels.into()).unwrap();
                assert_eq!((image.width, image.height), (*width, *height));
                let row = image.data.len() / usize::try_from(*height).unwrap();
                let step = usize::try_from(width * 3 + 5).unwrap();
                for (y, pixels) in image.data.chunks(row).enumerate() {
                    wanted[number * 1000 + y * step..][..row].copy_from_slice(pixels);
                }
            }
            assert!(found == wanted, "{channels}");
            assert_eq!(driver.faults(), []);
            drop(decoder);
            // SAFETY: no work is queued.
            unsafe { driver.free(memory) };
            assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
        }
    }

    #[test]
    fn a_file_that_cannot_be_decoded_is_named_and_nothing_of_its_batch_is_queued() {
        let (driver, memory) = driver(1);
        let decoder = driver.open_jpeg().unwrap();
        let good = jpeg(8, 8, 3);
        let batch = [file(&good, (8, 8), memory), file(&[0xFF, 0xD8, 0xFF, 0xD9], (8, 8), memory.plus(1000))];
        // SAFETY: as above.
        let refused = unsafe { decoder.decode(&batch, 3, Stream(1)) }.unwrap();
        assert_eq!(refused, [1]);
        driver.refuse_jpeg_with(&good[20..40]);
        // SAFETY: as above.
        let refused = unsafe { decoder.decode(&batch, 3, Stream(1)) }.unwrap();
        assert_eq!(refused, [0, 1]);
        driver.finish_all();
        assert_eq!(driver.read(memory, MEMORY), Some(vec![POISON; MEMORY]));
    }

    #[test]
    fn rules_that_are_broken_while_files_are_decoded_are_noted() {
        let (driver, memory) = driver(40);
        let decoder = driver.open_jpeg().unwrap();
        let mut bytes = jpeg(8, 8, 3);
        let decode = |bytes: &[u8], size| {
            let placed = file(bytes, size, memory);
            // SAFETY: violated on purpose, in memory that exists.
            let refused = unsafe { decoder.decode(&[placed], 3, Stream(1)) };
            assert!(refused.unwrap().is_empty());
        };
        for _ in 0..8 {
            decode(&bytes, (8, 8));
        }
        bytes[4] ^= 1;
        driver.finish_all();
        assert!(driver.faults().contains(&Fault::ChangedUnderCopy));
        bytes[4] ^= 1;
        decode(&bytes, (9, 8));
        driver.finish_all();
        let is_size = |fault: &Fault| matches!(fault, Fault::BadLaunch(_));
        assert!(driver.faults().iter().any(is_size));
        for _ in 0..8 {
            decode(&bytes, (8, 8));
        }
        // SAFETY: violated on purpose, as above. The driver checks the address before it writes.
        unsafe { driver.free(memory) };
        driver.finish_all();
        let faults = driver.faults();
        assert!(faults.contains(&Fault::GivenBackTooEarly), "{faults:?}");
        assert!(faults.contains(&Fault::NotAllocated), "{faults:?}");
    }

    #[test]
    fn a_decoder_that_is_early_writes_before_its_stream_gets_there() {
        for is_early in [false, true] {
            let (driver, memory) = driver(5);
            if is_early {
                driver.decode_early();
            }
            let decoder = driver.open_jpeg().unwrap();
            let bytes = jpeg(8, 8, 3);
            let placed = [file(&bytes, (8, 8), memory)];
            // SAFETY: violated on purpose. The pixels are written while a queued copy reads them. The memory exists.
            unsafe { driver.copy_within(memory, memory.plus(2000), 1000, Stream(1)) }.unwrap();
            // SAFETY: as above.
            let refused = unsafe { decoder.decode(&placed, 3, Stream(1)) };
            assert!(refused.unwrap().is_empty());
            driver.finish_all();
            let is_noted = driver.faults().contains(&Fault::WrittenTooEarly);
            let copied = driver.read(memory.plus(2000), 1000).unwrap();
            let is_changed = copied.iter().any(|byte| *byte != POISON);
            assert_eq!((is_noted, is_changed), (is_early, is_early));
        }
    }

    #[test]
    fn a_driver_that_fails_says_so_and_nothing_is_lost() {
        for calls in 0..2 {
            let (driver, memory) = driver(1);
            driver.fail_after(calls);
            let bytes = jpeg(8, 8, 3);
            let placed = [file(&bytes, (8, 8), memory)];
            let decoded = driver.open_jpeg().and_then(|decoder| {
                // SAFETY: as above.
                unsafe { decoder.decode(&placed, 3, Stream(1)) }
            });
            let error = decoded.unwrap_err().to_string();
            assert!(error.contains("the simulated device failed"), "{error}");
            driver.finish_all();
            // SAFETY: no work is queued.
            unsafe { driver.free(memory) };
            assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
        }
    }
}
