//! The plot of a report: the stages of a batch with one bar per track, the throughput ladder, and the advice.

use packds_report::palette::{BOXES, DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER};
use packds_report::{
    Anchor, Figure, HEADING, PLAIN, Rgb, SMALL, SUBHEADING, count, fit, number, text_width, whole, wrap,
};

use crate::document::{NOISE, doubt};
use crate::{Advice, Report, Stage};

const WIDTH: u32 = 960;
const MARGIN: f64 = 16.0;
/// Left edge and width of the longest bar.
const LEFT: f64 = 190.0;
const ROOM: f64 = 600.0;
const BAR: f64 = 22.0;
const ROW: f64 = 30.0;
const LINE: f64 = 16.0;
/// Space above the heading of a part.
const ABOVE: f64 = 34.0;

/// The plot of a report on the pack or dataset `name`, measured on `machine`.
pub fn picture(report: &Report, name: &str, machine: &str) -> Figure {
    let title = format!("{} binds: {name}", report.binds.name());
    let width = f64::from(WIDTH) - 2.0 * MARGIN;
    let titles = wrap(&title, width, HEADING.size, true);
    let advice: Vec<(&Advice, Vec<String>)> = report.advice.iter().map(|advice| (advice, lines(advice))).collect();
    let n_rows = report.case.overlap.tracks().len() + report.ladder.len() + advice.len();
    let n_stages = report.case.overlap.tracks().iter().filter(|track| track.len() > 1).count();
    let n_lines = n_stages + advice.iter().map(|(_, lines)| lines.len()).sum::<usize>();
    let n_parts = 2 + usize::from(!advice.is_empty());
    let summary = wrap(&summary(report, machine), width, PLAIN.size, false);
    let below_titles = 32.0 + 21.0 * count(titles.len());
    let top = below_titles + LINE * count(summary.len().saturating_sub(1));
    let height = top + ROW * count(n_rows) + LINE * count(n_lines) + (ABOVE + 12.0) * count(n_parts);
    let mut figure = Figure::new(WIDTH, whole(height), PAPER, &title);
    for (nth, line) in titles.iter().enumerate() {
        figure.heading((MARGIN, 28.0 + 21.0 * count(nth)), INK, line);
    }
    for (nth, line) in summary.iter().enumerate() {
        figure.text((MARGIN, below_titles - 4.0 + LINE * count(nth)), Anchor::Start, DIM, line);
    }
    let below = tracks(&mut figure, report, top + ABOVE);
    let below = ladder(&mut figure, report, below + ABOVE);
    if !advice.is_empty() {
        show_advice(&mut figure, &advice, below + ABOVE);
    }
    figure
}

/// The rates, how reliable they are, and the machine.
fn summary(report: &Report, machine: &str) -> String {
    let possible = match report.possible_images_per_s > 0.0 {
        true => format!("The step alone would reach {}.", number(report.possible_images_per_s)),
        false => "No step time is known.".to_owned(),
    };
    let marked = report.advice.iter().any(|advice| advice.within_spread).then(|| NOISE.to_owned());
    let notes: Vec<String> =
        doubt(report).into_iter().chain(marked).map(|note| format!(" {}.", capital(&note))).collect();
    let (rate, batch) = (number(report.images_per_s), report.case.batch);
    format!("{rate} images/s in batches of {batch}. {possible}{} {machine}", notes.concat())
}

/// The text with a capital letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The text of advice, in lines below its bar.
fn lines(advice: &Advice) -> Vec<String> {
    // Backquotes are only for the terminal.
    wrap(&advice.text.replace('`', ""), f64::from(WIDTH) - LEFT - MARGIN, SMALL.size, false)
}

const fn color(stage: Stage) -> Rgb {
    match stage {
        Stage::Step => OURS,
        Stage::Copy => BOXES[0],
        Stage::Transform => BOXES[1],
        Stage::Decode => BOXES[2],
        Stage::Read => OTHER,
    }
}

