//! The plot of `packds bench tune --plot`: one panel per batch size. A panel shows the lost time against prefetch, with
//! one line per number of threads.

use packds_bench::{Ahead, TuneBench, TuneRun};

use packds_report::palette::{DIM, GRID, INK, OURS, PANEL, PAPER, SERIES};
use packds_report::{
    Anchor, Axis, Figure, PLAIN, Place, Rgb, SMALL, SUBHEADING, count, fit, text_width, tick_number, whole, wrap,
};

use crate::human::counted;

/// The axis extends at least to this share of the time, in %, because a shorter axis would make small losses look
/// large.
const LEAST_END: f64 = 10.0;
const WIDTH: u32 = 960;
const LEFT: f64 = 64.0;
const TOP: f64 = 120.0;
/// Width and height of a panel, and the gaps between panels.
const PANEL_SIZE: (f64, f64) = (402.0, 200.0);
const BETWEEN: (f64, f64) = (74.0, 74.0);
const COLUMNS: usize = 2;

struct Scale<'a> {
    bench: &'a TuneBench,
    prefetches: Vec<Ahead>,
    threads: Vec<usize>,
    /// The vertical axis, from 0 to the largest share of lost time, in %. 0 is the lower edge of a panel.
    up: Axis,
}

/// The plot of a benchmark of the pack with this name. `notes` are warnings about the results.
pub(crate) fn figure(bench: &TuneBench, name: &str, notes: &[&str]) -> Figure {
    let mut batches: Vec<u32> = bench.runs.iter().map(|run| run.batch).collect();
    batches.dedup();
    let rows = batches.len().div_ceil(COLUMNS);
    let lines = wrap(&subtitle(bench, notes), f64::from(WIDTH) - 32.0, PLAIN.size, false);
    // There is room for two lines.
    let more = 16.0 * count(lines.len().saturating_sub(2));
    let height = TOP + more + (PANEL_SIZE.1 + BETWEEN.1) * count(rows) + 10.0;
    let title = format!("Training time lost to waiting, with steps of {} ms: {name}", tick_number(bench.step_ms));
    let mut figure = Figure::new(WIDTH, whole(height), PAPER, &title);
    figure.heading((16.0, 28.0), INK, &title);
    for (nth, line) in lines.iter().enumerate() {
        figure.text((16.0, 50.0 + 16.0 * count(nth)), Anchor::Start, DIM, line);
    }
    let up = Axis::linear(bench.runs.iter().filter_map(lost).chain([LEAST_END]), 0.0, -PANEL_SIZE.1);
    let mut scale = Scale { bench, prefetches: Vec::new(), threads: Vec::new(), up };
    for run in &bench.runs {
        if !scale.prefetches.contains(&run.prefetch) {
            scale.prefetches.push(run.prefetch);
        }
        if !scale.threads.contains(&run.threads) {
            scale.threads.push(run.threads);
        }
    }
    scale.legend(&mut figure, 90.0 + more);
    for (nth, batch) in batches.iter().enumerate() {
        let (column, row) = (nth % COLUMNS, nth / COLUMNS);
        let left = LEFT + (PANEL_SIZE.0 + BETWEEN.0) * count(column);
        let top = TOP + more + (PANEL_SIZE.1 + BETWEEN.1) * count(row) + 14.0;
        scale.panel(&mut figure, *batch, (left, top));
    }
    figure
}

fn subtitle(bench: &TuneBench, notes: &[&str]) -> String {
    let set = match &bench.recommended {
        Some(best) => format!(
            "Set: {}, prefetch {}, batch {} (large ring; a small ring marks the best of each batch size). Fixed cost: {} \
             ms per epoch.",
            counted(best.threads, "thread"),
            best.prefetch,
            best.batch,
            tick_number(bench.fixed_cost_ms.unwrap_or(0.0))
        ),
        None => "No recommendation, because the pack is too small for these batches.".to_owned(),
    };
    let notes: Vec<String> = notes.iter().map(|note| format!(" {note}.")).collect();
    format!("{set}{} {}, {}", notes.concat(), bench.machine.cpu, counted(bench.machine.cores, "core"))
}

/// The share of the time that training waits, in %. `None` if no wait was measured.
fn lost(run: &TuneRun) -> Option<f64> {
    run.wait_ms.is_some().then_some(run.wait_share * 100.0)
}

