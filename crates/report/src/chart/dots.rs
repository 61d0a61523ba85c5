//! A dot chart: named rows with dots on a logarithmic axis, or on a linear one from zero. A line extends from each dot
//! to the slow end of its range.

use super::layout::{LINE, Layout, MARGIN};
use crate::axis::{Axis, number, tick_number};
use crate::figure::{Anchor, Figure, Font, PLAIN, Rgb, SMALL, count};
use crate::lettering::{fit, text_width};
use crate::palette::{BAND, DIM, INK, LIMIT, OTHER, OURS, PANEL, PAPER};

/// The data of a row: a warm value, a cold value or both, or the reason why it has neither.
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

/// A value and, if known, the slow end of its range.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The value at the dot.
    pub value: f64,
    /// The value at the end of the line.
    pub slow: Option<f64>,
}

/// The chart's data.
#[derive(Debug, Clone, Default)]
pub struct DotChart {
    /// The heading.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// Unit of the numbers, such as `ms`.
    pub unit: String,
    /// The statistic that a dot shows, such as `, median`. May be empty.
    pub kind: &'static str,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// Vertical lines through all rows.
    pub limits: Vec<(String, f64)>,
    /// Values that the axis must also include, such as those of other charts that are compared with this one.
    pub room_for: Vec<f64>,
    /// The axis is linear and extends from zero to at least this value. `None` if the axis is logarithmic.
    pub linear_to: Option<f64>,
    /// Lines below the rows.
    pub footnotes: Vec<String>,
}

/// Width of a column of numbers.
const COLUMN: f64 = 88.0;
const ROW: f64 = 22.0;
/// Vertical offset of the two dots from the middle of their row.
const APART: f64 = 4.5;
const DOT: f64 = 8.0;
const OWN: Font = Font { size: 12.0, bold: true };

impl Row {
    /// All values of the row.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let marks = self.warm.iter().chain(&self.cold);
        marks.flat_map(|mark| [Some(mark.value), mark.slow].into_iter().flatten())
    }
}

impl DotChart {
    /// Draws the chart. `None` if there is no data.
    pub fn figure(&self, layout: Layout) -> Option<Figure> {
        if self.rows.iter().all(|row| row.values().next().is_none()) {
            return None;
        }
        let axis = self.axis(layout)?;
        let head = layout.head(&self.title, &self.subtitle);
        let levels = levels(&self.limits, &axis, layout);
        let notes = layout.notes(&self.footnotes);
        let legend = self.legend(layout);
        let legend_height = LINE * legend.last().map_or(0.0, |(_, (_, y))| y + 1.0);
        let first = head.height + legend_height + LINE * (count(levels.len()) + 1.0) + 12.0;
        let bottom = first + (ROW + layout.above()) * count(self.rows.len());
        let height = bottom + layout.below() + LINE * count(notes.len()) + 4.0;
        let mut figure = head.figure(layout, height, &self.title);
        self.draw_legend(&mut figure, legend, head.height + LINE + 4.0);
        self.plot(&mut figure, &axis, layout, (first, bottom));
        let heads = self.columns(layout).into_iter().zip(["cached", "disk"]);
        for (x, name) in heads.filter_map(|(column, name)| Some((column?, name))) {
            let y = first - 6.0 - LINE * count(levels.len());
            figure.words((x, y), Anchor::End, SMALL, DIM, name);
        }
        limit_lines(&mut figure, &self.limits, &axis, &levels, (first, bottom), layout);
        for (nth, row) in self.rows.iter().enumerate() {
            let middle = first + (ROW + layout.above()) * (count(nth) + 1.0) - ROW / 2.0;
            self.row(&mut figure, row, &axis, middle, layout);
        }
        for (nth, note) in notes.iter().enumerate() {
            let y = bottom + layout.below() + LINE * count(nth);
            figure.words((MARGIN, y), Anchor::Start, SMALL, DIM, note);
        }
        Some(figure)
    }

