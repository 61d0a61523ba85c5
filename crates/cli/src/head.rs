//! `packds head`: lists the first samples as a table.

use clap::Args;
use packds_format::{Field, FieldKind, Role, Scalar};
use packds_pixels::probe;
use packds_reader::{Pack, ReadError};
use packds_system::{to_u64, to_usize};
use serde_json::{Map, Value, json};

use crate::args::PackPath;
use crate::choice::Choice;
use crate::class_words::WordsFile;
use crate::escape::{escape, escape_path, lossy};
use crate::human::human_bytes;
use crate::label::{Label, Labels};
use crate::opened::with_pack;
use crate::samples::{bad_samples, note_bad};
use crate::show::{is_viewable, pixel_shape};
use crate::table::Table;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds head train.pack
  packds head train.pack -n 3 --class cat
  packds head train.pack --where \"source_width < 64 and not label in ('cat', 'dog')\"
  packds head train.pack --json | jq '.samples[].path'";

/// Maximum number of values in an array that is shown. Larger arrays are left out.
const SMALL: u64 = 16;

/// List the first samples: label, class, image size, path and small fields
///
/// The table is as wide as the terminal; longer text is cut. Arrays of more than 16 numbers are left out.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Number of samples
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    words: WordsFile,
}

pub(crate) fn run(args: &HeadArgs, console: &mut Console) -> Result<Exit, Failure> {
    with_pack(&args.pack.pack, |pack| list(args, pack, console))
}

fn list(args: &HeadArgs, pack: &Pack, console: &mut Console) -> Result<Exit, Failure> {
    let n = to_usize(args.number);
    let samples: Vec<u64> = match args.choice.of(pack)? {
        Some(chosen) => chosen.into_iter().take(n).collect(),
        None => (0..pack.n_samples()).take(n).collect(),
    };
    let (labels, _) = args.words.apply(pack, Some(&samples))?;
    let mut bad = Vec::new();
    let fields = small_fields(pack, &labels);
    let rows = samples.iter().map(|sample| Row::read(pack, &labels, &fields, *sample, &mut bad));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    note_bad(&bad, &args.pack.pack, console);
    let names: Vec<&str> = fields.iter().map(|(_, field)| field.name.as_str()).collect();
    let document = || {
        json!({
            "path": escape_path(pack.file_path()),
            "n_samples": pack.n_samples(),
            "samples": rows.iter().map(|row| row.json(&names)).collect::<Value>(),
            "bad_samples": bad_samples(&bad),
        })
    };
    console.result(document, |console| {
        let lines = table(pack, &labels, &names, &rows).lines(console.columns());
        Ok(lines.iter().try_for_each(|line| writeln!(console.out, "{line}"))?)
    })?;
    Ok(if bad.is_empty() { Exit::Done } else { Exit::BadData })
}

fn table(pack: &Pack, labels: &Labels, names: &[&str], rows: &[Row]) -> Table {
    // A column is left out if no sample has it.
    let has = [true, !labels.is_none(), !labels.names().is_empty(), pack.has_paths()];
    let titles = ["sample", "label", "class", "path"].map(str::to_owned);
    let kept = |cells: [String; 4]| cells.into_iter().zip(has).filter_map(|(cell, has)| has.then_some(cell));
    let mut table = Table::new(kept(titles).chain(names.iter().map(|name| escape(name))).collect());
    for row in rows {
        let cells = [row.sample.to_string(), row.label.text(), escape(&row.class), escape(&row.path)];
        table.push(kept(cells).chain(row.cells.iter().map(Cell::text)).collect());
    }
    table
}

/// The fields to show, with their numbers in the schema. Images come first. Fields that describe an image are left out.
fn small_fields<'a>(pack: &'a Pack, labels: &Labels) -> Vec<(usize, &'a Field)> {
    let is_small = |field: &Field| {
        is_viewable(field) || field.kind != FieldKind::Tensor || field.shape.iter().product::<u64>() <= SMALL
    };
    let describes = |field: &Field| {
        let roles = [Role::Width, Role::Height, Role::Channels, Role::Coding, Role::SampleCrc32c];
        field.seek_index_of.is_some() || field.role.is_some_and(|role| roles.contains(&role))
    };
    let fields = pack.schema().fields().iter().enumerate();
    let kept = fields.filter(|(number, field)| is_small(field) && !describes(field) && !labels.is_in(*number));
    let mut kept: Vec<_> = kept.collect();
    kept.sort_by_key(|(_, field)| !is_viewable(field));
    kept
}

