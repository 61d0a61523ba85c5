//! Inspecting packs: info, verify, show, extract, labels, completions, man.

#![cfg(test)]

use std::fs;
use std::path::Path;

use packds_format::{DType, Field, FieldKind, Role, SectionTag};
use packds_pixels::{DecodeOptions, Decoder, Image};
use serde_json::json;

use crate::support::{Folder, SIZE, SamplePack};

fn decode(png: &[u8]) -> Image {
    Decoder::new(DecodeOptions::default()).decode(png).unwrap()
}

fn pixels(sample: u32) -> Vec<u8> {
    (0..72).map(|i| SamplePack::byte(sample, i)).collect()
}

#[test]
fn info_says_what_a_pack_holds() {
    let folder = Folder::new();
    let bytes = SamplePack::default().write(&folder, "out.pack").one().unwrap().bytes_unchecked().len();
    let expected = format!(
        "\
pack      out.pack
size      19.1 KiB ({bytes} bytes)
samples   10 in 3 chunks of 4
fields    image          u8 [4, 6, 3] hwc rgb
          label          i32, column
          sample_crc32c  u32, column
classes   3 of `label`: 3 to 4 samples each
          cat 4, dog 3, sea lion 3
pixels    image: mean 0.5000 0.2500 0.1250, std 0.1000 0.2000 0.3000 (on a scale of 0 to 1)
order     as in the source
          `label`: icc -0.154 between chunks, shuffled
source    kind=image_folder n_files=11 ignored=1
options   filter=bilinear
tool      packds 0.1.0
skipped   1 file
          cat/bad.png: empty file
format    1.0, data at byte 8192
uuid      pack abababababababababababababababab, dataset cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
numpy     np.memmap('out.pack', dtype='uint8', mode='r', offset=8192, shape=(10, 4, 6, 3))
"
    );
    assert_eq!(folder.packds(&["info", "out.pack"]).ok(), expected);
}

#[test]
fn info_as_json_has_the_numbers_a_reader_needs() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let ran = folder.packds(&["info", "out.pack", "--json"]);
    let info = ran.json();
    let keys: Vec<&String> = info.as_object().unwrap().keys().collect();
    let expected = [
        "path",
        "bytes",
        "format_version",
        "n_samples",
        "n_chunks",
        "chunk_samples",
        "sample_stride",
        "chunk_stride",
        "data_offset",
        "fields",
        "columns",
        "classes",
        "stats",
        "order",
        "provenance",
        "pack_uuid",
        "dataset_uuid",
        "numpy",
        "set",
    ];
    assert_eq!(keys, expected);
    assert_eq!([&info["n_samples"], &info["n_chunks"], &info["chunk_samples"], &info["data_offset"]], [10, 3, 4, 8192]);
    assert_eq!(info["classes"][0]["names"], json!(["cat", "dog", "sea lion"]));
    assert_eq!(info["stats"]["fields"]["image"]["mean"], json!([0.5, 0.25, 0.125]));
    assert_eq!(info["chunk_stride"], 4 * 72);
    assert_eq!(info["order"], json!({ "kind": "kept" }));
}

#[test]
fn info_gives_a_strided_view_for_each_of_several_fields() {
    let folder = Folder::new();
    let mut pack = SamplePack::default();
    let mask = Field::tensor("mask", DType::U16, &[4, 6]);
    pack.body.insert(0, mask);
    pack.write(&folder, "out.pack");
    let info = folder.packds(&["info", "out.pack", "--json"]).json();
    let view = |shape: &str, dtype: &str, offset: u64, strides: &str| {
        format!(
            "np.ndarray({shape}, dtype='{dtype}', buffer=np.memmap('out.pack', dtype='uint8', mode='r'), \
             offset={offset}, strides={strides})"
        )
    };
    let expected = [
        view("(3, 4, 4, 6, 3)", "uint8", 8192 + 4096, "(8192, 72, 18, 3, 1)"),
        view("(3, 4, 4, 6)", "uint16", 8192, "(8192, 48, 12, 2)"),
    ];
    assert_eq!(info["numpy"], json!(expected));
}

