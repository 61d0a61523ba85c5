//! A drawing of boxes, dots, lines and text, as SVG or PNG. SVG text uses the viewer's font, PNG text a built-in font.
//! The output is deterministic.

use crate::error::DrawError;
use crate::lettering::fit;
use crate::palette::{CLASS, dark_rules};
use crate::raster;

/// PNG pixels per unit of the drawing.
const SCALE: u8 = 2;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// A point: x and y, in units from the upper left corner.
pub type Place = (f64, f64);

/// How text is aligned to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at the point.
    Start,
    /// The text is centred on the point.
    Middle,
    /// The text ends at the point.
    End,
}

impl Anchor {
    /// The left edge of text of this width that is aligned to `x`.
    pub(crate) fn left(self, x: f64, width: f64) -> f64 {
        match self {
            Self::Start => x,
            Self::Middle => x - width / 2.0,
            Self::End => x - width,
        }
    }
}

/// Size and weight of text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Font {
    /// Height of a line, in units.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
}

/// The default font.
pub const PLAIN: Font = Font { size: 12.0, bold: false };
/// The font for numbers and notes.
pub const SMALL: Font = Font { size: 11.0, bold: false };
/// The font for the title of a part of a drawing.
pub const SUBHEADING: Font = Font { size: 13.0, bold: true };
/// The font for the title of a drawing.
pub const HEADING: Font = Font { size: 16.0, bold: true };

/// A drawn element. Shapes are drawn in order.
#[derive(Debug)]
enum Shape {
    /// Left, top, width and height of each box.
    Boxes(Vec<[f64; 4]>, Rgb),
    /// The centres of circles, and their diameter.
    Dots(Vec<Place>, f64, Rgb),
    /// The points and the width of a line, and whether it is dashed.
    Line(Vec<Place>, f64, bool, Rgb),
    /// Text with the position of its baseline.
    Text(Place, Anchor, Font, Rgb, String),
}

/// A drawing.
#[derive(Debug)]
pub struct Figure {
    width: u32,
    height: u32,
    title: String,
    shapes: Vec<Shape>,
}

impl Figure {
    /// A blank drawing. Viewers and screen readers show the title.
    pub fn new(width: u32, height: u32, paper: Rgb, title: &str) -> Self {
        let all = [0.0, 0.0, width.into(), height.into()];
        Self { width, height, title: title.to_owned(), shapes: vec![Shape::Boxes(vec![all], paper)] }
    }

    /// Adds filled boxes, each given by its left, top, width and height.
    pub fn boxes(&mut self, boxes: Vec<[f64; 4]>, fill: Rgb) {
        self.shapes.push(Shape::Boxes(boxes, fill));
    }

    /// Adds filled circles of diameter `size`.
    pub fn dots(&mut self, at: Vec<Place>, size: f64, fill: Rgb) {
        self.shapes.push(Shape::Dots(at, size, fill));
    }

    /// Adds a line through these points.
    pub fn line(&mut self, places: Vec<Place>, width: f64, color: Rgb) {
        self.shapes.push(Shape::Line(places, width, false, color));
    }

    /// Adds a dashed line.
    pub fn dashes(&mut self, places: Vec<Place>, width: f64, color: Rgb) {
        self.shapes.push(Shape::Line(places, width, true, color));
    }

    /// Adds text in the default font.
    pub fn text(&mut self, at: Place, anchor: Anchor, color: Rgb, text: &str) {
        self.words(at, anchor, PLAIN, color, text);
    }

    /// Adds the title of the drawing.
    pub fn heading(&mut self, at: Place, color: Rgb, text: &str) {
        self.words(at, Anchor::Start, HEADING, color, text);
    }

