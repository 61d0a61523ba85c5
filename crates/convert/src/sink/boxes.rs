//! The boxes of the samples, for formats of object detection.

use packds_format::{DType, FieldKind, Keypoints, Polygons, Role};
use packds_pixels::probe;
use packds_system::{counted, to_u64};
use serde::de::DeserializeOwned;

use super::{Batch, ExportedField, SinkStart};
use crate::error::ConvertError;
use crate::opt::LIST_FORMATS;
use crate::source::{AREA, CROWD, Ring};

/// Maximum number of classes without names.
const MAX_CLASSES: usize = 1 << 16;

pub(super) struct Boxes {
    image: Column,
    sides: Column,
    labels: Column,
    areas: Option<Column>,
    crowds: Option<Column>,
    polygons: Option<Column>,
    keypoints: Option<Column>,
    /// The names of the keypoints, if they have any.
    points: Option<Keypoints>,
    /// The names of the classes. Empty if they have none.
    names: Vec<String>,
    /// The largest class so far, plus one.
    n_classes: usize,
}

/// A field by its index and name.
struct Column {
    place: usize,
    name: String,
}

/// A box, with what the sample says of it.
pub(super) struct Object {
    /// Left, top, right and bottom, in pixels.
    pub(super) sides: [f64; 4],
    pub(super) class: usize,
    pub(super) area: Option<f64>,
    pub(super) is_crowd: bool,
    /// The rings of its outline. `None` if the pack has no outlines.
    pub(super) rings: Option<Vec<Ring>>,
    /// Its keypoints: x, y and visibility. `None` if the pack has none.
    pub(super) points: Option<Vec<[f64; 3]>>,
}

impl Boxes {
    /// Refuses packs without boxes. `what` names the format.
    pub(super) fn of(start: &SinkStart<'_>, what: &str) -> Result<Self, ConvertError> {
        let with_role = |role| start.exported.by_role(role).map(Column::of);
        let roles = with_role(Role::Image).zip(with_role(Role::Boxes)).zip(with_role(Role::BoxLabels));
        let Some(((image, sides), labels)) = roles else {
            let reason = format!("{what} stores boxes and their classes, but this pack has none");
            return Err(ConvertError::options(reason, format!("choose another format; {LIST_FORMATS} lists them")));
        };
        let find = |name: &str, fits: fn(DType) -> bool| {
            let mut fields = start.exported.fields.iter().enumerate();
            let is_one = |field: &ExportedField| {
                let field = &field.field;
                field.name == name && field.kind == FieldKind::Ragged && field.shape.is_empty() && fits(field.dtype)
            };
            fields.find(|(_, field)| is_one(field)).map(Column::of)
        };
        Ok(Self {
            areas: find(AREA, |dtype| dtype != DType::Bool),
            crowds: find(CROWD, |dtype| dtype == DType::Bool),
            polygons: with_role(Role::Polygons),
            keypoints: with_role(Role::Keypoints),
            points: start.exported.by_role(Role::Keypoints).and_then(|(_, field)| field.field.keypoints.clone()),
            names: start.metadata.class_names(&labels.name).to_vec(),
            n_classes: 0,
            image,
            sides,
            labels,
        })
    }

    /// Whether the field at this index is one of the boxes.
    pub(super) fn has(&self, place: usize) -> bool {
        let others = [&self.areas, &self.crowds, &self.polygons, &self.keypoints].into_iter().flatten();
        [&self.sides, &self.labels].into_iter().chain(others).any(|column| column.place == place)
    }

