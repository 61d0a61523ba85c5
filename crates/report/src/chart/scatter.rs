//! The chart of size and speed: one dot per format, with the format's name. Names do not overlap.

use crate::figure::{Anchor, Figure, Font, Place, SMALL};
use crate::lettering::text_width;
use crate::palette::{DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER};

use super::names::{Name, Taken, names};
use crate::axis::{Axis, tick_number};

/// A named point.
#[derive(Debug, Clone)]
pub struct Point {
    /// The name of the point.
    pub label: String,
    /// Whether the point is highlighted.
    pub ours: bool,
    /// The size of the format's data.
    pub x: f64,
    /// The speed of the format.
    pub y: f64,
}

/// The chart's data.
#[derive(Debug, Clone)]
pub struct Scatter {
    /// The heading.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// What the horizontal axis shows.
    pub across: String,
    /// What the vertical axis shows.
    pub up: String,
    /// One point for each row of the data.
    pub points: Vec<Point>,
    /// A labelled reference line at this position on the horizontal axis.
    pub line: Option<(String, f64)>,
}

const SIZE: (u32, u32) = (960, 600);
/// Left, top, width and height of the plot.
pub(super) const PLOT: [f64; 4] = [88.0, 84.0, 856.0, 454.0];
pub(super) const DOT: f64 = 11.0;

impl Scatter {
    /// Draws the chart. `None` if there is no data.
    pub fn figure(&self) -> Option<Figure> {
        let [left, top, width, height] = PLOT;
        let line = self.line.iter().map(|(_, value)| *value);
        let xs = self.points.iter().map(|point| point.x).chain(line);
        let across = Axis::over(xs, left, width)?;
        let up = Axis::over(self.points.iter().map(|p| p.y), top + height, -height)?;
        let mut figure = Figure::new(SIZE.0, SIZE.1, PAPER, &self.title);
        figure.heading((16.0, 28.0), INK, &self.title);
        figure.text((16.0, 49.0), Anchor::Start, DIM, &self.subtitle);
        figure.words((16.0, 74.0), Anchor::Start, SMALL, DIM, &self.up);
        figure.boxes(vec![PLOT], PANEL);
        let (right, bottom) = (left + width, top + height);
        for tick in across.ticks(50.0) {
            let x = across.at(tick);
            figure.line(vec![(x, top), (x, bottom)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((x, bottom + 17.0), Anchor::Middle, SMALL, DIM, &text);
        }
        for tick in up.ticks(24.0) {
            let y = up.at(tick);
            figure.line(vec![(left, y), (right, y)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((left - 8.0, y + 4.0), Anchor::End, SMALL, DIM, &text);
        }
        figure.words((right, bottom + 38.0), Anchor::End, SMALL, DIM, &self.across);
        let mut taken = Taken::default();
        if let Some((name, value)) = &self.line {
            let at = across.at(*value);
            figure.dashes(vec![(at, top), (at, bottom)], 1.5, LIMIT);
            let wide = text_width(name, SMALL.size, false);
            let ends = at + wide + 8.0 > right;
            let (x, anchor) = if ends { (at - 6.0, Anchor::End) } else { (at + 6.0, Anchor::Start) };
            let start = anchor.left(x, wide);
            figure.words((x, bottom - 8.0), anchor, SMALL, LIMIT, name);
            taken.areas.push([start, bottom - 20.0, start + wide, bottom - 4.0]);
            taken.lines.push([at - 2.0, top, at + 2.0, bottom]);
        }
        self.points(&mut figure, &across, &up, taken);
        Some(figure)
    }

    fn points(&self, figure: &mut Figure, across: &Axis, up: &Axis, taken: Taken) {
        let place = |point: &Point| (across.at(point.x), up.at(point.y));
        let places: Vec<Place> = self.points.iter().map(place).collect();
        let names = names(&self.points, &places, taken);
        for (point, name) in self.points.iter().zip(&names) {
            if let Some(Name { leader: (from, to), .. }) = name {
                let far = (to.0 - from.0).hypot(to.1 - from.1);
                if far > DOT {
                    let color = if point.ours { OURS } else { OTHER };
                    figure.line(vec![*from, *to], 1.0, color);
                }
            }
        }
        let all = self.points.iter().zip(&places).zip(&names);
        let (ours, others): (Vec<_>, Vec<_>) = all.partition(|((point, _), _)| point.ours);
        // Draw packds last so that it is on top.
        for ((point, at), name) in others.into_iter().chain(ours) {
            let color = if point.ours { OURS } else { OTHER };
            let size = if point.ours { DOT + 3.0 } else { DOT };
            figure.dots(vec![*at], size, color);
            if let Some(Name { at, anchor, .. }) = name {
                let ink = if point.ours { OURS } else { INK };
                figure.words(*at, *anchor, label_font(point), ink, &point.label);
            }
        }
    }
}

pub(super) fn label_font(point: &Point) -> Font {
    Font { size: 11.5, bold: point.ours }
}
