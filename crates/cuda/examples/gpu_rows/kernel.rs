//! The kernel in every type and layout, of whole pictures and of drawn windows, beside a copy of as many bytes.

use packds_cuda::{DevicePtr, Emission, Stream, type_word};
use packds_pixels::FloatType;
use packds_reader::arena::Arena;
use packds_reader::device::Frame;

use super::{Bench, Ended, bytes, rate};

/// Launches for each wait: one is shorter than the waiting.
const LAUNCHES: usize = 20;

impl Bench {
    /// Part d, row 8.
    pub(super) fn kernel(&self) -> Ended {
        let (n, side) = if self.is_simulated {
            (4_u32, 32_u32)
        } else {
            (256, 224)
        };
        // Room around the windows.
        let picture_side = side + side / 7;
        let picture = usize::try_from(picture_side * picture_side * 3)?;
        let count = usize::try_from(n)?;
        let pixels = count * usize::try_from(side * side * 3)?;
        let source = self.driver.allocate(bytes(count * picture), "pixels")?;
        let table = self.driver.allocate(3 * 1024, "a table")?;
        let out = self.driver.allocate(bytes(5 * pixels), "images")?;
        let stream = self.driver.stream()?;
        let frames = self.frames(count, picture_side, picture_side - side, stream)?;
        println!("\nthe kernel, {n} images of {side} x {side} x 3");
        println!(
            "{:>6}{:>8}{:>9}{:>10}{:>12}{:>22}",
            "bytes", "layout", "", "us", "GB/s", "of copying as much"
        );
        for float in [None, Some(FloatType::Bf16), Some(FloatType::F32)] {
            let value_bytes = float.map_or(1, FloatType::n_bytes);
            let moved = pixels + pixels * value_bytes;
            let copy_rate = self.copy_rate(out, moved / 2, stream)?;
            for (planar, windows) in [(0, false), (1, false), (0, true), (1, true)] {
                let emission = Emission {
                    source,
                    frames: if windows { frames } else { DevicePtr(0) },
                    table,
                    out,
                    n,
                    width: side,
                    height: side,
                    channels: 3,
                    planar,
                    ty: type_word(float),
                    ..Emission::default()
                };
                let time = self.time(&[stream], || {
                    for _ in 0..LAUNCHES {
                        // SAFETY: all memory is allocated as large as the numbers say.
                        unsafe { self.driver.emit(&emission, stream)? };
                    }
                    Ok(())
                })?;
                let reached = rate(moved * LAUNCHES, time);
                println!(
                    "{value_bytes:>6}{:>8}{:>9}{:>10.1}{reached:>12.1}{:>21.0}%",
                    if planar == 1 { "chw" } else { "hwc" },
                    if windows { "windows" } else { "whole" },
                    time.as_secs_f64() * 1e6 / LAUNCHES as f64,
                    100.0 * reached / copy_rate,
                );
            }
        }
        self.give_back(&[source, table, out, frames], &[stream]);
        Ok(())
    }

    /// Windows of pictures in an order that is none, every second one flipped, on the device.
    fn frames(
        &self,
        n: usize,
        side: u32,
        room: u32,
        stream: Stream,
    ) -> Result<DevicePtr, Box<dyn std::error::Error>> {
        let arena = Arena::new(1, n * Frame::BYTES)?;
        let mut slot = arena.try_take().ok_or("an arena without a slot")?;
        let (places, _) = slot.as_chunks_mut::<{ Frame::BYTES }>();
        let picture = usize::try_from(side * side * 3)?;
        for (number, to) in places.iter_mut().take(n).enumerate() {
            let draw = u32::try_from(number)?.wrapping_mul(2_654_435_761) >> 8;
            *to = Frame {
                source: bytes(number * 97 % n * picture),
                x: i32::try_from(draw % (room + 1))?,
                y: i32::try_from(draw / 7 % (room + 1))?,
                flips: draw & Frame::HORIZONTAL,
                width: side,
                height: side,
                row_bytes: side * 3,
                ..Frame::default()
            }
            .to_bytes();
        }
        let frames = self.driver.allocate(bytes(n * Frame::BYTES), "frames")?;
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { self.driver.register(slot.as_ptr(), slot.len())? };
        // SAFETY: both have that much, and the end is waited for.
        unsafe {
            self.driver
                .copy_in(slot.as_ptr(), frames, n * Frame::BYTES, stream)?;
        }
        self.wait(stream)?;
        // SAFETY: the copy is done.
        unsafe { self.driver.unregister(slot.as_ptr()) };
        Ok(frames)
    }

    /// Bytes read and written in a second by copies of `half` bytes.
    fn copy_rate(
        &self,
        memory: DevicePtr,
        half: usize,
        stream: Stream,
    ) -> Result<f64, Box<dyn std::error::Error>> {
        let copied = self.time(&[stream], || {
            for _ in 0..LAUNCHES {
                // SAFETY: within one allocation, the halves apart, and `time` waits for the end.
                unsafe {
                    self.driver
                        .copy_within(memory, memory.plus(bytes(half)), half, stream)?;
                }
            }
            Ok(())
        })?;
        Ok(rate(2 * half * LAUNCHES, copied))
    }
}
