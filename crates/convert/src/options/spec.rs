//! Declares an option. The command's flag, Python's keyword, the provenance and the tables in the documentation all
//! come from this declaration.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use packds_system::{BadValue, Opt};
use serde_json::Value;

/// A set of declared options.
pub trait Declared: Default + 'static {
    /// The declarations, in the order of the help.
    const OPTIONS: &'static [OptionSpec<Self>];
}

/// The kind of value that an option takes, with the function that sets it.
#[derive(Debug)]
pub enum Takes<O> {
    /// No value: the option is a switch.
    Nothing(fn(&mut O)),
    /// A path.
    Path(fn(&mut O, &Path)),
    /// A string, from which a value is parsed.
    Text(fn(&mut O, &str) -> Result<(), String>),
}

/// The key of an option in the provenance, and a function that gives its value. Options without a value are omitted.
pub(crate) type Recorded<O> = (&'static str, fn(&O) -> Option<Value>);

/// One option of `O`.
#[derive(Debug)]
pub struct OptionSpec<O: 'static> {
    /// The name of the option.
    pub opt: Opt,
    /// The section of the help that lists the option. Empty for general options.
    pub heading: &'static str,
    /// The kind of value that the option takes.
    pub takes: Takes<O>,
    /// The placeholder for the value in the help.
    pub value_name: &'static str,
    /// The allowed values, if there are few.
    pub names: &'static [&'static str],
    /// Values that shell completion suggests. Other values may be valid too.
    pub offers: &'static [&'static str],
    /// The letter of the short form, if there is one.
    pub short: Option<char>,
    /// Formats the default, if it is a single value.
    pub default: Option<fn(&O) -> String>,
    /// Whether the option may be given several times.
    pub repeats: bool,
    /// Another option that cannot be combined with this option.
    pub excludes: Option<Opt>,
    /// What the option does, in a line or two.
    pub help: &'static str,
    /// The option's entry in a pack's provenance, if the option affects the bytes.
    pub(crate) recorded: Option<Recorded<O>>,
}

impl<O> OptionSpec<O> {
    const fn new(opt: Opt, takes: Takes<O>, value_name: &'static str, help: &'static str) -> Self {
        Self {
            opt,
            heading: "",
            takes,
            value_name,
            names: &[],
            offers: &[],
            short: None,
            default: None,
            repeats: false,
            excludes: None,
            help,
            recorded: None,
        }
    }

    /// A switch.
    pub(crate) const fn switch(opt: Opt, set: fn(&mut O), help: &'static str) -> Self {
        Self::new(opt, Takes::Nothing(set), "", help)
    }

    /// An option with a path.
    pub(crate) const fn path(opt: Opt, name: &'static str, set: fn(&mut O, &Path), help: &'static str) -> Self {
        Self::new(opt, Takes::Path(set), name, help)
    }

    /// An option with a value.
    pub(crate) const fn value(
        opt: Opt,
        name: &'static str,
        set: fn(&mut O, &str) -> Result<(), String>,
        help: &'static str,
    ) -> Self {
        Self::new(opt, Takes::Text(set), name, help)
    }

    pub(crate) const fn under(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    pub(crate) const fn one_of(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    pub(crate) const fn offers(self, offers: &'static [&'static str]) -> Self {
        Self { offers, ..self }
    }

    pub(crate) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    pub(crate) const fn default(self, default: fn(&O) -> String) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(crate) const fn repeats(self) -> Self {
        Self { repeats: true, ..self }
    }

    pub(crate) const fn excludes(self, other: Opt) -> Self {
        Self { excludes: Some(other), ..self }
    }

    pub(crate) const fn recorded(self, key: &'static str, value: fn(&O) -> Option<Value>) -> Self {
        Self { recorded: Some((key, value)), ..self }
    }

    /// Sets the option in `options`.
    ///
    /// # Errors
    /// What was expected, without the option's name.
    pub fn set(&self, options: &mut O, value: &OsStr) -> Result<(), String> {
        match self.takes {
            Takes::Nothing(set) => set(options),
            Takes::Path(set) => set(options, Path::new(value)),
            Takes::Text(set) => {
                let text =
                    value.to_str().ok_or_else(|| format!("expected UTF-8, found {:?}", value.to_string_lossy()))?;
                set(options, text)?;
            }
        }
        Ok(())
    }
}

/// Parses options given as names and strings. The string of a switch is empty.
///
/// # Errors
/// The name of the option and what was expected, in the notation of the front end.
pub fn given<O: Declared>(values: &[(&str, OsString)]) -> Result<O, String> {
    let mut options = O::default();
    let is = |name: &str, opt: Opt| name == opt.name() || name == opt.python();
    let is_given = |opt: Opt| values.iter().any(|(name, _)| is(name, opt));
    for spec in O::OPTIONS {
        let opt = spec.opt;
        for (_, value) in values.iter().filter(|(name, _)| is(name, opt)) {
            spec.set(&mut options, value).map_err(|why| format!("{opt}: {why}"))?;
        }
        if let Some(other) = spec.excludes.filter(|other| is_given(opt) && is_given(*other)) {
            return Err(format!("{opt} and {other} cannot be combined"));
        }
    }
    let is_known = |name: &str| O::OPTIONS.iter().any(|spec| is(name, spec.opt));
    match values.iter().find(|(name, _)| !is_known(name)) {
        Some((name, _)) => Err(format!("unknown option {name:?}")),
        None => Ok(options),
    }
}

/// Stores a value, unless it is an error.
pub(crate) fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

/// Parses the text of an option's value.
pub(crate) fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses a whole number from `least` to `most`.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let expected = match most {
            u64::MAX => format!("a whole number, at least {least}"),
            _ => format!("{least} to {most}"),
        };
        BadValue::new(expected, text).to_string()
    })
}
