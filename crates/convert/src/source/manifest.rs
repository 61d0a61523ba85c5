//! Reads a manifest as a source: determines the meaning of the columns, makes two passes over the rows, and finds the
//! files.
//!
//! `rows` parses the row syntax.
//!
//! The first pass determines the type of every column from all of its cells. The second pass stores the values. Only
//! paths and typed values are kept in memory, not the manifest's text.

use std::path::Path;

use packds_system::to_u64;

use super::{
    ListOptions,
    box_fields::BoxFields,
    cell_form::file_and_class,
    class_names,
    clips::Clips,
    coco,
    column::SourceColumn,
    column_roles::{Choices, Roles, check_mask},
    column_scan::ColumnScan,
    csv_rows::PATH,
    folder_labels::{are_class_folders, class_below, common_folder, folder_of},
    foreign::Foreign,
    found::{Names, rename_taken, target},
    id_column,
    image_folder::known_metadata,
    indicators::{are_classes, class_of},
    labels::{LabelBuilder, LabelForm, LabelSplit, NEGATIVE},
    listing::{Images, Labels, Listing, SourceKind},
    mask_colors,
    narrow::ragged_columns,
    overlooked,
    pixel_rows::{PixelSpool, Pixels},
    repeats,
    roles::{LABEL_LIST_NAME, TAG_NAMES, TEXT_NAME, are_texts, is_label_column_name, is_label_name, is_other_name},
    root::Root,
    rows::{Cell, RowFile, RowForm, Rows, malformed},
    run_masks,
    split::column::SplitColumn,
    split::is_split_folder,
    table_note::TableNote,
    taken::{Taken, changed, finish, take},
    values::text_of,
    warning::Warning,
    whole,
};
use crate::error::{ConvertError, quoted};
use crate::metadata::Metadata;
use crate::opt::{LEAVE_OUT, MASK_KEY, ROOT, SPLIT};

/// Lists the rows of a manifest, or the rows of the chosen split.
pub(super) fn list(source: &Path, form: RowForm, options: &ListOptions) -> Result<Listing, ConvertError> {
    let file = RowFile::new(source, &options.spool_folder().path)?;
    Manifest::open(&file, form, options)?.list(options.split.as_deref())
}

/// Lists the first rows of a manifest.
pub(super) fn list_first(
    source: &Path,
    form: RowForm,
    n_rows: u64,
    options: &ListOptions,
) -> Result<Listing, ConvertError> {
    let mut file = RowFile::new(source, &options.spool_folder().path)?;
    file.first_rows = Some(n_rows);
    Manifest::open(&file, form, options)?.list(None)
}

/// Lists each split of a manifest with a column of splits.
pub(super) fn list_splits(
    source: &Path,
    form: RowForm,
    options: &ListOptions,
) -> Result<Vec<(String, Listing)>, ConvertError> {
    let file = RowFile::new(source, &options.spool_folder().path)?;
    let manifest = Manifest::open(&file, form, options)?;
    let splits = manifest.splits().ok_or_else(|| super::no_split(source, "all", Vec::new()))?;
    // The split becomes part of the pack's file name.
    if let Some(split) =
        splits.iter().find(|split| split.is_empty() || split.starts_with('.') || split.contains(['/', '\0']))
    {
        let shown = split.escape_debug();
        let reason = format!("the column of splits has the value '{shown}', which cannot be part of a file name");
        let hint = format!("change the value, or choose one split with {}", SPLIT.with("NAME"));
        return Err(ConvertError::contradictory(source, "", reason, hint));
    }
    splits.into_iter().map(|split| Ok((split.clone(), manifest.list(Some(&split))?))).collect()
}

/// A manifest after the first pass.
struct Manifest<'a> {
    file: &'a RowFile,
    form: RowForm,
    options: &'a ListOptions,
    /// The metadata of a pack that was exported to this folder.
    metadata: Option<Metadata>,
    names: Vec<String>,
    scans: Vec<ColumnScan>,
    n_rows: u64,
    /// Columns of 0 and 1. Each row has exactly one 1, in the column of its class.
    indicators: Option<Vec<usize>>,
    /// Whether commas separate the cells.
    has_commas: bool,
    /// Whether the file names its columns.
    has_header: bool,
    /// Where the pixels are, if the rows contain pixels instead of paths.
    pixels: Option<Pixels>,
    /// The class names of the labels, if the manifest has them in a separate list.
    classes: Vec<String>,
    /// The columns of boxes, if there are any.
    boxes: Option<BoxFields>,
    /// Warnings about the first lines.
    warnings: Vec<Warning>,
}

