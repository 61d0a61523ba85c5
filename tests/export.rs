//! `packds export` and `packds formats`: properties that all formats share.

#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use packds_convert::ExportOptions;
use packds_format::{DType, Field, FieldKind, Pack, Role};
use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, fixture, provenance};

/// The export formats for packs without boxes, with a name for the target and further arguments.
const SINKS: [(&str, &str, &[&str]); 14] = [
    ("image-folder", "out", &["--to", "image-folder"]),
    ("npy", "out", &["--to", "npy"]),
    ("npz", "out.npz", &[]),
    ("pt", "out.pt", &[]),
    ("safetensors", "out.safetensors", &[]),
    ("hdf5", "out.h5", &[]),
    ("zarr", "out.zarr", &[]),
    ("parquet", "out.parquet", &[]),
    ("arrow", "out.arrow", &[]),
    ("webdataset", "out", &["--to", "webdataset", "--shard", "4"]),
    ("tfrecord", "out", &["--to", "tfrecord", "--shard", "4"]),
    ("lmdb", "out.lmdb", &[]),
    ("mds", "out", &["--to", "mds", "--shard", "4"]),
    ("litdata", "out", &["--to", "litdata", "--shard", "4"]),
];

/// Small images of one size, packed without shuffling.
fn same_size(folder: &Folder) -> Pack<Vec<u8>> {
    let source = fixture("images/same_size");
    let ran = folder.packds(&["convert", source.to_str().unwrap(), "in.pack", "--keep-order"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    Pack::open(fs::read(folder.path("in.pack")).unwrap()).unwrap()
}

/// Runs `packds export in.pack TARGET ARGS`.
fn export(folder: &Folder, target: &str, args: &[&str]) -> crate::support::Ran {
    let all: Vec<&str> = ["export", "in.pack", target].iter().chain(args).copied().collect();
    folder.packds(&all)
}

/// Every file below a file or folder, with its bytes.
fn bytes_of(folder: &Folder, name: &str) -> Vec<(String, Vec<u8>)> {
    if folder.path(name).is_file() {
        return vec![(String::new(), fs::read(folder.path(name)).unwrap())];
    }
    let read = |file: String| {
        let bytes = fs::read(folder.path(name).join(&file)).unwrap();
        (file, bytes)
    };
    folder.files(name).into_iter().map(read).collect()
}

/// Images, labels and class names.
type Content = (Vec<Vec<u8>>, Vec<Option<i64>>, Vec<Vec<String>>);

/// Describes the samples of a pack.
fn content(pack: &Pack<Vec<u8>>) -> Content {
    let schema = pack.schema();
    let image = schema.by_role(Role::Image, None).unwrap().0;
    let label = schema.by_role(Role::Label, None).map(|(number, _)| number);
    let images = (0..pack.n_samples()).map(|s| pack.item(image, s).unwrap().into_owned());
    let labels = (0..pack.n_samples()).map(|s| pack.column(label?).unwrap().integer(s));
    let classes = pack.classes().unwrap().into_iter().map(|c| c.names);
    (images.collect(), labels.collect(), classes.collect())
}

#[test]
fn formats_lists_all_of_them() {
    let folder = Folder::new();
    let text = folder.packds(&["formats"]).ok();
    let listed = folder.packds(&["formats", "--json"]).json();
    let formats = listed["formats"].as_array().unwrap();
    assert_eq!(formats.len(), 22);
    for (name, _, _) in SINKS {
        assert!(text.contains(&format!("\n{name} ")), "{name}");
        let format = formats.iter().find(|f| f["format"] == name).unwrap();
        assert_eq!((&format["in"], &format["out"]), (&json!(true), &json!(true)), "{name}");
    }
    for (name, is_in, is_out) in
        [("manifest", true, false), ("arrayrecord", true, false), ("coco", true, true), ("yolo", false, true)]
    {
        let format = formats.iter().find(|f| f["format"] == name).unwrap();
        assert_eq!((&format["in"], &format["out"]), (&json!(is_in), &json!(is_out)), "{name}");
    }
}

#[test]
fn every_format_gives_back_images_labels_and_class_names() {
    let folder = Folder::new();
    let before = same_size(&folder);
    for (name, target, args) in SINKS {
        let report = export(&folder, target, &[args, &["--json"]].concat());
        assert_eq!(report.code, 0, "{name}: {report:?}");
        let report = report.json();
        assert_eq!(report["format"], name);
        assert_eq!(report["n_samples"], json!(before.n_samples()), "{name}");
        assert!(report["bytes_out"].as_u64().unwrap() > 1000, "{name}");
        let ran = folder.packds(&["convert", target, "back.pack", "--keep-order", "--force", "--json"]);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        let after = Pack::open(fs::read(folder.path("back.pack")).unwrap()).unwrap();
        assert!(content(&after) == content(&before), "{name}");
        // An exported image folder is an ordinary image folder.
        if name != "image-folder" {
            let origin = &provenance(&after)["origin"];
            assert_eq!(origin["source"]["kind"], "image_folder", "{name}");
        }
        let _ = fs::remove_dir_all(folder.path(target));
        let _ = fs::remove_file(folder.path(target));
    }
}

/// Converts the fixture to `in.pack` with these options.
fn packed(folder: &Folder, args: &[&str]) -> Pack<Vec<u8>> {
    let source = fixture("images/same_size");
    let source = ["convert", source.to_str().unwrap(), "in.pack", "--force"];
    let ran = folder.packds(&[&source[..], &["--keep-order"], args].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    Pack::open(fs::read(folder.path("in.pack")).unwrap()).unwrap()
}

/// Converts an export to `back.pack`. Also returns the warnings.
fn converted_back(folder: &Folder, source: &str, args: &[&str]) -> (Pack<Vec<u8>>, String) {
    let all = ["convert", source, "back.pack", "--force", "--json"];
    let ran = folder.packds(&[&all[..], &["--keep-order"], args].concat());
    assert_eq!(ran.code, 0, "{source}: {ran:?}");
    let pack = Pack::open(fs::read(folder.path("back.pack")).unwrap()).unwrap();
    (pack, ran.json()["warnings"].to_string())
}

/// The image field of a pack, and the bytes of its images.
fn images(pack: &Pack<Vec<u8>>) -> (Field, Vec<Vec<u8>>) {
    let (_, field) = pack.schema().by_role(Role::Image, None).unwrap();
    (field.clone(), content(pack).0)
}

#[test]
fn gray_images_and_such_with_channels_first_come_back_as_they_were_from_every_format() {
    let folder = Folder::new();
    for made in [&["--gray"][..], &["--layout", "chw"], &["--gray", "--layout", "chw"]] {
        let before = images(&packed(&folder, made));
        for (name, target, args) in SINKS {
            let holds_both = ["hdf5", "zarr", "parquet", "arrow", "mds", "litdata"].contains(&name);
            let files: &[&str] = if holds_both { &["--images", "files"] } else { &[] };
            for images_as in [&[][..], files] {
                let report = export(&folder, target, &[args, images_as].concat());
                assert_eq!(report.code, 0, "{name}: {report:?}");
                let (after, warnings) = converted_back(&folder, target, &[]);
                assert!(images(&after) == before, "{name} {made:?} {images_as:?}");
                assert!(!warnings.contains("rgb"), "{name}: {warnings}");
                if name == "image-folder" {
                    let (after, _) = converted_back(&folder, "out/manifest.jsonl", &[]);
                    assert!(images(&after) == before, "manifest {made:?}");
                }
                let _ = fs::remove_dir_all(folder.path(target));
                let _ = fs::remove_file(folder.path(target));
            }
        }
    }
}

#[test]
fn options_beat_what_the_exported_pack_said_about_its_pixels() {
    let folder = Folder::new();
    packed(&folder, &["--gray", "--layout", "chw"]);
    export(&folder, "out.parquet", &[]).ok();
    let (after, _) = converted_back(&folder, "out.parquet", &["--rgb", "--layout", "hwc"]);
    let (field, _) = images(&after);
    assert_eq!((field.shape[2], field.layout.as_deref()), (3, Some("hwc")));
    // Variable-size images cannot be channels-first.
    let (after, _) = converted_back(&folder, "out.parquet", &["--resize", "short:9"]);
    let (field, _) = images(&after);
    assert_eq!((field.color.as_deref(), field.layout.as_deref()), (Some("gray"), Some("hwc")));
    let ran = folder.packds(&["convert", "out.parquet", "x.pack", "--rgb", "--gray"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn images_that_are_no_longer_gray_become_rgb_with_a_warning() {
    let folder = Folder::new();
    packed(&folder, &["--gray"]);
    export(&folder, "out", &["--to", "image-folder"]).ok();
    let coloured = fs::read_dir(fixture("images/same_size/circle")).unwrap();
    let coloured = coloured.map(|e| e.unwrap().path()).min().unwrap();
    let changed = folder.files("out").into_iter().find(|f| f.starts_with("square/"));
    fs::copy(coloured, folder.path("out").join(changed.unwrap())).unwrap();
    for source in ["out", "out/manifest.jsonl"] {
        let (after, warnings) = converted_back(&folder, source, &[]);
        assert_eq!(images(&after).0.color.as_deref(), Some("rgb"));
        assert!(warnings.contains("is not gray: all images become rgb"), "{warnings}");
    }
    // A packds.json of another program does no harm either.
    fs::write(folder.path("out/packds.json"), "{}").unwrap();
    let (after, warnings) = converted_back(&folder, "out", &[]);
    assert_eq!(images(&after).0.color.as_deref(), Some("rgb"));
    assert!(!warnings.contains("packds.json") && warnings.contains("'manifest.jsonl' was not read"), "{warnings}");
}

#[test]
fn a_field_that_is_left_out_is_not_packed_and_one_that_is_not_there_is_an_error() {
    let folder = Folder::new();
    let mut pack = SamplePack::default();
    pack.body.push(Field::tensor("features", DType::F32, &[300]));
    pack.write(&folder, "in.pack");
    for (name, target, args) in SINKS {
        export(&folder, target, args).ok();
        let source = match name {
            "image-folder" => "out/manifest.jsonl",
            _ => target,
        };
        let field = match name {
            "image-folder" => "label",
            _ => "features",
        };
        let (after, _) = converted_back(&folder, source, &["--leave-out", field]);
        assert!(after.schema().index_of(field).is_err(), "{name}");
        let ran = folder.packds(&["convert", source, "x.pack", "--leave-out", "nothing"]);
        assert_eq!(ran.code, 2, "{name}: {ran:?}");
        assert!(ran.stderr.contains("no field 'nothing' to leave out, found "), "{ran:?}");
        assert!(ran.stderr.contains(&format!("'{field}'")), "{name}: {ran:?}");
        let _ = fs::remove_dir_all(folder.path(target));
        let _ = fs::remove_file(folder.path(target));
    }
    let source = fixture("images/same_size");
    let ran = folder.packds(&["convert", source.to_str().unwrap(), "x.pack", "--leave-out", "a"]);
    assert!(ran.code == 2 && ran.stderr.contains("a folder has none"), "{ran:?}");
}

#[test]
fn every_format_has_the_same_bytes_at_any_number_of_threads() {
    let folder = Folder::new();
    same_size(&folder);
    for (name, target, args) in SINKS {
        let mut seen = Vec::new();
        for jobs in ["1", "3"] {
            let report = export(&folder, target, &[args, &["--jobs", jobs]].concat());
            assert_eq!(report.code, 0, "{name}: {report:?}");
            seen.push(bytes_of(&folder, target));
            let _ = fs::remove_dir_all(folder.path(target));
            let _ = fs::remove_file(folder.path(target));
        }
        assert!(seen[0] == seen[1], "{name}");
    }
}

#[test]
fn fields_beside_image_and_label_survive_where_a_format_holds_them() {
    let folder = Folder::new();
    let mut pack = SamplePack::default();
    pack.body.push(Field::tensor("features", DType::F32, &[300]));
    pack.body.push(Field::variable("caption", FieldKind::String));
    let before = pack.write(&folder, "in.pack");
    let feature = |pack: &Pack<Vec<u8>>, name: &str| {
        let field = pack.schema().index_of(name).unwrap();
        pack.item(field, 7).unwrap().into_owned()
    };
    for (name, target, args) in SINKS {
        let report = export(&folder, target, &[args, &["--json"]].concat()).json();
        let lost = report["lost"].to_string();
        let source = match name {
            "image-folder" => "out/manifest.jsonl",
            _ => target,
        };
        let ran = folder.packds(&["convert", source, "back.pack", "--keep-order", "--force"]);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        let after = Pack::open(fs::read(folder.path("back.pack")).unwrap()).unwrap();
        for field in ["features", "caption"] {
            if lost.contains(&format!("`{field}`")) {
                assert!(after.schema().index_of(field).is_err(), "{name}: {field}");
            } else {
                assert_eq!(feature(&after, field), feature(&before, field), "{name}: {field}");
            }
        }
        let _ = fs::remove_dir_all(folder.path(target));
        let _ = fs::remove_file(folder.path(target));
    }
}

#[test]
fn a_damaged_pack_is_named_with_its_chunk_and_leaves_nothing() {
    let folder = Folder::new();
    let pack = SamplePack::default().write(&folder, "in.pack");
    folder.flip("in.pack", pack.chunk_entry(1).unwrap().offset + 3);
    for (name, target, args) in SINKS {
        let ran = export(&folder, target, args);
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stderr.contains("in.pack: chunk 1"), "{name}: {ran:?}");
        assert!(!folder.path(target).exists(), "{name}");
    }
    let left: Vec<String> = folder.files(".");
    assert_eq!(left, ["in.pack"]);
}

#[test]
fn what_a_format_has_no_use_for_is_refused() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "in.pack");
    for (target, args, message) in [
        ("out.h5", &["--codec", "blosc"][..], "hdf5 cannot be compressed with --codec blosc"),
        ("out.npz", &["--chunk", "4"], "--chunk does not apply to npz"),
        ("out.lmdb", &["--shard", "4"], "--shard does not apply to lmdb"),
        ("out.h5", &["--per-sample"], "--per-sample does not apply to hdf5"),
        ("out.h5", &["--zarr-version", "2"], "--zarr-version does not apply to hdf5"),
        ("out.npy", &["--images", "files"], "npy cannot store image files"),
        ("out.tar.gz", &["--shard", "3"], "this is the name of a single file"),
        ("out.tfrecord.gz", &["--codec", "none"], "the extension requests compression"),
        ("in.pack", &["--to", "npz", "--force"], "in.pack: this is the source itself"),
        ("out", &[], "out: cannot infer a format from this name"),
        ("out.csv", &[], "packs cannot be exported to manifest"),
        ("out", &["--to", "mds", "--codec", "zstd"], "mds cannot be compressed with --codec zstd"),
        ("out", &["--to", "coco"], "COCO stores boxes and their classes, but this pack has none"),
        ("out", &["--to", "yolo"], "YOLO stores boxes and their classes, but this pack has none"),
        ("no/out.h5", &[], "no/out.h5: the folder no does not exist"),
    ] {
        let ran = export(&folder, target, args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(message), "{message}: {ran:?}");
        assert!(ran.stderr.contains("hint: "), "{ran:?}");
    }
    assert_eq!(folder.files("."), ["in.pack"]);
}

#[test]
fn only_files_are_replaced_and_only_where_that_is_asked_for() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "in.pack");
    fs::write(folder.path("out.npz"), "mine").unwrap();
    let ran = export(&folder, "out.npz", &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(fs::read(folder.path("out.npz")).unwrap(), b"mine");
    assert_eq!(export(&folder, "out.npz", &["--force"]).code, 0);
    assert!(fs::read(folder.path("out.npz")).unwrap().starts_with(b"PK"));
    fs::create_dir(folder.path("out")).unwrap();
    fs::write(folder.path("out/mine"), "mine").unwrap();
    let ran = export(&folder, "out", &["--to", "image-folder", "--force"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("out: this folder is not empty"), "{ran:?}");
    fs::remove_file(folder.path("out/mine")).unwrap();
    assert_eq!(export(&folder, "out", &["--to", "image-folder"]).code, 0);
}

/// Starts an export of a pack of a few hundred megabytes and waits until it writes.
fn start(folder: &Folder, target: &str) -> Child {
    let command = ["export", "big.pack", target, "--jobs", "1"];
    let working = folder.path(&format!(".{target}.packing"));
    let modified = || fs::metadata(&working).and_then(|m| m.modified()).ok();
    let before = modified();
    let child = folder.command(&command).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    // Ignore leftovers of an earlier export.
    let is_new = || modified().is_some_and(|now| Some(now) != before);
    while !is_new() {
        assert!(started.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

fn big_pack(folder: &Folder) {
    let source = folder.path("source");
    fs::create_dir(&source).unwrap();
    let image = fixture("images/folder/cat/a.jpg");
    for i in 0..400 {
        std::os::unix::fs::symlink(&image, source.join(format!("{i:05}.jpg"))).unwrap();
    }
    let ran = folder.packds(&["convert", "source", "big.pack", "--resize", "400x400"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn an_export_that_is_killed_or_stopped_leaves_nothing_under_the_name_and_the_next_one_works() {
    let folder = Folder::new();
    big_pack(&folder);
    let leftovers = |folder: &Folder| {
        let entries = fs::read_dir(folder.path(".")).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|n| n.contains("out")).collect::<Vec<_>>()
    };
    for target in ["out.parquet", "out.lmdb"] {
        let mut child = start(&folder, target);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!folder.path(target).exists(), "{target}");
        let mut child = start(&folder, target);
        let id = child.id().to_string();
        std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
        let status = child.wait().unwrap();
        // On a fast machine, the export may have ended already.
        if status.code() != Some(0) {
            assert_eq!(status.code(), Some(130), "{target}");
            assert_eq!(leftovers(&folder), Vec::<String>::new(), "{target}");
            let ran = folder.packds(&["export", "big.pack", target]);
            assert_eq!(ran.code, 0, "{target}: {ran:?}");
        }
        let path = folder.path(target);
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

#[test]
fn chosen_samples_are_exported_to_every_format() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    let codec = ["convert", source.to_str().unwrap(), "in.pack", "--keep-order", "--codec", "zstd", "--chunk", "8"];
    folder.packds(&codec).ok();
    let all = Pack::open(fs::read(folder.path("in.pack")).unwrap()).unwrap();
    let (images, labels, classes) = content(&all);
    let chosen = [1, 2, 9, 17];
    let expected = (chosen.map(|i| images[i].clone()).to_vec(), chosen.map(|i| labels[i]).to_vec(), classes);
    for (name, target, args) in SINKS {
        let args = [args, &["--samples", "9,17,1-2,1", "--where", "sample < 18", "--json"]].concat();
        let report = export(&folder, target, &args).json();
        assert_eq!(report["n_samples"], json!(4), "{name}");
        assert!(report["lost"].to_string().contains("statistics and class counts"), "{name}: {report}");
        folder.packds(&["convert", target, "back.pack", "--keep-order", "--force", "-q"]);
        let after = Pack::open(fs::read(folder.path("back.pack")).unwrap()).unwrap();
        assert!(content(&after) == expected, "{name}");
        let _ = fs::remove_dir_all(folder.path(target));
        let _ = fs::remove_file(folder.path(target));
    }
    let none = export(&folder, "out.npy", &["--where", "sample > 1000"]);
    assert_eq!((none.code, none.stderr.as_str()), (2, "packds: error: in.pack: no sample meets these options\n"));
    let options = ExportOptions { samples: Some(vec![0, 20]), ..ExportOptions::default() };
    let beyond = packds_convert::export(&all, &folder.path("out.npy"), &options, &()).unwrap_err();
    assert_eq!(beyond.to_string(), "no sample 20: the pack has 20 samples");
}

#[test]
fn the_report_says_what_was_written_and_what_was_lost() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "in.pack");
    let text = export(&folder, "out.npy", &[]).ok();
    assert!(text.starts_with("out.npy: 10 samples as npy, "), "{text}");
    assert!(text.contains("not kept: "), "{text}");
    let report: Value = export(&folder, "out.h5", &["--json"]).json();
    assert_eq!(report["fields"], json!(["image", "label"]));
    // A single `.npy` file stores one field, and a folder stores all fields.
    for (target, options, fields) in [
        ("one.npy", &["--json"][..], json!(["image"])),
        ("folder", &["--to", "npy", "--json"], json!(["image", "label"])),
        ("samples", &["--to", "npy", "--per-sample", "--json"], json!(["image", "label"])),
    ] {
        assert_eq!(export(&folder, target, options).json()["fields"], fields, "{target}");
    }
    assert!(text.contains("\nfields   image\n"), "{text}");
    assert!(Path::new(report["output"].as_str().unwrap()).ends_with("out.h5"));
}

#[test]
fn names_of_fields_that_a_format_cannot_have_are_changed_and_reported() {
    let folder = Folder::new();
    let mut pack = SamplePack::default();
    for name in [".", "a/b", "../../x"] {
        pack.body.push(Field::tensor(name, DType::U8, &[2000]));
    }
    pack.write(&folder, "in.pack");
    for target in ["out.npz", "out.h5", "out.zarr"] {
        let text = export(&folder, target, &[]).ok();
        for (name, written) in [(".", "_"), ("a/b", "a_b"), ("../../x", "_._.._x")] {
            let expected = format!("the name of field `{name}`");
            assert!(text.contains(&expected) && text.contains(written), "{text}");
        }
        let ran = folder.packds(&["convert", target, "back.pack", "--force"]);
        assert_eq!(ran.code, 0, "{target}: {ran:?}");
        let back = Pack::open(fs::read(folder.path("back.pack")).unwrap()).unwrap();
        for name in ["_", "a_b", "_._.._x"] {
            assert!(back.schema().index_of(name).is_ok(), "{target}: {name}");
        }
    }
    let zip = fs::read(folder.path("out.npz")).unwrap();
    let members = zip.windows(6).filter(|bytes| *bytes == b"../../").count();
    // The name may occur only in the description of the fields.
    assert!(members <= 1, "{members}");
}

#[test]
fn a_file_in_the_place_of_a_folder_is_refused_as_that_also_with_force() {
    let folder = Folder::new();
    same_size(&folder);
    fs::write(folder.path("out.lmdb"), "kept").unwrap();
    for args in [&[][..], &["--force"]] {
        let ran = export(&folder, "out.lmdb", args);
        let message = "packds: error: out.lmdb: this is a file, but the output is a folder\n";
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.starts_with(message), "{ran:?}");
        assert!(ran.stderr.contains("remove the file"), "{ran:?}");
    }
    assert_eq!(fs::read(folder.path("out.lmdb")).unwrap(), b"kept");
}

#[test]
fn a_name_that_is_too_long_has_a_hint_of_its_own() {
    let folder = Folder::new();
    same_size(&folder);
    // The first name is too long. The second is too long only with the suffix that it has while the file is written.
    for n in [255, 244] {
        let name = "n".repeat(n);
        let pack = format!("{name}.pack");
        let source = fixture("images/same_size");
        for ran in [
            export(&folder, &format!("{name}.npy"), &[]),
            export(&folder, &format!("{name}.zarr"), &[]),
            folder.packds(&["convert", source.to_str().unwrap(), &pack]),
        ] {
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains("File name too long"), "{ran:?}");
            assert!(ran.stderr.contains("hint: choose a shorter name"), "{ran:?}");
        }
    }
}
