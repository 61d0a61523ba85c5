//! Contact sheets of `show`: masks, marks and names.

#![cfg(test)]

use std::fs;

use packds_format::{DType, Field, Role};
use packds_pixels::{DecodeOptions, Decoder, Image};
use serde_json::json;

use crate::support::{Folder, SamplePack, fixture};

/// Runs `show` with these arguments at 48 pixels. Returns the sheet.
fn show(folder: &Folder, args: &[&str]) -> Image {
    let ran = folder.packds(&[&["show", "out.pack", "-o", "sheet.png", "--force", "--size", "48"], args].concat());
    ran.ok();
    let png = fs::read(folder.path("sheet.png")).unwrap();
    Decoder::new(DecodeOptions::default()).decode(&png).unwrap()
}

fn count(sheet: &Image, color: [u8; 3]) -> usize {
    sheet.data.as_chunks::<3>().0.iter().filter(|pixel| **pixel == color).count()
}

/// A pack of two samples, each with an image and a mask. The mask comes first.
fn masked(folder: &Folder, shape: &[u64], dtype: DType) {
    let mut pack = SamplePack { n_samples: 2, ..SamplePack::default() };
    pack.body.insert(0, Field::tensor("mask", dtype, shape).with_role(Role::Mask));
    pack.write(folder, "out.pack");
}

/// The colour of class 7.
const SEVEN: [u8; 3] = [58, 240, 50];

#[test]
fn a_mask_lies_over_its_image_unless_it_is_asked_for() {
    let folder = Folder::new();
    masked(&folder, &[4, 6], DType::U8);
    // Pixel 1 of sample 0 has class 7, and its colour is in bytes 3 to 5 of the image. Pixels are enlarged to 8x8.
    let sheet = show(&folder, &["--samples", "0", "--columns", "1"]);
    assert_eq!(sheet.width, 2 * 48 + 2 + 32);
    // The brightness of the pixel is 27.
    let tint = SEVEN.map(|value| value.midpoint(27));
    assert_eq!((count(&sheet, tint), count(&sheet, [21, 28, 35])), (64, 64));
    let alone = show(&folder, &["--samples", "0", "--field", "mask"]);
    assert_eq!((alone.width, count(&alone, tint)), (48 + 32, 0));
    // The legend has a patch of the same colour.
    assert!(count(&alone, SEVEN) > 64);
}

#[test]
fn a_mask_of_another_shape_is_shown_alone() {
    let folder = Folder::new();
    masked(&folder, &[6, 4], DType::U8);
    let sheet = show(&folder, &["--samples", "0"]);
    assert_eq!(sheet.width, 2 * 48 + 2 + 32);
    assert!(count(&sheet, SEVEN) > 64);
    // Class 0 is dark where no image is below it.
    assert!(count(&sheet, [32; 3]) > 64);
}

#[test]
fn a_substituted_sample_is_marked() {
    let folder = Folder::new();
    let source = folder.path("source");
    fs::create_dir_all(source.join("cat")).unwrap();
    fs::copy(fixture("images/folder/cat/a.jpg"), source.join("cat/a.jpg")).unwrap();
    fs::write(source.join("cat/b.jpg"), "none").unwrap();
    let args = ["convert", "source", "out.pack", "--resize", "48x48", "--on-error", "substitute", "--keep-order"];
    assert_eq!(folder.packds(&args).code, 1);
    let mark = [255, 150, 0];
    assert_eq!(count(&show(&folder, &["--samples", "0"]), mark), 0);
    assert!(count(&show(&folder, &["--samples", "1"]), mark) > 50);
    let document = folder.packds(&["show", "out.pack", "-o", "x.png", "--json"]).json();
    assert_eq!([&document["substituted"], &document["bad_samples"]], [&json!([1]), &json!([])]);
}

#[test]
fn the_sheets_of_several_packs_are_placed_below_one_another() {
    let folder = Folder::new();
    SamplePack { n_samples: 4, ..SamplePack::default() }.write(&folder, "out.pack");
    SamplePack { n_samples: 1, ..SamplePack::default() }.write(&folder, "b.pack");
    let one = show(&folder, &[]);
    let both = show(&folder, &["b.pack"]);
    assert_eq!(both.data[..one.data.len()], one.data, "the first sheet is the widest");
    assert!(both.width == one.width && both.height > one.height);
    let documents = folder.packds(&["show", "out.pack", "b.pack", "-o", "x.png", "--json", "--size", "48"]).json();
    let facts = |pack: usize| (documents[pack]["path"].clone(), documents[pack]["n_samples"].clone());
    assert_eq!([facts(0), facts(1)], [(json!("out.pack"), json!(4)), (json!("b.pack"), json!(1))]);
    assert_eq!(documents[0]["height"], both.height);
    let said = folder.packds(&["show", "out.pack", "b.pack", "-o", "y.png"]).ok();
    assert!(said.starts_with("y.png: 5 samples, "), "{said}");
    let none = folder.packds(&["show", "out.pack", "none.pack", "-o", "z.png"]);
    assert!(none.code == 2 && none.stderr.contains("none.pack") && !folder.path("z.png").exists(), "{none:?}");
}

#[test]
fn the_sheet_is_described_in_three_lines() {
    let folder = Folder::new();
    SamplePack { n_samples: 1, ..SamplePack::default() }.write(&folder, "out.pack");
    let said = folder.packds(&["show", "out.pack", "-o", "one.jpg"]).ok();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("one.jpg: 1 sample, "), "{said}");
    assert!(lines[1].starts_with("image    JPEG of ") && lines[1].ends_with(" pixels"), "{said}");
    assert!(lines[2].starts_with("time     ") && lines.len() == 3, "{said}");
    assert_eq!(folder.packds(&["show", "out.pack", "-o", "two.png", "-q"]).ok(), "");
}

#[test]
fn words_of_a_file_replace_class_names() {
    let folder = Folder::new();
    SamplePack { n_samples: 3, ..SamplePack::default() }.write(&folder, "out.pack");
    let plain = show(&folder, &[]);
    fs::write(folder.path("names.txt"), "cat Katze, Hauskatze\nsea lion\tOtaria\nhorse Pferd\n").unwrap();
    assert!(show(&folder, &["--names", "names.txt"]).data != plain.data);
    let rows = folder.packds(&["head", "out.pack", "--names", "names.txt"]).ok();
    let classes: Vec<&str> = rows.lines().skip(1).map(|row| row[15..].split("  ").next().unwrap()).collect();
    assert_eq!(classes, ["Katze, Hauskatze", "dog", "Otaria"], "{rows}");
    let mut from_stdin = folder.command(&["head", "out.pack", "--names", "-"]);
    let ran = from_stdin.stdin(fs::File::open(folder.path("names.txt")).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), rows);
    // Samples are still chosen by the pack's names.
    assert_eq!(folder.packds(&["head", "out.pack", "--names", "names.txt", "--class", "cat"]).ok().lines().count(), 2);
    fs::write(folder.path("names.json"), r#"{"n01440764": "tench"}"#).unwrap();
    for command in [&["head", "out.pack"][..], &["show", "out.pack", "-o", "none.png"]] {
        let ran = folder.packds(&[command, &["--names", "names.json"]].concat());
        let expected = "packds: error: names.json: this file has no display names for the classes of out.pack: \
                        it has display names for n01440764, but the classes are cat, dog, sea lion\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    }
    assert!(!folder.path("none.png").exists());
}
