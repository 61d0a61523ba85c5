//! Adds fields to a pack: values of a table or of an array.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::{DType, Field, FormatError, Pack};
use packds_system::{counted, to_u64, to_usize};
use serde_json::{Value, json};

use super::{Changes, KnownPaths, Taken};
use crate::error::{ConvertError, quoted};
use crate::identity;
use crate::opt::{COLUMN, DTYPE, NAME};
use crate::source::{ItemStore, SampleTable, TableValues, ValueType, append_stored, array_of_npy, field_of};

/// How fields are added.
#[derive(Debug, Clone, Default)]
pub struct AddFieldOptions {
    /// The columns of the table to add. Empty means all.
    pub columns: Vec<String>,
    /// The name of the new field. `None` means that of the column, or of the file.
    pub name: Option<String>,
    /// The type of the values. `None` means as they are in the table.
    pub dtype: Option<ValueType>,
}

/// A new field, with its item for each sample of the pack.
#[derive(Debug)]
pub(super) struct Added {
    pub(super) field: Field,
    items: Items,
}

#[derive(Debug)]
enum Items {
    /// Values of a table, with the row of each sample.
    Table(TableValues, Arc<[usize]>),
    /// Values in the order of the samples.
    Listed(TableValues),
    /// Items of an array in a file, in the order of the samples.
    Stored(PathBuf, Arc<dyn ItemStore>),
}

impl Added {
    /// The item of a sample.
    pub(super) fn item(&self, sample: u64) -> Result<Vec<u8>, FormatError> {
        let sample = to_usize(sample);
        match &self.items {
            Items::Table(values, rows) => Ok(values.item(rows.get(sample).copied().unwrap_or(usize::MAX)).to_vec()),
            Items::Listed(values) => Ok(values.item(sample).to_vec()),
            Items::Stored(path, store) => {
                let mut item = Vec::new();
                let read = append_stored(store.as_ref(), sample, u64::MAX, &mut item);
                let failed = |error| FormatError::Io(std::io::Error::other(format!("{}: {error}", path.display())));
                read.map_err(failed).map(|_| item)
            }
        }
    }

    /// What is added, as JSON.
    pub(super) fn described(&self, ids: &str) -> Value {
        json!({"field": self.field, "items": ids})
    }

    /// Identifies the items, and checks them.
    fn identified(&self, n: u64, table: &Path) -> Result<String, ConvertError> {
        let mut wrong = None;
        let id = identity::of_items((0..n).map(|sample| {
            let item = self.item(sample)?;
            if self.field.dtype == DType::Bool && item.iter().any(|byte| *byte > 1) {
                wrong.get_or_insert(sample);
            }
            Ok(item)
        }));
        let id = id.map_err(|error: FormatError| match error {
            FormatError::Io(source) => ConvertError::Io { path: table.to_owned(), source },
            other => ConvertError::Format(other),
        })?;
        match wrong {
            None => Ok(id.to_string()),
            Some(sample) => {
                let reason = "expected booleans, which are bytes of 0 or 1, found another byte";
                Err(ConvertError::contradictory(table, &format!("item {sample}"), reason, "write the array again"))
            }
        }
    }
}

impl Changes {
    /// Adds the columns of a table, or an array, as fields. `path` is the path of the pack, for messages.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if the options contradict each other. An error in the table, or in the bytes of the pack.
    pub fn add_fields<D: AsRef<[u8]>>(
        pack: &Pack<D>,
        path: &Path,
        table: &Path,
        options: &AddFieldOptions,
    ) -> Result<Self, ConvertError> {
        let taken = Taken { pack, path, samples: None };
        let mut changes = Self::default();
        let is_array = table.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
        let mut added = match is_array {
            true => vec![of_array(&taken, table, options)?],
            false => changes.of_table(&taken, table, options)?,
        };
        if let (Some(name), [only]) = (&options.name, added.as_mut_slice()) {
            only.field.name.clone_from(name);
        }
        // As in a conversion, texts and large arrays are compressed if other fields are.
        let compressed = pack.schema().body().map(|(_, field)| field.codec).find(|codec| !codec.is_none());
        for added in &mut added {
            let field = &mut added.field;
            check_name(&taken, table, field)?;
            if let Some(codec) = compressed.filter(|_| field.store == packds_format::Store::Body) {
                field.codec = codec.without_filter();
            }
        }
        for added in added {
            let ids = added.identified(pack.n_samples(), table)?;
            changes.added.push((Arc::new(added), ids));
        }
        Ok(changes)
    }

