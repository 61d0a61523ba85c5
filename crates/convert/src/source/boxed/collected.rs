//! Reads the files of all images with several threads, and turns their boxes into fields.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use packds_format::{Field, Keypoints, Polygons};
use packds_system::{to_u64, to_usize};

use super::Reader;
use super::parts::{Images, Part};
use crate::error::ConvertError;
use crate::opt::IMAGES;
use crate::ordered::{Next, ordered};
use crate::source::ListOptions;
use crate::source::box_fields::{AREA, BOX_LABELS, BOXES, BoxFields, CROWD, DIFFICULT, KEYPOINTS, POLYGONS, Seen};
use crate::source::keypoints::{MAX_POINTS, Points, padded};
use crate::source::listing::{Fault, Faults, Listing, SourceField, SourceKind};
use crate::source::paths::as_path;
use crate::source::ragged::{Ragged, single};
use crate::source::rings::{NoRing, Ring, outer};
use crate::source::store::ArrayType;
use crate::source::table_note::TableNote;
use crate::source::unread::take_others;
use crate::source::warning::Warning;

/// The boxes of an image.
#[derive(Debug, Default)]
pub(super) struct BoxSet {
    pub(super) boxes: Vec<OneBox>,
    pub(super) seen: Seen,
    /// What else was seen, and how often.
    pub(super) remarks: BTreeMap<Remark, u64>,
    /// Why the image is a bad sample.
    pub(super) fault: Option<Fault>,
}

/// A noun and the rest of a sentence: `outline`, `replaced by the box around each`.
pub(super) type Remark = (&'static str, &'static str);

/// A box: left, top, right and bottom in pixels.
#[derive(Debug)]
pub(super) struct OneBox {
    pub(super) corners: [f32; 4],
    pub(super) class: Class,
    pub(super) marks: Marks,
    /// The outline and the keypoints, if it has any.
    pub(super) outline: Option<Box<Outline>>,
}

/// The name of a keypoint, and the point.
pub(super) type NamedPoint = (Box<str>, [f32; 3]);

/// The outline and the keypoints of a box.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) rings: Vec<Ring>,
    pub(super) points: Points,
    /// Points that are known by their names, until the names in all files are known.
    pub(super) named: Vec<NamedPoint>,
}

/// What is said of outlines.
pub(super) const AS_POLYGONS: &str = "packed in 'polygons', with the box around each";

const WITHOUT_AREA: Remark = ("polygon", "without an area, left out");

impl Outline {
    fn is_empty(&self) -> bool {
        self.rings.is_empty() && self.points.is_empty() && self.named.is_empty()
    }

    /// Adds an outer ring, unless it has no area, which is counted in `set`. The box around it tells if it is too far away.
    pub(super) fn add_ring(&mut self, points: &[[f64; 2]], set: &mut BoxSet) {
        match outer(points) {
            Ok(ring) => self.rings.push(ring),
            Err(NoRing::Empty | NoRing::TooFar) => set.remark(WITHOUT_AREA),
        }
    }
}

impl OneBox {
    fn rings(&self) -> &[Ring] {
        self.outline.as_ref().map_or(&[], |outline| &outline.rings)
    }

    fn points(&self) -> &[[f32; 3]] {
        self.outline.as_ref().map_or(&[], |outline| &outline.points)
    }

    /// Whether its outline is another one than its own sides.
    fn has_shape(&self) -> bool {
        let [left, top, right, bottom] = self.corners;
        let sides = [[left, top], [right, top], [right, bottom], [left, bottom]];
        !matches!(self.rings(), [] | [_]) || self.rings().iter().any(|ring| *ring != sides)
    }
}

/// What a file says about a box besides its corners and its class.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) is_difficult: Option<bool>,
    pub(super) is_crowd: Option<bool>,
    pub(super) area: Option<f32>,
}

impl Marks {
    /// Whether the value of a field is there. Corners and classes always are.
    fn has(&self, field: &str) -> bool {
        match field {
            DIFFICULT => self.is_difficult.is_some(),
            CROWD => self.is_crowd.is_some(),
            AREA => self.area.is_some(),
            _ => true,
        }
    }
}

/// The class of a box.
#[derive(Debug)]
pub(super) enum Class {
    Id(i64),
    Name(Box<str>),
}

/// Where the names of the classes come from.
#[derive(Debug)]
pub(super) enum Classes {
    /// The names in the order of their ids.
    Given(Vec<String>),
    /// The names in the files, sorted.
    OfNames,
    /// The numbers in the files.
    Numbered,
}

