//! A long task and its progress, as text and as a bar.

use std::time::{Duration, Instant};

use crate::human::{counted, human_bytes, human_time, to_f64};
use crate::terminal_line::{cut, width};

/// Maximum and minimum width of a bar, in columns.
const BAR: (usize, usize) = (30, 8);

/// Below this time a rate is meaningless.
const SHORTEST: Duration = Duration::from_millis(100);

/// Time without progress after which a task is reported as stalled.
const STANDSTILL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The amount is unknown.
    Unknown,
    /// A number of bytes out of an unknown total.
    Bytes(u64),
    /// A number of bytes out of a known total.
    OfBytes { done: u64, total: u64 },
    /// A number of items out of a known total, the noun for one item, and the bytes read for these items.
    Of { done: u64, total: u64, thing: &'static str, bytes: u64 },
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) what: String,
    amount: Amount,
    since: Instant,
    moved: Instant,
    stall_reported: bool,
}

impl Task {
    pub(crate) fn new(what: String, amount: Amount) -> Self {
        let since = Instant::now();
        Self { what, amount, since, moved: since, stall_reported: false }
    }

    pub(crate) fn update(&mut self, amount: Amount) {
        if amount != self.amount {
            self.moved = Instant::now();
            self.stall_reported = false;
        }
        self.amount = amount;
    }

    /// The text to report if there was no progress for a minute. It is returned once per stall.
    pub(crate) fn standstill(&mut self) -> Option<String> {
        let stood = self.moved.elapsed();
        if self.stall_reported || stood < STANDSTILL {
            return None;
        }
        self.stall_reported = true;
        Some(format!("{}: no progress for {}", self.what, human_time(stood)))
    }

    /// The task with all parts of its progress, for a log line.
    pub(crate) fn line(&self) -> String {
        let parts = self.amount.parts(self.since.elapsed());
        let said: Vec<String> = parts.into_iter().map(|part| part.text).collect();
        format!("{}: {}", self.what, said.join(", "))
    }

    /// The task with a bar and the parts of its progress that fit.
    pub(crate) fn bar(&self, columns: usize) -> String {
        bar(&self.what, self.amount, self.since.elapsed(), columns)
    }
}

/// A part of the progress text. If the line is too long, the least important parts are dropped.
struct Part {
    text: String,
    matters: u8,
}

impl Amount {
    /// The parts to show after this elapsed time, in display order.
    fn parts(self, elapsed: Duration) -> Vec<Part> {
        let part = |matters, text| Part { text, matters };
        let mut parts = match self {
            Self::Unknown => return vec![part(4, human_time(elapsed))],
            Self::Bytes(done) => return vec![part(4, human_bytes(done)), part(3, human_time(elapsed))],
            Self::OfBytes { done, total } => {
                let of = format!("{} of {}", human_bytes(done), human_bytes(total));
                vec![part(4, of), part(2, mebibytes_per_s(done, elapsed))]
            }
            Self::Of { done, total, thing, bytes } => {
                let of = format!("{done} of {}", counted(total, thing));
                let rate = format!("{:.0} {thing}s/s", per_second(done, elapsed));
                let mut parts = vec![part(4, of), part(2, rate)];
                if bytes > 0 {
                    parts.push(part(1, mebibytes_per_s(bytes, elapsed)));
                }
                parts
            }
        };
        if elapsed < SHORTEST {
            parts.truncate(1);
            return parts;
        }
        let (done, total) = self.share().unwrap_or_default();
        // Before anything is done, the time left cannot be estimated.
        if let Some(left) = time_left(done, total, elapsed) {
            parts.push(part(3, format!("{} left", human_time(left))));
        }
        parts
    }

    fn share(self) -> Option<(u64, u64)> {
        match self {
            Self::Unknown | Self::Bytes(_) => None,
            Self::OfBytes { done, total } | Self::Of { done, total, .. } => Some((done, total)),
        }
    }
}

