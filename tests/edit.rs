//! `packds subset`, `split`, `merge`, `reorder`, `relabel` and `drop-field`: packs written from samples of packs.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use packds_format::{DType, Field, FieldKind, Pack, Permutation, Role};
use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, fixture, provenance, signal};

type Opened = Pack<Vec<u8>>;

fn opened(folder: &Folder, name: &str) -> Opened {
    Pack::open(fs::read(folder.path(name)).unwrap()).unwrap()
}

/// The golden packs that have samples.
fn golden() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixture("golden/v1")).unwrap().map(|entry| entry.unwrap().path());
    let packs = entries.filter(|path| path.extension().is_some_and(|extension| extension == "pack"));
    let mut packs: Vec<PathBuf> =
        packs.filter(|path| Pack::open(fs::read(path).unwrap()).unwrap().n_samples() > 0).collect();
    packs.sort();
    packs
}

/// All items and the path of a sample.
fn sample(pack: &Opened, sample: u64) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    let fields = 0..pack.schema().fields().len();
    (fields.map(|field| pack.item(field, sample).unwrap().into_owned()).collect(), pack.path(sample).unwrap())
}

/// Asserts that the samples of `new` are these samples of `old`, in this order.
fn assert_same(new: &Opened, old: &Opened, samples: impl IntoIterator<Item = u64>, name: &str) {
    let mut n = 0;
    for (place, number) in (0..).zip(samples) {
        assert!(sample(new, place) == sample(old, number), "{name}: sample {place}");
        n += 1;
    }
    assert_eq!(new.n_samples(), n, "{name}");
}

#[test]
fn every_golden_pack_can_be_cut_and_joined_without_changing_an_item() {
    let folder = Folder::new();
    for path in golden() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let old = Pack::open(fs::read(&path).unwrap()).unwrap();
        fs::copy(&path, folder.path("in.pack")).unwrap();
        let odd: Vec<u64> = (0..old.n_samples()).filter(|sample| sample % 2 == 1 || old.n_samples() == 1).collect();
        let list: Vec<String> = odd.iter().map(u64::to_string).collect();
        let args = ["subset", "in.pack", "odd.pack", "--samples", &list.join(","), "--force", "--json"];
        let report = folder.packds(&args).json();
        assert_eq!(report["n_samples"], json!(odd.len()), "{name}: {report}");
        assert_same(&opened(&folder, "odd.pack"), &old, odd.iter().copied(), name);
        folder.packds(&["verify", "odd.pack", "-q"]).ok();
        folder.packds(&["merge", "in.pack", "odd.pack", "in.pack", "all.pack", "--force", "-q"]);
        let all = (0..old.n_samples()).chain(odd).chain(0..old.n_samples());
        assert_same(&opened(&folder, "all.pack"), &old, all, name);
        folder.packds(&["verify", "all.pack", "-q"]).ok();
        assert_eq!(opened(&folder, "all.pack").geometry().chunk_samples(), old.geometry().chunk_samples(), "{name}");
    }
}

#[test]
fn every_golden_pack_can_be_reordered_and_back() {
    let folder = Folder::new();
    for path in golden() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let old = Pack::open(fs::read(&path).unwrap()).unwrap();
        fs::copy(&path, folder.path("in.pack")).unwrap();
        folder.packds(&["reorder", "in.pack", "out.pack", "--seed", "7", "--force", "-q"]);
        let order = Permutation::new(old.n_samples(), 7);
        assert_same(&opened(&folder, "out.pack"), &old, (0..old.n_samples()).map(|at| order.at(at)), name);
        folder.packds(&["verify", "out.pack", "-q"]).ok();
        if old.schema().index_of("source_id").is_ok() {
            folder.packds(&["reorder", "out.pack", "back.pack", "--by", "source_id", "--force", "-q"]);
            let ids = old.schema().index_of("source_id").unwrap();
            let mut sorted: Vec<u64> = (0..old.n_samples()).map(|at| order.at(at)).collect();
            sorted.sort_by_key(|sample| old.column(ids).unwrap().integer(*sample));
            assert_same(&opened(&folder, "back.pack"), &old, sorted, name);
        }
    }
}

#[test]
fn every_golden_pack_keeps_its_other_items_when_a_field_is_left_out() {
    let folder = Folder::new();
    for path in golden() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let old = Pack::open(fs::read(&path).unwrap()).unwrap();
        fs::copy(&path, folder.path("in.pack")).unwrap();
        let checksums = old.schema().by_role(Role::SampleCrc32c, None).map(|(number, _)| number);
        for field in old.schema().fields() {
            let ran = folder.packds(&["drop-field", "in.pack", "out.pack", &field.name, "--force", "-q"]);
            if ran.code != 0 {
                let reasons = ["outside the columns", "needs `", "replace samples that could not be read"];
                assert!(reasons.iter().any(|reason| ran.stderr.contains(reason)), "{name}: {ran:?}");
                continue;
            }
            let new = opened(&folder, "out.pack");
            assert!(new.schema().index_of(&field.name).is_err(), "{name}");
            for (number, kept) in new.schema().fields().iter().enumerate() {
                let before = old.schema().index_of(&kept.name).unwrap();
                if Some(before) == checksums {
                    continue;
                }
                for sample in 0..old.n_samples() {
                    assert!(new.item(number, sample).unwrap() == old.item(before, sample).unwrap(), "{name}: {sample}");
                }
            }
            assert!((0..old.n_samples()).all(|sample| new.path(sample).unwrap() == old.path(sample).unwrap()));
            // The checksums of the samples are those of the fields that are left.
            folder.packds(&["verify", "out.pack", "-q"]).ok();
        }
    }
}

