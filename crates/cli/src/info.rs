//! `packds info`: describes a pack from its header and footer.

use packds_system::to_u64;
use std::io::Write;

use clap::Args;
use packds_format::constants::{MAJOR, MINOR};
use packds_format::{Classes, Field, FieldKind, LabelStats, Manifest, Stats, Store};
use packds_reader::{Pack, ReadError};
use serde_json::{Map, Value, json};

use crate::args::PackPaths;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, numbers, seek_line};
use crate::numpy::Numpy;
use crate::opened::{each_pack, with_pack};
use crate::shuffle::{Shuffle, ShuffleArgs};
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds info train.pack
  packds info train.pack --json | jq .n_samples
  packds info train.pack val.pack
  packds info train.pack --shuffle --batch 256 --window 64
  packds info train.pack --shuffle --batch 256 --plot order.svg";

/// Maximum number of classes in the text. `--json` lists all.
const SHOWN_CLASSES: usize = 6;
/// Maximum number of skipped files in the text. `--json` shows all that the pack lists.
const SHOWN_SKIPPED: usize = 3;

/// Show what a pack contains: samples, fields, classes, statistics, provenance
///
/// Reads only the header and footer, which takes milliseconds for a pack of any size. Fails if the pack is truncated or
/// extended, or if these parts are damaged; `packds verify` checks the rest. Only `--plot` reads more: the labels.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    packs: PackPaths,
    #[command(flatten)]
    shuffle: ShuffleArgs,
}

pub(crate) fn run(args: &InfoArgs, console: &mut Console) -> Result<Exit, Failure> {
    if args.packs.packs.len() > 1 && args.shuffle.has_plot() {
        return Err(Failure::not_run("--plot can draw only one pack").hint("pass one pack, or omit --plot"));
    }
    each_pack(&args.packs.packs, true, console, |path, console| with_pack(path, |pack| tell(args, pack, console)))
}

fn tell(args: &InfoArgs, pack: &Pack, console: &mut Console) -> Result<Exit, Failure> {
    let info = Info::read(pack)?;
    let shuffle = Shuffle::read(&args.shuffle, pack, &info.stats)?;
    if console.json {
        let mut document = info.json();
        if let Some(shuffle) = &shuffle {
            document["shuffle"] = shuffle.json()?;
        }
        console.document(&document)?;
    } else {
        info.text(&mut console.prose())?;
        let out = &mut console.prose();
        let mut lines = Lines::new(out);
        for (key, value) in shuffle.iter().flat_map(Shuffle::lines) {
            lines.put(key, &value)?;
        }
    }
    Ok(Exit::Done)
}

/// The document of `packds info --json`.
///
/// # Errors
/// [`ReadError`] if the footer is damaged.
pub fn info_document(pack: &Pack) -> Result<Value, ReadError> {
    Ok(Info::read(pack)?.json())
}

struct Info<'a> {
    pack: &'a Pack,
    stats: Stats,
    classes: Vec<Classes>,
    provenance: Map<String, Value>,
    numpy: Numpy,
}

impl<'a> Info<'a> {
    fn read(pack: &'a Pack) -> Result<Self, ReadError> {
        Ok(Self {
            pack,
            stats: pack.located(pack.stats())?,
            classes: pack.located(pack.classes())?,
            provenance: serde_json::from_str(&pack.located(pack.provenance())?).unwrap_or_default(),
            numpy: Numpy::of(pack)?,
        })
    }

    fn format_version(&self) -> String {
        let minor = self.pack.one().map_or(MINOR, |file| file.header().minor);
        format!("{MAJOR}.{minor}")
    }

    fn json(&self) -> Value {
        let file = self.pack.one();
        let header = file.map(|file| file.header());
        let fields = self.pack.schema().fields();
        let columns = file.map_or(&[][..], |file| file.columns()).iter().map(|column| {
            let field = fields.get(column.field);
            json!({
                "name": field.map(|f| &f.name),
                "dtype": field.map(|f| f.dtype),
                "shape": field.map(|f| &f.shape),
                "offset": column.offset,
                "bytes": column.len,
            })
        });
        let numpy = match &self.numpy {
            Numpy::Lines(lines) => lines.as_slice(),
            Numpy::None(_) => &[],
        };
        json!({
            "path": escape_path(self.pack.file_path()),
            "bytes": self.pack.file_len(),
            "format_version": self.format_version(),
            "n_samples": self.pack.n_samples(),
            "n_chunks": self.pack.n_chunks(),
            "chunk_samples": self.pack.geometry().chunk_samples(),
            "sample_stride": header.map(|header| header.sample_stride),
            "chunk_stride": header.map(|header| header.chunk_stride),
            "data_offset": header.map(|header| header.data_off),
            "fields": fields,
            "columns": columns.collect::<Value>(),
            "classes": self.classes,
            "stats": self.stats,
            "order": self.provenance.get("order"),
            "provenance": self.provenance,
            "pack_uuid": self.pack.pack_uuid().to_string(),
            "dataset_uuid": self.pack.dataset_uuid().to_string(),
            "numpy": numpy,
            "set": self.pack.manifest().map(set_json),
        })
    }

