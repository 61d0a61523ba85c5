//! What a program may supply, and the resulting listing.

use super::super::store::{ArrayType, Content};
use super::*;

fn given(fields: &[(&str, GivenKind)], classes: &[&str]) -> Result<Given, ConvertError> {
    let fields: Vec<(String, GivenKind)> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
    let classes = classes.iter().map(|name| (*name).to_owned()).collect();
    Given::new("a.pack".as_ref(), &std::env::temp_dir(), &fields, classes)
}

fn pixels(bytes: &[u8; 4]) -> GivenValue<'_> {
    GivenValue::Array { dtype: DType::U8, shape: &[2, 2], bytes }
}

fn stored(listing: &Listing, idx: usize) -> Vec<u8> {
    let super::super::listing::Images::Stored(store) = &listing.images else {
        panic!("images are stored");
    };
    let mut out = Vec::new();
    store.append(idx, u64::MAX, &mut out).unwrap();
    out
}

#[test]
fn samples_are_listed_as_they_came() {
    let number = GivenKind::Array { dtype: DType::I64, shape: Vec::new() };
    let kinds = [("image", GivenKind::Image), ("label", GivenKind::Label), ("text", GivenKind::Text), ("n", number)];
    let mut given = given(&kinds, &["cat", "dog"]).unwrap();
    for (bytes, label, n) in [([1, 2, 3, 4], "dog", 7_i64), ([5, 6, 7, 8], "cat", 9)] {
        let n = n.to_le_bytes();
        let number = GivenValue::Array { dtype: DType::I64, shape: &[], bytes: &n };
        let values = [pixels(&bytes), GivenValue::Text(label), GivenValue::Text(label), number];
        given.push(&values).unwrap();
    }
    let listing = given.into_listing().unwrap();
    assert_eq!(listing.kind(), SourceKind::Program);
    assert_eq!(listing.len(), 2);
    assert_eq!(stored(&listing, 1), [5, 6, 7, 8]);
    assert_eq!((listing.label(0), listing.label(1)), (Some(1), Some(0)));
    assert_eq!(listing.classes(), [b"cat".to_vec(), b"dog".to_vec()]);
    assert_eq!(listing.columns().len(), 1);
    assert_eq!(listing.fields().len(), 1);
}

#[test]
fn names_become_ids_in_their_order() {
    let kinds = [("image", GivenKind::Image), ("y", GivenKind::Label)];
    let mut given = given(&kinds, &[]).unwrap();
    for name in ["dog", "cat", "dog"] {
        given.push(&[pixels(&[0; 4]), GivenValue::Text(name)]).unwrap();
    }
    let listing = given.into_listing().unwrap();
    let ids: Vec<_> = (0..3).map(|i| listing.label(i).unwrap()).collect();
    assert_eq!(ids, [1, 0, 1]);
    assert_eq!(listing.classes(), [b"cat".to_vec(), b"dog".to_vec()]);
}

#[test]
fn files_and_arrays_may_come_together() {
    let mut given = given(&[("image", GivenKind::Image)], &[]).unwrap();
    given.push(&[pixels(&[1; 4])]).unwrap();
    given.push(&[GivenValue::Bytes(b"JPEG")]).unwrap();
    let listing = given.into_listing().unwrap();
    assert_eq!(stored(&listing, 0), [1; 4]);
    assert_eq!(stored(&listing, 1), b"JPEG");
    assert_eq!(listing.image_contents().count(), 2);
}

#[test]
fn sets_of_labels_are_sorted_and_without_repeats() {
    let kinds = [("image", GivenKind::Image), ("labels", GivenKind::Labels)];
    let mut given = given(&kinds, &[]).unwrap();
    given.push(&[pixels(&[1; 4]), GivenValue::Ids(&[5, 2, 5])]).unwrap();
    let listing = given.into_listing().unwrap();
    assert_eq!(listing.label_list(0), Some(&[2, 5][..]));
}

#[test]
fn a_wrong_value_is_named_and_leaves_the_sample_out() {
    let kinds = [("image", GivenKind::Image), ("y", GivenKind::Label)];
    let mut given = given(&kinds, &["a", "b"]).unwrap();
    given.push(&[pixels(&[1; 4]), GivenValue::Id(1)]).unwrap();
    for (value, said) in [
        (GivenValue::Id(2), "the class id 2 has no name: the list has 2 class names"),
        (GivenValue::Text("c"), "`c` is not one of the classes"),
        (GivenValue::Bytes(b""), "found bytes"),
    ] {
        let error = given.push(&[pixels(&[2; 4]), value]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("sample 1, field `y`"), "{error}");
        assert!(error.contains(said), "{error}");
    }
    assert!(given.push(&[pixels(&[2; 4])]).is_err());
    given.push(&[pixels(&[3; 4]), GivenValue::Id(0)]).unwrap();
    assert_eq!(stored(&given.into_listing().unwrap(), 1), [3; 4]);
}

#[test]
fn arrays_that_look_like_pixels_keep_their_shape() {
    let shape = vec![2, 2, 1];
    let kinds = [("image", GivenKind::Image), ("x", GivenKind::Array { dtype: DType::U8, shape: shape.clone() })];
    let mut given = given(&kinds, &[]).unwrap();
    let array = GivenValue::Array { dtype: DType::U8, shape: &shape, bytes: &[1; 4] };
    given.push(&[pixels(&[1; 4]), array]).unwrap();
    let listing = given.into_listing().unwrap();
    let content = listing.fields()[0].store.content(0);
    let dtype = DType::U8;
    assert_eq!(content, Content::Array(ArrayType { dtype, shape }));
}

#[test]
fn arrays_must_be_as_long_as_their_shape_says() {
    let mut given = given(&[("image", GivenKind::Image)], &[]).unwrap();
    for shape in [&[3, 2][..], &[0, 4], &[u64::MAX, u64::MAX]] {
        let value = GivenValue::Array { dtype: DType::U8, shape, bytes: &[0; 4] };
        assert!(given.push(&[value]).is_err(), "{shape:?}");
    }
}

#[test]
fn json_must_be_json() {
    let kinds = [("image", GivenKind::Image), ("boxes", GivenKind::Json)];
    let mut given = given(&kinds, &[]).unwrap();
    let mut push = |text| given.push(&[pixels(&[1; 4]), GivenValue::Text(text)]);
    push("[1, {\"a\": null}]").unwrap();
    assert!(push("[1,").is_err());
}

#[test]
fn a_pack_has_one_image_and_one_label_at_most() {
    let (image, label) = (GivenKind::Image, GivenKind::Label);
    for kinds in [
        vec![("y", label.clone())],
        vec![("a", image.clone()), ("b", image.clone())],
        vec![("a", image.clone()), ("b", label.clone()), ("c", GivenKind::Labels)],
        vec![("a", image.clone()), ("a", label)],
        vec![("a", image), ("b", GivenKind::Mask), ("c", GivenKind::Mask)],
    ] {
        assert!(given(&kinds, &[]).is_err(), "{kinds:?}");
    }
}

#[test]
fn no_sample_at_all_is_an_error() {
    let given = given(&[("image", GivenKind::Image)], &[]).unwrap();
    let error = given.into_listing().unwrap_err();
    assert!(error.to_string().contains("no sample was added"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("at least one sample"), "{hint}");
}
