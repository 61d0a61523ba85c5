//! A long task and its progress, as text and as a bar.

use std::time::{Duration, Instant};

use packds_system::nanos;

use crate::human::{counted, elapsed_time, human_bytes, human_time, to_f64};
use crate::terminal_line::{cut, shortened, width};

/// Maximum and minimum width of a bar, in columns.
const BAR: (usize, usize) = (30, 8);

/// To this width, the name of a task is shortened to make room for its progress.
const NAME: usize = 8;

/// The importance of a part that is dropped only if nothing else can be.
const NEEDED: u8 = 3;

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
    /// A number of steps of a measurement out of a known total.
    Steps { done: u64, total: u64 },
    /// A measurement that takes about this long.
    Time { about: Duration },
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
    /// A task that started at `since`. Its time left is estimated from that.
    pub(crate) fn new(what: String, amount: Amount, since: Instant) -> Self {
        Self { what, amount, since, moved: Instant::now(), stall_reported: false }
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
        let may_stand = matches!(self.amount, Amount::Steps { .. } | Amount::Time { .. });
        if may_stand || self.stall_reported || stood < STANDSTILL {
            return None;
        }
        self.stall_reported = true;
        Some(format!("{}: no progress for {}", self.what, human_time(stood)))
    }

    /// The task with all parts of its progress, for a log line.
    pub(crate) fn line(&self) -> String {
        let parts = self.amount.parts(self.times());
        let said: Vec<String> = parts.into_iter().map(|part| part.text).collect();
        format!("{}: {}", self.what, said.join(", "))
    }

    /// The task with a bar and the parts of its progress that fit.
    pub(crate) fn bar(&self, columns: usize) -> String {
        bar(&self.what, self.amount, self.times(), columns)
    }

    fn times(&self) -> Times {
        Times { elapsed: self.since.elapsed(), idle: self.moved.elapsed() }
    }
}

/// The time since a task has started, and the time since its last progress.
#[derive(Debug, Clone, Copy)]
struct Times {
    elapsed: Duration,
    idle: Duration,
}

/// A part of the progress text. If the line is too long, the least important parts are dropped.
struct Part {
    text: String,
    matters: u8,
}

impl Amount {
    /// The parts to show after this time, in display order.
    fn parts(self, times: Times) -> Vec<Part> {
        let part = |matters, text| Part { text, matters };
        let elapsed = times.elapsed;
        let mut parts = match self {
            Self::Unknown => return vec![part(5, elapsed_time(elapsed))],
            Self::Bytes(done) => return vec![part(5, human_bytes(done)), part(NEEDED, elapsed_time(elapsed))],
            Self::OfBytes { done, total } => {
                let of = format!("{} of {}", human_bytes(done), human_bytes(total));
                vec![part(5, of), part(2, mebibytes_per_s(done, elapsed))]
            }
            Self::Of { done, total, thing, bytes } => {
                let of = format!("{done} of {}", counted(total, thing));
                let rate = format!("{:.0} {thing}s/s", per_second(done, elapsed));
                let mut parts = vec![part(5, of), part(2, rate)];
                if bytes > 0 {
                    parts.push(part(1, mebibytes_per_s(bytes, elapsed)));
                }
                parts
            }
            Self::Steps { done, total } => vec![part(5, format!("{done} of {}", counted(total, "step")))],
            Self::Time { about } => {
                let left = about.saturating_sub(elapsed);
                let mut parts = vec![part(5, elapsed_time(elapsed))];
                if !left.is_zero() {
                    parts.push(part(4, format!("about {} left", human_time(left))));
                }
                return parts;
            }
        };
        if elapsed < SHORTEST {
            parts.truncate(1);
            return parts;
        }
        let (done, total) = self.share(elapsed).unwrap_or_default();
        let left = time_left(done, total, times);
        // Before anything is done, the time left cannot be estimated.
        if left.is_none() || matches!(self, Self::Steps { .. }) {
            parts.push(part(NEEDED, elapsed_time(elapsed)));
        }
        if let Some(left) = left {
            parts.push(part(4, format!("{} left", human_time(left))));
        }
        parts
    }

    fn share(self, elapsed: Duration) -> Option<(u64, u64)> {
        match self {
            Self::Unknown | Self::Bytes(_) => None,
            Self::OfBytes { done, total } | Self::Of { done, total, .. } | Self::Steps { done, total } => {
                Some((done, total))
            }
            Self::Time { about } => Some((nanos(elapsed), nanos(about))),
        }
    }
}

