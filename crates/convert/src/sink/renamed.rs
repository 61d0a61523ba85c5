//! Reports samples whose path in the output differs from the path in the pack.

use packds_system::{counted, to_u64};

use super::SinkStart;
use crate::source::PATHS;

/// The number of samples with a different path, and both paths of the first.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    n: u64,
    first: Option<(String, String)>,
}

impl Renamed {
    /// Records that a sample with this path in the pack was written to `written`.
    pub(super) fn note(&mut self, path: Option<&Vec<u8>>, written: &str) {
        let Some(path) = path.filter(|path| path.as_slice() != written.as_bytes()) else {
            return;
        };
        self.n = self.n.saturating_add(1);
        let lossy = || String::from_utf8_lossy(path).into_owned();
        self.first.get_or_insert_with(|| (lossy(), written.to_owned()));
    }

    pub(super) fn summary(self) -> Option<String> {
        let (path, written) = self.first?;
        Some(match self.n {
            1 => format!("the path of one sample: '{path}' became '{written}'"),
            n => format!("the paths of {n} samples; the first, '{path}', became '{written}'"),
        })
    }
}

/// A note on paths in which invalid UTF-8 was replaced.
pub(super) fn not_utf8(n_paths: u64) -> String {
    format!("invalid UTF-8 in {}, which was replaced with U+FFFD", counted(n_paths, "path"))
}

/// Whether the paths are written as the field [`PATHS`], next to fields with these names. Adds to `lost` what is not kept.
pub(super) fn paths_as_field<'a>(
    start: &SinkStart<'_>,
    mut names: impl Iterator<Item = &'a str>,
    lost: &mut Vec<String>,
) -> bool {
    if !start.exported.has_paths {
        return false;
    }
    if names.any(|name| name == PATHS) {
        lost.push(format!("the samples' paths, because another field is named `{PATHS}`"));
        return false;
    }
    let bent = start.paths.iter().filter(|path| str::from_utf8(path).is_err()).count();
    if bent > 0 {
        lost.push(not_utf8(to_u64(bent)));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_paths_count() {
        let mut renamed = Renamed::default();
        renamed.note(None, "0.npy");
        renamed.note(Some(&b"a/0.npy".to_vec()), "a/0.npy");
        assert_eq!(renamed.summary(), None);
        let mut renamed = Renamed::default();
        renamed.note(Some(&b"a/0.jpg".to_vec()), "a/0.npy");
        renamed.note(Some(&b"a/1.jpg".to_vec()), "a/1.npy");
        let expected = "the paths of 2 samples; the first, 'a/0.jpg', became 'a/0.npy'";
        assert_eq!(renamed.summary().as_deref(), Some(expected));
    }
}
