//! Renders a report of `packds bench formats` as SVG and PNG charts, and as an HTML page. Nothing is measured here.

mod page;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packds_bench::formats::report::{FormatRow, Report, RunRow};
use packds_report::chart::{DotChart, Mark, Panel, Point, Row, Scatter};
use packds_report::{Figure, tick_number};

use crate::failure::Failure;
use crate::human::{counted, to_f64};
use crate::output::replace_file;

/// Shorter waits are negligible and drawn at this value, in ms.
const LEAST_WAIT: f64 = 0.01;

const NAMES: [&str; 8] = [
    "batch-time",
    "batch-time-sequential",
    "batch-time-per-sample",
    "batch-time-chunk",
    "throughput",
    "size-speed-warm",
    "size-speed-cold",
    "training-wait",
];

struct Chart {
    name: String,
    /// The conclusion, in a sentence.
    says: String,
    figure: Figure,
}

/// Writes `charts/*.svg`, `charts/*.png` and `report.html`, and removes charts that only an earlier run had. Returns the paths.
pub(crate) fn write_all(report: &Report, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let charts = charts(report);
    let folder = dir.join("charts");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder, &error))?;
    let mut written = Vec::new();
    let mut write = |path: PathBuf, bytes: &[u8]| {
        replace_file(&path, bytes)?;
        written.push(path);
        Ok::<(), Failure>(())
    };
    for Chart { name, figure, .. } in &charts {
        write(folder.join(format!("{name}.svg")), figure.svg().as_bytes())?;
        write(folder.join(format!("{name}.png")), &figure.png()?)?;
    }
    // The page shows all orders in one chart. Charts of single orders are for slides.
    let shown: Vec<&Chart> = charts.iter().filter(|chart| !chart.says.is_empty()).collect();
    write(dir.join("report.html"), page::html(report, &shown).as_bytes())?;
    remove_stale(&folder, &written)?;
    Ok(written)
}

