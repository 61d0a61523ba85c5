//! `packds bench`: that it runs, checks itself, and says what machines read.

use serde_json::Value;

use crate::support::{fixture, packds, stderr, stdout, temp_dir};

#[test]
fn bench_convert_tells_each_figure_beside_its_limit() {
    let dir = temp_dir();
    let scratch = dir.path().to_str().unwrap();
    let images = fixture("images/same_size");
    let images = images.to_str().unwrap();
    let result = packds(&[
        "bench",
        "convert",
        images,
        "--runs",
        "1",
        "--jobs",
        "2",
        "--scratch",
        scratch,
        "--json",
    ]);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let bench: Value = serde_json::from_str(&stdout(&result)).unwrap();
    for key in [
        "images_per_s",
        "mb_per_s",
        "limit_images_per_s",
        "ratio",
        "peak_rss_bytes",
    ] {
        for figure in [&bench, &bench["raw"], &bench["encoded"], &bench["verify"]] {
            assert!(figure[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
    assert_eq!(bench["limit"], "read_and_decode");
    assert_eq!(bench["encoded"]["limit"], "cat");
    assert_eq!(bench["verify"]["limit"], "read_and_crc32c");
    assert!(bench["stages"]["decode"].as_f64().unwrap() > 0.0);
    assert!(bench["open_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (bench["jobs"].as_u64(), bench["n_files"].as_u64()),
        (Some(2), Some(20))
    );
    assert!(bench["machine"]["cores"].as_u64().unwrap() >= 1);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "the packs are removed"
    );
}
