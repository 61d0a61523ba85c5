//! Lays out and draws the contact sheet.

use packds_pixels::Image;
use packds_system::to_usize;

use crate::canvas::Canvas;
use crate::error::DrawError;
use crate::figure::{Font, Rgb};
use crate::typeface::{Typeface, line_height};

const PAPER: Rgb = [250, 250, 248];
const CELL: Rgb = [232, 232, 229];
const INK: Rgb = [28, 28, 30];
const DIM: Rgb = [108, 108, 112];
const BAD: Rgb = [196, 52, 46];
const MARK: Rgb = [255, 150, 0];

/// Margin around the sheet.
const MARGIN: u32 = 16;
/// Space between cells.
const GAP: u32 = 12;
/// Space between the images of one sample.
const SEAM: u32 = 2;
/// Space between an image and its caption.
const PAD: u32 = 3;
/// Maximum number of lines of a title or caption.
const MAX_LINES: usize = 2;
/// Maximum number of entries in a legend.
const MAX_ENTRIES: usize = 20;
/// Maximum number of pixels: 286 MiB of memory.
const MAX_PIXELS: u64 = 100_000_000;

/// One sample: its images, with a caption and a number below them.
pub struct Cell {
    /// Each image, or the reason why it cannot be shown.
    pub pictures: Vec<Result<Image, String>>,
    /// Text such as the class, on at most two lines. Longer text is cut off.
    pub caption: String,
    /// The last line of text, usually the sample's number.
    pub number: String,
    /// Whether a corner of the cell is marked.
    pub is_marked: bool,
}

/// The layout of the sheet.
pub struct Layout {
    /// Longer side of an image, in pixels.
    pub side: u32,
    /// Samples per row.
    pub columns: u32,
    /// Images per sample.
    pub pictures: u32,
    /// Number of samples.
    pub n_cells: u32,
}

/// Places sheets below one another.
///
/// # Errors
/// `SheetTooLarge` if the result would have more than 100 million pixels.
pub fn stacked(sheets: &[Canvas]) -> Result<Canvas, DrawError> {
    let width = sheets.iter().map(|sheet| sheet.width).max().unwrap_or(0);
    let height: u64 = sheets.iter().map(|sheet| u64::from(sheet.height)).sum();
    let (width, height) = checked_size(width.into(), height)?;
    let mut stack = Canvas::new(width, height, PAPER);
    let mut y = 0;
    for sheet in sheets {
        stack.rows(0, y, sheet.width, &sheet.pixels);
        y += sheet.height;
    }
    Ok(stack)
}

fn checked_size(width: u64, height: u64) -> Result<(u32, u32), DrawError> {
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    size.filter(|_| width.saturating_mul(height) <= MAX_PIXELS).ok_or(DrawError::SheetTooLarge { width, height })
}

impl Layout {
    /// The font of captions. Its size grows more slowly than the images.
    fn font(&self) -> Font {
        Font { size: f64::from(7 + self.side.isqrt() / 2), bold: false }
    }

    fn title_font(&self) -> Font {
        Font { size: self.font().size + 2.0, bold: true }
    }

    fn cell_width(&self) -> u32 {
        self.pictures * (self.side + SEAM) - SEAM
    }

    /// The height of a row whose captions have at most `n_lines` lines.
    fn row_height(&self, n_lines: usize) -> u32 {
        self.side + PAD + (u32::try_from(n_lines).unwrap_or(0) + 1) * line_height(self.font())
    }

    /// The height of the title, including the space below it.
    fn head(&self, n_lines: usize) -> u32 {
        u32::try_from(n_lines).unwrap_or(0) * line_height(self.title_font()) + GAP
    }

    /// Width and height of a sheet whose rows have these heights.
    fn size(&self, head: u32, rows: impl Iterator<Item = u32>) -> Result<(u32, u32), DrawError> {
        let width = u64::from(self.columns) * u64::from(self.cell_width() + GAP) + u64::from(2 * MARGIN - GAP);
        let rows: u64 = rows.map(|row| u64::from(row + GAP)).sum();
        let height = u64::from(head + 2 * MARGIN) + rows.saturating_sub(u64::from(GAP));
        checked_size(width, height)
    }

    /// Checks the size before anything is decoded.
    ///
    /// # Errors
    /// `SheetTooLarge` if the sheet would have more than 100 million pixels even with the shortest texts.
    pub fn check(&self) -> Result<(), DrawError> {
        let n_rows = to_usize(self.n_cells.div_ceil(self.columns.max(1)));
        self.size(self.head(1), std::iter::repeat_n(self.row_height(0), n_rows)).map(|_| ())
    }