    /// Adds text in any font. Left-aligned text is cut at the right edge of the drawing.
    pub fn words(&mut self, at: Place, anchor: Anchor, font: Font, color: Rgb, text: &str) {
        let text = match anchor {
            Anchor::Start => fit(text, f64::from(self.width) - at.0, font.size, font.bold),
            Anchor::Middle | Anchor::End => text.to_owned(),
        };
        self.shapes.push(Shape::Text(at, anchor, font, color, text));
    }

    /// The drawing as a self-contained SVG document without scripts. Viewers in dark mode show it in dark colours.
    pub fn svg(&self) -> String {
        let light = self.light();
        let rules = dark_rules(&light);
        let style = format!("</title>\n<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>");
        light.replacen("</title>", &style, 1)
    }

    /// The SVG document in light colours only.
    fn light(&self) -> String {
        let (width, height) = (self.width, self.height);
        let title = xml(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{CLASS}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n"
        );
        for shape in &self.shapes {
            svg.push_str(&shape.svg());
            svg.push('\n');
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The drawing as a PNG file, at two pixels per unit.
    ///
    /// # Errors
    /// `DrawError` if the drawing is too large.
    pub fn png(&self) -> Result<Vec<u8>, DrawError> {
        raster::png(&self.light(), SCALE)
    }
}

#[cfg(test)]
impl Figure {
    /// Pairs of labels that may overlap, and labels that may extend beyond the drawing. Assumes the widest font.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        let area = |shape: &Shape| {
            let Shape::Text((x, y), anchor, font, _, text) = shape else { return None };
            let width = crate::lettering::text_width(text, font.size, font.bold);
            let left = anchor.left(*x, width);
            Some(([left, y - font.size * 0.75, left + width, y + font.size * 0.2], text.clone()))
        };
        let areas: Vec<([f64; 4], String)> = self.shapes.iter().filter_map(area).collect();
        let mut found = Vec::new();
        for (nth, ([left, top, right, bottom], text)) in areas.iter().enumerate() {
            if *left < 0.0 || *top < 0.0 || *right > self.width.into() || *bottom > self.height.into() {
                found.push(format!("{text} leaves the drawing"));
            }
            for ([l, t, r, b], other) in areas.iter().skip(nth + 1) {
                if left < r && l < right && top < b && t < bottom {
                    found.push(format!("{text} / {other}"));
                }
            }
        }
        found
    }
}

impl Shape {
    fn svg(&self) -> String {
        match self {
            Self::Boxes(boxes, fill) => {
                let path: String = boxes
                    .iter()
                    .map(|[x, y, w, h]| {
                        format!("M{} {}h{}v{}h{}z", short(*x), short(*y), short(*w), short(*h), short(-w))
                    })
                    .collect();
                format!("<path fill=\"{}\" d=\"{path}\"/>", hex(*fill))
            }
            Self::Dots(at, size, fill) => {
                let path: String = at.iter().map(|(x, y)| format!("M{} {}h0", short(*x), short(*y))).collect();
                format!(
                    "<path fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" d=\"{path}\"/>",
                    hex(*fill),
                    short(*size)
                )
            }
            Self::Line(places, width, dashed, color) => {
                let points: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
                let dashes = if *dashed { " stroke-dasharray=\"5 4\"" } else { "" };
                format!(
                    "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dashes} points=\"{}\"/>",
                    hex(*color),
                    short(*width),
                    points.join(" ")
                )
            }
            Self::Text((x, y), anchor, font, color, text) => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                format!(
                    "<text x=\"{}\" y=\"{}\" fill=\"{}\"{anchor}{}>{}</text>",
                    short(*x),
                    short(*y),
                    hex(*color),
                    font.svg(),
                    xml(text)
                )
            }
        }
    }
}

impl Font {
    /// The SVG attributes that differ from the document's defaults.
    fn svg(self) -> String {
        let mut attributes = String::new();
        if (self.size - PLAIN.size).abs() > f64::EPSILON {
            attributes.push_str(&format!(" font-size=\"{}\"", short(self.size)));
        }
        if self.bold {
            attributes.push_str(" font-weight=\"bold\"");
        }
        attributes
    }
}

