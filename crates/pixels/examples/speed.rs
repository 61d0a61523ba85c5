//! Speed of decoding, one thread: `cargo run --release -p packds-pixels --example speed -- FOLDER`.
//!
//! Reads every file below FOLDER into memory, then times, in turns, a full decode of all of them and
//! the render to 224x224 (short side 256, centre crop, bilinear) with the histogram of the result.
//! Prints medians over the rounds. Files that are no images are passed over.

use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_pixels::{
    Crop, DecodeOptions, Decoder, Filter, Geometry, Histogram, Resize, jpeg_simd, probe,
};

const ROUNDS: usize = 9;

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?
        } else {
            files.push(path)
        }
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example that reports rates"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: speed FOLDER")?;
    let mut paths = Vec::new();
    collect(Path::new(&folder), &mut paths)?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let images: Vec<&Vec<u8>> = files.iter().filter(|bytes| probe(bytes).is_ok()).collect();
    println!("{} images, libjpeg SIMD {}", images.len(), jpeg_simd());
    let mut decoder = Decoder::new(DecodeOptions::default());
    let geometry = Geometry {
        resize: Resize::Short(256),
        crop: Crop::Center {
            width: 224,
            height: 224,
        },
        filter: Filter::Bilinear,
        ..Geometry::default()
    };
    let mut out = vec![0; 224 * 224 * 3];
    let (mut full, mut render, mut with_histogram) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for bytes in &images {
            std::hint::black_box(decoder.decode_full(bytes)?);
        }
        full.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for bytes in &images {
            std::hint::black_box(decoder.render_into(bytes, &geometry, &mut out)?);
        }
        render.push(start.elapsed().as_secs_f64());
        let mut histogram = Histogram::new(3);
        let start = Instant::now();
        for bytes in &images {
            decoder.render_into(bytes, &geometry, &mut out)?;
            histogram.add(&out);
        }
        std::hint::black_box(&histogram);
        with_histogram.push(start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    for _ in 0..100 {
        for bytes in &images {
            std::hint::black_box(probe(bytes)?);
        }
    }
    let probes = start.elapsed().as_secs_f64() / 100.0;
    let n_images = images.len() as f64;
    let (full, render, both) = (median(full), median(render), median(with_histogram));
    for (name, seconds) in [
        ("full decode", full),
        ("render 224", render),
        ("render 224 + histogram", both),
        ("probe", probes),
    ] {
        println!(
            "{name:<24}{:>12.0} images/s   {:.2} x full decode",
            n_images / seconds,
            full / seconds
        );
    }
    Ok(())
}