/// Draws a bar per track, divided into its stages. Returns the y position below them.
fn tracks(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(figure, top, "Milliseconds per batch; bars overlap in time");
    let tracks = report.case.overlap.tracks();
    let most = report.case.overlap.batch_ms(&report.stages);
    let mut y = top + 12.0;
    for track in tracks {
        let names: Vec<&str> = track.iter().map(|stage| stage.name()).collect();
        row(figure, y, &names.join(" + "));
        let mut x = LEFT;
        let named = |stage: &Stage| format!("{} {}", stage.name(), number(report.stages.of(*stage)));
        for stage in *track {
            let ms = report.stages.of(*stage);
            let width = if most > 0.0 { ms / most * ROOM } else { 0.0 };
            // A gap separates stages for readers who cannot tell the colours apart.
            figure.boxes(vec![[x, y, (width - 1.0).max(0.0), BAR]], color(*stage));
            let text = named(stage);
            if text_width(&text, SMALL.size, false) + 8.0 < width {
                figure.words((x + 4.0, y + 15.0), Anchor::Start, SMALL, PAPER, &text);
            }
            x += width;
        }
        let all: f64 = track.iter().map(|stage| report.stages.of(*stage)).sum();
        let binds = track.contains(&report.binds);
        let text = format!("{} ms{}", number(all), if binds { ", binds" } else { "" });
        after(figure, (x, y), if binds { LIMIT } else { DIM }, &text);
        if track.len() > 1 {
            // The bars of short stages have no room for their names.
            let all: Vec<String> = track.iter().map(named).collect();
            figure.words((LEFT, y + BAR + 13.0), Anchor::Start, SMALL, DIM, &all.join(", "));
            y += LINE;
        }
        y += ROW;
    }
    y
}

/// Draws a bar per level. Returns the y position below them.
fn ladder(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(figure, top, "Images per second with the pipeline cached up to each stage");
    let most = report.ladder.iter().map(|rung| rung.images_per_s).fold(f64::MIN_POSITIVE, f64::max);
    let mut y = top + 12.0;
    for rung in &report.ladder {
        row(figure, y, &rung.level.name().replace('_', " "));
        let text = match rung.images_per_s > 0.0 {
            true => format!("{} images/s", number(rung.images_per_s)),
            false => "unknown".to_owned(),
        };
        rate_bar(figure, y, rung.images_per_s / most, OURS, &text);
        y += ROW;
    }
    y
}

fn show_advice(figure: &mut Figure, advice: &[(&Advice, Vec<String>)], top: f64) {
    heading(figure, top, "Predicted images per second after each change");
    let most = advice.iter().map(|(advice, _)| advice.images_per_s).fold(f64::MIN_POSITIVE, f64::max);
    let mut y = top + 12.0;
    for (advice, lines) in advice {
        row(figure, y, advice.change);
        let mark = if advice.within_spread { " *" } else { "" };
        let text = format!("{} images/s{mark}", number(advice.images_per_s));
        rate_bar(figure, y, advice.images_per_s / most, OTHER, &text);
        y += BAR;
        for line in lines {
            figure.words((LEFT, y + 13.0), Anchor::Start, SMALL, DIM, line);
            y += LINE;
        }
        y += ROW - BAR;
    }
}

/// Draws a bar with its number. `part` is its length relative to the longest bar.
fn rate_bar(figure: &mut Figure, y: f64, part: f64, color: Rgb, text: &str) {
    figure.boxes(vec![[LEFT, y, part * ROOM, BAR]], color);
    after(figure, (LEFT + part * ROOM, y), DIM, text);
}

/// Draws text to the right of a bar that ends at `x`.
fn after(figure: &mut Figure, (x, y): (f64, f64), ink: Rgb, text: &str) {
    figure.words((x + 6.0, y + 15.0), Anchor::Start, SMALL, ink, text);
}

fn heading(figure: &mut Figure, y: f64, text: &str) {
    figure.words((MARGIN, y), Anchor::Start, SUBHEADING, INK, text);
}

/// Draws the name and the background of a bar.
fn row(figure: &mut Figure, y: f64, name: &str) {
    figure.boxes(vec![[LEFT, y, ROOM, BAR]], PANEL);
    figure.line(vec![(LEFT, y), (LEFT, y + BAR)], 1.0, GRID);
    let name = fit(name, LEFT - 8.0 - MARGIN, SMALL.size, false);
    figure.words((LEFT - 8.0, y + 15.0), Anchor::End, SMALL, INK, &name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Facts, Loading, Overlap, Time, diagnose};

    #[test]
    fn stages_that_are_too_short_for_their_names_are_named_below_the_bar() {
        let ms = Time::exactly;
        let loading =
            Loading { processed: ms(0.1), decoded: ms(0.2), raw: ms(400.0), page_cache: ms(400.0), source: ms(400.1) };
        let report = diagnose(Case {
            batch: 100,
            overlap: Overlap::Nothing,
            step: ms(0.0),
            step_is_modelled: true,
            copy: ms(0.3),
            loading,
            read: ms(0.1),
            trained: None,
            facts: Facts { threads: 1, cores: 4, ..Facts::default() },
        });
        let svg = picture(&report, &"a very long name ".repeat(20), "a machine").svg();
        assert!(svg.contains(">step 0, copy 0.300, transform 0.200, decode 400, read 0.100<"), "{svg}");
        assert!(svg.contains(">unknown<") && svg.contains("No step time is known."), "{svg}");
        // The whole name is there, in several lines.
        assert_eq!(svg.matches("very").count(), 2 * 20, "{svg}");
    }
}
