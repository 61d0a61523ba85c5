//! The report's runs as CSV: one line per run, including its format's properties.

use super::report::{Report, Spread};

const COLUMNS: [&str; 23] = [
    "format",
    "title",
    "runtime",
    "lossless",
    "order",
    "cache",
    "threads",
    "batch",
    "step_ms",
    "images_per_s",
    "batch_ms_median",
    "batch_ms_p95",
    "first_batch_ms",
    "cpu_s_per_1000",
    "peak_rss_bytes",
    "wait_ms_median",
    "wait_ms_p95",
    "wait_share",
    "cached_share_before",
    "checksum",
    "skipped",
    "bytes_on_disk",
    "write_s",
];

/// The runs of a report, after a header line. Missing values are empty.
#[must_use]
pub fn to_csv(report: &Report) -> String {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for run in &report.runs {
        let format = report.formats.iter().find(|f| f.format == run.format);
        let spread = |spread: Option<Spread>| {
            let shown = |number: fn(Spread) -> f64| optional(spread.map(number));
            [shown(|s| s.median), shown(|s| s.p95)]
        };
        let [batch_median, batch_p95] = spread(run.batch_ms);
        let [wait_median, wait_p95] = spread(run.wait_ms);
        let known = |value: fn(&super::report::FormatRow) -> String| format.map(value).unwrap_or_default();
        let fields = [
            run.format.clone(),
            known(|f| f.title.clone()),
            known(|f| f.runtime.clone()),
            known(|f| f.lossless.to_string()),
            run.order.clone(),
            run.cache.clone(),
            run.threads.to_string(),
            run.batch.to_string(),
            run.step_ms.to_string(),
            optional(run.images_per_s),
            batch_median,
            batch_p95,
            optional(run.first_batch_ms),
            optional(run.cpu_s_per_1000),
            optional(run.peak_rss_bytes),
            wait_median,
            wait_p95,
            optional(run.wait_share),
            optional(run.cached_share_before),
            optional(run.checksum.clone()),
            optional(run.skipped.clone()),
            known(|f| optional(f.bytes_on_disk)),
            known(|f| optional(f.write_s)),
        ];
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Quoted according to RFC 4180.
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
