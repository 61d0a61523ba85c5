//! Compares the kernel with the host's code, without a GPU. `kernel/host.c` runs emit.cu on the CPU.

#![cfg(test)]

mod colors;
mod host;

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use packds_cuda::twin::{self, Inputs};
use packds_cuda::{Emission, padding_word, planar, type_word};
use packds_pixels::ops::Emit;
use packds_pixels::{
    Area, AxisTaps, CropResize, Filter, FloatType, Layout, Padding, Pixels, Resizer, padded_crop_into, rows_come_first,
};
use packds_reader::device::{Changes, ColorOp, Frame, Patch, Share};
use proptest::prelude::*;

use self::host::{Host, folder};

/// The inputs of a launch.
#[derive(Debug, Clone)]
struct Case {
    emission: Emission,
    source: Vec<u8>,
    frames: Option<Vec<Frame>>,
    /// The values of patches.
    set: Vec<u32>,
    patches: Vec<Patch>,
    shares: Option<Vec<Share>>,
    colors: Vec<ColorOp>,
    float: Option<FloatType>,
    layout: Layout,
    padding: Padding,
    norm: (Vec<f32>, Vec<f32>),
}

impl Case {
    fn emit(&self) -> Emit {
        let (mean, std) = &self.norm;
        let norm = self.float.map(|_| (&mean[..], &std[..]));
        Emit::new(mean.len(), norm, self.float, self.layout).unwrap()
    }

    /// The result of the loader's threads before patches and mixing.
    fn on_host(&self) -> Vec<u8> {
        let e = &self.emission;
        let emit = self.emit();
        let channels = usize::try_from(e.channels).unwrap();
        let row_bytes = e.width * e.channels;
        let window = usize::try_from(e.width * e.height).unwrap() * channels;
        let mut out = Vec::new();
        for number in 0..usize::try_from(e.n).unwrap() {
            let frame = self.frames.as_ref().map_or(
                Frame {
                    source: u64::try_from(number * window).unwrap(),
                    width: e.width,
                    height: e.height,
                    row_bytes,
                    ..Frame::default()
                },
                |frames| frames[number],
            );
            let picture = Picture {
                first: usize::try_from(frame.source).unwrap(),
                width: frame.width,
                height: frame.height,
                row_bytes: frame.row_bytes,
            };
            let tight = picture.pixels(&self.source, e.channels);
            let pixels = Pixels {
                data: &tight,
                width: frame.width,
                height: frame.height,
                channels: u8::try_from(channels).unwrap(),
            };
            let mut shown = vec![0; window];
            padded_crop_into(
                pixels,
                frame.x.into(),
                frame.y.into(),
                e.width,
                e.height,
                self.padding,
                frame.flips & Frame::HORIZONTAL != 0,
                frame.flips & Frame::VERTICAL != 0,
                &mut shown,
            )
            .unwrap();
            let n_colors = usize::try_from(e.n_colors).unwrap();
            let colors = self.colors.iter().skip(number * n_colors).take(n_colors);
            for adjustment in colors.filter_map(|color| color.0) {
                adjustment.apply(&mut shown, u8::try_from(channels).unwrap());
            }
            let mut image = vec![0; window * emit.value_bytes()];
            emit.write_into(&shown, &mut image).unwrap();
            out.extend(image);
        }
        out
    }
}

/// A picture among others, with unused bytes after each row.
#[derive(Debug, Clone, Copy)]
struct Picture {
    first: usize,
    width: u32,
    height: u32,
    row_bytes: u32,
}

impl Picture {
    /// The picture's pixels, row by row.
    fn pixels(&self, source: &[u8], channels: u32) -> Vec<u8> {
        let index = |n: u32| usize::try_from(n).unwrap();
        let row = |y| &source[self.first + index(y * self.row_bytes)..][..index(self.width * channels)];
        (0..self.height).flat_map(row).copied().collect()
    }
}

/// Number of images and their size, the size of the largest picture, and whether there are three channels.
type Sizes = (u32, u32, u32, u32, u32, bool);

