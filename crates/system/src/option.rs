//! Options in messages, written in the notation of the current front end.
//!
//! A library writes `CHUNK.with(64)`. The command prints `--chunk 64`, and Python prints `chunk=64`. Options are parsed
//! elsewhere.

use std::fmt::{Display, Formatter, Result};
use std::sync::atomic::{AtomicU8, Ordering};

/// The front end whose notation messages use. It is global to the process, because code that makes a message does not
/// know who will read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontEnd {
    /// A Rust program, in which options are fields: `keep_order`.
    Rust,
    /// The command, in which options are flags: `--keep-order`.
    Command,
    /// The Python package, in which options are keywords: `keep_order=True`.
    Python,
}

static CURRENT: AtomicU8 = AtomicU8::new(FrontEnd::Rust as u8);

impl FrontEnd {
    /// The front end of this process.
    pub fn current() -> Self {
        Self::of(CURRENT.load(Ordering::Relaxed))
    }

    const fn of(byte: u8) -> Self {
        match byte {
            1 => Self::Command,
            2 => Self::Python,
            _ => Self::Rust,
        }
    }

    /// Makes this the front end of the process, until the guard is dropped.
    #[must_use = "dropping it restores the previous front end"]
    pub fn enter(self) -> Entered {
        Entered { before: Self::of(CURRENT.swap(self as u8, Ordering::Relaxed)) }
    }

    /// Makes this the front end of the process.
    pub fn set(self) {
        CURRENT.store(self as u8, Ordering::Relaxed);
    }
}

/// Restores the previous front end when dropped. See [`FrontEnd::enter`].
#[derive(Debug)]
pub struct Entered {
    before: FrontEnd,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.before.set();
    }
}

/// An option. It is displayed as its bare name: `--chunk` or `chunk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    name: &'static str,
    keyword: &'static str,
}

impl Opt {
    /// An option with this name, which must be in `snake_case`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, keyword: name }
    }

    /// The same option under a different name in Python, because `name` is a reserved word there.
    pub const fn keyword(self, keyword: &'static str) -> Self {
        Self { keyword, ..self }
    }

    /// The name in `snake_case`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The name of the keyword in Python.
    pub const fn python(self) -> &'static str {
        self.keyword
    }

    /// The name on the command line, without the leading dashes.
    pub fn flag(self) -> String {
        self.name.replace('_', "-")
    }

    /// The option with a value: `--chunk 64` or `chunk=64`.
    pub fn with<T: Display>(self, value: T) -> With<T> {
        With { option: self, value }
    }

    /// The option as a switch that is on: `--force` or `force=True`.
    pub const fn on(self) -> On {
        On(self)
    }

    /// The option as written on the command line: `--chunk`. Messages that quote a shell command use this form in every
    /// front end.
    pub fn in_command(self) -> String {
        format!("--{}", self.flag())
    }
}

impl Display for Opt {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match FrontEnd::current() {
            FrontEnd::Rust => f.write_str(self.name),
            FrontEnd::Command => f.write_str(&self.in_command()),
            FrontEnd::Python => f.write_str(self.keyword),
        }
    }
}

/// An option with a value. See [`Opt::with`].
#[derive(Debug, Clone, Copy)]
pub struct With<T> {
    option: Opt,
    value: T,
}

impl<T: Display> Display for With<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { option, value } = self;
        let value = value.to_string();
        if FrontEnd::current() == FrontEnd::Command {
            // Quoted, so that a shell parses it as one word.
            return match value.contains([' ', '\'', '(', '&']) {
                true => write!(f, "{option} '{}'", value.replace('\'', "'\\''")),
                false => write!(f, "{option} {value}"),
            };
        }
        // Numbers and tuples are written without quotes, everything else as a string.
        if value.parse::<f64>().is_ok() || value.starts_with('(') {
            write!(f, "{option}={value}")
        } else if value.contains('\'') {
            write!(f, "{option}=\"{value}\"")
        } else {
            write!(f, "{option}='{value}'")
        }
    }
}

/// A switch that is on. See [`Opt::on`].
#[derive(Debug, Clone, Copy)]
pub struct On(Opt);

impl Display for On {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match FrontEnd::current() {
            FrontEnd::Rust => write!(f, "{}=true", self.0),
            FrontEnd::Command => self.0.fmt(f),
            FrontEnd::Python => write!(f, "{}=True", self.0),
        }
    }
}

/// Other text that differs between Python and the command: the notation of a value, or the name of a command.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The text for the command line, and for Rust, where options are parsed from the same text.
    pub command: &'static str,
    /// The text for Python.
    pub python: &'static str,
}

impl Display for Words {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if FrontEnd::current() == FrontEnd::Python { self.python } else { self.command })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_printed_in_the_words_of_the_front_end() {
        const FROM: Opt = Opt::new("from").keyword("from_format");
        const SHARE: Opt = Opt::new("raw_fraction");
        const SIZE: Words = Words { command: "WIDTHxHEIGHT", python: "(width, height)" };
        let said = || {
            let text = format!("{SHARE}, {}, {}", FROM.with("npz"), SHARE.with(0.5));
            format!("{text}, {}, {}", SHARE.on(), SHARE.with(SIZE))
        };
        // One test for all front ends, because the front end is global to the process.
        let rust = "raw_fraction, from='npz', raw_fraction=0.5, raw_fraction=true, raw_fraction='WIDTHxHEIGHT'";
        assert_eq!(said(), rust);
        {
            let _command = FrontEnd::Command.enter();
            let expected =
                "--raw-fraction, --from npz, --raw-fraction 0.5, --raw-fraction, --raw-fraction WIDTHxHEIGHT";
            assert_eq!(said(), expected);
            let _python = FrontEnd::Python.enter();
            let expected =
                "raw_fraction, from_format='npz', raw_fraction=0.5, raw_fraction=True, raw_fraction=(width, height)";
            assert_eq!(said(), expected);
        }
        assert_eq!(said(), rust);
    }
}
