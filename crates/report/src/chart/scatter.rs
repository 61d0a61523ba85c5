//! The chart of size and speed: one dot per format, with the format's name. Names do not overlap.

use crate::figure::{Anchor, Figure, Font, Place, SMALL, count};
use crate::lettering::{fit, text_width};
use crate::palette::{DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL};

use super::layout::{LINE, Layout, MARGIN};
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

pub(super) const DOT: f64 = 11.0;
/// Minimum distance between ticks of the vertical axis.
const UP: f64 = 24.0;
/// Distance from the lines at the top to the plot.
const ABOVE: f64 = 35.0;
/// Height of the numbers and words below the plot.
const BELOW: f64 = 62.0;

impl Scatter {
    /// Draws the chart. `None` if there is no data. In a narrow chart, points have numbers, and a list below has the
    /// names.
    pub fn figure(&self, layout: Layout) -> Option<Figure> {
        let head = layout.head(&self.title, &self.subtitle);
        let (top, height) = (head.height + ABOVE, if layout == Layout::Wide { 454.0 } else { 320.0 });
        let up = Axis::over(self.points.iter().map(|p| p.y), top + height, -height)?;
        let left = match layout {
            Layout::Wide => 88.0,
            Layout::Narrow => MARGIN + 8.0 + widest(&up),
        };
        let width = layout.right() - left;
        let plot = [left, top, width, height];
        let line = self.line.iter().map(|(_, value)| *value);
        let xs = self.points.iter().map(|point| point.x).chain(line);
        let across = Axis::over(xs, left, width)?;
        let (points, names) = self.labelled(layout);
        let (right, bottom) = (left + width, top + height);
        let mut figure = head.figure(layout, bottom + BELOW + LINE * count(names.len()), &self.title);
        figure.words((MARGIN, top - 10.0), Anchor::Start, SMALL, DIM, &self.up);
        figure.boxes(vec![plot], PANEL);
        for tick in across.ticks(50.0) {
            let x = across.at(tick);
            figure.line(vec![(x, top), (x, bottom)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((x, bottom + 17.0), Anchor::Middle, SMALL, DIM, &text);
        }
        for tick in up.ticks(UP) {
            let y = up.at(tick);
            figure.line(vec![(left, y), (right, y)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((left - 8.0, y + 4.0), Anchor::End, SMALL, DIM, &text);
        }
        figure.words((right, bottom + 38.0), Anchor::End, SMALL, DIM, &self.across);
        let mut taken = Taken::new(plot);
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
        draw(&points, &mut figure, (&across, &up), taken);
        for (nth, (point, name)) in points.iter().zip(&names).enumerate() {
            let y = bottom + BELOW + LINE * count(nth);
            let ink = if point.ours { OURS } else { INK };
            figure.words((MARGIN + 16.0, y), Anchor::End, label_font(point), ink, &point.label);
            let font = label_font(point);
            let name = fit(name, layout.right() - MARGIN - 24.0, font.size, font.bold);
            figure.words((MARGIN + 24.0, y), Anchor::Start, font, ink, &name);
        }
        Some(figure)
    }

    /// The points with their labels. In a narrow chart, the labels are numbers, fastest first, and the names are also
    /// returned in this order.
    fn labelled(&self, layout: Layout) -> (Vec<Point>, Vec<String>) {
        let mut points = self.points.clone();
        if layout == Layout::Wide {
            return (points, Vec::new());
        }
        points.sort_by(|a, b| b.y.total_cmp(&a.y));
        let number = |(nth, point): (usize, &mut Point)| std::mem::replace(&mut point.label, (nth + 1).to_string());
        let names = points.iter_mut().enumerate().map(number).collect();
        (points, names)
    }
}

/// The width of the widest number of the vertical axis.
fn widest(up: &Axis) -> f64 {
    let wide = |tick: f64| text_width(&tick_number(tick), SMALL.size, false);
    up.ticks(UP).into_iter().map(wide).fold(0.0, f64::max)
}

/// Draws the points and their labels.
fn draw(points: &[Point], figure: &mut Figure, (across, up): (&Axis, &Axis), taken: Taken) {
    let place = |point: &Point| (across.at(point.x), up.at(point.y));
    let places: Vec<Place> = points.iter().map(place).collect();
    let names = names(points, &places, taken);
    for (point, name) in points.iter().zip(&names) {
        if let Some(Name { leader: (from, to), .. }) = name {
            let far = (to.0 - from.0).hypot(to.1 - from.1);
            if far > DOT {
                let color = if point.ours { OURS } else { OTHER };
                figure.line(vec![*from, *to], 1.0, color);
            }
        }
    }
    let all = points.iter().zip(&places).zip(&names);
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

pub(super) fn label_font(point: &Point) -> Font {
    Font { size: 11.5, bold: point.ours }
}
