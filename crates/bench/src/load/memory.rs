//! How much memory of its own the process has.

/// The most anonymous memory seen: stacks, heap, ring and buffers, without mapped files.
#[derive(Debug, Default)]
pub(crate) struct PeakAnon(u64);

impl PeakAnon {
    /// Looks once.
    pub(crate) fn look(&mut self) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib: u64 = line
            .and_then(|line| line.split_whitespace().next()?.parse().ok())
            .unwrap_or(0);
        self.0 = self.0.max(kib * 1024);
    }

    /// The most so far, in bytes; 0 where the system does not tell.
    pub(crate) fn bytes(&self) -> u64 {
        self.0
    }
}
