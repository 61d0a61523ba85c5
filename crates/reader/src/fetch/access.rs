//! How a pack is read: the user's choice, or what fits the machine.

use std::fs;
use std::path::Path;

use super::FetchOptions;
use crate::MappedPack;

/// How a loader reads a pack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Mapped where the pack fits in memory, else direct.
    #[default]
    Auto,
    /// Through a memory map: the page cache is shared by all processes, nothing is copied on the way.
    Mapped,
    /// Whole chunks into buffers of the loader, past the page cache where the system allows it.
    Direct,
}

/// How a loader reads its pack, and why: for users.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessReport {
    /// What was chosen: never [`Access::Auto`].
    pub access: Access,
    /// What reads: `mmap`, `io_uring` or `pread`.
    pub engine: &'static str,
    /// Why, in a sentence.
    pub reason: String,
}

/// Of the memory that is available, the tenths that a mapped pack may have: the rest is for the training process.
const MAPPED_TENTHS: u64 = 6;

/// Decides how to read `pack`.
pub(super) fn choose(pack: &MappedPack, options: &FetchOptions) -> AccessReport {
    let available = available_bytes();
    let (access, reason) = decide(pack.file_len(), options, available);
    AccessReport {
        access,
        engine: "mmap",
        reason,
    }
}

fn decide(file_len: u64, options: &FetchOptions, available: Option<u64>) -> (Access, String) {
    let size = gib(file_len);
    match options.access {
        Access::Mapped => return (Access::Mapped, "mapped, as asked for".to_owned()),
        Access::Direct => return (Access::Direct, "direct, as asked for".to_owned()),
        Access::Auto => {}
    }
    if let Some(budget) = options.budget.filter(|budget| file_len > *budget) {
        let reason = format!(
            "direct, because the pack has {size} and the memory budget is {}",
            gib(budget)
        );
        return (Access::Direct, reason);
    }
    match available {
        Some(available) if file_len > available / 10 * MAPPED_TENTHS => {
            let reason = format!(
                "direct, because the pack has {size}, more than 0.6 of the {} of memory available",
                gib(available)
            );
            (Access::Direct, reason)
        }
        Some(available) => {
            let reason = format!(
                "mapped, because the pack's {size} fit in the {} of memory available",
                gib(available)
            );
            (Access::Mapped, reason)
        }
        None => {
            let reason = "mapped, because the system does not tell how much memory is available";
            (Access::Mapped, reason.to_owned())
        }
    }
}

/// Bytes as a person reads them.
fn gib(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} bytes")
}

/// Bytes of memory that can be used without pushing out anything but page cache: the machine's, or what the control
/// group of this process has left. None where the system does not say.
fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| mem_available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_available(Path::new("/sys/fs/cgroup"), &groups);
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least that any group above this process, which `groups` names as /proc/self/cgroup does, has left of its limit;
/// none where no group has one.
fn group_available(root: &Path, groups: &str) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, names) = if controllers.is_empty() {
            (root.to_owned(), ["memory.max", "memory.current"])
        } else if controllers.split(',').any(|name| name == "memory") {
            let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
            (root.join("memory"), names)
        } else {
            continue;
        };
        // In a container the group's path may be the host's: what is not there is not asked, the root always is.
        let path = root.join(group.trim_start_matches('/'));
        for folder in path
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
        {
            let left = left_in(folder, names);
            least = match (least, left) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    least
}

/// What one group has left: its limit less what it uses, where page cache does not count.
fn left_in(folder: &Path, [limit, usage]: [&str; 2]) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let limit = number(limit)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached: u64 = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| matches!(*name, "active_file" | "inactive_file"))
        .filter_map(|(_, bytes)| bytes.parse::<u64>().ok())
        .sum();
    let used = number(usage)?.saturating_sub(cached);
    Some(limit.saturating_sub(used))
}
