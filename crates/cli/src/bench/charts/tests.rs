use super::*;
use packds_bench::formats::report::{Data, Limits, OptionsShown, ReportMachine, Spread};
use std::collections::BTreeMap;

fn format(name: &str, title: &str, lossless: bool) -> FormatRow {
    FormatRow {
        format: name.to_owned(),
        title: title.to_owned(),
        runtime: "rust".to_owned(),
        lossless,
        bytes: Some(1_500_000),
        write_s: Some(0.5),
        chunk: None,
        notes: vec!["read <in place>".to_owned()],
    }
}

fn run(format: &str, order: &str, cache: &str, threads: usize, ms: f64) -> RunRow {
    RunRow {
        format: format.to_owned(),
        order: order.to_owned(),
        cache: cache.to_owned(),
        threads,
        batch: 64,
        batch_ms: Some(Spread { median: ms, p95: ms * 2.0 }),
        images_per_s: Some(64_000.0 / ms),
        ..RunRow::default()
    }
}

fn report() -> Report {
    let skipped = RunRow {
        batch_ms: None,
        images_per_s: None,
        skipped: Some("a tar file has no order but its own".to_owned()),
        ..run("tar", "per-sample", "warm", 1, 1.0)
    };
    let waits = RunRow {
        step_ms: 50.0,
        wait_ms: Some(Spread { median: 0.001, p95: 0.2 }),
        wait_share: Some(0.0),
        ..run("packds-raw", "sequential", "warm", 2, 1.0)
    };
    Report {
        command: "packds bench formats \"a&b\"".to_owned(),
        seed: 7,
        started: "2026-01-02T03:04:05Z".to_owned(),
        machine: ReportMachine {
            cpu: "a processor".to_owned(),
            cores: 2,
            memory_bytes: 1 << 34,
            kernel: "6.1".to_owned(),
            filesystem: "ext4".to_owned(),
            disk: "vda".to_owned(),
            free_page_reporting: false,
        },
        versions: BTreeMap::from([("packds".to_owned(), "0.1.0".to_owned())]),
        data: Data {
            path: "photos".to_owned(),
            n_samples: 10,
            height: 224,
            width: 224,
            channels: 3,
            bytes_per_image: 150_528,
            pixel_bytes: 1_505_280,
        },
        options: OptionsShown {
            batch_asked: None,
            batch: 64,
            threads: vec![1, 2],
            orders: vec!["sequential".to_owned(), "per-sample".to_owned()],
            cache: vec!["warm".to_owned(), "cold".to_owned()],
            step_ms: 50.0,
            quick: false,
            rounds: 3,
        },
        limits: Limits { memcpy_images_per_s: BTreeMap::from([(1, 50_000.0), (2, 100_000.0)]), ..Limits::default() },
        formats: vec![
            format("tar", "tar of PNG", true),
            format("packds-raw", "packds", true),
            format("jpeg", "JPEG <files>", false),
        ],
        runs: vec![
            run("tar", "sequential", "warm", 1, 300.0),
            run("packds-raw", "sequential", "warm", 1, 1.0),
            run("packds-raw", "sequential", "cold", 1, 20.0),
            run("jpeg", "sequential", "warm", 1, 100.0),
            run("packds-raw", "per-sample", "warm", 1, 3.0),
            run("packds-raw", "sequential", "warm", 2, 7777.0),
            run("packds-raw", "sequential", "cold", 2, 20.0),
            skipped,
            waits,
        ],
    }
}

fn svg(report: &Report, name: &str) -> String {
    let charts = charts(report);
    let chart = charts.all().find(|chart| chart.name == name);
    chart.unwrap_or_else(|| panic!("no {name}")).wide.svg()
}

