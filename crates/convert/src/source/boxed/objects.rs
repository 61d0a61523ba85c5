//! The column `objects` of Hugging Face: for each image an object with the lists `bbox` and `category`, or a list of such objects. The
//! `.json` members of WebDataset have the same under `objects` or `annotations`, or the lists themselves.
//!
//! A box is left, top, width and height, as in COCO, or left, top, right and bottom. The sizes of the images decide.

use std::collections::BTreeMap;

use serde_json::{Map, Value, from_str};

use super::collected::{BoxSet, Class, Marks, Stored, fields_of, names_of, numbers_of};
use super::data_yaml::MAX_CLASSES;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};
use crate::source::box_fields::BoxFields;
use crate::source::column::{ColumnValues, TextArena};
use crate::source::listing::{Listing, SourceKind};
use crate::source::paths::lossy;
use crate::source::ragged::single;
use crate::source::table_note::TableNote;
use crate::source::warning::Warning;
use crate::survey::header;

/// The name of the column, and the keys in it.
const OBJECTS: &str = "objects";
const BBOX: [&str; 3] = ["bbox", "bboxes", "boxes"];
const CATEGORIES: [&str; 5] = ["category", "categories", "category_id", "label", "labels"];
const AREA: &str = "area";
const CROWD: &str = "iscrowd";
/// The column of the `.json` members of WebDataset, and the keys in it that may have the objects.
const MEMBERS: &str = "json";
const MEMBER_KEYS: [&str; 2] = [OBJECTS, "annotations"];
/// One of so many boxes may reach beyond its image, because annotations have errors.
const FEW: usize = 100;

/// The objects of an image: lists with a value for each object.
struct Objects {
    boxes: Vec<[f64; 4]>,
    classes: Vec<Class>,
    lists: Map<String, Value>,
}

/// A column that may have boxes.
#[derive(Clone, Copy)]
struct From<'a> {
    column: &'a str,
    /// Whether it has the whole JSON of a sample, which is kept.
    is_member: bool,
    /// The key of the classes.
    key: &'a str,
}

/// Replaces the column `objects` with the fields of boxes, and adds those of the `.json` members of WebDataset. A column with other
/// values, and one whose boxes may be read in two ways, stays as it is.
pub(in crate::source) fn find(listing: &mut Listing, jobs: usize) -> Result<(), ConvertError> {
    let is_tar = listing.kind == SourceKind::Container(DataFormat::WebDataset);
    let place = |name: &str| listing.columns.iter().position(|column| column.name == name);
    let found = place(OBJECTS).map(|place| (place, OBJECTS, false));
    let found = found.or_else(|| place(MEMBERS).filter(|_| is_tar).map(|place| (place, MEMBERS, true)));
    let Some((place, column, is_member)) = found.filter(|_| listing.metadata.is_none() && listing.boxes().is_none())
    else {
        return Ok(());
    };
    let ColumnValues::Json(texts) = &listing.columns[place].values else { return Ok(()) };
    // Most JSON has no boxes, and parsing all of it takes long.
    if !texts.iter().any(|text| BBOX.iter().any(|key| text.contains(key))) {
        return Ok(());
    }
    let read = CATEGORIES.into_iter().find_map(|key| {
        let from = From { column, is_member, key };
        let all: Option<Vec<Objects>> = texts.iter().map(|text| Objects::of(text, from)).collect();
        all.filter(|all| all.iter().any(|own| !own.boxes.is_empty())).map(|all| (from, all))
    });
    let Some((from, all)) = read else {
        let reason = why_unread(listing, texts, (column, is_member));
        return reason.map_or(Ok(()), |reason| leave(listing, column, reason));
    };
    let mut classes = all.iter().flat_map(|own| &own.classes).map(|class| matches!(class, Class::Name(_)));
    let has_names = classes.next().unwrap_or(false);
    if !classes.all(|is_name| is_name == has_names) {
        let reason = format!("some values of '{}' are texts and others numbers", from.key);
        return leave(listing, column, reason);
    }
    let sizes = sizes_of(listing, &all, jobs)?;
    let Some(has_sizes) = form_of(&all, &sizes) else {
        let reason = "the sizes of the images do not tell whether its boxes are left, top, width and height, or left, top, right and bottom";
        return leave(listing, column, reason.to_owned());
    };
    let sets: Option<Vec<BoxSet>> =
        all.into_iter().zip(&sizes).map(|(own, size)| own.set(*size, (has_sizes, from))).collect();
    let Some(sets) = sets else {
        return leave(listing, column, "the numbers of a box are too large".to_owned());
    };
    add(listing, sets, (from, place), (has_sizes, has_names))
}

