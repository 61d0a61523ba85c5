//! Folders like those of published datasets with masks, depth images and several versions of images. They are read
//! correctly, cause a warning, or are rejected with advice.

use packds_format::Pack;

use super::items::items;
use super::python;
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    python(&["folders.py", folder.path("").to_str().unwrap()]);
    folder
}

/// The output and the warnings about a source that is read.
fn read(folder: &Folder, args: &[&str]) -> (String, String) {
    let ran = folder.packds(&[&["convert"], args, &["out.pack", "--dry-run"]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    (ran.stdout, ran.stderr)
}

/// The error about a source that is rejected.
fn refused(folder: &Folder, args: &[&str]) -> String {
    let ran = folder.packds(&[&["convert"], args, &["no.pack"]].concat());
    assert!(ran.code != 0 && !folder.path("no.pack").exists(), "{args:?}: {ran:?}");
    ran.stderr
}

fn is_pairs(said: &str, first: &str) -> bool {
    said.contains("paired folders") && said.contains(&format!("the first is {first}"))
}

#[test]
fn folders_of_images_and_masks_are_pairs_by_their_usual_names() {
    let folder = sources();
    for (args, mask) in [
        (&["short"][..], "lbl/000001.png"),
        (&["words"], "Ground Truth/000001.png"),
        (&["cracks", "--split", "train_img"], "train_lab/000001.png"),
        (&["land"], "Rural/masks_png/000001.png"),
    ] {
        let (said, _) = read(&folder, args);
        assert!(is_pairs(&said, mask), "{args:?}: {said}");
    }
}

#[test]
fn folders_of_the_same_names_are_refused_with_lines_that_work() {
    let folder = sources();
    for (source, error, lines) in [
        ("letters", "like images and their masks", &["--images x --masks y"][..]),
        ("shadows", "like images and their masks", &["--images train_A --masks train_B"]),
        ("potsdam", "looks like the masks of '2_Ortho_RGB'", &["--images 2_Ortho_RGB --masks 5_Labels_all"]),
        (
            "chest",
            "looks like the masks of 'CXR_png'",
            &["--images CXR_png --masks ManualMask/leftMask", "--images CXR_png --masks ManualMask/rightMask"],
        ),
    ] {
        let said = refused(&folder, &[source]);
        assert!(said.contains(error), "{said}");
        for line in lines {
            assert!(said.contains(line), "{said}");
            read(&folder, &[&[source], &line.split(' ').collect::<Vec<_>>()[..]].concat());
        }
    }
    let (_, told) = read(&folder, &["alike"]);
    assert!(told.contains("the classes 'clear' and 'rainy' have files with the same names"), "{told}");
}

#[test]
fn classes_of_numbered_files_are_no_versions_unless_the_images_resemble_each_other() {
    let folder = sources();
    for source in ["signs", "faces"] {
        let (said, told) = read(&folder, &[source]);
        assert!(said.contains("of 2 classes") && !told.contains("same names"), "{told}");
    }
}

#[test]
fn gray_photos_are_versions_and_no_masks() {
    let folder = sources();
    let said = refused(&folder, &["plants"]);
    assert!(said.contains("'color' and 'grayscale' have 8 files with the same names"), "{said}");
    assert!(said.contains("two versions of each image") && !said.contains("--masks"), "{said}");
    let (said, _) = read(&folder, &["plants", "--images", "color"]);
    assert!(said.contains("8 images of 2 classes"), "{said}");
}

#[test]
fn words_in_the_names_of_images_without_labels_are_told() {
    let folder = sources();
    let (_, told) = read(&folder, &["ages"]);
    assert!(told.contains("the file names may contain the labels, such as '25' in '25_0_2_2017.jpg'"), "{told}");
    let (said, told) = read(&folder, &["cats"]);
    assert!(said.contains("classes  cat, dog"), "{said}");
    assert!(told.contains("the words before the numbers in the file names, such as 'cat' in 'cat.0.jpg'"), "{told}");
    let (_, told) = read(&folder, &["frames"]);
    assert_eq!(told, "");
}

#[test]
fn backups_of_images_are_ignored_and_told() {
    let folder = sources();
    let (said, told) = read(&folder, &["faces"]);
    assert!(said.contains("6 images of 2 classes"), "{said}");
    assert!(told.contains("ignored 2 images (first: '00000/1.pgm.bad'): names with this ending are backups"), "{told}");
}

#[test]
fn folders_that_the_caller_names_may_be_in_a_split() {
    let folder = sources();
    let said = refused(&folder, &["kitti", "--split", "training"]);
    assert!(said.contains("--images image_2 --masks semantic, or"), "{said}");
    let args = ["--images", "image_2", "--masks", "semantic"];
    let (said, _) = read(&folder, &[&["kitti", "--split", "training"], &args[..]].concat());
    assert!(is_pairs(&said, "semantic/000001_10.png"), "{said}");
    let (said, told) = read(&folder, &[&["kitti"], &args[..]].concat());
    assert!(is_pairs(&said, "semantic/000001_10.png"), "{said}");
    assert!(told.contains("read the split 'training', the only one"), "{told}");
    assert!(told.contains("ignored 1 folder next to the splits ('testing')"), "{told}");
    let (said, _) = read(&folder, &["kitti", "--split", "testing"]);
    assert!(said.contains("4 images"), "{said}");
    let said = refused(&folder, &["vessels", "--split", "test"]);
    assert!(said.contains("choose with --masks 1st_manual"), "{said}");
    let (said, _) = read(&folder, &["vessels", "--split", "test", "--masks", "1st_manual"]);
    assert!(is_pairs(&said, "1st_manual/000001_manual1.gif"), "{said}");
    let said = refused(&folder, &["short", "--masks", "other"]);
    assert!(said.contains("it has no folder 'other'") && said.contains("'img', 'lbl'"), "{said}");
}

#[test]
fn a_folder_for_each_patient_is_no_class() {
    let folder = sources();
    let said = refused(&folder, &["patients"]);
    assert!(said.contains("the 3 folders all have files with the same 3 names"), "{said}");
    let code = said.split_once("in Python: ").unwrap().1.trim();
    let at = folder.path("patients");
    let code = code.replace("pathlib.Path(\"patients\")", &format!("pathlib.Path({:?})", at.to_str().unwrap()));
    python(&["-c", &code]);
    let (said, _) = read(&folder, &["patients/samples.csv"]);
    assert!(said.contains("the first is BraTS_0/seg.png"), "{said}");
}

#[test]
fn files_of_one_folder_whose_names_belong_together_are_masks_or_told() {
    let folder = sources();
    for (source, mask) in [("roads", "000001_mask.png"), ("stems", "000001.png")] {
        let (said, _) = read(&folder, &[source]);
        assert!(said.contains("4 images") && said.contains(&format!("the first is {mask}")), "{said}");
    }
    for (source, words) in [
        ("stems", "the .png files are read as the masks of the .jpg files"),
        ("versions", "4 names have both a .jpg and a .png file"),
        ("rain", "'norain-000001.png' and other files are named after another image, here 'rain-000001.png'"),
    ] {
        let (_, told) = read(&folder, &[source]);
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn masks_that_are_no_image_files_are_refused() {
    let folder = sources();
    let said = refused(&folder, &["arrays"]);
    assert!(said.contains("'masks/000001.npy' is not an image file"), "{said}");
    read(&folder, &["arrays", "--images", "images"]);
}

#[test]
fn nested_classes_are_told_with_a_command_that_makes_them_classes() {
    let folder = sources();
    for (source, n) in [("sun", 12), ("sun(2)", 9)] {
        let (_, told) = read(&folder, &[source]);
        let command = told.split_once("list the images with `").unwrap().1.split_once('`').unwrap().0;
        let ran = std::process::Command::new("sh").args(["-c", command]).current_dir(folder.path("")).status().unwrap();
        assert!(ran.success(), "{command}");
        let (said, _) = read(&folder, &["paths.txt"]);
        assert!(said.contains(&format!("{n} images of 3 classes")), "{said}");
        assert!(said.contains("classes  a/abbey, c/church/indoor, c/church/outdoor"), "{said}");
    }
    // In a list, a space ends a path.
    std::fs::rename(folder.path("sun"), folder.path("the sun")).unwrap();
    let (_, told) = read(&folder, &["the sun"]);
    assert!(told.contains("subfolders are not read as classes") && !told.contains("find "), "{told}");
}

#[test]
fn images_without_masks_are_refused_with_a_line_that_writes_masks_of_zeros() {
    let folder = sources();
    std::fs::rename(folder.path("bottle/test/good"), folder.path("bottle/test/scratched")).unwrap();
    let args = ["bottle", "--images", "test", "--masks", "ground_truth"];
    let said = refused(&folder, &args);
    assert!(said.contains("'ground_truth' has no mask with the same name") && !said.contains("substitute"), "{said}");
    let line = said.split_once("in Python: ").unwrap().1.split_once("; --on-error").unwrap().0;
    let root = folder.path("bottle");
    python(&["-c", &line.replace("\"bottle", &format!("\"{}", root.to_str().unwrap()))]);
    let (said, _) = read(&folder, &args);
    assert!(said.contains("8 images") && is_pairs(&said, "ground_truth/broken/000001_mask.png"), "{said}");
    // Images in a folder named `good` have nothing to mark.
    std::fs::remove_dir_all(folder.path("bottle/ground_truth/scratched")).unwrap();
    std::fs::rename(folder.path("bottle/test/scratched"), folder.path("bottle/test/good")).unwrap();
    let (said, told) = read(&folder, &args);
    assert!(said.contains("8 images") && told.contains("used masks of zeros for 4 images"), "{said}{told}");
}

#[test]
fn lists_in_folders_beside_the_images_are_told() {
    let folder = sources();
    for (source, words) in [
        ("pets", "'annotations/list.txt' was not read: if it has labels or splits, pass it as the source"),
        ("food", "'meta/train.json' and 1 other file were not read: if they have labels or splits, pass one"),
        ("dtd", "'imdb/imdb.mat' was not read: if it has labels, write the labels to a CSV file"),
    ] {
        let (_, told) = read(&folder, &[source]);
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn warnings_of_all_splits_are_told_once_and_others_with_their_split() {
    let folder = sources();
    for more in [&["--dry-run"][..], &[]] {
        let ran = folder.packds(&[&["convert", "told", "told.pack", "--split", "all"], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.stderr.matches("of type HEIC").count(), 1, "{ran:?}");
        assert!(ran.stderr.contains("packds: warning: ignored 1 file of type HEIC"), "{ran:?}");
        assert!(ran.stderr.contains("packds: warning: split 'test': ignored 1 file of type DICOM"), "{ran:?}");
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn channels_that_are_no_classes_are_refused_with_the_way_out() {
    let folder = sources();
    let said = refused(&folder, &["brats", "--one-sample-per-file"]);
    assert!(said.contains("expected exactly one of 3 classes at each pixel"), "{said}");
    assert!(said.contains("mask.any(2) * (mask.argmax(2) + 1)") && said.contains("--leave-out"), "{said}");
    read(&folder, &["brats", "--one-sample-per-file", "--leave-out", "mask"]);
}

#[test]
fn a_folder_is_explained_without_options_for_fields() {
    let folder = sources();
    let (said, _) = read(&folder, &["stems", "--explain"]);
    assert!(
        said.contains("why      mask: the files next to the images have the same names; instead: --from"),
        "{said}"
    );
    assert!(said.contains("why      label: there are no class folders; instead: a CSV file"), "{said}");
    assert!(!said.contains("one field") && !said.contains("-key"), "{said}");
}

/// The masks of a source with three colours. A table in the source lists the colours.
fn masks_of(folder: &Folder, args: &[&str]) -> Vec<Vec<u8>> {
    let ran = folder.packds(&[&["convert"], args, &["--keep-order", "--force", "out.pack"]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    let told = "the colours of the masks are packed as class numbers, counted from 0 in the order of 'class_dict.csv': 'road', 'grass, wet', 'sky'";
    assert!(ran.stderr.contains(told), "{args:?}: {ran:?}");
    let pack = Pack::open(std::fs::read(folder.path("out.pack")).unwrap()).unwrap();
    items(&pack, "mask")
}

#[test]
fn colours_of_masks_are_numbered_by_the_table_beside_them() {
    let folder = sources();
    let modes = [&[][..], &["--mode", "encoded"], &["--resize", "20x10"]];
    for mode in modes {
        let masks = masks_of(&folder, &[&["table"], mode].concat());
        assert_eq!(masks.len(), 4);
        let mut values = masks.concat();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values, [0, 1, 2], "{mode:?}");
    }
    assert!(!read(&folder, &["table"]).1.contains("was not read"));
    let by_table = masks_of(&folder, &["table"]);
    let expected = std::fs::read(folder.path("table.ids")).unwrap();
    assert_eq!(by_table[0], expected);
    masks_of(&folder, &["sets", "--split", "train"]);
    masks_of(&folder, &["sat/train"]);
    std::fs::write(folder.path("table/list.csv"), "image,mask\nimages/000001.png,masks/000001.png\n").unwrap();
    assert_eq!(masks_of(&folder, &["table/list.csv"])[0], expected);
}

#[test]
fn colours_without_a_class_are_refused() {
    let folder = sources();
    let said = refused(&folder, &["coloured"]);
    assert!(said.contains("write a table 'class_dict.csv' with the columns name,r,g,b next to the masks"), "{said}");
    let said = refused(&folder, &["lacking"]);
    assert!(said.contains("mask `masks/000001.png`: the colour "), "{said}");
    assert!(said.contains(" is not in 'class_dict.csv'"), "{said}");
    let said = refused(&folder, &["broken"]);
    assert!(said.contains("class_dict.csv: line 2: expected a colour from 0 to 255, found '300'"), "{said}");
}

#[test]
fn values_of_masks_that_do_not_count_from_zero_are_noted() {
    let folder = sources();
    let noted = folder.packds(&["convert", "binary", "out.pack"]).stdout;
    assert!(noted.contains("note     the masks contain the values 0, 255, which are packed unchanged"), "{noted}");
    let plain = folder.packds(&["convert", "letters", "out.pack", "--force"]).stdout;
    assert!(!plain.contains("the masks contain"), "{plain}");
}