    /// The boxes of sample `k`.
    pub(super) fn objects(&mut self, batch: &Batch, k: usize) -> Result<Vec<Object>, ConvertError> {
        let sides: Vec<[f64; 4]> = self.sides.values(batch, k, None)?;
        let n = Some(sides.len());
        let labels: Vec<i64> = self.labels.values(batch, k, n)?;
        let areas: Option<Vec<f64>> = self.areas.as_ref().map(|areas| areas.values(batch, k, n)).transpose()?;
        let crowds: Option<Vec<bool>> = self.crowds.as_ref().map(|crowds| crowds.values(batch, k, n)).transpose()?;
        let points: Option<Vec<Vec<[f64; 3]>>> =
            self.keypoints.as_ref().map(|points| points.values(batch, k, n)).transpose()?;
        let mut points = points.map(Vec::into_iter);
        let mut rings = self.rings(batch, k, sides.len())?.map(Vec::into_iter);
        let limit = if self.names.is_empty() { MAX_CLASSES } else { self.names.len() };
        let mut objects = Vec::with_capacity(sides.len());
        for (number, (sides, label)) in sides.into_iter().zip(labels).enumerate() {
            let class = usize::try_from(label).ok().filter(|class| *class < limit).ok_or_else(|| {
                let last = limit.saturating_sub(1);
                self.labels.bad(batch, k, format!("expected a class id from 0 to {last}, found {label}"))
            })?;
            self.n_classes = self.n_classes.max(class.saturating_add(1));
            objects.push(Object {
                sides,
                class,
                area: areas.as_ref().and_then(|areas| areas.get(number)).copied(),
                is_crowd: crowds.as_ref().and_then(|crowds| crowds.get(number)).copied().unwrap_or_default(),
                rings: rings.as_mut().map(|rings| rings.next().unwrap_or_default()),
                points: points.as_mut().map(|points| points.next().unwrap_or_default()),
            });
        }
        Ok(objects)
    }

    /// The rings of each of the `n` boxes of sample `k`. `None` if the pack has no outlines.
    fn rings(&self, batch: &Batch, k: usize, n: usize) -> Result<Option<Vec<Vec<Ring>>>, ConvertError> {
        let Some(polygons) = &self.polygons else { return Ok(None) };
        let vertices: Vec<[f32; 4]> = polygons.values(batch, k, None)?;
        let bytes: Vec<u8> = vertices.into_iter().flatten().flat_map(f32::to_le_bytes).collect();
        let found = Polygons::parse(&bytes, n).map_err(|reason| polygons.bad(batch, k, reason))?;
        Ok(Some((0..n).map(|of| found.rings_of(of).map(<[[f32; 2]]>::to_vec).collect()).collect()))
    }

    /// The names of the keypoints, if they have any.
    pub(super) fn keypoints(&self) -> Option<&Keypoints> {
        self.points.as_ref()
    }

    /// Width and height of the image of sample `k`.
    pub(super) fn size(&self, batch: &Batch, k: usize) -> Result<(u32, u32), ConvertError> {
        let info = probe(self.image.item(batch, k));
        let info = info.map_err(|error| self.image.bad(batch, k, format!("its size is unknown: {error}")))?;
        Ok((info.width, info.height))
    }

    /// The names of all classes. Without names, these are the ids so far.
    pub(super) fn classes(&self) -> Vec<String> {
        match self.names.is_empty() {
            true => (0..self.n_classes).map(|id| id.to_string()).collect(),
            false => self.names.clone(),
        }
    }

    /// Says if classes have no names.
    pub(super) fn note(&self) -> Option<String> {
        let note = || "that the classes of the boxes have no names; each is named by its id".to_owned();
        self.names.is_empty().then(note)
    }
}

impl Column {
    fn of((place, field): (usize, &ExportedField)) -> Self {
        Self { place, name: field.field.name.clone() }
    }

