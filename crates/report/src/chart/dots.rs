//! A dot chart: named rows with dots on a logarithmic axis. A line extends from each dot to its slow end.

use crate::figure::{Anchor, Figure, Font, PLAIN, Rgb, SMALL, SUBHEADING, count, whole};
use crate::lettering::{fit, text_width};
use crate::palette::{BAND, DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER};

use crate::axis::{Axis, number, tick_label, tick_number};

/// The data of a row: a warm and a cold value, or the reason why it has none.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The name of the row.
    pub label: String,
    /// Text that is appended to the name and never cut off.
    pub sign: String,
    /// Whether the row is highlighted.
    pub ours: bool,
    /// The value if the data is in the page cache.
    pub warm: Option<Mark>,
    /// The value if the data is read from disk.
    pub cold: Option<Mark>,
    /// Why the row has no values.
    pub skipped: Option<String>,
}

/// A value and, if known, its slow end.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The value at the dot.
    pub value: f64,
    /// The value at the end of the line.
    pub slow: Option<f64>,
}

/// A group of rows, the best first.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The title of the group.
    pub heading: String,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
}

/// The chart's data.
#[derive(Debug, Clone)]
pub struct DotChart {
    /// The heading.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// Unit of the numbers, such as `ms`.
    pub unit: String,
    /// The statistic that a dot shows, such as `, median`. May be empty.
    pub kind: &'static str,
    /// The groups of rows, from top to bottom.
    pub panels: Vec<Panel>,
    /// Vertical lines through all rows.
    pub limits: Vec<(String, f64)>,
    /// Values below this one are drawn at this position, because they count as equally good.
    pub floor: Option<f64>,
    /// Lines below the panels.
    pub footnotes: Vec<String>,
}

const WIDTH: u32 = 960;
const RIGHT: f64 = 944.0;
const MARGIN: f64 = 16.0;
/// The plot's left and right edges. Labels are to the left, numbers to the right.
const PLOT: (f64, f64) = (320.0, 800.0);
/// Right edges of the number columns.
const COLUMNS: [f64; 2] = [870.0, RIGHT];
const ROW: f64 = 22.0;
/// Vertical offset of the two dots from the middle of their row.
const APART: f64 = 4.5;
const DOT: f64 = 8.0;
const LINE: f64 = 16.0;
const HEAD: f64 = 86.0;
const OWN: Font = Font { size: 12.0, bold: true };

impl Row {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let marks = self.warm.iter().chain(&self.cold);
        marks.flat_map(|mark| [Some(mark.value), mark.slow].into_iter().flatten())
    }
}

impl DotChart {
    /// Draws the chart. `None` if there is no data.
    pub fn figure(&self) -> Option<Figure> {
        let floor = self.floor.unwrap_or(0.0);
        let rows = self.panels.iter().flat_map(|panel| &panel.rows);
        let values = rows.flat_map(Row::values).map(|value| value.max(floor));
        let values: Vec<f64> = values.collect();
        if values.is_empty() {
            return None;
        }
        let limits = self.limits.iter().map(|(_, value)| *value);
        let axis = Axis::over(values.into_iter().chain(limits).chain(self.floor), PLOT.0, PLOT.1 - PLOT.0)?;
        let levels = levels(&self.limits, &axis);
        let mut heights = self.panels.iter().map(|panel| panel_height(panel, levels.len()));
        let notes = count(self.footnotes.len()) * LINE;
        let height = HEAD + heights.by_ref().sum::<f64>() + notes + 8.0;
        let mut figure = Figure::new(WIDTH, whole(height), PAPER, &self.title);
        figure.heading((MARGIN, 28.0), INK, &self.title);
        figure.text((MARGIN, 49.0), Anchor::Start, DIM, &self.subtitle);
        self.legend(&mut figure, 70.0);
        let mut top = HEAD;
        for panel in &self.panels {
            self.panel(&mut figure, panel, &axis, &levels, top);
            top += panel_height(panel, levels.len());
        }
        for note in &self.footnotes {
            figure.words((MARGIN, top + 4.0), Anchor::Start, SMALL, DIM, note);
            top += LINE;
        }
        Some(figure)
    }

    fn has_cold(&self) -> bool {
        let mut rows = self.panels.iter().flat_map(|panel| &panel.rows);
        rows.any(|row| row.cold.is_some())
    }