impl<'a> Manifest<'a> {
    fn open(file: &'a RowFile, form: RowForm, options: &'a ListOptions) -> Result<Self, ConvertError> {
        if let Some(foreign) = Foreign::of_table(&file.path) {
            return Err(foreign.error(&file.path));
        }
        let metadata = known_metadata(&Root::open(&file.path, options)?.path)?;
        let mut rows = Rows::open(file, form)?;
        let mut pixels = Pixels::find(&rows.columns, options).or_else(|| Pixels::without_header(&rows.columns));
        if pixels.is_none() {
            pixels = Pixels::in_first_row(file, form, options)?;
        }
        if let Some(pixels) = &pixels {
            pixels.check(&rows)?;
        }
        let (scans, n_rows) = scan(&mut rows, options, pixels.as_ref())?;
        let (has_commas, has_header) = (rows.has_commas(), rows.has_header());
        for (name, scan) in rows.columns.iter().zip(&scans).filter(|(name, _)| !options.is_left_out(name)) {
            scan.form.refuse(file, name, options.mask_order)?;
        }
        let unquoted = rows.unquoted();
        let (names, classes, boxes, mut warnings) = (rows.columns, rows.classes, rows.boxes, rows.warnings);
        warnings.extend(unquoted);
        check_last_name(file, &names, &scans)?;
        let has_label = options.label_key.is_some() || names.iter().any(|name| is_label_name(name));
        let indicators = if pixels.is_none() && metadata.is_none() && !has_label {
            let mut rows = Rows::open(file, form)?;
            rows.expect_columns(&names);
            indicators_of(&mut rows, &scans)?
        } else {
            None
        };
        Ok(Self {
            file,
            form,
            options,
            metadata,
            names,
            scans,
            n_rows,
            indicators,
            has_commas,
            has_header,
            pixels,
            classes,
            boxes,
            warnings,
        })
    }

    /// The columns of 0 and 1 with exactly one 1 in each row, if none of them is excluded.
    fn indicators(&self, kept: &[usize]) -> Option<Vec<usize>> {
        self.indicators.clone().filter(|columns| columns.iter().all(|column| kept.contains(column)))
    }

    /// The values of the column of splits, if there is one.
    fn splits(&self) -> Option<Vec<String>> {
        Some(self.split_column()?.splits(&self.scans)?.into_iter().collect())
    }

    fn split_column(&self) -> Option<SplitColumn> {
        let found = SplitColumn::find(&self.names, &self.scans)?;
        (!self.options.is_left_out(&self.names[found.column]) && self.metadata.is_none()).then_some(found)
    }

    /// The column of splits and the wanted split.
    ///
    /// # Errors
    /// If the split does not exist, or if there are splits and none was chosen.
    fn wanted_split(&self, wanted: Option<&str>) -> Result<Option<(SplitColumn, String)>, ConvertError> {
        let path = self.file.path.clone();
        let available = self.splits().unwrap_or_default();
        match (self.split_column(), wanted) {
            (Some(column), Some(wanted)) if available.iter().any(|split| split == wanted) => {
                Ok(Some((column, wanted.to_owned())))
            }
            (_, Some(wanted)) => Err(ConvertError::SplitMissing { path, wanted: wanted.to_owned(), available }),
            (Some(_), None)
                if available.len() > 1 && available.iter().all(|split| is_split_folder(split.as_bytes())) =>
            {
                Err(ConvertError::SeveralSplits { path, splits: available, and: "" })
            }
            _ => Ok(None),
        }
    }