/// The task with as much as fits. The count and the time left are more important than the bar, and the bar is more
/// important than rates and the whole name.
fn bar(what: &str, amount: Amount, times: Times, columns: usize) -> String {
    let mut parts = amount.parts(times);
    loop {
        let said: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        let said = said.join(", ");
        let is_least = parts.iter().all(|part| part.matters >= NEEDED);
        // The shortest name, if nothing else can be dropped.
        let name = if is_least { width(what).min(NAME) } else { width(what) };
        let Some((done, total)) = amount.share(times.elapsed) else {
            let name = shortened(what, columns.saturating_sub(width(&said) + 2));
            return cut(&format!("{name}, {said}"), columns).to_owned();
        };
        // 4 columns are for the bar's brackets and the spaces around it.
        let free = columns.saturating_sub(name + width(&said) + 4);
        if free >= BAR.1 {
            let name = shortened(what, name + free - BAR.1);
            let free = room(columns, &name, &said).min(BAR.0);
            return format!("{name} [{}] {said}", filled(done, total, free));
        }
        if is_least && name + 1 + width(&said) <= columns {
            return format!("{} {said}", shortened(what, columns - width(&said) - 1));
        }
        let least = (0..parts.len()).rev().min_by_key(|i| parts.get(*i).map(|part| part.matters));
        match least.filter(|_| parts.len() > 1) {
            Some(least) => drop(parts.remove(least)),
            None => {
                let name = shortened(what, columns.saturating_sub(width(&said) + 1));
                return cut(&format!("{name} {said}"), columns).to_owned();
            }
        }
    }
}

/// The columns for a bar between this name and this text.
fn room(columns: usize, name: &str, said: &str) -> usize {
    columns.saturating_sub(width(name) + width(said) + 4)
}

fn filled(done: u64, total: u64, columns: usize) -> String {
    let of = u128::try_from(columns).unwrap_or(0) * u128::from(done.min(total));
    let n = usize::try_from(of / u128::from(total.max(1))).unwrap_or(columns);
    let head = if n < columns { ">" } else { "" };
    format!("{:columns$}", "=".repeat(n) + head)
}

/// Estimated time until `total` is reached. `None` if nothing is done yet.
fn time_left(done: u64, total: u64, times: Times) -> Option<Duration> {
    let spent = times.elapsed.saturating_sub(times.idle).as_secs_f64();
    let each = spent / to_f64(done);
    // The item in progress has been started, but takes at least until now.
    let left = each * to_f64(total.saturating_sub(done)) - each.min(times.idle.as_secs_f64());
    Duration::try_from_secs_f64(left.max(0.0)).ok().filter(|_| done > 0)
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
        bar("converting", IMAGES, after(4), columns)
    }

    fn after(seconds: u64) -> Times {
        Times { elapsed: Duration::from_secs(seconds), idle: Duration::ZERO }
    }

    #[test]
    fn a_standstill_is_said_once_until_something_moves() {
        let Some(long_ago) = Instant::now().checked_sub(2 * STANDSTILL) else { return };
        let mut task = Task::new("unpacking the source".to_owned(), Amount::Bytes(7), Instant::now());
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
        assert_eq!(drawn(40), "converting 640 of 1000 images, 2 s left");
        assert_eq!(drawn(30), "converting 640 of 1000 images");
        assert_eq!(drawn(24), "conv\u{2026} 640 of 1000 images");
    }

    #[test]
    fn a_long_name_is_shortened_before_the_moving_parts() {
        let what = "packds-raw, per-sample, warm, 2 threads: round 1 of 3";
        let line = |done, columns| bar(what, Amount::Steps { done, total: 40 }, after(75), columns);
        assert_eq!(line(0, 47), "packds-ra\u{2026} [>       ] 0 of 40 steps, 1 min 15 s");
        assert_eq!(line(10, 47), "packds-\u{2026} 10 of 40 steps, 1 min 15 s, 3 min left");
        assert_eq!(
            line(10, 77),
            "packds-raw, per-sample, wa\u{2026} [==>     ] 10 of 40 steps, 1 min 15 s, 3 min left"
        );
        let time =
            |seconds| bar("the first epoch", Amount::Time { about: Duration::from_secs(20) }, after(seconds), 50);
        assert_eq!(time(5), "the first epoch [==>        ] 5 s, about 15 s left");
        assert_eq!(time(21), "the first epoch [===========================] 21 s");
        let name = "decoding and transforming samples that are in memory";
        assert_eq!(bar(name, Amount::Unknown, after(7), 47), "decoding and transforming samples that ar\u{2026}, 7 s");
    }

    #[test]
    fn no_rate_is_shown_at_the_start() {
        let line = |elapsed| bar("planning", IMAGES, Times { elapsed, idle: Duration::ZERO }, 80);
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
            Amount::Steps { done: 3, total: 1000 },
            Amount::Time { about: Duration::from_secs(3000) },
        ];
        for amount in amounts {
            for columns in 1..200 {
                let text = bar("converting train", amount, after(100), columns);
                assert!(width(&text) <= columns, "{columns} columns: {text}");
            }
        }
    }

    #[test]
    fn what_is_left_is_estimated_once_something_is_done() {
        let left = |done| time_left(done, 40, after(120)).map(|left| left.as_secs());
        assert_eq!([left(0), left(10), left(40)], [None, Some(360), Some(0)]);
        // While a step runs, its time is counted down.
        let idle = |seconds| {
            let times = Times { elapsed: Duration::from_secs(120 + seconds), idle: Duration::from_secs(seconds) };
            time_left(10, 40, times).map(|left| left.as_secs())
        };
        assert_eq!([idle(5), idle(12), idle(99)], [Some(355), Some(348), Some(348)]);
    }
}
