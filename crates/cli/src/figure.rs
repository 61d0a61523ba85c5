//! A drawing of boxes, dots, lines and words, as SVG text or as pixels. The SVG is lettered in the viewer's font, the pixels
//! in one that is built in. The same drawing gives the same bytes.

use crate::failure::Failure;
use crate::lettering::fit;
use crate::raster;

/// Pixels of a PNG for each unit of the drawing.
const SCALE: u8 = 2;

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// A place: right and down, in units from the upper left corner.
pub(crate) type Place = (f64, f64);

/// Where a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// How large a text is, and how heavy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) bold: bool,
}

/// What most texts are set in.
pub(crate) const PLAIN: Font = Font {
    size: 12.0,
    bold: false,
};
/// What numbers and notes in a picture are set in.
pub(crate) const SMALL: Font = Font {
    size: 11.0,
    bold: false,
};
/// What titles of parts of a picture are set in.
pub(crate) const SUBHEADING: Font = Font {
    size: 13.0,
    bold: true,
};
/// What titles are set in.
pub(crate) const HEADING: Font = Font {
    size: 16.0,
    bold: true,
};

/// What is drawn, in the order in which it is drawn.
#[derive(Debug)]
enum Shape {
    /// Left, top, width, height of each.
    Boxes(Vec<[f64; 4]>, Rgb),
    /// The centres, and a diameter.
    Dots(Vec<Place>, f64, Rgb),
    /// Through these places, so wide, dashed or not.
    Line(Vec<Place>, f64, bool, Rgb),
    /// On this baseline.
    Text(Place, Anchor, Font, Rgb, String),
}

/// A drawing.
#[derive(Debug)]
pub(crate) struct Figure {
    width: u32,
    height: u32,
    title: String,
    shapes: Vec<Shape>,
}

impl Figure {
    /// Plain paper. The title is what a viewer or a screen reader calls it.
    pub(crate) fn new(width: u32, height: u32, paper: Rgb, title: &str) -> Self {
        let all = [0.0, 0.0, width.into(), height.into()];
        Self {
            width,
            height,
            title: title.to_owned(),
            shapes: vec![Shape::Boxes(vec![all], paper)],
        }
    }

    pub(crate) fn boxes(&mut self, boxes: Vec<[f64; 4]>, fill: Rgb) {
        self.shapes.push(Shape::Boxes(boxes, fill));
    }

    pub(crate) fn dots(&mut self, at: Vec<Place>, size: f64, fill: Rgb) {
        self.shapes.push(Shape::Dots(at, size, fill));
    }

    pub(crate) fn line(&mut self, places: Vec<Place>, width: f64, color: Rgb) {
        self.shapes.push(Shape::Line(places, width, false, color));
    }

    pub(crate) fn dashes(&mut self, places: Vec<Place>, width: f64, color: Rgb) {
        self.shapes.push(Shape::Line(places, width, true, color));
    }

    pub(crate) fn text(&mut self, at: Place, anchor: Anchor, color: Rgb, text: &str) {
        self.words(at, anchor, PLAIN, color, text);
    }

    pub(crate) fn heading(&mut self, at: Place, color: Rgb, text: &str) {
        self.words(at, Anchor::Start, HEADING, color, text);
    }

    /// A text in any size. One that begins at its place is cut where the drawing ends.
    pub(crate) fn words(&mut self, at: Place, anchor: Anchor, font: Font, color: Rgb, text: &str) {
        let text = match anchor {
            Anchor::Start => fit(text, f64::from(self.width) - at.0, font.size, font.bold),
            Anchor::Middle | Anchor::End => text.to_owned(),
        };
        self.shapes.push(Shape::Text(at, anchor, font, color, text));
    }

    /// The drawing as an SVG document: no scripts, nothing from elsewhere.
    pub(crate) fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let title = xml(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
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

    /// The drawing as a PNG file of twice as many pixels as units.
    pub(crate) fn png(&self) -> Result<Vec<u8>, Failure> {
        raster::png(&self.svg(), SCALE)
    }
}

impl Shape {
    fn svg(&self) -> String {
        match self {
            Self::Boxes(boxes, fill) => {
                let path: String = boxes
                    .iter()
                    .map(|[x, y, w, h]| {
                        format!(
                            "M{} {}h{}v{}h{}z",
                            short(*x),
                            short(*y),
                            short(*w),
                            short(*h),
                            short(-w)
                        )
                    })
                    .collect();
                format!("<path fill=\"{}\" d=\"{path}\"/>", hex(*fill))
            }
            Self::Dots(at, size, fill) => {
                let path: String = at
                    .iter()
                    .map(|(x, y)| format!("M{} {}h0", short(*x), short(*y)))
                    .collect();
                format!(
                    "<path fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" d=\"{path}\"/>",
                    hex(*fill),
                    short(*size)
                )
            }
            Self::Line(places, width, dashed, color) => {
                let points: Vec<String> = places
                    .iter()
                    .map(|(x, y)| format!("{},{}", short(*x), short(*y)))
                    .collect();
                let dashes = if *dashed {
                    " stroke-dasharray=\"5 4\""
                } else {
                    ""
                };
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
    /// As attributes, where it is not the document's.
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

/// A number with a tenth where it has one.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// A colour as CSS names it.
pub(crate) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text as XML: what has a meaning there is escaped, what cannot stand there is left out.
pub(crate) fn xml(text: &str) -> String {
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

/// A number of rows or lines, for reckoning with units.
pub(crate) fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Whole units that hold so many.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number"
)]
pub(crate) fn whole(units: f64) -> u32 {
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
<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\" viewBox=\"0 0 60 20\" role=\"img\" \
font-family=\"sans-serif\" font-size=\"12\">
<title>a &lt;b&gt; &amp; &quot;c&quot;</title>
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
        assert_eq!(
            (at(2, 4), at(7, 11)),
            (vec![0, 114, 178], vec![0, 114, 178])
        );
        assert_eq!((at(1, 4), at(9, 11)), (vec![255; 3], vec![255; 3]));
        assert_eq!((at(52, 10), at(55, 10)), (vec![213, 94, 0], vec![255; 3]));
        assert_eq!((at(3, 37), at(119, 38)), (vec![0; 3], vec![0; 3]));
    }

    #[test]
    fn dashes_and_other_fonts_say_so() {
        let mut figure = Figure::new(200, 20, [255; 3], "");
        figure.dashes(vec![(0.0, 1.0), (9.0, 1.0)], 1.0, [0; 3]);
        let font = Font {
            size: 9.5,
            bold: true,
        };
        figure.words((1.0, 9.0), Anchor::End, font, [0; 3], "x");
        figure.heading((100.0, 9.0), [0; 3], "a heading that is too long for it");
        let svg = figure.svg();
        assert!(svg.contains("stroke-dasharray=\"5 4\" points=\"0,1 9,1\""));
        assert!(svg.contains("text-anchor=\"end\" font-size=\"9.5\" font-weight=\"bold\">x<"));
        assert!(svg.contains(">a headin…<"), "{svg}");
    }
}
