//! Handmade shards: damaged ones, and some with incomplete samples.

use super::*;
use crate::sink::test_pack::{exported, refused};
use crate::source::mutation::{damage, survives};

/// Writes a shard with these members.
fn save(path: &Path, members: &[(&str, &[u8])]) {
    let mut tar = tar::Builder::new(std::fs::File::create(path).unwrap());
    for (name, data) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        // Written directly, because the library refuses such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, *data).unwrap();
    }
    tar.finish().unwrap();
}

/// The reason why a shard with these members is refused.
fn reason(members: &[(&str, &[u8])]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tar");
    save(&path, members);
    refused(&path, &ListOptions::default()).replace(path.to_str().unwrap(), "s.tar")
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

#[test]
fn keys_end_at_the_first_dot_of_the_last_part() {
    let split = |name: &str| key_and_extension(name.as_bytes()).map(|(k, e)| format!("{} {}", shown(k), shown(e)));
    assert_eq!(split("a.b/c.seg.png").as_deref(), Some("a.b/c seg.png"));
    assert_eq!(split("./x.jpg").as_deref(), Some("./x jpg"));
    assert_eq!(split("a/.hidden"), None);
    assert_eq!(split("plain"), None);
    assert_eq!(without_root(b"/./../etc/x".to_vec()), b"../etc/x");
}

#[test]
fn what_is_wrong_with_a_sample_is_said_with_its_key() {
    for (members, expected) in [
        (&[("a.png", PNG), ("a.jpg", PNG)][..], "s.tar: a: this sample has several images"),
        (&[("a.png", PNG), ("a.png", PNG)], "s.tar: two members have the name 'a.png'"),
        (&[("a.png", PNG), ("a.x.npy", b"\x93NUMPY")], "s.tar: a.x.npy: expected a whole header, found \"\\x93NUMPY\""),
        (
            &[("a.png", PNG), ("a.json", b"{")],
            "s.tar: a.json: expected JSON: EOF while parsing an object at line 1 column 1",
        ),
    ] {
        assert_eq!(reason(members), expected);
    }
    let pickle = reason(&[("a.pkl", b"x"), ("a.cls", b"1")]);
    assert!(pickle.contains("no field of images"), "{pickle}");
}

#[test]
fn samples_that_lack_a_member_are_bad_and_leave_the_others_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tar");
    let (x, y) = (&br#"{"y":"x"}"#[..], &br#"{"y":"y"}"#[..]);
    let options =
        |label_key: Option<&str>| ListOptions { label_key: label_key.map(str::to_owned), ..ListOptions::default() };
    let whole = [("a.png", PNG), ("a.cls", b"1"), ("a.txt", b"a")];
    for (members, key, labels, lacks) in [
        (&[("b.png", PNG), ("b.txt", b"b")][..], None, [1, 1], (1, "'cls'")),
        (&[("b.cls", b"0"), ("b.txt", b"b")], None, [1, 0], (1, "'image'")),
        (&[("b.png", PNG), ("b.cls", b"0")], None, [1, 0], (1, "'txt'")),
    ] {
        save(&path, &[&whole[..], members].concat());
        let listing = crate::source::list(&path, &options(key)).unwrap();
        let found = [0, 1].map(|idx| listing.label(idx).unwrap());
        assert_eq!((listing.len(), found), (2, labels));
        assert_eq!(listing.faulty().next(), Some(lacks.0));
        let fault = listing.fault(lacks.0).unwrap().to_string();
        assert!(fault.contains(lacks.1) && fault.contains("s.tar"), "{fault}");
    }
    // Labels may exist even if the first sample has none.
    save(&path, &[("a.png", PNG), ("b.png", PNG), ("b.cls", b"4")]);
    let listing = crate::source::list(&path, &options(None)).unwrap();
    assert_eq!((listing.faulty().next(), listing.label(1)), (Some(0), Some(4)));
    let members = [("a.png", PNG), ("a.json", y), ("b.png", PNG), ("b.json", b"{}")];
    save(&path, &[&members[..], &[("c.png", PNG), ("c.json", x)]].concat());
    let listing = crate::source::list(&path, &options(Some("y"))).unwrap();
    assert_eq!(listing.faulty().next(), Some(1));
    assert_eq!(listing.classes(), [b"x".to_vec(), b"y".to_vec()]);
    assert_eq!((listing.label(0), listing.label(2)), (Some(1), Some(0)));
}

#[test]
fn members_that_do_not_lie_side_by_side_are_told_from_missing_ones() {
    let apart = [("a.png", PNG), ("b.png", PNG), ("a.cls", b"1"), ("b.cls", b"2")];
    let expected = "s.tar: a: the members of this sample are not adjacent: no 'image' next to cls";
    assert_eq!(reason(&apart), expected);
    let apart = [("a.png", PNG), ("a.cls", b"1"), ("b.png", PNG), ("c.png", PNG), ("c.cls", b"2"), ("b.cls", b"3")];
    assert!(reason(&apart).contains("b: the members of this sample"));
}

#[test]
fn damaged_tar_files_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let whole = exported("a.tar");
    let said = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        refused(&path, &ListOptions::default())
    };
    let cut = said("cut.tar", &whole[..whole.len() - 1024 - 512]);
    assert!(cut.contains("the tar file ends too early"), "{cut}");
    let cut = said("cut.tar", &whole[..600]);
    assert!(cut.contains("the tar file ends too early"), "{cut}");
    let mut wrong = whole.clone();
    wrong[0] ^= 1;
    let wrong = said("sum.tar", &wrong);
    assert!(wrong.contains("byte 0: expected a header with the checksum"), "{wrong}");
    let mut packed = exported("a.tar.gz");
    let len = packed.len();
    packed[len / 2] ^= 0x55;
    let packed = said("bad.tar.gz", &packed);
    assert!(packed.contains("of the unpacked tar file"), "{packed}");
}

