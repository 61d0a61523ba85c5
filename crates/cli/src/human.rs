//! Formats numbers for display, and parses sizes.

use std::time::Duration;

pub(crate) use packds_bench::to_f64;
use packds_format::SeekStats;
pub(crate) use packds_system::counted;

/// A size in the largest binary unit in which it is at least 1.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10;
    let mut shown = "B";
    for unit in UNITS {
        if tenths < 10 * 1024 {
            break;
        }
        // Rounding at every step is accurate enough for one decimal place.
        tenths = (tenths + 512) / 1024;
        shown = unit;
    }
    format!("{}.{} {shown}", tenths / 10, tenths % 10)
}

/// A duration in its largest units.
pub(crate) fn human_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

/// The time since the start of something, which changes every second.
pub(crate) fn elapsed_time(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 { human_time(time) } else { format!("{} {:02} s", human_time(time), seconds % 60) }
}

/// A duration, and the number of items processed per second.
pub(crate) fn time_line(seconds: f64, n: u64, things: &str) -> String {
    format!("{seconds:.2} s, {:.0} {things}/s", to_f64(n) / seconds.max(1e-9))
}

pub(crate) fn numbers(values: &[f64]) -> String {
    let all: Vec<String> = values.iter().map(|v| format!("{v:.4}")).collect();
    all.join(" ")
}

/// The number of images that have a seek index, and the size of the indexes.
pub(crate) fn seek_line(seek: &SeekStats, n_samples: u64) -> String {
    let SeekStats { n_indexed, bytes, image_bytes } = *seek;
    let percent = 100.0 * to_f64(bytes) / to_f64(image_bytes.max(1));
    let bytes = human_bytes(bytes);
    let images = counted(n_samples, "image");
    format!("index of {n_indexed} of {images}: {bytes}, {percent:.2} % of the images' bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        let shown = [0, 1023, 1024, 1536, 1 << 20, 150_577_216, u64::MAX].map(human_bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "143.6 MiB", "16.0 EiB"]);
    }

    #[test]
    fn times_are_shown_in_their_largest_units() {
        let shown = [0, 59, 60, 3599, 3600, 7500].map(|s| human_time(Duration::from_secs(s)));
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h 00 min", "2 h 05 min"]);
    }

    #[test]
    fn the_time_that_has_passed_has_seconds() {
        let shown = [0, 59, 61, 3599, 7503].map(|s| elapsed_time(Duration::from_secs(s)));
        assert_eq!(shown, ["0 s", "59 s", "1 min 01 s", "59 min 59 s", "2 h 05 min 03 s"]);
    }
}