impl BoxSet {
    /// Adds a box, unless it has no area. `None` if a corner is too large for f32.
    pub(super) fn add(
        &mut self,
        corners: [f64; 4],
        size: Option<(f64, f64)>,
        class: Class,
        marks: Marks,
    ) -> Option<()> {
        self.add_outlined(corners, size, (class, marks), None)
    }

    /// Adds a box like [`add`](Self::add), with its outline or keypoints.
    pub(super) fn add_outlined(
        &mut self,
        corners: [f64; 4],
        size: Option<(f64, f64)>,
        (class, marks): (Class, Marks),
        outline: Option<Outline>,
    ) -> Option<()> {
        let [left, top, right, bottom] = corners;
        let rounded = [single(left)?, single(top)?, single(right)?, single(bottom)?];
        if self.seen.keeps(corners, size) {
            let outline = outline.filter(|outline| !outline.is_empty()).map(Box::new);
            self.boxes.push(OneBox { corners: rounded, class, marks, outline });
        }
        Some(())
    }

    pub(super) fn remark(&mut self, remark: Remark) {
        *self.remarks.entry(remark).or_default() += 1;
    }
}

/// The boxes of a part.
struct Read {
    split: Option<String>,
    images: Images,
    sets: Vec<BoxSet>,
    /// Number of files that were read.
    n_files: u64,
}

/// Reads all files, and lists each part. All parts have the same classes.
pub(super) fn list(
    root: &Path,
    parts: Vec<Part>,
    reader: &dyn Reader,
    options: &ListOptions,
) -> Result<Vec<(Option<String>, Listing)>, ConvertError> {
    options.check_own_keys(root, &[])?;
    let mut all: Vec<Read> = Vec::new();
    for part in parts {
        let split = part.split.clone();
        let images = Images::of(root, part, reader.extension())?;
        let (mut sets, n_files) = read_all(root, &images, reader, options.jobs)?;
        if let (Some((remark, n)), Some(first)) = (reader.remark(split.as_deref(), &images), sets.first_mut()) {
            first.remarks.insert(remark, n);
        }
        all.push(Read { split, images, sets, n_files });
    }
    if all.iter().all(|part| part.n_files == 0) {
        let reason = format!("expected .{} files with the boxes of the images, found none", reader.extension());
        let hint = format!("to pack only the images, add {}", IMAGES.with("DIR"));
        return Err(ConvertError::unsupported(root, "", reason, hint));
    }
    let classes = match reader.classes() {
        Classes::Given(names) => names,
        Classes::OfNames => names_of(all.iter().flat_map(|part| &part.sets)),
        Classes::Numbered => numbers_of(all.iter().flat_map(|part| &part.sets)),
    };
    let named = name_points(root, &mut all)?;
    // Parts have the same fields, so the values must be there everywhere.
    let sets = || all.iter().flat_map(|part| &part.sets);
    let fields = with_outlines(BoxFields::new(classes), sets, named.or_else(|| reader.keypoints()));
    let (names, partial) = fields_of(&fields, sets);
    let known: Vec<String> = names.iter().cloned().chain(reader.in_place().map(str::to_owned)).collect();
    options.check_left_out(root, &known)?;
    let names: Vec<String> = names.into_iter().filter(|name| !options.is_left_out(name)).collect();
    Ok(all
        .into_iter()
        .map(|part| {
            let split = part.split.clone();
            (split, part.listing(root, &fields, &names, (reader, &partial)))
        })
        .collect())
}

/// Puts the points that have names into the order of all names. Also returns the names, if there are any.
fn name_points(root: &Path, all: &mut [Read]) -> Result<Option<Keypoints>, ConvertError> {
    let sets = all.iter().flat_map(|part| &part.sets);
    let outlines = sets.flat_map(|set| &set.boxes).filter_map(|one| one.outline.as_ref());
    let names: BTreeSet<Box<str>> =
        outlines.flat_map(|outline| outline.named.iter().map(|(name, _)| name.clone())).collect();
    if names.len() > MAX_POINTS {
        let reason = format!("expected at most {MAX_POINTS} names of points, found {}", names.len());
        return Err(ConvertError::unsupported(root, "", reason, "give the same points of all boxes the same names"));
    }
    let sets = all.iter_mut().flat_map(|part| &mut part.sets);
    for outline in sets.flat_map(|set| &mut set.boxes).filter_map(|one| one.outline.as_mut()) {
        let named: BTreeMap<Box<str>, [f32; 3]> = std::mem::take(&mut outline.named).into_iter().collect();
        if !named.is_empty() {
            outline.points = names.iter().map(|name| named.get(name).copied().unwrap_or_default()).collect();
        }
    }
    let names: Vec<String> = names.into_iter().map(String::from).collect();
    Ok((!names.is_empty()).then(|| Keypoints::named(names, Vec::new())))
}