/// Pseudorandom numbers.
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = packds_format::mix64(self.0);
        self.0 % below
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// The start of a window of `out` pixels on a side: inside, across an edge, or outside.
    fn start(&mut self, side: u32, out: u32) -> i32 {
        let drawn = self.below(u64::from(side) + 2 * u64::from(out));
        i32::try_from(drawn).unwrap() - i32::try_from(out).unwrap()
    }

    /// Variable-size pictures up to a maximum size, with gaps between them. The last one has the maximum size. The
    /// buffer is no larger than necessary.
    fn pictures(&mut self, n: u32, (width, height): (u32, u32), channels: u32) -> (Vec<Picture>, Vec<u8>) {
        let (mut pictures, mut end) = (Vec::new(), 0);
        for number in 1..=n {
            let mut side = |most: u32| match number == n {
                true => most,
                false => 1 + u32::try_from(self.below(most.into())).unwrap(),
            };
            let (width, height) = (side(width), side(height));
            let row_bytes = width * channels + u32::try_from(self.below(6)).unwrap();
            let first = end + usize::try_from(self.below(5)).unwrap();
            end = first + usize::try_from((height - 1) * row_bytes + width * channels).unwrap();
            pictures.push(Picture { first, width, height, row_bytes });
        }
        (pictures, (0..end).map(|_| self.byte()).collect())
    }

    fn padding(&mut self, kind: u8) -> Padding {
        match kind {
            0 => Padding::Constant([self.byte(), self.byte(), self.byte(), 0]),
            1 => Padding::Edge,
            2 => Padding::Reflect,
            _ => Padding::Symmetric,
        }
    }
}

fn case(sizes: Sizes, kind: (usize, bool, u8), seed: u64, (mean, std): (f32, f32)) -> Case {
    let (n, source_width, source_height, width, height, is_color) = sizes;
    let (ty, is_planar, padding) = kind;
    let mut draws = Draws(seed);
    let channels: u32 = if is_color { 3 } else { 1 };
    let float = [None, Some(FloatType::F16), Some(FloatType::Bf16), Some(FloatType::F32)][ty];
    let layout = if is_planar { Layout::Chw } else { Layout::Hwc };
    let padding = draws.padding(padding);
    // Either there are twice as many pictures as images, and frames refer to any of them, or there are no frames.
    let has_frames = (width, height) != (source_width, source_height) || draws.below(3) > 0;
    let (pictures, source) = match has_frames {
        true => draws.pictures(2 * n, (source_width, source_height), channels),
        false => {
            let bytes = n * width * height * channels;
            (Vec::new(), (0..bytes).map(|_| draws.byte()).collect())
        }
    };
    let mut frame = || {
        let number = draws.below(2 * u64::from(n));
        let picture = pictures[usize::try_from(number).unwrap()];
        Frame {
            source: u64::try_from(picture.first).unwrap(),
            x: draws.start(picture.width, width),
            y: draws.start(picture.height, height),
            flips: u32::try_from(draws.below(4)).unwrap(),
            width: picture.width,
            height: picture.height,
            row_bytes: picture.row_bytes,
            ..Frame::default()
        }
    };
    let frames = has_frames.then(|| (0..n).map(|_| frame()).collect());
    let (kind, color) = padding_word(padding);
    let norm = (0..channels).map(|c| (mean + 0.125 * c as f32, std * (1.0 + c as f32)));
    Case {
        emission: Emission {
            n,
            width,
            height,
            channels,
            planar: planar(layout),
            ty: type_word(float),
            padding: kind,
            color,
            ..Emission::default()
        },
        source,
        frames,
        set: Vec::new(),
        patches: Vec::new(),
        shares: None,
        colors: Vec::new(),
        float,
        layout,
        padding,
        norm: norm.unzip(),
    }
}

impl Case {
    /// The same case with patches and mixing.
    fn changed(mut self, n_patches: u32, mixes: bool, seed: u64) -> Self {
        let e = &mut self.emission;
        let mut draws = Draws(seed);
        e.n_patches = n_patches;
        let bits = match e.ty {
            0 => 0xFF,
            3 => u32::MAX,
            _ => 0xFFFF,
        };
        // Any finite f16 or bf16.
        let finite = [0xFF, 0xBBFF, 0x7EFF, 0xBEFF_FFFF][usize::try_from(e.ty).unwrap()];
        for _ in 0..n_patches * e.channels {
            let drawn = u32::try_from(draws.below(1 << 32)).unwrap();
            self.set.push(drawn & bits & finite);
        }
        let (width, height) = (e.width, e.height);
        let mut patch = || {
            let mut span = |side: u32| {
                let mut place = || u32::try_from(draws.below(u64::from(side) + 1)).unwrap();
                (place(), place())
            };
            Patch { x: span(width), y: span(height) }
        };
        self.patches = (0..e.n * n_patches).map(|_| patch()).collect();
        let share = |number: u32| {
            let lambda = f32::from(u16::try_from(seed.wrapping_mul(77) % 1001).unwrap()) / 1000.0;
            let whole = Patch { x: (0, width), y: (0, height) };
            match number % 3 {
                0 => Share { patch: whole, own: Some(lambda) },
                1 => Share { patch: patch(), own: None },
                _ => Share { patch: whole, own: Some(1.0 - lambda * lambda) },
            }
        };
        self.shares = mixes.then(|| (0..e.n).map(share).collect());
        self
    }
}

