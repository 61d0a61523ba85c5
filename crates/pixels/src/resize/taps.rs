//! The weights of one axis.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions are clamped to the image; Pillow truncates the same way"
)]

use std::f64::consts::PI;
use std::ops::Range;

use super::lanes::Lanes;
use crate::geometry::{Filter, Span};

/// Fractional bits of a weight.
pub(super) const PRECISION: u32 = 32 - 8 - 2;
/// A weight is split as `high * 2^SPLIT + low`. Both parts fit in 16 bits.
pub(super) const SPLIT: u32 = 11;
const LOW_BITS: i32 = (1 << SPLIT) - 1;
/// Taps are stored in groups of this size, padded with zeros.
pub(super) const GROUP: usize = 8;

/// For each visible output position along one axis: the start and length of its source run, and its weights.
#[derive(Debug, Default)]
pub(super) struct Taps {
    /// First source position of each output.
    pub(super) start: Vec<usize>,
    /// Number of source positions of each output.
    pub(super) len: Vec<usize>,
    /// Weights with 22 fractional bits, `stride` per output.
    pub(super) weights: Vec<i32>,
    /// `weights >> 11`, with two adjacent weights per value. The one with the even index is in the low half.
    pub(super) high: Vec<i32>,
    /// `weights & 2047`, paired in the same way.
    pub(super) low: Vec<i32>,
    /// Weights stored per output: a multiple of `GROUP`.
    pub(super) stride: usize,
    /// Whether every `high` fits in 16 bits.
    pub(super) fits_i16: bool,
    /// The tables for `avx512`.
    pub(super) lanes: Lanes,
    scratch: Vec<f64>,
    /// The source positions that the outputs need together.
    pub(super) source: Range<usize>,
    /// The largest number of taps of an output.
    pub(super) longest: usize,
    /// The parameters for which the taps were computed.
    key: Option<(u32, Span, Filter, bool)>,
}

impl Taps {
    /// Computes the taps for the output positions in `span`, on an axis of `source` positions. If `flipped`, the
    /// outputs are in reverse order.
    pub(super) fn compute(&mut self, source: u32, span: Span, filter: Filter, flipped: bool) {
        // Datasets often have many images of the same size.
        let key = (source, span, filter, flipped);
        if self.key == Some(key) {
            return;
        }
        self.key = Some(key);
        self.lanes.clear();
        if filter == Filter::Nearest {
            self.nearest(source, span);
            if flipped {
                self.start.reverse();
            }
            return;
        }
        self.start.clear();
        self.len.clear();
        self.weights.clear();
        let scale = f64::from(source) / f64::from(span.full);
        let filter_scale = scale.max(1.0);
        let support = support_of(filter) * filter_scale;
        let n_max = support.ceil() as usize * 2 + 1;
        self.stride = n_max.next_multiple_of(GROUP);
        for index in 0..span.len {
            let index = if flipped { span.len - 1 - index } else { index };
            let position = span.start + index;
            let center = (f64::from(position) + 0.5) * scale;
            let first = ((center - support + 0.5).max(0.0)) as u32;
            let last = ((center + support + 0.5) as u32).min(source);
            let n_taps = last.saturating_sub(first);
            self.push(filter, first, n_taps, center, 1.0 / filter_scale);
        }
        self.split();
        self.measure();
    }

    fn push(&mut self, filter: Filter, first: u32, n_taps: u32, center: f64, shrink: f64) {
        let distance = |tap| (f64::from(tap) + f64::from(first) - center + 0.5) * shrink;
        self.scratch.clear();
        self.scratch.extend((0..n_taps).map(|tap| weight_of(filter, distance(tap))));
        let sum: f64 = self.scratch.iter().sum();
        self.start.push(first as usize);
        self.len.push(n_taps as usize);
        let end = self.weights.len() + self.stride;
        for &weight in &self.scratch {
            let share = if sum == 0.0 { weight } else { weight / sum };
            let fixed = share * f64::from(1_u32 << PRECISION);
            let half = if share < 0.0 { -0.5 } else { 0.5 };
            self.weights.push((half + fixed) as i32);
        }
        self.weights.resize(end, 0);
    }