fn bar(what: &str, amount: Amount, elapsed: Duration, columns: usize) -> String {
    let mut parts = amount.parts(elapsed);
    loop {
        let said: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        let said = said.join(", ");
        let used = width(what) + 1 + width(&said);
        let Some((done, total)) = amount.share() else {
            return cut(&format!("{what}, {said}"), columns).to_owned();
        };
        // 3 columns are for the bar's brackets and the space after it.
        let free = columns.saturating_sub(used + 3).min(BAR.0);
        if free >= BAR.1 {
            return format!("{what} [{}] {said}", filled(done, total, free));
        }
        let least = (0..parts.len()).min_by_key(|i| parts.get(*i).map(|part| part.matters));
        match least.filter(|_| parts.len() > 1) {
            Some(least) => drop(parts.remove(least)),
            None => return cut(&format!("{what} {said}"), columns).to_owned(),
        }
    }
}

fn filled(done: u64, total: u64, columns: usize) -> String {
    let of = u128::try_from(columns).unwrap_or(0) * u128::from(done.min(total));
    let n = usize::try_from(of / u128::from(total.max(1))).unwrap_or(columns);
    let head = if n < columns { ">" } else { "" };
    format!("{:columns$}", "=".repeat(n) + head)
}

/// Estimated time until `total` is reached. `None` if nothing is done yet.
pub(crate) fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let times = to_f64(total.saturating_sub(done)) / to_f64(done);
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * times).ok()
}

fn per_second(n: u64, elapsed: Duration) -> f64 {
    to_f64(n) / elapsed.as_secs_f64().max(1e-9)
}

fn mebibytes_per_s(bytes: u64, elapsed: Duration) -> String {
    format!("{:.0} MiB/s", per_second(bytes, elapsed) / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGES: Amount = Amount::Of { done: 640, total: 1000, thing: "image", bytes: 64 << 20 };

    fn drawn(columns: usize) -> String {
        bar("converting", IMAGES, Duration::from_secs(4), columns)
    }

    #[test]
    fn a_standstill_is_said_once_until_something_moves() {
        let Some(long_ago) = Instant::now().checked_sub(2 * STANDSTILL) else { return };
        let mut task = Task::new("unpacking the source".to_owned(), Amount::Bytes(7));
        assert_eq!(task.standstill(), None);
        task.moved = long_ago;
        // An unchanged amount does not count as progress.
        task.update(Amount::Bytes(7));
        let expected = "unpacking the source: no progress for 2 min";
        assert_eq!(task.standstill().as_deref(), Some(expected));
        assert_eq!(task.standstill(), None);
        task.update(Amount::Bytes(8));
        assert_eq!(task.standstill(), None);
        task.moved = long_ago;
        assert!(task.standstill().is_some());
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        assert_eq!(
            drawn(120),
            "converting [===================>          ] 640 of 1000 images, 160 images/s, 16 MiB/s, 2 s left"
        );
        assert_eq!(drawn(75), "converting [=====>   ] 640 of 1000 images, 160 images/s, 16 MiB/s, 2 s left");
        assert_eq!(drawn(52), "converting [======>   ] 640 of 1000 images, 2 s left");
        assert_eq!(drawn(40), "converting [=====>  ] 640 of 1000 images");
        assert_eq!(drawn(20), "converting 640 of 10");
    }

    #[test]
    fn no_rate_is_shown_at_the_start() {
        let line = |elapsed| bar("planning", IMAGES, elapsed, 80);
        let begun = line(Duration::from_micros(3));
        assert!(begun.ends_with("640 of 1000 images"), "{begun}");
        assert!(line(SHORTEST).contains("images/s"));
    }

    #[test]
    fn no_text_is_wider_than_the_terminal() {
        let amounts = [
            IMAGES,
            Amount::Unknown,
            Amount::Bytes(u64::MAX),
            Amount::OfBytes { done: 3 << 40, total: 7 << 40 },
            Amount::Of { done: u64::MAX - 1, total: u64::MAX, thing: "image", bytes: u64::MAX },
        ];
        for amount in amounts {
            for columns in 1..200 {
                let text = bar("converting train", amount, Duration::from_millis(1), columns);
                assert!(width(&text) <= columns, "{columns} columns: {text}");
            }
        }
    }

    #[test]
    fn what_is_left_is_estimated_once_something_is_done() {
        let left = |done| time_left(done, 40, Duration::from_secs(120));
        assert_eq!(left(0), None);
        assert_eq!(left(10), Some(Duration::from_secs(360)));
        assert_eq!(left(40), Some(Duration::ZERO));
    }
}