    fn list(&self, wanted: Option<&str>) -> Result<Listing, ConvertError> {
        let mut root = Root::open(&self.file.path, self.options)?;
        let plan = Plan::new(self, wanted)?;
        // Later JSON rows may have new columns, so the second pass gets the columns of all rows.
        let rows = || {
            let mut rows = Rows::open(self.file, self.form)?;
            rows.expect_columns(&self.names);
            Ok::<_, ConvertError>(rows)
        };
        if let Some(pixels) = &self.pixels {
            let images = PixelSpool::create(pixels, self.options)?;
            let mut taken = take(&mut rows()?, &plan, &root, Some(images))?;
            let Some(images) = taken.pixels.take() else { return Err(changed(&rows()?)) };
            return self.named(self.finish_pixels(taken, images, plan.warnings.clone())?, &plan);
        }
        root.has_classes = plan.label.as_ref().is_some_and(|label| matches!(label.from, LabelFrom::PathEnd));
        let columns: Vec<(usize, bool)> =
            plan.path.map(|path| (path, false)).into_iter().chain(plan.mask.map(|mask| (mask, true))).collect();
        let mut warnings = plan.warnings.clone();
        let mut located = root.locate(&mut rows()?, &columns)?;
        if self.options.root.is_none()
            && let Some((beside, told)) = root.beside(&self.file.path, rows, &columns)?
        {
            (root, located) = (beside, told);
        }
        warnings.extend(located);
        let (root, taken) = match take(&mut rows()?, &plan, &root, None) {
            // Absolute paths may lead to files outside the root. If so, use a root that contains all of them.
            Err(ConvertError::ManifestPathEscapes { file, .. })
                if self.options.root.is_none() && Path::new(&file).is_absolute() =>
            {
                let columns: Vec<usize> = columns.iter().map(|(column, _)| *column).collect();
                let root = root.around(&mut rows()?, &columns).map_err(|error| self.of_other_machine(error))?;
                let taken = take(&mut rows()?, &plan, &root, None)?;
                (root, taken)
            }
            taken => (root, taken?),
        };
        if let (Some(path), None, None) = (plan.path, &self.metadata, &plan.runs) {
            let fields: Vec<&str> = taken.columns.iter().map(|column| column.name.as_str()).collect();
            warnings.extend(repeats::check(&self.file.path, &self.names[path], &taken.images.paths, &fields)?);
        }
        if let (Some(mask), None) = (plan.mask, &taken.masks) {
            warnings.push(Warning::NoMasks { field: self.names[mask].clone() });
        }
        let mut listing = finish(&self.file.path, root, taken, self.metadata.clone(), self.options.jobs)?;
        if let Some(runs) = &plan.runs {
            listing = run_masks::join(&self.file.path, listing, runs, self.options.mask_order)?;
        }
        let mut listing = whole::Format::of_table(listing, self.options)?;
        mask_colors::find(&mut listing)?;
        warnings.append(&mut listing.warnings);
        check_mask((&self.file.path, plan.path.map(|path| &self.names[path])), &mut listing, &mut warnings)?;
        warnings.extend(listing.warnings.iter().cloned());
        warnings.extend(overlooked::inner_labels(&listing));
        self.named(Listing { warnings, ..listing }, &plan)
    }

    /// Adds the class names in a file next to the table. The ids of all rows must have names, so that all splits have the same
    /// names.
    fn named(&self, mut listing: Listing, plan: &Plan) -> Result<Listing, ConvertError> {
        let label = plan.label.as_ref().filter(|label| matches!(label.from, LabelFrom::Cell));
        let ids = label.and_then(|label| self.scans[label.column].labels.ids);
        if self.metadata.is_none() {
            rename_taken(&mut listing);
        }
        if let Some(boxes) = &self.boxes {
            let known = |name: &str| boxes.fields.iter().find(|field| field.name == name);
            let (columns, fields) = ragged_columns(std::mem::take(&mut listing.columns), known);
            listing.columns = columns;
            listing.fields.extend(fields);
            listing.box_classes.clone_from(&boxes.classes);
            listing.keypoints = boxes.keypoints().cloned();
            // The note about boxes tells more.
            listing.warnings.retain(|warning| !matches!(warning, Warning::BoxColumns { .. }));
        }
        let is_listed = label.is_some_and(|label| coco::LABELS.contains(&self.names[label.column].as_str()));
        if is_listed && !self.classes.is_empty() {
            listing.classes = self.classes.iter().map(|name| name.clone().into_bytes()).collect();
        } else if let Some(ids) = ids.filter(|_| listing.classes.is_empty() && self.metadata.is_none()) {
            class_names::add(&mut listing, &self.file.path, ids)?;
        }
        Ok(listing)
    }

