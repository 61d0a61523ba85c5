//! Missing files in a manifest, under each policy.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use packds_convert::{ConvertOptions, OnError, Report, convert};
use packds_format::{Pack, Role};

/// Converts a manifest with one existing image and one missing image, in this order.
fn converted(on_error: OnError) -> (Report, Pack<Vec<u8>>) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images/folder/cat/d.png");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture, folder.path().join("a.png")).unwrap();
    let manifest = folder.path().join("m.csv");
    std::fs::write(&manifest, "path,label\na.png,cat\nnone.png,dog\n").unwrap();
    let options = ConvertOptions { on_error, keep_order: true, ..ConvertOptions::default() };
    let output = folder.path().join("out.pack");
    let report = convert(&manifest, &output, &options, &()).unwrap();
    let pack = Pack::open(std::fs::read(output).unwrap()).unwrap();
    (report, pack)
}

#[test]
fn skip_leaves_out_the_row_and_reports_it() {
    let (report, pack) = converted(OnError::Skip);
    assert_eq!((pack.n_samples(), report.skipped.len()), (1, 1));
    assert_eq!(report.skipped[0].path, "none.png");
    assert!(report.skipped[0].reason.contains("line 3"), "{:?}", report.skipped);
}

#[test]
fn substitute_puts_zeros_in_its_place_and_marks_them_invalid() {
    let (report, pack) = converted(OnError::Substitute);
    assert_eq!((pack.n_samples(), report.substituted.len()), (2, 1));
    assert_eq!(report.substituted[0].path, "none.png");
    let image = pack.schema().index_of("image").unwrap();
    assert!(pack.item(image, 0).unwrap().iter().any(|byte| *byte != 0));
    assert!(pack.item(image, 1).unwrap().iter().all(|byte| *byte == 0));
    let (valid, _) = pack.schema().by_role(Role::Valid, None).unwrap();
    let marks = [0, 1].map(|sample| pack.item(valid, sample).unwrap().to_vec());
    assert_eq!(marks, [vec![1], vec![0]]);
}
