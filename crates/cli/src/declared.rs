//! Turns the options that a library declares into arguments of the command.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use packds_convert::{Declared, OptionSpec, Takes, given};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The options declared by `O` that the user gave. The command takes those that `C` keeps.
#[derive(Debug)]
pub(crate) struct Given<O, C = All> {
    values: Vec<(&'static str, OsString)>,
    of: PhantomData<(O, C)>,
}

/// The declared options that a command takes.
pub(crate) trait Kept {
    fn has(name: &str) -> bool;
}

/// All options.
#[derive(Debug)]
pub(crate) struct All;

impl Kept for All {
    fn has(_: &str) -> bool {
        true
    }
}

/// The declarations of the options that a command takes.
fn kept<O: Declared, C: Kept>() -> impl Iterator<Item = &'static OptionSpec<O>> {
    O::OPTIONS.iter().filter(|spec| C::has(spec.opt.name()))
}

impl<O: Declared, C> Given<O, C> {
    pub(crate) fn options(&self) -> Result<O, Failure> {
        given(&self.values).map_err(Failure::not_run)
    }

    /// The options as JSON, by name. An option that may be given several times is a list.
    pub(crate) fn described(&self) -> Value {
        let mut options = Map::new();
        for (name, text) in &self.values {
            let text = Value::from(text.to_string_lossy());
            if O::OPTIONS.iter().any(|spec| spec.repeats && spec.opt.name() == *name) {
                let list = options.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(text.clone()));
            } else {
                options.insert((*name).to_owned(), text);
            }
        }
        Value::Object(options)
    }
}

impl<O: Declared + Sync, C: Kept> Args for Given<O, C> {
    fn augment_args(command: Command) -> Command {
        kept::<O, C>().fold(command, |command, spec| command.arg(argument(spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: Declared, C: Kept> FromArgMatches for Given<O, C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut values = Vec::new();
        for spec in kept::<O, C>() {
            let name = spec.opt.name();
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            match spec.takes {
                Takes::Nothing(_) => values.push((name, OsString::new())),
                _ => {
                    let all = matches.get_many::<OsString>(name).into_iter().flatten();
                    values.extend(all.map(|value| (name, value.clone())));
                }
            }
        }
        Ok(Self { values, of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument<O: Declared + Sync>(spec: &'static OptionSpec<O>) -> Arg {
    let mut arg = Arg::new(spec.opt.name())
        .long(forever(spec.opt.flag()))
        .help(spec.help)
        .conflicts_with_all(spec.excludes.map(|other| other.name()))
        .default_values(spec.default.map(|default| forever(default(&O::default()))));
    if !spec.heading.is_empty() {
        arg = arg.help_heading(spec.heading);
    }
    let arg = match spec.takes {
        Takes::Nothing(_) => return arg.action(ArgAction::SetTrue),
        Takes::Path(_) => arg.value_hint(ValueHint::DirPath),
        Takes::Text(_) => arg,
    };
    let action = if spec.repeats { ArgAction::Append } else { ArgAction::Set };
    // A negative number is a wrong value, not an unknown option.
    let arg = arg.value_name(spec.value_name).action(action).allow_negative_numbers(true);
    let arg = match spec.short {
        Some(letter) => arg.short(letter),
        None => arg,
    };
    if spec.names.is_empty() {
        arg.value_parser(Checked(spec)).hide_possible_values(true)
    } else {
        arg.value_parser(PossibleValuesParser::new(spec.names).map(OsString::from))
    }
}

/// Parses the value of an option. Completions get the values that the option offers.
struct Checked<O: 'static>(&'static OptionSpec<O>);

impl<O> Clone for Checked<O> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<O: Declared + Sync> TypedValueParser for Checked<O> {
    type Value = OsString;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<OsString, Error> {
        let spec = self.0;
        let checked = |value: OsString| spec.set(&mut O::default(), &value).map(|()| value);
        OsStringValueParser::new().try_map(checked).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let offers = self.0.offers.iter().map(PossibleValue::new);
        (!self.0.offers.is_empty()).then(|| Box::new(offers) as Box<_>)
    }
}

/// clap requires 'static strings. Leaking a few once is fine.
fn forever(text: String) -> &'static str {
    text.leak()
}

#[cfg(test)]
mod tests {
    use packds_convert::{ConvertOptions, DataFormat, ExportOptions, Mode};

    use super::*;

    fn parsed<O: Declared + Sync>(args: &[&str]) -> Result<O, String> {
        let command = Given::<O>::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(args).map_err(|error| error.to_string())?;
        let given = Given::<O>::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        given.options().map_err(|failure| failure.text())
    }

    #[test]
    fn arguments_become_options() {
        let args = ["--mode", "encoded", "--seekable", "--seed", "7", "--leave-out=a", "--leave-out=b"];
        let options: ConvertOptions = parsed(&args).unwrap();
        assert_eq!((options.mode, options.seekable, options.seed), (Mode::Encoded, true, 7));
        assert_eq!(options.list.leave_out, ["a", "b"]);
        let options: ExportOptions = parsed(&["--chunk", "64"]).unwrap();
        assert_eq!(options.chunk_samples, Some(64));
    }

    #[test]
    fn every_offered_value_is_valid() {
        fn check<O: Declared>() {
            for spec in O::OPTIONS {
                for value in spec.names.iter().chain(spec.offers) {
                    assert_eq!(spec.set(&mut O::default(), value.as_ref()), Ok(()), "{} {value}", spec.opt.name());
                }
            }
        }
        check::<ConvertOptions>();
        check::<ExportOptions>();
    }

    #[test]
    fn only_formats_that_can_be_written_are_offered_for_exports() {
        let to = ExportOptions::OPTIONS.iter().find(|spec| spec.opt.name() == "to").unwrap();
        let sinks = DataFormat::ALL.into_iter().filter(|format| format.is_sink());
        assert_eq!(to.offers, sinks.map(DataFormat::name).collect::<Vec<_>>());
        assert!(!to.offers.contains(&"mnist") && to.offers.contains(&"npy"));
        // Other formats are parsed too, so that the error can say that packs cannot be exported to them.
        let options: ExportOptions = parsed(&["--to", "mnist"]).unwrap();
        assert_eq!(options.to, Some(DataFormat::Mnist));
    }

    #[test]
    fn values_are_refused_with_the_reason() {
        let error = parsed::<ConvertOptions>(&["--mode", "raw2"]).unwrap_err();
        assert!(error.contains("[possible values: raw, encoded, mixed]"), "{error}");
        let error = parsed::<ConvertOptions>(&["--chunk", "0"]).unwrap_err();
        assert!(error.contains("'--chunk <N>': expected 1 to 1048576, found \"0\""), "{error}");
        let error = parsed::<ConvertOptions>(&["--gray", "--rgb"]).unwrap_err();
        assert!(
            error.contains("'--rgb' cannot be used with '--gray'")
                || error.contains("'--gray' cannot be used with '--rgb'"),
            "{error}"
        );
    }
}