    /// The listing of a table of pixels.
    fn finish_pixels(
        &self,
        taken: Taken,
        images: PixelSpool,
        mut warnings: Vec<Warning>,
    ) -> Result<Listing, ConvertError> {
        let source = &self.file.path;
        let ([height, width], images) = images.finish(source)?;
        warnings.push(Warning::PixelColumns { height, width });
        let n = images.len();
        let unlabelled = taken.unlabelled(source);
        let (labels, classes) = taken.labels.map_or((Labels::None, Vec::new()), LabelBuilder::finish);
        let paths = Names::Numbered("row".to_owned()).table(n);
        Ok(Listing {
            labels,
            classes,
            columns: taken.columns,
            faults: unlabelled,
            images: Images::Stored(images),
            warnings,
            ..Listing::of_files(SourceKind::Manifest, source, paths, vec![height * width; n])
        })
    }
}

impl Manifest<'_> {
    /// Replaces the error if the paths were written on another machine.
    fn of_other_machine(&self, error: ConvertError) -> ConvertError {
        let ConvertError::SourceMissing { path } = error else { return error };
        let reason = format!("its paths begin with '{}', which does not exist on this machine", path.display());
        let hint = format!("set the folder of the files with {}", ROOT.with("DIR"));
        ConvertError::contradictory(&self.file.path, "", reason, hint)
    }
}

/// Maximum number of columns. A pack has no more fields.
const MAX_COLUMNS: usize = 1024;

/// The first pass. Also returns the number of rows.
fn scan(
    rows: &mut Rows<'_>,
    options: &ListOptions,
    pixels: Option<&Pixels>,
) -> Result<(Vec<ColumnScan>, u64), ConvertError> {
    let n_pixels = pixels.map_or(0, Pixels::n_columns);
    let mut columns: Vec<ColumnScan> = Vec::new();
    let (mut first_line, mut n_rows) = (None, 0);
    while rows.advance()? {
        n_rows += 1;
        let n = rows.columns.len() - n_pixels;
        if n > MAX_COLUMNS {
            return Err(rows.malformed(format!(
                "expected at most {MAX_COLUMNS} columns (the limit of fields in a pack), found {n}"
            )));
        }
        let is_list = matches!(rows.form, RowForm::Text | RowForm::Json) && rows.columns == [PATH];
        for name in &rows.columns[columns.len()..] {
            let is_split = SplitColumn::is_named(name);
            let is_tags = TAG_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name));
            let mut column = ColumnScan::new(label_split(name, rows.form, options), [is_list, is_split, is_tags]);
            // A JSON key that first appears in a later row is missing in all rows before it.
            if let Some(line) = first_line {
                column.observe(Cell::Missing, line);
            }
            columns.push(column);
        }
        let line = rows.line;
        first_line.get_or_insert(line);
        let is_pixel = |idx: usize| pixels.is_some_and(|pixels| pixels.has(idx));
        for (idx, column) in columns.iter_mut().enumerate().filter(|(idx, _)| !is_pixel(*idx)) {
            column.observe(rows.cell(idx), line);
        }
    }
    if first_line.is_none() {
        return Err(rows.malformed("the manifest has no rows".to_owned()));
    }
    Ok((columns, n_rows))
}

/// The columns that hold only 0 and 1, if they are the classes: each row has a 1 in exactly one of them. Reads all rows.
fn indicators_of(rows: &mut Rows<'_>, scans: &[ColumnScan]) -> Result<Option<Vec<usize>>, ConvertError> {
    let columns: Vec<usize> = (0..scans.len()).filter(|column| scans[*column].form.are_indicators()).collect();
    Ok((columns.len() > 1 && are_classes(rows, &columns)?).then_some(columns))
}

