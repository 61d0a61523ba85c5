//! Colours of charts, distinct for all kinds of colour vision. Each colour has a substitute for dark pages.

use crate::figure::{Rgb, hex};

/// The background.
pub const PAPER: Rgb = [255, 255, 255];
/// The background of a plot.
pub const PANEL: Rgb = [246, 247, 249];
/// Text.
pub const INK: Rgb = [28, 30, 34];
/// Less important text.
pub const DIM: Rgb = [92, 96, 104];
/// Grid lines.
pub const GRID: Rgb = [217, 220, 225];
/// The highlight colour: packds, in comparisons.
pub const OURS: Rgb = [0, 98, 168];
/// The band behind highlighted rows.
pub const BAND: Rgb = [222, 236, 248];
/// All other formats.
pub const OTHER: Rgb = [110, 114, 122];
/// Hardware limits.
pub const LIMIT: Rgb = [184, 72, 0];
/// Colours of lines, in the order of the quantities that they show.
pub const SERIES: [Rgb; 7] =
    [[230, 159, 0], [0, 158, 115], [0, 114, 178], [204, 121, 167], [60, 60, 66], [86, 180, 233], BOXES[0]];

/// Colours of boxes that have text in [`PAPER`] on them, in the order of the quantities that they show.
pub const BOXES: [Rgb; 3] = [[150, 88, 30], [0, 118, 86], [168, 66, 122]];

/// Each chart colour with its substitute for dark pages.
const DARK: [(Rgb, Rgb); 17] = [
    (PAPER, [24, 26, 30]),
    (PANEL, [32, 35, 40]),
    (INK, [236, 238, 242]),
    (DIM, [168, 173, 182]),
    (GRID, [62, 67, 75]),
    (OURS, [98, 180, 240]),
    (BAND, [28, 52, 74]),
    (OTHER, [150, 155, 164]),
    (LIMIT, [255, 150, 80]),
    (SERIES[0], [240, 180, 50]),
    (SERIES[1], [40, 185, 140]),
    (SERIES[2], [70, 150, 215]),
    (SERIES[3], [225, 150, 190]),
    (SERIES[4], [205, 207, 212]),
    (BOXES[0], [222, 170, 110]),
    (BOXES[1], [80, 200, 155]),
    (BOXES[2], [235, 155, 200]),
];

/// The CSS class of charts. The rules for dark mode apply only to this class, because a page or a notebook may show
/// other drawings.
pub(crate) const CLASS: &str = "packds";

/// Style rules that recolour a chart for viewers in dark mode. `svg` is the chart.
pub(crate) fn dark_rules(svg: &str) -> String {
    let mut rules = String::new();
    for (light, dark) in DARK {
        let dark = hex(dark);
        for kind in ["fill", "stroke"] {
            let found = format!("{kind}=\"{}\"", hex(light));
            if svg.contains(&found) {
                rules.push_str(&format!(".{CLASS} [{found}]{{{kind}:{dark}}}"));
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colours as WCAG defines it, from 1 to 21.
    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let light = |[r, g, b]: Rgb| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05;
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    fn dark(color: Rgb) -> Rgb {
        DARK.iter().find(|(light, _)| *light == color).map(|(_, dark)| *dark).unwrap()
    }

    #[test]
    fn all_text_can_be_read_in_light_and_in_dark() {
        let on = |ink, ground| contrast(ink, ground).min(contrast(dark(ink), dark(ground)));
        for ink in [INK, DIM, OURS, LIMIT] {
            let worst = on(ink, PAPER).min(on(ink, PANEL));
            assert!(worst >= 4.5, "{ink:?}: {worst}");
        }
        for ground in BOXES.into_iter().chain([OURS, OTHER]) {
            assert!(on(PAPER, ground) >= 4.5, "{ground:?}: {}", on(PAPER, ground));
        }
        assert!(on(INK, BAND) >= 4.5 && on(OURS, BAND) >= 4.5);
    }

    #[test]
    fn only_the_colors_of_a_chart_are_recolored() {
        let rules = dark_rules("<path fill=\"#ffffff\"/><path stroke=\"#0062a8\"/>");
        assert_eq!(rules, ".packds [fill=\"#ffffff\"]{fill:#181a1e}.packds [stroke=\"#0062a8\"]{stroke:#62b4f0}");
    }
}
