//! Resizes rows as they arrive. Only the rows and columns that the output shows are computed.

use std::ops::Range;

use super::axis::rows_come_first;
use super::kernel::{Horizontal, Kernel, Ring};
use super::taps::Axis;
use crate::area::CropResize;
use crate::geometry::{Filter, Span, Window};
use crate::padded::reverse_pixels;

/// Rows that the horizontal pass processes together.
const BLOCK: usize = 4;

/// Which passes an image needs, and their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Copy,
    Nearest,
    Horizontal,
    Vertical,
    HorizontalFirst,
    VerticalFirst,
}

/// Turns source rows, which are passed one after another, into the output image.
///
/// It keeps its buffers from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Resampler {
    kernel: Kernel,
    order: Order,
    channels: usize,
    window: Window,
    x: Axis,
    y: Axis,
    input: Ring,
    middle: Ring,
    /// The source rows and columns that are needed. Rows must be passed in ascending order.
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
    /// Next source row to arrive.
    next_row: usize,
    /// First source row that has not been resized horizontally.
    waiting: usize,
    /// Number of columns that arrive before and after the needed columns.
    margin: (usize, usize),
    /// Next visible output row to write.
    next_out: usize,
    flip: Flip,
}

/// The flips of the output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flip {
    pub(crate) horizontal: bool,
    pub(crate) vertical: bool,
}

impl Resampler {
    /// Uses this kernel instead of the best one.
    #[cfg(test)]
    pub(super) fn with_kernel(kernel: Kernel) -> Self {
        Self { kernel, ..Self::default() }
    }

    /// Begins an image of `width` x `height`.
    pub(crate) fn start(&mut self, width: u32, height: u32, channels: usize, window: Window, filter: Filter) {
        self.start_flipped(width, height, channels, window, filter, Flip::default());
    }

    /// Begins a view.
    pub(crate) fn start_view(&mut self, view: &CropResize, channels: usize) {
        let window = Window { x: Span::whole(view.width), y: Span::whole(view.height) };
        let flip = Flip { horizontal: view.flip_horizontal, vertical: view.flip_vertical };
        let (width, height) = (view.area.width, view.area.height);
        self.start_flipped(width, height, channels, window, view.filter, flip);
    }

    fn start_flipped(&mut self, width: u32, height: u32, channels: usize, window: Window, filter: Filter, flip: Flip) {
        self.flip = flip;
        self.margin = (0, 0);
        self.channels = channels;
        self.window = window;
        self.order = order_of(width, height, window, filter);
        self.columns = shown(window.x.start, window.x.len);
        self.rows = shown(window.y.start, window.y.len);
        if self.order.resizes_width() {
            self.x.choose(width, window.x, filter, flip.horizontal);
            self.columns = self.x.source.clone();
        }
        if self.order.resizes_height() {
            self.y.choose(height, window.y, filter, false);
            self.rows = self.y.source.clone();
        }
        if self.kernel.has_lanes() && self.order.resizes_width() && self.order != Order::Nearest {
            self.x.arrange(channels, self.columns.clone());
        }
        self.reserve();
        self.next_row = self.rows.start;
        self.waiting = self.rows.start;
        self.next_out = 0;
    }

    fn reserve(&mut self) {
        let input_rows = match self.order {
            Order::Copy | Order::Nearest => 1,
            Order::Horizontal | Order::HorizontalFirst => BLOCK,
            Order::Vertical | Order::VerticalFirst => self.y.longest + 2,
        };
        let input_bytes = self.columns.len() * self.channels;
        let (before, behind) = self.margin;
        let skip = before * self.channels;
        let row_bytes = skip + input_bytes + behind * self.channels;
        self.input.reset(row_bytes, skip, input_rows, self.rows.start);
        let shown_bytes = crate::decode::usize_of(self.window.x.len) * self.channels;
        if self.order == Order::HorizontalFirst {
            // A multiple of the block size, so that blocks do not wrap around the end.
            let n_rows = (self.y.longest + BLOCK + 2).next_multiple_of(BLOCK);
            self.middle.reset(shown_bytes, 0, n_rows, self.rows.start);
        } else if self.order == Order::VerticalFirst {
            self.middle.reset(input_bytes, 0, BLOCK, 0);
        }
    }

    /// Allows rows to have extra columns before and after the needed columns.
    pub(crate) fn widen(&mut self, before: usize, behind: usize) {
        self.margin = (before, behind);
        self.reserve();
    }

    /// The buffer for the next source row. Its columns are followed by some bytes that may be overwritten.
    pub(crate) fn input(&mut self) -> &mut [u8] {
        self.input.row_mut(self.next_row)
    }

    /// Processes the row in `input`, and writes the output rows that are now complete.
    pub(crate) fn commit(&mut self, out: &mut [u8]) {
        let row = self.next_row;
        self.next_row += 1;
        match self.order {
            Order::Copy => {
                let bytes = self.columns.len() * self.channels;
                let (at, _) = self.place(row - self.rows.start);
                let line = &mut out[at..at + bytes];
                line.copy_from_slice(&self.input.row(row)[..bytes]);
                if self.flip.horizontal {
                    reverse_pixels(line, self.channels);
                }
            }
            Order::Nearest => self.commit_nearest(row, out),
            Order::Horizontal | Order::HorizontalFirst => {
                let full = self.next_row - self.waiting == BLOCK;
                if full || self.next_row == self.rows.end {
                    self.flush_horizontal(out);
                }
            }
            Order::Vertical => self.emit_vertical(out),
            Order::VerticalFirst => self.commit_vertical_first(out),
        }
    }

