//! Renders a report of `packds bench formats` as SVG and PNG charts, and as an HTML page. Nothing is measured here.

mod page;

use std::cmp::Ordering;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packds_bench::OrderName;
use packds_bench::formats::report::{FormatRow, Report, RunRow};
use packds_report::chart::{Bar, BarChart, DotChart, Layout, Mark, Point, Row, Scatter};
use packds_report::{Figure, tick_number};
use packds_system::Named;

use crate::failure::Failure;
use crate::human::{counted, to_f64};
use crate::output::replace_file;

/// Maximum number of bars in a summary chart.
const MAX_BARS: usize = 8;
const FOLDER: &str = "charts";
/// The page with all charts and tables.
pub(crate) const PAGE: &str = "report.html";

/// A chart. Its files are called `name`, with the extensions .svg and .png.
struct Chart {
    name: String,
    wide: Figure,
    /// The chart for narrow windows.
    narrow: Figure,
}

/// Charts that show the same quantity for several orders or states of the page cache.
struct Topic {
    heading: &'static str,
    /// A sentence that says what the charts show.
    says: &'static str,
    charts: Vec<Chart>,
}

/// The charts of a report.
struct Charts {
    /// The summary charts at the top of the page. Each shows one order and one state of the page cache.
    answers: Vec<Chart>,
    details: Vec<Topic>,
}

impl Charts {
    fn all(&self) -> impl Iterator<Item = &Chart> {
        self.answers.iter().chain(self.details.iter().flat_map(|topic| &topic.charts))
    }
}

/// Writes `charts/*.svg`, `charts/*.png` and `report.html`, and returns their paths. Removes charts left by an earlier
/// run.
pub(crate) fn write_all(report: &Report, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let charts = charts(report);
    let folder = dir.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder, &error))?;
    let mut written = Vec::new();
    let mut write = |path: PathBuf, bytes: &[u8]| {
        replace_file(&path, bytes)?;
        written.push(path);
        Ok::<(), Failure>(())
    };
    for Chart { name, wide, .. } in charts.all() {
        write(folder.join(format!("{name}.svg")), wide.svg().as_bytes())?;
        write(folder.join(format!("{name}.png")), &wide.png()?)?;
    }
    write(dir.join(PAGE), page::html(report, &charts).as_bytes())?;
    remove_stale(&folder, &written)?;
    Ok(written)
}