    /// Draws the sheet. The legend consists of pairs of a colour and a name. Only the first 20 are shown.
    ///
    /// # Errors
    /// `SheetTooLarge` if the sheet would have more than 100 million pixels.
    pub fn draw(&self, title: &str, legend: &[(Rgb, String)], cells: &[Cell]) -> Result<Canvas, DrawError> {
        let mut typeface = Typeface::new();
        let (font, cell_width) = (self.font(), self.cell_width());
        let mut lines = |cell: &Cell| typeface.lines(&cell.caption, cell_width, MAX_LINES, font);
        let captions: Vec<Vec<String>> = cells.iter().map(&mut lines).collect();
        let columns = to_usize(self.columns.max(1));
        let heights = captions.chunks(columns).map(|row| self.row_height(row.iter().map(Vec::len).max().unwrap_or(0)));
        let (width, _) = self.size(0, std::iter::empty())?;
        let inner = width.saturating_sub(2 * MARGIN);
        let title = typeface.lines(title, inner, MAX_LINES, self.title_font());
        let entries = self.entries(legend, inner, &mut typeface);
        let n_legend_lines = entries.last().map_or(0, |entry| entry.line + 1);
        let head = self.head(title.len()) + n_legend_lines * line_height(font);
        let (width, height) = self.size(head, heights.clone())?;
        let mut sheet = Drawing { layout: self, typeface, canvas: Canvas::new(width, height, PAPER) };
        let below = sheet.text((MARGIN, MARGIN), inner, (self.title_font(), INK), &title);
        entries.iter().for_each(|entry| sheet.entry(entry, below));
        let mut top = MARGIN + head;
        for ((row, captions), height) in cells.chunks(columns).zip(captions.chunks(columns)).zip(heights) {
            let lefts = (0..self.columns).map(|column| MARGIN + column * (cell_width + GAP));
            for ((cell, caption), left) in row.iter().zip(captions).zip(lefts) {
                sheet.cell(cell, caption, (left, top));
            }
            top += height + GAP;
        }
        Ok(sheet.canvas)
    }
}

impl Layout {
    /// The entries of a legend, arranged in lines of this width.
    fn entries(&self, legend: &[(Rgb, String)], width: u32, typeface: &mut Typeface) -> Vec<Entry> {
        let font = self.font();
        let more = legend.len().saturating_sub(MAX_ENTRIES);
        let more = (more > 0).then(|| (None, format!("and {more} more")));
        let shown = legend.iter().take(MAX_ENTRIES).map(|(color, name)| (Some(*color), name.clone()));
        let (mut x, mut line) = (0, 0);
        let entry = |(color, name): (Option<Rgb>, String)| {
            let indent = color.map_or(0, |_| line_height(font));
            let name = typeface.lines(&name, width.saturating_sub(indent), 1, font).pop().unwrap_or_default();
            let len = indent + typeface.width(&name, font);
            if x > 0 && x + len > width {
                (x, line) = (0, line + 1);
            }
            let left = x;
            x += len + GAP;
            Entry { color, name, x: left, line, indent }
        };
        shown.chain(more).map(entry).collect()
    }
}

/// An entry of the legend: a patch of colour and its name.
struct Entry {
    color: Option<Rgb>,
    name: String,
    /// Where the entry starts in its line, in pixels.
    x: u32,
    line: u32,
    /// The width of the colour patch, including the space to its right.
    indent: u32,
}

/// A sheet that is being drawn.
struct Drawing<'a> {
    layout: &'a Layout,
    typeface: Typeface,
    canvas: Canvas,
}