#[test]
fn formats_stand_in_the_order_of_their_speed() {
    let svg = svg(&report(), "batch-time-sequential");
    let places =
        ["packds</text>", "JPEG &lt;files&gt; †</text>", "tar of PNG</text>"].map(|label| svg.find(label).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    // Runs on one and on two threads are not mixed.
    assert!(!svg.contains("7,777") && svg.contains("1 thread;"));
    assert!(svg.contains("† lossy: pixels differ"));
}

#[test]
fn the_answer_is_one_case_and_the_best_format_of_each_kind() {
    let mut report = report();
    let names =
        ["npy", "npz", "hdf5-chunked", "zarr", "lmdb", "arrow", "image-folder", "ffcv", "litdata", "packds-zstd"];
    for (nth, name) in (2_u32..).zip(names) {
        report.formats.push(format(name, &format!("the {name}"), true));
        report.runs.push(run(name, "sequential", "warm", 2, f64::from(nth)));
    }
    let chart = View::new(&report).speed().unwrap();
    let labels: Vec<&str> = chart.bars.iter().map(|bar| bar.label.as_str()).collect();
    let expected = ["the npy", "the hdf5-chunked", "the zarr", "the lmdb", "the arrow", "the image-folder", "the ffcv"];
    assert_eq!(labels, [expected.as_slice(), &["the packds-zstd"]].concat());
    assert!(chart.subtitle.starts_with("Order: as stored, in the page cache; 10 images"), "{}", chart.subtitle);
    report.runs.push(run("zarr", "per-sample", "warm", 2, 1.0));
    let random = View::new(&report).speed().unwrap();
    assert!(random.subtitle.starts_with("Order: every sample at random"), "{}", random.subtitle);
    assert!(chart.footnotes.contains(&"Not shown: 1 slower kind.".to_owned()), "{:?}", chart.footnotes);
}

#[test]
fn kinds_are_told_by_the_words_of_a_name() {
    let kind = |name| kind(&format(name, "", true)).to_owned();
    assert_eq!(["torch-npy", "pt", "dali-numpy"].map(kind), ["npy"; 3]);
    assert_eq!(["webdataset-npy", "tfrecord-tfdata", "webdataset-png"].map(kind), ["webdataset"; 3]);
    assert_eq!(
        ["mosaicml-streaming", "torch-images", "python-lmdb"].map(kind),
        ["mosaicml-streaming", "image", "lmdb"]
    );
}

#[test]
fn the_time_of_a_batch_is_the_mean_and_the_line_goes_to_the_slow_end() {
    let mut report = report();
    report.options.threads = vec![2];
    report.runs.retain(|run| run.threads == 2);
    // Every other batch is ready when requested.
    report.runs[0].batch_ms = Some(Spread { median: 0.123, p95: 55.5 });
    report.runs[0].images_per_s = Some(64_000.0 / 27.8);
    let svg = svg(&report, "batch-time-sequential");
    assert!(svg.contains("Mean time per batch of 64 images") && svg.contains("2 threads;"));
    assert!(svg.contains("27.8") && !svg.contains("0.123") && svg.contains("percentile"));
}

#[test]
fn what_was_skipped_says_why() {
    let svg = svg(&report(), "batch-time-per-sample");
    assert!(svg.contains("a tar file has no order but its own"), "{svg}");
    // No line crosses the row or the gap below it.
    assert!(svg.contains("h440v22h-440z"), "{svg}");
}

#[test]
fn what_has_no_figure_at_all_is_on_the_page_alone() {
    let mut report = report();
    report.formats.push(format("odd", "an odd format", true));
    report.runs.push(RunRow {
        format: "odd".to_owned(),
        order: "sequential".to_owned(),
        cache: "warm".to_owned(),
        threads: 1,
        skipped: Some("not part of this build".to_owned()),
        ..RunRow::default()
    });
    let svg = svg(&report, "batch-time-sequential");
    assert!(!svg.contains("an odd format") && svg.contains("Not measured: 1;"));
    let html = page::html(&report, &charts(&report));
    assert!(html.contains("<b>an odd format</b>, sequential: not part of this build"));
}

#[test]
fn throughput_stands_beside_the_limit_of_as_many_threads() {
    let svg = svg(&report(), "throughput-sequential");
    assert!(svg.contains("memcpy 100,000") && !svg.contains("memcpy 50,000"));
}

#[test]
fn lost_time_is_a_share_of_the_time_on_an_axis_from_0_to_100() {
    let mut report = report();
    report.runs.last_mut().unwrap().wait_share = Some(0.125);
    for name in ["training-wait-sequential", "lost-time"] {
        let svg = svg(&report, name);
        assert!(svg.contains("with steps of 50 ms") && svg.contains(">100<") && svg.contains(">12.5"), "{svg}");
    }
    let mut without = report;
    without.options.step_ms = 0.0;
    assert!(charts(&without).all().all(|chart| !chart.name.contains("lost-time") && !chart.name.contains("wait")));
}

#[test]
fn the_page_has_everything_and_asks_for_nothing() {
    let report = report();
    let charts = charts(&report);
    let html = page::html(&report, &charts);
    for text in [
        "packds bench formats &quot;a&amp;b&quot;",
        "a processor, 2 cores",
        "16.0 GiB",
        "ext4, vda",
        "packds 0.1.0",
        "<dd>7</dd>",
        "memcpy of the pixels, 1 thread",
        "read &lt;in place&gt;",
        "<b>tar of PNG</b>, per-sample: a tar file has no order but its own",
        "prefers-color-scheme: dark",
        "JPEG &lt;files&gt; †",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // Every chart has a wide and a narrow shape.
    assert_eq!(html.matches("<svg ").count(), 2 * charts.all().count());
    assert!(charts.all().all(|chart| chart.narrow.svg().contains("width=\"376\"")));
    // The SVG namespace is only a name; nothing is loaded from there.
    let elsewhere = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("://") && !elsewhere.contains("src="));
    // The page shows the value twice: as a mean and as a median.
    assert_eq!(html.matches("data-v=\"7777\"").count(), 2);
}

#[test]
fn everything_is_written_and_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |paths: &[PathBuf]| -> Vec<Vec<u8>> { paths.iter().map(|path| std::fs::read(path).unwrap()).collect() };
    let paths = write_all(&report(), dir.path()).unwrap();
    let first = bytes(&paths);
    assert_eq!(paths.len(), 2 * 8 + 1);
    assert!(paths.contains(&dir.path().join("charts/speed.png")));
    assert_eq!(paths.last(), Some(&dir.path().join("report.html")));
    assert_eq!(first, bytes(&write_all(&report(), dir.path()).unwrap()));
}