#[test]
fn what_describes_an_image_is_left_out_with_it() {
    let folder = Folder::new();
    let source = fixture("images/folder");
    let args = ["convert", source.to_str().unwrap(), "in.pack", "--mode", "encoded", "-q"];
    folder.packds(&args);
    let old = opened(&folder, "in.pack");
    let ran = folder.packds(&["drop-field", "in.pack", "out.pack", "image.width"]);
    assert!(ran.code == 2 && ran.stderr.contains("field `image` needs `image.width`"), "{ran:?}");
    let ran = folder.packds(&["drop-field", "in.pack", "out.pack", "image"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("no field would be left outside the columns\n\nhint: keep `image`"),
        "{ran:?}"
    );
    let ran = folder.packds(&["drop-field", "in.pack", "out.pack", "lable"]);
    let names: Vec<String> = old.schema().fields().iter().map(|field| format!("`{}`", field.name)).collect();
    assert!(ran.code == 2 && ran.stderr.contains("no field `lable`"), "{ran:?}");
    assert!(names.iter().all(|name| ran.stderr.contains(name)), "{ran:?}");
    assert_eq!(folder.files("."), ["in.pack"]);
    // With a second field in the body, the image can be left out.
    let photo = Field::variable("photo", FieldKind::Image);
    let index = Field { seek_index_of: Some("photo".to_owned()), ..Field::variable("photo.seek", FieldKind::Bytes) };
    let body = vec![Field::tensor("x", DType::F32, &[2]), photo, index];
    let two = SamplePack { body, ..SamplePack::default() };
    two.write(&folder, "two.pack");
    let report = folder.packds(&["drop-field", "two.pack", "out.pack", "photo", "--json"]).json();
    assert_eq!(report["warnings"], json!(["left out with the fields that they describe: `photo.seek`"]));
    let new = opened(&folder, "out.pack");
    assert!(new.schema().index_of("photo.seek").is_err() && new.schema().index_of("label").is_ok());
    assert_eq!(provenance(&new)["edit"], json!({"command": "drop-field", "options": {"fields": ["photo"]}}));
    // Without labels, there are no classes.
    let report = folder.packds(&["drop-field", "two.pack", "less.pack", "label", "--json"]).json();
    assert_eq!(report["n_classes"], json!(0));
    assert!(opened(&folder, "less.pack").classes().unwrap().is_empty());
    // Another choice of fields is another dataset.
    let ids = ["two.pack", "out.pack", "less.pack"].map(|name| opened(&folder, name).dataset_uuid());
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn samples_are_sorted_by_values_and_paths_and_harm_is_told() {
    let folder = Folder::new();
    let old = pack_of(&folder, "a.pack", &["cat", "dog"], 120);
    let report = folder.packds(&["reorder", "a.pack", "out.pack", "--by", "label", "--json"]).json();
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("sorted by class (`label`, icc 1.00)") && warning.contains("'packds reorder'"),
        "{warning}"
    );
    let even = (0..120).step_by(2).chain((1..120).step_by(2));
    assert_same(&opened(&folder, "out.pack"), &old, even, "label");
    // It is told before anything is written, and not again for a pack that is already sorted.
    let report = folder.packds(&["reorder", "a.pack", "dry.pack", "--by", "label", "--dry-run", "--json"]).json();
    assert_eq!(report["warnings"][0].as_str(), Some(warning));
    let report = folder.packds(&["subset", "out.pack", "part.pack", "--samples", "20-99", "--json"]).json();
    assert_eq!(report["warnings"], json!([]));
    // A shuffled order undoes the harm.
    let report = folder.packds(&["reorder", "out.pack", "mixed.pack", "--json"]).json();
    assert_eq!(report["warnings"], json!([]));
    folder.packds(&["reorder", "mixed.pack", "paths.pack", "--by", "path", "-q"]);
    let mut paths: Vec<(Vec<u8>, u64)> = (0..120).map(|sample| (old.path(sample).unwrap().unwrap(), sample)).collect();
    paths.sort();
    assert_same(&opened(&folder, "paths.pack"), &old, paths.into_iter().map(|(_, sample)| sample), "path");
}

#[test]
fn a_reordered_pack_keeps_the_statistics_of_encoded_images() {
    let folder = Folder::new();
    let source = fixture("images/folder");
    folder.packds(&["convert", source.to_str().unwrap(), "in.pack", "--mode", "encoded", "--check-decode", "-q"]);
    let ran = folder.packds(&["reorder", "in.pack", "out.pack", "-q"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let fields = |name: &str| opened(&folder, name).stats().unwrap().fields;
    assert!(!fields("in.pack").is_empty() && fields("in.pack") == fields("out.pack"));
}

/// Photographs in class folders, packed in one of the modes.
fn photos(folder: &Folder, mode: &[&str]) -> Opened {
    let source = fixture("images/same_size");
    let args = [&["convert", source.to_str().unwrap(), "in.pack", "--force", "-q"], mode].concat();
    assert_eq!(folder.packds(&args).code, 0);
    opened(folder, "in.pack")
}

#[test]
fn the_same_choice_gives_the_same_bytes_at_any_number_of_threads() {
    let folder = Folder::new();
    for mode in [&["--mode", "raw"][..], &["--mode", "encoded"], &["--codec", "zstd", "--chunk", "3"]] {
        photos(&folder, mode);
        let mut seen = BTreeSet::new();
        for jobs in ["1", "3"] {
            let args = ["subset", "in.pack", "out.pack", "--where", "sample >= 3", "--jobs", jobs, "--force", "-q"];
            assert_eq!(folder.packds(&args).code, 0);
            seen.insert(fs::read(folder.path("out.pack")).unwrap());
        }
        assert_eq!(seen.len(), 1, "{mode:?}");
    }
}

#[test]
fn statistics_are_those_of_a_conversion_of_the_same_samples() {
    let folder = Folder::new();
    let all = photos(&folder, &["--keep-order"]);
    folder.packds(&["split", "in.pack", "part.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    folder.packds(&["merge", "part.train.pack", "part.val.pack", "out.pack", "-q"]).ok();
    let (joined, stats) = (opened(&folder, "out.pack"), all.stats().unwrap());
    assert_eq!(joined.stats().unwrap().fields, stats.fields);
    assert_eq!(joined.classes().unwrap(), all.classes().unwrap());
    // Two parts have as many pixels as the whole.
    let pixels = |name: &str| opened(&folder, name).stats().unwrap().fields["image"].n_pixels;
    assert_eq!(pixels("part.train.pack") + pixels("part.val.pack"), stats.fields["image"].n_pixels);
    // The same samples as a conversion, without shuffling, have the same statistics.
    let copied = folder.packds(&["subset", "in.pack", "copy.pack", "--where", "sample >= 0", "-q"]);
    assert_eq!((copied.code, opened(&folder, "copy.pack").stats().unwrap()), (0, stats));
}

#[test]
fn pixels_of_encoded_images_are_not_counted_and_that_is_said() {
    let folder = Folder::new();
    let source = fixture("images/folder");
    let args = ["convert", source.to_str().unwrap(), "in.pack", "--mode", "encoded", "--check-decode", "-q"];
    folder.packds(&args);
    assert!(opened(&folder, "in.pack").stats().unwrap().fields.contains_key("image"));
    let ran = folder.packds(&["subset", "in.pack", "out.pack", "--samples", "0", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("the new pack has no statistics of the pixels of `image`"), "{ran:?}");
    let stats = opened(&folder, "out.pack").stats().unwrap();
    assert!(stats.fields.is_empty() && stats.sizes["image"].total > 0);
    // Packs that are merged whole keep their statistics.
    let ran = folder.packds(&["merge", "in.pack", "in.pack", "twice.pack", "-q"]);
    assert!(ran.code == 0 && !ran.stderr.contains("statistics"), "{ran:?}");
    let pixels = |name: &str| opened(&folder, name).stats().unwrap().fields["image"].n_pixels;
    assert_eq!(pixels("twice.pack"), 2 * pixels("in.pack"));
}

#[test]
fn where_the_samples_come_from_is_recorded() {
    let folder = Folder::new();
    let old = photos(&folder, &[]);
    folder.packds(&["subset", "in.pack", "out.pack", "--where", "sample < 5", "-q"]).ok();
    let new = opened(&folder, "out.pack");
    let said = provenance(&new);
    assert_eq!(said["edit"]["command"], json!("subset"));
    assert_eq!(said["edit"]["options"]["where"], json!("sample < 5"));
    let origin = &said["origins"][0];
    assert_eq!(origin["pack_uuid"], json!(old.pack_uuid().to_string()));
    assert_eq!((&origin["n_taken"], &origin["n_samples"]), (&json!(5), &json!(old.n_samples())));
    assert_eq!(origin["provenance"], provenance(&old));
    assert_ne!(new.dataset_uuid(), old.dataset_uuid());
    assert_ne!(new.pack_uuid(), new.dataset_uuid());
    let info = folder.packds(&["info", "out.pack"]).ok();
    assert!(info.contains("subset of 1 pack"), "{info}");
}

/// A pack with these classes and a name for its paths.
fn pack_of(folder: &Folder, name: &str, classes: &[&str], n_samples: u32) -> Opened {
    let classes: Vec<String> = classes.iter().map(ToString::to_string).collect();
    let paths = (0..n_samples).map(|sample| format!("{name}/{sample}").into_bytes()).collect();
    let pack = SamplePack { n_samples, classes, paths: Some(paths), ..SamplePack::default() };
    pack.write(folder, name)
}

fn labels(pack: &Opened) -> Vec<i64> {
    let (field, _) = pack.schema().by_role(Role::Label, None).unwrap();
    (0..pack.n_samples()).map(|sample| pack.column(field).unwrap().integer(sample).unwrap()).collect()
}

#[test]
fn classes_are_joined_by_name() {
    let folder = Folder::new();
    pack_of(&folder, "a.pack", &["cat", "dog"], 4);
    pack_of(&folder, "b.pack", &["dog", "owl", "cat"], 6);
    let ran = folder.packds(&["merge", "a.pack", "b.pack", "out.pack", "--json"]);
    let report = ran.json();
    let expected = "b.pack: 3 classes of `label` get other ids, because classes are joined by name";
    assert_eq!(report["warnings"], json!([expected]));
    let new = opened(&folder, "out.pack");
    assert_eq!(labels(&new), [0, 1, 0, 1, 1, 2, 0, 1, 2, 0]);
    let classes = &new.classes().unwrap()[0];
    assert_eq!(classes.names, ["cat", "dog", "owl"]);
    assert_eq!(classes.counts, [4, 4, 2]);
    folder.packds(&["verify", "out.pack", "-q"]).ok();
    // With the same classes, ids stay and nothing is said.
    assert_eq!(folder.packds(&["merge", "a.pack", "a.pack", "same.pack", "-q"]).code, 0);
}

#[test]
fn packs_that_differ_are_refused_with_the_first_difference() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    let mut wide = SamplePack::default();
    wide.body[0].shape = vec![4, 7, 3];
    wide.write(&folder, "wide.pack");
    let mut more = SamplePack::default();
    more.body.push(Field::tensor("extra", DType::F32, &[2]));
    more.write(&folder, "more.pack");
    SamplePack { classes: vec!["x".to_owned(), "x".to_owned()], ..SamplePack::default() }.write(&folder, "twice.pack");
    for (other, reason) in [
        ("wide.pack", "field `image`: expected shape [4,6,3], as in a.pack, found [4,7,3]"),
        ("more.pack", "expected field `label`, as in a.pack, found field `extra`"),
        ("twice.pack", "two classes of `label` are called 'x'"),
        ("missing.pack", "No such file or directory"),
        ("../in", "No such file or directory"),
    ] {
        let ran = folder.packds(&["merge", "a.pack", other, "out.pack"]);
        assert!(ran.code != 0 && ran.stderr.contains(&format!("{other}: ")), "{ran:?}");
        assert!(ran.stderr.contains(reason), "{ran:?}");
        assert!(!folder.path("out.pack").exists());
    }
    // The file that a merge would read and write at once.
    let ran = folder.packds(&["merge", "a.pack", "a.pack", "--force"]);
    assert!(ran.stderr.contains("this is the source itself"), "{ran:?}");
    let ran = folder.packds(&["merge", "a.pack", "a.pack", "wide.pack"]);
    assert!(ran.code == 2 && ran.stderr.contains("wide.pack: "), "{ran:?}");
}

fn names(pack: &Opened) -> (Vec<String>, Vec<u64>) {
    let classes = pack.classes().unwrap().remove(0);
    (classes.names, classes.counts)
}

#[test]
fn labels_of_a_table_replace_those_of_the_pack() {
    let folder = Folder::new();
    let old = pack_of(&folder, "a.pack", &["cat", "dog"], 8);
    let before = labels(&old);
    for (table, text) in [
        ("t.csv", "path,class\na.pack/1, owl\na.pack/2,dog \n"),
        ("t.tsv", "sample\tlabel\tnote\n2\tdog\tx\n1\towl\ty\n"),
        ("t.jsonl", "{\"label\": \"owl\", \"sample\": 1}\n{\"sample\": 2, \"label\": \"dog\"}\n"),
    ] {
        fs::write(folder.path(table), text).unwrap();
        let report = folder.packds(&["relabel", "a.pack", "out.pack", table, "--force", "--json"]).json();
        assert_eq!(report["warnings"], json!(["1 class added to `label`: 'owl'"]), "{table}");
        let new = opened(&folder, "out.pack");
        let expected: Vec<i64> = before
            .iter()
            .zip(0..)
            .map(|(id, sample)| if sample == 1 { 2 } else { i64::from(sample == 2).max(*id) })
            .collect();
        assert_eq!(labels(&new), expected, "{table}");
        assert_eq!(names(&new), (["cat", "dog", "owl"].map(str::to_owned).to_vec(), vec![3, 4, 1]));
        for sample in 0..8 {
            assert!(new.item(0, sample).unwrap() == old.item(0, sample).unwrap());
        }
        folder.packds(&["verify", "out.pack", "-q"]).ok();
        // Only the samples of the table.
        folder.packds(&["relabel", "a.pack", "only.pack", table, "--only", "--force", "-q"]);
        let only = opened(&folder, "only.pack");
        assert_eq!((labels(&only), only.path(0).unwrap()), (vec![2, 1], old.path(1).unwrap()), "{table}");
    }
    assert_eq!(provenance(&opened(&folder, "out.pack"))["edit"]["options"], json!({"table": "t.jsonl"}));
    let ids = ["a.pack", "out.pack", "only.pack"].map(|name| opened(&folder, name).dataset_uuid());
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    // Numbers are class ids, unless a class has such a name. Classes that become empty keep their ids.
    let rows: String = (0..8).map(|sample| format!("{sample},1\n")).collect();
    fs::write(folder.path("ids.csv"), format!("sample,label\n{rows}")).unwrap();
    let report = folder.packds(&["relabel", "a.pack", "ids.pack", "ids.csv", "--json"]).json();
    let told = [
        "the classes in the table are numbers, and are read as class ids",
        "classes of `label` that have no samples any more keep their ids: 'cat'",
    ];
    assert_eq!(report["warnings"], json!(told));
    assert_eq!(names(&opened(&folder, "ids.pack")), (["cat", "dog"].map(str::to_owned).to_vec(), vec![0, 8]));
    pack_of(&folder, "n.pack", &["1", "0"], 8);
    folder.packds(&["relabel", "n.pack", "n.out.pack", "ids.csv", "-q"]);
    assert_eq!(labels(&opened(&folder, "n.out.pack")), [0; 8]);
    // A pack without class names has ids only.
    pack_of(&folder, "bare.pack", &[], 8);
    folder.packds(&["relabel", "bare.pack", "bare.out.pack", "ids.csv", "-q"]).ok();
    assert_eq!(labels(&opened(&folder, "bare.out.pack")), [1; 8]);
}

#[test]
fn classes_are_renamed_and_joined() {
    let folder = Folder::new();
    let old = pack_of(&folder, "a.pack", &["cat", "dog", "a=b"], 9);
    folder.packds(&["relabel", "a.pack", "one.pack", "--rename", "cat=kitten", "--rename", "a=b=c=d", "-q"]).ok();
    let new = opened(&folder, "one.pack");
    assert_eq!(labels(&new), labels(&old));
    assert_eq!(names(&new), (["kitten", "dog", "c=d"].map(str::to_owned).to_vec(), vec![3, 3, 3]));
    let options = json!({"rename": ["cat=kitten", "a=b=c=d"]});
    assert_eq!(provenance(&new)["edit"], json!({"command": "relabel", "options": options}));
    let report = folder.packds(&["relabel", "a.pack", "two.pack", "--rename", "cat=dog", "--json"]).json();
    assert_eq!(report["warnings"], json!(["'cat' is joined with 'dog', and keeps its id without samples"]));
    assert_eq!(names(&opened(&folder, "two.pack")).1, [0, 6, 3]);
    // Two classes with one new name.
    folder.packds(&["relabel", "a.pack", "pet.pack", "--rename", "dog=pet", "--rename", "cat=pet", "-q"]);
    assert_eq!(names(&opened(&folder, "pet.pack")), (["pet", "dog", "a=b"].map(str::to_owned).to_vec(), vec![6, 0, 3]));
}

#[test]
fn several_classes_of_a_sample_are_renamed() {
    let folder = Folder::new();
    let packs = golden().into_iter().filter(|path| {
        let pack = Pack::open(fs::read(path).unwrap()).unwrap();
        let field = pack.schema().by_role(Role::Labels, None).map(|(_, field)| field.name.clone());
        field.is_some_and(|field| pack.classes().unwrap().iter().any(|classes| classes.field == field))
    });
    for path in packs {
        let old = Pack::open(fs::read(&path).unwrap()).unwrap();
        let (number, field) = old.schema().by_role(Role::Labels, None).unwrap();
        let (path, classes) = (path.to_str().unwrap(), old.classes().unwrap().remove(0).names);
        let rename = format!("{}={}", classes[0], classes[1]);
        let args = ["relabel", path, "out.pack", "--field", &field.name, "--rename", &rename, "--force", "-q"];
        assert_eq!(folder.packds(&args).code, 0);
        let new = opened(&folder, "out.pack");
        for sample in 0..old.n_samples() {
            let (before, after) = (old.item(number, sample).unwrap()[0], new.item(number, sample).unwrap()[0]);
            assert_eq!(after, if before & 1 == 1 { before & !1 | 2 } else { before });
        }
        fs::write(folder.path("t.csv"), format!("sample,class\n0,{}\n", classes[0])).unwrap();
        let ran = folder.packds(&["relabel", path, "no.pack", "t.csv"]);
        assert!(ran.code == 2 && ran.stderr.contains("has several classes for each sample"), "{ran:?}");
    }
}

#[test]
fn wrong_tables_are_refused() {
    let folder = Folder::new();
    pack_of(&folder, "a.pack", &["cat", "dog"], 8);
    let bare = SamplePack { paths: Some(Vec::new()), classes: Vec::new(), ..SamplePack::default() };
    bare.write(&folder, "bare.pack");
    for (pack, table, reason) in [
        ("a.pack", "path,class\na.pack/1,dog\nx/1,dog\n", "t.csv: line 3: the pack has no sample with the path 'x/1'"),
        ("a.pack", "sample,class\n8,dog\n", "t.csv: line 2: the pack has no sample with the number '8'"),
        ("a.pack", "sample,class\n1,dog\n1,cat\n", "line 3: '1' has a row in line 2 too"),
        ("a.pack", "sample,class\n1,\n", "line 2: a cell is empty"),
        ("a.pack", "file,class\n1,dog\n", "expected a column `path` or `sample`; the columns are `file`, `class`"),
        ("a.pack", "path,sample,class\na,1,dog\n", "expected a column `path` or `sample`, found both"),
        ("a.pack", "sample,one,two\n1,dog,cat\n", "expected a column `label`; the columns are `sample`, `one`, `two`"),
        ("a.pack", "sample,class\n1,0\n3,2\n", "t.csv: line 3: expected a class id from 0 to 1, found 2"),
        ("a.pack", "sample,class\n1,owl\n3,1\n", "t.csv: line 3: expected the name of a class, as in other rows"),
        ("a.pack", "sample,class\n1,cat\n3,7\n", "t.csv: line 3: expected the name of a class, as in other rows"),
        ("a.pack", "sample,class\n1,owl\n3,-1\n", "t.csv: line 3: expected the name or the id of a class, found '-1'"),
        ("a.pack", "sample,class\n1,1.0\n", "line 2: expected the name or the id of a class, found '1.0'"),
        ("a.pack", "sample,class\n1,true\n", "line 2: expected the name or the id of a class, found 'true'"),
        ("a.pack", "sample,class\n1,  \n", "line 2: a cell is empty"),
        ("a.pack", "sample,class\n", "t.csv: the table has no rows"),
        ("bare.pack", "sample,class\n1,1\n2,cat\n", "t.csv: line 2: expected the name of a class, as in other rows"),
        ("bare.pack", "sample,class\n1,cat\n", "t.csv: line 2: the classes of `label` have no names, found 'cat'"),
        ("bare.pack", "sample,class\n1,2147483648\n", "line 2: expected a class id from 0 to 2147483647"),
        ("bare.pack", "path,class\na,dog\n", "bare.pack: the pack has no paths"),
    ] {
        fs::write(folder.path("t.csv"), table).unwrap();
        let ran = folder.packds(&["relabel", pack, "o.pack", "t.csv"]);
        assert!(ran.code != 0 && ran.stderr.contains(reason), "{table}: {ran:?}");
        assert_eq!(folder.files("."), ["a.pack", "bare.pack", "t.csv"], "{table}");
    }
    for (value, reason) in [
        ("true", "line 1: expected the name or the id of a class, found 'true'"),
        ("0.5", "line 1: expected the name or the id of a class, found '0.5'"),
        ("[\"dog\",\"cat\"]", "line 1: expected one class, found [\"dog\",\"cat\"]"),
        ("{\"a\":1}", "line 1: expected one class, found {\"a\":1}"),
        ("null", "line 1: a cell is empty"),
    ] {
        fs::write(folder.path("t.jsonl"), format!("{{\"sample\":3,\"label\":{value}}}\n")).unwrap();
        let ran = folder.packds(&["relabel", "a.pack", "o.pack", "t.jsonl"]);
        assert!(ran.code == 1 && ran.stderr.contains(reason), "{value}: {ran:?}");
    }
    let ran = folder.packds(&["relabel", "bare.pack", "o.pack", "--rename", "cat=owl"]);
    assert!(ran.code == 2 && ran.stderr.contains("the classes of `label` have no names"), "{ran:?}");
    for (args, reason) in [
        ("", "expected either a table or --rename, but neither is given"),
        ("t.csv --rename cat=owl", "expected either a table or --rename, but both are given"),
        ("--rename cat=owl --only", "--only cannot be combined with --rename"),
        ("--rename cat", "expected two class names, such as kitten=cat"),
        ("--rename owl=cat", "--rename: `label` has no class with the old name in 'owl=cat'"),
        ("--rename cat=cat", "--rename: 'cat' has this name already"),
        ("--rename cat=dog --rename dog=cat", "is both an old and a new name"),
        ("--rename cat=a --rename cat=b", "'cat' gets two new names"),
        ("--rename cat=owl --field image", "a.pack: no label field `image`"),
        ("missing.csv", "missing.csv"),
        ("a.pack", "a.pack: this is not a table"),
    ] {
        let args: Vec<&str> = ["relabel", "a.pack", "o.pack"].into_iter().chain(args.split_whitespace()).collect();
        let ran = folder.packds(&args);
        assert!(ran.code != 0 && ran.stderr.contains(reason), "{args:?}: {ran:?}");
        assert!(!folder.path("o.pack").exists());
    }
    folder.packds(&["drop-field", "a.pack", "no.pack", "label", "-q"]).ok();
    let ran = folder.packds(&["relabel", "no.pack", "o.pack", "--rename", "cat=owl"]);
    assert!(ran.code == 2 && ran.stderr.contains("no.pack: the pack has no labels"), "{ran:?}");
}

/// The paths of a split's side.
fn side(folder: &Folder, name: &str) -> BTreeSet<Vec<u8>> {
    let pack = opened(folder, name);
    (0..pack.n_samples()).map(|sample| pack.path(sample).unwrap().unwrap()).collect()
}

#[test]
fn a_sample_stays_on_its_side_when_data_is_added() {
    let folder = Folder::new();
    pack_of(&folder, "a.pack", &["cat", "dog"], 300);
    pack_of(&folder, "b.pack", &["cat", "dog"], 200);
    folder.packds(&["merge", "b.pack", "a.pack", "more.pack", "-q"]).ok();
    let split = |name: &str, seed: &str| {
        let out = format!("{seed}.{name}");
        folder.packds(&["split", name, &out, "--ratio", "0.8,0.1,0.1", "--seed", seed, "-q"]).ok();
        let stem = out.strip_suffix(".pack").unwrap().to_owned();
        ["train", "val", "test"].map(|side_name| side(&folder, &format!("{stem}.{side_name}.pack")))
    };
    let (few, more) = (split("a.pack", "0"), split("more.pack", "0"));
    for (few, more) in few.iter().zip(&more) {
        assert!(!few.is_empty() && few.is_subset(more));
    }
    let sizes: Vec<usize> = more.iter().map(BTreeSet::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 500);
    assert!((370..430).contains(&sizes[0]), "{sizes:?}");
    assert_ne!(split("a.pack", "1")[1], few[1]);
}

#[test]
fn samples_with_empty_paths_are_divided_by_their_checksums() {
    let folder = Folder::new();
    pack_of(&folder, "a.pack", &["cat", "dog"], 100);
    let paths = Some(vec![Vec::new(); 100]);
    let classes = ["cat", "dog"].map(str::to_owned).to_vec();
    SamplePack { n_samples: 100, classes, paths, ..SamplePack::default() }.write(&folder, "b.pack");
    folder.packds(&["split", "b.pack", "b.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    assert!((25..75).contains(&opened(&folder, "b.val.pack").n_samples()));
    SamplePack { paths: Some(Vec::new()), ..SamplePack::default() }.write(&folder, "none.pack");
    SamplePack::default().write(&folder, "some.pack");
    let report = folder.packds(&["merge", "some.pack", "none.pack", "c.pack", "--json"]).json();
    assert_eq!(report["warnings"], json!(["the samples of none.pack have no paths, so their paths are empty"]));
    let merged = opened(&folder, "c.pack");
    assert_eq!(
        (merged.path(9).unwrap(), merged.path(10).unwrap()),
        (Some(b"cat/img-9.png".to_vec()), Some(Vec::new()))
    );
}

#[test]
fn groups_stay_together_and_strata_keep_their_proportions() {
    let folder = Folder::new();
    let n_samples = 400;
    let pack = SamplePack { n_samples, ..SamplePack::default() };
    pack.write(&folder, "a.pack");
    folder.packds(&["split", "a.pack", "s.pack", "--ratio", "0.75,0.25", "--stratify", "label", "-q"]).ok();
    let counts = |name: &str| opened(&folder, name).classes().unwrap()[0].counts.clone();
    assert_eq!((counts("s.train.pack"), counts("s.val.pack")), (vec![100, 100, 100], vec![34, 33, 33]));
    folder.packds(&["split", "a.pack", "g.pack", "--folds", "2", "--group-by", "label", "--seed", "1", "-q"]).ok();
    let own = |name: &str| labels(&opened(&folder, name)).into_iter().collect::<BTreeSet<i64>>();
    assert!(own("g.fold0.pack").is_disjoint(&own("g.fold1.pack")));
    folder.packds(&["split", "a.pack", "by.pack", "--by", "label", "-q"]).ok();
    for (class, n) in [("cat", 134), ("dog", 133), ("sea lion", 133)] {
        assert_eq!(opened(&folder, &format!("by.{class}.pack")).n_samples(), n);
    }
}

#[test]
fn wrong_choices_are_refused() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    fs::write(folder.path("bad.txt"), "1\nx\n").unwrap();
    for (args, reason) in [
        ("split a.pack o.pack", "expected one of --ratio, --folds and --by"),
        ("split a.pack o.pack --ratio 0.9", "expected two or more shares that add up to 1"),
        ("split a.pack o.pack --ratio 0.9,0.2", "expected two or more shares that add up to 1"),
        ("split a.pack o.pack --ratio 0.5,0.5 --names a", "--names: expected 2 names"),
        ("split a.pack o.pack --ratio 0.5,0.5 --names ../a,b", "--names: expected 2 names"),
        ("split a.pack o.pack --ratio 0.5,0.5 --stratify lable", "a.pack: no field `lable`"),
        ("split a.pack o.pack --ratio 0.5,0.5 --group-by image", "a.pack: no field `image` with numbers or texts"),
        ("split a.pack o.pack --ratio 0.999999,0.000001", "a.pack: 'val' gets none of the 10 samples"),
        ("split a.pack o.pack --by label --names a", "--names cannot be combined with --by"),
        ("split a.pack o.pack --folds 2 --seed -1", "invalid value '-1' for '--seed <SEED>'"),
        ("split a.pack o.pack --by label --seed 3", "--seed cannot be combined with --by"),
        ("split a.pack o.pack --by label --folds 2 --ratio 0.5,0.5", "cannot be used with"),
        ("subset a.pack o.pack --samples 10", "a.pack: no sample 10"),
        ("subset a.pack o.pack --samples 5,3,3", "sample 3 is listed twice"),
        ("subset a.pack o.packs --samples 5", "o.packs: this is the name of a set of packs"),
        (
            "subset a.pack o.packs@2 --samples 5 --force",
            "o.packs@2: this is the name of a version of the set 'o.packs'",
        ),
        ("split a.pack o.packs --ratio 0.5,0.5 --dry-run", "o.train.packs: this is the name of a set of packs"),
        ("merge a.pack a.pack o.packs@1 --dry-run", "o.packs@1: this is the name of a version of the set 'o.packs'"),
        ("export a.pack o.packs --to npz", "o.packs: this is the name of a set of packs"),
        ("export a.pack o.packs@1 --to image-folder", "o.packs@1: this is the name of a version"),
        ("subset a.pack o.pack --samples bad.txt", "bad.txt: line 2: expected numbers and ranges"),
        ("subset a.pack o.pack --class owl", "owl"),
        ("subset a.pack o.pack --where nothing=1", "nothing"),
        ("subset a.pack o.pack --where sample>99", "a.pack: no sample meets these options"),
        ("subset a.pack missing/o.pack", "missing"),
        ("subset a.pack a.pack --force", "this is the source itself"),
        ("merge a.pack", "were not provided"),
        ("reorder a.pack o.pack --by lable", "`sample_crc32c`, `path`"),
        ("reorder a.pack o.pack --by image", "a.pack: no field `image` with numbers or texts"),
        ("reorder a.pack o.pack --by label --seed 1", "--seed cannot be combined with --by"),
        ("reorder a.pack a.pack --force", "this is the source itself"),
        ("drop-field a.pack o.pack", "were not provided"),
        ("drop-field a.pack o.pack lable", "a.pack: no field `lable`"),
        ("drop-field a.pack o.pack image", "no field would be left outside the columns"),
    ] {
        let ran = folder.packds(&args.split(' ').collect::<Vec<_>>());
        assert!(ran.code == 2 && ran.stderr.contains(reason), "{args}: {ran:?}");
        assert_eq!(folder.files("."), ["a.pack", "bad.txt"], "{args}");
    }
}

#[test]
fn samples_can_be_listed_in_a_file() {
    let folder = Folder::new();
    let old = SamplePack::default().write(&folder, "a.pack");
    fs::write(folder.path("keep.txt"), "7\n1-2, 4\n\n").unwrap();
    let report = folder.packds(&["subset", "a.pack", "out.pack", "--samples", "keep.txt", "--json"]).json();
    let told = "the listed samples are not in ascending order: the new pack has them in the order of the pack";
    assert_eq!(report["warnings"], json!([told]));
    assert_same(&opened(&folder, "out.pack"), &old, [1, 2, 4, 7], "keep.txt");
}

#[test]
fn a_dry_run_says_what_it_copies_and_writes_nothing() {
    let folder = Folder::new();
    pack_of(&folder, "a.pack", &["cat", "dog"], 100);
    pack_of(&folder, "b.pack", &["cat", "dog"], 100);
    for (args, copied) in [
        (&["subset", "a.pack", "out.pack", "--class", "cat"][..], 50 * 72),
        (&["merge", "a.pack", "b.pack", "out.pack"], 200 * 72),
    ] {
        let report = folder.packds(&[args, &["--dry-run", "--json"]].concat()).json();
        assert_eq!((&report["dry_run"], &report["bytes_copied"]), (&json!(true), &json!(copied)), "{args:?}");
        let text = folder.packds(&[args, &["--dry-run"]].concat()).ok();
        assert!(text.contains("nothing was written"), "{text}");
    }
    let report = folder.packds(&["split", "a.pack", "o.pack", "--folds", "2", "--dry-run", "--json"]).json();
    let sizes: Vec<&Value> = ["fold0", "fold1"].map(|fold| &report["splits"][fold]["n_samples"]).to_vec();
    assert_eq!(sizes.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 100);
    assert_eq!(folder.files("."), ["a.pack", "b.pack"]);
}

#[test]
fn damage_is_named_with_its_pack_and_leaves_nothing() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    let pack = SamplePack::default().write(&folder, "b.pack");
    folder.flip("b.pack", pack.chunk_entry(1).unwrap().offset + 3);
    for args in [
        "merge a.pack b.pack o.pack",
        "subset b.pack o.pack",
        "split b.pack o.pack --folds 2",
        "reorder b.pack o.pack",
        "drop-field b.pack o.pack label",
        "relabel b.pack o.pack --rename cat=owl",
    ] {
        let ran = folder.packds(&args.split(' ').collect::<Vec<_>>());
        assert!(ran.code == 1 && ran.stderr.contains("b.pack: "), "{args}: {ran:?}");
        assert!(folder.files(".").iter().all(|name| !name.ends_with(".packing")), "{args}");
        assert!(!folder.path("o.pack").exists());
    }
    // Undamaged samples can still be taken.
    folder.packds(&["subset", "b.pack", "good.pack", "--samples", "0-3,8-9", "-q"]).ok();
}

#[test]
fn chunks_that_stay_as_they_are_keep_their_bytes_and_checksums() {
    let folder = Folder::new();
    let whole = SamplePack { n_samples: 8, ..SamplePack::default() }.write(&folder, "a.pack");
    let short = SamplePack::default().write(&folder, "b.pack");
    let chunks = |pack: &Opened| -> Vec<(u32, u32, Vec<u8>)> {
        let of = |chunk| (pack.chunk_entry(chunk).unwrap(), pack.chunk_bytes(chunk).unwrap().to_vec());
        (0..pack.n_chunks()).map(of).map(|(entry, bytes)| (entry.n_samples, entry.crc32c, bytes)).collect()
    };
    for args in ["merge a.pack b.pack o.pack", "relabel b.pack o.pack --rename cat=owl"] {
        let ran = folder.packds(&[&args.split(' ').collect::<Vec<_>>()[..], &["--force", "-q"]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let before = if args.starts_with("merge") { chunks(&whole) } else { Vec::new() };
        assert_eq!(chunks(&opened(&folder, "o.pack")), [before, chunks(&short)].concat(), "{args}");
    }
    // Behind a short chunk, all samples move to other chunks.
    assert_eq!(folder.packds(&["merge", "b.pack", "a.pack", "o.pack", "--force", "-q"]).code, 0);
    let merged = opened(&folder, "o.pack");
    assert_eq!((merged.n_chunks(), chunks(&merged)[..2] == chunks(&short)[..2]), (5, true));
    assert!((0..10).all(|number| sample(&merged, number) == sample(&short, number)));
    folder.packds(&["verify", "o.pack", "-q"]).ok();
}

#[test]
fn no_malformed_pack_stops_an_edit_without_an_error() {
    let folder = Folder::new();
    for entry in fs::read_dir(fixture("malformed")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pack") {
            continue;
        }
        let name = path.to_str().unwrap();
        for args in [
            &["subset", name, "o.pack"][..],
            &["merge", name, name, "o.pack"],
            &["reorder", name, "o.pack"],
            &["reorder", name, "o.pack", "--by", "label"],
            &["drop-field", name, "o.pack", "label"],
            &["relabel", name, "o.pack", "--rename", "cat=dog"],
        ] {
            let ran = folder.packds(&[args, &["--force", "-q"]].concat());
            assert!(matches!(ran.code, 0..=2), "{ran:?}");
            if ran.code == 0 {
                folder.packds(&["verify", "o.pack", "-q"]).ok();
            }
        }
    }
}

/// How often the test below kills a command. Set PACKDS_KILLS for more.
#[expect(clippy::disallowed_methods, reason = "a test has no options")]
fn n_kills() -> u32 {
    std::env::var("PACKDS_KILLS").map_or(30, |n| n.parse().unwrap())
}

#[test]
fn a_killed_edit_leaves_no_pack_and_the_next_one_works() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 20_000, chunk_samples: 16, paths: Some(Vec::new()), ..SamplePack::default() };
    pack.write(&folder, "a.pack");
    let commands = [
        &["merge", "a.pack", "a.pack", "a.pack", "o.pack"][..],
        &["subset", "a.pack", "o.pack"],
        &["reorder", "a.pack", "o.pack"],
        &["drop-field", "a.pack", "o.pack", "label"],
        &["relabel", "a.pack", "o.pack", "--rename", "cat=owl"],
        &["add-field", "a.pack", "o.pack", "t.csv"],
    ];
    let rows: Vec<String> = (0..20_000).map(|sample| format!("{sample},{}", sample % 7)).collect();
    fs::write(folder.path("t.csv"), format!("sample,age\n{}\n", rows.join("\n"))).unwrap();
    let n_kills = n_kills().div_ceil(6);
    for command in commands {
        let args = [command, &["--force", "-q"]].concat();
        folder.packds(&args).ok();
        let whole = fs::read(folder.path("o.pack")).unwrap();
        let started = Instant::now();
        folder.packds(&args).ok();
        let takes = started.elapsed();
        for step in 0..n_kills {
            fs::remove_file(folder.path("o.pack")).unwrap();
            let mut command = folder.command(&args);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(takes * step / n_kills + Duration::from_millis(1));
            signal(&child, "-KILL");
            child.wait().unwrap();
            // Either nothing has the name, or the whole pack does.
            if let Ok(bytes) = fs::read(folder.path("o.pack")) {
                assert!(bytes == whole, "{args:?}: step {step}");
            }
            folder.packds(&args).ok();
            assert!(fs::read(folder.path("o.pack")).unwrap() == whole, "{args:?}: step {step}");
        }
    }
    assert_eq!(folder.files("."), ["a.pack", "o.pack", "t.csv"]);
}
