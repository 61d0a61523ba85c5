//! Unusual sources that occur in practice: their contents are found, or the error says what to do.

use packds_format::{FieldKind, Pack, Role};
use serde_json::{Value, json};

use super::items::{Bytes, convert, hex, ids, items};
use super::{python, python_with};
use crate::support::{Folder, fixture};

const NAMES: [&str; 3] = ["cat", "dog", "owl"];

/// The sources, and their contents.
fn sources() -> (Folder, Value) {
    let folder = Folder::new();
    let written = python(&["layouts.py", "write", folder.path("").to_str().unwrap()]);
    (folder, serde_json::from_str(&written).unwrap())
}

/// The error for a source. The command must exit with `code`.
fn said(folder: &Folder, args: &[&str], code: i32) -> String {
    let ran = folder.packds(&[&["convert"], args, &["no.pack"]].concat());
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(!folder.path("no.pack").exists());
    ran.stderr
}

/// Asserts that each source fails with this exit code, error and hint.
fn assert_refused(folder: &Folder, refused: &[(&[&str], i32, &str, &str)]) {
    for (args, code, error, hint) in refused {
        let said = said(folder, args, *code);
        assert!(said.contains(error), "{args:?}: {said}");
        let hints = said.split_once("hint: ").map_or("", |(_, hint)| hint);
        assert!(hints.contains(hint), "{args:?}: {said}");
        assert!(!hints.contains("damaged"), "{args:?}: {said}");
    }
}

#[test]
fn names_of_classes_are_found_in_types_and_in_attributes_of_files() {
    let (folder, expected) = sources();
    for name in ["enum.h5", "listed.h5", "text.h5", "listed.zarr"] {
        let pack = convert(&folder, name, &[]);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        assert_eq!(pack.classes().unwrap()[0].names, NAMES, "{name}");
    }
}

#[test]
fn lists_that_torch_saves_are_labels_and_fields() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    let Some(written) = python_with("torch", &["layouts.py", "torch", &here]) else {
        return;
    };
    let written: Value = serde_json::from_str(&written).unwrap();
    for name in ["ids.pt", "names.pt", "pair.pt", "scores.pt"] {
        let pack = convert(&folder, name, &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), written["pixels"], "{name}");
        assert_eq!(json!(ids(&pack)), written["labels"], "{name}");
        let classes = pack.classes().unwrap();
        let has_names = classes.first().is_some_and(|c| !c.names.is_empty());
        assert_eq!(has_names, name == "names.pt", "{name}");
    }
    let pack = convert(&folder, "names.pt", &[]);
    assert_eq!(pack.classes().unwrap()[0].names, NAMES);
    let pack = convert(&folder, "scores.pt", &[]);
    assert_eq!(items(&pack, "score")[1], 1_f64.to_le_bytes());
    let refused = [
        (&["samples.pt"][..], 2, "images: expected a tensor of all images, found a list of 6", "torch.stack"),
        (&["numpy.pt"], 2, "images: expected a tensor, found a NumPy array", "torch.from_numpy"),
    ];
    assert_refused(&folder, &refused);
    let test = convert(&folder, "halves.pt", &["--split", "test"]);
    assert_eq!(json!(ids(&test)), json!([0, 1, 2, 0]));
}

