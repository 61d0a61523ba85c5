//! A drawing of boxes, dots, lines and words, as SVG text or as pixels. It needs no fonts: those of the SVG are the viewer's,
//! those of the pixels are built in. The same drawing gives the same bytes.

use packds_pixels::{PixelError, encode_png};

use crate::canvas::{Canvas, GLYPH, Rgb, fit};

/// Pixels of a PNG for each unit of the drawing.
const SCALE: u32 = 2;

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

/// What is drawn, in the order in which it is drawn.
#[derive(Debug)]
enum Shape {
    /// Left, top, width, height of each.
    Boxes(Vec<[f64; 4]>, Rgb),
    /// The centres, and a diameter.
    Dots(Vec<Place>, f64, Rgb),
    /// Through these places, one unit wide or so.
    Line(Vec<Place>, f64, Rgb),
    /// On this baseline; large ones are headings.
    Text(Place, Anchor, bool, Rgb, String),
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
        self.shapes.push(Shape::Line(places, width, color));
    }

    pub(crate) fn text(&mut self, at: Place, anchor: Anchor, color: Rgb, text: &str) {
        let text = text.to_owned();
        self.shapes
            .push(Shape::Text(at, anchor, false, color, text));
    }

    pub(crate) fn heading(&mut self, at: Place, color: Rgb, text: &str) {
        let text = text.to_owned();
        self.shapes
            .push(Shape::Text(at, Anchor::Start, true, color, text));
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
    pub(crate) fn png(&self) -> Result<Vec<u8>, PixelError> {
        let mut canvas = Canvas::new(self.width * SCALE, self.height * SCALE, [255; 3]);
        for shape in &self.shapes {
            shape.draw(&mut canvas);
        }
        encode_png(canvas.width, canvas.height, 3, &canvas.pixels)
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
            Self::Line(places, width, color) => {
                let points: Vec<String> = places
                    .iter()
                    .map(|(x, y)| format!("{},{}", short(*x), short(*y)))
                    .collect();
                format!(
                    "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" points=\"{}\"/>",
                    hex(*color),
                    short(*width),
                    points.join(" ")
                )
            }
            Self::Text((x, y), anchor, large, color, text) => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                let large = if *large {
                    " font-size=\"16\" font-weight=\"bold\""
                } else {
                    ""
                };
                format!(
                    "<text x=\"{}\" y=\"{}\" fill=\"{}\"{anchor}{large}>{}</text>",
                    short(*x),
                    short(*y),
                    hex(*color),
                    xml(text)
                )
            }
        }
    }

    fn draw(&self, canvas: &mut Canvas) {
        match self {
            Self::Boxes(boxes, fill) => {
                for [x, y, width, height] in boxes {
                    let (left, top) = (pixel(*x), pixel(*y));
                    let (right, bottom) = (pixel(x + width), pixel(y + height));
                    canvas.fill(left, top, right - left, bottom - top, *fill);
                }
            }
            Self::Dots(at, size, fill) => at
                .iter()
                .for_each(|place| disc(canvas, *place, *size, *fill)),
            Self::Line(places, width, color) => {
                for (from, to) in places.iter().zip(places.iter().skip(1)) {
                    let long = (to.0 - from.0).abs().max((to.1 - from.1).abs());
                    let steps = pixel(long).max(1);
                    for step in 0..=steps {
                        let part = f64::from(step) / f64::from(steps);
                        let x = from.0 + (to.0 - from.0) * part;
                        let y = from.1 + (to.1 - from.1) * part;
                        disc(canvas, (x, y), *width, *color);
                    }
                }
            }
            Self::Text((x, y), anchor, large, color, text) => {
                let scale = SCALE + u32::from(*large);
                let room = canvas.width.saturating_sub(pixel(*x));
                let text = match anchor {
                    Anchor::Start => fit(text, room, scale),
                    Anchor::Middle | Anchor::End => text.clone(),
                };
                let letters = u32::try_from(text.chars().count()).unwrap_or(0);
                let width = letters * GLYPH * scale;
                let left = match anchor {
                    Anchor::Start => pixel(*x),
                    Anchor::Middle => pixel(*x).saturating_sub(width / 2),
                    Anchor::End => pixel(*x).saturating_sub(width),
                };
                let top = pixel(*y).saturating_sub((GLYPH - 1) * scale);
                canvas.text(left, top, scale, *color, &text);
            }
        }
    }
}

fn disc(canvas: &mut Canvas, (x, y): Place, size: f64, fill: Rgb) {
    let across = pixel(size).max(1);
    let (left, top) = (pixel(x - size / 2.0), pixel(y - size / 2.0));
    for line in 0..across {
        // Twice the distance of the line's middle from the disc's: whole numbers.
        let off = (2 * line + 1).abs_diff(across);
        let half = (across * across)
            .saturating_sub(off * off)
            .isqrt()
            .div_ceil(2);
        let inset = (across / 2).saturating_sub(half);
        canvas.fill(left + inset, top + line, across - 2 * inset, 1, fill);
    }
}

/// The pixel nearest to a place; those to the left and above are at the edge.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest u32 there is"
)]
fn pixel(units: f64) -> u32 {
    (units * f64::from(SCALE)).round() as u32
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

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text as XML: what has a meaning there is escaped, what cannot stand there is left out.
fn xml(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut canvas = Canvas::new(120, 40, [9; 3]);
        figure()
            .shapes
            .iter()
            .for_each(|shape| shape.draw(&mut canvas));
        let at = |x: usize, y: usize| canvas.pixels[(y * 120 + x) * 3..][..3].to_vec();
        assert_eq!(at(0, 0), [255; 3]);
        assert_eq!(
            (at(2, 4), at(8, 11)),
            (vec![0, 114, 178], vec![0, 114, 178])
        );
        assert_eq!((at(1, 4), at(9, 11)), (vec![255; 3], vec![255; 3]));
        assert_eq!((at(52, 10), at(55, 10)), (vec![213, 94, 0], vec![255; 3]));
        assert_eq!((at(3, 37), at(119, 38)), (vec![0; 3], vec![0; 3]));
        assert_eq!(figure().png().unwrap(), figure().png().unwrap());
    }
}
