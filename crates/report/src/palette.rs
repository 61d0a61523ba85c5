//! Colours of benchmark charts, distinct for all kinds of colour vision. Each colour has a substitute for dark pages.

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
pub const LIMIT: Rgb = [196, 78, 0];
/// Colours of lines, in the order of the quantities that they show.
pub const SERIES: [Rgb; 7] =
    [[230, 159, 0], [0, 158, 115], [0, 114, 178], [204, 121, 167], [60, 60, 66], [86, 180, 233], [150, 88, 30]];

/// Each chart colour with its substitute for dark pages.
const DARK: [(Rgb, Rgb); 9] = [
    (PAPER, [24, 26, 30]),
    (PANEL, [32, 35, 40]),
    (INK, [236, 238, 242]),
    (DIM, [168, 173, 182]),
    (GRID, [62, 67, 75]),
    (OURS, [98, 180, 240]),
    (BAND, [28, 52, 74]),
    (OTHER, [150, 155, 164]),
    (LIMIT, [255, 150, 80]),
];

/// Style rules that recolour the charts for a dark page.
pub(crate) fn dark_rules() -> String {
    let rule = |(light, dark): &(Rgb, Rgb)| {
        let (light, dark) = (hex(*light), hex(*dark));
        format!("svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    };
    DARK.iter().map(rule).collect()
}
