//! The cells of a sheet: the pictures of its samples, with their captions and marks.

use std::borrow::Cow;
use std::collections::BTreeSet;

use packds_convert::stem;
use packds_format::{Classes, ColumnView, Field, Role};
use packds_pixels::Image;
use packds_reader::{Pack, ReadError};
use packds_report::Rgb;
use packds_report::sheet::Cell;
use packds_system::to_u64;

use super::boxes::Boxes;
use super::picture::{Picture, color_of, is_viewable};
use crate::Failure;
use crate::class_words::Names;
use crate::escape::{escape, escape_bytes};
use crate::label::Labels;
use crate::progress::Shown;
use crate::task::Amount;

const MAX_PICTURES: usize = 4;

/// A field that is shown as a picture in each cell.
pub(super) struct Panel<'a> {
    /// The position of the field in the body.
    position: usize,
    field: &'a Field,
    /// For a mask: the index of the panel whose image the mask is laid over, if any.
    below: Option<usize>,
}

/// The panels for the fields with these names. Without names, the panels of at most four images and masks, with each
/// mask laid over the first image.
pub(super) fn panels<'a>(pack: &'a Pack, names: &[String]) -> Result<Vec<Panel<'a>>, Failure> {
    let body = || pack.schema().body().map(|(_, f)| f).enumerate();
    let panel = |(position, field)| Panel { position, field, below: None };
    if names.is_empty() {
        let found = body().filter(|(_, field)| is_viewable(field)).map(panel);
        let mut found: Vec<_> = found.take(MAX_PICTURES).collect();
        if found.is_empty() {
            return Err(Failure::not_run("no field of this pack contains images").at(pack.file_path()));
        }
        // Images come before masks, whatever the order in which they are stored.
        found.sort_by_key(Panel::is_mask);
        let image = found.iter().position(|panel| !panel.is_mask());
        found.iter_mut().filter(|panel| panel.is_mask()).for_each(|panel| panel.below = image);
        return Ok(found);
    }
    let one = |name: &String| {
        body().find(|(_, field)| field.name == *name).map(panel).ok_or_else(|| {
            let known: Vec<String> = body().map(|(_, f)| escape(&f.name)).collect();
            let message = format!("no field `{}` in the chunks; they have {}", escape(name), known.join(", "));
            Failure::not_run(message).at(pack.file_path())
        })
    };
    names.iter().map(one).collect()
}

impl Panel<'_> {
    fn is_mask(&self) -> bool {
        self.field.role == Some(Role::Mask)
    }
}

/// The cells of some samples.
pub(super) struct Cells<'a> {
    pack: &'a Pack,
    panels: &'a [Panel<'a>],
    side: u32,
    labels: Labels<'a>,
    /// The class names of all fields.
    classes: Vec<Classes>,
    valid: Option<ColumnView<'a>>,
    pub(super) cells: Vec<Cell>,
    /// The colours of the classes in the masks and boxes drawn so far, with their names.
    drawn: BTreeSet<(i64, String)>,
    /// The samples that cannot be shown, with the reasons.
    pub(super) bad: Vec<(u64, String)>,
    /// The samples that replace files that could not be read.
    pub(super) substituted: Vec<u64>,
}

impl<'a> Cells<'a> {
    /// Draws samples. The longer side of a picture has at most `side` pixels.
    pub(super) fn draw(
        pack: &'a Pack,
        panels: &'a [Panel<'a>],
        (labels, classes): Names<'a>,
        samples: &[u64],
        side: u32,
        shown: &Shown,
    ) -> Result<Self, ReadError> {
        let column = pack.schema().by_role(Role::Valid, None).map(|(number, _)| pack.located(pack.column(number)));
        let mut cells = Self {
            pack,
            panels,
            side,
            labels,
            classes,
            valid: column.transpose()?,
            cells: Vec::new(),
            drawn: BTreeSet::new(),
            bad: Vec::new(),
            substituted: Vec::new(),
        };
        for (done, &sample) in (0..).zip(samples) {
            shown.report(Amount::Of { done, total: to_u64(samples.len()), thing: "sample", bytes: 0 });
            cells.add(sample)?;
        }
        Ok(cells)
    }

    /// The colours and names of the classes in masks and boxes.
    pub(super) fn legend(&self) -> Vec<(Rgb, String)> {
        self.drawn.iter().map(|(id, name)| (color_of(*id), name.clone())).collect()
    }

    fn add(&mut self, sample: u64) -> Result<(), ReadError> {
        let pictures = match self.pack.body_items(sample) {
            Ok(items) => {
                let pictures = self.pictures(sample, &items);
                let reason = pictures.iter().find_map(|picture| picture.as_ref().err());
                self.bad.extend(reason.map(|reason| (sample, format!("sample {sample}: {reason}"))));
                pictures
            }
            Err(error) => {
                // The error already names the sample.
                self.bad.push((sample, error.to_string()));
                self.panels.iter().map(|_| Err(error.to_string())).collect()
            }
        };
        let mut caption = self.labels.show(&self.labels.of(sample));
        if caption.is_empty() {
            let path = self.pack.located(self.pack.path(sample))?.unwrap_or_default();
            caption = escape_bytes(stem(&path));
        }
        let is_marked = self.valid.as_ref().is_some_and(|valid| valid.integer(sample) == Some(0));
        if is_marked {
            self.substituted.push(sample);
            caption = format!("substituted: {caption}");
        }
        self.cells.push(Cell { pictures, caption, number: format!("#{sample}"), is_marked });
        Ok(())
    }

    fn pictures(&mut self, sample: u64, items: &[Cow<[u8]>]) -> Vec<Result<Image, String>> {
        let read = |panel: &Panel| {
            let item = items.get(panel.position).map_or(&[][..], |item| item);
            Picture::read(self.pack, panel.field, sample, item)
        };
        let (panels, boxes) = (self.panels, Boxes::among(self.pack, items));
        let read: Vec<_> = panels.iter().map(read).collect();
        let draw = |(panel, picture): (&Panel, &Result<Picture, String>)| {
            let picture = picture.as_ref().map_err(Clone::clone)?;
            let below = panel.below.and_then(|below| read.get(below)?.as_ref().ok());
            let over = below.and_then(|below| picture.over(below, self.side));
            let is_over = over.is_some();
            let mut drawn = over.unwrap_or_else(|| picture.thumbnail(self.side))?;
            let boxes = boxes.as_ref().map_err(Clone::clone)?.as_ref();
            if let Some(boxes) = boxes.filter(|_| panel.field.role == Some(Role::Image)) {
                boxes.draw(picture.size(), &mut drawn);
                let name = |label| boxes.of.map_or_else(String::new, |field| class_name(&self.classes, field, label));
                let named = boxes.classes().map(|(color, label)| (color, name(label))).collect::<Vec<_>>();
                self.drawn.extend(named);
            }
            // Class 0 has no colour in a mask laid over an image.
            let ids = picture.classes.iter().flatten().filter(|id| **id != 0 || !is_over);
            let named = ids.map(|id| (*id, class_name(&self.classes, panel.field, *id))).collect::<Vec<_>>();
            self.drawn.extend(named);
            Ok(drawn)
        };
        panels.iter().zip(&read).map(draw).collect()
    }
}

/// The name of a mask class, or its id if it has no name.
pub(super) fn class_name(classes: &[Classes], field: &Field, id: i64) -> String {
    let of_field = classes.iter().find(|classes| classes.field == field.name);
    let name = of_field.and_then(|classes| classes.names.get(usize::try_from(id).ok()?));
    name.map_or_else(|| id.to_string(), |name| escape(name))
}