/// Leaves the column as it is, and says why its boxes are not read.
fn leave(listing: &mut Listing, column: &str, reason: String) -> Result<(), ConvertError> {
    let is_own =
        |field: &String| field.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let is_told = |warning: &Warning| matches!(warning, Warning::BoxColumns { fields } if fields.iter().all(is_own));
    listing.warnings.retain(|warning| !is_told(warning));
    listing.warnings.push(Warning::Table(TableNote::ObjectsUnread { field: column.to_owned(), reason }));
    Ok(())
}

/// Why the boxes of a column cannot be read: the first image whose objects have another form than those of other images. `None` if
/// no image has boxes.
fn why_unread(listing: &Listing, texts: &TextArena, (column, is_member): (&str, bool)) -> Option<String> {
    const SHOWN: usize = 80;
    let has_boxes = |own: &Objects| !own.boxes.is_empty();
    let from = CATEGORIES
        .into_iter()
        .map(|key| From { column, is_member, key })
        .find(|from| texts.iter().any(|text| Objects::of(text, *from).as_ref().is_some_and(has_boxes)))?;
    let (idx, text) = texts.iter().enumerate().find(|(_, text)| Objects::of(text, from).is_none())?;
    let (path, key) = (lossy(&listing.paths.path(idx)), from.key);
    let shown: String = text.chars().take(SHOWN).collect();
    Some(format!(
        "expected boxes of four numbers and as many classes from 0 in '{key}' for '{path}', as for other images, found {shown}"
    ))
}

