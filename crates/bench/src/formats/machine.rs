//! The environment of a measurement: machine, file system, versions, time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::report::ReportMachine;
use crate::machine::Machine;

/// The lock file of this build, for the versions of measured libraries.
const LOCK: &str = include_str!("../../versions.lock");
const LIBRARIES: [&str; 12] = [
    "arrow-ipc",
    "hdf5-metno",
    "heed",
    "memmap2",
    "mozjpeg-sys",
    "parquet",
    "png",
    "safetensors",
    "tar",
    "zarrs",
    "zip",
    "zstd",
];

/// This machine, and the file system of `folder`.
pub(super) fn here(folder: &Path) -> ReportMachine {
    let machine = Machine::here();
    let (filesystem, disk) = mounted(folder);
    ReportMachine {
        cpu: machine.cpu,
        cores: machine.cores,
        memory_bytes: machine.memory_bytes,
        kernel: machine.kernel,
        filesystem,
        disk,
        free_page_reporting: machine.free_page_reporting,
    }
}

/// A folder's file system type and device.
fn mounted(folder: &Path) -> (String, String) {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut best = (0, "unknown".to_owned(), "unknown".to_owned());
    for line in mounts.lines() {
        let (Some((place, kind)), unknown) = (line.split_once(" - "), "unknown") else {
            continue;
        };
        let point = place.split(' ').nth(4).unwrap_or("/");
        if folder.starts_with(point) && point.len() >= best.0 {
            let mut kind = kind.split(' ');
            let mut next = || kind.next().unwrap_or(unknown).to_owned();
            best = (point.len(), next(), next());
        }
    }
    (best.1, best.2)
}

/// Versions of packds and of the libraries that read the formats.
pub(super) fn versions() -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    versions.insert("packds".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    #[cfg(feature = "hdf5")]
    {
        let (major, minor, patch) = hdf5::library_version();
        versions.insert("hdf5".to_owned(), format!("{major}.{minor}.{patch}"));
    }
    let quoted = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        Some(value.strip_suffix('"')?.to_owned())
    };
    let mut name = String::new();
    for line in LOCK.lines() {
        name = quoted(line, "name").unwrap_or(name);
        if let Some(version) = quoted(line, "version")
            && LIBRARIES.contains(&name.as_str())
        {
            versions.insert(name.clone(), version);
        }
    }
    versions
}

/// The time in UTC, as RFC 3339.
#[expect(clippy::disallowed_methods, reason = "the report records the time; packs are unaffected")]
pub(super) fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    rfc3339(now.map_or(0, |time| time.as_secs()))
}

/// Converts seconds since 1970 to a date and time. Days are counted in eras of 400 years that start in March.
fn rfc3339(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_from_march + 2) / 5 + 1;
    let month = (months_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), shown);
        }
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let versions = versions();
        assert!(versions["zip"].starts_with("7."), "{versions:?}");
        assert!(versions.contains_key("packds"));
    }

    #[test]
    fn every_folder_lies_on_something() {
        let (filesystem, disk) = mounted(&std::env::temp_dir());
        assert!(filesystem != "unknown" && disk != "unknown");
    }
}