    fn axis(&self, layout: Layout) -> Option<Axis> {
        let (left, right) = layout.plot();
        let values = self.rows.iter().flat_map(Row::values).chain(self.room_for.iter().copied());
        let values = values.chain(self.limits.iter().map(|(_, value)| *value));
        match self.linear_to {
            Some(end) => Some(Axis::linear(values.chain([end]), left, right - left)),
            None => Axis::over(values, left, right - left),
        }
    }

    fn has_cold(&self) -> bool {
        self.rows.iter().any(|row| row.cold.is_some())
    }

    /// The entries of the legend, each with its left edge and line.
    fn legend(&self, layout: Layout) -> Vec<(Entry, (f64, f64))> {
        let slow = self.rows.iter().any(|row| row.warm.or(row.cold).is_some_and(|mark| mark.slow.is_some()));
        let mut entries = Vec::new();
        entries.extend(self.has_warm().then(|| Entry::Warm(format!("in the page cache{}", self.kind))));
        entries.extend(self.has_cold().then(|| Entry::Cold(format!("read from the disk{}", self.kind))));
        entries.extend(slow.then(|| Entry::Slow("to the 95th percentile".to_owned())));
        let (mut x, mut line) = (MARGIN, 0.0);
        let place = |entry: Entry| {
            let wide = 40.0 + text_width(entry.text(), PLAIN.size, false);
            if x > MARGIN && x + wide > layout.right() {
                (x, line) = (MARGIN, line + 1.0);
            }
            x += wide;
            (entry, (x - wide, line))
        };
        entries.into_iter().map(place).collect()
    }

    fn draw_legend(&self, figure: &mut Figure, entries: Vec<(Entry, (f64, f64))>, y: f64) {
        for (entry, (x, line)) in entries {
            let (x, y) = (x + 6.0, y + LINE * line);
            match entry {
                Entry::Warm(_) => figure.dots(vec![(x, y - 4.0)], DOT, OTHER),
                Entry::Cold(_) => ring(figure, (x, y - 4.0), OTHER, PAPER),
                Entry::Slow(_) => figure.line(vec![(x - 6.0, y - 4.0), (x + 6.0, y - 4.0)], 1.5, OTHER),
            }
            figure.text((x + 12.0, y), Anchor::Start, DIM, entry.text());
        }
    }

    /// Draws the background, the bands of highlighted rows, and the scale.
    fn plot(&self, figure: &mut Figure, axis: &Axis, layout: Layout, (first, bottom): (f64, f64)) {
        let (left, right) = layout.plot();
        figure.boxes(vec![[left, first, right - left, bottom - first]], PANEL);
        let high = ROW + layout.above();
        let own = self.rows.iter().enumerate().filter(|(_, row)| row.ours);
        let band = |nth: usize| [MARGIN - 6.0, first + high * count(nth), layout.right() - MARGIN + 12.0, high];
        let own: Vec<[f64; 4]> = own.map(|(nth, _)| band(nth)).collect();
        if !own.is_empty() {
            figure.boxes(own, BAND);
        }
        let what = if self.linear_to.is_some() { self.unit.clone() } else { format!("{}, log scale", self.unit) };
        layout.scale(figure, axis, (first, bottom), &what);
    }

    fn has_warm(&self) -> bool {
        self.rows.iter().any(|row| row.warm.is_some())
    }

    /// The right edges of the two columns of numbers, warm and cold. `None` for a column that is not shown.
    fn columns(&self, layout: Layout) -> [Option<f64>; 2] {
        let right = layout.right();
        match (self.has_warm(), self.has_cold()) {
            (true, true) => [Some(right - COLUMN), Some(right)],
            (true, false) => [Some(right), None],
            (false, _) => [None, Some(right)],
        }
    }