/// Adds the fields of boxes that were found in a column at this place.
fn add(
    listing: &mut Listing,
    sets: Vec<BoxSet>,
    (From { column, is_member, key }, place): (From<'_>, usize),
    (has_sizes, has_names): (bool, bool),
) -> Result<(), ConvertError> {
    let known = format!("{column}.{key}");
    let is_own = |warning: &Warning| matches!(warning, Warning::NamesLeftOut { field, .. } if *field == known);
    let (mut names, mut of_classes) = match has_names {
        true => (names_of(sets.iter()), format!("the texts of '{key}', sorted")),
        false => (numbers_of(sets.iter()), "numbers".to_owned()),
    };
    if let Some(Warning::NamesLeftOut { names: own, .. }) = listing.warnings.iter().find(|warning| is_own(warning)) {
        if own.len() < names.len() {
            let reason = format!(
                "expected class ids below {}, the number of names of '{known}', found {}",
                own.len(),
                names.len() - 1
            );
            return Err(ConvertError::contradictory(
                listing.root(),
                "",
                reason,
                "correct the ids, or add the missing names",
            ));
        }
        names.clone_from(own);
        of_classes = format!("the names of '{known}'");
    }
    let fields = BoxFields::new(names);
    let (names, partial) = fields_of(&fields, || sets.iter());
    let is_taken = |name: &String| {
        let mut others = listing.columns.iter().map(|column| &column.name);
        others.any(|other| other == name) || listing.fields.iter().any(|field| field.name == *name)
    };
    if let Some(name) = names.iter().find(|name| is_taken(name)) {
        return leave(listing, column, format!("the source has another field '{name}'"));
    }
    listing.warnings.retain(|warning| !is_own(warning) && !matches!(warning, Warning::BoxColumns { .. }));
    let form = if has_sizes { "left, top, width and height" } else { "left, top, right and bottom" };
    let about =
        format!("those in '{column}' are {form}, judged by the sizes of the images; their classes are {of_classes}");
    let Stored { fields: stored, note, .. } = Stored::of(sets, &fields, &names, (about, &partial));
    if !is_member {
        listing.columns.remove(place);
    }
    listing.fields.extend(stored);
    listing.box_classes = fields.classes;
    listing.warnings.push(Warning::Table(note));
    Ok(())
}

/// The objects in the JSON of a sample. `None` if there are none.
fn in_member(value: Value) -> Option<Value> {
    let Value::Object(mut members) = value else { return None };
    let key = MEMBER_KEYS.into_iter().find(|key| members.contains_key(*key));
    match key {
        Some(key) => members.remove(key),
        None => BBOX.iter().any(|name| members.contains_key(*name)).then_some(Value::Object(members)),
    }
}

impl Objects {
    /// Reads the value of an image. `None` if it has another form, or if its classes are not under the key.
    fn of(text: &str, From { is_member, key, .. }: From<'_>) -> Option<Self> {
        let value = from_str(text).ok()?;
        let value = if is_member { in_member(value).unwrap_or_default() } else { value };
        let lists = match value {
            Value::Null => Map::new(),
            Value::Object(lists) => lists,
            Value::Array(objects) => {
                let mut lists: BTreeMap<String, Vec<Value>> = BTreeMap::new();
                let n = objects.len();
                for object in objects {
                    let Value::Object(members) = object else { return None };
                    members.into_iter().for_each(|(name, value)| lists.entry(name).or_default().push(value));
                }
                if lists.values().any(|list| list.len() != n) {
                    return None;
                }
                lists.into_iter().map(|(name, list)| (name, Value::Array(list))).collect()
            }
            _ => return None,
        };
        if lists.is_empty() {
            return Some(Self { boxes: Vec::new(), classes: Vec::new(), lists });
        }
        let list = |name: &str| lists.get(name)?.as_array();
        let number = |value: &Value| value.as_f64().filter(|number| single(*number).is_some());
        let corners = |value: &Value| {
            <[f64; 4]>::try_from(value.as_array()?.iter().map(number).collect::<Option<Vec<_>>>()?).ok()
        };
        let boxes: Vec<[f64; 4]> = BBOX.into_iter().find_map(list)?.iter().map(corners).collect::<Option<_>>()?;
        let class = |value: &Value| match value {
            Value::String(name) if !name.is_empty() => Some(Class::Name(name.as_str().into())),
            value => {
                let id = value.as_i64().filter(|id| usize::try_from(*id).is_ok_and(|id| id < MAX_CLASSES));
                id.map(Class::Id)
            }
        };
        let classes: Vec<Class> = list(key)?.iter().map(class).collect::<Option<_>>()?;
        (classes.len() == boxes.len()).then_some(Self { boxes, classes, lists })
    }

    /// The boxes with their classes and other values.
    fn set(self, size: Option<(f64, f64)>, (has_sizes, from): (bool, From<'_>)) -> Option<BoxSet> {
        let mut set = BoxSet::default();
        let value = |name: &str, idx: usize| self.lists.get(name).and_then(|list| list.as_array()?.get(idx));
        for (idx, (own, class)) in self.boxes.iter().zip(self.classes).enumerate() {
            let is_crowd = value(CROWD, idx).and_then(|mark| mark.as_bool().or_else(|| Some(mark.as_i64()? != 0)));
            let area = value(AREA, idx).and_then(Value::as_f64).and_then(single);
            let marks = Marks { is_crowd, area, ..Marks::default() };
            set.add(corners(*own, has_sizes), size, class, marks)?;
        }
        let is_known = |name: &str| BBOX.contains(&name) || [AREA, CROWD, from.key].contains(&name);
        let others = self.lists.keys().filter(|name| !from.is_member && !is_known(name));
        set.seen.left_out.extend(others.cloned());
        Some(set)
    }
}

/// The corners of a box. `has_sizes`: whether its last two numbers are its width and height.
fn corners([left, top, third, last]: [f64; 4], has_sizes: bool) -> [f64; 4] {
    if has_sizes { [left, top, left + third, top + last] } else { [left, top, third, last] }
}

/// The width and height of each image with objects. `None` if the header cannot be read.
fn sizes_of(listing: &Listing, all: &[Objects], jobs: usize) -> Result<Vec<Option<(f64, f64)>>, ConvertError> {
    const WINDOW: usize = 64;
    let (mut places, mut sizes) = (0..all.len(), Vec::with_capacity(all.len()));
    ordered(
        jobs,
        WINDOW * jobs.max(1),
        Vec::new,
        |head: &mut Vec<u8>, idx: usize| {
            let is_needed = all.get(idx).is_some_and(|own| !own.boxes.is_empty()) && listing.fault(idx).is_none();
            let info = if is_needed { header(listing, idx, head) } else { None };
            info.map(|info| (f64::from(info.width), f64::from(info.height)))
        },
        || Ok::<_, ConvertError>(places.next()),
        |size| {
            sizes.push(size);
            Ok(Next::Continue)
        },
    )?;
    Ok(sizes)
}

/// Whether the last two numbers of the boxes are widths and heights, as the sizes of the images show. `None` if both are possible, or
/// neither.
fn form_of(all: &[Objects], sizes: &[Option<(f64, f64)>]) -> Option<bool> {
    let known = || all.iter().zip(sizes).filter_map(|(own, size)| Some((own, (*size)?)));
    let boxes = || known().flat_map(|(own, size)| own.boxes.iter().map(move |own| (*own, size)));
    // Parts of the width and height fit in both ways.
    if boxes().all(|(own, _)| own.iter().all(|number| *number <= 1.0)) {
        return None;
    }
    let fits = |has_sizes: bool| {
        let is_wrong = |(own, (width, height)): &([f64; 4], (f64, f64))| {
            let [left, top, right, bottom] = corners(*own, has_sizes);
            right < left || bottom < top || right > width + 1.0 || bottom > height + 1.0
        };
        boxes().filter(is_wrong).count() * FEW <= boxes().count()
    };
    match (boxes().next().is_some() && fits(true), fits(false)) {
        (true, false) => Some(true),
        (false, true) if boxes().next().is_some() => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: From<'_> = From { column: OBJECTS, is_member: false, key: "category" };

    fn form(boxes: &[[f64; 4]]) -> Option<bool> {
        let classes = boxes.iter().map(|_| Class::Id(0)).collect();
        let own = Objects { boxes: boxes.to_vec(), classes, lists: Map::new() };
        form_of(&[own], &[Some((100.0, 50.0))])
    }

    #[test]
    fn sizes_of_images_decide_what_boxes_are() {
        assert_eq!(form(&[[60.0, 10.0, 40.0, 20.0]]), Some(true));
        assert_eq!(form(&[[60.0, 10.0, 90.0, 20.0]]), Some(false));
        assert_eq!(form(&[[10.0, 10.0, 20.0, 20.0]]), None);
        assert_eq!(form(&[[60.0, 10.0, 90.0, 20.0], [60.0, 10.0, 40.0, 20.0]]), None);
        assert_eq!(form(&[[0.6, 0.1, 0.4, 0.2]]), None);
        assert_eq!(form(&[]), None);
    }

    #[test]
    fn objects_are_lists_or_a_list_of_objects() {
        let lists = r#"{"bbox":[[1,2,3,4],[5,6,7,8]],"category":[0,2],"id":[7,8]}"#;
        let objects = r#"[{"bbox":[1,2,3,4],"category":0,"id":7},{"bbox":[5,6,7,8],"category":2,"id":8}]"#;
        for text in [lists, objects] {
            let own = Objects::of(text, OWN).unwrap();
            assert_eq!(own.boxes.len(), 2, "{text}");
            assert!(matches!(own.classes.as_slice(), [Class::Id(0), Class::Id(2)]), "{text}");
        }
        assert!(Objects::of("null", OWN).unwrap().boxes.is_empty());
        let named = Objects::of(r#"{"bbox":[[1,2,3,4]],"category":["cat"]}"#, OWN).unwrap();
        assert!(matches!(named.classes.as_slice(), [Class::Name(name)] if **name == *"cat"));
        for other in [
            r#"{"bbox":[[1,2,3]],"category":[0]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":[]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":[""]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":[-1]}"#,
            r#"{"bbox":[[1,2,3,1e300]],"category":[0]}"#,
            r#"[{"bbox":[1,2,3,4],"category":0},{"bbox":[1,2,3,4]}]"#,
            r#"{"points":[[1,2]]}"#,
            "[1]",
            "1",
        ] {
            assert!(Objects::of(other, OWN).is_none(), "{other}");
        }
    }

    #[test]
    fn objects_of_a_member_are_under_a_key_or_the_member_itself() {
        let member = From { column: MEMBERS, is_member: true, ..OWN };
        for text in [
            r#"{"caption":"x","objects":{"bbox":[[1,2,3,4]],"category":[1]}}"#,
            r#"{"annotations":[{"bbox":[1,2,3,4],"category":1}]}"#,
            r#"{"boxes":[[1,2,3,4]],"category":[1],"width":7}"#,
        ] {
            assert_eq!(Objects::of(text, member).unwrap().boxes, [[1.0, 2.0, 3.0, 4.0]], "{text}");
        }
        for none in [r#"{"caption":"x"}"#, r#"{"objects":null}"#, "null"] {
            assert!(Objects::of(none, member).unwrap().boxes.is_empty(), "{none}");
        }
        assert!(Objects::of(r#"{"objects":[1]}"#, member).is_none());
    }
}