#[test]
fn charts_of_an_earlier_run_do_not_stay_beside_the_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("charts");
    write_all(&report(), dir.path()).unwrap();
    let (stale, own) = (folder.join("size-speed-cold.svg"), folder.join("size.svg"));
    assert!(stale.exists());
    std::fs::write(&own, "the user's").unwrap();
    let mut warm = report();
    warm.runs.retain(|run| run.cache == "warm");
    let written = write_all(&warm, dir.path()).unwrap();
    assert!(!stale.exists() && !folder.join("size-speed-cold.png").exists());
    assert_eq!(std::fs::read(&own).unwrap(), b"the user's");
    // The folder contains the charts and the user's file. `written` has the page instead of the user's file.
    let files = std::fs::read_dir(&folder).unwrap();
    assert_eq!(files.count(), written.len());
}

#[test]
fn the_names_of_all_charts_are_known() {
    let mut report = report();
    report.options.orders.push("chunk".to_owned());
    report.runs.push(run("packds-raw", "chunk", "warm", 1, 1.0));
    report.runs.push(RunRow { wait_share: Some(0.1), step_ms: 50.0, ..run("tar", "per-sample", "warm", 2, 1.0) });
    report.runs.push(RunRow { wait_share: Some(0.1), step_ms: 50.0, ..run("tar", "chunk", "warm", 2, 1.0) });
    report.runs.extend(["per-sample", "chunk"].map(|order| run("tar", order, "warm", 2, 1.0)));
    let charts = charts(&report);
    let mut found: Vec<&str> = charts.all().map(|chart| chart.name.as_str()).collect();
    let mut known = names();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn a_report_without_figures_has_a_page_without_charts() {
    let mut empty = report();
    empty.runs.clear();
    empty.formats.clear();
    assert!(charts(&empty).all().next().is_none());
    assert!(page::html(&empty, &charts(&empty)).contains("Nothing was skipped."));
}