/// Refuses a last column without a name, unless it is empty, as when each line ends with a comma.
fn check_last_name(file: &RowFile, names: &[String], scans: &[ColumnScan]) -> Result<(), ConvertError> {
    match (names, scans) {
        ([_, .., name], [.., scan]) if name.is_empty() && scan.kinds.is_some() => {
            Err(malformed(&file.path, 1, format!("column {} has no name", names.len())))
        }
        _ => Ok(()),
    }
}

/// How to split the labels of a column with this name.
fn label_split(name: &str, form: RowForm, options: &ListOptions) -> LabelSplit {
    let is_key = options.label_key.as_deref() == Some(name);
    match form.has_text_cells() {
        true if is_key => LabelSplit::IfSeparated,
        true if name.eq_ignore_ascii_case(LABEL_LIST_NAME) => LabelSplit::Always,
        // JSON has arrays for lists, so strings are not split.
        _ => LabelSplit::Never,
    }
}

/// How to store each column.
pub(super) struct Plan {
    /// The column of image paths. `None` in a table of pixels.
    pub(super) path: Option<usize>,
    pub(super) mask: Option<usize>,
    pub(super) label: Option<PlannedLabel>,
    /// The name of the column of run-length masks.
    runs: Option<String>,
    pub(super) columns: Vec<(usize, SourceColumn)>,
    /// The split column, and the split of the rows to take.
    pub(super) split: Option<(SplitColumn, String)>,
    warnings: Vec<Warning>,
}

pub(super) struct PlannedLabel {
    column: usize,
    pub(super) names: bool,
    pub(super) lists: bool,
    pub(super) split: LabelSplit,
    from: LabelFrom,
}

/// Where the label of a row comes from.
enum LabelFrom {
    /// From the cell.
    Cell,
    /// From the path of the image: its folder, relative to this folder.
    FolderBelow(String),
    /// From the name of the column that has a 1.
    Indicators(Vec<usize>),
    /// From the end of the path, as in `1.jpg_Fish`.
    PathEnd,
}

impl PlannedLabel {
    /// One class name in each row.
    fn names(column: usize, from: LabelFrom) -> Self {
        Self { column, names: true, lists: false, split: LabelSplit::Never, from }
    }

    /// Passes the current row's label to `take`.
    pub(super) fn with_cell<T>(&self, rows: &Rows<'_>, take: impl FnOnce(Cell<'_>) -> T) -> T {
        match &self.from {
            LabelFrom::Cell => take(rows.cell(self.column)),
            LabelFrom::FolderBelow(below) => {
                let path = text_of(rows.cell(self.column));
                take(Cell::Text(class_below(folder_of(&path), below)))
            }
            LabelFrom::PathEnd => {
                let path = text_of(rows.cell(self.column));
                take(file_and_class(&path).map_or(Cell::Missing, |(_, class)| Cell::Text(class)))
            }
            LabelFrom::Indicators(columns) => {
                take(class_of(rows, columns).map_or(Cell::Missing, |column| Cell::Text(&rows.columns[column])))
            }
        }
    }
}