    fn text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let bytes = self.pack.file_len();
        let mut lines = Lines::new(out);
        lines.put("pack", &escape_path(self.pack.file_path()))?;
        lines.put("size", &format!("{} ({})", human_bytes(bytes), counted(bytes, "byte")))?;
        let (n_samples, chunks) = (self.pack.n_samples(), counted(self.pack.n_chunks(), "chunk"));
        lines.put("samples", &format!("{n_samples} in {chunks} of {}", self.pack.geometry().chunk_samples()))?;
        if let Some(manifest) = self.pack.manifest() {
            let shards = counted(to_u64(manifest.shards.len()), "shard");
            lines.put("set", &format!("version {} of {shards}", manifest.version))?;
        }
        self.fields(&mut lines)?;
        self.labels(&mut lines)?;
        self.pixels(&mut lines)?;
        self.made_from(&mut lines)?;
        let data = self.pack.one().map(|file| format!(", data at byte {}", file.header().data_off));
        lines.put("format", &format!("{}{}", self.format_version(), data.unwrap_or_default()))?;
        lines.put("uuid", &format!("pack {}, dataset {}", self.pack.pack_uuid(), self.pack.dataset_uuid()))?;
        match &self.numpy {
            Numpy::Lines(numpy) => numpy.iter().try_for_each(|line| lines.put("numpy", line)),
            Numpy::None(why) => lines.put("numpy", why),
        }
    }

    fn fields(&self, lines: &mut Lines) -> Result<(), Failure> {
        let fields = self.pack.schema().fields();
        let width = fields.iter().map(|f| f.name.chars().count()).max().unwrap_or(0).min(24);
        for field in fields {
            let name = escape(&field.name);
            let mut text = format!("{name:width$}  {}", describe_field(field));
            if let Some(sizes) = self.stats.sizes.get(&field.name) {
                text.push_str(&format!(", {} to {} each", human_bytes(sizes.min), human_bytes(sizes.max)));
            }
            lines.put("fields", &text)?;
        }
        Ok(())
    }

    fn labels(&self, lines: &mut Lines) -> Result<(), Failure> {
        for classes in &self.classes {
            let n = classes.names.len();
            let field = escape(&classes.field);
            let each = match (classes.counts.iter().min(), classes.counts.iter().max()) {
                (Some(min), Some(max)) if min == max => format!(": {} each", counted(*min, "sample")),
                (Some(min), Some(max)) => format!(": {min} to {} each", counted(*max, "sample")),
                _ => String::new(),
            };
            lines.put("classes", &format!("{n} of `{field}`{each}"))?;
            let named = classes.names.iter().zip(&classes.counts);
            let mut shown: Vec<String> =
                named.take(SHOWN_CLASSES).map(|(name, count)| format!("{} {count}", escape(name))).collect();
            if n > SHOWN_CLASSES {
                shown.push(format!("{} more", n - SHOWN_CLASSES));
            }
            if !shown.is_empty() {
                lines.put("classes", &shown.join(", "))?;
            }
        }
        Ok(())
    }

    fn pixels(&self, lines: &mut Lines) -> Result<(), Failure> {
        for (name, seek) in &self.stats.seek {
            let line = seek_line(seek, self.pack.n_samples());
            lines.put("seek", &format!("{}: {line}", escape(name)))?;
        }
        for (name, stats) in &self.stats.fields {
            let (name, mean, std) = (escape(name), numbers(&stats.mean), numbers(&stats.std));
            lines.put("pixels", &format!("{name}: mean {mean}, std {std} (on a scale of 0 to 1)"))?;
        }
        Ok(())
    }

    fn made_from(&self, lines: &mut Lines) -> Result<(), Failure> {
        let made = &self.provenance;
        if let Some(order) = made.get("order") {
            lines.put("order", &describe_order(order))?;
        }
        for (name, stats) in &self.stats.labels {
            // With one chunk, the correlation is meaningless.
            if let Some(icc) = stats.icc.filter(|_| self.pack.n_chunks() > 1) {
                let word = describe_icc(icc);
                lines.put("order", &format!("`{}`: icc {icc:.3} between chunks, {word}", escape(name)))?;
            }
        }
        if let Some(edit) = made.get("edit").and_then(|edit| edit.get("command")).and_then(Value::as_str) {
            let n = made.get("origins").and_then(Value::as_array).map(Vec::len);
            let of = n.map_or_else(String::new, |n| format!(" of {}", counted(n, "pack")));
            lines.put("source", &format!("{}{of}", escape(edit)))?;
        }
        if let Some(source) = made.get("source") {
            lines.put("source", &scalars(source))?;
        }
        if let Some(options) = made.get("options").filter(|v| !scalars(v).is_empty()) {
            lines.put("options", &scalars(options))?;
        }
        for key in ["decoder", "resize", "oriented", "batch", "tool"] {
            if let Some(value) = made.get(key).filter(|v| !v.is_null() && **v != 0) {
                lines.put(key, &scalars(value))?;
            }
        }
        if let Some(n) = made.get("resized_masks").and_then(Value::as_u64) {
            lines.put("masks", &format!("{n} resized to the size of the image"))?;
        }
        for (key, shown) in [("skipped", "skipped"), ("substituted", "substituted")] {
            let listed = made.get(key).and_then(Value::as_array);
            let listed = listed.map_or(&[][..], Vec::as_slice);
            // The pack lists only some of the files, but counts all.
            let total = made.get(&format!("n_{key}")).and_then(Value::as_u64);
            let n = total.unwrap_or(to_u64(listed.len()));
            if n > 0 {
                lines.put(shown, &counted(n, "file"))?;
            }
            for one in listed.iter().take(SHOWN_SKIPPED) {
                let part = |key| escape(one.get(key).and_then(Value::as_str).unwrap_or("?"));
                lines.put(shown, &format!("{}: {}", part("path"), part("reason")))?;
            }
            if listed.len() > SHOWN_SKIPPED {
                lines.put(shown, "and more: see --json")?;
            }
        }
        Ok(())
    }
}

