//! Images of unusual types are read in every kind of source. Files of types that are not read are reported with advice.

use serde_json::{Value, json};

use super::items::{convert, hex, ids, items};
use super::people::{refused, sources_of, told};
use crate::support::Folder;

fn sources() -> (Folder, Value) {
    sources_of("pictures.py")
}

#[test]
fn faces_in_pgm_files_are_an_image_folder_and_are_kept_as_gray_png() {
    let (folder, expected) = sources();
    let pack = convert(&folder, "faces", &["--mode", "encoded"]);
    assert_eq!(ids(&pack), [0, 0, 1, 1, 2, 2]);
    assert_eq!(pack.classes().unwrap()[0].names, ["s1", "s10", "s2"]);
    for (item, pixels) in items(&pack, "image").iter().zip(expected["faces"].as_array().unwrap()) {
        assert!(item.starts_with(b"\x89PNG"));
        let mut decoder = packds_pixels::Decoder::new(packds_pixels::DecodeOptions {
            color: packds_pixels::Color::Index,
            ..Default::default()
        });
        assert_eq!(json!(hex(&decoder.decode(item).unwrap().data)), *pixels);
    }
}

#[test]
fn ppm_tga_and_qoi_files_have_their_pixels_in_folders_archives_and_tables() {
    let (folder, expected) = sources();
    for (source, pixels, labels) in [
        ("folder", "colors", vec![]),
        ("archive.zip", "by_class", vec![0, 0, 0, 1, 1, 1]),
        ("samples.tar", "colors", vec![0, 1, 0, 1, 0, 1]),
        ("table.parquet", "colors", vec![0, 1, 0, 1, 0, 1]),
    ] {
        let pack = convert(&folder, &format!("containers/{source}"), &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected[pixels], "{source}");
        if !labels.is_empty() {
            assert_eq!(ids(&pack), labels, "{source}");
        }
    }
}

#[test]
fn a_folder_of_files_that_are_not_read_is_refused_with_their_type_their_number_and_the_way() {
    let (folder, _) = sources();
    for (kind, name, hint) in [
        ("dcm", "DICOM", "pydicom.dcmread"),
        ("nii_gz", "NIfTI", "nibabel.load"),
        ("heic", "HEIC", "heif-convert"),
        ("avif", "AVIF", "avifdec"),
        ("jxl", "JPEG XL", "djxl"),
        ("jp2", "JPEG 2000", "Image.open"),
        ("exr", "OpenEXR", "cv2.imread"),
        ("mat", "MATLAB", "scipy.io.loadmat"),
        ("raw", "raw numbers", "numpy.fromfile"),
        ("svg", "SVG", "rsvg-convert"),
        ("pdf", "PDF", "pdftoppm"),
        ("psd", "Photoshop", "Image.open"),
        ("cr2", "camera raw", "rawpy.imread"),
    ] {
        let said = refused(&folder, &format!("unread/{kind}"), 2);
        assert!(said.contains(&format!("3 files of type {name} (first: 'a/1.")), "{said}");
        assert!(said.contains(hint), "{said}");
    }
}

#[test]
fn files_beside_images_that_are_not_read_are_told_by_type() {
    let (folder, _) = sources();
    let said = told(&folder, "unread/mixed");
    assert!(said.contains("ignored 2 files of type HEIC (first: 'a/1.heic'); to read them, convert"), "{said}");
    assert!(said.contains("ignored 1 file of type DICOM ('a/3.dcm')"), "{said}");
}

#[test]
fn a_heic_photo_with_the_name_of_a_jpeg_is_named_as_heic() {
    let (folder, _) = sources();
    let said = refused(&folder, "unread/lying", 1);
    assert!(said.contains("IMG_1.jpg: files of type HEIC are not supported"), "{said}");
    assert!(said.contains("heif-convert"), "{said}");
}