/// Removes charts that an earlier run left and that would look like new ones. Other files stay.
fn remove_stale(folder: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    for name in NAMES {
        for kind in ["svg", "png"] {
            let path = folder.join(format!("{name}.{kind}"));
            if written.contains(&path) {
                continue;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let what = format!("cannot remove a chart of an earlier run: {error}");
                    return Err(Failure::not_run(what).at(&path));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn charts(report: &Report) -> Vec<Chart> {
    let (view, times) = (View::new(report), View::of_batches(report));
    let orders: Vec<&str> = report.options.orders.iter().map(String::as_str).collect();
    let mut charts = Vec::new();
    let mut add = |name: String, says: &str, figure: Option<Figure>| {
        charts.extend(figure.map(|figure| Chart { name, says: says.to_owned(), figure }));
    };
    add(
        "batch-time".to_owned(),
        "Mean time per batch. Further left is faster. The line extends to the 95th percentile of the time from one batch to the next.",
        times.batch_times(&orders).figure(),
    );
    if orders.len() > 1 {
        for order in &orders {
            let name = format!("batch-time-{}", file_part(order));
            add(name, "", times.batch_times(&[order]).figure());
        }
    }
    add(
        "throughput".to_owned(),
        "Images per second, with the hardware limits. Further right is faster.",
        view.throughput(&orders).figure(),
    );
    for cache in ["warm", "cold"] {
        if let Some((order, chart)) = view.size_and_speed(cache) {
            let says = format!(
                "Size on disk and read speed, order {}. The best formats are at the upper left.",
                order_name(order)
            );
            add(format!("size-speed-{cache}"), &says, chart.figure());
        }
    }
    if report.options.step_ms > 0.0 {
        add(
            "training-wait".to_owned(),
            "Time that a training step waits for its batch while the loader runs in parallel. Further left is better.",
            view.waits(&orders).figure(),
        );
    }
    charts
}

/// The runs that a chart shows: those with one number of threads.
struct View<'a> {
    report: &'a Report,
    threads: usize,
}

impl<'a> View<'a> {
    /// The runs with the most threads.
    fn new(report: &'a Report) -> Self {
        let threads = report.runs.iter().map(|run| run.threads).max();
        Self { report, threads: threads.unwrap_or(1) }
    }

    /// The runs with the fewest threads. They show the time per batch: with several threads, batches arrive in groups.
    fn of_batches(report: &'a Report) -> Self {
        let threads = report.options.threads.iter().copied().min();
        Self { report, threads: threads.unwrap_or(1) }
    }

    fn run(&self, format: &str, order: &str, cache: &str, step: bool) -> Option<&'a RunRow> {
        let fits = |run: &&RunRow| {
            run.format == format
                && run.order == order
                && run.cache == cache
                && run.threads == self.threads
                && (run.step_ms > 0.0) == step
        };
        self.report.runs.iter().find(fits)
    }

    /// Whether there is any result. A format without results is listed only on the page.
    fn is_measured(&self, format: &FormatRow) -> bool {
        self.report.runs.iter().any(|run| run.format == format.format && run.images_per_s.is_some())
    }

    /// One panel for each order with rows, sorted by `value`, the best first.
    fn panels(
        &self,
        orders: &[&str],
        step: bool,
        more_is_better: bool,
        floor: Option<f64>,
        value: impl Fn(&RunRow) -> Option<Mark>,
    ) -> Vec<Panel> {
        let panel = |order: &&str| {
            let row = |format: &FormatRow| {
                let runs = ["warm", "cold"].map(|cache| self.run(&format.format, order, cache, step));
                let [warm, cold] = runs.map(|run| run.and_then(&value));
                let skipped = runs.iter().flatten().find_map(|run| run.skipped.clone());
                let shown = warm.is_some() || cold.is_some() || (skipped.is_some() && self.is_measured(format));
                shown.then(|| Row {
                    label: format.title.clone(),
                    sign: sign(format),
                    ours: is_ours(format),
                    warm,
                    cold,
                    skipped,
                })
            };
            let mut rows: Vec<Row> = self.report.formats.iter().filter_map(row).collect();
            let sign = if more_is_better { -1.0 } else { 1.0 };
            let least = floor.unwrap_or(0.0);
            let key = |row: &Row| match row.warm.or(row.cold) {
                // Below the floor, all medians are equally good, so the order follows the 95th percentile.
                Some(mark) if mark.value <= least => mark.slow.unwrap_or(0.0).min(least) * 1e-9,
                Some(mark) => mark.value * sign,
                None => f64::MAX,
            };
            rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
            Panel { heading: heading(order), rows }
        };
        orders.iter().map(panel).filter(|panel| !panel.rows.is_empty()).collect()
    }

    fn batch_times(&self, orders: &[&str]) -> DotChart {
        // The median can be the time to take a batch that was already ready.
        let panels = self.panels(orders, false, false, None, |run| {
            let value = run.mean_batch_ms()?;
            let slow = run.batch_ms.map(|ms| ms.p95).filter(|slow| *slow > value);
            Some(Mark { value, slow })
        });
        let title = format!("Mean time per batch of {}, in ms", counted(self.report.options.batch, "image"));
        self.dot_chart(title, "ms", ", mean", panels)
    }

    /// A chart without limits or floor.
    fn dot_chart(&self, title: String, unit: &str, kind: &'static str, panels: Vec<Panel>) -> DotChart {
        DotChart {
            title,
            subtitle: self.subtitle(),
            unit: unit.to_owned(),
            kind,
            footnotes: self.footnotes(&panels),
            panels,
            limits: Vec::new(),
            floor: None,
        }
    }

    fn throughput(&self, orders: &[&str]) -> DotChart {
        let rate = |run: &RunRow| run.images_per_s.map(|value| Mark { value, slow: None });
        let panels = self.panels(orders, false, true, None, rate);
        let limits = &self.report.limits;
        let of_threads = |rates: &std::collections::BTreeMap<usize, f64>| rates.get(&self.threads).copied();
        let known = [
            ("decoding PNG", of_threads(&limits.decode_images_per_s)),
            ("disk read", limits.disk_read_images_per_s.get("cold").copied()),
            ("memcpy", of_threads(&limits.memcpy_images_per_s)),
        ];
        let title = "Images per second, with hardware limits".to_owned();
        let limits = known.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), rate?))).collect();
        DotChart { limits, ..self.dot_chart(title, "images/s", "", panels) }
    }

    fn waits(&self, orders: &[&str]) -> DotChart {
        let step_ms = self.report.options.step_ms;
        let panels = self.panels(orders, true, false, Some(LEAST_WAIT), |run| {
            run.wait_ms.map(|ms| Mark { value: ms.median, slow: Some(ms.p95) })
        });
        let title = format!("Wait for a batch in ms, with training steps of {} ms", tick_number(step_ms));
        let limits = vec![("one step:".to_owned(), step_ms)];
        DotChart { limits, floor: Some(LEAST_WAIT), ..self.dot_chart(title, "ms", ", median", panels) }
    }

    /// The order in which most formats were measured. Random orders are preferred.
    fn size_and_speed(&self, cache: &str) -> Option<(&'a str, Scatter)> {
        let points = |order: &str| -> Vec<Point> {
            let point = |format: &FormatRow| {
                let run = self.run(&format.format, order, cache, false)?;
                Some(Point {
                    label: label(format),
                    ours: is_ours(format),
                    x: to_f64(format.bytes_on_disk?) / to_f64(self.report.data.n_images.max(1)) / 1e3,
                    y: run.images_per_s?,
                })
            };
            self.report.formats.iter().filter_map(point).collect()
        };
        // On ties `max_by_key` takes the last.
        let orders = self.report.options.orders.iter();
        let order = orders.max_by_key(|order| (points(order).len(), *order == "chunk"))?;
        let points = points(order);
        if points.is_empty() {
            return None;
        }
        let state = if cache == "warm" { "in the page cache" } else { "read from disk" };
        let data = &self.report.data;
        let chart = Scatter {
            title: format!("Size on disk and speed, {state}"),
            subtitle: format!("Order: {}. {}", order_name(order), self.subtitle()),
            across: "KiB per image on disk, log scale".to_owned(),
            up: "images/s, log scale; up and to the left is better".to_owned(),
            line: Some(("raw pixels".to_owned(), to_f64(data.bytes_per_image) / 1024.0)),
            points,
        };
        Some((order, chart))
    }

    fn subtitle(&self) -> String {
        let report = self.report;
        let data = &report.data;
        let threads = counted(self.threads, "thread");
        format!(
            "{} images of {}x{}x{}, batches of {}, {threads}; {}",
            tick_number(to_f64(data.n_images)),
            data.height,
            data.width,
            data.channels,
            report.options.batch,
            report.machine.cpu
        )
    }

    fn footnotes(&self, panels: &[Panel]) -> Vec<String> {
        let marked = |sign: &str| panels.iter().flat_map(|p| &p.rows).any(|row| row.sign.contains(sign));
        let mut notes = Vec::new();
        if marked(LOSSY) {
            notes.push(format!("{LOSSY} lossy: pixels differ, so compare with care"));
        }
        let missing = self.report.formats.iter().filter(|format| !self.is_measured(format)).count();
        if missing > 0 {
            notes.push(format!("Not measured: {missing}; see the report for the reasons"));
        }
        if self.report.options.quick {
            notes.push("Quick run: rough, do not cite.".to_owned());
        }
        notes
    }
}

const LOSSY: &str = "†";

fn label(format: &FormatRow) -> String {
    format!("{}{}", format.title, sign(format))
}

/// Marks that follow the name of a format wherever it appears.
fn sign(format: &FormatRow) -> String {
    let is_python = format.runtime == "python" && !format.title.to_lowercase().contains("python");
    let python = if is_python { " (Python)" } else { "" };
    let lossy = if format.lossless { String::new() } else { format!(" {LOSSY}") };
    format!("{python}{lossy}")
}

fn is_ours(format: &FormatRow) -> bool {
    format.format.starts_with("packds")
}

/// Description of an order within a sentence.
fn order_name(order: &str) -> &str {
    match order {
        "sequential" => "as stored",
        "per-sample" => "every sample at random",
        "chunk" => "whole chunks at random",
        other => other,
    }
}

fn heading(order: &str) -> String {
    match order {
        "sequential" => "In stored order".to_owned(),
        "per-sample" => "Every sample at random".to_owned(),
        "chunk" => "Whole chunks at random, samples as stored".to_owned(),
        other => format!("Order: {other}"),
    }
}

fn file_part(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
    };
    name.chars().map(safe).collect()
}

#[cfg(test)]
mod tests;
