//! Draws text in the built-in font. The system's fonts are used only for characters that the built-in font lacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use packds_system::{lock, to_usize};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::ID;
use resvg::usvg::{FontResolver, Node, Options, Tree};

use crate::canvas::Canvas;
use crate::figure::{Font, Rgb, hex, xml};
use crate::raster::{built_in, drawable};

/// Number of built-in fonts.
const BUILT_IN: usize = 2;
/// Font size at which the widths of characters are measured.
const MEASURED: f64 = 100.0;
/// Minimum width that is assumed for a character when text is cut, per unit of the font size.
const MIN_ADVANCE: f64 = 0.25;
/// The height of characters above the baseline and the height of a line, both per unit of the font size.
const ASCENT: f64 = 1.07;
const LINE: f64 = 1.37;

/// Measures, wraps and draws text. Each line is first drawn into a strip of its own size, to avoid a second copy of a
/// large canvas.
pub(crate) struct Typeface {
    options: Options<'static>,
    /// Widths of characters at the font size [`MEASURED`], indexed by character and whether it is bold.
    widths: HashMap<(char, bool), f64>,
}

impl Typeface {
    pub(crate) fn new() -> Self {
        let mut options = built_in();
        let of_all = FontResolver::default_fallback_selector();
        // Remembers the results, because the search opens every font.
        let found = Mutex::new(HashMap::new());
        options.font_resolver.select_fallback = Box::new(move |c, used, fonts| {
            // This function is called only for a character that the built-in font lacks.
            if fonts.len() == BUILT_IN {
                Arc::make_mut(fonts).load_system_fonts();
            }
            let known = lock(&found).get(&c).copied();
            if let Some(id) = known.filter(|id: &Option<ID>| id.is_none_or(|id| !used.contains(&id))) {
                return id;
            }
            let id = of_all(c, used, fonts);
            lock(&found).insert(c, id);
            id
        });
        Self { options, widths: HashMap::new() }
    }

    /// Wraps the text to at most `n` lines of at most `width` pixels. If the text is cut off, it ends in an ellipsis.
    pub(crate) fn lines(&mut self, text: &str, width: u32, n: usize, font: Font) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() && lines.len() < n {
            let end = self.fitting(rest, f64::from(width), font);
            if end < rest.len() && lines.len() + 1 == n {
                let room = f64::from(width) - self.advance('…', font);
                let end = self.fitting(rest, room, font);
                lines.push(format!("{}…", rest.get(..end).unwrap_or_default().trim_end()));
                break;
            }
            let (line, after) = rest.split_at(place_to_break(rest, end));
            lines.push(line.trim_end().to_owned());
            rest = after.trim_start();
        }
        lines
    }

    /// The number of bytes of the text that fit in this width.
    fn fitting(&mut self, text: &str, width: f64, font: Font) -> usize {
        let mut left = width;
        let over = text.char_indices().find(|(_, c)| {
            // Combining marks have no width, but the number that fit must be limited.
            left -= self.advance(*c, font).max(MIN_ADVANCE);
            left < 0.0
        });
        over.map_or(text.len(), |(at, _)| at)
    }

    /// The width of the text in pixels, without kerning. With kerning, it would be slightly narrower.
    pub(crate) fn width(&mut self, text: &str, font: Font) -> u32 {
        pixels(text.chars().map(|c| self.advance(c, font)).sum())
    }

    fn advance(&mut self, c: char, font: Font) -> f64 {
        if let Some(width) = self.widths.get(&(c, font.bold)) {
            return width * font.size / MEASURED;
        }
        // Measured between two bars, so that spaces and combining marks have their proper widths too.
        let measured = Font { size: MEASURED, ..font };
        let mut between = |text: &str| {
            let tree = self.set(text, (1, 1), measured, [0; 3])?;
            let Some(Node::Text(text)) = tree.root().children().first() else { return None };
            Some(f64::from(text.bounding_box().width()))
        };
        let width = between(&format!("|{c}|")).zip(between("||")).map_or(0.0, |(with, without)| with - without);
        self.widths.insert((c, font.bold), width.max(0.0));
        width.max(0.0) * font.size / MEASURED
    }

    /// A drawing of a line of text in a strip of this width and height.
    fn set(&mut self, text: &str, (width, height): (u32, u32), font: Font, color: Rgb) -> Option<Tree> {
        let (weight, baseline) = (if font.bold { "bold" } else { "normal" }, (font.size * ASCENT).round());
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"><text y=\"{baseline}\" \
             xml:space=\"preserve\" font-size=\"{}\" font-weight=\"{weight}\" fill=\"{}\">{}</text></svg>",
            font.size,
            hex(color),
            xml(&drawable(text))
        );
        let tree = Tree::from_str(&svg, &self.options).ok()?;
        // Keeps the fonts that this text loaded, so that the next text finds them.
        self.options.fontdb = Arc::clone(tree.fontdb());
        Some(tree)
    }

    /// Draws one line of text with its upper left corner at this position. Everything beyond `width` pixels is cut off.
    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        (x, y): (u32, u32),
        width: u32,
        (font, color): (Font, Rgb),
        text: &str,
    ) {
        let size = (width.min(canvas.width.saturating_sub(x)), line_height(font));
        let strip = Pixmap::new(size.0, size.1).zip(self.set(text, size, font, color));
        let Some((mut strip, tree)) = strip else { return };
        resvg::render(&tree, Transform::identity(), &mut strip.as_mut());
        let pixels = strip.data().as_chunks::<4>().0;
        for (line, pixels) in (y..).zip(pixels.chunks_exact(to_usize(size.0))) {
            canvas.blend(x, line, pixels);
        }
    }
}

