//! `packds diff`: says how two packs differ.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{ClassChanges, DiffOptions, DiffReport, Few, ItemChange, SampleName, Taken, diff};
use packds_reader::Pack;
use packds_system::to_u64;
use serde_json::Value;

use crate::console::{Console, Detail};
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds diff old.pack new.pack
  packds diff photos.packs@1 photos.packs -n 100
  packds diff old.pack new.pack --json | jq .n_changed_by_field

Exit codes: 0 no difference; 1 the packs differ; 2 they could not be compared.";

/// Say how two packs differ: in fields, classes and samples
///
/// Samples are matched by their paths, or by their contents if a pack has no paths. Images are not decoded. The items of
/// matched samples are compared by the checksums of the samples if both packs have them, and otherwise by their bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The first pack: the old one
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The second pack: the new one
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    #[command(flatten)]
    given: Given<DiffOptions>,
}

pub(crate) fn run(args: &DiffArgs, console: &mut Console) -> Result<Exit, Failure> {
    compare(args, console).map_err(Failure::instead_of_a_result)
}

fn compare(args: &DiffArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let open = |path: &PathBuf| Ok::<Pack, Failure>(packds_reader::open(path)?);
    let packs = [open(&args.old)?, open(&args.new)?];
    let taken = |pack: usize, path| Taken { pack: &*packs[pack], path, samples: None };
    let both = [taken(0, &*args.old), taken(1, &*args.new)];
    let shown = Shown::new(console);
    let report = shown.stoppable("comparing", "", || diff(&both, &options, &shown));
    packs.iter().try_for_each(Pack::still_good)?;
    let report = report?;
    console.result(|| &report, |console| show(&report, console))?;
    Ok(if report.is_equal() { Exit::Done } else { Exit::BadData })
}

fn show(report: &DiffReport, console: &mut Console) -> Result<(), Failure> {
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let [old, new] = report.packs.each_ref().map(|path| escape_path(path));
    let out = &mut console.prose();
    if report.is_equal() {
        writeln!(out, "{old} and {new} have the same {}", counted(report.n_samples[0], "sample"))?;
        return Ok(());
    }
    writeln!(out, "{old} and {new} differ")?;
    let fields = &report.fields;
    let listed =
        |names: &[String]| names.iter().map(|name| format!("`{}`", escape(name))).collect::<Vec<_>>().join(", ");
    for (what, names) in [("added", &fields.added), ("removed", &fields.removed)] {
        if !names.is_empty() {
            writeln!(out, "fields    {what} {}", listed(names))?;
        }
    }
    for (field, key, old, new) in &fields.changed {
        let (old, new) = (shown_value(old), shown_value(new));
        writeln!(out, "fields    `{}`: {key} is {new}, was {old}", escape(field))?;
    }
    if fields.other_order {
        writeln!(out, "fields    in another order")?;
    }
    for classes in report.classes.iter().filter(|classes| !classes.is_empty()) {
        for line in class_lines(classes) {
            writeln!(out, "classes   `{}`: {line}", escape(&classes.field))?;
        }
    }
    let matched = if report.by_path { "paths" } else { "contents" };
    let counts = [(report.added.n, "added"), (report.removed.n, "removed"), (report.changed.n, "changed")];
    let counts = counts.map(|(n, what)| format!("{n} {what}")).join(", ");
    writeln!(out, "samples   {counts}, {} equal; matched by {matched}", report.n_equal())?;
    for (field, n) in &report.by_field {
        writeln!(out, "changed   `{}`: {}", escape(field), counted(*n, "sample"))?;
    }
    if !report.same_order {
        writeln!(out, "order     the samples of both packs are in another order")?;
    }
    list_samples(report, out)
}

/// Lists the first samples of each kind.
fn list_samples(report: &DiffReport, out: &mut impl Write) -> Result<(), Failure> {
    for (sign, few) in [("+", &report.added), ("-", &report.removed)] {
        for sample in &few.first {
            writeln!(out, "{sign} {}", sample_name(sample))?;
        }
        rest(few, &format!("{sign} "), out)?;
    }
    for change in &report.changed.first {
        let items: Vec<String> = change.items.iter().map(item_line).collect();
        writeln!(out, "~ {}: {}", sample_name(&change.after), items.join("; "))?;
    }
    rest(&report.changed, "~ ", out)
}

/// Says how many were not listed.
fn rest<T>(few: &Few<T>, start: &str, out: &mut impl Write) -> Result<(), Failure> {
    let left = few.n - to_u64(few.first.len());
    if left > 0 && !few.first.is_empty() {
        writeln!(out, "{start}and {left} more")?;
    }
    Ok(())
}

fn sample_name(sample: &SampleName) -> String {
    match &sample.path {
        Some(path) if !path.is_empty() => escape(path),
        _ => format!("sample {}", sample.sample),
    }
}

fn item_line(item: &ItemChange) -> String {
    let field = escape(&item.field);
    match &item.values {
        Some([old, new]) => format!("`{field}` is {}, was {}", shown_value(new), shown_value(old)),
        None => match item.bytes {
            [old, new] if old == new => format!("`{field}` has other bytes"),
            [old, new] => format!("`{field}` has {}, had {}", human_bytes(new), human_bytes(old)),
        },
    }
}

/// A text in quotes, or another value as JSON.
fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", escape(text)),
        Value::Null => "not set".to_owned(),
        other => escape(&other.to_string()),
    }
}

fn class_lines(classes: &ClassChanges) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, n: u64, shown: Vec<String>| {
        if n > 0 {
            let left = n - to_u64(shown.len());
            let more = if left > 0 && !shown.is_empty() { format!(" and {left} more") } else { String::new() };
            lines.push(format!("{n} {what} {}{more}", shown.join(", ")).trim_end().to_owned());
        }
    };
    let named =
        |few: &Few<(u64, String)>| few.first.iter().map(|(id, name)| format!("'{}' ({id})", escape(name))).collect();
    line("added", classes.added.n, named(&classes.added));
    line("removed", classes.removed.n, named(&classes.removed));
    let renamed = classes.renamed.first.iter();
    let renamed = renamed.map(|(id, old, new)| format!("'{}' to '{}' ({id})", escape(old), escape(new)));
    line("renamed", classes.renamed.n, renamed.collect());
    let moved = classes.moved.first.iter().map(|(name, old, new)| format!("'{}' ({new}, was {old})", escape(name)));
    line("with another id", classes.moved.n, moved.collect());
    lines
}
