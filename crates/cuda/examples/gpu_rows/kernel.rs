//! Measures the kernel in every type and layout, for whole pictures and random windows, with augmentations. Compares it
//! with a copy of the same size.

use packds_cuda::{DevicePtr, Emission, Stream, type_word};
use packds_pixels::FloatType;
use packds_pixels::ops::Adjustment;
use packds_reader::arena::Arena;
use packds_reader::device::{ColorOp, Frame, Patch};

use super::{Bench, Ended, bytes, rate};

/// Launches per wait. There are several, because a single launch takes less time than the wait itself.
const LAUNCHES: usize = 20;

impl Bench {
    /// Prints the kernel's speed for each type and layout.
    pub(super) fn kernel(&self) -> Ended {
        let (n, side) = if self.is_simulated { (4_u32, 32_u32) } else { (256, 224) };
        // Pictures are larger than the windows.
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
        println!("{:>6}{:>8}{:>10}{:>10}{:>12}{:>22}", "bytes", "layout", "", "us", "GB/s", "vs. a plain copy");
        let whole = Emission { source, table, out, n, width: side, height: side, channels: 3, ..Emission::default() };
        for float in [None, Some(FloatType::Bf16), Some(FloatType::F32)] {
            let value_bytes = float.map_or(1, FloatType::n_bytes);
            let moved = pixels + pixels * value_bytes;
            let copy_rate = self.copy_rate(out, moved / 2, stream)?;
            for (planar, windows) in [(0, false), (1, false), (0, true), (1, true)] {
                let emission = Emission {
                    frames: if windows { frames } else { DevicePtr(0) },
                    planar,
                    ty: type_word(float),
                    ..whole
                };
                let name = if windows { "windows" } else { "whole" };
                self.launches(name, &emission, moved, copy_rate, stream)?;
            }
        }
        let windows = Emission { frames, planar: 1, ty: type_word(Some(FloatType::Bf16)), ..whole };
        self.augmented(&windows, stream)?;
        self.give_back(&[source, table, out, frames], &[stream]);
        Ok(())
    }

    /// Prints the speed with augmentations, for the most common type and layout.
    fn augmented(&self, windows: &Emission, stream: Stream) -> Ended {
        let count = usize::try_from(windows.n)?;
        let pixels = count * usize::try_from(windows.width * windows.height * windows.channels)?;
        let moved = pixels + pixels * FloatType::Bf16.n_bytes();
        let copy_rate = self.copy_rate(windows.out, moved / 2, stream)?;
        let patch = Patch { x: (0, windows.width / 2), y: (0, windows.height / 2) };
        let patches = self.uploaded(&patch.to_bytes().repeat(count), stream)?;
        let erased = Emission { patches, n_patches: 1, ..*windows };
        self.launches("erased", &erased, moved, copy_rate, stream)?;
        let of_pixels = [Adjustment::Brightness(1.2), Adjustment::Saturation(0.8), Adjustment::Hue(0.05)];
        let all = [&of_pixels[..], &[Adjustment::Contrast(1.2)]].concat();
        let mut colors = Vec::new();
        for (name, ops) in [("colours", &of_pixels[..]), ("contrast", &all)] {
            let list: Vec<u8> = ops.iter().flat_map(|op| ColorOp(Some(*op)).to_bytes()).collect();
            let list = self.uploaded(&list.repeat(count), stream)?;
            colors.push(list);
            let changed = Emission {
                colors: list,
                n_colors: u32::try_from(ops.len())?,
                measures: u32::from(ops.len() > of_pixels.len()),
                ..*windows
            };
            self.launches(name, &changed, moved, copy_rate, stream)?;
        }
        colors.push(patches);
        self.give_back(&colors, &[]);
        Ok(())
    }

    /// Prints a line of the table. Each launch moves `moved` bytes.
    fn launches(&self, name: &str, emission: &Emission, moved: usize, copy_rate: f64, stream: Stream) -> Ended {
        let time = self.time(&[stream], || {
            for _ in 0..LAUNCHES {
                // SAFETY: all memory is allocated with the sizes in the arguments.
                unsafe { self.driver.emit(emission, stream)? };
            }
            Ok(())
        })?;
        let reached = rate(moved * LAUNCHES, time);
        println!(
            "{:>6}{:>8}{name:>10}{:>10.1}{reached:>12.1}{:>21.0}%",
            emission.value_bytes(),
            if emission.planar == 1 { "chw" } else { "hwc" },
            time.as_secs_f64() * 1e6 / LAUNCHES as f64,
            100.0 * reached / copy_rate,
        );
        Ok(())
    }

    /// Crops of pictures on the device, in irregular order. Every second one is flipped.
    fn frames(&self, n: usize, side: u32, room: u32, stream: Stream) -> Result<DevicePtr, Box<dyn std::error::Error>> {
        let mut all = Vec::with_capacity(n * Frame::BYTES);
        let picture = usize::try_from(side * side * 3)?;
        for number in 0..n {
            let draw = u32::try_from(number)?.wrapping_mul(2_654_435_761) >> 8;
            let frame = Frame {
                source: bytes(number * 97 % n * picture),
                x: i32::try_from(draw % (room + 1))?,
                y: i32::try_from(draw / 7 % (room + 1))?,
                flips: draw & Frame::HORIZONTAL,
                width: side,
                height: side,
                row_bytes: side * 3,
                ..Frame::default()
            };
            all.extend(frame.to_bytes());
        }
        self.uploaded(&all, stream)
    }

    /// Uploads bytes to a separate allocation on the device.
    fn uploaded(&self, all: &[u8], stream: Stream) -> Result<DevicePtr, Box<dyn std::error::Error>> {
        let arena = Arena::new(1, all.len())?;
        let mut slot = arena.try_take().ok_or("the arena has no slot")?;
        slot.get_mut(..all.len()).ok_or("the slot is too small")?.copy_from_slice(all);
        let to = self.driver.allocate(bytes(all.len()), "the inputs of launches")?;
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { self.driver.register(slot.as_ptr(), slot.len())? };
        // SAFETY: source and destination have this many bytes, and the code waits until the copy is done.
        unsafe {
            self.driver.copy_in(slot.as_ptr(), to, all.len(), stream)?;
        }
        self.wait(stream)?;
        // SAFETY: the copy is done.
        unsafe { self.driver.unregister(slot.as_ptr()) };
        Ok(to)
    }

    /// Bytes read plus bytes written per second, for a copy of `half` bytes.
    fn copy_rate(&self, memory: DevicePtr, half: usize, stream: Stream) -> Result<f64, Box<dyn std::error::Error>> {
        let copied = self.time(&[stream], || {
            for _ in 0..LAUNCHES {
                // SAFETY: the two are separate halves of one allocation, and `time` waits until the copies are done.
                unsafe {
                    self.driver.copy_within(memory, memory.plus(bytes(half)), half, stream)?;
                }
            }
            Ok(())
        })?;
        Ok(rate(2 * half * LAUNCHES, copied))
    }
}
