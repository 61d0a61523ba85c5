//! The kernel against the host's own code, without a GPU: `kernel/host.c` runs emit.cu on a processor.

#![cfg(test)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use packds_cuda::{DevicePtr, Emission, padding_word, planar, twin};
use packds_pixels::ops::Emit;
use packds_pixels::{FloatType, Layout, Padding, Pixels, padded_crop_into};
use packds_reader::device::Frame;
use proptest::prelude::*;

/// Bytes on both sides of the output that the kernel may not touch.
const GUARD: usize = 64;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel")
}

/// The kernel, compiled for this machine, as a process that answers launches.
struct Host {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    _folder: tempfile::TempDir,
}

impl Host {
    fn start() -> Self {
        let made = tempfile::tempdir().unwrap();
        let program = made.path().join("kernel");
        let source = folder().join("host.c");
        let output = Command::new("cc")
            .args([
                "-std=gnu11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-ffp-contract=off",
                "-o",
            ])
            .args([&program, &source])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            to: child.stdin.take().unwrap(),
            from: child.stdout.take().unwrap(),
            child,
            _folder: made,
        }
    }

    /// The images of a launch; its guards are checked.
    fn emit(
        &mut self,
        e: &Emission,
        source: &[u8],
        frames: Option<&[Frame]>,
        table: &[u32],
    ) -> Vec<u8> {
        let (lines, images) = e.grid();
        let words = [
            e.n,
            e.source_width,
            e.source_height,
            e.width,
            e.height,
            e.channels,
            e.planar,
            e.value_bytes,
            e.padding,
            e.color,
            lines,
            images,
            u32::from(frames.is_some()),
        ];
        let mut sent: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sent.extend(u64::try_from(source.len()).unwrap().to_le_bytes());
        sent.extend(source);
        sent.extend(
            frames
                .into_iter()
                .flatten()
                .flat_map(|frame| frame.to_bytes()),
        );
        sent.extend(table.iter().flat_map(|entry| entry.to_le_bytes()));
        self.to.write_all(&sent).unwrap();
        self.to.flush().unwrap();
        let mut out = vec![0; usize::try_from(e.out_bytes()).unwrap() + 2 * GUARD];
        self.from.read_exact(&mut out).unwrap();
        let images = GUARD..out.len() - GUARD;
        assert!(
            out[..GUARD]
                .iter()
                .chain(&out[images.end..])
                .all(|byte| *byte == 0xA5)
        );
        out[images].to_vec()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one launch is made of.
#[derive(Debug, Clone)]
struct Case {
    emission: Emission,
    source: Vec<u8>,
    frames: Option<Vec<Frame>>,
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

    /// What the loader's threads would make of it.
    fn on_host(&self) -> Vec<u8> {
        let e = &self.emission;
        let emit = self.emit();
        let channels = usize::try_from(e.channels).unwrap();
        let picture = usize::try_from(e.source_width * e.source_height).unwrap() * channels;
        let window = usize::try_from(e.width * e.height).unwrap() * channels;
        let mut out = Vec::new();
        for number in 0..usize::try_from(e.n).unwrap() {
            let frame = self.frames.as_ref().map_or(
                Frame {
                    source: u64::try_from(number * picture).unwrap(),
                    x: 0,
                    y: 0,
                    flips: 0,
                },
                |frames| frames[number],
            );
            let start = usize::try_from(frame.source).unwrap();
            let pixels = Pixels {
                data: &self.source[start..start + picture],
                width: e.source_width,
                height: e.source_height,
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
            let mut image = vec![0; window * emit.value_bytes()];
            emit.write_into(&shown, &mut image).unwrap();
            out.extend(image);
        }
        out
    }
}

/// The numbers of a launch.
type Sizes = (u32, u32, u32, u32, u32, bool);

/// Numbers that look drawn.
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = packds_format::mix64(self.0);
        self.0 % below
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// Where a window of `out` pixels starts on a side: inside, across an edge or outside.
    fn start(&mut self, side: u32, out: u32) -> i32 {
        let drawn = self.below(u64::from(side) + 2 * u64::from(out));
        i32::try_from(drawn).unwrap() - i32::try_from(out).unwrap()
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
    let float = [
        None,
        Some(FloatType::F16),
        Some(FloatType::Bf16),
        Some(FloatType::F32),
    ][ty];
    let layout = if is_planar { Layout::Chw } else { Layout::Hwc };
    let padding = draws.padding(padding);
    let picture = u64::from(source_width * source_height * channels);
    // Twice as many pictures as images: frames name any of them, or none at all.
    let has_frames = (width, height) != (source_width, source_height) || draws.below(3) > 0;
    let pictures = if has_frames {
        u64::from(n) * 2
    } else {
        u64::from(n)
    };
    let source = (0..pictures * picture).map(|_| draws.byte()).collect();
    let mut frame = || Frame {
        source: draws.below(pictures) * picture,
        x: draws.start(source_width, width),
        y: draws.start(source_height, height),
        flips: u32::try_from(draws.below(4)).unwrap(),
    };
    let frames = has_frames.then(|| (0..n).map(|_| frame()).collect());
    let (kind, color) = padding_word(padding);
    let norm = (0..channels).map(|c| (mean + 0.125 * c as f32, std * (1.0 + c as f32)));
    Case {
        emission: Emission {
            source: DevicePtr(0),
            frames: DevicePtr(0),
            table: DevicePtr(0),
            out: DevicePtr(0),
            n,
            source_width,
            source_height,
            width,
            height,
            channels,
            planar: planar(layout),
            value_bytes: u32::try_from(float.map_or(1, FloatType::n_bytes)).unwrap(),
            padding: kind,
            color,
        },
        source,
        frames,
        float,
        layout,
        padding,
        norm: norm.unzip(),
    }
}

fn check(host: &mut Host, case: &Case) {
    let wanted = case.on_host();
    let table = case.emit().table();
    let frames = case.frames.as_deref();
    let mut twin = vec![0; wanted.len()];
    twin::emit(&case.emission, &case.source, frames, &table, &mut twin).unwrap();
    assert!(twin == wanted, "the twin differs: {:?}", case.emission);
    let found = host.emit(&case.emission, &case.source, frames, &table);
    assert!(found == wanted, "the kernel differs: {:?}", case.emission);
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
                    check(
                        &mut host,
                        &case(sizes, (ty, is_planar, 0), seed, (0.45, 0.225)),
                    );
                }
            }
        }
    }
}

