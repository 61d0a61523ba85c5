//! The positions of the names, the plot and the numbers in a chart of named rows, for wide pages and for phones.

use crate::axis::{Axis, tick_number};
use crate::figure::{Anchor, Figure, Font, HEADING, PLAIN, Rgb, SMALL, count, whole};
use crate::lettering::{fit, text_width, wrap};
use crate::palette::{DIM, GRID, INK, PAPER};

/// Margin around a chart.
pub(super) const MARGIN: f64 = 16.0;
/// Height of a line of small text.
pub(super) const LINE: f64 = 16.0;
/// Height of a line of a title.
const TITLE: f64 = 21.0;

/// The shape of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// 960 units wide. Each name is to the left of its row.
    Wide,
    /// 376 units wide. Each name is above its row.
    Narrow,
}

impl Layout {
    /// The width of the chart.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::Wide => 960,
            Self::Narrow => 376,
        }
    }

    /// The right edge of everything in the chart.
    pub(super) fn right(self) -> f64 {
        f64::from(self.width()) - MARGIN
    }

    /// The left and right edges of the plot.
    pub(super) fn plot(self) -> (f64, f64) {
        match self {
            Self::Wide => (320.0, 760.0),
            Self::Narrow => (MARGIN, self.right()),
        }
    }

    /// The height of the names above their rows.
    pub(super) fn above(self) -> f64 {
        match self {
            Self::Wide => 0.0,
            Self::Narrow => 18.0,
        }
    }

    /// The baseline and alignment of a name whose row has this middle and height.
    fn name_at(self, middle: f64, height: f64) -> ((f64, f64), Anchor) {
        match self {
            Self::Wide => ((self.plot().0 - 12.0, middle + 4.0), Anchor::End),
            Self::Narrow => ((MARGIN, middle - height / 2.0 - 4.0), Anchor::Start),
        }
    }

    /// Draws the name of a row. `sign` is never cut off. If the name is above the row, it leaves `room` for the numbers
    /// next to it, and `behind` is the background colour.
    pub(super) fn name(
        self,
        figure: &mut Figure,
        (middle, height, room): (f64, f64, f64),
        (font, ink, behind): (Font, Rgb, Rgb),
        (name, sign): (&str, &str),
    ) {
        let (at, anchor) = self.name_at(middle, height);
        if self == Self::Narrow {
            // Grid lines would cross the name and the numbers.
            let (left, right) = self.plot();
            figure.boxes(vec![[left, middle - height / 2.0 - self.above(), right - left, self.above()]], behind);
        }
        let width = match self {
            Self::Wide => at.0 - MARGIN,
            Self::Narrow => self.right() - MARGIN - room,
        };
        let name = fit(name, width - text_width(sign, font.size, font.bold), font.size, font.bold);
        figure.words(at, anchor, font, ink, &format!("{name}{sign}"));
    }

    /// The title and the line below it, in as many lines as they need.
    pub(super) fn head(self, title: &str, subtitle: &str) -> Head {
        let width = self.right() - MARGIN;
        let title = wrap(title, width, HEADING.size, true);
        let subtitle = wrap(subtitle, width, PLAIN.size, false);
        let height = 12.0 + TITLE * count(title.len()) + LINE * count(subtitle.len());
        Head { title, subtitle, height }
    }

    /// Footnotes in lines that fit.
    pub(super) fn notes(self, notes: &[String]) -> Vec<String> {
        notes.iter().flat_map(|note| wrap(note, self.right() - MARGIN, SMALL.size, false)).collect()
    }

    /// Draws the ticks of the plot: lines from top to bottom and numbers below. `unit` is the unit of the numbers.
    pub(super) fn scale(self, figure: &mut Figure, axis: &Axis, (top, bottom): (f64, f64), unit: &str) {
        let mut free = 0.0;
        for tick in Self::ticks(axis) {
            let (x, text) = (axis.at(tick), tick_number(tick));
            figure.line(vec![(x, top), (x, bottom)], 1.0, GRID);
            let (x, anchor) = self.inside(x, &text);
            let width = text_width(&text, SMALL.size, false);
            let start = anchor.left(x, width);
            // A number that was moved into the plot may touch the previous number.
            if start >= free {
                figure.words((x, bottom + 15.0), anchor, SMALL, DIM, &text);
                free = start + width + 6.0;
            }
        }
        match self {
            Self::Wide => figure.words((self.plot().0 - 36.0, bottom + 15.0), Anchor::End, SMALL, DIM, unit),
            Self::Narrow => figure.words((self.right(), bottom + 31.0), Anchor::End, SMALL, DIM, unit),
        }
    }

    /// The densest ticks whose numbers do not overlap.
    pub(super) fn ticks(axis: &Axis) -> Vec<f64> {
        let wide = |tick: &f64| text_width(&tick_number(*tick), SMALL.size, false);
        let widest = axis.ticks(1.0).iter().map(wide).fold(30.0, f64::max);
        axis.ticks(widest + 8.0)
    }

    /// The height of the numbers and the unit below a plot.
    pub(super) fn below(self) -> f64 {
        match self {
            Self::Wide => 36.0,
            Self::Narrow => 50.0,
        }
    }

    /// The position and alignment of small text that is centred at `x`, or as close to `x` as the plot allows.
    pub(super) fn inside(self, x: f64, text: &str) -> (f64, Anchor) {
        let half = text_width(text, SMALL.size, false) / 2.0;
        let (left, right) = self.plot();
        if x + half > right {
            (right, Anchor::End)
        } else if x - half < left {
            (left, Anchor::Start)
        } else {
            (x, Anchor::Middle)
        }
    }
}

/// The lines at the top of a chart.
pub(super) struct Head {
    title: Vec<String>,
    subtitle: Vec<String>,
    pub(super) height: f64,
}

impl Head {
    /// A figure of this width and height that begins with these lines.
    pub(super) fn figure(&self, layout: Layout, height: f64, title: &str) -> Figure {
        let mut figure = Figure::new(layout.width(), whole(height), PAPER, title);
        let mut y = 28.0;
        for line in &self.title {
            figure.heading((MARGIN, y), INK, line);
            y += TITLE;
        }
        for line in &self.subtitle {
            figure.text((MARGIN, y), Anchor::Start, DIM, line);
            y += LINE;
        }
        figure
    }
}
