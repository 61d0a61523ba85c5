//! The position of a run, in fewer than 200 bytes. A run can be saved and resumed at any step. See
//! docs/reference/sampling.md, "State".

use super::error::PlanError;
use super::order::OrderKind;
use super::sampler::Recipe;

/// The version of the state and of the orders that it refers to.
pub(crate) const VERSION: u64 = 1;

/// The position of a run in its order. It does not depend on the number of ranks, the current batch or the threads, so
/// all of them may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Fingerprint of the dataset.
    pub dataset: u64,
    /// Fingerprint of the choice of samples, or 0 if there is none.
    pub choice: u64,
    /// The seed.
    pub seed: u64,
    /// The decisions made at the start of the run.
    pub recipe: Recipe,
    /// The epoch.
    pub epoch: u32,
    /// Number of positions of the epoch that all ranks together have completed.
    pub position: u64,
}

impl State {
    /// The state as one line of JSON, under 200 bytes.
    pub fn to_json(&self) -> String {
        let Recipe { order, window, lanes, batch } = self.recipe;
        format!(
            "{{\"v\":{VERSION},\"data\":\"{:016x}\",\"pick\":\"{:016x}\",\"seed\":\"{:016x}\",\"order\":\"{}\",\
             \"window\":{window},\"lanes\":{lanes},\"batch\":{batch},\"epoch\":{},\"at\":{}}}",
            self.dataset,
            self.choice,
            self.seed,
            order.name(),
            self.epoch,
            self.position
        )
    }

    /// Parses the output of [`to_json`](Self::to_json). Keys may be in any order. Each must occur exactly once, and no
    /// other keys may occur. [`Sampler::resume`](super::Sampler::resume) checks whether the state matches a run.
    ///
    /// # Errors
    /// [`PlanError::State`] for anything else.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let fields = Fields::parse(text, 10)?;
        let small = |name| fields.number(name, u32::MAX.into());
        // The number is at most 2^32 - 1, so it is never clamped.
        let small = |name| small(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Ok(Self {
            dataset: fields.hex("data")?,
            choice: fields.hex("pick")?,
            seed: fields.hex("seed")?,
            recipe: Recipe {
                order: fields.order("order")?,
                window: small("window")?,
                lanes: small("lanes")?,
                batch: small("batch")?,
            },
            epoch: small("epoch")?,
            position: fields.number("at", MAX_POSITION)?,
        })
    }
}

/// Maximum position and step. Sums and products with a batch must not overflow.
pub(crate) const MAX_POSITION: u64 = (1 << 62) - 1;
/// Maximum length of a state, including whitespace.
const MAX_BYTES: usize = 1024;

/// The keys and values of a flat JSON object of numbers and plain strings.
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Parses exactly `n` fields, including the version.
    pub(crate) fn parse(text: &'a str, n: usize) -> Result<Self, PlanError> {
        if text.len() > MAX_BYTES {
            return Err(wrong("it is longer than any saved state"));
        }
        let body = text
            .trim()
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .ok_or_else(|| wrong("it is not a JSON object"))?;
        let mut fields = Self(Vec::new());
        for pair in body.split(',') {
            let (name, value) = pair.split_once(':').ok_or_else(|| wrong("a value has no key"))?;
            let name = quoted(name).ok_or_else(|| wrong("a key is not in quotes"))?;
            if fields.0.iter().any(|field| field.0 == name) {
                return Err(wrong("a key occurs twice"));
            }
            fields.0.push((name, value.trim()));
        }
        if fields.number("v", u64::MAX)? != VERSION {
            return Err(wrong("`v` is the version of another release"));
        }
        if fields.0.len() != n {
            return Err(wrong("it has unknown keys"));
        }
        Ok(fields)
    }

    fn find(&self, name: &str) -> Result<&'a str, PlanError> {
        let found = self.0.iter().find(|field| field.0 == name);
        found.map(|field| field.1).ok_or_else(|| wrong(&format!("`{name}` is missing")))
    }

    pub(crate) fn number(&self, name: &str, most: u64) -> Result<u64, PlanError> {
        let found = decimal(self.find(name)?).filter(|number| *number <= most);
        found.ok_or_else(|| wrong(&format!("`{name}` is not a whole number from 0 to {most}")))
    }

    pub(crate) fn hex(&self, name: &str) -> Result<u64, PlanError> {
        let digits = quoted(self.find(name)?)
            .filter(|digits| digits.len() == 16)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        digits
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| wrong(&format!("`{name}` is not 16 hexadecimal digits in quotes")))
    }

    fn order(&self, name: &str) -> Result<OrderKind, PlanError> {
        let order = quoted(self.find(name)?).and_then(|name| name.parse().ok());
        order.ok_or_else(|| wrong(&format!("`{name}` is not the name of an order")))
    }
}

fn wrong(why: &str) -> PlanError {
    PlanError::State { why: why.to_owned() }
}

fn quoted(text: &str) -> Option<&str> {
    text.trim().strip_prefix('"')?.strip_suffix('"')
}

fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            dataset: u64::MAX,
            choice: 0,
            seed: 7,
            recipe: Recipe { order: OrderKind::Window, window: u32::MAX, lanes: 1 << 16, batch: u32::MAX },
            epoch: u32::MAX,
            position: (1 << 48) - 1,
        }
    }

    #[test]
    fn the_largest_state_is_under_200_bytes_and_comes_back() {
        let text = state().to_json();
        assert!(text.len() < 200, "{} bytes: {text}", text.len());
        assert_eq!(State::from_json(&text), Ok(state()));
        assert_eq!(State::from_json(&text.replace(',', " ,\n ")), Ok(state()));
    }

    #[test]
    fn what_is_not_a_state_is_refused() {
        let good = state().to_json();
        for (from, to) in [
            ("\"v\":1", "\"v\":2"),
            ("\"v\":1,", ""),
            ("\"at\"", "\"to\""),
            ("\"at\":", "\"epoch\":1,\"at\":"),
            ("\"window\":4294967295", "\"window\":-1"),
            ("\"lanes\":65536", "\"lanes\":+65536"),
            ("0000000000000007", "7"),
            ("0000000000000007", "+000000000000007"),
            ("order\":\"window", "order\":\"auto"),
            ("}", ""),
            ("\"at\":281474976710655", "\"at\":18446744073709551615"),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good, "{from}");
            assert!(matches!(State::from_json(&bad), Err(PlanError::State { .. })), "{bad}");
        }
        assert!(State::from_json("").is_err());
        assert!(State::from_json("{}").is_err());
    }
}