#[test]
fn what_is_of_no_split_is_not_lost_beside_one_that_is() {
    let (folder, _) = sources();
    let halves: [(&[&str], &str); 4] = [
        (&["rest.h5"], "found the splits 'test', and arrays that belong to no split"),
        (&["rest.zarr"], "found the splits 'test', and arrays that belong to no split"),
        (&["rest.npz"], "found the splits 'test', and arrays that belong to no split"),
        (&["beside", "--split", "all"], "found the splits 'train', and files that belong to no split"),
    ];
    for (args, expected) in halves {
        let said = said(&folder, args, 2);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    for source in ["rest.h5", "rest.zarr", "rest.npz"] {
        let test = convert(&folder, source, &["--split", "test"]);
        assert_eq!(json!(ids(&test)), json!([0, 1, 2, 0]), "{source}");
        let rest = convert(&folder, source, &["--image-key", "images", "--label-key", "labels"]);
        assert_eq!(json!(ids(&rest)), json!([0, 1, 2, 0, 1, 2]), "{source}");
        assert!(rest.schema().index_of("test_labels").is_err(), "{source}");
    }
    let test = convert(&folder, "halves.safetensors", &["--split", "test"]);
    assert_eq!(json!(ids(&test)), json!([0, 1, 2, 0]));
    let train = convert(&folder, "numbered", &["--split", "train"]);
    assert_eq!(train.n_samples(), 12);
    // An export has no splits, whatever the names of its fields.
    convert(&folder, "rest.h5", &["--image-key", "test_images", "--label-key", "test_labels"]);
    for target in ["again.h5", "again.npz", "again.safetensors"] {
        folder.packds(&["export", "out.pack", target]).ok();
        assert_eq!(convert(&folder, target, &[]).n_samples(), 4, "{target}");
        convert(&folder, "rest.h5", &["--image-key", "test_images", "--label-key", "test_labels"]);
    }
}

#[test]
fn what_is_overlooked_or_left_out_is_said() {
    let (folder, _) = sources();
    let warnings = |source: &str| {
        let report = folder.packds(&["convert", source, "w.pack", "--json", "--force"]).json();
        report["warnings"].to_string()
    };
    let two = warnings("two.npz");
    assert!(
        two.contains("no field has a name commonly used for labels (fields: 'targets_1', 'targets_2'); choose"),
        "{two}"
    );
    let objects = warnings("objects.npz");
    assert!(objects.contains("left out the field 'about': elements of type"), "{objects}");
    assert!(!warnings("unlabeled.npz").contains("no labels"));
    let refused = [
        (
            &["apart"][..],
            1,
            "z.h5: expected the dataset 'x' as in the previous files, found 'z'",
            "labels in separate files are found by name",
        ),
        (&["*.npz"], 2, "no such file or folder", "{000..099}"),
    ];
    assert_refused(&folder, &refused);
}

#[test]
fn the_only_field_of_class_ids_gives_the_labels_and_is_told() {
    let (folder, expected) = sources();
    let read = |args: &[&str]| folder.packds(&[&["convert", "--dry-run"], args, &["no.pack"]].concat());
    let told = read(&["answers.h5"]).stderr;
    let warning = "labels are read from 'ans', the only field with a whole number for each image; to pack the images without labels, add --leave-out ans";
    assert!(told.contains(warning), "{told}");
    assert_eq!(json!(ids(&convert(&folder, "answers.h5", &[]))), expected["labels"]);
    for args in
        [&["answers.h5", "--leave-out", "ans"][..], &["two.npz"], &["ages.npz"], &["counts.npz"], &["indexes.npz"]]
    {
        let read = read(args);
        assert!(read.stdout.contains("labels   none") && !read.stderr.contains("are read from"), "{args:?}: {read:?}");
    }
}

#[test]
fn one_hot_rows_are_labels_and_other_rows_are_told() {
    let (folder, expected) = sources();
    let sources = ["hot.npz", "unnamed-hot.npz", "hot", "hot.safetensors", "hot.h5", "hot.zarr"];
    for source in sources {
        let told = folder.packds(&["convert", source, "no.pack", "--dry-run"]).stderr;
        assert!(told.contains("which is one-hot: the position of the 1, from 0 to 2, is the class id"), "{told}");
        let pack = convert(&folder, source, &[]);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{source}");
        if ["hot.npz", "hot.h5"].contains(&source) {
            assert_eq!(pack.classes().unwrap()[0].names, NAMES, "{source}");
        }
    }
    convert(&folder, "unnamed-hot.npz", &["--label-key", "kind"]);
    for name in ["many-hot", "none-hot", "half-hot"] {
        let told = folder.packds(&["convert", &format!("{name}.npz"), "no.pack", "--dry-run"]);
        assert!(told.stderr.contains("'y' is packed as an ordinary field, not as labels"), "{told:?}");
        let said = said(&folder, &[&format!("{name}.npz"), "--label-key", "y"], 2);
        assert!(said.contains("or 3 numbers with a 1 for the class and 0 elsewhere, found other numbers"), "{said}");
    }
    let told = folder.packds(&["convert", "attributes.npz", "no.pack", "--dry-run"]).stderr;
    assert!(
        told.contains("no labels found: no field has a name commonly used for labels (fields: 'attributes')"),
        "{told}"
    );
}

#[test]
fn labels_that_no_class_has_make_bad_samples_and_not_a_bad_source() {
    let (folder, _) = sources();
    let refused = [
        (
            &["unlabeled.npz"][..],
            1,
            "sample 2: 'y': the class id -1 has no name: the list has 2 class names",
            "--on-error skip leaves out bad samples",
        ),
        (&["none.npz"], 1, "none.npz: y: the class id -1 has no name: the list has 2 class names", "--leave-out"),
        (
            &["number.tar"],
            1,
            "'3.cls' in number.tar: expected an integer, as in other samples, found 'x1'",
            "--on-error skip leaves out bad samples",
        ),
    ];
    assert_refused(&folder, &refused);
    for (source, left) in [("unlabeled.npz", [0, 1, 0, 1, 1]), ("number.tar", [0, 1, 2, 1, 2])] {
        let skip = ["convert", source, "left.pack", "--keep-order", "--force", "--on-error", "skip"];
        assert_eq!(folder.packds(&skip).code, 1);
        let pack = Pack::open(std::fs::read(folder.path("left.pack")).unwrap()).unwrap();
        assert_eq!(json!(ids(&pack)), json!(left), "{source}");
    }
    let ran = folder.packds(&["convert", "large.npz", "large.pack", "--json"]);
    let warnings = ran.json()["warnings"].to_string();
    assert!(warnings.contains("found u64 values above 2^63 - 1"), "{warnings}");
}

#[test]
fn what_a_key_names_plays_no_other_part() {
    let (folder, expected) = sources();
    // Without the option, `img` would be the image field.
    let pack = convert(&folder, "keys.npz", &["--mask-key", "img"]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["pixels"]);
    assert_eq!(items(&pack, "mask")[0].len(), 72);
    let refused = [
        (&["keys.npz", "--label-key", "img", "--mask-key", "x"][..], 2, "no field of images", "--image-key"),
        (
            &["keys.npz", "--mask-key", "labels"],
            2,
            "keys.npz: labels: expected masks that are image files or two-dimensional arrays, found one i64 for each sample",
            "--mask-key",
        ),
    ];
    assert_refused(&folder, &refused);
}

#[test]
fn labels_in_a_file_beside_that_of_the_images_are_found_by_its_name() {
    let (folder, expected) = sources();
    let alone = ["kana/k49-train-imgs.npz", "cancer/level_2_split_train_x.h5", "v6_data.npy", "shards"];
    for source in alone {
        let pack = convert(&folder, source, &[]);
        assert_eq!(json!(hex(&items(&pack, "image").concat())), expected["pixels"], "{source}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{source}");
    }
    for source in ["kana", "cancer"] {
        let train = convert(&folder, source, &["--split", "train"]);
        assert_eq!(json!(ids(&train)), expected["labels"], "{source}");
        let test = convert(&folder, source, &["--split", "test"]);
        assert_eq!(json!(ids(&test)), json!([0, 1, 2, 0]), "{source}");
    }
    // A file's own labels take precedence over separate ones.
    let owned = convert(&folder, "owned.npz", &[]);
    assert_eq!(json!(ids(&owned)), expected["labels"]);
    let refused: [(&[&str], i32, &str, &str); 3] = [
        (&["short.npz"], 1, "label: expected 6 values, one for each image, found 4", ""),
        (
            &["doubled"],
            1,
            "expected no separate label file, because the image file has labels, found 'x', 'y'",
            "pass only the image file",
        ),
        (
            &["{owned,owned_labels}.npz"],
            1,
            "expected no separate label file, because the image files have labels",
            "pass only the image file",
        ),
    ];
    assert_refused(&folder, &refused);
}

#[test]
fn files_that_look_like_many_images_each_are_told() {
    let (folder, _) = sources();
    let refused: [(&[&str], i32, &str, &str); 2] = [
        (&["stacks"], 2, "arrays such as [30, 28, 28] whose first dimensions differ", "numpy.concatenate(..)"),
        (&["several"], 2, "found 60x784, which looks like 60 flattened images of 784 numbers", "numpy.concatenate(..)"),
    ];
    assert_refused(&folder, &refused);
    let (pack, said) = converted(&folder, &["alike"]);
    assert_eq!(pack.n_samples(), 2);
    let expected = "each file is read as one sample of shape [30, 28, 28]; if each file holds 30 images";
    assert!(said.contains(expected), "{said}");
    let (pack, said) = converted(&folder, &["few"]);
    assert_eq!(pack.n_samples(), 2);
    let expected = "each file is read as one sample of shape [20, 784]; if each file holds 20 images";
    assert!(said.contains(expected), "{said}");
    let (_, said) = converted(&folder, &["vectors"]);
    assert!(!said.contains("each file is one sample"), "{said}");
}

#[test]
fn masks_beside_arrays_keep_their_shape_through_every_format() {
    let (folder, _) = sources();
    let pack = convert(&folder, "masked.npz", &[]);
    let mask = |pack: &Bytes| {
        let number = pack.schema().index_of("mask").unwrap();
        let field = &pack.schema().fields()[number];
        (field.kind, field.shape.clone(), field.role)
    };
    assert_eq!(mask(&pack), (FieldKind::Tensor, vec![8, 9], Some(Role::Mask)));
    let source = folder.path("masked.pack");
    std::fs::copy(folder.path("out.pack"), &source).unwrap();
    for target in ["m.h5", "m.zarr", "m.npz", "m.pt", "m.safetensors", "m.parquet", "m.arrow", "m.tar", "m.lmdb"] {
        folder.packds(&["export", "masked.pack", target]).ok();
        let again = convert(&folder, target, &[]);
        assert_eq!(mask(&again), mask(&pack), "{target}");
        for name in ["image", "mask", "label"] {
            assert_eq!(items(&again, name), items(&pack, name), "{target} {name}");
        }
    }
}

#[test]
fn labels_that_lie_where_none_are_looked_for_are_told() {
    let (folder, expected) = sources();
    let (pack, said) = converted(&folder, &["inside.tar"]);
    assert!(pack.schema().index_of("label").is_err());
    let told = "no labels found: to use 'label' inside 'json', add --label-key label";
    assert!(said.contains(told), "{said}");
    let (pack, said) = converted(&folder, &["inside.tar", "--label-key", "label", "--keep-order"]);
    assert_eq!(json!(ids(&pack)), expected["labels"]);
    assert!(!said.contains("no labels"), "{said}");
    let (_, said) = converted(&folder, &["lists.parquet"]);
    let told = "'label' is packed as an ordinary field, not as labels: expected an integer or a name for each image, found lists";
    assert!(said.contains(told), "{said}");
}

#[test]
fn sources_that_nobody_can_read_as_they_are_say_what_to_do() {
    let (folder, _) = sources();
    let refused: [(&[&str], i32, &str, &str); 5] = [
        (&["dots.tar"], 2, "no field of images", "ends at the first dot"),
        (&["hive"], 1, "no images in this folder", "a column of a partitioned dataset"),
        (
            &["texts.parquet"],
            2,
            "expected image files or arrays of numbers, found strings",
            "to convert pixels stored as text, save them as arrays",
        ),
        (&["texts.csv"], 1, "no such file, named in line 2 of ", "pixels stored as text are not read"),
        (
            &["turned.npz"],
            1,
            "expected 28 values, one for each image, found 60 (dimension 3 of the images has this length)",
            "numpy.moveaxis(images, 3, 0)",
        ),
    ];
    assert_refused(&folder, &refused);
    assert!(said(&folder, &["texts.csv"], 1).len() < 2000);
    assert_eq!(convert(&folder, "each.h5", &[]).n_samples(), 20);
}

#[test]
fn sources_that_may_mean_several_things_are_refused_with_what_to_do() {
    let (folder, _) = sources();
    let refused = [
        (&["twice.npz"][..], 1, "x.npy: two members have this name", "with unique names"),
        (&["over.safetensors"], 1, "other: its bytes overlap the bytes of the tensor 'image'", "without shared bytes"),
        (
            &["sketches"],
            2,
            "cat.npy: expected one image, found 800x784, which looks like 800 flattened images of 784 numbers",
            "numpy.concatenate",
        ),
        (
            &["corrupted"],
            1,
            "'labels.npy' has labels, but no file has a name commonly used for images, found 'brightness', 'fog'",
            "--image-key brightness",
        ),
        (&["mixed"], 1, "'b.tar' is webdataset, 'a.parquet' is parquet", "--from webdataset or --from parquet"),
        (&["nothing.npy"], 1, "it contains no samples", "whose first dimension counts the samples"),
        (&["nameless.parquet"], 2, "nameless.parquet: schema: field ``: a name must have 1 to 255", "--leave-out"),
        (&["zlib.tfrecord"], 2, "the records are compressed with ZLIB, which is not supported", "GZIP"),
    ];
    assert_refused(&folder, &refused);
    let again = said(&folder, &["twice.safetensors"], 1);
    assert!(again.contains("the name 'image' appears twice"), "{again}");
}

#[test]
fn what_was_refused_is_read_when_it_is_named() {
    let (folder, _) = sources();
    // Vectors are samples if all arrays are vectors.
    assert_eq!(convert(&folder, "vectors", &[]).n_samples(), 3);
    let mixed = said(&folder, &["vectors_mixed"], 2);
    assert!(mixed.contains("cat/1.npy: expected one image, found an array of shape [5]"), "{mixed}");
    for (source, args) in [
        ("corrupted", &["--image-key", "fog"][..]),
        ("mixed", &["--from", "parquet"]),
        ("converted", &["--split", "test"]),
        ("nameless.parquet", &["--label-key", ""]),
        ("apart.safetensors", &[]),
        ("tensors", &[]),
    ] {
        assert_eq!(convert(&folder, source, args).n_samples(), 6, "{source}");
    }
}

#[test]
fn folders_of_images_in_a_tar_file_are_classes_which_is_said() {
    let (folder, _) = sources();
    let report = folder.packds(&["convert", "folders.tar", "f.pack", "--json"]).json();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("read 2 folders in the tar file as classes"), "{warnings}");
    let pack = convert(&folder, "captioned.tar", &[]);
    assert_eq!((ids(&pack), pack.schema().index_of("txt").is_ok()), (vec![0, 0, 0, 1, 1, 1], true));
}