impl Scale<'_> {
    fn color(&self, threads: usize) -> Rgb {
        let place = self.threads.iter().position(|n| *n == threads);
        let place = place.unwrap_or(0) % SERIES.len();
        SERIES.get(place).copied().unwrap_or(INK)
    }

    fn legend(&self, figure: &mut Figure, y: f64) {
        let mut x = 16.0;
        for threads in &self.threads {
            let color = self.color(*threads);
            let text = counted(*threads, "thread");
            figure.line(vec![(x, y - 4.0), (x + 22.0, y - 4.0)], 2.0, color);
            figure.dots(vec![(x + 11.0, y - 4.0)], 7.0, color);
            figure.words((x + 28.0, y), Anchor::Start, SMALL, DIM, &text);
            x += 52.0 + text_width(&text, SMALL.size, false);
        }
    }

    fn across(&self, left: f64, prefetch: Ahead) -> f64 {
        let place = self.prefetches.iter().position(|other| *other == prefetch);
        let part = (count(place.unwrap_or(0)) + 0.5) / count(self.prefetches.len().max(1));
        left + PANEL_SIZE.0 * part
    }

    fn place(&self, (left, top): Place, run: &TuneRun) -> Option<Place> {
        let bottom = top + PANEL_SIZE.1;
        let y = bottom + self.up.at(lost(run)?);
        Some((self.across(left, run.prefetch), y))
    }

    fn panel(&self, figure: &mut Figure, batch: u32, corner: Place) {
        let (left, top) = corner;
        let (right, bottom) = (left + PANEL_SIZE.0, top + PANEL_SIZE.1);
        figure.words((left, top - 8.0), Anchor::Start, SUBHEADING, INK, &format!("Batches of {batch}"));
        figure.words((right, top - 8.0), Anchor::End, SMALL, DIM, "% of the training time");
        figure.boxes(vec![[left, top, PANEL_SIZE.0, PANEL_SIZE.1]], PANEL);
        for tick in self.up.ticks(22.0) {
            let y = bottom + self.up.at(tick);
            figure.line(vec![(left, y), (right, y)], 1.0, GRID);
            figure.words((left - 7.0, y + 4.0), Anchor::End, SMALL, DIM, &tick_number(tick));
        }
        let mut free = f64::MIN;
        for prefetch in &self.prefetches {
            let (x, text) = (self.across(left, *prefetch), prefetch.to_string());
            let half = text_width(&text, SMALL.size, false) / 2.0;
            // Labels that would touch the previous label are left out.
            if x - half > free {
                figure.words((x, bottom + 16.0), Anchor::Middle, SMALL, DIM, &text);
                free = x + half + 3.0;
            }
        }
        let middle = left + PANEL_SIZE.0 / 2.0;
        figure.words((middle, bottom + 33.0), Anchor::Middle, SMALL, DIM, "prefetch (batches)");
        self.lines(figure, batch, corner);
    }

    fn lines(&self, figure: &mut Figure, batch: u32, corner: Place) {
        let runs = || self.bench.runs.iter().filter(|run| run.batch == batch);
        for run in runs() {
            let Some(at) = self.place(corner, run) else { continue };
            let of_batch = self.bench.recommended_by_batch.iter().any(|one| one.is(run));
            let recommended = self.bench.recommended.as_ref();
            if recommended.is_some_and(|one| one.is(run)) {
                figure.dots(vec![at], 20.0, OURS);
                figure.dots(vec![at], 16.0, PANEL);
            } else if of_batch {
                figure.dots(vec![at], 14.0, OURS);
                figure.dots(vec![at], 11.0, PANEL);
            }
        }
        // Draw the fewest threads last, so that the cheapest line is on top.
        for threads in self.threads.iter().rev() {
            let of_threads = runs().filter(|run| run.threads == *threads);
            let (fixed, auto): (Vec<&TuneRun>, Vec<&TuneRun>) = of_threads.partition(|run| run.prefetch != Ahead::Auto);
            let places =
                |runs: &[&TuneRun]| -> Vec<Place> { runs.iter().filter_map(|run| self.place(corner, run)).collect() };
            let (fixed, auto) = (places(&fixed), places(&auto));
            let color = self.color(*threads);
            // Auto is not a number, so the line does not include it.
            figure.line(fixed.clone(), 2.0, color);
            figure.dots(fixed.into_iter().chain(auto).collect(), 7.0, color);
        }
        let mut best = self.bench.recommended_by_batch.iter();
        let text = match best.find(|one| one.batch == batch) {
            Some(best) => format!("set: {}, prefetch {}", counted(best.threads, "thread"), best.prefetch),
            None => "the pack is too small".to_owned(),
        };
        let text = fit(&text, PANEL_SIZE.0 / 2.0, SMALL.size, false);
        let at = (corner.0, corner.1 + PANEL_SIZE.1 + 33.0);
        figure.words(at, Anchor::Start, SMALL, OURS, &text);
    }
}
