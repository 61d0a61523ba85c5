//! Computes with plain arithmetic what a device cuts out of variable-size images, and compares it with the host's
//! results.

use packds_pixels::{AxisTaps, Filter};

use super::{apply, augmenter, key, picture, raw};
use crate::augment::{Located, Size};
use crate::device::{Frame, Resampling};

/// Unused bytes after each row.
const MORE: u32 = 7;
/// Unused bytes before the first image.
const BEFORE: usize = 11;

/// For each output position on an axis, its first source position and the weights.
fn axis(taps: &[u32], at: u32, out: u32) -> Vec<(u32, &[u32])> {
    let index = |n: u32| usize::try_from(n).unwrap();
    let part = &taps[index(at)..];
    let outputs = part[1..].chunks(2 + index(part[0])).take(index(out));
    outputs.map(|o| (o[0], &o[2..2 + index(o[1])])).collect()
}

fn summed(bytes: impl Iterator<Item = u8>, weights: &[u32]) -> u8 {
    let half = 1_i64 << (AxisTaps::PRECISION - 1);
    let products = bytes.zip(weights).map(|(byte, weight)| i64::from(byte) * i64::from(weight.cast_signed()));
    let sum = (products.sum::<i64>() + half) >> AxisTaps::PRECISION;
    u8::try_from(sum.clamp(0, 255)).unwrap()
}

/// A resized frame without flips. Along the axis that is resized first, only the positions that the other axis needs
/// are computed.
fn shown(memory: &[u8], frame: Frame, taps: &[u32]) -> Vec<u8> {
    let across = axis(taps, frame.across, frame.width);
    let down = axis(taps, frame.down, frame.height);
    let byte = |x: u32, y: u32, c: usize| {
        let place = frame.source + u64::from(y * frame.row_bytes + x * 3);
        memory[usize::try_from(place).unwrap() + c]
    };
    let mut out = Vec::new();
    for (y, rows) in &down {
        for (x, columns) in &across {
            for c in 0..3 {
                out.push(if frame.flips & Frame::ROWS_FIRST == 0 {
                    let row = |y| summed((*x..).map(|x| byte(x, y, c)).take(columns.len()), columns);
                    summed((*y..).map(row).take(rows.len()), rows)
                } else {
                    let column = |x| summed((*y..).map(|y| byte(x, y, c)).take(rows.len()), rows);
                    summed((*x..).map(column).take(columns.len()), columns)
                });
            }
        }
    }
    out
}

#[test]
fn areas_of_pictures_of_any_size_are_resized_by_one_table() {
    let mut augmenter = augmenter("rrc9x6", None);
    let resampling = Resampling::new((70, 60), (9, 6), Filter::Bilinear, true).unwrap();
    let mut orders = [0, 0];
    for (sample, (width, height)) in
        [(70, 60), (1, 1), (5, 60), (69, 3), (33, 21), (12, 58)].into_iter().cycle().take(60).enumerate()
    {
        let sample = u64::try_from(sample).unwrap();
        let pixels = picture(width, height, 3, sample);
        let row_bytes = width * 3 + MORE;
        let mut memory = vec![0xDD; BEFORE];
        for row in pixels.chunks(usize::try_from(width * 3).unwrap()) {
            memory.extend(row);
            memory.extend([0xDD; 7]);
        }
        let located = Located { size: Size { width, height }, row_bytes, source: u64::try_from(BEFORE).unwrap() };
        let plan = augmenter.plan();
        let frame = plan.window(key(sample), 0, located, Some(&resampling));
        let frame = frame.unwrap().unwrap();
        orders[usize::from(frame.flips & Frame::ROWS_FIRST != 0)] += 1;
        let wanted = apply(&mut augmenter, sample, raw(&pixels, width, height, 3));
        assert_eq!(shown(&memory, frame, resampling.taps()), wanted, "{frame:?}");
    }
    assert!(orders.iter().all(|n| *n > 0), "{orders:?}");
}

#[test]
fn an_area_longer_than_the_table_has_no_window() {
    let augmenter = augmenter("resize9x6", None);
    let resampling = Resampling::new((20, 20), (9, 6), Filter::Bilinear, true).unwrap();
    let window = |width, height| {
        let located = Located { size: Size { width, height }, row_bytes: width * 3, source: 0 };
        let plan = augmenter.plan();
        plan.window(key(1), 0, located, Some(&resampling)).unwrap()
    };
    assert!(window(20, 20).is_some());
    assert_eq!((window(21, 20), window(20, 21)), (None, None));
}

#[test]
fn what_only_the_host_draws_is_not_left_to_a_device() {
    let picture = Size::from(16);
    for words in ["randaugment", "trivialaugment", "autoaugment"] {
        let augmenter = augmenter(&format!("rrc8,{words},f16"), None);
        let plan = augmenter.plan();
        let reason = plan.finish_windows(picture).unwrap_err();
        assert!(reason.contains(words), "{reason}");
        // If the host makes the pixels, the device can still convert their type and order.
        assert!(plan.finish().is_some(), "{words}");
    }
    let augmenter = augmenter("rrc8,erase:0.5/random,f16", None);
    let plan = augmenter.plan();
    assert!(plan.finish_windows(picture).unwrap_err().contains("erase"));
    assert_eq!(plan.finish(), None);
}