#[test]
fn a_tar_file_without_its_end_is_read_with_a_warning_if_its_last_member_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.tar");
    save(&path, &[("a.png", PNG), ("a.cls", b"1"), ("b.png", PNG), ("b.cls", b"2")]);
    let whole = std::fs::read(&path).unwrap();
    let is_open_ended = |listing: &crate::source::Listing| {
        listing.warnings().contains(&Warning::OpenEndedTars { count: 1, first: b"cut.tar".to_vec() })
    };
    let list = || crate::source::list(&path, &ListOptions::default()).unwrap();
    assert!(!is_open_ended(&list()));
    // The four members have two blocks each. The second length also cuts off the padding of the last member.
    for len in [8 * 512, 7 * 512 + 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let listing = list();
        assert!(is_open_ended(&listing), "{len}: {:?}", listing.warnings());
        assert_eq!([0, 1].map(|idx| listing.label(idx)), [Some(1), Some(2)]);
    }
}

#[test]
fn members_called_img_are_images_if_their_bytes_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tar");
    let list = || crate::source::list(&path, &ListOptions::default());
    for extension in ["img", "image"] {
        let names = [format!("a.{extension}"), format!("b.{extension}")];
        save(&path, &[(&names[0], PNG), ("a.cls", b"1"), (&names[1], PNG), ("b.cls", b"2")]);
        let listing = list().unwrap();
        assert_eq!((listing.len(), listing.label(1)), (2, Some(2)));
        assert_eq!(listing.image_content(0), Content::File);
    }
    save(&path, &[("a.img", b"no image"), ("a.cls", b"1"), ("a.png", PNG)]);
    let listing = list().unwrap();
    let fields: Vec<&str> = listing.fields().iter().map(|field| field.name.as_str()).collect();
    assert_eq!((listing.len(), fields), (1, vec!["img"]));
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let whole = exported("a.tar");
    survives(DataFormat::WebDataset, "a.tar", 2000, |dice| {
        let mut bytes = whole.clone();
        damage(&mut bytes, dice);
        bytes
    });
    // Corrects the checksums, so that they do not detect the damage.
    let headers: Vec<usize> = (0..whole.len() / 512).map(|i| i * 512).collect();
    survives(DataFormat::WebDataset, "a.tar", 2000, |dice| {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(3) {
            let at = headers[dice.below(headers.len())];
            let field = [0, 100, 124, 124, 135, 156, 156, 345][dice.below(8)] + dice.below(11);
            bytes[at + field] = b"0123457xgLKS/ .\x80\xff\0"[dice.below(18)];
            bytes[at + 148..at + 156].fill(b' ');
            let sum: u32 = bytes[at..at + 512].iter().map(|b| u32::from(*b)).sum();
            bytes[at + 148..at + 155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        }
        bytes
    });
    let packed = exported("a.tar.gz");
    survives(DataFormat::WebDataset, "a.tar.gz", 300, |dice| {
        let mut bytes = packed.clone();
        damage(&mut bytes, dice);
        bytes
    });
}

