//! Private memory of the process.

/// Peak anonymous memory: stacks, heap, ring and buffers, without mapped files.
#[derive(Debug, Default)]
pub(crate) struct PeakAnon(u64);

impl PeakAnon {
    /// Takes a sample.
    pub(crate) fn look(&mut self) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib: u64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        self.0 = self.0.max(kib * 1024);
    }

    /// The peak so far, in bytes. 0 if unknown.
    pub(crate) fn bytes(&self) -> u64 {
        self.0
    }
}