    fn row(&self, figure: &mut Figure, row: &Row, axis: &Axis, y: f64, layout: Layout) {
        let (font, color) = if row.ours { (OWN, OURS) } else { (PLAIN, OTHER) };
        let ink = if row.ours { OURS } else { INK };
        let columns = self.columns(layout);
        // The first column's number is drawn next to the name, so leave room for it.
        let first = row.warm.or(row.cold).map_or(0.0, |mark| text_width(&number(mark.value), font.size, font.bold));
        let room = COLUMN * count(columns.iter().flatten().count().saturating_sub(1)) + first + 10.0;
        let behind = if row.ours { BAND } else { PANEL };
        layout.name(figure, (y, ROW, room), (font, ink, behind), (&row.label, &row.sign));
        if let (None, None, Some(reason)) = (row.warm, row.cold, &row.skipped) {
            let (left, right) = layout.plot();
            let text = fit(reason, right - left - 16.0, SMALL.size, false);
            // Grid and limit lines would cross the text, and would show between two rows of text.
            figure.boxes(vec![[left, y - ROW / 2.0, right - left, ROW]], behind);
            figure.words((left + 8.0, y + 4.0), Anchor::Start, SMALL, DIM, &text);
        }
        // The dots are one above the other, because both can have the same value.
        let apart = if row.warm.is_some() && row.cold.is_some() { APART } else { 0.0 };
        for (mark, y) in [(row.warm, y - apart), (row.cold, y + apart)] {
            let Some(Mark { value, slow: Some(slow) }) = mark else { continue };
            let (from, to) = (axis.at(value), axis.at(slow));
            figure.line(vec![(from, y), (to, y)], 1.5, color);
            figure.line(vec![(to, y - 3.0), (to, y + 3.0)], 1.5, color);
        }
        if let Some(mark) = row.warm {
            figure.dots(vec![(axis.at(mark.value), y - apart)], DOT, color);
        }
        if let Some(mark) = row.cold {
            ring(figure, (axis.at(mark.value), y + apart), color, behind);
        }
        let baseline = match layout {
            Layout::Wide => y + 4.0,
            Layout::Narrow => y - ROW / 2.0 - 4.0,
        };
        for (column, mark) in columns.into_iter().zip([row.warm, row.cold]) {
            if let Some((x, mark)) = column.zip(mark) {
                figure.words((x, baseline), Anchor::End, font, ink, &number(mark.value));
            }
        }
    }
}

/// An entry of the legend, with its text.
enum Entry {
    Warm(String),
    Cold(String),
    Slow(String),
}

impl Entry {
    fn text(&self) -> &str {
        match self {
            Self::Warm(text) | Self::Cold(text) | Self::Slow(text) => text,
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

fn limit_lines(
    figure: &mut Figure,
    limits: &[(String, f64)],
    axis: &Axis,
    levels: &[Vec<usize>],
    (first, bottom): (f64, f64),
    layout: Layout,
) {
    let mut names = Vec::new();
    for (level, of_level) in levels.iter().enumerate() {
        let y = first - 6.0 - LINE * count(level);
        for (name, value) in of_level.iter().filter_map(|nth| limits.get(*nth)) {
            let x = axis.at(*value);
            figure.dashes(vec![(x, y + 3.0), (x, bottom)], 1.5, LIMIT);
            names.push((x, y, limit_text(name, *value)));
        }
    }
    for (x, y, text) in names {
        let (x, anchor) = layout.inside(x, &text);
        let width = text_width(&text, SMALL.size, false);
        // The dashed line to a name above would cross this text.
        figure.boxes(vec![[anchor.left(x, width) - 2.0, y - 10.0, width + 4.0, 13.0]], PAPER);
        figure.words((x, y), anchor, SMALL, LIMIT, &text);
    }
}

/// Distributes the names of the limits over lines of text so that they do not overlap.
fn levels(limits: &[(String, f64)], axis: &Axis, layout: Layout) -> Vec<Vec<usize>> {
    // Left and right end of each name, and the position of its limit.
    let span = |(name, value): &(String, f64)| {
        let (text, line) = (limit_text(name, *value), axis.at(*value));
        let width = text_width(&text, SMALL.size, false);
        let (x, anchor) = layout.inside(line, &text);
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
