//! Where a run is: under 200 bytes from which it goes on at any step. docs/sampling.md, "State".

use super::error::PlanError;
use super::sampler::{OrderKind, Recipe};

/// The version of the state and of the orders it stands for.
pub(crate) const VERSION: u64 = 1;

/// Where a run is in its order. Knows nothing of ranks, batches and threads, so that all of them may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Fingerprint of the data set.
    pub dataset: u64,
    /// Fingerprint of the choice of samples; 0 for all.
    pub choice: u64,
    /// The seed.
    pub seed: u64,
    /// What was decided at the start of the run.
    pub recipe: Recipe,
    /// The epoch.
    pub epoch: u32,
    /// Positions of the epoch that all ranks together have had.
    pub position: u64,
}

impl State {
    /// One line of JSON, under 200 bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Recipe {
            order,
            window,
            lanes,
            batch,
        } = self.recipe;
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

    /// The state that [`to_json`](Self::to_json) wrote. Keys may come in any order; each must be there once, and no
    /// other. Whether it fits a run is for [`Sampler::resume`](super::Sampler::resume) to say.
    ///
    /// # Errors
    /// [`PlanError::State`] for anything else.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let fields = Fields::parse(text, 10)?;
        let (find, number) = (|name| fields.find(name), |name| fields.number(name));
        let small = |name| number(name).and_then(|number| u32::try_from(number).ok());
        let hex = |name| fields.hex(name);
        let state = || {
            Some(Self {
                dataset: hex("data")?,
                choice: hex("pick")?,
                seed: hex("seed")?,
                recipe: Recipe {
                    order: OrderKind::from_name(quoted(find("order")?)?)?,
                    window: small("window")?,
                    lanes: small("lanes")?,
                    batch: small("batch")?,
                },
                epoch: small("epoch")?,
                position: number("at").filter(|&position| position < 1 << 62)?,
            })
        };
        state().ok_or(WRONG_VALUE)
    }
}

/// A value is missing or is not what its name wants.
pub(crate) const WRONG_VALUE: PlanError = PlanError::State {
    why: "a value is missing or is not what its name wants",
};

/// The names and values of a flat JSON object of numbers and plain words.
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Exactly `n` fields, one of them the version.
    pub(crate) fn parse(text: &'a str, n: usize) -> Result<Self, PlanError> {
        let wrong = |why| PlanError::State { why };
        let body = text
            .trim()
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .ok_or(wrong("it is not a JSON object"))?;
        let mut fields = Self(Vec::new());
        for pair in body.split(',') {
            let (name, value) = pair.split_once(':').ok_or(wrong("a value has no name"))?;
            let name = quoted(name).ok_or(wrong("a name has no quotes"))?;
            if fields.find(name).is_some() {
                return Err(wrong("a name occurs twice"));
            }
            fields.0.push((name, value.trim()));
        }
        if fields.number("v") != Some(VERSION) {
            return Err(wrong("it has no version, or one of another release"));
        }
        if fields.0.len() != n {
            return Err(wrong("names are missing, or there are others"));
        }
        Ok(fields)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|field| field.0 == name);
        found.map(|field| field.1)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        decimal(self.find(name)?)
    }

    pub(crate) fn hex(&self, name: &str) -> Option<u64> {
        let digits = quoted(self.find(name)?).filter(|digits| digits.len() == 16)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u64::from_str_radix(digits, 16).ok())?
    }
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
            recipe: Recipe {
                order: OrderKind::Window,
                window: u32::MAX,
                lanes: 1 << 16,
                batch: u32::MAX,
            },
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
            assert!(
                matches!(State::from_json(&bad), Err(PlanError::State { .. })),
                "{bad}"
            );
        }
        assert!(State::from_json("").is_err());
        assert!(State::from_json("{}").is_err());
    }
}
