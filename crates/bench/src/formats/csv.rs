//! The report's runs as CSV: one line per run, including its format's properties.

use super::report::{FormatRow, Report, RunRow};

/// A column: its heading, and a function that returns its value for a run and its format.
type Column = (&'static str, fn(&RunRow, Option<&FormatRow>) -> String);

const COLUMNS: [Column; 23] = [
    ("format", |run, _| run.format.clone()),
    ("title", |_, format| optional(format.map(|f| &f.title))),
    ("runtime", |_, format| optional(format.map(|f| &f.runtime))),
    ("lossless", |_, format| optional(format.map(|f| f.lossless))),
    ("order", |run, _| run.order.clone()),
    ("cache", |run, _| run.cache.clone()),
    ("threads", |run, _| run.threads.to_string()),
    ("batch", |run, _| run.batch.to_string()),
    ("step_ms", |run, _| run.step_ms.to_string()),
    ("images_per_s", |run, _| optional(run.images_per_s)),
    ("batch_ms_median", |run, _| optional(run.batch_ms.map(|s| s.median))),
    ("batch_ms_p95", |run, _| optional(run.batch_ms.map(|s| s.p95))),
    ("first_batch_ms", |run, _| optional(run.first_batch_ms)),
    ("cpu_s_per_1000", |run, _| optional(run.cpu_s_per_1000)),
    ("peak_rss_bytes", |run, _| optional(run.peak_rss_bytes)),
    ("wait_ms_median", |run, _| optional(run.wait_ms.map(|s| s.median))),
    ("wait_ms_p95", |run, _| optional(run.wait_ms.map(|s| s.p95))),
    ("wait_share", |run, _| optional(run.wait_share)),
    ("cached_share_before", |run, _| optional(run.cached_share_before)),
    ("checksum", |run, _| optional(run.checksum.as_ref())),
    ("skipped", |run, _| optional(run.skipped.as_ref())),
    ("bytes", |_, format| optional(format.and_then(|f| f.bytes))),
    ("write_s", |_, format| optional(format.and_then(|f| f.write_s))),
];

/// The runs of a report, after a header line. Missing values are empty.
#[must_use]
pub fn to_csv(report: &Report) -> String {
    let mut text = COLUMNS.map(|(name, _)| name).join(",");
    text.push('\n');
    for run in &report.runs {
        let format = report.formats.iter().find(|f| f.format == run.format);
        text.push_str(&COLUMNS.map(|(_, value)| quoted(&value(run, format))).join(","));
        text.push('\n');
    }
    text
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A value, quoted according to RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_quotes_are_quoted() {
        assert_eq!(quoted("one .npy"), "one .npy");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
