//! What a long command is doing and how far it is, in words and as a bar.

use std::time::{Duration, Instant};

use crate::human::{human_bytes, human_time};
use crate::terminal_line::{cut, width};

/// The columns that a bar has at most, and those below which there is none.
const BAR: (usize, usize) = (30, 8);

/// In less time a rate says nothing.
const SHORTEST: Duration = Duration::from_millis(100);

/// What has not moved for so long is said to stand still.
const STANDSTILL: Duration = Duration::from_secs(60);

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Nobody knows.
    Unknown,
    /// So many bytes, of nobody knows how many.
    Bytes(u64),
    /// Some of a known number of bytes.
    OfBytes { done: u64, total: u64 },
    /// Some of a known number of things, for which so many bytes were read.
    Of {
        done: u64,
        total: u64,
        things: &'static str,
        bytes: u64,
    },
}

/// What is being done, since when, and how far it is.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) what: String,
    amount: Amount,
    since: Instant,
    /// When the amount last changed.
    moved: Instant,
    /// Whether it was said that it no longer does.
    told: bool,
}

impl Task {
    /// One that begins now.
    pub(crate) fn new(what: String, amount: Amount) -> Self {
        let since = Instant::now();
        Self {
            what,
            amount,
            since,
            moved: since,
            told: false,
        }
    }

    /// Notes how far it is.
    pub(crate) fn tell(&mut self, amount: Amount) {
        if amount != self.amount {
            self.moved = Instant::now();
            self.told = false;
        }
        self.amount = amount;
    }

    /// Says that nothing has moved for a minute, once.
    pub(crate) fn standstill(&mut self) -> Option<String> {
        let stood = self.moved.elapsed();
        if self.told || stood < STANDSTILL {
            return None;
        }
        self.told = true;
        Some(format!(
            "{}: no progress for {}",
            self.what,
            human_time(stood)
        ))
    }

    /// All that is known, for a line of a log.
    pub(crate) fn line(&self) -> String {
        let parts = self.amount.parts(self.since.elapsed());
        let said: Vec<String> = parts.into_iter().map(|part| part.text).collect();
        format!("{}: {}", self.what, said.join(", "))
    }

    /// What fits so many columns, with a bar.
    pub(crate) fn bar(&self, columns: usize) -> String {
        bar(&self.what, self.amount, self.since.elapsed(), columns)
    }
}

/// Something that can be said of how far a task is. Where there is no room, what matters least goes first.
struct Part {
    text: String,
    matters: u8,
}

impl Amount {
    /// What can be said after this time, in the order in which it is said.
    fn parts(self, elapsed: Duration) -> Vec<Part> {
        let part = |matters, text| Part { text, matters };
        let mut parts = match self {
            Self::Unknown => return vec![part(4, human_time(elapsed))],
            Self::Bytes(done) => {
                return vec![part(4, human_bytes(done)), part(3, human_time(elapsed))];
            }
            Self::OfBytes { done, total } => {
                let of = format!("{} of {}", human_bytes(done), human_bytes(total));
                vec![part(4, of), part(2, megabytes_per_s(done, elapsed))]
            }
            Self::Of {
                done,
                total,
                things,
                bytes,
            } => {
                let of = format!("{done} of {total} {things}");
                let rate = format!("{:.0} {things}/s", per_second(done, elapsed));
                let mut parts = vec![part(4, of), part(2, rate)];
                if bytes > 0 {
                    parts.push(part(1, megabytes_per_s(bytes, elapsed)));
                }
                parts
            }
        };
        if elapsed < SHORTEST {
            parts.truncate(1);
            return parts;
        }
        let (done, total) = self.share().unwrap_or_default();
        // What passes while nothing is done yet tells nothing of what is left.
        if let Some(left) = time_left(done, total, elapsed) {
            parts.push(part(3, format!("{} left", human_time(left))));
        }
        parts
    }

    /// How much is done, and of how much.
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
        // The bar's brackets and the blank behind it.
        let room = columns.saturating_sub(used + 3).min(BAR.0);
        if room >= BAR.1 {
            return format!("{what} [{}] {said}", filled(done, total, room));
        }
        let least = (0..parts.len()).min_by_key(|i| parts.get(*i).map(|part| part.matters));
        match least.filter(|_| parts.len() > 1) {
            Some(least) => drop(parts.remove(least)),
            None => return cut(&format!("{what} {said}"), columns).to_owned(),
        }
    }
}

/// A bar of so many columns.
fn filled(done: u64, total: u64, columns: usize) -> String {
    let of = u128::try_from(columns).unwrap_or(0) * u128::from(done.min(total));
    let n = usize::try_from(of / u128::from(total.max(1))).unwrap_or(columns);
    let head = if n < columns { ">" } else { "" };
    format!("{:columns$}", "=".repeat(n) + head)
}

/// How long what is left takes, if it is like what is done.
pub(crate) fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "an estimate has few digits")]
    let times = total.saturating_sub(done) as f64 / done as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * times).ok()
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn per_second(n: u64, elapsed: Duration) -> f64 {
    n as f64 / elapsed.as_secs_f64().max(1e-9)
}

fn megabytes_per_s(bytes: u64, elapsed: Duration) -> String {
    format!("{:.0} MB/s", per_second(bytes, elapsed) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGES: Amount = Amount::Of {
        done: 640,
        total: 1000,
        things: "images",
        bytes: 64_000_000,
    };

    fn drawn(columns: usize) -> String {
        bar("converting", IMAGES, Duration::from_secs(4), columns)
    }

    #[test]
    fn a_standstill_is_said_once_until_something_moves() {
        let Some(long_ago) = Instant::now().checked_sub(2 * STANDSTILL) else {
            return;
        };
        let mut task = Task::new("unpacking the source".to_owned(), Amount::Bytes(7));
        assert_eq!(task.standstill(), None);
        task.moved = long_ago;
        // The same amount is no progress.
        task.tell(Amount::Bytes(7));
        let expected = "unpacking the source: no progress for 2 min";
        assert_eq!(task.standstill().as_deref(), Some(expected));
        assert_eq!(task.standstill(), None);
        task.tell(Amount::Bytes(8));
        assert_eq!(task.standstill(), None);
        task.moved = long_ago;
        assert!(task.standstill().is_some());
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        assert_eq!(
            drawn(120),
            "converting [===================>          ] 640 of 1000 images, 160 images/s, 16 MB/s, 2 s left"
        );
        assert_eq!(
            drawn(75),
            "converting [======>   ] 640 of 1000 images, 160 images/s, 16 MB/s, 2 s left"
        );
        assert_eq!(
            drawn(52),
            "converting [======>   ] 640 of 1000 images, 2 s left"
        );
        assert_eq!(drawn(40), "converting [=====>  ] 640 of 1000 images");
        assert_eq!(drawn(20), "converting 640 of 10");
    }

    #[test]
    fn no_rate_is_told_of_next_to_no_time() {
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
            Amount::OfBytes {
                done: 3 << 40,
                total: 7 << 40,
            },
            Amount::Of {
                done: u64::MAX - 1,
                total: u64::MAX,
                things: "images",
                bytes: u64::MAX,
            },
        ];
        for amount in amounts {
            for columns in 1..200 {
                let text = bar(
                    "converting train",
                    amount,
                    Duration::from_millis(1),
                    columns,
                );
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