impl Plan {
    fn new(manifest: &Manifest<'_>, wanted: Option<&str>) -> Result<Self, ConvertError> {
        let Manifest { file, names, scans, options, pixels, .. } = manifest;
        options.check_left_out(&file.path, names)?;
        let mut warnings = manifest.warnings.clone();
        if names.first().is_some_and(String::is_empty) {
            warnings.push(Warning::IndexColumn);
        }
        warnings.retain(|warning| options.label_key.is_none() || !warning.is_guessed_label());
        let split = manifest.wanted_split(wanted)?;
        let split_column = split.as_ref().map(|(split, _)| split.column);
        if let Some((split, _)) = split.as_ref().filter(|(split, _)| split.is_flag) {
            warnings.push(Warning::Table(TableNote::ValidFlags { field: names[split.column].clone() }));
        }
        let is_kept = |column: &usize| {
            let is_pixel = pixels.as_ref().is_some_and(|pixels| pixels.has(*column));
            let is_free = !is_pixel && Some(*column) != split_column;
            !names[*column].is_empty() && !options.is_left_out(&names[*column]) && is_free
        };
        let kept: Vec<usize> = (0..names.len()).filter(is_kept).collect();
        let kept_names: Vec<String> = kept.iter().map(|c| names[*c].clone()).collect();
        let runs = run_column(manifest, &kept)?;
        let is_file = |column: &usize| {
            scans[*column].form.are_files() || (runs.is_some() && scans[*column].form.are_files_with_classes())
        };
        let are_files = kept.iter().map(is_file).collect();
        let choices = Choices { source: &file.path, names: &kept_names, are_files, options };
        let Roles { path, mask, label } =
            id_column::roles((file, manifest.form), &kept, choices, pixels.as_ref(), &mut warnings)?;
        let [path, mask, label] = [path, mask, label].map(|column| column.map(|column| kept[column]));
        let mask = mask.filter(|mask| Some(*mask) != runs);
        let runs = runs.filter(|_| mask.is_none());
        let ends = path.filter(|path| runs.is_some() && scans[*path].form.are_files_with_classes());
        let indicators = manifest.indicators(&kept).filter(|_| label.is_none());
        let label = match label {
            Some(label) => Some(label),
            None if indicators.is_some() => None,
            // A table of pixels without a header has its label first.
            None if pixels.is_some() && !manifest.has_header => Some(0),
            None => manifest.unnamed_label(&kept, [path, mask.or(runs)], &mut warnings),
        };
        let text = match label {
            Some(column) if has_texts(manifest, (column, path), &mut warnings)? => Some(column),
            _ => None,
        };
        let label = match (label.filter(|_| text.is_none()), indicators) {
            (Some(column), _) => plan_label(manifest, column, &mut warnings)?,
            (None, Some(columns)) => {
                warnings.push(Warning::Indicators {
                    fields: columns.iter().map(|column| names[*column].clone()).collect(),
                });
                Some(PlannedLabel::names(0, LabelFrom::Indicators(columns)))
            }
            (None, None) if let Some(column) = ends => Some(PlannedLabel::names(column, LabelFrom::PathEnd)),
            (None, None) => path.filter(|_| text.is_none()).and_then(|path| manifest.folder_label(path, &mut warnings)),
        };
        let is_single =
            |label: &&PlannedLabel| label.split == LabelSplit::Always && scans[label.column].labels.has_single_labels();
        if let Some(label) = label.as_ref().filter(is_single) {
            warnings.push(Warning::SingleLabels { field: names[label.column].clone() });
        }
        let columns = other_columns(manifest, kept, ([path, mask], label.as_ref(), text));
        if manifest.metadata.is_none() {
            let text = |(column, _): &(usize, SourceColumn)| {
                let cell = scans[*column].numerals.text()?.to_owned();
                Some(Warning::NumbersAsText { field: names[*column].clone(), cell })
            };
            warnings.extend(columns.iter().filter_map(text));
        }
        let runs = runs.map(|column| names[column].clone());
        Ok(Self { path, mask, label, runs, columns, split, warnings })
    }
}

/// The columns that are neither paths nor labels. `text` is the column of texts in a list without column names.
fn other_columns(
    manifest: &Manifest<'_>,
    kept: Vec<usize>,
    (paths, label, text): ([Option<usize>; 2], Option<&PlannedLabel>, Option<usize>),
) -> Vec<(usize, SourceColumn)> {
    let Manifest { names, scans, .. } = manifest;
    let known = manifest.metadata.as_ref().filter(|_| manifest.form == RowForm::JsonLines);
    let label_columns: &[usize] = match label {
        Some(PlannedLabel { from: LabelFrom::Indicators(columns), .. }) => columns,
        Some(PlannedLabel { column, .. }) => std::slice::from_ref(column),
        None => &[],
    };
    let others = kept.into_iter().filter(|column| !paths.contains(&Some(*column)) && !label_columns.contains(column));
    let planned = |column: usize| {
        let name = if Some(column) == text { TEXT_NAME } else { &names[column] }.to_owned();
        let known = known.and_then(|metadata| metadata.field(&name));
        let values = scans[column].kinds.column_as(known);
        let is_renamed = label.is_none() && scans[column].are_negative();
        let name = if is_renamed { target(name) } else { name };
        (column, SourceColumn { name, values })
    };
    others.map(planned).collect()
}