fn check(host: &mut Host, case: &Case) {
    let mut table = case.emit().table();
    table.extend(&case.set);
    let inputs = Inputs {
        source: &case.source,
        frames: case.frames.as_deref(),
        table: &table,
        patches: &case.patches,
        shares: case.shares.as_deref(),
        colors: &case.colors,
        taps: &[],
    };
    let wanted = case.on_host();
    let mut twin = vec![0; wanted.len()];
    twin::emit(&case.emission, inputs, &mut twin).unwrap();
    if case.set.is_empty() && case.shares.is_none() {
        assert!(twin == wanted, "the twin differs: {:?}", case.emission);
    }
    let found = host.emit(&case.emission, inputs);
    assert!(found == twin, "the kernel differs: {:?}", case.emission);
}

#[test]
fn the_kernel_gives_the_hosts_bits_in_every_type_and_layout() {
    let mut host = Host::start();
    for ty in 0..4 {
        for is_planar in [false, true] {
            for is_color in [false, true] {
                for (width, height) in [(1, 1), (32, 32), (33, 7), (224, 40), (5, 65)] {
                    let sizes = (3, width, height, width, height, is_color);
                    let seed = u64::from(width) * 1000 + u64::from(height);
                    check(&mut host, &case(sizes, (ty, is_planar, 0), seed, (0.45, 0.225)));
                }
            }
        }
    }
}

#[test]
fn the_kernel_gives_the_hosts_bits_for_any_window() {
    let host = Mutex::new(Host::start());
    let sizes = (1_u32..5, 1_u32..41, 1_u32..41, 1_u32..72, 1_u32..72, any::<bool>());
    let kinds = (0_usize..4, any::<bool>(), 0_u8..4);
    let norms = (-1.0_f32..2.0, 1e-3_f32..2.0);
    proptest!(
        ProptestConfig::with_cases(300),
        |(sizes in sizes, kind in kinds, seed in any::<u64>(), norm in norms)| {
            check(&mut host.lock().unwrap(), &case(sizes, kind, seed, norm));
        }
    );
}

/// The twin does the same as the loader's threads. The tests of `src/staging` also compare these two.
#[test]
fn the_kernel_erases_and_mixes_with_the_hosts_bits() {
    let host = Mutex::new(Host::start());
    let sizes = (1_u32..5, 1_u32..30, 1_u32..30, 1_u32..50, 1_u32..50, any::<bool>());
    let kinds = (0_usize..4, any::<bool>(), 0_u8..4);
    let norms = (-1.0_f32..2.0, 1e-3_f32..2.0);
    let changes = (0_u32..4, any::<bool>());
    proptest!(
        ProptestConfig::with_cases(400),
        |(sizes in sizes, kind in kinds, seed in any::<u64>(), norm in norms, change in changes)| {
            let case = case(sizes, kind, seed, norm).changed(change.0, change.1, seed);
            check(&mut host.lock().unwrap(), &case);
        }
    );
}

