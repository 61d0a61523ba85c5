//! Rasterizes our own SVG with a built-in font. Therefore a PNG looks like the SVG in a browser, and is the same on
//! every machine. Do not use this module for SVG from other sources.

use std::sync::Arc;

use notosans::{BOLD_TTF, REGULAR_TTF};
use packds_pixels::encode_png;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};

use crate::error::DrawError;

/// The family of the built-in fonts.
const FAMILY: &str = "Noto Sans";

/// Renders an SVG document to PNG at `scale` pixels per unit. The drawing must be opaque.
pub(crate) fn png(svg: &str, scale: u8) -> Result<Vec<u8>, DrawError> {
    let tree = parse(svg)?;
    let size = tree.size().to_int_size();
    let scaled = size.scale_by(f32::from(scale));
    let pixmap = scaled.and_then(|size| Pixmap::new(size.width(), size.height()));
    let too_large = DrawError::TooLarge { width: size.width(), height: size.height() };
    let mut pixmap = pixmap.ok_or(too_large)?;
    let scale = f32::from(scale);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    let (width, height) = (pixmap.width(), pixmap.height());
    let (pixels, _) = pixmap.data().as_chunks::<4>();
    let rgb: Vec<u8> = pixels.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect();
    Ok(encode_png(width, height, 3, &rgb)?)
}

fn parse(svg: &str) -> Result<Tree, DrawError> {
    Tree::from_str(&drawable(svg), &built_in()).map_err(|error| DrawError::Svg(error.to_string()))
}

/// The drawing with a quotation mark in place of each backquote. The built-in font draws a backquote over the next
/// character.
pub(crate) fn drawable(svg: &str) -> String {
    svg.replace('`', "\u{2018}")
}

/// Options to draw text with the built-in fonts only.
pub(crate) fn built_in() -> Options<'static> {
    let mut fonts = Database::new();
    for font in [REGULAR_TTF, BOLD_TTF] {
        fonts.load_font_source(Source::Binary(Arc::new(font)));
    }
    fonts.set_sans_serif_family(FAMILY);
    Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lettering::text_width;
    use resvg::usvg::Node;

    fn drawn_width(text: &str, bold: bool) -> f64 {
        let weight = if bold { "bold" } else { "normal" };
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9000\" height=\"200\" font-family=\"sans-serif\" \
             font-size=\"100\" font-weight=\"{weight}\"><text x=\"0\" y=\"100\">{text}</text></svg>"
        );
        match &parse(&svg).unwrap().root().children()[0] {
            Node::Text(text) => f64::from(text.bounding_box().width()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_text_is_drawn_wider_than_it_is_measured() {
        for bold in [false, true] {
            let wider = ('!'..='~').filter(|c| !"<&".contains(*c)).filter(|c| {
                let text = c.to_string().repeat(20);
                drawn_width(&text, bold) > text_width(&text, 100.0, bold)
            });
            assert_eq!(wider.collect::<String>(), "", "bold {bold}");
            for text in ["HDF5, chunks of 64", "packds (raw), order window", "images per second"] {
                let (drawn, measured) = (drawn_width(text, bold), text_width(text, 100.0, bold));
                assert!(measured <= drawn * 1.35, "{text}: {measured} for {drawn} is too wide");
            }
        }
    }

    #[test]
    fn no_character_is_drawn_over_the_next_one() {
        let width = |text: &str| drawn_width(text, false);
        let over = ('!'..='~').filter(|c| !"<&".contains(*c)).filter(|c| width(&format!("|{c}|")) <= width("||") + 1.0);
        assert_eq!(over.collect::<String>(), "");
    }

    #[test]
    fn a_drawing_has_the_same_bytes_each_time() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\"><path fill=\"#fff\" d=\"M0 0h60v20h-60z\"/>\
                   <text x=\"2\" y=\"15\" font-family=\"sans-serif\">abc</text></svg>";
        assert_eq!(png(svg, 2).unwrap(), png(svg, 2).unwrap());
        assert!(png("<svg", 2).is_err());
    }
}
