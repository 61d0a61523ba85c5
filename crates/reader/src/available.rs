//! The memory that is available to this process, according to the machine and its control group.

use packds_system::to_u64;
use std::fs;
use std::io;
use std::path::Path;

use crate::human;

/// Rejects requests for more memory than is available. Otherwise the system would grant them, and kill the process
/// when it touches the memory.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`], with the available memory.
pub(crate) fn check_available(needed: usize) -> io::Result<()> {
    let needed = to_u64(needed);
    match available_bytes().filter(|available| needed > *available) {
        None => Ok(()),
        Some(available) => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!(
                "{} of memory is needed, but only {} is available; reduce the batch size or the memory budget",
                human::bytes(needed),
                human::bytes(available)
            ),
        )),
    }
}

/// Memory that can be allocated without evicting anything except page cache: the memory that is available on the
/// machine, or that remains for the control group, whichever is less.
pub(crate) fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_available(Path::new("/sys/fs/cgroup"), &groups);
    machine.into_iter().chain(group).min()
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest amount of memory that remains for any group that contains this process. `None` if no group has a limit.
/// `groups` has the format of /proc/self/cgroup.
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
        // In a container, the group's path may belong to the host. Missing paths are skipped, but the root is always
        // checked.
        let path = root.join(group.trim_start_matches('/'));
        for folder in path.ancestors().take_while(|folder| folder.starts_with(&root)) {
            least = least.into_iter().chain(left_in(folder, names)).min();
        }
    }
    least
}

/// The remaining memory of one group: its limit minus its usage, without page cache.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused() {
        check_available(1 << 20).unwrap();
        let error = check_available(usize::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("GiB is available"), "{error}");
    }

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:  24 kB\nMemAvailable:   12 kB\nBuffers: 1 kB\n";
        assert_eq!(mem_available(text), Some(12 << 10));
        assert_eq!(mem_available("MemTotal: 24 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn the_tightest_control_group_counts() {
        let root = tempfile::TempDir::new().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(group_available(root.path(), "0::/a/b\n"), None);
        write("a/memory.max", "1000\n");
        write("a/memory.current", "700\n");
        write("a/memory.stat", "anon 5\nactive_file 100\ninactive_file 300\n");
        write("a/b/memory.max", "max\n");
        assert_eq!(group_available(root.path(), "0::/a/b\n"), Some(700));
        write("a/b/memory.max", "500\n");
        write("a/b/memory.current", "499\n");
        assert_eq!(group_available(root.path(), "0::/a/b\n"), Some(1));
        // Version 1 of control groups has a tree for each controller.
        write("memory/c/memory.limit_in_bytes", "90\n");
        write("memory/c/memory.usage_in_bytes", "100\n");
        let groups = "5:cpu,cpuacct:/c\n4:memory:/c\n";
        assert_eq!(group_available(root.path(), groups), Some(0));
    }
}
