//! The report as an HTML page with all charts.

use packds_bench::formats::report::{FormatRow, Report, RunRow};
use packds_report::page::{self, xml};
use packds_report::{number, tick_number};

use super::{Chart, Charts, is_ours, label};
use crate::human::{counted, human_bytes, to_f64};

const METHOD: [&str; 5] = [
    "Every format is made from the same images. All formats are loaded in the same orders, with the same batch sizes and numbers of threads. If a format can be read only with its library, the benchmark uses that library. Otherwise, it reads the file directly.",
    "The time of a batch is measured from one complete batch (pixels and labels) to the next. For each round, the median and the 95th percentile over the batches are computed. The report shows the medians of these two values over the rounds. With several threads, batches arrive in groups, and the median may only be the time to take a batch that was ready. In that case, only the mean (total time divided by the number of batches) shows what a batch costs.",
    "Warm runs start with all files in the page cache, and cold runs with no files in it. The cached share of the data is measured before each run; the table 'All runs' shows it.",
    "Each run computes a checksum of its output that does not depend on the order. All lossless formats must agree on it; otherwise, there is no report.",
    "The limits are minimal loops on the same machine in the same run: copying the pixels of a batch, decoding PNG files of the same pixels from memory, and reading the same bytes from disk.",
];

/// A column: its heading, whether it is numeric, and a function that returns the cell of a run.
type Column = (&'static str, bool, fn(&FormatRow, &RunRow) -> Cell);

/// The text of a cell and its sort key.
struct Cell(String, Option<f64>);

pub(super) fn html(report: &Report, charts: &Charts) -> String {
    let mut html = String::new();
    html.push_str("<h1>Loading images from different formats</h1>\n");
    html.push_str(&lead(report));
    for chart in &charts.answers {
        html.push_str(&figure(chart));
    }
    for topic in &charts.details {
        let figures: String = topic.charts.iter().map(figure).collect();
        html.push_str(&page::details(topic.heading, &format!("<p>{}</p>\n{figures}", xml(topic.says))));
    }
    html.push_str(&page::details("Hardware limits", &limits(report)));
    html.push_str(&page::details("All runs", &all_runs(report)));
    html.push_str(&page::details("The formats", &formats(report)));
    html.push_str(&page::details("Not measured", &skipped(report)));
    html.push_str(&page::details("Machine, data and options", &conditions(report)));
    let method: String = METHOD.iter().map(|sentence| format!("<li>{sentence}</li>\n")).collect();
    html.push_str(&page::details("How it was measured", &format!("<ol>\n{method}</ol>\n")));
    page::page("packds bench formats", &html)
}

fn figure(chart: &Chart) -> String {
    page::figure(&chart.wide, Some(&chart.narrow), "")
}

fn lead(report: &Report) -> String {
    let data = &report.data;
    let quick = if report.options.quick {
        "<p class=\"warning\">Quick run: the results are rough. Do not cite them.</p>\n"
    } else {
        ""
    };
    format!(
        "<p>{} images of {}x{}x{} ({}), {}, on {}.</p>\n<p>We wrote packds and chose what to measure. Judge by the method below, and run it yourself.</p>\n{quick}",
        tick_number(to_f64(data.n_samples)),
        data.height,
        data.width,
        data.channels,
        human_bytes(data.pixel_bytes),
        counted(report.formats.len(), "format"),
        xml(&report.machine.cpu)
    )
}

fn conditions(report: &Report) -> String {
    let (machine, data, options) = (&report.machine, &report.data, &report.options);
    let versions: Vec<String> = report.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let threads: Vec<String> = options.threads.iter().map(ToString::to_string).collect();
    let step = if options.step_ms > 0.0 { format!("{} ms", tick_number(options.step_ms)) } else { "none".to_owned() };
    let batch = match options.batch_asked {
        None => counted(options.batch, "image"),
        Some(asked) => format!("{} ({asked} requested, but the data has fewer than four such batches)", options.batch),
    };
    let returned = match machine.free_page_reporting {
        true => "; it returns free memory to its host, so cold results vary",
        false => "",
    };
    let rows = [
        ("Command", format!("<code>{}</code>", xml(&report.command))),
        ("Started", xml(&report.started)),
        ("Processor", format!("{}, {}", xml(&machine.cpu), counted(machine.cores, "core"))),
        ("Memory", human_bytes(machine.memory_bytes) + returned),
        ("Kernel", xml(&machine.kernel)),
        ("File system", format!("{}, {}", xml(&machine.filesystem), xml(&machine.disk))),
        ("Data", xml(&data.path)),
        (
            "Images",
            format!(
                "{}, each {}x{}x{} = {} bytes; {} in all",
                tick_number(to_f64(data.n_samples)),
                data.height,
                data.width,
                data.channels,
                tick_number(to_f64(data.bytes_per_image)),
                human_bytes(data.pixel_bytes)
            ),
        ),
        ("Batch", batch),
        ("Threads", threads.join(", ")),
        ("Orders", xml(&options.orders.join(", "))),
        ("Cache", xml(&options.cache.join(", "))),
        ("Training step", step),
        ("Rounds", options.rounds.to_string()),
        ("Seed", report.seed.to_string()),
        ("Versions", xml(&versions.join(", "))),
    ];
    let rows: String = rows.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{text}</dd>\n")).collect();
    format!("<dl>\n{rows}</dl>\n")
}

fn limits(report: &Report) -> String {
    let limits = &report.limits;
    let on = |threads: &usize| counted(*threads, "thread");
    let copies = limits.memcpy_images_per_s.iter();
    let copies = copies.map(|(n, rate)| (format!("memcpy of the pixels, {}", on(n)), *rate));
    let decodes = limits.decode_images_per_s.iter();
    let decodes = decodes.map(|(n, rate)| (format!("decoding PNG from memory, {}", on(n)), *rate));
    let disk = limits.disk_read_images_per_s.iter();
    let disk = disk.map(|(state, rate)| (format!("disk read of raw pixels, {state}"), *rate));
    let bytes = to_f64(report.data.bytes_per_image);
    let rows: String = copies
        .chain(decodes)
        .chain(disk)
        .map(|(name, rate)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
                xml(&name),
                number(rate),
                number(rate * bytes / f64::from(1 << 30))
            )
        })
        .collect();
    format!(
        "<div class=\"table\"><table>\n\
         <thead><tr><th scope=\"col\">limit</th><th scope=\"col\">images/s</th><th scope=\"col\">GiB/s of pixels</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn text(text: &str) -> Cell {
    Cell(xml(text), None)
}

