//! Reads a manifest as a source: the meaning of columns, two passes over the rows, and the files.
//!
//! `rows` parses the row syntax.
//!
//! The first pass finds the type of every column from all of its cells. The second stores the values. Memory holds paths and typed
//! values, never the manifest's text.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{
    ListOptions,
    column::{ColumnValues, SourceColumn},
    found::role_of,
    image_folder::known_metadata,
    labels::{LabelBuilder, LabelForm, LabelScan, LabelSplit, in_known_order},
    listing::{Fault, Faults, Images, Labels, Listing, Masks, SourceField, SourceKind},
    narrow::{Wide, narrowed},
    paths::FileTable,
    roles::{IMAGE_PATH_NAMES, LABEL_LIST_NAME, LABEL_NAMES, MASK_NAMES, is_label_name},
    root::Root,
    rows::{Cell, RowForm, Rows, malformed},
    values::{ColumnBuilder, ColumnType, KindsSeen},
};
use crate::error::ConvertError;
use crate::metadata::Metadata;

/// Lists the rows of a manifest.
pub(super) fn list(source: &Path, form: RowForm, options: &ListOptions) -> Result<Listing, ConvertError> {
    let root = Root::open(source, options)?;
    let mut rows = Rows::open(source, form)?;
    let scans = scan(&mut rows, options)?;
    // A file of that name with other content is most likely unrelated.
    let metadata = known_metadata(&root.path)?;
    let known = metadata.as_ref().filter(|_| form == RowForm::JsonLines);
    let plan = Plan::new(source, rows.columns(), &scans, known, options)?;
    let mut rows = rows.reopen()?;
    let (root, taken) = match take(&mut rows, &plan, &root) {
        // The files need not lie in one folder.
        Err(ConvertError::ManifestPathEscapes { file, .. })
            if options.root.is_none() && Path::new(&file).is_absolute() =>
        {
            let mut rows = rows.reopen()?;
            let columns: Vec<usize> = [plan.path].into_iter().chain(plan.mask).collect();
            let root = root.around(&mut rows, &columns)?;
            let taken = take(&mut rows.reopen()?, &plan, &root)?;
            (root, taken)
        }
        taken => (root, taken?),
    };
    finish(source, root, taken, metadata, options.jobs)
}

/// The first pass's result for a column.
struct ColumnScan {
    kinds: KindsSeen,
    /// Only for a possible label column.
    labels: Option<LabelScan>,
}

/// The first pass.
fn scan(rows: &mut Rows<'_>, options: &ListOptions) -> Result<Vec<ColumnScan>, ConvertError> {
    let mut columns: Vec<ColumnScan> = Vec::new();
    let mut first_line = None;
    while rows.advance()? {
        for name in &rows.columns()[columns.len()..] {
            let mut column = ColumnScan {
                kinds: KindsSeen::default(),
                labels: label_split(name, rows.form(), options).map(LabelScan::new),
            };
            // A JSON key that first appears here is missing in all earlier rows.
            if let Some(line) = first_line {
                column.observe(Cell::Missing, line);
            }
            columns.push(column);
        }
        let line = rows.line();
        first_line.get_or_insert(line);
        for (idx, column) in columns.iter_mut().enumerate() {
            column.observe(rows.cell(idx), line);
        }
    }
    if first_line.is_none() {
        return Err(rows.malformed("the manifest has no rows".to_owned()));
    }
    Ok(columns)
}

impl ColumnScan {
    fn observe(&mut self, cell: Cell<'_>, line: u64) {
        self.kinds.observe(cell);
        if let Some(labels) = &mut self.labels {
            labels.observe(cell, line);
        }
    }
}

/// How to split the labels of a column with this name. None if it cannot be the label column.
fn label_split(name: &str, form: RowForm, options: &ListOptions) -> Option<LabelSplit> {
    let is_list = name.eq_ignore_ascii_case(LABEL_LIST_NAME);
    let is_key = options.label_key.as_deref() == Some(name);
    let is_known = is_label_name(name);
    match form {
        // JSON has arrays, so texts are not split.
        RowForm::JsonLines => (is_list || is_key || is_known).then_some(LabelSplit::Never),
        RowForm::Comma | RowForm::Tab if is_list => Some(LabelSplit::Always),
        RowForm::Comma | RowForm::Tab if is_key => Some(LabelSplit::IfSeparated),
        RowForm::Comma | RowForm::Tab => is_known.then_some(LabelSplit::Never),
    }
}