#[test]
fn info_says_why_variable_samples_have_no_numpy_view() {
    let folder = Folder::new();
    let mut pack = SamplePack::default();
    pack.body.push(Field::variable("caption", FieldKind::String));
    pack.write(&folder, "out.pack");
    let info = folder.packds(&["info", "out.pack"]).ok();
    assert!(
        info.ends_with("numpy     none: a field has variable-size items, so samples have no fixed stride\n"),
        "{info}"
    );
}

#[test]
fn labels_are_listed_in_file_order() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 4, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    let expected = "\
0\t0\tcat\tcat/img-0.png
1\t1\tdog\tdog/img-1.png
2\t2\tsea lion\tsea lion/img-2.png
3\t0\tcat\tcat/img-3.png
";
    assert_eq!(folder.packds(&["labels", "out.pack"]).ok(), expected);
    let paths = ["cat/img-0.png", "dog/img-1.png", "sea lion/img-2.png", "cat/img-3.png"];
    assert_eq!(
        folder.packds(&["labels", "out.pack", "--json"]).json(),
        json!({
            "path": "out.pack",
            "n_samples": 4,
            "samples": null,
            "labels": [0, 1, 2, 0],
            "classes": ["cat", "dog", "sea lion"],
            "paths": paths
        })
    );
}

#[test]
fn names_cannot_command_the_terminal() {
    let folder = Folder::new();
    let pack = SamplePack {
        n_samples: 1,
        classes: vec!["\x1b[2Jcat".to_owned()],
        paths: Some(vec![b"a\tb\n\xff.png".to_vec()]),
        ..SamplePack::default()
    };
    pack.write(&folder, "out.pack");
    let expected = "0\t0\t\\u{1b}[2Jcat\ta\\tb\\n\\xff.png\n";
    assert_eq!(folder.packds(&["labels", "out.pack"]).ok(), expected);
    assert!(!folder.packds(&["info", "out.pack"]).ok().contains('\x1b'));
    let labels = folder.packds(&["labels", "out.pack", "--json"]).json();
    assert_eq!(labels["paths"], json!(["a\tb\n\\xff.png"]));
}

#[test]
fn a_whole_pack_is_ok() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let expected = "out.pack: ok: 10 samples in 3 chunks, 19.1 KiB\n";
    assert_eq!(folder.packds(&["verify", "out.pack"]).ok(), expected);
    let report = folder.packds(&["verify", "out.pack", "--json"]);
    assert_eq!(report.code, 0);
    assert_eq!([&report.json()["ok"], &report.json()["errors"]], [&json!(true), &json!([])]);
}

#[test]
fn a_flipped_bit_in_a_chunk_names_chunk_sample_class_and_path() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    folder.flip("out.pack", 8192 + 5 * 72 + 3);
    let report = folder.packds(&["verify", "out.pack"]);
    let expected = "\
out.pack: chunk 1 (samples 4..8): checksum mismatch at byte 8480: expected 0x########, found 0x########
out.pack:   sample 5, class sea lion, sea lion/img-5.png
out.pack: damaged: 1 of 3 chunks, 1 sample listed, 0 other errors
";
    assert_eq!((report.code, blank_checksums(&report.stdout).as_str()), (1, expected));
    assert_eq!(report.stderr, "");
    for jobs in ["1", "2", "7"] {
        assert_eq!(folder.packds(&["verify", "out.pack", "--jobs", jobs]), report);
    }
    let report = folder.packds(&["verify", "out.pack", "--json"]);
    assert_eq!((report.code, &report.json()["ok"]), (1, &json!(false)));
    let chunk = &report.json()["bad_chunks"][0];
    assert_eq!([&chunk["chunk"], &chunk["first_sample"], &chunk["offset"]], [1, 4, 8480]);
    let sample = json!({
        "sample": 5, "chunk": 1, "label": 2, "class": "sea lion", "path": "sea lion/img-5.png"
    });
    assert_eq!(report.json()["bad_samples"], json!([sample]));
    // Other samples can still be read.
    assert_eq!(folder.packds(&["info", "out.pack"]).code, 0);
}