#[test]
fn what_is_lost_or_cannot_leave_is_told_by_its_sample() {
    let (folder, _) = sources();
    folder.packds(&["convert", "zeros.jsonl", "zeros.pack", "--keep-order"]).ok();
    let ran = folder.packds(&["export", "zeros.pack", "zeros.h5"]);
    let expected = "sample 4, field `caption`: HDF5 cannot store this text";
    assert!(ran.code != 0 && ran.stderr.contains(expected), "{ran:?}");
    let said = folder.packds(&["export", "zeros.pack", "x.npy"]).ok();
    assert!(said.contains("class names, statistics, provenance"), "{said}");
}

/// Runs a conversion that must write a pack, with exit code 1 if images were bad. Returns the pack and
/// stderr.
fn converted(folder: &Folder, args: &[&str]) -> (Pack<Vec<u8>>, String) {
    let ran = folder.packds(&[&["convert"], args, &["now.pack", "--force"]].concat());
    let code = i32::from(args.contains(&"substitute"));
    assert_eq!(ran.code, code, "{ran:?}");
    let bytes = std::fs::read(folder.path("now.pack")).unwrap();
    (Pack::open(bytes).unwrap(), ran.stderr)
}

fn image_stats(pack: &Pack<Vec<u8>>) -> Option<packds_format::FieldStats> {
    pack.stats().unwrap().fields.get("image").cloned()
}