/// The columns of paths, masks and labels.
struct Roles {
    path: usize,
    mask: Option<usize>,
    label: Option<usize>,
}

impl Roles {
    fn find(source: &Path, names: &[String], options: &ListOptions) -> Result<Self, ConvertError> {
        let missing = |wanted: String| ConvertError::ManifestColumnMissing {
            path: source.to_owned(),
            wanted,
            found: names.to_vec(),
        };
        let find = |key: &Option<String>, known: &[&str]| match key {
            Some(key) => match names.iter().position(|name| name == key) {
                Some(column) => Ok(Some(column)),
                None => Err(missing(format!("'{key}'"))),
            },
            None => Ok(find_known(names, known)),
        };
        let path = find(&options.image_key, &IMAGE_PATH_NAMES)?
            .ok_or_else(|| missing(format!("of image paths ({})", IMAGE_PATH_NAMES.join(", "))))?;
        let mask = find(&options.mask_key, &MASK_NAMES)?;
        let single_names = LABEL_NAMES.map(|name| match name {
            LABEL_LIST_NAME => "",
            name => name,
        });
        let single = find(&options.label_key, &single_names)?;
        let list = find_known(names, &[LABEL_LIST_NAME]);
        if let (Some(single), Some(list), None) = (single, list, &options.label_key) {
            let names = format!("'{}' and '{}'", names[single], names[list]);
            let reason = format!("both {names} may be the labels: choose one by name");
            return Err(malformed(source, 1, reason));
        }
        let label = if options.label_key.is_some() { single } else { single.or(list) };
        if Some(path) == mask || Some(path) == label || (mask.is_some() && mask == label) {
            let reason = "one column is named for two of path, label and mask".to_owned();
            return Err(malformed(source, 1, reason));
        }
        Ok(Self { path, mask, label })
    }
}

/// How to store each column.
struct Plan {
    path: usize,
    mask: Option<usize>,
    label: Option<PlannedLabel>,
    columns: Vec<(usize, String, ColumnType)>,
}

struct PlannedLabel {
    column: usize,
    names: bool,
    lists: bool,
    split: LabelSplit,
}

impl Plan {
    fn new(
        source: &Path,
        names: &[String],
        scans: &[ColumnScan],
        known: Option<&Metadata>,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        options.check_left_out(source, names)?;
        let is_kept = |column: &usize| !options.is_left_out(&names[*column]);
        let kept: Vec<usize> = (0..names.len()).filter(is_kept).collect();
        let kept_names: Vec<String> = kept.iter().map(|c| names[*c].clone()).collect();
        let Roles { path, mask, label } = Roles::find(source, &kept_names, options)?;
        let (path, mask) = (kept[path], mask.map(|mask| kept[mask]));
        let label = label.map(|label| kept[label]);
        let label = match label {
            None => None,
            Some(column) => plan_label(source, column, &names[column], &scans[column])?,
        };
        let label_column = label.as_ref().map(|label| label.column);
        let columns = kept
            .into_iter()
            .filter(|column| ![Some(path), mask, label_column].contains(&Some(*column)))
            .map(|column| {
                let name = names[column].clone();
                let known = known.and_then(|metadata| metadata.field(&name));
                let kinds = scans[column].kinds;
                (column, name, kinds.column_type_as(known))
            })
            .collect();
        Ok(Self { path, mask, label, columns })
    }
}

/// How to store the label column. None if it holds numbers other than ids: then it is an ordinary column.
fn plan_label(
    source: &Path,
    column: usize,
    name: &str,
    scan: &ColumnScan,
) -> Result<Option<PlannedLabel>, ConvertError> {
    let Some(labels) = &scan.labels else {
        return Ok(None);
    };
    match labels.form() {
        Ok(LabelForm::Classes { names, lists }) => {
            Ok(Some(PlannedLabel { column, names, lists, split: labels.split() }))
        }
        Ok(LabelForm::Numbers) => Ok(None),
        Err((line, reason)) => Err(malformed(source, line, format!("column '{name}': {reason}"))),
    }
}

/// The first column with one of these names.
fn find_known(names: &[String], known: &[&str]) -> Option<usize> {
    known.iter().find_map(|known| names.iter().position(|name| name.eq_ignore_ascii_case(known)))
}

