//! Turning the colour circle, through Pillow's HSV of bytes.
//!
//! The rounding of every step is Pillow's, `f32` here and `f64` there, because HSV in bytes loses
//! colours and the lost ones must be the same. Even a turn of 0 goes through HSV.

use super::{BLOCK, fastest, whole};

/// Turns the hue of every colour by `factor` of the circle, -0.5 to 0.5: torchvision's `adjust_hue`
/// on Pillow images. Beyond that range the circle goes on. Pictures of other than 3 channels stay.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the hue is a byte that wraps around"
)]
pub fn adjust_hue(pixels: &mut [u8], channels: u8, factor: f32) {
    if channels == 3 {
        let turn = (f64::from(factor) * 255.0) as i64 as u8;
        fastest!(turn_hue(pixels, turn));
    }
}

#[inline(always)]
pub(super) fn turn_hue(pixels: &mut [u8], turn: u8) {
    let sectors = sectors(turn);
    let (blocks, rest) = pixels.as_chunks_mut::<3>().0.as_chunks_mut::<BLOCK>();
    for block in blocks {
        *block = turned(*block, &sectors);
    }
    let mut last = [[0; 3]; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    rest.copy_from_slice(&turned(last, &sectors)[..rest.len()]);
}

/// A sixth of the circle, 0 to 5, and how far in it a hue lies, 0 to 1.
#[derive(Clone, Copy, Default)]
struct Sector {
    number: u8,
    part: f32,
}

/// The sector that each hue lies in after the turn.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "six times a part of the circle, and a rounding to f32 that Pillow has"
)]
#[inline(always)]
fn sectors(turn: u8) -> [Sector; 256] {
    let mut sectors = [Sector::default(); 256];
    for (hue, sector) in (0_u8..=255).zip(&mut sectors) {
        let sixths = f64::from(hue.wrapping_add(turn)) * 6.0 / 255.0;
        let number = sixths as u8;
        *sector = Sector {
            number: number % 6,
            part: (sixths - f64::from(number)) as f32,
        };
    }
    sectors
}

#[inline(always)]
fn turned(pixels: [[u8; 3]; BLOCK], sectors: &[Sector; 256]) -> [[u8; 3]; BLOCK] {
    let (mut hues, mut saturations, mut values) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
    for (index, pixel) in pixels.iter().enumerate() {
        (hues[index], saturations[index], values[index]) = to_hsv(*pixel);
    }
    let (mut parts, mut numbers) = ([0.0; BLOCK], [0; BLOCK]);
    for (index, hue) in hues.iter().enumerate() {
        let sector = sectors[usize::from(*hue)];
        (parts[index], numbers[index]) = (sector.part, sector.number);
    }
    let mut result = [[0; 3]; BLOCK];
    for (index, pixel) in result.iter_mut().enumerate() {
        *pixel = to_rgb(
            numbers[index],
            parts[index],
            saturations[index],
            values[index],
        );
    }
    result
}

/// Hue, saturation and value as bytes. Gray has no hue: where Pillow skips the division by zero,
/// its results are dropped.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "bytes by cutting off the fraction and the roundings to f32, as Pillow has them"
)]
#[inline(always)]
fn to_hsv(pixel: [u8; 3]) -> (u8, u8, u8) {
    let [red, green, blue] = pixel.map(f32::from);
    let value = pixel[0].max(pixel[1]).max(pixel[2]);
    let high = f32::from(value);
    let range = high - f32::from(pixel[0].min(pixel[1]).min(pixel[2]));
    let from_red = (high - red) / range;
    let from_green = (high - green) / range;
    let from_blue = (high - blue) / range;
    let red_is_high = f64::from(from_blue - from_green);
    let green_is_high = f64::from((2.0 + f64::from(from_red) - f64::from(from_blue)) as f32);
    let blue_is_high = f64::from((4.0 + f64::from(from_green) - f64::from(from_red)) as f32);
    let other = if green == high {
        green_is_high
    } else {
        blue_is_high
    };
    let sixths = if red == high { red_is_high } else { other };
    let circle = sixths / 6.0 + 1.0;
    let hue = (if circle >= 1.0 { circle - 1.0 } else { circle }) as f32;
    let saturation = range / high;
    if range == 0.0 {
        (0, 0, value)
    } else {
        (
            whole::cut(f64::from(hue) * 255.0),
            whole::cut(f64::from(saturation) * 255.0),
            value,
        )
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a rounding to f32 that Pillow has"
)]
#[inline(always)]
fn to_rgb(sector: u8, part: f32, saturation: u8, value: u8) -> [u8; 3] {
    let saturation = (f64::from(saturation) / 255.0) as f32;
    // Halves up.
    let scaled = |by: f64| whole::cut(f64::from(value) * by + 0.5);
    let p = scaled(1.0 - f64::from(saturation));
    let q = scaled(1.0 - f64::from(saturation * part));
    let t = scaled(1.0 - f64::from(saturation) * (1.0 - f64::from(part)));
    let red = [value, q, p, p, t, value];
    let green = [t, value, value, q, p, p];
    let blue = [p, p, t, value, value, q];
    let sector = usize::from(sector.min(5));
    [red[sector], green[sector], blue[sector]]
}