fn value(value: Option<f64>) -> Cell {
    Cell(value.map(number).unwrap_or_default(), value)
}

fn step(ms: f64) -> Cell {
    let shown = if ms > 0.0 { tick_number(ms) } else { String::new() };
    Cell(shown, Some(ms))
}

fn bytes(bytes: Option<u64>) -> Cell {
    Cell(bytes.map(human_bytes).unwrap_or_default(), bytes.map(to_f64))
}

fn percent(share: Option<f64>) -> Cell {
    let shown = share.map(|share| format!("{:.1} %", share * 100.0));
    Cell(shown.unwrap_or_default(), share)
}

const COLUMNS: [Column; 16] = [
    ("format", false, |format, _| text(&label(format))),
    ("order", false, |_, run| text(&run.order)),
    ("cache", false, |_, run| text(&run.cache)),
    ("threads", true, |_, run| whole(u64::try_from(run.threads).ok())),
    ("images/s", true, |_, run| value(run.images_per_s)),
    ("batch ms, mean", true, |_, run| value(run.mean_batch_ms())),
    ("batch ms, median", true, |_, run| value(run.batch_ms.map(|ms| ms.median))),
    ("batch ms, p95", true, |_, run| value(run.batch_ms.map(|ms| ms.p95))),
    ("first batch ms", true, |_, run| value(run.first_batch_ms)),
    ("step ms", true, |_, run| step(run.step_ms)),
    ("waiting", true, |_, run| percent(run.wait_share)),
    ("wait ms, median", true, |_, run| value(run.wait_ms.map(|ms| ms.median))),
    ("CPU s per 1000", true, |_, run| value(run.cpu_s_per_1000)),
    ("peak memory", true, |_, run| bytes(run.peak_rss_bytes)),
    ("cached before", true, |_, run| percent(run.cached_share_before)),
    ("checksum", false, |_, run| text(run.checksum.as_deref().unwrap_or_default())),
];

