//! Golden identifiers. They must never change: with a new identifier, a dataset would be mistaken for a different one.

use std::path::Path;

use serde_json::{Value, json};

use super::uuids;
use crate::export::ExportOptions;
use crate::options::{ConvertOptions, Mode};
use crate::plan::plan;
use crate::provenance::options_json;
use crate::sink::test_pack::{fields, pack_of, to};
use crate::source::{ListOptions, Listing, list};

fn images() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images")
}

fn listed(source: &Path) -> Listing {
    list(source, &ListOptions::default()).unwrap()
}

fn dataset(listing: &Listing) -> String {
    uuids(listing, &json!({}), "").0.to_string()
}

/// A listing of five samples with several fields, read from an exported file with this name.
fn exported(name: &str) -> Listing {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join(name);
    to(&pack_of(5, fields()), &target, &ExportOptions::default()).unwrap();
    listed(&target)
}

/// Lists a tar of two samples, each with an image, a class and a string. The second sample lacks its `missing` member.
fn tar_with_a_fault(missing: &str) -> Listing {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tar");
    let image = std::fs::read(images().join("folder/cat/d.png")).unwrap();
    let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
    for sample in ["a", "b"] {
        for (kind, bytes) in [("png", &image[..]), ("cls", b"0"), ("txt", b"text")] {
            if (sample, kind) != ("b", missing) {
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{sample}.{kind}"), bytes).unwrap();
            }
        }
    }
    tar.finish().unwrap();
    listed(&path)
}

#[test]
fn datasets_keep_their_identifiers() {
    let manifest = images().join("masks/manifest.csv");
    let found = [
        dataset(&listed(&images().join("folder"))),
        dataset(&listed(&images().join("folder/cat"))),
        dataset(&listed(&manifest)),
        dataset(&exported("x.npz")),
        dataset(&exported("x.tar")),
        dataset(&exported("x.parquet")),
        dataset(&tar_with_a_fault("txt")),
    ];
    let expected = [
        "abf22fbd51936582ce7d4fce1ee752b5",
        "ad26f07bef7703d6ab299d614ecab375",
        "46ebb8d992d06e346d0b93273b0deec4",
        "ec2219ace9514ded7287241f2a9880fe",
        "12978f61406a6691389066d8ae6acc94",
        "e7362aa287adffd72f060c33e3d82f2b",
        "0089dba12a218846bd4a663e7f279d92",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_sample_that_lacks_something_changes_the_dataset() {
    let whole = dataset(&tar_with_a_fault("nothing"));
    let lacks = dataset(&tar_with_a_fault("cls"));
    assert_ne!(whole, lacks);
}

/// The identifier of the pack made from the fixture folder with these options.
fn pack(options: &ConvertOptions) -> String {
    let listing = list(&images().join("folder"), &options.list).unwrap();
    let plan = plan(&listing, options, &()).unwrap();
    uuids(&listing, &options_json(&listing, options, &plan), "0.1.0").1.to_string()
}

fn encoded() -> ConvertOptions {
    ConvertOptions { mode: Mode::Encoded, ..ConvertOptions::default() }
}

#[test]
fn packs_keep_their_identifiers() {
    let resized = ConvertOptions {
        resize: Some("short:64".parse().unwrap()),
        crop: Some("center:32".parse().unwrap()),
        dtype: packds_format::DType::F32,
        normalize: "0.5,0.5,0.5/0.25,0.25,0.25".parse().unwrap(),
        compression: "zstd:3".parse().unwrap(),
        seed: 7,
        ..ConvertOptions::default()
    };
    let seekable = ConvertOptions { seekable: true, ..encoded() };
    let found = [pack(&resized), pack(&encoded()), pack(&seekable)];
    let expected =
        ["33cf60d34aea0b493438e1b6fd8abc84", "244aed8d2876c5c8be80dd5ed73de248", "285d1e5d80da941e0392b8997dcf7a2e"];
    assert_eq!(found, expected);
}

#[test]
fn each_option_that_decides_bytes_is_in_the_identifier_of_the_pack() {
    let with_list = |list| ConvertOptions { list, ..encoded() };
    let key = |key: &str| Some(key.to_owned());
    let changed = [
        ConvertOptions { check_decode: true, ..encoded() },
        ConvertOptions { seekable: true, ..encoded() },
        ConvertOptions { seed: 1, ..encoded() },
        ConvertOptions { keep_order: true, ..encoded() },
        ConvertOptions { chunk_samples: Some(3), ..encoded() },
        ConvertOptions { batch: Some(3), ..encoded() },
        ConvertOptions { quality: Some(90), ..encoded() },
        ConvertOptions { compression: "zstd".parse().unwrap(), ..encoded() },
        ConvertOptions { on_error: crate::OnError::Skip, ..encoded() },
        ConvertOptions { max_pixels: 1 << 20, ..encoded() },
        with_list(ListOptions { from: Some(crate::DataFormat::ImageFolder), ..ListOptions::default() }),
    ];
    let mut found: Vec<String> = changed.iter().map(pack).collect();
    found.push(pack(&encoded()));
    let keys = ListOptions {
        image_key: key("a"),
        label_key: key("b"),
        mask_key: key("c"),
        mask_order: Some(crate::source::MaskOrder::Rows),
        leave_out: vec!["d".to_owned()],
        split: key("e"),
        ..ListOptions::default()
    };
    let listing = listed(&images().join("masks/manifest.csv"));
    let plan = plan(&listing, &encoded(), &()).unwrap();
    let json = options_json(&listing, &with_list(keys), &plan);
    let texts = ["image_key", "label_key", "mask_key", "mask_order", "split"].map(|key| json[key].as_str());
    assert_eq!(texts, [Some("a"), Some("b"), Some("c"), Some("rows"), Some("e")]);
    assert_eq!(json["leave_out"], Value::from(vec!["d"]));
    found.sort();
    found.dedup();
    assert_eq!(found.len(), changed.len() + 1);
}

#[test]
fn threads_and_force_do_not_change_the_identifier_of_the_pack() {
    let other = ConvertOptions { jobs: 3, force: true, ..encoded() };
    assert_eq!(pack(&other), pack(&encoded()));
}
