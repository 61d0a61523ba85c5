//! A bar chart: named bars from zero on a linear axis. Each bar has its number and unit.

use super::layout::{LINE, Layout, MARGIN};
use crate::axis::{Axis, number};
use crate::figure::{Anchor, Figure, Font, PLAIN, SMALL, count};
use crate::lettering::{fit, text_width};
use crate::palette::{DIM, INK, OTHER, OURS, PANEL};

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The name of the bar.
    pub label: String,
    /// Text that is appended to the name and never cut off.
    pub sign: String,
    /// Whether the bar is highlighted.
    pub ours: bool,
    /// The value, or why there is none.
    pub value: Result<f64, String>,
}

/// The chart's data.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// The heading.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// Unit of the values, such as `ms`.
    pub unit: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
    /// Minimum length of the axis, such as 100 %. Longer bars extend it.
    pub end: f64,
    /// Lines below the bars.
    pub footnotes: Vec<String>,
}

const BAR: f64 = 18.0;
const GAP: f64 = 8.0;
const OWN: Font = Font { size: 12.0, bold: true };

impl BarChart {
    /// Draws the chart.
    pub fn figure(&self, layout: Layout) -> Figure {
        let head = layout.head(&self.title, &self.subtitle);
        let notes = layout.notes(&self.footnotes);
        let top = head.height + 12.0;
        let bottom = top + (layout.above() + BAR + GAP) * count(self.bars.len());
        let height = bottom + layout.below() + LINE * count(notes.len()) + 4.0;
        let mut figure = head.figure(layout, height, &self.title);
        let (left, right) = layout.plot();
        let values = self.bars.iter().filter_map(|bar| bar.value.as_ref().ok().copied());
        let axis = Axis::linear(values.chain([self.end]), left, right - left);
        figure.boxes(vec![[left, top, right - left, bottom - top]], PANEL);
        layout.scale(&mut figure, &axis, (top, bottom), &self.unit);
        for (nth, bar) in self.bars.iter().enumerate() {
            let top = top + (layout.above() + BAR + GAP) * count(nth) + layout.above() + GAP / 2.0;
            self.bar(&mut figure, bar, &axis, layout, top);
        }
        for (nth, note) in notes.iter().enumerate() {
            let y = bottom + layout.below() + LINE * count(nth);
            figure.words((MARGIN, y), Anchor::Start, SMALL, DIM, note);
        }
        figure
    }

    fn bar(&self, figure: &mut Figure, bar: &Bar, axis: &Axis, layout: Layout, top: f64) {
        let (font, ink) = if bar.ours { (OWN, OURS) } else { (PLAIN, INK) };
        let middle = top + BAR / 2.0;
        let (left, right) = layout.plot();
        let text = match &bar.value {
            Ok(value) => {
                let color = if bar.ours { OURS } else { OTHER };
                figure.boxes(vec![[left, top, axis.at(*value) - left, BAR]], color);
                format!("{} {}", number(*value), self.unit)
            }
            Err(reason) => {
                // Grid lines would cross the text.
                figure.boxes(vec![[left, top - GAP / 2.0, right - left, BAR + GAP]], PANEL);
                let reason = fit(reason, right - left - 16.0, SMALL.size, false);
                figure.words((left + 8.0, middle + 4.0), Anchor::Start, SMALL, DIM, &reason);
                String::new()
            }
        };
        let room = text_width(&text, font.size, font.bold) + 12.0;
        layout.name(figure, (middle, BAR, room), (font, ink, PANEL), (&bar.label, &bar.sign));
        let (at, anchor) = match (layout, &bar.value) {
            (Layout::Wide, Ok(value)) => {
                let start = axis.at(*value) + 2.0;
                // Grid lines would cross the number.
                figure.boxes(vec![[start, top, room.min(right - start).max(0.0), BAR]], PANEL);
                ((start + 6.0, middle + 4.0), Anchor::Start)
            }
            _ => ((layout.right(), top - 4.0), Anchor::End),
        };
        figure.words(at, anchor, font, ink, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[Result<f64, String>]) -> BarChart {
        let bar = |(nth, value): (usize, &Result<f64, String>)| Bar {
            label: format!("a very long name of a format that nobody can read aloud, number {nth}"),
            sign: " (Python)".to_owned(),
            ours: nth == 0,
            value: value.clone(),
        };
        BarChart {
            title: "Images per second".to_owned(),
            subtitle: "of nothing".to_owned(),
            unit: "images/s".to_owned(),
            bars: values.iter().enumerate().map(bar).collect(),
            end: 0.0,
            footnotes: Vec::new(),
        }
    }

    #[test]
    fn bars_start_at_zero_and_have_numbers_and_units() {
        let chart =
            chart(&[Ok(1_000_000.0), Ok(500_000.0), Ok(0.5), Ok(0.0), Err("not part of this build".to_owned())]);
        let svg = chart.figure(Layout::Wide).svg();
        for bar in ["M320 65h440v18", "M320 91h220v18", "M320 143h0v18"] {
            assert!(svg.contains(bar), "{bar}: {svg}");
        }
        for text in ["1,000,000 images/s<", ">0.500 images/s<", ">0 images/s<", "not part of this build", "… (Python)<"]
        {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn a_narrow_chart_has_names_above_bars() {
        let values: Vec<Result<f64, String>> = (0..40).map(|nth| Ok(f64::from(nth))).collect();
        let svg = chart(&values).figure(Layout::Narrow).svg();
        assert!(svg.contains("width=\"376\"") && svg.contains("M16 "), "{svg}");
        assert!(chart(&[]).figure(Layout::Narrow).svg().contains("Images per second"));
    }
}
