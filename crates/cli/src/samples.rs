//! Lists of samples: given by the user, evenly spread, or bad.

use packds_system::{read_regular, share};
use std::path::Path;
use std::str::FromStr;

use packds_format::mix64;
use serde_json::{Value, json};

use crate::console::Console;
use crate::escape::{escape, escape_path};
use crate::failure::Failure;

/// A list of samples as typed: numbers and ranges, such as `3,5-8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleList {
    /// First and last sample of each range, inclusive.
    runs: Vec<(u64, u64)>,
}

impl FromStr for SampleList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let runs = text.split(',').map(run).collect::<Result<_, _>>();
        match runs {
            Err(_) if Path::new(text).is_file() => Self::in_file(text),
            runs => Ok(Self { runs: runs? }),
        }
    }
}

/// Reads a number or a range.
fn run(part: &str) -> Result<(u64, u64), String> {
    let number = |part: &str| part.trim().parse::<u64>().ok();
    let found = match part.split_once('-') {
        None => number(part).map(|n| (n, n)),
        Some((first, last)) => number(first).zip(number(last)),
    };
    match found {
        Some((first, last)) if first <= last => Ok((first, last)),
        Some(_) => Err(format!("range `{part}` is backwards")),
        None => Err(format!("expected numbers and ranges such as 3,5-8, or a file that lists them, found `{part}`")),
    }
}

impl SampleList {
    /// The list in a file: numbers and ranges, separated by commas or line ends.
    fn in_file(path: &str) -> Result<Self, String> {
        let bytes = read_regular(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut runs = Vec::new();
        for (line, text) in (1_u64..).zip(text.lines()) {
            for part in text.split(',').filter(|part| !part.trim().is_empty()) {
                runs.push(run(part).map_err(|error| format!("{path}: line {line}: {error}"))?);
            }
        }
        Ok(Self { runs })
    }

    /// The samples, in the order typed.
    pub(crate) fn within(&self, n_samples: u64) -> Result<Vec<u64>, Failure> {
        let beyond = self.runs.iter().map(|(_, last)| *last).find(|last| *last >= n_samples);
        if let Some(sample) = beyond {
            let range = match n_samples.checked_sub(1) {
                None => "the pack is empty".to_owned(),
                Some(0) => "the pack has only sample 0".to_owned(),
                Some(last) => format!("the pack has samples 0 to {last}"),
            };
            return Err(Failure::not_run(format!("no sample {sample}: {range}")));
        }
        Ok(self.runs.iter().flat_map(|(first, last)| *first..=*last).collect())
    }
}

/// Reports bad samples on stderr. Consecutive samples with the same message, such as those of a damaged chunk, are
/// reported together.
pub(crate) fn note_bad(bad: &[(u64, String)], pack: &Path, console: &mut Console) {
    for same in bad.chunk_by(|(_, one), (_, other)| one == other) {
        let Some((_, message)) = same.first() else { continue };
        console.error(&format!("{}: {}", escape_path(pack), escape(message)));
    }
}

/// Bad samples in the JSON document: their numbers and errors.
pub(crate) fn bad_samples(bad: &[(u64, String)]) -> Value {
    bad.iter().map(|(sample, error)| json!({ "sample": sample, "error": error })).collect()
}

/// `n` evenly spread samples: one random sample from each of `n` equal parts. The seed makes them reproducible.
pub(crate) fn spread(n: u64, n_samples: u64, seed: u64) -> Vec<u64> {
    let n = n.min(n_samples);
    let at = |i: u64| {
        let edge = |i: u64| share(n_samples, i, n);
        let (start, end) = (edge(i), edge(i + 1));
        start + mix64(mix64(seed) ^ i) % (end - start).max(1)
    };
    (0..n).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read() {
        let list: SampleList = "3,5-8, 0".parse().unwrap();
        assert_eq!(list.within(9).unwrap(), [3, 5, 6, 7, 8, 0]);
        assert_eq!(list.within(8).unwrap_err().text(), "no sample 8: the pack has samples 0 to 7");
        assert_eq!(list.within(1).unwrap_err().text(), "no sample 3: the pack has only sample 0");
        for wrong in ["", "a", "1,,2", "5-3", "-3", "1-", "1-2-3", "99999999999999999999"] {
            assert!(wrong.parse::<SampleList>().is_err(), "{wrong}");
        }
        // A range must be checked before it is expanded.
        assert!("0-18446744073709551615".parse::<SampleList>().unwrap().within(10).is_err());
    }

    #[test]
    fn spread_samples_lie_one_in_each_stretch() {
        let samples = spread(36, 1000, 7);
        assert_eq!(samples.len(), 36);
        assert!(samples.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(samples, spread(36, 1000, 7));
        assert_ne!(samples, spread(36, 1000, 8));
        assert_eq!(spread(36, 5, 1), [0, 1, 2, 3, 4]);
        assert!(spread(36, 0, 1).is_empty());
    }
}