/// The height of a line of text, in pixels.
pub(crate) fn line_height(font: Font) -> u32 {
    pixels(font.size * LINE)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lengths of a canvas, and not negative")]
fn pixels(length: f64) -> u32 {
    length.ceil() as u32
}

/// The position at which to break text if only its first `end` bytes fit. This is after the last space or separator in
/// these bytes, or at `end` if a space follows or there is no separator. Never at the start.
fn place_to_break(text: &str, end: usize) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (fits, after) = text.split_at_checked(end).unwrap_or((text, ""));
    if after.is_empty() || after.starts_with(char::is_whitespace) {
        return end.max(first);
    }
    let separates = |(_, c): &(usize, char)| c.is_whitespace() || matches!(c, '_' | '-' | '/' | ',');
    let separator = fits.char_indices().rfind(separates);
    separator.map_or(end, |(at, c)| at + c.len_utf8()).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FONT: Font = Font { size: 12.0, bold: false };

    fn lines(text: &str, width: u32, n: usize) -> Vec<String> {
        Typeface::new().lines(text, width, n, FONT)
    }

    #[test]
    fn a_text_is_wrapped_before_it_is_cut() {
        assert_eq!(lines("shark", 90, 2), ["shark"]);
        assert_eq!(lines("great white shark", 70, 2), ["great white", "shark"]);
        assert_eq!(lines("great white shark", 70, 1), ["great whit…"]);
        assert_eq!(lines("great white shark, man-eater", 70, 2), ["great white", "shark, ma…"]);
        assert_eq!(lines("great_white_shark", 70, 2), ["great_", "white_shark"]);
        assert_eq!(lines("n01440764n01440764", 70, 2), ["n01440764n", "01440764"]);
        assert_eq!(lines("abc", 0, 2), ["a", "…"]);
        assert!(lines(&"\u{301}".repeat(1 << 20), 90, 2).concat().len() < 2000);
        assert!(lines(" ", 90, 2).is_empty() && lines("shark", 90, 0).is_empty());
    }

    #[test]
    fn no_line_is_drawn_wider_than_it_is_measured() {
        let mut typeface = Typeface::new();
        for text in
            ["AVATAR Tower, WA: 1/7", "im\u{e1}genes de caf\u{e9}", "\u{39b}\u{3ac}\u{3bc}\u{3b4}\u{3b1}", "a  b "]
        {
            let measured = f64::from(typeface.width(text, FONT));
            let tree = typeface.set(text, (1, 1), FONT, [0; 3]).unwrap();
            let Node::Text(drawn) = &tree.root().children()[0] else { panic!("{text}") };
            let drawn = f64::from(drawn.bounding_box().width());
            assert!(drawn <= measured + 0.1 && measured <= drawn * 1.1 + 4.0, "{text}: {drawn} of {measured}");
        }
    }

    #[test]
    fn the_fonts_of_the_system_are_loaded_only_for_characters_that_the_built_in_font_lacks() {
        let mut typeface = Typeface::new();
        let mut canvas = Canvas::new(90, 30, [255; 3]);
        typeface.draw(&mut canvas, (0, 0), 90, (FONT, [0; 3]), "Ta\u{ef}ga \u{42f}");
        assert_eq!(typeface.options.fontdb.len(), BUILT_IN);
        let blank = canvas.pixels.iter().filter(|v| **v == 255).count();
        assert!((7000..8000).contains(&blank), "{blank}");
        typeface.draw(&mut canvas, (60, 20), 90, (FONT, [0; 3]), "\u{5d0}");
        let of_system = typeface.options.fontdb.len();
        let mut all = built_in().fontdb.as_ref().clone();
        all.load_system_fonts();
        assert_eq!(of_system, all.len());
    }
}