    fn legend(&self, figure: &mut Figure, y: f64) {
        let mut rows = self.panels.iter().flat_map(|panel| &panel.rows);
        let slow = rows.any(|row| row.warm.or(row.cold).is_some_and(|mark| mark.slow.is_some()));
        let mut x = MARGIN + 6.0;
        figure.dots(vec![(x, y - 4.0)], DOT, OTHER);
        let mut item = |figure: &mut Figure, text: &str| {
            figure.text((x + 10.0, y), Anchor::Start, DIM, text);
            x += 34.0 + text_width(text, PLAIN.size, false);
            x
        };
        let mut next = item(figure, &format!("in the page cache{}", self.kind));
        if self.has_cold() {
            ring(figure, (next, y - 4.0), OTHER, PAPER);
            next = item(figure, &format!("read from the disk{}", self.kind));
        }
        if slow {
            figure.line(vec![(next - 8.0, y - 4.0), (next + 6.0, y - 4.0)], 1.5, OTHER);
            item(figure, "to the 95th percentile");
        }
    }

    fn panel(&self, figure: &mut Figure, panel: &Panel, axis: &Axis, levels: &[Vec<usize>], top: f64) {
        figure.words((MARGIN, top + 14.0), Anchor::Start, SUBHEADING, INK, &panel.heading);
        let first = top + 24.0 + LINE * count(levels.len());
        let bottom = first + ROW * count(panel.rows.len());
        for (column, name) in COLUMNS.iter().zip(["cached", "disk"]) {
            if name == "cached" || self.has_cold() {
                figure.words((*column, top + 14.0), Anchor::End, SMALL, DIM, name);
            }
        }
        let (left, right) = PLOT;
        figure.boxes(vec![[left, first, right - left, bottom - first]], PANEL);
        let own = panel.rows.iter().enumerate().filter(|(_, row)| row.ours);
        let own: Vec<[f64; 4]> =
            own.map(|(nth, _)| [MARGIN - 6.0, first + ROW * count(nth), RIGHT - MARGIN + 12.0, ROW]).collect();
        if !own.is_empty() {
            figure.boxes(own, BAND);
        }
        self.scale(figure, axis, first, bottom);
        self.limit_lines(figure, axis, levels, first, bottom);
        for (nth, row) in panel.rows.iter().enumerate() {
            self.row(figure, row, axis, first + ROW * (count(nth) + 0.5));
        }
    }

    fn scale(&self, figure: &mut Figure, axis: &Axis, top: f64, bottom: f64) {
        let mut ticks = self.ticks(axis);
        if let Some(floor) = self.floor {
            ticks.retain(|tick| axis.at(*tick) - axis.at(floor) > 46.0);
            ticks.insert(0, floor);
        }
        for tick in ticks {
            let x = axis.at(tick);
            figure.line(vec![(x, top), (x, bottom)], 1.0, GRID);
            let text = tick_label(tick, self.floor);
            figure.words((x, bottom + 15.0), Anchor::Middle, SMALL, DIM, &text);
        }
        let text = format!("{}, log scale", self.unit);
        figure.words((PLOT.0 - 36.0, bottom + 15.0), Anchor::End, SMALL, DIM, &text);
    }

    /// The densest set of ticks whose labels do not overlap.
    fn ticks(&self, axis: &Axis) -> Vec<f64> {
        let wide = |tick: &f64| text_width(&tick_number(*tick), SMALL.size, false);
        let widest = axis.ticks(1.0).iter().map(wide).fold(30.0, f64::max);
        axis.ticks(widest + 8.0)
    }

    fn limit_lines(&self, figure: &mut Figure, axis: &Axis, levels: &[Vec<usize>], first: f64, bottom: f64) {
        for (level, limits) in levels.iter().enumerate() {
            let y = first - 6.0 - LINE * count(level);
            for (name, value) in limits.iter().filter_map(|nth| self.limits.get(*nth)) {
                let x = axis.at(*value);
                figure.dashes(vec![(x, y + 3.0), (x, bottom)], 1.5, LIMIT);
                let text = limit_text(name, *value);
                let (x, anchor) = limit_place(x, &text);
                figure.words((x, y), anchor, SMALL, LIMIT, &text);
            }
        }
    }