    fn of_table<D: AsRef<[u8]>>(
        &mut self,
        taken: &Taken<'_, D>,
        table: &Path,
        options: &AddFieldOptions,
    ) -> Result<Vec<Added>, ConvertError> {
        let read = SampleTable::read(table, &options.columns, options.dtype)?;
        self.warnings.extend(read.warnings.iter().cloned());
        if let (Some(_), [(first, _), _, ..]) = (&options.name, read.columns.as_slice()) {
            let names: Vec<String> = read.columns.iter().map(|(name, _)| name.clone()).collect();
            let reason = format!("{NAME} names one field, but the table has the columns {}", quoted(&names));
            return Err(ConvertError::options(reason, format!("choose one of them with {}", COLUMN.with(first))));
        }
        let rows: Arc<[usize]> = match read.by_number {
            true => read.rows_of(taken.each().map(|sample| sample.to_string().into()))?,
            false => {
                let paths = KnownPaths::for_table(taken)?;
                read.rows_of(taken.each().map(|sample| String::from_utf8_lossy(paths.path(sample))))?
            }
        }
        .into();
        let added = read.columns.into_iter().map(|(name, values)| {
            let field = field_of(&name, &values);
            Added { field, items: Items::Table(values, Arc::clone(&rows)) }
        });
        Ok(added.collect())
    }
}

/// The new field of a `.npy` file.
fn of_array<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    table: &Path,
    options: &AddFieldOptions,
) -> Result<Added, ConvertError> {
    for (opt, is_given) in [(COLUMN, !options.columns.is_empty()), (DTYPE, options.dtype.is_some())] {
        if is_given {
            let reason = format!("{opt} cannot be combined with a .npy file");
            return Err(ConvertError::options(reason, format!("the file has one array of one type; omit {opt}")));
        }
    }
    let name = table.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (n_rows, array) = array_of_npy(table)?;
    if to_u64(n_rows) != taken.pack.n_samples() {
        let n = counted(taken.pack.n_samples(), "sample");
        let reason = format!("expected an item for each of {n} of {}, found {n_rows}", taken.path.display());
        let hint = "save an array whose first dimension counts the samples, in the order of the pack";
        return Err(ConvertError::contradictory(table, "", reason, hint));
    }
    let (field, items) = match array {
        Ok((of, store)) => {
            let field = field_of(&name, &TableValues::Numbers(of, Vec::new()));
            (field, Items::Stored(table.to_owned(), store))
        }
        Err(texts) => {
            let values = TableValues::Text(texts);
            (field_of(&name, &values), Items::Listed(values))
        }
    };
    Ok(Added { field, items })
}

/// Refuses a name that the pack has, or that no field can have.
fn check_name<D: AsRef<[u8]>>(taken: &Taken<'_, D>, table: &Path, field: &Field) -> Result<(), ConvertError> {
    let refused = |reason: String| {
        let hint = format!("give it another name with {}", NAME.with("NAME"));
        Err(ConvertError::contradictory(table, "", reason, hint))
    };
    if taken.pack.schema().index_of(&field.name).is_ok() {
        return refused(format!("{} has a field `{}` already", taken.path.display(), field.name));
    }
    match field.check_name() {
        Ok(()) => Ok(()),
        Err(error) => refused(error.to_string()),
    }
}