#[test]
fn files_of_several_frames_or_pages_are_told() {
    let (folder, _) = sources();
    for args in [&["--resize", "4x4"][..], &["--mode", "encoded"]] {
        let ran = folder.packds(&[&["convert", "frames", "frames.pack", "--force"], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = "packed only the first frame or page of 4 images with more than one (first such image: 'a.gif')";
        assert!(ran.stderr.contains(told), "{args:?}: {ran:?}");
    }
}

#[test]
fn archives_in_a_folder_or_an_archive_are_read_as_if_they_were_unpacked_there() {
    let (folder, _) = sources();
    let said = told(&folder, "archives/kaggle.zip");
    assert!(said.contains("found the splits 'test1', 'train'"), "{said}");
    assert!(said.contains("unpacked 'test1.zip', 'train.zip' into a temporary folder"), "{said}");
    assert_eq!(ids(&convert(&folder, "archives/kaggle.zip", &["--split", "train"])), [0, 0, 0, 1, 1, 1]);
    assert_eq!(convert(&folder, "archives/kaggle.zip", &["--split", "test1"]).n_samples(), 6);
    let said = told(&folder, "archives/table.zip");
    assert!(said.contains("unpacked 'images.zip' into a temporary folder"), "{said}");
    assert!(said.contains("ignored 5 other images in the folder"), "{said}");
}

#[test]
fn an_array_for_each_class_or_image_is_refused_with_lines_that_work() {
    let (folder, expected) = sources();
    for (name, what) in [
        ("class.npz", "each of the 2 arrays looks like several images: 'cat' is u8 of shape [2, 9, 8, 3]"),
        ("class.h5", "each of the 2 arrays looks like several images"),
        ("image.zarr", "each of the 6 arrays looks like one image"),
    ] {
        let said = refused(&folder, &format!("several/{name}"), 2);
        assert!(said.contains(what), "{name}: {said}");
    }
    let pack = convert(&folder, "several/joined.npz", &[]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["colors"]);
    assert_eq!(ids(&pack), [0, 0, 1, 1, 1, 1]);
    assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog"]);
    let pack = convert(&folder, "several/out", &[]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["by_class"]);
    assert_eq!(ids(&pack), [0, 0, 0, 1, 1, 1]);
}

#[test]
fn matlab_files_of_version_7_3_are_refused_with_lines_that_work() {
    let (folder, expected) = sources();
    let lines = r#"f = h5py.File("x.mat"); images = f["X"][:].transpose(0, 3, 2, 1); numpy.savez("x.npz", images=images, labels=f["y"][:].ravel())"#;
    let said = refused(&folder, "matlab/73.mat", 2);
    assert!(said.contains(lines), "{said}");
    for source in ["matlab/73.npz", "matlab/5.mat"] {
        let pack = convert(&folder, source, &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["colors"], "{source}");
        assert_eq!(ids(&pack), [0, 1, 0, 1, 0, 1], "{source}");
    }
}

#[test]
fn tiff_files_that_are_not_decoded_are_refused_with_what_to_do() {
    let (folder, _) = sources();
    for (name, what) in [
        ("floats", "floats"),
        ("ints", "signed numbers"),
        ("jpeg", "compression method ModernJPEG is unsupported"),
        ("lab", "CIELab"),
    ] {
        let said = refused(&folder, &format!("tiffs/{name}"), 1);
        assert!(said.contains("x.tif: unsupported TIFF: ") && said.contains(what), "{said}");
        assert!(said.contains("Image.open(file).convert"), "{said}");
    }
}

#[test]
fn tiff_files_of_many_bands_are_arrays() {
    let (folder, _) = sources();
    let numbers: Vec<u8> = (0..13 * 64_u16).flat_map(u16::to_le_bytes).collect();
    for name in ["bands", "planes"] {
        let pack = convert(&folder, &format!("tiffs/{name}"), &[]);
        assert_eq!(items(&pack, "image").concat(), numbers, "{name}");
    }
}