/// A number with at most one decimal.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A CSS colour.
pub(crate) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text escaped for XML. Characters that XML does not allow are removed.
pub fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// Converts a count to a float, for arithmetic in units.
pub fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Rounds up to whole units.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is small and positive")]
pub fn whole(units: f64) -> u32 {
    units.ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use packds_pixels::{DecodeOptions, Decoder};

    fn figure() -> Figure {
        let mut figure = Figure::new(60, 20, [255; 3], "a <b> & \"c\"\u{1}");
        figure.boxes(vec![[1.0, 2.0, 3.25, 4.0]], [0, 114, 178]);
        figure.dots(vec![(26.0, 5.0)], 2.0, [213, 94, 0]);
        figure.line(vec![(0.0, 19.0), (60.0, 19.0)], 1.0, [0; 3]);
        figure.text((40.0, 12.0), Anchor::Middle, [0; 3], "x<y");
        figure
    }

    #[test]
    fn a_drawing_is_svg_with_everything_escaped() {
        let expected = "\
<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"packds\" width=\"60\" height=\"20\" viewBox=\"0 0 60 20\" role=\"img\" \
font-family=\"sans-serif\" font-size=\"12\">
<title>a &lt;b&gt; &amp; &quot;c&quot;</title>
<style>@media (prefers-color-scheme: dark) {.packds [fill=\"#ffffff\"]{fill:#181a1e}.packds [fill=\"#0072b2\"]{fill:#4696d7}}</style>
<path fill=\"#ffffff\" d=\"M0 0h60v20h-60z\"/>
<path fill=\"#0072b2\" d=\"M1 2h3.2v4h-3.2z\"/>
<path fill=\"none\" stroke=\"#d55e00\" stroke-width=\"2\" stroke-linecap=\"round\" d=\"M26 5h0\"/>
<polyline fill=\"none\" stroke=\"#000000\" stroke-width=\"1\" points=\"0,19 60,19\"/>
<text x=\"40\" y=\"12\" fill=\"#000000\" text-anchor=\"middle\">x&lt;y</text>
</svg>
";
        assert_eq!(figure().svg(), expected);
    }

    #[test]
    fn a_drawing_is_pixels_at_the_same_places() {
        let png = figure().png().unwrap();
        let mut decoder = Decoder::new(DecodeOptions::default());
        let image = decoder.decode(&png).unwrap();
        assert_eq!((image.width, image.height), (120, 40));
        let at = |x: usize, y: usize| image.data[(y * 120 + x) * 3..][..3].to_vec();
        assert_eq!(at(0, 0), [255; 3]);
        assert_eq!((at(2, 4), at(7, 11)), (vec![0, 114, 178], vec![0, 114, 178]));
        assert_eq!((at(1, 4), at(9, 11)), (vec![255; 3], vec![255; 3]));
        assert_eq!((at(52, 10), at(55, 10)), (vec![213, 94, 0], vec![255; 3]));
        assert_eq!((at(3, 37), at(119, 38)), (vec![0; 3], vec![0; 3]));
    }

    #[test]
    fn dashes_and_other_fonts_say_so() {
        let mut figure = Figure::new(200, 20, [255; 3], "");
        figure.dashes(vec![(0.0, 1.0), (9.0, 1.0)], 1.0, [0; 3]);
        let font = Font { size: 9.5, bold: true };
        figure.words((1.0, 9.0), Anchor::End, font, [0; 3], "x");
        figure.heading((100.0, 9.0), [0; 3], "a heading that is too long for it");
        let svg = figure.svg();
        assert!(svg.contains("stroke-dasharray=\"5 4\" points=\"0,1 9,1\""));
        assert!(svg.contains("text-anchor=\"end\" font-size=\"9.5\" font-weight=\"bold\">x<"));
        assert!(svg.contains(">a headin…<"), "{svg}");
    }
}