    fn split(&mut self) {
        self.high.clear();
        self.low.clear();
        self.fits_i16 = true;
        for pair in self.weights.chunks_exact(2) {
            let high = [pair[0] >> SPLIT, pair[1] >> SPLIT];
            let low = [pair[0] & LOW_BITS, pair[1] & LOW_BITS];
            self.fits_i16 &= high.iter().all(|&half| i16::try_from(half).is_ok());
            self.high.push((high[1] << 16) | (high[0] & 0xFFFF));
            self.low.push((low[1] << 16) | low[0]);
        }
    }

    /// Computes the taps for `Nearest`: one tap of weight 1 per output. The coordinate is accumulated as in Pillow.
    fn nearest(&mut self, source: u32, span: Span) {
        self.start.clear();
        self.len.clear();
        self.stride = 0;
        let step = f64::from(source) / f64::from(span.full);
        let mut position = step * 0.5;
        for index in 0..span.start + span.len {
            if index >= span.start {
                self.start.push((position as usize).min(source as usize - 1));
                self.len.push(1);
            }
            position += step;
        }
        self.measure();
    }

    fn measure(&mut self) {
        let first = self.start.iter().copied().min().unwrap_or(0);
        let ends = self.start.iter().zip(&self.len).map(|(start, len)| start + len);
        self.source = first..ends.max().unwrap_or(0).max(first);
        self.longest = self.len.iter().copied().max().unwrap_or(0);
    }

    /// Computes the byte tables for rows with these `columns`.
    fn arrange(&mut self, channels: usize, columns: Range<usize>) {
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.compute(self, channels, columns);
        self.lanes = lanes;
    }
}

/// Number of sizes in the cache. Random crops repeat a few hundred sizes.
const SLOTS: usize = 512;
/// Longer outputs are not kept in the cache. This limits an axis to about 16 MiB.
const LONGEST_KEPT: u32 = 256;

/// The taps in use for one axis, and a cache of taps for other sizes.
#[derive(Debug)]
pub(super) struct Axis {
    slots: Vec<Taps>,
    current: usize,
}

impl Default for Axis {
    fn default() -> Self {
        Self { slots: vec![Taps::default()], current: 0 }
    }
}

impl Axis {
    /// Computes the taps, or takes them from the cache. See `Taps::compute`.
    pub(super) fn choose(&mut self, source: u32, span: Span, filter: Filter, flipped: bool) {
        let slot = (source as usize * 2 + usize::from(flipped)) % (SLOTS - 1) + 1;
        self.current = if span.len <= LONGEST_KEPT { slot } else { 0 };
        if self.slots.len() <= self.current {
            self.slots.resize_with(self.current + 1, Taps::default);
        }
        self.slots[self.current].compute(source, span, filter, flipped);
    }

    /// See `Taps::arrange`.
    pub(super) fn arrange(&mut self, channels: usize, columns: Range<usize>) {
        self.slots[self.current].arrange(channels, columns);
    }
}

impl std::ops::Deref for Axis {
    type Target = Taps;

    fn deref(&self) -> &Taps {
        &self.slots[self.current]
    }
}

fn support_of(filter: Filter) -> f64 {
    match filter {
        Filter::Nearest | Filter::Box => 0.5,
        Filter::Bilinear => 1.0,
        Filter::Bicubic => 2.0,
        Filter::Lanczos => 3.0,
    }
}

fn weight_of(filter: Filter, x: f64) -> f64 {
    match filter {
        Filter::Nearest | Filter::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
        Filter::Bilinear => (1.0 - x.abs()).max(0.0),
        Filter::Bicubic => bicubic(x.abs()),
        Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
        Filter::Lanczos => 0.0,
    }
}

#[expect(clippy::suboptimal_flops, reason = "a fused multiply-add would round differently")]
fn bicubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let angle = x * PI;
    angle.sin() / angle
}
