//! The column `objects` of Hugging Face: for each image an object with the lists `bbox` and `category`, or a list of such objects.
//!
//! A box is left, top, width and height, as in COCO, or left, top, right and bottom. The sizes of the images decide.

use std::collections::BTreeMap;

use serde_json::{Map, Value, from_str};

use super::collected::{BoxSet, Class, Marks, Stored, fields_of, numbers_of};
use super::data_yaml::MAX_CLASSES;
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};
use crate::source::box_fields::BoxFields;
use crate::source::column::ColumnValues;
use crate::source::listing::Listing;
use crate::source::ragged::single;
use crate::source::table_note::TableNote;
use crate::source::warning::Warning;
use crate::survey::header;

/// The name of the column, and the keys in it.
const OBJECTS: &str = "objects";
const BBOX: &str = "bbox";
const CATEGORIES: [&str; 5] = ["category", "categories", "category_id", "label", "labels"];
const AREA: &str = "area";
const CROWD: &str = "iscrowd";
/// One of so many boxes may reach beyond its image, because annotations have errors.
const FEW: usize = 100;

/// The objects of an image: lists with a value for each object.
struct Objects {
    boxes: Vec<[f64; 4]>,
    classes: Vec<i64>,
    lists: Map<String, Value>,
}

/// Replaces the column `objects` with the fields of boxes. A column with other values, and one whose boxes may be read in two ways,
/// stays as it is.
pub(in crate::source) fn find(listing: &mut Listing, jobs: usize) -> Result<(), ConvertError> {
    let place = listing.columns.iter().position(|column| column.name == OBJECTS);
    let Some(place) = place.filter(|_| listing.metadata.is_none() && listing.boxes().is_none()) else { return Ok(()) };
    let ColumnValues::Json(texts) = &listing.columns[place].values else { return Ok(()) };
    let Some((key, all)) = CATEGORIES.into_iter().find_map(|key| {
        let all: Option<Vec<Objects>> = texts.iter().map(|text| Objects::of(text, key)).collect();
        all.filter(|all| all.iter().any(|own| !own.boxes.is_empty())).map(|all| (key, all))
    }) else {
        return Ok(());
    };
    let sizes = sizes_of(listing, &all, jobs)?;
    let Some(has_sizes) = form_of(&all, &sizes) else {
        listing.warnings.push(Warning::Table(TableNote::ObjectsUnread { field: OBJECTS.to_owned() }));
        return Ok(());
    };
    let sets: Option<Vec<BoxSet>> =
        all.iter().zip(&sizes).map(|(own, size)| own.set(*size, (has_sizes, key))).collect();
    let Some(sets) = sets else { return Ok(()) };
    let known = format!("{OBJECTS}.{key}");
    let is_own = |warning: &Warning| matches!(warning, Warning::NamesLeftOut { field, .. } if *field == known);
    let mut names = numbers_of(sets.iter());
    let mut of_classes = "numbers".to_owned();
    if let Some(Warning::NamesLeftOut { names: own, .. }) = listing.warnings.iter().find(|warning| is_own(warning))
        && own.len() >= names.len()
    {
        names.clone_from(own);
        of_classes = format!("the names of '{known}'");
    }
    listing.warnings.retain(|warning| !is_own(warning) && !matches!(warning, Warning::BoxColumns { .. }));
    let fields = BoxFields::new(names);
    let (names, partial) = fields_of(&fields, || sets.iter());
    let form = if has_sizes { "left, top, width and height" } else { "left, top, right and bottom" };
    let about =
        format!("those in '{OBJECTS}' are {form}, judged by the sizes of the images; their classes are {of_classes}");
    let Stored { fields: stored, note, .. } = Stored::of(sets, &fields, &names, (about, &partial));
    listing.columns.remove(place);
    listing.fields.extend(stored);
    listing.box_classes = fields.classes;
    listing.warnings.push(Warning::Table(note));
    Ok(())
}

impl Objects {
    /// Reads the value of an image. `None` if it has another form, or if its classes are not under `key`.
    fn of(text: &str, key: &str) -> Option<Self> {
        let lists = match from_str(text).ok()? {
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
        let boxes: Vec<[f64; 4]> = list(BBOX)?.iter().map(corners).collect::<Option<_>>()?;
        let class = |value: &Value| value.as_i64().filter(|id| usize::try_from(*id).is_ok_and(|id| id < MAX_CLASSES));
        let classes: Vec<i64> = list(key)?.iter().map(class).collect::<Option<_>>()?;
        (classes.len() == boxes.len()).then_some(Self { boxes, classes, lists })
    }

    /// The boxes with their classes and other values.
    fn set(&self, size: Option<(f64, f64)>, (has_sizes, key): (bool, &str)) -> Option<BoxSet> {
        let mut set = BoxSet::default();
        let value = |name: &str, idx: usize| self.lists.get(name).and_then(|list| list.as_array()?.get(idx));
        for (idx, (own, class)) in self.boxes.iter().zip(&self.classes).enumerate() {
            let is_crowd = value(CROWD, idx).and_then(|mark| mark.as_bool().or_else(|| Some(mark.as_i64()? != 0)));
            let area = value(AREA, idx).and_then(Value::as_f64).and_then(single);
            let marks = Marks { is_crowd, area, ..Marks::default() };
            set.add(corners(*own, has_sizes), size, Class::Id(*class), marks)?;
        }
        let known = [BBOX, AREA, CROWD, key];
        set.seen.left_out.extend(self.lists.keys().filter(|name| !known.contains(&name.as_str())).cloned());
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

    fn form(boxes: &[[f64; 4]]) -> Option<bool> {
        let own = Objects { boxes: boxes.to_vec(), classes: vec![0; boxes.len()], lists: Map::new() };
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
            let own = Objects::of(text, "category").unwrap();
            assert_eq!((own.boxes.len(), own.classes), (2, vec![0, 2]), "{text}");
        }
        assert!(Objects::of("null", "category").unwrap().boxes.is_empty());
        for other in [
            r#"{"bbox":[[1,2,3]],"category":[0]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":[]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":["cat"]}"#,
            r#"{"bbox":[[1,2,3,4]],"category":[-1]}"#,
            r#"{"bbox":[[1,2,3,1e300]],"category":[0]}"#,
            r#"[{"bbox":[1,2,3,4],"category":0},{"bbox":[1,2,3,4]}]"#,
            r#"{"points":[[1,2]]}"#,
            "[1]",
            "1",
        ] {
            assert!(Objects::of(other, "category").is_none(), "{other}");
        }
    }
}