/// Mixes every pair of f16, of bf16 and of bytes.
#[test]
fn every_small_value_is_mixed_as_on_the_host() {
    let mut host = Host::start();
    for (float, n_bits) in [(None, 8), (Some(FloatType::F16), 16), (Some(FloatType::Bf16), 16)] {
        let n_values = 1_u32 << n_bits;
        // Normalization gives only finite values.
        let is_finite = |bits: u32| match float {
            Some(FloatType::F16) => bits & 0x7C00 != 0x7C00,
            Some(_) => bits & 0x7F80 != 0x7F80,
            None => true,
        };
        let values: Vec<u32> = (0..n_values).filter(|bits| is_finite(*bits)).collect();
        for lambda in [0.0, 0.3, 0.5, 1.0, 0.999_99] {
            for values in values.chunks(256) {
                let mut table = values.to_vec();
                table.resize(256, values[0]);
                let whole = Patch { x: (0, 16), y: (0, 16) };
                let share = Share { patch: whole, own: Some(lambda) };
                let emission =
                    Emission { n: 2, width: 16, height: 16, channels: 1, ty: type_word(float), ..Emission::default() };
                let ascending = 0_u8..=255;
                let other = ascending.clone().map(|byte| byte.wrapping_mul(167).wrapping_add(13));
                let source: Vec<u8> = ascending.clone().chain(other).collect();
                let inputs = Inputs {
                    source: &source,
                    frames: None,
                    table: &table,
                    patches: &[],
                    shares: Some(&[share, share]),
                    colors: &[],
                    taps: &[],
                };
                let mut twin = vec![0; usize::try_from(emission.out_bytes()).unwrap()];
                twin::emit(&emission, inputs, &mut twin).unwrap();
                assert!(host.emit(&emission, inputs) == twin, "{float:?} {lambda} {values:x?}");
            }
        }
    }
}

/// Resizes areas of variable-size pictures like the loader's threads, with columns or rows first. Some pictures are not
/// resized.
#[test]
fn the_kernel_resizes_with_the_hosts_bytes() {
    let host = Mutex::new(Host::start());
    let sides = (1_u32..40, 1_u32..40, 1_u32..30, 1_u32..30);
    let kinds = (0_usize..5, any::<bool>(), any::<bool>());
    proptest!(
        ProptestConfig::with_cases(300),
        |(sides in sides, kind in kinds, seed in any::<u64>())| {
            resized(&mut host.lock().unwrap(), sides, kind, seed);
        }
    );
}

fn resized(
    host: &mut Host,
    (largest_width, largest_height, width, height): (u32, u32, u32, u32),
    (filter, is_color, is_planar): (usize, bool, bool),
    seed: u64,
) {
    let (n, filter) = (3_u32, Filter::ALL[filter]);
    let mut draws = Draws(seed);
    let channels: u32 = if is_color { 3 } else { 1 };
    let layout = if is_planar { Layout::Chw } else { Layout::Hwc };
    let emission =
        Emission { n, width, height, channels, planar: planar(layout), ty: type_word(None), ..Emission::default() };
    let largest = (largest_width, largest_height);
    let (pictures, source) = draws.pictures(2 * n, largest, channels);
    let emit = Emit::new(usize::try_from(channels).unwrap(), None, None, layout).unwrap();
    let (mut frames, mut wanted, mut taps) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let number = usize::try_from(draws.below(pictures.len() as u64)).unwrap();
        let picture = pictures[number];
        let is_resized = draws.below(4) > 0;
        let (mut frame, shown) = area(&emission, filter, &source, picture, is_resized, &mut draws);
        if is_resized {
            frame.across = push_taps(&mut taps, frame.width, width, filter);
            frame.down = push_taps(&mut taps, frame.height, height, filter);
            (frame.width, frame.height) = (width, height);
        }
        frames.push(frame);
        let mut image = vec![0; shown.len()];
        emit.write_into(&shown, &mut image).unwrap();
        wanted.extend(image);
    }
    let inputs = Inputs {
        source: &source,
        frames: Some(&frames),
        table: &emit.table(),
        patches: &[],
        shares: None,
        colors: &[],
        taps: &taps,
    };
    let mut twin = vec![0; wanted.len()];
    twin::emit(&emission, inputs, &mut twin).unwrap();
    assert!(twin == wanted, "the twin differs: {emission:?} {filter:?}");
    let found = host.emit(&emission, inputs);
    assert!(found == wanted, "the kernel differs: {emission:?} {filter:?}");
}