fn whole(n: Option<u64>) -> Cell {
    let shown = n.map(|n| n.to_string()).unwrap_or_default();
    Cell(shown, n.map(to_f64))
}

/// The table of the measured runs. Columns that are empty in all of them are left out.
fn all_runs(report: &Report) -> String {
    let format = |run: &RunRow| report.formats.iter().find(|format| format.format == run.format);
    let measured = report.runs.iter().filter(|run| run.skipped.is_none());
    let runs: Vec<(&FormatRow, &RunRow)> = measured.filter_map(|run| Some((format(run)?, run))).collect();
    let is_used = |(_, _, cell): &&Column| runs.iter().any(|(format, run)| !cell(format, run).0.is_empty());
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_used).collect();
    let class = |numeric: bool| if numeric { "" } else { " class=\"text\"" };
    let mut html = "<div class=\"table wide runs\" tabindex=\"0\"><table id=\"runs\">\n<thead><tr>".to_owned();
    for (name, numeric, _) in &columns {
        html.push_str(&format!("<th scope=\"col\"{}>{name}</th>", class(*numeric)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (format, run) in runs {
        html.push_str(&format!("<tr{}>", row_class(format)));
        for (nth, (_, numeric, cell)) in columns.iter().enumerate() {
            let Cell(shown, sorted) = cell(format, run);
            let sorted = sorted.map(|sorted| format!(" data-v=\"{sorted}\"")).unwrap_or_default();
            html.push_str(&match nth {
                0 => format!("<th scope=\"row\">{shown}</th>"),
                _ => format!("<td{}{sorted}>{shown}</td>", class(*numeric)),
            });
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table></div>\n"
}

fn row_class(format: &FormatRow) -> &'static str {
    if is_ours(format) { " class=\"ours\"" } else { "" }
}

fn formats(report: &Report) -> String {
    let mut html = "<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr>".to_owned();
    let heads = ["format", "name", "on disk", "write s", "samples per chunk", "lossless", "reader", "notes"];
    html.extend(heads.map(|name| format!("<th scope=\"col\" class=\"text\">{name}</th>")));
    html.push_str("</tr></thead>\n<tbody>\n");
    for format in &report.formats {
        let notes: Vec<String> = format.notes.iter().map(|note| format!("<li>{}</li>", xml(note))).collect();
        html.push_str(&format!(
            "<tr{}><th scope=\"row\">{}</th><td class=\"text\"><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"notes\"><ul>{}</ul></td></tr>\n",
            row_class(format),
            xml(&label(format)),
            xml(&format.format),
            bytes(format.bytes).0,
            value(format.write_s).0,
            whole(format.chunk).0,
            if format.lossless { "yes" } else { "no" },
            xml(&format.runtime),
            notes.concat()
        ));
    }
    html + "</tbody>\n</table></div>\n"
}

fn skipped(report: &Report) -> String {
    let mut reasons: Vec<(String, String, Vec<String>)> = Vec::new();
    for run in &report.runs {
        let Some(reason) = &run.skipped else { continue };
        let format = report.formats.iter().find(|format| format.format == run.format);
        let name = format.map_or_else(|| run.format.clone(), label);
        let at = reasons.iter().position(|(n, r, _)| *n == name && r == reason);
        match at.and_then(|at| reasons.get_mut(at)) {
            Some((_, _, orders)) if orders.contains(&run.order) => {}
            Some((_, _, orders)) => orders.push(run.order.clone()),
            None => reasons.push((name, reason.clone(), vec![run.order.clone()])),
        }
    }
    if reasons.is_empty() {
        return "<p>Nothing was skipped.</p>\n".to_owned();
    }
    let rows: String = reasons
        .iter()
        .map(|(name, reason, orders)| {
            format!("<li><b>{}</b>, {}: {}</li>\n", xml(name), xml(&orders.join(", ")), xml(reason))
        })
        .collect();
    format!("<ul>\n{rows}</ul>\n")
}