    fn item<'a>(&self, batch: &'a Batch, k: usize) -> &'a [u8] {
        batch.columns.get(self.place).map_or(&[][..], |column| column.item(k))
    }

    fn bad(&self, batch: &Batch, k: usize, reason: String) -> ConvertError {
        batch.bad(k, &self.name, reason)
    }

    /// The values of sample `k`. There must be `n`.
    fn values<T: DeserializeOwned>(&self, batch: &Batch, k: usize, n: Option<usize>) -> Result<Vec<T>, ConvertError> {
        let values: Vec<T> =
            serde_json::from_slice(self.item(batch, k)).map_err(|error| self.bad(batch, k, error.to_string()))?;
        match n.filter(|n| *n != values.len()) {
            None => Ok(values),
            Some(n) => {
                let boxes = counted(to_u64(n), "box");
                Err(self.bad(batch, k, format!("expected a value for each of {boxes}, found {}", values.len())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::batch;

    /// What is wrong with a sample that has these boxes, labels and areas. Two classes have names.
    fn said(values: [&str; 3], names: &[&str]) -> Option<String> {
        let column = |place: usize| Column { place, name: ["boxes", "ids", "areas", "image"][place].to_owned() };
        let mut boxes = Boxes {
            image: column(3),
            sides: column(0),
            labels: column(1),
            areas: Some(column(2)),
            crowds: None,
            polygons: None,
            keypoints: None,
            points: None,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            n_classes: 0,
        };
        let columns = values.iter().chain(&["no image"]).map(|text| batch::Column {
            bytes: text.as_bytes().to_vec(),
            ends: vec![text.len()],
            extensions: Vec::new(),
        });
        let batch = Batch { n: 1, samples: vec![7], columns: columns.collect(), ..Batch::default() };
        assert!(boxes.size(&batch, 0).unwrap_err().to_string().contains("its size is unknown"));
        boxes.objects(&batch, 0).err().map(|error| error.to_string())
    }

    #[test]
    fn values_that_do_not_belong_to_the_boxes_are_refused() {
        let one = "[[0,0,1,1]]";
        assert_eq!(said([one, "[1]", "[1]"], &["cat", "dog"]), None);
        assert_eq!(said([one, "[65535]", "[1]"], &[]), None);
        for (values, names, expected) in [
            ([one, "[2]", "[1]"], &["cat", "dog"][..], "`ids`: expected a class id from 0 to 1, found 2"),
            ([one, "[-1]", "[1]"], &["cat"], "`ids`: expected a class id from 0 to 0, found -1"),
            ([one, "[65536]", "[1]"], &[], "`ids`: expected a class id from 0 to 65535, found 65536"),
            ([one, "[]", "[1]"], &[], "`ids`: expected a value for each of 1 box, found 0"),
            ([one, "[0]", "[1,2]"], &[], "`areas`: expected a value for each of 1 box, found 2"),
        ] {
            let said = said(values, names).unwrap();
            assert!(said.contains("sample 7") && said.contains(expected), "{said}");
        }
    }

    #[test]
    fn vertices_are_gathered_into_rings_and_others_are_refused() {
        let rings = |vertices: &str| {
            let bytes = vertices.as_bytes().to_vec();
            let column = batch::Column { ends: vec![bytes.len()], bytes, extensions: Vec::new() };
            let batch = Batch { n: 1, samples: vec![7], columns: vec![column], ..Batch::default() };
            let column = |place| Column { place, name: "polygons".to_owned() };
            let boxes = Boxes {
                image: column(1),
                sides: column(1),
                labels: column(1),
                areas: None,
                crowds: None,
                polygons: Some(column(0)),
                keypoints: None,
                points: None,
                names: Vec::new(),
                n_classes: 0,
            };
            boxes.rings(&batch, 0, 3).map(Option::unwrap).map_err(|error| error.to_string())
        };
        let found = rings("[[0,0,1,2],[0,0,3,4],[0,1,5,6],[2,0,7,8]]").unwrap();
        assert_eq!(found, [vec![vec![[1.0, 2.0], [3.0, 4.0]], vec![[5.0, 6.0]]], vec![], vec![vec![[7.0, 8.0]]]]);
        for (vertices, words) in [
            ("[[3,0,1,2]]", "the box of vertex 0: expected an index below 3, found 3"),
            ("[[1,0,1,2],[0,0,1,2]]", "expected them to ascend"),
        ] {
            let error = rings(vertices).unwrap_err();
            assert!(error.contains("`polygons`") && error.contains(words), "{error}");
        }
    }
}
