//! Properties of the machine that runs a benchmark, and memory and CPU time of the process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Properties of the machine that runs a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Processor name.
    pub cpu: String,
    /// Cores available to this process.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel version.
    pub kernel: String,
    /// Whether the JPEG decoder was built with SIMD.
    pub jpeg_simd: bool,
    /// Whether this is a virtual machine that returns free memory to its host. Reused memory must then
    /// be requested page by page, and reading into it is up to ten times slower.
    pub free_page_reporting: bool,
}

impl Machine {
    /// Queries the system.
    #[must_use]
    pub fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Self {
            cpu: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            jpeg_simd: packds_pixels::jpeg_simd(),
            free_page_reporting: reports_free_pages(),
        }
    }
}

/// Whether the virtual machine's memory balloon has negotiated free page reporting (bit 5 of its features, VIRTIO 1.2
/// section 5.5.3), and the kernel has memory blocks large enough to be reported.
fn reports_free_pages() -> bool {
    const BIT: usize = 5;
    const LARGEST_ORDER: i64 = 10;
    let order = std::fs::read_to_string("/sys/module/page_reporting/parameters/page_reporting_order");
    let order = order.ok().and_then(|text| text.trim().parse::<i64>().ok());
    let devices = std::fs::read_dir("/sys/bus/virtio/drivers/virtio_balloon");
    let features = |path: std::path::PathBuf| std::fs::read_to_string(path.join("features"));
    order.is_some_and(|order| (0..=LARGEST_ORDER).contains(&order))
        && devices.is_ok_and(|devices| {
            let mut texts = devices.flatten().filter_map(|d| features(d.path()).ok());
            texts.any(|text| text.as_bytes().get(BIT) == Some(&b'1'))
        })
}

/// Peak resident memory since the last reset.
#[derive(Debug)]
pub struct PeakRss(());

impl PeakRss {
    /// Resets the peak. If the kernel does not allow that, the peak covers the whole life of the process.
    #[must_use]
    pub fn reset() -> Self {
        // If this fails, the peak covers the whole life of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self(())
    }

    /// The peak in bytes. 0 if unknown.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        status_bytes("VmHWM:")
    }
}

/// A size in bytes from the process's status, such as `VmHWM:`. 0 if unknown.
pub(crate) fn status_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// CPU time of all threads of this process.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = time.tv_sec.max(0).cast_unsigned();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