/// A sample, without its large fields.
struct Row {
    sample: u64,
    label: Label,
    class: String,
    path: String,
    cells: Vec<Cell>,
}

impl Row {
    fn read(
        pack: &Pack,
        labels: &Labels,
        fields: &[(usize, &Field)],
        sample: u64,
        bad: &mut Vec<(u64, String)>,
    ) -> Result<Self, ReadError> {
        let label = labels.of(sample);
        let class = if labels.names().is_empty() { String::new() } else { labels.show(&label) };
        let path = pack.located(pack.path(sample))?.unwrap_or_default();
        let mut cells = Vec::new();
        for (number, field) in fields {
            cells.push(Cell::read(pack, *number, field, sample).unwrap_or_else(|message| {
                bad.push((sample, message));
                Cell::Damaged
            }));
        }
        // Fields in the same damaged part have the same message.
        bad.dedup();
        Ok(Self { sample, label, class, path: lossy(&path), cells })
    }

    fn json(&self, names: &[&str]) -> Value {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let cells = names.iter().zip(&self.cells);
        let fields: Map<String, Value> = cells.map(|(name, cell)| ((*name).to_owned(), cell.json())).collect();
        json!({
            "sample": self.sample,
            "label": number(&self.label),
            "class": text(&self.class),
            "path": text(&self.path),
            "fields": fields,
        })
    }
}

/// The value that is shown for a field of a sample.
enum Cell {
    Numbers(Label),
    /// The entries of a ragged item.
    Entries(Vec<Label>),
    Text(String),
    /// Width and height of an image.
    Size(u64, u64),
    /// The size in bytes of any other item.
    Bytes(u64),
    Damaged,
}

impl Cell {
    fn read(pack: &Pack, number: usize, field: &Field, sample: u64) -> Result<Self, String> {
        let known = match field.kind {
            FieldKind::Tensor if is_viewable(field) => pixel_shape(field),
            FieldKind::Tensor => None,
            _ => pack.item_shape(&field.name, sample).map_err(|error| error.to_string())?,
        };
        if let Some((height, width, _)) = known {
            return Ok(Self::Size(width, height));
        }
        let item = pack.item(number, sample).map_err(|error| error.to_string())?;
        Ok(match field.kind {
            FieldKind::Tensor => Self::Numbers(Label::Numbers(Scalar::each(field.dtype, &item).collect())),
            FieldKind::Ragged => Self::Entries(entries(field, &item)),
            kind if kind.is_text() => Self::Text(lossy(&item)),
            _ => match probe(&item) {
                Ok(info) => Self::Size(info.width.into(), info.height.into()),
                Err(_) => Self::Bytes(to_u64(item.len())),
            },
        })
    }

    fn text(&self) -> String {
        match self {
            Self::Numbers(numbers) => numbers.text(),
            Self::Entries(entries) => match entries.as_slice() {
                [] => "none".to_owned(),
                [first] => first.text(),
                [first, rest @ ..] => format!("{} and {} more", first.text(), rest.len()),
            },
            Self::Text(text) => escape(text),
            Self::Size(width, height) => format!("{width}x{height}"),
            Self::Bytes(n) => human_bytes(*n),
            Self::Damaged => "damaged".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Numbers(numbers) => number(numbers),
            Self::Entries(entries) => entries.iter().map(number).collect(),
            Self::Text(text) => json!(text),
            Self::Size(width, height) => json!({ "width": width, "height": height }),
            Self::Bytes(n) => json!({ "bytes": n }),
            Self::Damaged => Value::Null,
        }
    }
}

/// The numbers of each entry of a ragged item.
fn entries(field: &Field, item: &[u8]) -> Vec<Label> {
    let n = field.entries(to_u64(item.len())).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let entry = item.len().checked_div(n).unwrap_or(1).max(1);
    let numbers = |entry| Label::Numbers(Scalar::each(field.dtype, entry).collect());
    item.chunks_exact(entry).map(numbers).collect()
}

fn number(label: &Label) -> Value {
    serde_json::from_str(&label.json()).unwrap_or_default()
}
