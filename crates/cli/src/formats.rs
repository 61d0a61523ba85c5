//! `packds formats`: lists the supported formats.

use std::io::Write;

use clap::Args;
use packds_convert::DataFormat;
use serde_json::{Value, json};

use crate::{Console, Exit, Failure};

/// List the formats that packds reads (convert) and writes (export)
///
/// docs/reference/formats.md describes how each is detected, what is kept and what is lost.
#[derive(Debug, Args)]
pub(crate) struct FormatsArgs {}

pub(crate) fn run(_args: &FormatsArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.result(|| json!({ "formats": DataFormat::ALL.map(document) }), |console| text(&mut console.prose()))
}

fn text(out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{:<13} {:<3} {:<4} {:<28} holds", "format", "in", "out", "names")?;
    for format in DataFormat::ALL {
        let names = format.extensions().iter().map(|e| format!(".{e}"));
        let names = names.collect::<Vec<_>>().join(" ");
        let (name, holds, out_too) = (format.name(), format.describe(), if format.is_sink() { "yes" } else { "-" });
        let missing = if format.is_built() { "" } else { " (not in this build)" };
        writeln!(out, "{name:<13} yes {out_too:<4} {names:<28} {holds}{missing}")?;
    }
    Ok(())
}

fn document(format: DataFormat) -> Value {
    json!({
        "format": format.name(),
        "in": format.is_built(),
        "out": format.is_built() && format.is_sink(),
        "extensions": format.extensions(),
        "holds": format.describe(),
    })
}
