//! Labels of samples, however the pack stores them.

use packds_convert::source::LABEL_NAMES;
use packds_format::{ColumnView, DType, Field, Role, Scalar, among};
use packds_reader::{Pack, ReadError};

use crate::escape::{escape, first_few};
use crate::failure::Failure;

pub(crate) struct Labels<'a> {
    kind: Kind<'a>,
    /// The number of the label's field in the schema.
    field: Option<usize>,
    /// Name of each class id. Empty if classes have no names.
    names: Vec<String>,
}

enum Kind<'a> {
    None,
    /// One class id per sample.
    Class(ColumnView<'a>),
    /// A set of class ids per sample.
    Set(ColumnView<'a>),
    /// Other numbers, such as regression targets.
    Numbers(ColumnView<'a>, DType),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Label {
    None,
    Class(i64),
    Set(Vec<u64>),
    Numbers(Vec<Scalar>),
}

impl<'a> Labels<'a> {
    /// Finds and checks the label column, for these samples. Opens only the files with them. `None` means all.
    pub(crate) fn of_samples(pack: &'a Pack, samples: Option<&[u64]>) -> Result<Self, ReadError> {
        let Some((number, field, kind)) = label_field(pack) else {
            return Ok(Self { kind: Kind::None, field: None, names: Vec::new() });
        };
        let view = pack.located(pack.column_with(number, among(samples)))?;
        let of_field = pack.located(pack.classes())?.into_iter().find(|classes| classes.field == field.name);
        let names = of_field.map(|c| c.names).unwrap_or_default();
        Ok(Self { kind: kind(view, field.dtype), field: Some(number), names })
    }

    pub(crate) fn is_one_class(&self) -> bool {
        matches!(self.kind, Kind::Class(_))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Whether the labels are in this field.
    pub(crate) fn is_in(&self, field: usize) -> bool {
        self.field == Some(field)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The names, which callers may replace with display names.
    pub(crate) fn names_mut(&mut self) -> &mut [String] {
        &mut self.names
    }

    pub(crate) fn of(&self, sample: u64) -> Label {
        match &self.kind {
            Kind::None => Label::None,
            Kind::Class(view) => view.integer(sample).map_or(Label::None, Label::Class),
            Kind::Set(view) => {
                let bytes = view.get(sample).unwrap_or(&[]);
                let bits = (0_u64..).zip(bytes).flat_map(|(i, byte)| {
                    (0..8_u64).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| i * 8 + bit)
                });
                Label::Set(bits.collect())
            }
            Kind::Numbers(view, dtype) => {
                Label::Numbers(Scalar::each(*dtype, view.get(sample).unwrap_or(&[])).collect())
            }
        }
    }

    /// The escaped name of a class. Empty if it has none.
    pub(crate) fn class(&self, id: i64) -> String {
        let name = usize::try_from(id).ok().and_then(|id| self.names.get(id));
        name.map(|name| escape(name)).unwrap_or_default()
    }

    /// The names of a label's classes, or their ids if they have no names. A label without classes is shown as numbers.
    pub(crate) fn show(&self, label: &Label) -> String {
        let named = |id: i64| match self.class(id) {
            name if name.is_empty() => id.to_string(),
            name => name,
        };
        match label {
            Label::None => String::new(),
            Label::Class(id) => named(*id),
            Label::Set(ids) => listed(ids, |id| i64::try_from(*id).map_or_else(|_| id.to_string(), named)),
            Label::Numbers(_) => label.text(),
        }
    }
}

/// The samples of a class, in file order: those with this label, or with a box of this class if the pack has no labels.
/// The class is given by its name, or by its id if no class has this name.
pub(crate) fn samples_of_class(pack: &Pack, class: &str) -> Result<Vec<u64>, Failure> {
    let fields = pack.schema().fields();
    let labels = fields.iter().find(|field| field.has_class_ids() && !field.is_of_boxes());
    let Some(field) = labels.or_else(|| fields.iter().find(|field| field.has_class_ids())) else {
        let failure = Failure::not_run("this pack has no classes").hint("drop --class");
        return Err(failure.at(pack.file_path()));
    };
    let of_field = pack.located(pack.classes())?.into_iter().find(|classes| classes.field == field.name);
    let names = of_field.map(|classes| classes.names).unwrap_or_default();
    let id = id_of(class, &names).map_err(|failure| failure.at(pack.file_path()))?;
    Ok(pack.select(&format!("\"{}\" = {id}", field.name.replace('"', "\"\"")))?)
}

fn id_of(class: &str, names: &[String]) -> Result<usize, Failure> {
    let is_known = |id: &usize| names.is_empty() || *id < names.len();
    let number = || class.parse().ok().filter(is_known);
    names.iter().position(|name| name == class).or_else(number).ok_or_else(|| {
        let found = Failure::not_run(format!("no class `{}`", escape(class)));
        match names {
            [] => found.hint("these classes have no names: pass an id, such as --class 0"),
            names => found.hint(format!("the classes are {}", first_few(names))),
        }
    })
}

/// Makes the [`Kind`] of a label column.
type Make<'a> = fn(ColumnView<'a>, DType) -> Kind<'a>;

/// The label field, found by role or by a common name.
fn label_field(pack: &Pack) -> Option<(usize, &Field, Make<'_>)> {
    let schema = pack.schema();
    if let Some((number, field)) = schema.by_role(Role::Label, None) {
        return Some((number, field, |view, _| Kind::Class(view)));
    }
    if let Some((number, field)) = schema.by_role(Role::Labels, None) {
        return Some((number, field, |view, _| Kind::Set(view)));
    }
    let named = |name: &str| LABEL_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut columns = schema.columns().filter(|(_, f)| f.role.is_none() && named(&f.name));
    let (number, field) = columns.next()?;
    Some((number, field, Kind::Numbers))
}

impl Label {
    /// As text: values separated by commas.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Class(id) => id.to_string(),
            Self::Set(ids) => listed(ids, u64::to_string),
            Self::Numbers(numbers) => listed(numbers, Scalar::to_string),
        }
    }

    /// As JSON: a number, a list, or null.
    pub(crate) fn json(&self) -> String {
        match self {
            Self::None => "null".to_owned(),
            Self::Class(id) => id.to_string(),
            Self::Set(ids) => format!("[{}]", listed(ids, u64::to_string)),
            Self::Numbers(numbers) => match numbers.as_slice() {
                [one] => json(one),
                all => format!("[{}]", listed(all, json)),
            },
        }
    }
}

fn listed<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

/// JSON cannot represent infinity and NaN; they become null.
fn json(number: &Scalar) -> String {
    match number.float() {
        Some(value) if !value.is_finite() => "null".to_owned(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_written_as_text_and_json() {
        let bytes = [0.1_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
        let numbers = Scalar::each(DType::F32, &bytes).collect();
        let all = [Label::None, Label::Class(-1), Label::Set(vec![0, 9]), Label::Numbers(numbers)];
        assert_eq!(all.each_ref().map(Label::text), ["", "-1", "0,9", "0.1,NaN"]);
        assert_eq!(all.each_ref().map(Label::json), ["null", "-1", "[0,9]", "[0.1,null]"]);
    }
}