impl Drawing<'_> {
    /// Draws lines of text, one below the other. Returns the y position below the last one.
    fn text(&mut self, (x, y): (u32, u32), width: u32, style: (Font, Rgb), lines: &[String]) -> u32 {
        let mut top = y;
        for line in lines {
            self.typeface.draw(&mut self.canvas, (x, top), width, style, line);
            top += line_height(style.0);
        }
        top
    }

    /// Draws an entry of the legend. `top` is the y position of the legend.
    fn entry(&mut self, entry: &Entry, top: u32) {
        let font = self.layout.font();
        let height = line_height(font);
        let (x, y) = (MARGIN + entry.x, top + entry.line * height);
        if let Some(color) = entry.color {
            let (edge, side) = (height / 6, height - 2 * (height / 6));
            self.canvas.fill(x, y + edge, side, side, DIM);
            self.canvas.fill(x + 1, y + edge + 1, side.saturating_sub(2), side.saturating_sub(2), color);
        }
        let width = self.canvas.width;
        self.typeface.draw(&mut self.canvas, (x + entry.indent, y), width, (font, INK), &entry.name);
    }

    fn cell(&mut self, cell: &Cell, caption: &[String], (x, y): (u32, u32)) {
        let (side, width, font) = (self.layout.side, self.layout.cell_width(), self.layout.font());
        for (j, picture) in (0_u32..).zip(&cell.pictures) {
            self.picture(x + j * (side + SEAM), y, picture);
        }
        if cell.is_marked {
            self.canvas.corner(x + width, y, (side / 4).max(10), MARK);
        }
        let below = self.text((x, y + side + PAD), width, (font, INK), caption);
        // A number is not cut, because it identifies the sample. It may reach into the gap, and may be smaller.
        let room = width + GAP - 2;
        let needed = self.typeface.width(&cell.number, font).max(1);
        let font = Font { size: font.size * (f64::from(room) / f64::from(needed)).min(1.0), ..font };
        self.typeface.draw(&mut self.canvas, (x, below), room, (font, DIM), &cell.number);
    }

    fn picture(&mut self, x: u32, y: u32, picture: &Result<Image, String>) {
        let (side, canvas) = (self.layout.side, &mut self.canvas);
        canvas.fill(x, y, side, side, CELL);
        match picture {
            Ok(image) => {
                let left = x + side.saturating_sub(image.width) / 2;
                let top = y + side.saturating_sub(image.height) / 2;
                canvas.image(left, top, image);
            }
            Err(reason) => {
                canvas.cross(x, y, side, side, BAD);
                self.reason(x, y, reason);
            }
        }
    }

    /// Writes as many lines of the reason over the cross as fit.
    fn reason(&mut self, x: u32, y: u32, reason: &str) {
        let font = self.layout.font();
        let (width, height) = (self.layout.side.saturating_sub(8), line_height(font));
        let lines = self.typeface.lines(reason, width, to_usize(width / height), font);
        for (i, line) in (0_u32..).zip(&lines) {
            let (left, top) = (x + 4, y + 4 + i * height);
            let drawn = self.typeface.width(line, font).min(width);
            self.canvas.fill(left - 1, top, drawn + 2, height, CELL);
            self.typeface.draw(&mut self.canvas, (left, top), width, (font, BAD), line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(side: u32, columns: u32, n_cells: u32) -> Layout {
        Layout { side, columns, pictures: 1, n_cells }
    }

    fn cell(caption: &str) -> Cell {
        Cell {
            pictures: vec![Err("chunk 0: checksum mismatch".to_owned())],
            caption: caption.to_owned(),
            number: "#7".to_owned(),
            is_marked: false,
        }
    }

    #[test]
    fn a_row_is_as_high_as_its_longest_caption() {
        let layout = layout(64, 2, 4);
        let height = |captions: [&str; 4]| layout.draw("a", &[], &captions.map(cell)).unwrap().height;
        let line = line_height(layout.font());
        let short = height(["cat"; 4]);
        assert_eq!(height(["cat", "great white shark", "cat", "cat"]), short + line);
        assert_eq!(height(["great white shark, man-eater, man-eating shark"; 4]), short + 2 * line);
        assert_eq!(height([""; 4]), short - 2 * line);
    }

    #[test]
    fn sheets_have_the_same_bytes_each_time() {
        let drawn =
            || layout(48, 2, 3).draw("caf\u{e9}.pack", &[], &["cat", "sea lion", "dog"].map(cell)).unwrap().pixels;
        assert_eq!(drawn(), drawn());
    }

    #[test]
    fn long_numbers_are_not_cut() {
        let drawn = |number: &str| {
            let cells = [Cell { number: number.to_owned(), ..cell("cat") }];
            layout(24, 1, 1).draw("a", &[], &cells).unwrap().pixels
        };
        assert_ne!(drawn("#1234561"), drawn("#1234562"));
    }

    #[test]
    fn a_legend_is_wrapped_and_its_end_counted() {
        let legend: Vec<(Rgb, String)> = (0..23).map(|i| ([i; 3], format!("class {i}"))).collect();
        let layout = layout(64, 4, 4);
        let entries = layout.entries(&legend, 300, &mut Typeface::new());
        assert_eq!(entries.len(), 21);
        assert_eq!((entries[20].name.as_str(), entries[20].color), ("and 3 more", None));
        assert!(entries.iter().all(|entry| entry.x < 300) && entries[20].line > 3);
        let few = layout.entries(&legend[..20], 300, &mut Typeface::new());
        assert_eq!(few.last().map(|entry| entry.name.as_str()), Some("class 19"));
        let narrow = layout.entries(&[([1; 3], "great white shark".to_owned())], 64, &mut Typeface::new());
        assert_eq!((narrow[0].line, narrow[0].name.as_str()), (0, "great w…"));
    }

    #[test]
    fn a_legend_and_a_mark_are_drawn() {
        let n_of = |legend: &[(Rgb, String)], is_marked, color| {
            let cells = [Cell { is_marked, ..cell("cat") }];
            let sheet = layout(64, 1, 1).draw("a", legend, &cells).unwrap();
            (sheet.height, sheet.pixels.as_chunks::<3>().0.iter().filter(|pixel| **pixel == color).count())
        };
        let legend = [([1, 2, 3], "sky".to_owned())];
        let line = line_height(layout(64, 1, 1).font());
        let (height, none) = n_of(&[], false, [1, 2, 3]);
        let (higher, patch) = n_of(&legend, false, [1, 2, 3]);
        assert_eq!((none, higher), (0, height + line));
        assert!((50..line * line).contains(&u32::try_from(patch).unwrap()), "{patch}");
        assert_eq!([n_of(&[], false, MARK).1, n_of(&[], true, MARK).1], [0, 15 * 16 / 2]);
    }

    #[test]
    fn sheets_that_would_fill_memory_are_refused() {
        assert!(layout(2048, 100, 10_000).check().is_err());
    }
}