    /// Processes all rows of an image in memory. The image starts at byte `first`, and its rows are `stride` bytes
    /// apart.
    pub(crate) fn push(&mut self, pixels: &[u8], first: usize, stride: usize, out: &mut [u8]) {
        let columns = self.columns.start * self.channels..self.columns.end * self.channels;
        for row in self.rows.clone() {
            let source = &pixels[first + row * stride..][columns.clone()];
            self.input()[..source.len()].copy_from_slice(source);
            self.commit(out);
        }
    }

    /// The byte of the output at which visible row `index` starts, and the number of bytes from one row to the next.
    fn place(&self, index: usize) -> (usize, usize) {
        let of = crate::decode::usize_of;
        let stride = of(self.window.x.out) * self.channels;
        let index = if self.flip.vertical { of(self.window.y.len) - 1 - index } else { index };
        let row = of(self.window.y.pad) + index;
        (row * stride + of(self.window.x.pad) * self.channels, stride)
    }

    fn commit_nearest(&mut self, row: usize, out: &mut [u8]) {
        while self.y.start.get(self.next_out) == Some(&row) {
            let (at, _) = self.place(self.next_out);
            let source = self.input.row(row);
            let line = out[at..].chunks_exact_mut(self.channels);
            for (&start, pixel) in self.x.start.iter().zip(line) {
                let at = (start - self.columns.start) * self.channels;
                pixel.copy_from_slice(&source[at..at + self.channels]);
            }
            self.next_out += 1;
        }
    }

    /// Resizes the pending rows horizontally, either into the output or for the vertical pass.
    fn flush_horizontal(&mut self, out: &mut [u8]) {
        let first = self.waiting;
        let (n_rows, offset) = (self.next_row - first, self.columns.start);
        let job = Horizontal { ring: &self.input, first, n_rows, offset, channels: self.channels, taps: &self.x };
        self.waiting = self.next_row;
        if self.order == Order::Horizontal {
            self.horizontal_to_out(&job, first - self.rows.start, out);
            return;
        }
        self.kernel.horizontal_to_ring(&job, &mut self.middle);
        self.emit_vertical(out);
    }

    /// Resizes rows horizontally into the output, starting at visible row `index`.
    fn horizontal_to_out(&self, job: &Horizontal<'_>, index: usize, out: &mut [u8]) {
        let (first, stride) = self.place(index);
        if self.flip.vertical {
            let (last, _) = self.place(index + job.n_rows - 1);
            let mut rows = out[last..].chunks_mut(stride).take(job.n_rows).rev();
            self.kernel.horizontal(job, &mut rows);
        } else {
            self.kernel.horizontal(job, &mut out[first..].chunks_mut(stride));
        }
    }

    /// Writes the output rows whose last source row has arrived.
    fn emit_vertical(&mut self, out: &mut [u8]) {
        let bytes = crate::decode::usize_of(self.window.x.len) * self.channels;
        let ring = if self.order == Order::Vertical { &self.input } else { &self.middle };
        while self.is_complete(self.next_out) {
            let (at, _) = self.place(self.next_out);
            let line = &mut out[at..at + bytes];
            self.kernel.vertical(ring, &self.y, self.next_out, line);
            if self.flip.horizontal && self.order == Order::Vertical {
                reverse_pixels(line, self.channels);
            }
            self.next_out += 1;
        }
    }

    fn is_complete(&self, index: usize) -> bool {
        let run = self.y.start.get(index).zip(self.y.len.get(index));
        run.is_some_and(|(start, len)| start + len <= self.next_row)
    }

    fn commit_vertical_first(&mut self, out: &mut [u8]) {
        let n_out = self.y.start.len();
        let bytes = self.columns.len() * self.channels;
        while self.is_complete(self.next_out) {
            let index = self.next_out;
            let line = &mut self.middle.row_mut(index)[..bytes];
            self.kernel.vertical(&self.input, &self.y, index, line);
            self.next_out += 1;
            if self.next_out.is_multiple_of(BLOCK) || self.next_out == n_out {
                let first = index / BLOCK * BLOCK;
                let (n_rows, offset) = (self.next_out - first, self.columns.start);
                let job =
                    Horizontal { ring: &self.middle, first, n_rows, offset, channels: self.channels, taps: &self.x };
                self.horizontal_to_out(&job, first, out);
            }
        }
    }
}

impl Order {
    fn resizes_width(self) -> bool {
        matches!(self, Self::Nearest | Self::Horizontal | Self::HorizontalFirst | Self::VerticalFirst)
    }

    fn resizes_height(self) -> bool {
        matches!(self, Self::Nearest | Self::Vertical | Self::HorizontalFirst | Self::VerticalFirst)
    }
}

fn shown(start: u32, len: u32) -> Range<usize> {
    let start = crate::decode::usize_of(start);
    start..start + crate::decode::usize_of(len)
}

fn order_of(width: u32, height: u32, window: Window, filter: Filter) -> Order {
    let (to_width, to_height) = (window.x.full, window.y.full);
    match (to_width != width, to_height != height) {
        (false, false) => Order::Copy,
        _ if filter == Filter::Nearest => Order::Nearest,
        (true, false) => Order::Horizontal,
        (false, true) => Order::Vertical,
        // Compare the sizes of the whole image, not of the window.
        (true, true) if rows_come_first(width, height, to_width, to_height) => Order::VerticalFirst,
        (true, true) => Order::HorizontalFirst,
    }
}
