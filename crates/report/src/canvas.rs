//! An RGB canvas: rectangles, images and 8x8 text.

use font8x8::{BASIC_FONTS, GREEK_FONTS, HIRAGANA_FONTS, LATIN_FONTS, UnicodeFonts};
use packds_pixels::Image;
use packds_system::to_usize;

use crate::figure::Rgb;

/// Side of a character at scale 1, in pixels.
pub(crate) const GLYPH: u32 = 8;

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
        let stride = to_usize(image.width) * 3;
        let lines = image.data.chunks_exact(stride.max(1));
        for (line, source) in (y..).zip(lines) {
            let target = self.line(x, line, image.width);
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

    /// Draws one line of text. A character without a glyph becomes a box.
    pub fn text(&mut self, x: u32, y: u32, scale: u32, color: Rgb, text: &str) {
        let mut left = x;
        for c in text.chars() {
            for (line, bits) in (0_u32..).zip(glyph(c)) {
                for column in (0..GLYPH).filter(|column| bits >> column & 1 == 1) {
                    self.fill(left + column * scale, y + line * scale, scale, scale, color);
                }
            }
            left = left.saturating_add(GLYPH * scale);
        }
    }
}

fn glyph(c: char) -> [u8; 8] {
    const BOX: [u8; 8] = [0x00, 0x3e, 0x22, 0x22, 0x22, 0x22, 0x3e, 0x00];
    let found = BASIC_FONTS.get(c).or_else(|| LATIN_FONTS.get(c));
    let found = found.or_else(|| GREEK_FONTS.get(c));
    found.or_else(|| HIRAGANA_FONTS.get(c)).unwrap_or(BOX)
}

/// Text cut to `width` pixels. Two dots mark the cut.
pub(crate) fn fit(text: &str, width: u32, scale: u32) -> String {
    let columns = to_usize(width / (GLYPH * scale));
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(columns.saturating_sub(2)).collect();
    cut.push_str("..");
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_outside() {
        let mut canvas = Canvas::new(10, 6, [0; 3]);
        canvas.fill(8, 4, 100, 100, [1; 3]);
        canvas.fill(100, 100, 5, 5, [1; 3]);
        canvas.text(6, 0, 2, [2; 3], "W");
        let image = Image { width: 4, height: 4, channels: 3, data: vec![3; 48] };
        canvas.image(8, 3, &image);
        canvas.cross(0, 0, 50, 50, [4; 3]);
        assert_eq!(canvas.pixels.len(), 180);
        assert_eq!(canvas.pixels.iter().filter(|v| **v == 3).count(), 18);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fit("great white shark", 80, 1), "great wh..");
        assert_eq!(fit("shark", 40, 1), "shark");
        assert_eq!(fit("shark", 32, 1), "sh..");
    }
}