/// Removes charts left by an earlier run, because they would look like results of this one. Other files are kept.
fn remove_stale(folder: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    for name in names() {
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

/// The names of all charts that a report can have.
fn names() -> Vec<String> {
    let of_orders = |what| OrderName::NAMES.iter().map(move |order| chart_name(what, order));
    let of_orders = ["throughput", "batch-time", "training-wait"].into_iter().flat_map(of_orders);
    let others = ["speed", "lost-time", "size-speed-warm", "size-speed-cold"].map(str::to_owned);
    of_orders.chain(others).collect()
}

fn chart_name(what: &str, order: &str) -> String {
    format!("{what}-{order}")
}

fn charts(report: &Report) -> Charts {
    let (view, times) = (View::new(report), View::of_batches(report));
    let mut answers: Vec<Chart> = view.speed().iter().map(|chart| of_bars("speed", chart)).collect();
    let mut details = vec![
        Topic {
            heading: "Images per second",
            says: "Images per second in each order, with the hardware limits. Further right is faster.",
            charts: view.throughput(),
        },
        Topic {
            heading: "Time per batch",
            says: "Mean time per batch in each order. Further left is faster. Lines extend to the 95th percentile of the time from one batch to the next.",
            charts: times.batch_times(),
        },
        Topic {
            heading: "Size on disk",
            says: "Size on disk and speed. The best formats are at the upper left.",
            charts: ["warm", "cold"].into_iter().filter_map(|cache| view.size_and_speed(cache)).collect(),
        },
    ];
    if report.options.step_ms > 0.0 {
        answers.extend(view.lost_time().iter().map(|chart| of_bars("lost-time", chart)));
        details.push(Topic {
            heading: "Training time lost",
            says: "Share of the training time that is spent waiting for batches, in each order. Further left is better.",
            charts: view.waits(),
        });
    }
    details.retain(|topic| !topic.charts.is_empty());
    Charts { answers, details }
}

fn of_bars(name: &str, chart: &BarChart) -> Chart {
    Chart { name: name.to_owned(), wide: chart.figure(Layout::Wide), narrow: chart.figure(Layout::Narrow) }
}

/// The runs that a chart shows. All have the same number of threads.
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

    /// The runs with the fewest threads. They show the time per batch, because with several threads, batches arrive in
    /// groups.
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

    /// The rows of an order, sorted by `value`, the best first.
    fn rows(&self, order: &str, step: bool, more_is_better: bool, value: impl Fn(&RunRow) -> Option<Mark>) -> Vec<Row> {
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
        let key = |row: &Row| row.warm.or(row.cold).map_or(f64::MAX, |mark| mark.value * sign);
        rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
        rows
    }

    /// Makes a chart like `chart` for each order. All have the same axis, so that they can be compared.
    fn of_orders(&self, what: &str, chart: &DotChart, rows: impl Fn(&str) -> Vec<Row>) -> Vec<Chart> {
        let orders: Vec<(&str, Vec<Row>)> = self.orders().map(|order| (order, rows(order))).collect();
        let room_for: Vec<f64> = orders.iter().flat_map(|(_, rows)| rows).flat_map(Row::values).collect();
        let draw = |(order, rows): (&str, Vec<Row>)| {
            let footnotes = self.footnotes(rows.iter().any(|row| row.sign.contains(LOSSY)));
            let title = format!("{}: {}", chart.title, order_name(order));
            let room_for = room_for.clone();
            let chart = DotChart { title, subtitle: self.subtitle(), rows, room_for, footnotes, ..chart.clone() };
            let wide = chart.figure(Layout::Wide)?;
            Some(Chart { name: chart_name(what, order), wide, narrow: chart.figure(Layout::Narrow)? })
        };
        orders.into_iter().filter_map(draw).collect()
    }

    fn orders(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.report.options.orders.iter().map(String::as_str)
    }

    fn batch_times(&self) -> Vec<Chart> {
        let title = format!("Mean time per batch of {} in ms", counted(self.report.options.batch, "image"));
        let chart = DotChart { title, unit: "ms".to_owned(), kind: ", mean", ..DotChart::default() };
        // Shows the mean: with several threads, the median may only be the time to take a batch that was already ready.
        let mark = |run: &RunRow| {
            let value = run.mean_batch_ms()?;
            let slow = run.batch_ms.map(|ms| ms.p95).filter(|slow| *slow > value);
            Some(Mark { value, slow })
        };
        self.of_orders("batch-time", &chart, |order| self.rows(order, false, false, mark))
    }

    fn throughput(&self) -> Vec<Chart> {
        let limits = &self.report.limits;
        let of_threads = |rates: &std::collections::BTreeMap<usize, f64>| rates.get(&self.threads).copied();
        let known = [
            ("decoding PNG", of_threads(&limits.decode_images_per_s)),
            ("disk read", limits.disk_read_images_per_s.get("cold").copied()),
            ("memcpy", of_threads(&limits.memcpy_images_per_s)),
        ];
        let limits = known.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), rate?))).collect();
        let title = "Images per second".to_owned();
        let chart = DotChart { title, unit: "images/s".to_owned(), limits, ..DotChart::default() };
        let mark = |run: &RunRow| run.images_per_s.map(|value| Mark { value, slow: None });
        self.of_orders("throughput", &chart, |order| self.rows(order, false, true, mark))
    }

    fn waits(&self) -> Vec<Chart> {
        let chart =
            DotChart { title: self.lost(), unit: "%".to_owned(), linear_to: Some(100.0), ..DotChart::default() };
        let mark = |run: &RunRow| run.wait_share.map(|share| Mark { value: share * 100.0, slow: None });
        self.of_orders("training-wait", &chart, |order| self.rows(order, true, false, mark))
    }

    /// The title of a chart that shows lost time.
    fn lost(&self) -> String {
        let step = tick_number(self.report.options.step_ms);
        format!("Training time lost to waiting, in %, with steps of {step} ms")
    }

    /// The summary chart of speed.
    fn speed(&self) -> Option<BarChart> {
        let bars = self.best_of_kinds(false, |run| run.images_per_s, |a, b| b.total_cmp(a))?;
        Some(BarChart { title: "Images per second".to_owned(), unit: "images/s".to_owned(), ..bars })
    }

    /// The summary chart of the time that training loses.
    fn lost_time(&self) -> Option<BarChart> {
        let share = |run: &RunRow| run.wait_share.map(|share| share * 100.0);
        let bars = self.best_of_kinds(true, share, f64::total_cmp)?;
        Some(BarChart { title: self.lost(), unit: "%".to_owned(), end: 100.0, ..bars })
    }

    /// A summary chart with the best format of each kind, always including packds.
    fn best_of_kinds(
        &self,
        step: bool,
        value: impl Fn(&RunRow) -> Option<f64>,
        order_of: impl Fn(&f64, &f64) -> Ordering,
    ) -> Option<BarChart> {
        let caches = ["warm", "cold"];
        let (order, cache) = caches.into_iter().find_map(|cache| Some((self.widest_order(cache, step)?, cache)))?;
        let measured = |format: &'a FormatRow| {
            let run = self.run(&format.format, order, cache, step)?;
            Some((format, value(run)?))
        };
        let mut best: Vec<(&FormatRow, f64)> = self.report.formats.iter().filter_map(measured).collect();
        best.sort_by(|(_, a), (_, b)| order_of(a, b));
        let mut kinds = Vec::new();
        best.retain(|(format, _)| {
            let is_new = !kinds.contains(&kind(format));
            kinds.push(kind(format));
            is_new
        });
        let left_out = best.len().saturating_sub(MAX_BARS);
        let ours = best.iter().position(|(format, _)| is_ours(format)).filter(|place| *place >= MAX_BARS);
        if let Some(place) = ours {
            best.swap(MAX_BARS - 1, place);
        }
        best.truncate(MAX_BARS);
        let lossy = best.iter().any(|(format, _)| !format.lossless);
        let bar = |(format, value): (&FormatRow, f64)| Bar {
            label: format.title.clone(),
            sign: sign(format),
            ours: is_ours(format),
            value: Ok(value),
        };
        let mut footnotes = vec!["Each bar is the best format of its kind in this case.".to_owned()];
        if left_out > 0 {
            footnotes.push(format!("Not shown: {}.", counted(left_out, "slower kind")));
        }
        footnotes.extend(self.footnotes(lossy));
        Some(BarChart {
            title: String::new(),
            subtitle: format!("{}, {}; {}", in_order(order), cache_name(cache), self.subtitle()),
            unit: String::new(),
            bars: best.into_iter().map(bar).collect(),
            end: 0.0,
            footnotes,
        })
    }

    /// The order to show: the random order in which the most formats were measured, because training needs a random
    /// order. On ties, whole chunks are preferred. If no random order was measured, the sequential order.
    fn widest_order(&self, cache: &str, step: bool) -> Option<&'a str> {
        let measured = |order: &str| {
            let runs = self.report.formats.iter().filter_map(|format| self.run(&format.format, order, cache, step));
            runs.filter(|run| run.images_per_s.is_some() || run.wait_share.is_some()).count()
        };
        // On further ties, `max_by_key` takes the last order.
        let key = |order: &&str| (measured(order) > 0 && *order != "sequential", measured(order), *order == "chunk");
        let order = self.orders().max_by_key(key)?;
        (measured(order) > 0).then_some(order)
    }

    fn size_and_speed(&self, cache: &str) -> Option<Chart> {
        let order = self.widest_order(cache, false)?;
        let data = &self.report.data;
        let point = |format: &FormatRow| {
            let run = self.run(&format.format, order, cache, false)?;
            Some(Point {
                label: label(format),
                ours: is_ours(format),
                x: to_f64(format.bytes?) / to_f64(data.n_samples.max(1)) / 1024.0,
                y: run.images_per_s?,
            })
        };
        let chart = Scatter {
            title: format!("Size on disk and speed, {}", cache_name(cache)),
            subtitle: format!("{}; {}", in_order(order), self.subtitle()),
            across: "KiB per image on disk, log scale".to_owned(),
            up: "images/s, log scale; up and to the left is better".to_owned(),
            line: Some(("raw pixels".to_owned(), to_f64(data.bytes_per_image) / 1024.0)),
            points: self.report.formats.iter().filter_map(point).collect(),
        };
        let wide = chart.figure(Layout::Wide)?;
        Some(Chart { name: format!("size-speed-{cache}"), wide, narrow: chart.figure(Layout::Narrow)? })
    }

    fn subtitle(&self) -> String {
        let report = self.report;
        let data = &report.data;
        let threads = counted(self.threads, "thread");
        format!(
            "{} images of {}x{}x{}, batches of {}, {threads}; {}",
            tick_number(to_f64(data.n_samples)),
            data.height,
            data.width,
            data.channels,
            report.options.batch,
            report.machine.cpu
        )
    }

    /// `lossy` says whether the chart has a lossy format.
    fn footnotes(&self, lossy: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if lossy {
            notes.push(format!("{LOSSY} lossy: pixels differ, so compare with care"));
        }
        let missing = self.report.formats.iter().filter(|format| !self.is_measured(format)).count();
        if missing > 0 {
            notes.push(format!("Not measured: {missing}; see the report for the reasons"));
        }
        if self.report.options.quick {
            notes.push("Quick run: the results are rough. Do not cite them.".to_owned());
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

/// The kind of a format. Formats of the same kind store samples in a similar way.
fn kind(format: &FormatRow) -> &str {
    const KINDS: [&[&str]; 8] = [
        &["packds"],
        &["webdataset", "tfrecord"],
        &["image", "images"],
        &["npy", "npz", "pt", "safetensors", "numpy"],
        &["hdf5", "h5py"],
        &["lmdb"],
        &["parquet", "arrow"],
        &["zarr"],
    ];
    let words = || format.format.split('-');
    let known = KINDS.into_iter().find(|kind| words().any(|word| kind.contains(&word)));
    known.and_then(|kind| kind.first()).copied().unwrap_or(&format.format)
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

/// Description of an order at the start of a line.
fn in_order(order: &str) -> String {
    format!("Order: {}", order_name(order))
}

fn cache_name(cache: &str) -> &'static str {
    if cache == "warm" { "in the page cache" } else { "read from the disk" }
}

#[cfg(test)]
mod tests;
