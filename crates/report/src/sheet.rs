//! Layout and drawing of the contact sheet.

use packds_pixels::Image;
use packds_system::to_usize;

use crate::canvas::{Canvas, GLYPH, fit};
use crate::error::DrawError;
use crate::figure::Rgb;

const PAPER: Rgb = [250, 250, 248];
const CELL: Rgb = [232, 232, 229];
const INK: Rgb = [28, 28, 30];
const DIM: Rgb = [128, 128, 132];
const BAD: Rgb = [196, 52, 46];

/// Margin around the sheet.
const MARGIN: u32 = 16;
/// Space between cells.
const GAP: u32 = 12;
/// Space between the images of one sample.
const SEAM: u32 = 2;
/// Maximum number of pixels: 286 MiB of memory.
const MAX_PIXELS: u64 = 100_000_000;

/// One sample: its images, or the reason why it has none, and two lines of text.
pub struct Cell {
    /// Each image, or the reason why it is missing.
    pub pictures: Vec<Result<Image, String>>,
    /// The first line of text, such as the class.
    pub caption: String,
    /// The second line of text.
    pub number: String,
}

/// The layout of the sheet.
pub struct Layout {
    /// Largest side of an image, in pixels.
    pub side: u32,
    /// Samples per row.
    pub columns: u32,
    /// Images per sample.
    pub pictures: u32,
    /// Number of samples.
    pub n_cells: u32,
}

impl Layout {
    /// Scale of the text.
    fn scale(&self) -> u32 {
        if self.side >= 256 { 2 } else { 1 }
    }

    fn line(&self) -> u32 {
        GLYPH * self.scale() + 4
    }

    fn cell_width(&self) -> u32 {
        self.pictures * (self.side + SEAM) - SEAM
    }

    fn cell_height(&self) -> u32 {
        self.side + 2 + 2 * self.line()
    }

    fn head(&self) -> u32 {
        MARGIN + self.line() + 6
    }

    /// Width and height of the sheet in pixels.
    ///
    /// # Errors
    /// `SheetTooLarge` above 100 million pixels.
    pub fn size(&self) -> Result<(u32, u32), DrawError> {
        let rows = self.n_cells.div_ceil(self.columns.max(1));
        let width = u64::from(self.columns) * u64::from(self.cell_width() + GAP) - u64::from(GAP);
        let height = u64::from(rows) * u64::from(self.cell_height() + GAP) - u64::from(GAP);
        let (width, height) = (width + u64::from(2 * MARGIN), height + u64::from(self.head() + MARGIN));
        let size = u32::try_from(width).ok().zip(u32::try_from(height).ok());
        size.filter(|_| width.saturating_mul(height) <= MAX_PIXELS).ok_or(DrawError::SheetTooLarge { width, height })
    }

    /// Draws the sheet.
    ///
    /// # Errors
    /// As for `size`.
    pub fn draw(&self, title: &str, cells: &[Cell]) -> Result<Canvas, DrawError> {
        let (width, height) = self.size()?;
        let mut canvas = Canvas::new(width, height, PAPER);
        let scale = self.scale();
        let title = fit(title, width.saturating_sub(2 * MARGIN), scale);
        canvas.text(MARGIN, MARGIN, scale, INK, &title);
        for (i, cell) in (0_u32..).zip(cells) {
            let (column, row) = (i % self.columns.max(1), i / self.columns.max(1));
            let x = MARGIN + column * (self.cell_width() + GAP);
            let y = self.head() + row * (self.cell_height() + GAP);
            for (j, picture) in (0_u32..).zip(&cell.pictures) {
                self.picture(&mut canvas, x + j * (self.side + SEAM), y, picture);
            }
            let below = y + self.side + 4;
            let caption = fit(&cell.caption, self.cell_width(), scale);
            canvas.text(x, below, scale, INK, &caption);
            let number = fit(&cell.number, self.cell_width(), scale);
            canvas.text(x, below + self.line() - 2, scale, DIM, &number);
        }
        Ok(canvas)
    }

    fn picture(&self, canvas: &mut Canvas, x: u32, y: u32, picture: &Result<Image, String>) {
        let side = self.side;
        canvas.fill(x, y, side, side, CELL);
        match picture {
            Ok(image) => {
                let left = x + side.saturating_sub(image.width) / 2;
                let top = y + side.saturating_sub(image.height) / 2;
                canvas.image(left, top, image);
            }
            Err(reason) => {
                canvas.cross(x, y, side, side, BAD);
                self.reason(canvas, x, y, reason);
            }
        }
    }

    /// Writes the reason over the cross, as many lines as fit.
    fn reason(&self, canvas: &mut Canvas, x: u32, y: u32, reason: &str) {
        let width = to_usize((self.side.saturating_sub(8)) / GLYPH).max(1);
        let lines = wrap(reason, width);
        let fits = to_usize(self.side.saturating_sub(8) / (GLYPH + 2));
        for (i, line) in (0_u32..).zip(lines.iter().take(fits)) {
            let (left, top) = (x + 4, y + 4 + i * (GLYPH + 2));
            let width = u32::try_from(line.chars().count()).unwrap_or(0) * GLYPH;
            canvas.fill(left - 1, top - 1, width + 2, GLYPH + 2, CELL);
            canvas.text(left, top, 1, BAD, line);
        }
    }
}

/// Wraps text to lines of at most `width` characters. Longer words are cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width.max(1)) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + piece.len() <= width => {
                    line.push(' ');
                    line.extend(piece);
                }
                _ => lines.push(piece.iter().collect()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_wrapped_at_words() {
        let lines = wrap("chunk 0: checksum mismatch", 9);
        assert_eq!(lines, ["chunk 0:", "checksum", "mismatch"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }

    #[test]
    fn sheets_that_would_fill_memory_are_refused() {
        let layout = Layout { side: 2048, columns: 100, pictures: 1, n_cells: 10_000 };
        assert!(layout.size().is_err());
    }
}
