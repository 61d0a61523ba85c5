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
    let names = |format: DataFormat| format.extensions().iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" ");
    let widest = DataFormat::ALL.into_iter().map(|format| names(format).len()).max().unwrap_or(0);
    writeln!(out, "{:<13} {:<3} {:<4} {:<widest$} holds", "format", "in", "out", "names")?;
    for format in DataFormat::ALL {
        let names = names(format);
        let word = |is_so| if is_so { "yes" } else { "-" };
        let (name, holds) = (format.name(), format.describe());
        let (is_in, is_out) = (word(format.is_source()), word(format.is_sink()));
        let missing = if format.is_built() { "" } else { " (not in this build)" };
        writeln!(out, "{name:<13} {is_in:<3} {is_out:<4} {names:<widest$} {holds}{missing}")?;
    }
    Ok(())
}

fn document(format: DataFormat) -> Value {
    json!({
        "format": format.name(),
        "in": format.is_built() && format.is_source(),
        "out": format.is_built() && format.is_sink(),
        "extensions": format.extensions(),
        "holds": format.describe(),
    })
}