/// Prints lines, each with a key and a value. A key that repeats the previous one is left blank.
struct Lines<'a> {
    out: &'a mut dyn Write,
    key: &'static str,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, key: "" }
    }

    fn put(&mut self, key: &'static str, value: &str) -> Result<(), Failure> {
        let shown = if self.key == key { "" } else { key };
        self.key = key;
        writeln!(self.out, "{shown:<9} {value}")?;
        Ok(())
    }
}

/// The version and the shards of a set.
fn set_json(manifest: &Manifest) -> Value {
    let shards = manifest.shards.iter().map(|shard| {
        json!({
            "path": shard.path,
            "n_samples": shard.n_samples,
            "bytes": shard.bytes,
            "pack_uuid": shard.pack_uuid.to_string(),
            "origin": shard.origin,
        })
    });
    json!({"version": manifest.version, "shards": shards.collect::<Value>()})
}

fn describe_field(field: &Field) -> String {
    let mut text = match field.kind {
        FieldKind::Tensor | FieldKind::Ragged => {
            format!("{} {}", field.dtype, field.shape_text()).trim_end().to_owned()
        }
        FieldKind::Image => "variable-size images".to_owned(),
        FieldKind::String => "text".to_owned(),
        kind => match &field.seek_index_of {
            Some(of) => format!("seek indexes of `{}`", escape(of)),
            None => kind.name().to_owned(),
        },
    };
    for word in [&field.layout, &field.color].into_iter().flatten() {
        text.push(' ');
        text.push_str(&escape(word));
    }
    if field.normalize.as_ref().is_some_and(|n| n.applied) {
        text.push_str(" normalized");
    }
    if !field.codec.is_none() {
        text.push_str(&format!(", {}", field.codec));
        let filter = serde_json::to_value(field.codec.filter()).unwrap_or_default();
        if !field.codec.filter().is_none() {
            text.push_str(&format!(" after {}", scalars(&filter)));
        }
    }
    if field.store == Store::Column {
        text.push_str(", column");
    }
    text
}

fn describe_order(order: &Value) -> String {
    let kind = order.get("kind").and_then(Value::as_str);
    match (kind, order.get("seed")) {
        (Some("shuffled"), Some(seed)) => format!("shuffled with seed {}", scalars(seed)),
        (Some("kept"), _) => "as in the source".to_owned(),
        _ => scalars(order),
    }
}

fn describe_icc(icc: f64) -> &'static str {
    if icc <= LabelStats::SHUFFLED_ICC {
        "shuffled"
    } else if icc < 0.5 {
        "partly sorted by class; shuffle it for training"
    } else {
        "sorted by class; shuffle it for training"
    }
}

/// A JSON value on one line. An object becomes `key=value` pairs; null entries are omitted.
fn scalars(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let all: Vec<String> = entries
                .iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| match v {
                    Value::Object(_) | Value::Array(_) => {
                        format!("{}={}", escape(k), escape(&v.to_string()))
                    }
                    _ => format!("{}={}", escape(k), scalars(v)),
                })
                .collect();
            all.join(" ")
        }
        Value::String(text) => escape(text),
        _ => escape(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provenance_of_any_shape_is_one_line() {
        assert_eq!(
            scalars(&json!({"kind": "image_folder", "n": 3, "x": null, "y": [1]})),
            "kind=image_folder n=3 y=[1]"
        );
        assert_eq!(scalars(&json!("a\nb")), "a\\nb");
        assert_eq!(describe_order(&json!({"kind": "shuffled", "seed": 7})), "shuffled with seed 7");
        assert_eq!(describe_order(&json!({"kind": "other"})), "kind=other");
    }
}