#[test]
fn a_size_without_end_is_refused_before_it_is_unpacked() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.tar.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut header = tar::Header::new_ustar();
    header.set_path("a.png").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    gz.write_all(header.as_bytes()).unwrap();
    (0..64).for_each(|_| gz.write_all(&[0; 1 << 20]).unwrap());
    gz.finish().unwrap();
    let of_samples = ListOptions { from: Some(DataFormat::WebDataset), ..ListOptions::default() };
    let said = refused(&path, &of_samples);
    assert!(said.contains("'a.png' is 1099511627776 bytes long, more than the limit"), "{said}");
    let said = refused(&path, &ListOptions::default());
    assert!(said.contains("bomb.tar.gz: unpacking it needs 1099511627776 bytes"), "{said}");
}

#[test]
fn boxes_in_the_json_of_samples_become_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tar");
    let png = packds_pixels::encode_png(100, 50, 3, &[7; 15_000]).unwrap();
    let list = |jsons: [&str; 2]| {
        let [first, second] = jsons.map(str::as_bytes);
        save(&path, &[("a.png", png.as_slice()), ("a.json", first), ("b.png", &png), ("b.json", second)]);
        crate::source::list(&path, &ListOptions::default()).unwrap()
    };
    let none = r#"{"caption":"nothing"}"#;
    for (json, classes) in [
        (r#"{"caption":"x","objects":{"bbox":[[60,10,40,20]],"category":[1]}}"#, ["0", "1"]),
        (r#"{"annotations":[{"bbox":[60,10,40,20],"category_id":1,"image_id":7}]}"#, ["0", "1"]),
        (r#"{"boxes":[[60,10,100,30],[60,10,70,40]],"labels":["dog","cat"]}"#, ["cat", "dog"]),
    ] {
        let listing = list([json, none]);
        let names: Vec<&str> = listing.fields().iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["boxes", "box_labels"], "{json}");
        let item = |name: &str, idx: usize| {
            let mut item = Vec::new();
            let field = listing.fields().iter().find(|field| field.name == name).unwrap();
            field.store.append(idx, u64::MAX, &mut item).unwrap();
            item
        };
        let corners: Vec<u8> = [60_f32, 10.0, 100.0, 30.0].iter().flat_map(|side| side.to_le_bytes()).collect();
        assert_eq!((item("boxes", 0).get(..16), item("boxes", 1).len()), (Some(&corners[..]), 0), "{json}");
        assert_eq!((item("box_labels", 0)[0], listing.box_classes()), (1, &classes.map(str::to_owned)[..]), "{json}");
        // The JSON itself stays.
        assert_eq!(listing.columns()[0].name, "json");
        let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|told| told.contains("those in 'json' are left, top")), "{told:?}");
    }
    // Boxes that fit in both ways stay JSON, as in the column `objects`.
    let listing = list([r#"{"objects":{"bbox":[[10,10,20,20]],"category":[1]}}"#, none]);
    assert!(listing.fields().is_empty());
    let other = list([r#"{"objects":{"bbox":[[10,10,20]],"category":[1]}}"#, none]);
    assert!(other.fields().is_empty());
}