/// Hides checksums, because the tests of the format cover them.
fn blank_checksums(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str("0x########");
        out.push_str(&part[8..]);
    }
    out
}

#[test]
fn a_flipped_bit_outside_the_chunks_is_found() {
    let folder = Folder::new();
    let pack = SamplePack::default().write(&folder, "whole.pack");
    let section = |tag| pack.one().unwrap().sections().iter().find(|s| s.tag == tag).unwrap().offset;
    let places = [
        (8191, "padding before the body: byte 8191 must be zero, found 0x10"),
        (pack.one().unwrap().columns()[0].offset, "column `label`: checksum mismatch at byte 12288"),
        (pack.one().unwrap().columns()[0].offset - 1, "padding before a column: byte 12287 must be zero"),
        (4100, "schema after the header: checksum mismatch at byte 4096"),
        (section(SectionTag::PROVENANCE), "section `PROV`: checksum mismatch"),
        (section(SectionTag::PATHS), "section `PATH`: checksum mismatch"),
    ];
    for (offset, expected) in places {
        fs::copy(folder.path("whole.pack"), folder.path("out.pack")).unwrap();
        folder.flip("out.pack", offset);
        let report = folder.packds(&["verify", "out.pack"]);
        assert_eq!(report.code, 1, "{report:?}");
        assert!(report.stdout.contains(expected), "{offset}: {report:?}");
        let json = folder.packds(&["verify", "out.pack", "--json"]).json();
        assert_eq!(json["errors"].as_array().unwrap().len(), 1, "{json}");
    }
}

/// Every command that reads a pack, with its other arguments.
const READING: [&[&str]; 6] = [
    &["info", "out.pack"],
    &["verify", "out.pack"],
    &["show", "out.pack", "-o", "sheet.png"],
    &["extract", "out.pack", "files"],
    &["labels", "out.pack"],
    &["head", "out.pack"],
];

#[test]
fn truncated_extended_and_damaged_packs_are_refused_by_every_command() {
    let folder = Folder::new();
    let whole = SamplePack::default().bytes();
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    let longer = [whole.as_slice(), b"\0"].concat();
    let cases = [
        (whole[..whole.len() - 1].to_vec(), "pack is unfinished or truncated: no trailer at byte"),
        (whole[..9000].to_vec(), "pack is unfinished or truncated: no trailer at byte 8936"),
        (longer, "pack is unfinished or truncated: no trailer at byte"),
        (damaged, "header: checksum mismatch at byte 0"),
        (b"hello".to_vec(), "file is too short to be a pack: expected at least 4160 bytes, found 5"),
        (Vec::new(), "file is too short to be a pack: expected at least 4160 bytes, found 0"),
        (vec![b'x'; 9000], "not a pack: expected the file to start with"),
    ];
    for (bytes, expected) in cases {
        fs::write(folder.path("out.pack"), bytes).unwrap();
        for args in READING {
            let ran = folder.packds(args);
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{args:?} {ran:?}");
            assert!(ran.stderr.starts_with(&format!("packds: error: out.pack: {expected}")), "{ran:?}");
        }
        let report = folder.packds(&["verify", "out.pack", "--json"]);
        assert_eq!((report.code, &report.json()["ok"]), (1, &json!(false)));
        let info = folder.packds(&["info", "out.pack", "--json"]);
        assert!(info.json()["error"]["message"].as_str().unwrap().starts_with(expected));
    }
    assert!(!folder.path("sheet.png").exists() && !folder.path("files").exists());
}