/// An area of a picture, or the whole picture if it is not resized, and the host's result for it. The frame has the
/// size of the area.
fn area(
    e: &Emission,
    filter: Filter,
    source: &[u8],
    picture: Picture,
    is_resized: bool,
    draws: &mut Draws,
) -> (Frame, Vec<u8>) {
    let flips = u32::try_from(draws.below(4)).unwrap();
    let tight = picture.pixels(source, e.channels);
    let pixels = Pixels {
        data: &tight,
        width: picture.width,
        height: picture.height,
        channels: u8::try_from(e.channels).unwrap(),
    };
    let (is_left, is_up) = (flips & Frame::HORIZONTAL != 0, flips & Frame::VERTICAL != 0);
    let mut shown = vec![0; usize::try_from(e.width * e.height * e.channels).unwrap()];
    let mut frame = Frame {
        source: u64::try_from(picture.first).unwrap(),
        flips,
        width: picture.width,
        height: picture.height,
        row_bytes: picture.row_bytes,
        ..Frame::default()
    };
    if !is_resized {
        (frame.x, frame.y) = (draws.start(picture.width, e.width), draws.start(picture.height, e.height));
        let (x, y) = (frame.x.into(), frame.y.into());
        let padding = Padding::Constant([0; 4]);
        padded_crop_into(pixels, x, y, e.width, e.height, padding, is_left, is_up, &mut shown).unwrap();
        return (frame, shown);
    }
    let mut span = |side: u32| {
        let len = 1 + u32::try_from(draws.below(side.into())).unwrap();
        let start = draws.below(u64::from(side - len) + 1);
        (u32::try_from(start).unwrap(), len)
    };
    let ((x, width), (y, height)) = (span(picture.width), span(picture.height));
    let view = CropResize {
        area: Area { x, y, width, height },
        width: e.width,
        height: e.height,
        filter,
        flip_horizontal: is_left,
        flip_vertical: is_up,
    };
    let mut resizer = Resizer::new();
    resizer.crop_resize_into(pixels, &view, &mut shown).unwrap();
    let rows_first = rows_come_first(width, height, e.width, e.height);
    frame.source += u64::from(y * picture.row_bytes + x * e.channels);
    frame.flips |= Frame::RESIZED | (u32::from(rows_first) * Frame::ROWS_FIRST);
    (frame.width, frame.height) = (width, height);
    (frame, shown)
}

/// Adds the taps of an axis in the layout of `packds_reader::device::Resampling`. Returns their start.
fn push_taps(words: &mut Vec<u32>, length: u32, out: u32, filter: Filter) -> u32 {
    let start = u32::try_from(words.len()).unwrap();
    let taps = AxisTaps::new(length, out, filter);
    words.push(u32::try_from(taps.stride).unwrap());
    for (at, weights) in taps.weights.chunks(taps.stride).enumerate() {
        words.extend([taps.start[at], taps.len[at]]);
        words.extend(weights.iter().map(|weight| weight.cast_unsigned()));
    }
    start
}

#[test]
fn the_ptx_is_of_this_source() {
    let ptx = std::fs::read_to_string(folder().join("emit.ptx")).unwrap();
    let recorded = ptx.lines().find_map(|line| line.strip_prefix("// source sha256 "));
    let output = Command::new("sha256sum").arg(folder().join("emit.cu")).output().unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    let found = found.split_whitespace().next();
    assert_eq!(recorded, found, "emit.cu has changed: run crates/cuda/kernel/build");
}

/// The kernel gets a copy of our struct, so the fields must have the same offsets.
#[test]
fn a_launch_is_laid_out_as_the_kernel_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(Host::compiled(&folder)).arg("layout").output().unwrap();
    let found: Vec<usize> =
        String::from_utf8(output.stdout).unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let wanted = [
        offset_of!(Emission, source),
        offset_of!(Emission, frames),
        offset_of!(Emission, table),
        offset_of!(Emission, patches),
        offset_of!(Emission, shares),
        offset_of!(Emission, colors),
        offset_of!(Emission, taps),
        offset_of!(Emission, out),
        offset_of!(Emission, n),
        offset_of!(Emission, width),
        offset_of!(Emission, height),
        offset_of!(Emission, channels),
        offset_of!(Emission, planar),
        offset_of!(Emission, ty),
        offset_of!(Emission, padding),
        offset_of!(Emission, color),
        offset_of!(Emission, n_patches),
        offset_of!(Emission, n_colors),
        offset_of!(Emission, measures),
        size_of::<Emission>(),
        Changes::MOST_COLORS,
    ];
    assert_eq!(found, wanted);
}

/// If a Python environment has NVRTC, the PTX is compiled again and compared.
#[test]
fn the_ptx_is_what_the_compiler_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pythons = [root.join(".venv/bin/python"), PathBuf::from("python3")];
    let has_nvrtc = |python: &&PathBuf| {
        let asked = Command::new(python).args(["-c", "import nvidia.cuda_nvrtc"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let Some(python) = pythons.iter().find(has_nvrtc) else {
        println!("SKIPPED (no NVRTC): the_ptx_is_what_the_compiler_gives");
        return;
    };
    let output = Command::new(python).arg(folder().join("build")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