impl Manifest<'_> {
    /// Labels from the folders in a list that contains only paths, as in an image folder. `None` if the folders are splits.
    fn folder_label(&self, path: usize, warnings: &mut Vec<Warning>) -> Option<PlannedLabel> {
        let folders = self.scans[path].folders.as_ref().filter(|_| self.boxes.is_none())?;
        let below = common_folder(folders);
        let is_split =
            |folder: &String| class_below(folder, &below).split('/').any(|part| is_split_folder(part.as_bytes()));
        if !are_class_folders(folders.len(), self.n_rows) || folders.iter().any(is_split) {
            return None;
        }
        let first = class_below(folders.first()?, &below).to_owned();
        warnings.push(Warning::FolderLabels { first });
        Some(PlannedLabel::names(path, LabelFrom::FolderBelow(below)))
    }

    /// Whether the first row names a folder of images in this column.
    fn has_folder_rows(&self, path: Option<usize>) -> Result<bool, ConvertError> {
        let Some(path) = path else { return Ok(false) };
        let root = Root::open(&self.file.path, self.options)?.path;
        let mut rows = Rows::open(self.file, self.form)?;
        rows.expect_columns(&self.names);
        rows.advance()?;
        let first = text_of(rows.cell(path)).into_owned();
        Ok(Clips::is_folder(&root, &first))
    }

    /// The label column if no column has a usual name: the only column besides the paths. Warns about this choice, or about columns that
    /// look like labels.
    fn unnamed_label(&self, kept: &[usize], paths: [Option<usize>; 2], warnings: &mut Vec<Warning>) -> Option<usize> {
        // The classes of boxes are no labels of the images.
        if self.metadata.is_some() || self.boxes.is_some() {
            return None;
        }
        let is_other = |column: &usize| is_other_name(&self.names[*column]);
        let split = self.split_column().map(|split| split.column);
        let is_free = |column: &usize| !paths.contains(&Some(*column)) && Some(*column) != split;
        let others: Vec<usize> = kept.iter().copied().filter(is_free).collect();
        let has_name = |column: &usize| is_label_column_name(&self.names[*column]);
        let is_like = |column: &usize| self.scans[*column].is_like_labels(self.n_rows);
        let is_tags = |column: &usize| TAG_NAMES.iter().any(|known| known.eq_ignore_ascii_case(&self.names[*column]));
        let may_be = |column: &usize| {
            !is_other(column)
                && (is_like(column) || is_tags(column) || has_name(column) || self.scans[*column].are_ids())
        };
        let like: Vec<usize> = others.iter().copied().filter(may_be).collect();
        let named: Vec<usize> = like.iter().copied().filter(has_name).collect();
        match (others.as_slice(), like.as_slice(), named.as_slice()) {
            ([only], [_], _) if is_like(only) && !self.scans[*only].labels.has_missing() => {
                warnings.push(Warning::OnlyOtherColumn { field: self.names[*only].clone() });
                return Some(*only);
            }
            (_, _, [named]) if is_like(named) => {
                warnings.push(Warning::LabelColumn { field: self.names[*named].clone() });
                return Some(*named);
            }
            _ => {}
        }
        let repeats = |column: &usize| !is_other(column) && self.scans[*column].repeats(self.n_rows);
        let doubtful: Vec<usize> = if like.is_empty() { others.into_iter().filter(repeats).collect() } else { like };
        if !doubtful.is_empty() {
            let fields = doubtful.iter().map(|column| self.names[*column].clone()).collect();
            warnings.push(Warning::NoLabels { fields, is_program: false });
        }
        None
    }
}

