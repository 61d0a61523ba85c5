//! Measures the speed of the operations at load time on one thread:
//! `cargo run --release -p packds-pixels --example operations`.
//!
//! The input is a generated 224x224 colour image. Each round times all jobs one after the other, and the fastest time
//! of each job is printed. Each time is also printed as a multiple of the time needed to copy a buffer of the output's
//! size.

use std::hint::black_box;
use std::time::Instant;

use packds_pixels::ops::{
    Affine, Blur, Emit, Sampling, Sharpen, adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation,
    autocontrast, equalize, erase, invert, posterize, solarize, to_grayscale,
};
use packds_pixels::{Area, FloatType, Layout, PixelError, Pixels};

const ROUNDS: usize = 400;
const SIDE: u32 = 224;
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const STD: [f32; 3] = [0.229, 0.224, 0.225];

/// A job: its name, the bytes per value of its output, and the function.
type Job = (String, usize, Box<dyn FnMut(&[u8], &mut [u8]) -> Result<(), PixelError>>);

/// A job that works in place.
fn in_place(name: &str, mut operation: impl FnMut(&mut [u8]) + 'static) -> Job {
    let job = move |_: &[u8], out: &mut [u8]| {
        operation(out);
        Ok(())
    };
    (name.to_owned(), 1, Box::new(job))
}

fn blur(kernel: u32, sigma: f32) -> Job {
    let mut blur = Blur::new();
    let job = move |_: &[u8], out: &mut [u8]| blur.gaussian(out, SIDE, SIDE, 3, kernel, sigma);
    (format!("blur, kernel {kernel}"), 1, Box::new(job))
}

fn sharpness() -> Job {
    let mut sharpen = Sharpen::new();
    let job = move |_: &[u8], out: &mut [u8]| sharpen.adjust(out, SIDE, SIDE, 3, 1.7);
    ("sharpness".to_owned(), 1, Box::new(job))
}

fn rotation(sampling: Sampling) -> Result<Job, PixelError> {
    let map = Affine { sampling, ..Affine::rotation(SIDE, SIDE, 30.0)? };
    let job = move |picture: &[u8], out: &mut [u8]| {
        let image = Pixels { data: picture, width: SIDE, height: SIDE, channels: 3 };
        map.apply_into(image, out)
    };
    let name = format!("rotation, {sampling:?}").to_lowercase();
    Ok((name, 1, Box::new(job)))
}

fn casts(jobs: &mut Vec<Job>) -> Result<(), PixelError> {
    for layout in [Layout::Hwc, Layout::Chw] {
        for ty in [FloatType::F32, FloatType::F16, FloatType::Bf16] {
            let emit = Emit::new(3, Some((&MEAN, &STD)), Some(ty), layout)?;
            jobs.push((
                format!("emit {ty:?} {layout}"),
                ty.n_bytes(),
                Box::new(move |picture, out| emit.write_into(picture, out)),
            ));
        }
        let emit = Emit::new(3, None, None, layout)?;
        jobs.push((format!("emit bytes {layout}"), 1, Box::new(move |picture, out| emit.write_into(picture, out))));
    }
    Ok(())
}

fn jobs() -> Result<Vec<Job>, PixelError> {
    let quarter = Area { x: 50, y: 50, width: SIDE / 2, height: SIDE / 2 };
    let mut jobs = vec![
        in_place("brightness", |pixels| adjust_brightness(pixels, 0.8)),
        in_place("contrast", |pixels| adjust_contrast(pixels, 3, 1.2)),
        in_place("saturation", |pixels| adjust_saturation(pixels, 3, 0.7)),
        in_place("hue", |pixels| adjust_hue(pixels, 3, 0.1)),
        in_place("grayscale", |pixels| to_grayscale(pixels, 3)),
        in_place("solarize", |pixels| solarize(pixels, 128)),
        in_place("invert", invert),
        in_place("posterize", |pixels| posterize(pixels, 4)),
        in_place("autocontrast", |pixels| autocontrast(pixels, 3)),
        in_place("equalize", |pixels| equalize(pixels, 3)),
        in_place("erase a quarter", move |pixels| {
            erase(pixels, SIDE, 3, quarter, [0; 4]);
        }),
        blur(3, 1.0),
        blur(23, 1.0),
        sharpness(),
        rotation(Sampling::Nearest)?,
        rotation(Sampling::Bilinear)?,
        rotation(Sampling::Bicubic)?,
    ];
    casts(&mut jobs)?;
    Ok(jobs)
}

#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "an example that reports rates")]
fn main() -> Result<(), PixelError> {
    // The image is smooth, with noise in the low bits, like a photo.
    let picture: Vec<u8> = (0..SIDE * SIDE * 3)
        .map(|index| {
            let (x, y) = (index / 3 % SIDE, index / 3 / SIDE);
            let noise = index.wrapping_mul(2_654_435_761) >> 28;
            (x + y / 2 + index % 3 * 40 + noise).to_le_bytes()[0]
        })
        .collect();
    let mut jobs = jobs()?;
    let mut best = vec![f64::INFINITY; jobs.len()];
    let mut copies = [f64::INFINITY; 5];
    let source = vec![1; picture.len() * 4];
    let mut out = vec![0; picture.len() * 4];
    for _ in 0..ROUNDS {
        for n_bytes in [1, 2, 4] {
            let len = picture.len() * n_bytes;
            let start = Instant::now();
            black_box(&mut out[..len]).copy_from_slice(black_box(&source[..len]));
            copies[n_bytes] = copies[n_bytes].min(start.elapsed().as_secs_f64());
        }
        for ((_, n_bytes, job), best) in jobs.iter_mut().zip(&mut best) {
            let out = &mut out[..picture.len() * *n_bytes];
            out[..picture.len()].copy_from_slice(&picture);
            let start = Instant::now();
            job(black_box(&picture), black_box(out))?;
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    for ((name, n_bytes, _), best) in jobs.iter().zip(best) {
        let (micros, ratio) = (best * 1e6, best / copies[*n_bytes]);
        let rate = picture.len() as f64 / best / 1e9;
        println!("{name:<20}{micros:>8.1} us {rate:>6.2} GB/s read {ratio:>7.1} x copy");
    }
    Ok(())
}
