//! The picture of what the doctor found: the stages of a batch, a bar for each track, and below them the ladder of rates.

use std::path::Path;

use packds_reader::doctor::{Report, Stage};

use crate::bench::palette::{DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER, SERIES};
use crate::figure::{Anchor, Figure, Rgb, SMALL, SUBHEADING, count, whole};
use crate::lettering::{fit, text_width};
use crate::plot_file::PlotFile;

const WIDTH: u32 = 900;
const LEFT: f64 = 150.0;
const ROOM: f64 = 620.0;
const BAR: f64 = 22.0;
const ROW: f64 = 30.0;

/// The picture as SVG text, of a pack or data set of this name.
#[must_use]
pub fn doctor_picture(report: &Report, name: &str) -> String {
    figure(report, name).svg()
}

/// Writes the picture to an .svg or .png file, over one that is there.
///
/// # Errors
/// What the command would say.
pub fn doctor_plot(report: &Report, name: &str, path: &Path) -> Result<(), String> {
    let file = PlotFile::parse(&path.to_string_lossy())?;
    let written = file.write(&figure(report, name), true);
    written.map_err(|failure| failure.text())
}

pub(super) fn figure(report: &Report, name: &str) -> Figure {
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
            format!(
                "The step alone would do {:.0}.",
                report.possible_images_per_s
            )
        } else {
            "No step is known.".to_owned()
        },
        if report.is_short {
            " Times are of too few batches to rely on it."
        } else if report.is_certain {
            ""
        } else {
            " Times differ too much to rely on it."
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

/// A bar for each track, of its stages one after the other.
fn tracks(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(
        figure,
        top,
        "Milliseconds for a batch; bars go on side by side",
    );
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

/// A bar for each level.
fn ladder(figure: &mut Figure, report: &Report, top: f64) -> f64 {
    heading(
        figure,
        top,
        "Images a second, where a batch is cached so far on its way",
    );
    let rates = report.ladder.iter().map(|rung| rung.images_per_s);
    let most = rates.fold(0.0, f64::max);
    let mut y = top + 12.0;
    for rung in &report.ladder {
        row(figure, y, &rung.level.name().replace('_', " "));
        let width = |rate: f64| if most > 0.0 { rate / most * ROOM } else { 0.0 };
        let end = LEFT + width(rung.images_per_s);
        figure.boxes(vec![[LEFT, y, end - LEFT, BAR]], OURS);
        let text = if rung.images_per_s > 0.0 {
            format!("{:.0}", rung.images_per_s)
        } else {
            "not known".to_owned()
        };
        figure.words((end + 6.0, y + 15.0), Anchor::Start, SMALL, DIM, &text);
        y += ROW;
    }
    y
}

fn advice(figure: &mut Figure, report: &Report, top: f64) {
    if report.advice.is_empty() {
        return;
    }
    heading(
        figure,
        top,
        "What each change would give, in images a second",
    );
    let rates = report.advice.iter().map(|advice| advice.images_per_s);
    let most = rates.fold(f64::MIN_POSITIVE, f64::max);
    let mut y = top + 12.0;
    for advice in &report.advice {
        row(figure, y, advice.change);
        let width = advice.images_per_s / most * ROOM;
        figure.boxes(vec![[LEFT, y, width, BAR]], GRID);
        // Quotes of a terminal mean nothing in a picture.
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

/// The name and the ground of a bar.
fn row(figure: &mut Figure, y: f64, name: &str) {
    figure.boxes(vec![[LEFT, y, ROOM, BAR]], PANEL);
    figure.line(vec![(LEFT, y), (LEFT, y + BAR)], 1.0, GRID);
    figure.words((LEFT - 8.0, y + 15.0), Anchor::End, SMALL, INK, name);
}