#[test]
fn what_cannot_be_opened_is_not_the_datas_fault() {
    let folder = Folder::new();
    for args in READING {
        let ran = folder.packds(args);
        let expected = "packds: error: out.pack: cannot open: No such file or directory (os error 2)\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected), "{args:?}");
    }
    let ran = folder.packds(&["info", "."]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with("packds: error: .: cannot open: is a directory\n\nhint: "), "{ran:?}");
    let ran = folder.packds(&["info"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with("packds: error: the following required arguments"), "{ran:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new();
    // The output exceeds the capacity of a pipe.
    let pack = SamplePack { n_samples: 20_000, chunk_samples: 1024, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    for args in [&["labels", "out.pack"][..], &["labels", "out.pack", "--json"], &["info", "out.pack"]] {
        let mut command = folder.command(args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}

#[test]
fn a_contact_sheet_shows_the_samples_asked_for() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let args = ["show", "out.pack", "--samples", "3,5-8", "--columns", "3", "--size", "48"];
    let ran = folder.packds(&[&args[..], &["-o", "sheet.png"]].concat());
    ran.ok();
    let png = fs::read(folder.path("sheet.png")).unwrap();
    let sheet = decode(&png);
    // Width: 3 cells of 48, with gaps of 12 and margins of 16. Height: a header of 62 for a title of two lines, 2 rows
    // of 48 + 3 + 2 * 14, a gap and a margin.
    assert_eq!((sheet.width, sheet.height), (200, 62 + 2 * 79 + 12 + 16));
    // 6 x 4 pixels are enlarged 8 times and centred in their square.
    let at = |x: u32, y: u32| {
        let start = usize::try_from((y * sheet.width + x) * 3).unwrap();
        sheet.data[start..start + 3].to_vec()
    };
    assert_eq!(at(16, 62 + 8), pixels(3)[..3]);
    assert_eq!(at(16 + 60 + 47, 62 + 39), pixels(5)[69..]);
    assert_eq!(at(16, 62 + 91 + 8), pixels(7)[..3]);
    let piped = folder.command(&[&args[..], &["-o", "-"]].concat()).output().unwrap();
    assert_eq!(piped.stdout, png);
}

#[test]
fn a_contact_sheet_is_the_same_each_time() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 300, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    let sheet = |args: &[&str]| {
        let base = ["show", "out.pack", "-o", "sheet.png", "--force", "--json"];
        let ran = folder.packds(&[&base[..], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        (ran.json()["samples"].clone(), fs::read(folder.path("sheet.png")).unwrap())
    };
    let first = sheet(&[]);
    assert_eq!(first.0.as_array().unwrap().len(), 36);
    assert_eq!(first, sheet(&["--seed", "0"]));
    assert_ne!(first, sheet(&["--seed", "1"]));
    assert_eq!(sheet(&["--random", "7"]).0.as_array().unwrap().len(), 7);
}

#[test]
fn a_damaged_sample_is_a_crossed_box() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    folder.flip("out.pack", 8192 + 2 * 72);
    let ran = folder.packds(&["show", "out.pack", "-o", "sheet.png"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("packds: error: out.pack: sample 2 (chunk 0): checksum mismatch"), "{ran:?}");
    assert!(folder.path("sheet.png").exists());
}

#[test]
fn show_needs_a_place_for_the_sheet() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let hint = "\n\nhint: pass an output file: packds show PACK -o sheet.png\n";
    let ran = folder.packds(&["show", "out.pack"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert_eq!(ran.stderr, format!("packds: error: stdout is not a terminal{hint}"));
    fs::write(folder.path("there.png"), "mine").unwrap();
    let ran = folder.packds(&["show", "out.pack", "-o", "there.png"]);
    assert_eq!(ran.code, 2);
    assert_eq!(fs::read(folder.path("there.png")).unwrap(), b"mine");
}

#[test]
fn extracted_pictures_are_the_stored_pixels() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 11, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    let ran = folder.packds(&["extract", "out.pack", "files"]);
    let text = ran.ok();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("files: 11 samples in 11 files, "), "{text}");
    assert_eq!(lines[1], "files    11 .png");
    assert!(lines[2].starts_with("time     ") && lines.len() == 3, "{text}");
    for sample in 0..11 {
        let name = format!("files/{}/{sample:02}-img-{sample}.png", pack.class(sample));
        let image = decode(&fs::read(folder.path(&name)).unwrap());
        assert_eq!((image.width, image.height), SIZE);
        assert_eq!(image.data, pixels(sample), "{name}");
    }
    let ran = folder.packds(&["extract", "out.pack", "some", "--samples", "3,9-10,9", "--json"]);
    let written: u64 =
        folder.files("some").iter().map(|name| folder.path("some").join(name).metadata().unwrap().len()).sum();
    let expected = json!({
        "output": "some", "n_samples": 3, "n_files": 3, "bytes_out": written, "bad_samples": []
    });
    assert_eq!(ran.json(), expected);
    assert_eq!(folder.files("some"), ["cat/03-img-3.png", "cat/09-img-9.png", "dog/10-img-10.png"]);
}

#[test]
fn every_field_of_a_sample_is_extracted() {
    let folder = Folder::new();
    let mut pack = SamplePack { n_samples: 2, ..SamplePack::default() };
    pack.body.insert(0, Field::variable("caption", FieldKind::String));
    pack.body.push(Field::tensor("mask", DType::U8, &[4, 6]).with_role(Role::Mask));
    pack.body.push(Field::tensor("embedding", DType::F32, &[3]));
    pack.body.push(Field::variable("meta", FieldKind::Json));
    pack.write(&folder, "out.pack");
    folder.packds(&["extract", "out.pack", "files", "--samples", "1"]).ok();
    let expected = [
        "dog/1-img-1.caption.txt",
        "dog/1-img-1.embedding.npy",
        "dog/1-img-1.mask.png",
        "dog/1-img-1.meta.json",
        "dog/1-img-1.png",
    ];
    assert_eq!(folder.files("files"), expected);
    let read = |name| fs::read(folder.path("files/dog").join(name)).unwrap();
    assert_eq!(read("1-img-1.meta.json"), b"[1]");
    assert!(read("1-img-1.embedding.npy").ends_with(&pixels(1)[..12]));
}

#[test]
fn hostile_names_never_leave_the_folder() {
    let folder = Folder::new();
    let classes = ["../../x", "..", "", "/abs", "nul\0", ".git", "a/b", "a\\b"];
    let paths = ["/etc/passwd", "../../../up.png", "a\0b.png", "..", "", "x/", "-rf.png", "a/\x1b[31m.png"];
    let pack = SamplePack {
        n_samples: 8,
        classes: classes.map(str::to_owned).to_vec(),
        paths: Some(paths.map(|path| path.as_bytes().to_vec()).to_vec()),
        ..SamplePack::default()
    };
    fs::create_dir_all(folder.path("deep/er")).unwrap();
    pack.write(&folder, "out.pack");
    folder.packds(&["extract", "out.pack", "deep/er/files"]).ok();
    let expected = [
        "_._.._x/0-passwd.png",
        "_./1-up.png",
        "_/2-a_b.png",
        "_abs/3-_.png",
        "_git/5.png",
        "a_b-7/7-_[31m.png",
        "a_b/6--rf.png",
        "nul_/4.png",
    ];
    let mut found = folder.files("deep/er/files");
    found.sort();
    let mut expected: Vec<String> = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(folder.files("deep").len(), 8);
}

#[test]
fn a_folder_with_files_is_left_alone() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    fs::create_dir(folder.path("files")).unwrap();
    folder.packds(&["extract", "out.pack", "files", "--samples", "0"]).ok();
    let ran = folder.packds(&["extract", "out.pack", "files", "--samples", "1"]);
    let expected =
        "packds: error: files: is not empty\n\nhint: choose a new folder, or pass --force to write to this one\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    folder.packds(&["extract", "out.pack", "files", "--samples", "0-1", "--force"]).ok();
    assert_eq!(folder.files("files"), ["cat/0-img-0.png", "dog/1-img-1.png"]);
}

#[test]
fn damaged_samples_are_named_and_the_others_extracted() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    folder.flip("out.pack", 8192 + 5 * 72);
    let ran = folder.packds(&["extract", "out.pack", "files", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("packds: error: out.pack: sample 5 (chunk 1): checksum mismatch"), "{ran:?}");
    assert_eq!(ran.json()["bad_samples"][0]["sample"], 5);
    assert_eq!(ran.json()["n_samples"], 9);
    assert_eq!(folder.files("files").len(), 9);
}

#[test]
fn samples_that_are_not_there_are_refused() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let ran = folder.packds(&["extract", "out.pack", "files", "--samples", "3,8-10"]);
    let expected = "packds: error: out.pack: no sample 10: the pack has samples 0 to 9\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    let ran = folder.packds(&["show", "out.pack", "-o", "sheet.png", "--samples", "5-3"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("range `5-3` is backwards"), "{ran:?}");
    assert!(!folder.path("files").exists());
}

#[test]
fn the_command_explains_itself() {
    let folder = Folder::new();
    let version = folder.packds(&["--version"]).ok();
    assert!(version.starts_with(concat!("packds ", env!("CARGO_PKG_VERSION"), "\nJPEG decoder with")), "{version}");
    assert!(version.ends_with("\nformat version 1.0\n"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.packds(&["completions", shell]).ok();
        assert!(script.contains("extract"), "{shell}");
    }
    assert!(folder.packds(&["man"]).ok().contains(".TH packds 1"));
    folder.packds(&["man", "--out", "man1"]).ok();
    let pages = folder.files("man1");
    for page in ["packds.1", "packds-info.1", "packds-bench.1", "packds-bench-load.1"] {
        assert!(pages.contains(&page.to_owned()), "{page}: {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("help")), "{pages:?}");
    for command in ["info", "verify", "head", "show", "extract", "labels", "completions", "man"] {
        let help = folder.packds(&[command, "--help"]).ok();
        assert!(help.contains("Examples:\n  packds "), "{command}");
    }
}

#[test]
fn every_kind_of_pack_can_be_looked_into() {
    let folder = Folder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
    let mut n_packs = 0;
    for entry in fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pack") {
            continue;
        }
        n_packs += 1;
        fs::copy(&path, folder.path("out.pack")).unwrap();
        for command in ["info", "verify", "labels", "head"] {
            folder.packds(&[command, "out.pack"]).ok();
            assert!(folder.packds(&[command, "out.pack", "--json"]).json().is_object());
        }
        let extract = ["extract", "out.pack", "files", "--force", "--json"];
        assert_eq!(folder.packds(&extract).json()["bad_samples"], json!([]), "{path:?}");
        // Not all of these packs contain pictures.
        let ran = folder.packds(&["show", "out.pack", "-o", "sheet.png", "--force"]);
        let refused = ["no field of this pack contains images", "the pack is empty"];
        let said = |text: &&str| ran.stderr.contains(*text);
        assert!(ran.code == 0 || refused.iter().any(said), "{path:?} {ran:?}");
    }
    assert!(n_packs > 20);
}

/// `cargo test --release -p packds-cli --test packds -- --ignored --nocapture large`
#[test]
#[ignore = "a measurement: makes a pack of 1.28 million samples"]
fn a_large_pack_is_opened_in_milliseconds() {
    let folder = Folder::new();
    let pack = SamplePack {
        n_samples: 1_281_167,
        chunk_samples: 64,
        classes: (0..1000).map(|i| format!("n{i:08}")).collect(),
        ..SamplePack::default()
    };
    pack.write(&folder, "large.pack");
    for args in [&["--version"][..], &["info", "large.pack"], &["verify", "large.pack"], &["labels", "large.pack"]] {
        let mut times: Vec<_> = (0..11)
            .map(|_| {
                let start = std::time::Instant::now();
                folder.packds(args).ok();
                start.elapsed()
            })
            .collect();
        times.sort();
        println!("{args:?}: median {:?}, worst {:?}", times[5], times[10]);
        assert!(args[0] != "info" || times[5].as_millis() < 20);
    }
}

#[test]
fn a_usage_error_is_a_json_document_too() {
    let folder = Folder::new();
    for args in [&["info", "--json"][..], &["--json", "head", "a.pack", "--no-such"], &["verify", "-", "--json"]] {
        let ran = folder.packds(args);
        assert_eq!(ran.code, 2);
        let message = ran.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(ran.stderr.starts_with(&format!("packds: error: {message}")), "{ran:?}");
    }
    assert_eq!(folder.packds(&["info"]).stdout, "");
}