/// The second pass's result.
#[derive(Default)]
struct Taken {
    images: FileTable,
    masks: Option<FileTable>,
    labels: Option<LabelBuilder>,
    columns: Vec<(String, ColumnBuilder)>,
    /// The line of each row, for messages about missing files.
    lines: Vec<u64>,
}

/// The second pass.
fn take(rows: &mut Rows<'_>, plan: &Plan, root: &Root) -> Result<Taken, ConvertError> {
    let mut taken = Taken {
        masks: plan.mask.map(|_| FileTable::default()),
        labels: plan.label.as_ref().map(|label| LabelBuilder::new(label.names, label.lists, label.split)),
        columns: plan
            .columns
            .iter()
            .map(|(_, name, column_type)| (name.clone(), ColumnBuilder::new(*column_type)))
            .collect(),
        ..Taken::default()
    };
    while rows.advance()? {
        taken.lines.push(rows.line());
        taken.images.push(&root.relative(rows, plan.path)?);
        if let (Some(masks), Some(column)) = (&mut taken.masks, plan.mask) {
            masks.push(&root.relative(rows, column)?);
        }
        let mut fits = true;
        if let (Some(labels), Some(label)) = (&mut taken.labels, &plan.label) {
            fits &= labels.push(rows.cell(label.column));
        }
        for ((_, builder), (column, ..)) in taken.columns.iter_mut().zip(&plan.columns) {
            fits &= builder.push(rows.cell(*column));
        }
        if !fits {
            return Err(rows.malformed("the manifest changed while it was read".to_owned()));
        }
    }
    if taken.lines.is_empty() {
        return Err(rows.malformed("the manifest changed while it was read".to_owned()));
    }
    Ok(taken)
}

fn finish(
    source: &Path,
    root: Root,
    taken: Taken,
    metadata: Option<Metadata>,
    jobs: usize,
) -> Result<Listing, ConvertError> {
    let manifest: Arc<Path> = source.into();
    let images = root.file_sizes(&taken.images.paths, jobs)?;
    let mut faults = Faults::new();
    let mut note = |not_files: BTreeMap<usize, bool>, is_mask| {
        for (idx, is_there) in not_files {
            faults.entry(idx).or_insert_with(|| Fault::File {
                manifest: Arc::clone(&manifest),
                line: taken.lines[idx],
                is_mask,
                is_there,
            });
        }
    };
    note(images.not_files, false);
    let masks = match taken.masks {
        None => None,
        Some(masks) => {
            let sizes = root.file_sizes(&masks.paths, jobs)?;
            note(sizes.not_files, true);
            Some(Masks::Files { paths: masks.paths, bytes: sizes.bytes })
        }
    };
    let (labels, classes) = taken.labels.map_or((Labels::None, Vec::new()), LabelBuilder::finish);
    let (labels, classes) = match &metadata {
        Some(metadata) => in_known_order(labels, classes, metadata),
        None => (labels, classes),
    };
    let (columns, fields) = narrowed_columns(taken.columns, metadata.as_ref());
    Ok(Listing {
        kind: SourceKind::Manifest,
        root: root.path,
        paths: taken.images.paths,
        bytes: images.bytes,
        labels,
        classes,
        columns,
        images: Images::Files,
        fields,
        metadata,
        faults,
        masks,
        warnings: Vec::new(),
        ignored: 0,
    })
}

/// The columns. A column with narrower numbers in the exported pack becomes a field instead.
fn narrowed_columns(
    columns: Vec<(String, ColumnBuilder)>,
    metadata: Option<&Metadata>,
) -> (Vec<SourceColumn>, Vec<SourceField>) {
    let (mut wide, mut fields) = (Vec::new(), Vec::new());
    for (name, builder) in columns {
        let values = builder.finish();
        let numbers = match &values {
            ColumnValues::I64(values) => Some(Wide::Ints(values)),
            ColumnValues::F64(values) => Some(Wide::Floats(values)),
            ColumnValues::Text(texts) => Some(Wide::Texts(texts)),
            _ => None,
        };
        let known = metadata.and_then(|metadata| metadata.field(&name));
        match numbers.zip(known).and_then(|(numbers, known)| narrowed(numbers, known)) {
            Some(store) => fields.push(SourceField { role: role_of(metadata, &name), name, store }),
            None => wide.push(SourceColumn { name, values }),
        }
    }
    (wide, fields)
}
