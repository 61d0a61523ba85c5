//! The plot of a report: the stages of a batch, one bar per track, and below them the throughput ladder.

use packds_report::palette::{DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER, SERIES};
use packds_report::{Anchor, Figure, Rgb, SMALL, SUBHEADING, count, fit, text_width, whole};

use crate::{Report, Stage};

const WIDTH: u32 = 900;
const LEFT: f64 = 150.0;
const ROOM: f64 = 620.0;
const BAR: f64 = 22.0;
const ROW: f64 = 30.0;

/// The plot of a report. `name` is that of the pack or dataset.
pub fn picture(report: &Report, name: &str) -> Figure {
    let title = format!("{} binds: {name}", report.binds.name());
    let n_rows = report.case.overlap.tracks().len() + report.ladder.len() + report.advice.len();
    let height = 210.0 + ROW * count(n_rows) + if report.advice.is_empty() { 0.0 } else { 40.0 };
    let mut figure = Figure::new(WIDTH, whole(height), PAPER, &title);
    figure.heading((16.0, 28.0), INK, &title);
    let rate = format!(
        "{:.0} images/s in batches of {}. {}{}",
        report.images_per_s,
        report.case.batch,
        if report.possible_images_per_s > 0.0 {
            format!("The step alone would reach {:.0}.", report.possible_images_per_s)
        } else {
            "No step time is known.".to_owned()
        },
        if report.is_short {
            " Unreliable: too few batches were timed."
        } else if report.is_certain {
            ""
        } else {
            " Unreliable: times vary too much."
        }
    );
    figure.text((16.0, 50.0), Anchor::Start, DIM, &rate);
    let below = tracks(&mut figure, report, 84.0);
    let below = ladder(&mut figure, report, below + 34.0);
    advice(&mut figure, report, below + 34.0);
    figure
}

const fn color(stage: Stage) -> Rgb {
    match stage {
        Stage::Step => OURS,
        Stage::Copy => SERIES[0],
        Stage::Transform => SERIES[1],
        Stage::Decode => SERIES[3],
        Stage::Read => OTHER,
    }
}

/// A bar per track, divided into its stages.
fn tracks(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(figure, top, "Milliseconds per batch; bars overlap in time");
    let tracks = report.case.overlap.tracks();
    let most = report.case.overlap.batch_ms(&report.stages);
    let mut y = top + 12.0;
    for track in tracks {
        let names: Vec<&str> = track.iter().map(|stage| stage.name()).collect();
        let name = fit(&names.join(" + "), LEFT - 24.0, SMALL.size, false);
        row(figure, y, &name);
        let mut x = LEFT;
        for stage in *track {
            let ms = report.stages.of(*stage);
            let width = if most > 0.0 { ms / most * ROOM } else { 0.0 };
            figure.boxes(vec![[x, y, width, BAR]], color(*stage));
            let text = format!("{} {ms:.1}", stage.name());
            if text_width(&text, SMALL.size, false) + 8.0 < width {
                let at = (x + 4.0, y + 15.0);
                figure.words(at, Anchor::Start, SMALL, PAPER, &text);
            }
            x += width;
        }
        let all: f64 = track.iter().map(|stage| report.stages.of(*stage)).sum();
        let is_slowest = track.contains(&report.binds);
        let ink = if is_slowest { LIMIT } else { DIM };
        let text = format!("{all:.2} ms{}", if is_slowest { ", binds" } else { "" });
        figure.words((x + 6.0, y + 15.0), Anchor::Start, SMALL, ink, &text);
        y += ROW;
    }
    y
}

/// A bar per level.
fn ladder(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(figure, top, "Images per second with the pipeline cached up to each stage");
    let rates = report.ladder.iter().map(|rung| rung.images_per_s);
    let most = rates.fold(0.0, f64::max);
    let mut y = top + 12.0;
    for rung in &report.ladder {
        row(figure, y, &rung.level.name().replace('_', " "));
        let width = |rate: f64| if most > 0.0 { rate / most * ROOM } else { 0.0 };
        let end = LEFT + width(rung.images_per_s);
        figure.boxes(vec![[LEFT, y, end - LEFT, BAR]], OURS);
        let text = if rung.images_per_s > 0.0 { format!("{:.0}", rung.images_per_s) } else { "unknown".to_owned() };
        figure.words((end + 6.0, y + 15.0), Anchor::Start, SMALL, DIM, &text);
        y += ROW;
    }
    y
}

fn advice(figure: &mut Figure, report: &Report, top: f64) {
    if report.advice.is_empty() {
        return;
    }
    heading(figure, top, "Predicted images per second after each change");
    let rates = report.advice.iter().map(|advice| advice.images_per_s);
    let most = rates.fold(f64::MIN_POSITIVE, f64::max);
    let mut y = top + 12.0;
    for advice in &report.advice {
        row(figure, y, advice.change);
        let width = advice.images_per_s / most * ROOM;
        figure.boxes(vec![[LEFT, y, width, BAR]], GRID);
        // Backquotes are only for the terminal.
        let text = advice.text.replace('`', "");
        let text = format!("{:.0}: {text}", advice.images_per_s);
        let text = fit(&text, ROOM + 100.0, SMALL.size, false);
        figure.words((LEFT + 4.0, y + 15.0), Anchor::Start, SMALL, INK, &text);
        y += ROW;
    }
}

fn heading(figure: &mut Figure, y: f64, text: &str) {
    figure.words((16.0, y), Anchor::Start, SUBHEADING, INK, text);
}

/// Draws the name and the background of a bar.
fn row(figure: &mut Figure, y: f64, name: &str) {
    figure.boxes(vec![[LEFT, y, ROOM, BAR]], PANEL);
    figure.line(vec![(LEFT, y), (LEFT, y + BAR)], 1.0, GRID);
    figure.words((LEFT - 8.0, y + 15.0), Anchor::End, SMALL, INK, name);
}