#[test]
fn the_kernel_gives_the_hosts_bits_for_any_window() {
    let host = Mutex::new(Host::start());
    let sizes = (
        1_u32..5,
        1_u32..41,
        1_u32..41,
        1_u32..72,
        1_u32..72,
        any::<bool>(),
    );
    let kinds = (0_usize..4, any::<bool>(), 0_u8..4);
    let norms = (-1.0_f32..2.0, 1e-3_f32..2.0);
    proptest!(
        ProptestConfig::with_cases(300),
        |(sizes in sizes, kind in kinds, seed in any::<u64>(), norm in norms)| {
            check(&mut host.lock().unwrap(), &case(sizes, kind, seed, norm));
        }
    );
}

#[test]
fn the_ptx_is_of_this_source() {
    let ptx = std::fs::read_to_string(folder().join("emit.ptx")).unwrap();
    let recorded = ptx
        .lines()
        .find_map(|line| line.strip_prefix("// source sha256 "));
    let output = Command::new("sha256sum")
        .arg(folder().join("emit.cu"))
        .output()
        .unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    let found = found.split_whitespace().next();
    assert_eq!(
        recorded, found,
        "emit.cu has changed: run crates/cuda/kernel/build"
    );
}

/// Where a Python has NVRTC: then the PTX is made anew.
#[test]
fn the_ptx_is_what_the_compiler_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pythons = [root.join(".venv/bin/python"), PathBuf::from("python3")];
    let has_nvrtc = |python: &&PathBuf| {
        let asked = Command::new(python)
            .args(["-c", "import nvidia.cuda_nvrtc"])
            .output();
        asked.is_ok_and(|output| output.status.success())
    };
    let Some(python) = pythons.iter().find(has_nvrtc) else {
        println!("SKIPPED (no NVRTC): the_ptx_is_what_the_compiler_gives");
        return;
    };
    let output = Command::new(python)
        .arg(folder().join("build"))
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