    fn row(&self, figure: &mut Figure, row: &Row, axis: &Axis, y: f64) {
        let (font, color) = if row.ours { (OWN, OURS) } else { (PLAIN, OTHER) };
        let width = PLOT.0 - MARGIN - 14.0;
        let sign = text_width(&row.sign, font.size, font.bold);
        let label = fit(&row.label, width - sign, font.size, font.bold);
        let label = format!("{label}{}", row.sign);
        let ink = if row.ours { OURS } else { INK };
        figure.words((PLOT.0 - 12.0, y + 4.0), Anchor::End, font, ink, &label);
        let behind = if row.ours { BAND } else { PANEL };
        let floor = self.floor.unwrap_or(0.0);
        if let (None, None, Some(reason)) = (row.warm, row.cold, &row.skipped) {
            let (left, right) = PLOT;
            let text = fit(reason, right - left - 16.0, SMALL.size, false);
            // Grid and limit lines would cross the text, and would show between two rows of text.
            figure.boxes(vec![[left, y - ROW / 2.0, right - left, ROW]], behind);
            figure.words((PLOT.0 + 8.0, y + 4.0), Anchor::Start, SMALL, DIM, &text);
        }
        // The dots are one above the other, because both can have the same value.
        let apart = if row.warm.is_some() && row.cold.is_some() { APART } else { 0.0 };
        for (mark, y) in [(row.warm, y - apart), (row.cold, y + apart)] {
            let Some(Mark { value, slow: Some(slow) }) = mark else { continue };
            let (from, to) = (axis.at(value.max(floor)), axis.at(slow.max(floor)));
            figure.line(vec![(from, y), (to, y)], 1.5, color);
            figure.line(vec![(to, y - 3.0), (to, y + 3.0)], 1.5, color);
        }
        if let Some(mark) = row.warm {
            figure.dots(vec![(axis.at(mark.value.max(floor)), y - apart)], DOT, color);
        }
        if let Some(mark) = row.cold {
            ring(figure, (axis.at(mark.value.max(floor)), y + apart), color, behind);
        }
        for (column, mark) in COLUMNS.iter().zip([row.warm, row.cold]) {
            if let Some(mark) = mark {
                let text = match self.floor {
                    Some(floor) if mark.value <= floor => tick_label(floor, self.floor),
                    _ => number(mark.value),
                };
                figure.words((*column, y + 4.0), Anchor::End, font, ink, &text);
            }
        }
    }
}

fn ring(figure: &mut Figure, at: (f64, f64), color: Rgb, inside: Rgb) {
    figure.dots(vec![at], DOT + 0.5, color);
    figure.dots(vec![at], DOT - 3.5, inside);
}

fn limit_text(name: &str, value: f64) -> String {
    format!("{name} {}", tick_number(value))
}

/// Centres the text on its line, but keeps it inside the plot.
fn limit_place(x: f64, text: &str) -> (f64, Anchor) {
    let half = text_width(text, SMALL.size, false) / 2.0;
    if x + half > PLOT.1 {
        (PLOT.1, Anchor::End)
    } else if x - half < PLOT.0 {
        (PLOT.0, Anchor::Start)
    } else {
        (x, Anchor::Middle)
    }
}

/// Distributes the names of the limits over lines of text so that they do not overlap.
fn levels(limits: &[(String, f64)], axis: &Axis) -> Vec<Vec<usize>> {
    // Left and right end of each name, and the position of its limit.
    let span = |(name, value): &(String, f64)| {
        let (text, line) = (limit_text(name, *value), axis.at(*value));
        let width = text_width(&text, SMALL.size, false);
        let (x, anchor) = limit_place(line, &text);
        let start = anchor.left(x, width);
        (start, start + width, line)
    };
    let spans: Vec<(f64, f64, f64)> = limits.iter().map(span).collect();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (nth, (start, end, line)) in spans.iter().enumerate() {
        let is_apart = |(s, e, _): &(f64, f64, f64)| e + 10.0 < *start || end + 10.0 < *s;
        let free = |level: &Vec<usize>| level.iter().filter_map(|other| spans.get(*other)).all(is_apart);
        // The line of a limit runs downward from its name, so it must not cross a name below.
        let is_crossed = |(s, e, _): &(f64, f64, f64)| (s - 3.0..e + 3.0).contains(line);
        let crossed = |level: &Vec<usize>| level.iter().filter_map(|other| spans.get(*other)).any(is_crossed);
        let place = levels.iter().position(free).filter(|place| !levels.iter().take(*place).any(crossed));
        match place.and_then(|place| levels.get_mut(place)) {
            Some(level) => level.push(nth),
            None => levels.push(vec![nth]),
        }
    }
    levels
}

fn panel_height(panel: &Panel, levels: usize) -> f64 {
    24.0 + LINE * count(levels) + ROW * count(panel.rows.len()) + 34.0
}
