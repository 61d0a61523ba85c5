//! Measures the speed of decoding on one thread: `cargo run --release -p packds-pixels --example speed -- FOLDER`.
//!
//! It reads every image below FOLDER into memory. Each round then times these jobs for each image: a full decode; a
//! render to 224x224 (short side 256, centre crop, bilinear), without and with the histogram of the result; other
//! operations on an image; and a render to 112x112 (short side 128) with and without `jpeg_scaling`, with the
//! difference between the two. Only the fastest round of each image and job is used, so that other load on the machine
//! has little influence. Files that are not images are skipped.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_pixels::ops::Emit;
use packds_pixels::{
    Crop, DecodeOptions, Decoder, Filter, FloatType, Geometry, Histogram, Layout, Resize, check_structure, encode_jpeg,
    jpeg_simd, probe,
};

const ROUNDS: usize = 15;
const JOBS: [&str; 10] = [
    "full decode",
    "render 224",
    "render 224 + histogram",
    "probe",
    "check_structure",
    "histogram of 224x224",
    "cast to f16 planes",
    "encode_jpeg of 224x224",
    "render 112",
    "render 112, jpeg_scaling",
];

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Short side and centre crop, bilinear.
fn cropped(short: u32, side: u32) -> Geometry {
    Geometry {
        resize: Resize::Short(short),
        crop: Crop::Center { width: side, height: side },
        filter: Filter::Bilinear,
        ..Geometry::default()
    }
}

#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "an example that reports rates")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: speed FOLDER")?;
    let mut paths = Vec::new();
    collect(Path::new(&folder), &mut paths)?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let images: Vec<&Vec<u8>> = files.iter().filter(|bytes| probe(bytes).is_ok()).collect();
    let mut decoder = Decoder::new(DecodeOptions::default());
    let (geometry, small) = (cropped(256, 224), cropped(128, 112));
    let mut scaling = Decoder::new(DecodeOptions { jpeg_scaling: true, ..DecodeOptions::default() });
    let mut out = vec![0; 224 * 224 * 3];
    let (mut exact, mut scaled) = (vec![0; 112 * 112 * 3], vec![0; 112 * 112 * 3]);
    let mut halves = vec![0; out.len() * 2];
    let norm: (&[f32], &[f32]) = (&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]);
    let emit = Emit::new(3, Some(norm), Some(FloatType::F16), Layout::Chw)?;
    let mut histogram = Histogram::new(3);
    let mut best = vec![[f64::INFINITY; JOBS.len()]; images.len()];
    for _ in 0..ROUNDS {
        for (bytes, best) in images.iter().zip(&mut best) {
            for (job, best) in best.iter_mut().enumerate() {
                let start = Instant::now();
                match job {
                    0 => drop(black_box(decoder.decode_full(bytes)?)),
                    1 => drop(black_box(decoder.render_into(bytes, &geometry, &mut out)?)),
                    2 => {
                        decoder.render_into(bytes, &geometry, &mut out)?;
                        histogram.add(black_box(&out));
                    }
                    3 => drop(black_box(probe(bytes)?)),
                    4 => drop(black_box(check_structure(bytes)?)),
                    5 => histogram.add(black_box(&out)),
                    6 => emit.write_into(black_box(&out), &mut halves)?,
                    7 => drop(black_box(encode_jpeg(224, 224, 3, &out, 90)?)),
                    8 => drop(black_box(decoder.render_into(bytes, &small, &mut exact)?)),
                    _ => drop(black_box(scaling.render_into(bytes, &small, &mut scaled)?)),
                }
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    black_box(&histogram);
    println!("{} images, libjpeg SIMD {}", images.len(), jpeg_simd());
    let total = |job: usize| best.iter().map(|times| times[job]).sum::<f64>();
    for (job, name) in JOBS.iter().enumerate() {
        let (rate, ratio) = (images.len() as f64 / total(job), total(0) / total(job));
        println!("{name:<24}{rate:>12.0} images/s   {ratio:.2} x full decode");
    }
    let (largest, mean) = scaling_error(&images, &small)?;
    println!("jpeg_scaling to 112x112: largest difference {largest} levels, mean {mean:.2}");
    Ok(())
}

/// The largest and the mean difference in levels that `jpeg_scaling` causes.
fn scaling_error(images: &[&Vec<u8>], geometry: &Geometry) -> Result<(u8, f64), Box<dyn std::error::Error>> {
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut scaling = Decoder::new(DecodeOptions { jpeg_scaling: true, ..DecodeOptions::default() });
    let (mut largest, mut sum, mut n) = (0, 0.0, 0);
    for bytes in images {
        let exact = decoder.render(bytes, geometry)?;
        let scaled = scaling.render(bytes, geometry)?;
        for (a, b) in exact.data.iter().zip(&scaled.data) {
            largest = largest.max(a.abs_diff(*b));
            sum += f64::from(a.abs_diff(*b));
            n += 1;
        }
    }
    Ok((largest, sum / f64::from(n)))
}
