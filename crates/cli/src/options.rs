//! Parses the options of `convert` and `export` for other programs, so that they accept the same options.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use packds_convert::{ConvertOptions, ExportOptions};

use crate::convert::ConvertArgs;
use crate::export::ExportArgs;
use crate::failure::Failure;

/// Parses and checks the options of `packds convert SRC OUT`.
///
/// # Errors
/// The command's message.
pub fn convert_options(
    source: &Path,
    output: &Path,
    args: &[OsString],
) -> Result<ConvertOptions, String> {
    let parsed: ConvertArgs = parse("convert", source, output, args)?;
    let options = parsed.options().map_err(|failure| failure.text())?;
    let checked = options.check().map_err(Failure::from);
    checked.map_err(|failure| failure.text())?;
    Ok(options)
}

/// Parses the options of `packds export PACK DST`.
///
/// # Errors
/// The command's message.
pub fn export_options(
    pack: &Path,
    target: &Path,
    args: &[OsString],
) -> Result<ExportOptions, String> {
    let parsed: ExportArgs = parse("export", pack, target, args)?;
    Ok(parsed.options())
}

fn parse<T: Args>(
    name: &'static str,
    from: &Path,
    to: &Path,
    args: &[OsString],
) -> Result<T, String> {
    let mut line = vec![OsString::from(name)];
    line.extend_from_slice(args);
    // Paths may start with a dash.
    line.push(OsString::from("--"));
    line.push(from.into());
    line.push(to.into());
    let matches = T::augment_args(clap::Command::new(name)).try_get_matches_from(line);
    let parsed = matches.and_then(|matches| T::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let text = error.render().to_string();
        // The usage follows after the first blank line.
        let said = text.split("\n\n").next().unwrap_or_default();
        said.strip_prefix("error: ").unwrap_or(said).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use packds_convert::Mode;

    use super::*;

    fn options(args: &[&str]) -> Result<ConvertOptions, String> {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        convert_options("-in".as_ref(), "out.pack".as_ref(), &args)
    }

    #[test]
    fn words_mean_what_they_mean_on_the_command_line() {
        let options = options(&["--mode", "encoded", "--seekable", "--seed", "7"]).unwrap();
        assert_eq!(options.mode, Mode::Encoded);
        assert!(options.seekable);
        assert_eq!(options.seed, 7);
    }

    #[test]
    fn what_the_command_refuses_is_refused_in_its_words() {
        let error = options(&["--mode", "raw2"]).unwrap_err();
        assert!(error.starts_with("invalid value 'raw2'"), "{error}");
        assert!(!error.contains("Usage"), "{error}");
        let error = options(&["--raw-fraction", "0.5"]).unwrap_err();
        assert!(error.contains("--mode mixed"), "{error}");
    }

    #[test]
    fn exports_have_options_too() {
        let args = ["--chunk".into(), "64".into()];
        let options = export_options("a.pack".as_ref(), "a.h5".as_ref(), &args).unwrap();
        assert_eq!(options.chunk_samples, Some(64));
    }
}