#[test]
fn statistics_of_files_that_stay_come_back_or_are_said_to_be_lost() {
    let folder = Folder::new();
    let images = fixture("images/same_size");
    let encoded = ["--mode", "encoded", "--check-decode"];
    let args = [&[images.to_str().unwrap()], &encoded[..]].concat();
    let known = image_stats(&converted(&folder, &args).0);
    assert!(known.is_some());
    for (format, target) in [("image-folder", "folder"), ("webdataset", "tars")] {
        folder.packds(&["export", "now.pack", target, "--to", format]).ok();
        let (back, said) = converted(&folder, &[target, "--mode", "encoded"]);
        assert_eq!(image_stats(&back), known, "{format}");
        assert!(!said.contains("statistics"), "{said}");
    }
    // Each sample has one form, chosen by the hash of its path. The path in a tar file differs.
    let mixed = ["--mode", "mixed", "--check-decode"];
    let args = [&[images.to_str().unwrap()], &mixed[..]].concat();
    assert_eq!(image_stats(&converted(&folder, &args).0), known);
    folder.packds(&["export", "now.pack", "mixed", "--to", "webdataset"]).ok();
    let (back, said) = converted(&folder, &["mixed", "--mode", "mixed"]);
    assert_eq!(image_stats(&back), None);
    assert!(said.contains("the new one has none"), "{said}");
    // Another image of the same size, so that the stored metadata is wrong.
    let other = folder.path("folder/noise/01.png");
    std::fs::copy(folder.path("folder/square/02.png"), other).unwrap();
    let (back, said) = converted(&folder, &["folder", "--mode", "encoded"]);
    assert_eq!(image_stats(&back), None);
    assert!(said.contains("the new one has none") && said.contains("--check-decode"), "{said}");
    let (back, said) = converted(&folder, &[&["folder"], &encoded[..]].concat());
    assert!(image_stats(&back).is_some_and(|stats| Some(stats) != known));
    assert!(!said.contains("statistics"), "{said}");
}

