//! The tables of options in the documentation match the declarations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::Path;

use packds_convert::{ConvertOptions, Declared, ExportOptions, OptionSpec, Takes};

/// The table of options as it must be on the page, with one row per option.
fn table<O: Declared>() -> String {
    let mut table = "| option | Python | default | meaning |\n|---|---|---|---|\n".to_owned();
    for spec in O::OPTIONS {
        let OptionSpec { opt, help, value_name, .. } = spec;
        let flag = match spec.takes {
            Takes::Nothing(_) => format!("`--{}`", opt.flag()),
            _ => format!("`--{} {value_name}`", opt.flag()),
        };
        let (meaning, without) = match help.split_once(" [default: ") {
            Some((meaning, default)) => (meaning, default.trim_end_matches(']').to_owned()),
            None => (*help, String::new()),
        };
        let default = match spec.default {
            Some(default) => format!("`{}`", default(&O::default())),
            None => without,
        };
        writeln!(table, "| {flag} | `{}` | {default} | {meaning} |", opt.python()).unwrap();
    }
    table
}

#[test]
fn the_pages_have_the_declared_options() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let tables = [("convert.md", table::<ConvertOptions>()), ("formats.md", table::<ExportOptions>())];
    for (page, table) in tables {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(&table), "{page} needs this table:\n\n{table}");
    }
}
