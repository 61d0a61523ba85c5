//! Measures the speed of crops with and without a seek index, on one thread: `cargo run --release -p packds-pixels
//! --example seek_speed -- FOLDER`.
//!
//! It loads into memory all JPEGs below FOLDER that can be indexed. Then it decodes random crops of each (8 % to 100 %
//! of its area, aspect ratio 3:4 to 4:3), both resized to 224x224 and at their own size. Runs with and without the
//! index alternate. Only the fastest round of each crop is used, so that other load on the machine has little
//! influence.

use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_pixels::{Area, CropResize, DecodeOptions, Decoder, Encoded, Filter, build_seek_index, probe};

const CROPS: usize = 8;
const ROUNDS: usize = 5;
const SIDE: u32 = 224;

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Pseudorandom numbers from 0 to 1, the same on every run.
struct Random(u64);

impl Random {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit in an f64")]
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// An area that torchvision's `RandomResizedCrop` might choose. After ten failed attempts it is the whole image.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sides and corners inside an image")]
    fn crop(&mut self, width: u32, height: u32) -> Area {
        let (w, h) = (f64::from(width), f64::from(height));
        for _ in 0..10 {
            let area = w * h * (0.08 + 0.92 * self.unit());
            let ratio = (0.75_f64.ln() * (1.0 - 2.0 * self.unit())).exp();
            let sides = ((area * ratio).sqrt().round(), (area / ratio).sqrt().round());
            if sides.0 >= 1.0 && sides.0 <= w && sides.1 >= 1.0 && sides.1 <= h {
                return Area {
                    x: (self.unit() * (w - sides.0 + 1.0)) as u32,
                    y: (self.unit() * (h - sides.1 + 1.0)) as u32,
                    width: sides.0 as u32,
                    height: sides.1 as u32,
                };
            }
        }
        Area { x: 0, y: 0, width, height }
    }
}

fn view(area: Area, (width, height): (u32, u32)) -> CropResize {
    CropResize { area, width, height, filter: Filter::Bilinear, flip_horizontal: false, flip_vertical: false }
}

#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "an example that reports rates")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: seek_speed FOLDER")?;
    let mut paths = Vec::new();
    collect(Path::new(&folder), &mut paths)?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let started = Instant::now();
    let indexed: Vec<(&Vec<u8>, Vec<u8>)> =
        files.iter().filter_map(|bytes| Some((bytes, build_seek_index(bytes)?))).collect();
    let micros = started.elapsed().as_secs_f64() * 1e6 / files.len() as f64;
    let total = |bytes: &mut dyn Iterator<Item = usize>| bytes.sum::<usize>() as f64;
    let percent = 100.0 * total(&mut indexed.iter().map(|(_, index)| index.len()))
        / total(&mut indexed.iter().map(|(bytes, _)| bytes.len()));
    println!(
        "{} of {} files have an index: {percent:.2} % of their size, {micros:.0} us each to build",
        indexed.len(),
        files.len()
    );
    let mut random = Random(1);
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut out = Vec::new();
    // Seconds for the crop, at its own size and at 224x224, each without and with the index.
    let mut sums = [[0.0; 2]; 2];
    for (bytes, index) in &indexed {
        let info = probe(bytes)?;
        for _ in 0..CROPS {
            let area = random.crop(info.width, info.height);
            let mut best = [[f64::INFINITY; 2]; 2];
            for _ in 0..ROUNDS {
                for (size, best) in [(area.width, area.height), (SIDE, SIDE)].into_iter().zip(&mut best) {
                    out.resize(size.0 as usize * size.1 as usize * 3, 0);
                    for (seek_index, best) in [None, Some(&index[..])].into_iter().zip(best) {
                        let image = Encoded { bytes, seek_index };
                        let started = Instant::now();
                        decoder.crop_resize_into(image, &[view(area, size)], &mut [&mut out])?;
                        *best = best.min(started.elapsed().as_secs_f64());
                    }
                }
            }
            for (sum, best) in sums.iter_mut().flatten().zip(best.iter().flatten()) {
                *sum += best;
            }
        }
    }
    let n = (indexed.len() * CROPS) as f64;
    for (what, [without, with]) in ["decode the crop", "and resize it to 224x224"].into_iter().zip(sums) {
        println!(
            "{what:<26}{:>8.0} crops/s without, {:>8.0} with the index: {:.2} x",
            n / without,
            n / with,
            without / with
        );
    }
    Ok(())
}