#[test]
fn zeros_in_the_place_of_bad_images_are_in_no_statistics_after_a_round_trip() {
    let folder = Folder::new();
    let images = fixture("images/same_size");
    std::fs::create_dir(folder.path("images")).unwrap();
    for (number, class) in ["noise/01.png", "square/02.png"].iter().enumerate() {
        let to = folder.path(&format!("images/{number}.png"));
        std::fs::copy(images.join(class), to).unwrap();
    }
    std::fs::write(folder.path("images/2.png"), b"no image").unwrap();
    let args = ["images", "--on-error", "substitute", "--jobs", "1"];
    let (pack, _) = converted(&folder, &args);
    assert_eq!(pack.n_samples(), 3);
    let known = image_stats(&pack).unwrap();
    for (format, target) in [("npy", "arrays"), ("webdataset", "tars")] {
        folder.packds(&["export", "now.pack", target, "--to", format]).ok();
        let (back, _) = converted(&folder, &[target]);
        assert_eq!(image_stats(&back).as_ref(), Some(&known), "{format}");
        assert_eq!(back.n_samples(), 3);
    }
}

#[test]
fn an_export_says_what_is_in_it_and_what_is_not() {
    let folder = Folder::new();
    let source = "import numpy as np, sys\n\
        score = np.array([1, np.inf, -np.inf, np.nan], np.float32)\n\
        half = np.array([1.5, 2, 3, 4], np.float16)\n\
        points = np.zeros((4, 2, 2), np.float32)\n\
        np.savez(sys.argv[1], images=np.zeros((4, 8, 8, 3), np.uint8), score=score, half=half, points=points)\n\
        np.savez(sys.argv[2], images=np.zeros((4, 8, 8, 4), np.float32))";
    let paths = ["in.npz", "four.npz"].map(|name| folder.path(name).to_str().unwrap().to_owned());
    python(&["-c", source, &paths[0], &paths[1]]);
    converted(&folder, &["in.npz", "--keep-order"]);
    let export = |args: &[&str]| folder.packds(&[&["export", "now.pack"], args].concat());
    let report = export(&["out", "--to", "image-folder", "--json"]).json();
    let fields: Vec<&str> = report["fields"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    assert!(fields.contains(&"half") && fields.contains(&"score"), "{fields:?}");
    assert!(!fields.contains(&"points"), "{fields:?}");
    let lost = report["lost"].to_string();
    assert!(lost.contains("field `points`"), "{lost}");
    assert!(lost.contains("field `score`") && lost.contains("JSON has none: 2 values"), "{lost}");
    assert!(!lost.contains("`half`"), "{lost}");
    let manifest = std::fs::read_to_string(folder.path("out/manifest.jsonl")).unwrap();
    assert!(manifest.contains("\"half\":1.5"), "{manifest}");
    let (back, _) = converted(&folder, &["out/manifest.jsonl", "--keep-order"]);
    let half = back.schema().index_of("half").unwrap();
    assert_eq!(back.schema().fields()[half].dtype, packds_format::DType::F16);
    if cfg!(feature = "arrow") {
        converted(&folder, &["in.npz"]);
        let lost = export(&["out.parquet", "--json"]).json()["lost"].to_string();
        assert!(lost.contains("Hugging Face") && lost.contains("`points`"), "{lost}");
    }
    // Image files cannot hold four channels of floats, so the error suggests no option.
    converted(&folder, &["four.npz"]);
    let refused = export(&["four", "--to", "image-folder"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(!refused.stderr.contains("--images"), "{refused:?}");
}