/// The column of run-length masks that can be read. `None` if there is none.
///
/// # Errors
/// If there are several, and the caller chose none of them, or if there is none, and the caller chose the order of their pixels.
fn run_column(manifest: &Manifest<'_>, kept: &[usize]) -> Result<Option<usize>, ConvertError> {
    let Manifest { file, names, scans, options, metadata, .. } = manifest;
    let key = options.mask_key.as_ref();
    let is_meant = |column: &usize| {
        scans[*column].form.are_masks(&names[*column], options.mask_order)
            && key.is_none_or(|key| *key == names[*column])
            && metadata.is_none()
    };
    let found: Vec<usize> = kept.iter().copied().filter(is_meant).collect();
    match found.as_slice() {
        [] if options.mask_order.is_some() => Err(run_masks::no_column()),
        [] => Ok(None),
        [only] => Ok(Some(*only)),
        several => {
            let several: Vec<String> = several.iter().map(|column| names[*column].clone()).collect();
            let reason = format!("the columns {} all hold run-length encoded (RLE) masks", quoted(&several));
            let hint = format!("choose one with {MASK_KEY}, or leave the others out with {LEAVE_OUT}");
            Err(ConvertError::contradictory(&file.path, "", reason, hint))
        }
    }
}

/// Whether a label column that the file does not name contains texts. Also warns about a named column of labels that may be texts. The
/// labels of folders, such as the gestures of clips, are not texts. `path` is the column of images.
fn has_texts(
    manifest: &Manifest<'_>,
    (column, path): (usize, Option<usize>),
    warnings: &mut Vec<Warning>,
) -> Result<bool, ConvertError> {
    let Manifest { names, scans, n_rows: count, options, metadata, has_header, .. } = manifest;
    let scan = &scans[column];
    let different = scan.distinct.as_ref().map_or(*count, |distinct| to_u64(distinct.len()));
    let are_names = matches!(scan.labels.form(), Ok(LabelForm::Classes { names: true, lists: false }));
    let are_chosen = metadata.is_some() || options.label_key.is_some() || scan.joined.lists().is_some();
    if !are_names || are_chosen || !are_texts(different, *count) || manifest.has_folder_rows(path)? {
        return Ok(false);
    }
    warnings.retain(|warning| !matches!(warning, Warning::SecondColumn { .. }));
    warnings.push(Warning::TextLabels {
        field: names[column].clone(),
        different,
        count: *count,
        are_texts: !has_header,
    });
    Ok(!has_header)
}

/// How to store the label column. `None` if it holds numbers other than ids, which makes it an ordinary column.
fn plan_label(
    manifest: &Manifest<'_>,
    column: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Option<PlannedLabel>, ConvertError> {
    let Manifest { file, names, scans, options, metadata, .. } = manifest;
    let (scan, name) = (&scans[column], &names[column]);
    let wrong = |line, reason| malformed(&file.path, line, format!("column '{name}': {reason}"));
    let lists = scan.joined.lists().filter(|_| metadata.is_none() && !scan.labels.are_lists());
    if let Some(cell) = scan.numerals.decimal().filter(|_| !(manifest.has_commas && lists.is_some())) {
        let reason = format!("column '{name}': '{cell}' may be a number with a decimal comma, or two labels");
        let hint = "write numbers with a decimal point (in Python: pandas.read_csv('x.csv', sep=None, engine='python', decimal=',').to_csv('y.csv', index=False)), or separate labels with ';'";
        return Err(ConvertError::contradictory(&file.path, "", reason, hint));
    }
    if let Some((separator, example, names)) = lists {
        warnings.push(Warning::JoinedLabels { field: name.clone(), cell: example.to_owned() });
        return Ok(Some(PlannedLabel {
            column,
            names,
            lists: true,
            split: LabelSplit::At(separator),
            from: LabelFrom::Cell,
        }));
    }
    match scan.labels.form() {
        Ok(LabelForm::Classes { names, lists }) => {
            warnings.extend(scan.doubtful_names(name));
            if let Some(cell) = scan.joined.doubtful().filter(|_| names && !scan.labels.are_lists()) {
                warnings.push(Warning::MaybeJoined { field: name.clone(), cell: cell.to_owned() });
            }
            Ok(Some(PlannedLabel { column, names, lists, split: scan.labels.split, from: LabelFrom::Cell }))
        }
        Ok(LabelForm::Numbers) => Ok(None),
        Ok(LabelForm::Negatives { line }) if options.label_key.is_some() => Err(wrong(line, NEGATIVE.to_owned())),
        Ok(LabelForm::Negatives { .. }) => {
            warnings.push(Warning::negative_ids(name));
            Ok(None)
        }
        Err((line, reason)) => Err(wrong(line, reason)),
    }
}
