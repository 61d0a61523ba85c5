//! Messages name options in the notation of the front end. Packs do not depend on the front end: all write the same
//! bytes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use packds_convert::source::ListOptions;
use packds_convert::{ConvertOptions, DataFormat, OnError, convert};
use packds_system::FrontEnd;

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images")
}

/// Converts the source. Returns the messages and the bytes of the pack.
fn converted(source: &Path, on_error: OnError, folder: &Path) -> (String, Vec<u8>) {
    let output = folder.join("out.pack");
    // The folder contains masks, which would otherwise be refused as classes.
    let from = source.is_dir().then_some(DataFormat::ImageFolder);
    let list = ListOptions { from, ..ListOptions::default() };
    let options = ConvertOptions { on_error, force: true, list, ..ConvertOptions::default() };
    let report = convert(source, &output, &options, &()).unwrap();
    assert!(report.has_bad_samples());
    let stopped = ConvertOptions { on_error: ConvertOptions::default().on_error, ..options.clone() };
    let error = convert(source, &output, &stopped, &()).unwrap_err();
    let hint = error.hint().unwrap();
    (format!("{error}; {hint}; {:?}", report.notes), std::fs::read(output).unwrap())
}

// This is a single test, because the front end is global to the process.
#[test]
fn the_same_conversion_gives_the_same_bytes_in_every_front_end() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("list.csv");
    let good = std::fs::read_dir(images().join("same_size")).unwrap().next().unwrap().unwrap();
    let good = std::fs::read_dir(good.path()).unwrap().next().unwrap().unwrap().path();
    let good = good.display();
    let rows = format!("path,label\n{good},1\ngone.png,2\n");
    std::fs::write(&manifest, rows).unwrap();
    for source in [images(), manifest] {
        for on_error in [OnError::Skip, OnError::Substitute] {
            let both = [FrontEnd::Command, FrontEnd::Python].map(|front_end| {
                let _words = front_end.enter();
                converted(&source, on_error, folder.path())
            });
            let [(command, by_command), (python, by_python)] = both;
            assert!(command.contains("--on-error skip"), "{command}");
            assert!(python.contains("on_error='skip'") && !python.contains("--"), "{python}");
            assert!(by_command == by_python, "{source:?}");
        }
    }
}