/// Adds the fields of keypoints and outlines if a box has some. Outlines that are just the sides of boxes add nothing.
fn with_outlines<'a, I: Iterator<Item = &'a BoxSet>>(
    mut fields: BoxFields,
    sets: impl Fn() -> I,
    named: Option<Keypoints>,
) -> BoxFields {
    let boxes = || sets().flat_map(|set| &set.boxes);
    let n_points = boxes().map(|one| one.points().len()).max().unwrap_or(0);
    if n_points > 0 {
        let named = named.filter(|named| named.names.len() == n_points);
        fields = fields.with_keypoints(to_u64(n_points), named);
    }
    if boxes().any(OneBox::has_shape) { fields.with_polygons() } else { fields }
}

/// The numbers up to the largest one of a class, as names.
pub(super) fn numbers_of<'a>(sets: impl Iterator<Item = &'a BoxSet>) -> Vec<String> {
    let ids = sets.flat_map(|set| &set.boxes).filter_map(|one| match one.class {
        Class::Id(id) => Some(id),
        Class::Name(_) => None,
    });
    let n = ids.max().map_or(0, |id| id.saturating_add(1));
    (0..n).map(|id| id.to_string()).collect()
}

/// The class names of all boxes, sorted.
pub(super) fn names_of<'a>(sets: impl Iterator<Item = &'a BoxSet>) -> Vec<String> {
    let names: BTreeSet<&str> = sets
        .flat_map(|set| &set.boxes)
        .filter_map(|one| match &one.class {
            Class::Name(name) => Some(&**name),
            Class::Id(_) => None,
        })
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Reads the file of each image. Also returns the number of files.
fn read_all(
    root: &Path,
    images: &Images,
    reader: &dyn Reader,
    jobs: usize,
) -> Result<(Vec<BoxSet>, u64), ConvertError> {
    const WINDOW: usize = 64;
    let (mut places, mut sets, mut n_files) = (0..images.paths.len(), Vec::with_capacity(images.paths.len()), 0);
    ordered(
        jobs,
        WINDOW * jobs.max(1),
        || (),
        |(), idx: usize| {
            let file = root.join(as_path(&images.file_of(idx, reader.extension())));
            reader.read(&file, &root.join(as_path(&images.paths.path(idx))))
        },
        || Ok::<_, ConvertError>(places.next()),
        |read: Result<Option<BoxSet>, ConvertError>| {
            let read = read?;
            n_files += u64::from(read.is_some());
            sets.push(read.unwrap_or_default());
            Ok(Next::Continue)
        },
    )?;
    Ok((sets, n_files))
}

impl Read {
    /// The listing of a part.
    fn listing(
        self,
        root: &Path,
        fields: &BoxFields,
        names: &[String],
        (reader, partial): (&dyn Reader, &[String]),
    ) -> Listing {
        let Self { images, sets, n_files, .. } = self;
        let Stored { fields: stored, faults, note } = Stored::of(sets, fields, names, (reader.about(), partial));
        let Images { paths, bytes, mut warnings, mut ignored, is_beside, .. } = images;
        if is_beside {
            let n_read = n_files + reader.n_others();
            take_others(&mut warnings, reader.extension(), n_read, |_| true);
            ignored = ignored.saturating_sub(n_read);
        }
        warnings.push(Warning::Table(note));
        let has_labels = names.iter().any(|name| name == BOX_LABELS);
        Listing {
            fields: stored,
            box_classes: if has_labels { fields.classes.clone() } else { Vec::new() },
            keypoints: fields.keypoints().cloned(),
            faults,
            warnings,
            ignored,
            ..Listing::of_files(SourceKind::BoxFolder, root, paths, bytes)
        }
    }
}

/// The names of the fields that all boxes have, and of those that only some have.
pub(super) fn fields_of<'a, I: Iterator<Item = &'a BoxSet>>(
    fields: &BoxFields,
    sets: impl Fn() -> I,
) -> (Vec<String>, Vec<String>) {
    let (mut whole, mut partial) = (Vec::new(), Vec::new());
    for Field { name, .. } in &fields.fields {
        let is_there = || sets().flat_map(|set| &set.boxes).map(|one| one.marks.has(name));
        let is_certain = [BOXES, BOX_LABELS].contains(&name.as_str());
        match (is_there().all(|is_there| is_there), is_there().any(|is_there| is_there)) {
            (true, is_any) if is_any || is_certain => whole.push(name.clone()),
            (false, true) => partial.push(name.clone()),
            _ => {}
        }
    }
    (whole, partial)
}

/// The fields of boxes.
pub(super) struct Stored {
    pub(super) fields: Vec<SourceField>,
    pub(super) faults: Faults,
    pub(super) note: TableNote,
}

impl Stored {
    /// Stores the boxes of each image. The note says `about`, and names the values that only some boxes have.
    pub(super) fn of(
        sets: Vec<BoxSet>,
        fields: &BoxFields,
        names: &[String],
        (about, partial): (String, &[String]),
    ) -> Self {
        let (mut seen, mut remarks, mut faults) = (Seen::default(), BTreeMap::<Remark, u64>::new(), Faults::new());
        let mut columns: Vec<Column> =
            fields.fields.iter().filter(|field| names.contains(&field.name)).map(Column::of).collect();
        let mut without = 0;
        for (idx, set) in sets.into_iter().enumerate() {
            without += u64::from(set.boxes.is_empty());
            for column in &mut columns {
                column.push(&set.boxes, &fields.classes);
                column.ends.push(to_u64(column.bytes.len()));
            }
            seen.append(set.seen);
            set.remarks.into_iter().for_each(|(remark, n)| *remarks.entry(remark).or_default() += n);
            faults.extend(set.fault.map(|fault| (idx, fault)));
        }
        seen.left_out.extend(partial.iter().map(|name| name.trim_start_matches("box_").to_owned()));
        let has_polygons = fields.fields.iter().any(|field| field.name == POLYGONS);
        let told = |what| match what {
            AS_POLYGONS if !has_polygons => {
                "packed as boxes only, because all outlines are rectangles with level sides"
            }
            what => what,
        };
        let remarks =
            remarks.into_iter().map(|((noun, what), n)| (n, noun.to_owned(), told(what).to_owned())).collect();
        let left_out = seen.left_out.into_iter().collect();
        let note = TableNote::Boxes { about, counts: [without, seen.empty, seen.outside], remarks, left_out };
        Self { fields: columns.into_iter().map(Column::field).collect(), faults, note }
    }
}

/// The values of one field.
struct Column<'a> {
    field: &'a Field,
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl<'a> Column<'a> {
    fn of(field: &'a Field) -> Self {
        Self { field, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds the values of the boxes of an image.
    fn push(&mut self, boxes: &[OneBox], classes: &[String]) {
        match self.field.name.as_str() {
            POLYGONS => {
                let mut polygons = Polygons::default();
                let rings =
                    boxes.iter().enumerate().flat_map(|(of, one)| one.rings().iter().map(move |ring| (of, ring)));
                rings.for_each(|(of, ring)| polygons.push_ring(of, ring.iter().copied()));
                self.bytes.extend(polygons.to_bytes());
            }
            _ => boxes.iter().for_each(|one| self.push_one(one, classes)),
        }
    }

    /// Adds the value of a box.
    fn push_one(&mut self, one: &OneBox, classes: &[String]) {
        match self.field.name.as_str() {
            BOXES => self.bytes.extend(one.corners.iter().flat_map(|corner| corner.to_le_bytes())),
            DIFFICULT => self.bytes.push(u8::from(one.marks.is_difficult == Some(true))),
            CROWD => self.bytes.push(u8::from(one.marks.is_crowd == Some(true))),
            AREA => self.bytes.extend(one.marks.area.unwrap_or_default().to_le_bytes()),
            KEYPOINTS => {
                let n = to_usize(self.field.shape.first().copied().unwrap_or_default());
                self.bytes.extend(padded(one.points(), n).flatten().flat_map(f32::to_le_bytes));
            }
            _ => {
                let id = match &one.class {
                    Class::Id(id) => *id,
                    // All names are in the list.
                    Class::Name(name) => {
                        let place = classes.binary_search_by(|class| class.as_str().cmp(name));
                        place.ok().and_then(|place| i64::try_from(place).ok()).unwrap_or_default()
                    }
                };
                self.bytes.extend(id.to_le_bytes());
            }
        }
    }

    fn field(self) -> SourceField {
        let entry = ArrayType { dtype: self.field.dtype, shape: self.field.shape.clone() };
        let store = Arc::new(Ragged { entry, bytes: self.bytes, ends: self.ends });
        SourceField { name: self.field.name.clone(), store, role: self.field.role }
    }
}
