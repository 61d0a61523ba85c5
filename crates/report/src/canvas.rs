//! An RGB canvas for rectangles, images, and text that was rasterized elsewhere.

use packds_pixels::Image;
use packds_system::to_usize;

use crate::figure::Rgb;

/// RGB pixels. Drawing is clipped to the canvas.
pub struct Canvas {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Row by row, 3 bytes per pixel.
    pub pixels: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: u32, height: u32, color: Rgb) -> Self {
        let n = to_usize(u64::from(width) * u64::from(height));
        Self { width, height, pixels: color.repeat(n) }
    }

    /// The bytes of up to `len` pixels of row `y`, starting at `x`.
    fn line(&mut self, x: u32, y: u32, len: u32) -> &mut [u8] {
        if x >= self.width || y >= self.height {
            return &mut [];
        }
        let start = (u64::from(y) * u64::from(self.width) + u64::from(x)) * 3;
        let len = u64::from(len.min(self.width - x)) * 3;
        self.pixels.get_mut(to_usize(start)..to_usize(start + len)).unwrap_or_default()
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, x: u32, y: u32, width: u32, height: u32, color: Rgb) {
        for line in y..y.saturating_add(height) {
            self.line(x, line, width).as_chunks_mut().0.fill(color);
        }
    }

    /// Draws a 3-channel image.
    pub fn image(&mut self, x: u32, y: u32, image: &Image) {
        self.rows(x, y, image.width, &image.data);
    }

    /// Draws rows of `width` pixels. Each pixel has 3 bytes.
    pub(crate) fn rows(&mut self, x: u32, y: u32, width: u32, pixels: &[u8]) {
        let stride = to_usize(width) * 3;
        let lines = pixels.chunks_exact(stride.max(1));
        for (line, source) in (y..).zip(lines) {
            let target = self.line(x, line, width);
            let n = target.len();
            target.copy_from_slice(source.get(..n).unwrap_or_default());
        }
    }

    /// Draws the two diagonals of a rectangle.
    pub fn cross(&mut self, x: u32, y: u32, width: u32, height: u32, color: Rgb) {
        for i in 0..height {
            let across = i * width.saturating_sub(1) / height.saturating_sub(1).max(1);
            self.fill(x + across, y + i, 1, 1, color);
            self.fill(x + width.saturating_sub(1 + across), y + i, 1, 1, color);
        }
    }

    /// Fills a triangle in the upper right corner of a rectangle that ends before `right`. A black edge makes it
    /// visible on every image.
    pub(crate) fn corner(&mut self, right: u32, y: u32, side: u32, color: Rgb) {
        for i in 0..side {
            let left = right.saturating_sub(side - i);
            self.fill(left, y + i, side - i, 1, color);
            self.fill(left, y + i, 1, 1, [0; 3]);
        }
    }

    /// Blends the pixels `over`, which have premultiplied alpha, over those of row `y`, starting at `x`.
    pub(crate) fn blend(&mut self, x: u32, y: u32, over: &[[u8; 4]]) {
        let line = self.line(x, y, u32::try_from(over.len()).unwrap_or(u32::MAX));
        for (pixel, [red, green, blue, alpha]) in line.as_chunks_mut::<3>().0.iter_mut().zip(over) {
            for (below, above) in pixel.iter_mut().zip([red, green, blue]) {
                let kept = (u16::from(*below) * u16::from(255 - alpha) + 127) / 255;
                *below = u8::try_from(kept).unwrap_or(u8::MAX).saturating_add(*above);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_outside() {
        let mut canvas = Canvas::new(10, 6, [0; 3]);
        canvas.fill(8, 4, 100, 100, [1; 3]);
        canvas.fill(100, 100, 5, 5, [1; 3]);
        canvas.blend(6, 0, &[[2, 2, 2, 255]; 20]);
        let image = Image { width: 4, height: 4, channels: 3, data: vec![3; 48] };
        canvas.image(8, 3, &image);
        canvas.cross(0, 0, 50, 50, [4; 3]);
        assert_eq!(canvas.pixels.len(), 180);
        assert_eq!(canvas.pixels.iter().filter(|v| **v == 3).count(), 18);
    }

    #[test]
    fn half_opaque_pixels_are_mixed() {
        let mut canvas = Canvas::new(3, 1, [255, 100, 0]);
        canvas.blend(1, 0, &[[0, 0, 128, 128], [9, 8, 7, 255]]);
        assert_eq!(canvas.pixels, [255, 100, 0, 127, 50, 128, 9, 8, 7]);
    }
}
