//! Commands on a terminal: each command ends, no progress line is too wide or left behind, and Ctrl-C works.
//!
//! `script` provides a terminal, and passes on keys and output. `vt100` emulates the screen.

#![cfg(test)]

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{binary, fixture, many_links, packds, stderr, stdout, temp_dir};

/// A time limit, far longer than these tests need.
const DEADLINE: Duration = Duration::from_secs(120);
/// Rows of the screen: enough that output never scrolls.
const ROWS: NonZero<u16> = NonZero::new(200).unwrap();
/// The text that ends a progress line.
const END_OF_LINE: &str = "\x1b[K";

/// A command that runs on its own terminal.
struct Terminal {
    script: Child,
    keys: Option<ChildStdin>,
    drawn: Receiver<Vec<u8>>,
    /// All output so far.
    text: String,
    columns: NonZero<u16>,
    started: Instant,
    /// The command, for messages.
    what: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The command ends when its terminal is closed.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

impl Terminal {
    /// Starts `packds` with these arguments in `dir`.
    fn start(dir: &Path, columns: u16, args: &[&str]) -> Self {
        let quoted = |arg: &&str| format!("'{arg}'");
        let args: Vec<String> = args.iter().map(quoted).collect();
        let what = format!("packds {}", args.join(" "));
        let line = format!("stty cols {columns} rows 24; exec '{}' {}", binary().display(), args.join(" "));
        let mut script = Command::new("script")
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .current_dir(dir)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut out = script.stdout.take().unwrap();
        let (tx, drawn) = mpsc::channel();
        thread::spawn(move || {
            let mut piece = vec![0; 4096];
            while let Ok(n @ 1..) = out.read(&mut piece) {
                if tx.send(piece[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keys: script.stdin.take(),
            script,
            drawn,
            text: String::new(),
            columns: NonZero::new(columns).unwrap(),
            started: Instant::now(),
            what,
        }
    }

    /// Reads the next output. False at the end.
    fn more(&mut self) -> bool {
        let left = DEADLINE.saturating_sub(self.started.elapsed());
        match self.drawn.recv_timeout(left) {
            Ok(piece) => {
                self.text.push_str(&String::from_utf8_lossy(&piece));
                true
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => false,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("{} hangs after\n{:?}", self.what, self.text)
            }
        }
    }

    /// Waits until this text appears.
    fn wait_for(&mut self, text: &str) {
        while !self.text.contains(text) {
            assert!(self.more(), "{}: no {text:?} in {:?}", self.what, self.text);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// Waits until the command ends.
    fn end(mut self) -> Seen {
        while self.more() {}
        let status = self.script.wait().unwrap();
        let mut screen = vt100::Parser::new(ROWS, self.columns, 0);
        screen.process(self.text.as_bytes());
        Seen {
            code: status.code(),
            screen: screen.screen().contents(),
            drawn: std::mem::take(&mut self.text),
            columns: self.columns.get().into(),
            what: std::mem::take(&mut self.what),
        }
    }
}

/// What a user would have seen.
struct Seen {
    code: Option<i32>,
    /// The final screen.
    screen: String,
    /// All output, including cursor movements.
    drawn: String,
    columns: usize,
    what: String,
}

impl Seen {
    /// All progress lines: those that were overwritten.
    fn progress(&self) -> Vec<&str> {
        let lines = self.drawn.split(END_OF_LINE);
        let lines: Vec<&str> = lines.filter_map(|l| l.rsplit('\r').next()).collect();
        // Output after the last line end is not overwritten.
        lines[..lines.len() - 1].to_vec()
    }

    /// Checks the exit status, that this progress was shown with no line too wide, and that none of it is left.
    fn check(&self, code: i32, shown: &[&str]) {
        let all = format!("{}\n{}\n{:?}", self.what, self.screen, self.drawn);
        assert_eq!(self.code, Some(code), "{all}");
        let progress = self.progress();
        for what in shown {
            assert!(progress.iter().any(|l| l.contains(what)), "{what}: {all}");
        }
        for line in &progress {
            // Space must remain for the terminal's `^C` and for the cursor.
            assert!(line.chars().count() + 2 < self.columns, "{line:?}: {all}");
            let left = line.trim();
            assert!(left.is_empty() || !self.screen.contains(left), "{all}");
        }
        assert!(!self.screen.contains("^C"), "{all}");
        assert!(!self.screen.contains(" left"), "{all}");
    }
}

/// Runs a command until it ends.
fn run(dir: &Path, columns: u16, args: &[&str]) -> Seen {
    Terminal::start(dir, columns, args).end()
}

/// A folder with `images`, and `a.pack` made from them with this side in pixels.
fn folder_with_pack(n_images: usize, side: u32) -> TempDir {
    let dir = temp_dir();
    let (source, out) = (dir.path().join("images"), dir.path().join("a.pack"));
    many_links(&source, n_images);
    let [source, out] = [&source, &out].map(|path| path.to_str().unwrap());
    let size = format!("{side}x{side}");
    let result = packds(&["convert", source, out, "--resize", &size, "--chunk", "16"]);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    dir
}

#[test]
fn verifying_a_pack_on_several_threads_ends_on_a_terminal() {
    // Four work items of 16 MiB, so that all threads have work.
    let dir = folder_with_pack(80, 512);
    for columns in [80, 50, 200] {
        for jobs in ["0", "1", "2", "4"] {
            let args = ["verify", "a.pack", "--jobs", jobs];
            run(dir.path(), columns, &args).check(0, &["verifying"]);
        }
    }
}

#[test]
fn every_command_with_a_bar_ends_on_a_terminal_and_takes_its_bar_away() {
    let dir = folder_with_pack(600, 64);
    let of = |jobs: &'static str, columns| {
        let run = |args: &[&str], jobs_too: bool| {
            let mut all = args.to_vec();
            if jobs_too {
                all.extend(["--jobs", jobs]);
            }
            run(dir.path(), columns, &all)
        };
        run(&["verify", "a.pack"], true).check(0, &["verifying"]);
        let small = ["--resize", "short:32", "--crop", "center:32", "--force"];
        let mut convert = vec!["convert", "images", "b.pack"];
        convert.extend(small);
        let shown = ["listing", "planning", "converting", "writing to disk"];
        run(&convert, true).check(0, &shown);
        run(&["convert", "images", "b.pack", "--dry-run"], true).check(0, &["listing", "planning"]);
        for target in ["b.npy", "b.h5", "b.tar", "b.parquet"] {
            run(&["export", "a.pack", target, "--force"], true).check(0, &["exporting", "writing"]);
        }
        run(&["extract", "a.pack", "files", "--force"], true).check(0, &["extracting"]);
        run(&["subset", "a.pack", "c.pack", "--force"], true).check(0, &["copying", "writing"]);
        run(&["merge", "a.pack", "a.pack", "c.pack", "--force"], true).check(0, &["copying", "writing"]);
        run(&["split", "a.pack", "c.pack", "--folds", "2", "--force"], true).check(0, &["dividing", "copying"]);
        run(&["show", "a.pack", "-o", "b.png", "--force"], false).check(0, &["drawing"]);
    };
    for columns in [80, 50, 200] {
        for jobs in ["1", "2"] {
            of(jobs, columns);
        }
    }
}

#[test]
fn benchmarks_end_on_a_terminal() {
    let dir = folder_with_pack(600, 64);
    let quick = ["--quick", "--formats", "npy,packds-raw", "--cache", "warm"];
    for columns in [80, 50] {
        let mut formats = vec!["bench", "formats", "a.pack"];
        formats.extend(quick);
        run(dir.path(), columns, &formats).check(0, &["writing npy"]);
        let load = ["bench", "load", "a.pack", "--batch", "16", "--seconds", "0.2"];
        run(dir.path(), columns, &load).check(0, &["slice 1"]);
        run(dir.path(), columns, &["doctor", "a.pack", "--seconds", "0.5"]).check(0, &["loading from"]);
        let tune = ["bench", "tune", "a.pack", "--quick", "--jobs", "1", "--prefetch", "1,2", "--batch", "16"];
        run(dir.path(), columns, &tune).check(0, &["1 of 2 steps"]);
    }
}

#[test]
fn every_split_has_a_bar_and_its_report_appears_when_it_is_done() {
    let dir = temp_dir();
    for split in ["train", "val"] {
        many_links(&dir.path().join("images").join(split).join("cat"), 40);
    }
    for columns in [80, 50] {
        let args = ["convert", "images", "out.pack", "--split", "all", "--force"];
        let seen = run(dir.path(), columns, &args);
        let shown = ["train: converting", "val: planning", "val: converting"];
        seen.check(0, &shown);
        let report = seen.drawn.find("out.train.pack: ").unwrap();
        assert!(report < seen.drawn.find("val: planning").unwrap());
        let last = seen.progress().into_iter().rfind(|l| l.contains("val: c"));
        // A rate measured from the start of the first split would differ.
        assert!(last.unwrap().contains(" of 40 images"), "{last:?}");
    }
}

/// What a command writes to a terminal if these environment variables are set.
fn written(variables: &str, args: &str, dir: &Path) -> String {
    let line = format!("TERM=xterm {variables} exec '{}' {args}", binary().display());
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(dir).env_remove("NO_COLOR");
    String::from_utf8(command.stdin(Stdio::null()).output().unwrap().stdout).unwrap()
}

#[test]
fn what_cannot_draw_a_line_again_gets_none() {
    let dir = folder_with_pack(600, 64);
    let text = written("TERM=dumb", "verify a.pack", dir.path());
    assert!(text.contains("a.pack: ok") && !text.contains('\x1b'), "{text:?}");
}

#[test]
fn a_terminal_gets_coloured_errors_unless_it_should_not() {
    let dir = temp_dir();
    let red = "packds: \x1b[1m\x1b[31merror:\x1b[0m ";
    for args in ["info none.pack", "info"] {
        assert!(written("", args, dir.path()).starts_with(red), "{args}");
        for (variables, option) in [("NO_COLOR=1", ""), ("TERM=dumb", ""), ("", "--color never")] {
            let text = written(variables, &format!("{args} {option}"), dir.path());
            assert!(text.starts_with("packds: error: ") && !text.contains('\x1b'), "{variables} {option}: {text:?}");
        }
        let text = written("NO_COLOR=1", &format!("{args} --color always"), dir.path());
        assert!(text.starts_with(red), "{text:?}");
    }
    fs::create_dir_all(dir.path().join("images/dog")).unwrap();
    many_links(&dir.path().join("images/cat"), 2);
    let text = written("", "convert images out.pack", dir.path());
    assert!(text.contains("packds: \x1b[1m\x1b[33mwarning:\x1b[0m class 'dog'"), "{text:?}");
}

#[test]
fn quiet_draws_nothing() {
    let dir = folder_with_pack(600, 64);
    for args in [&["verify", "a.pack", "-q"][..], &["extract", "a.pack", "files", "-q"]] {
        let seen = run(dir.path(), 80, args);
        assert_eq!((seen.code, seen.drawn.as_str()), (Some(0), ""), "{}", seen.what);
    }
}

#[test]
fn a_table_is_cut_to_the_width_of_the_terminal() {
    let dir = temp_dir();
    let long = dir.path().join("images").join("a-class-with-a-rather-long-name-for-a-class-in-this-test");
    many_links(&long, 3);
    let converted =
        packds(&["convert", dir.path().join("images").to_str().unwrap(), dir.path().join("a.pack").to_str().unwrap()]);
    assert_eq!(converted.status.code(), Some(0), "{}", stderr(&converted));
    for columns in [30, 50, 80, 200] {
        let seen = run(dir.path(), columns, &["head", "a.pack"]);
        assert_eq!(seen.code, Some(0));
        let lines: Vec<&str> = seen.drawn.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:?}");
        assert_eq!(lines.iter().any(|line| line.contains('\u{2026}')), columns < 200, "{lines:?}");
        assert!(lines[1].starts_with("0 "), "{lines:?}");
    }
}

/// The lines that a command writes to stdout on a terminal of this width.
fn results(dir: &Path, columns: usize, args: &str) -> Vec<String> {
    let line = format!("stty cols {columns}; exec '{}' {args} 2>/dev/null", binary().display());
    let mut command = Command::new("script");
    let output = command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{args}: {}", stdout(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn lines_and_tables_fit_the_terminal() {
    let dir = folder_with_pack(600, 64);
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::copy(fixture("images/folder/cat/a.jpg"), dir.path().join("photos/a.jpg")).unwrap();
    let commands = [
        "info a.pack --shuffle --batch 16",
        "formats",
        "verify a.pack",
        "convert images b.pack --force --verbose",
        "convert images b.pack --dry-run --explain",
        "export a.pack b.npy --force",
        "subset a.pack c.pack --force",
        "split a.pack c.pack --ratio 0.9,0.1 --force",
        "merge a.pack a.pack c.pack --force",
        "bench formats a.pack --quick --formats npy,packds-raw --cache warm --step-ms 1",
        "bench tune a.pack --quick --jobs 1 --prefetch 1,2 --batch 16",
        "bench load a.pack --batch 16 --seconds 0.1",
        "bench convert photos --rounds 1",
        "doctor a.pack --seconds 0.3",
    ];
    for args in commands {
        for columns in [50, 80, 200] {
            for line in results(dir.path(), columns, args) {
                assert!(line.chars().count() <= columns, "{columns} {args}: {line}");
            }
        }
    }
}

#[test]
fn lines_are_wrapped_between_words() {
    let dir = folder_with_pack(3, 64);
    let words = |lines: &[String]| -> Vec<String> {
        lines.iter().flat_map(|line| line.split_whitespace().map(str::to_owned)).collect()
    };
    let long = "no/such/folder/".repeat(6) + "a.pack";
    let command = format!("stty cols 50; exec '{}' info {long} 2>&1", binary().display());
    let mut script = Command::new("script");
    let ran = script.args(["-q", "-c", &command, "/dev/null"]).current_dir(dir.path()).stdin(Stdio::null()).output();
    let said = stdout(&ran.unwrap());
    assert!(said.lines().all(|line| line.chars().count() <= 50 || line.contains(&long)), "{said}");
    assert!(said.contains("no such file\r\n") || said.lines().count() > 2, "{said}");
    for args in [&["info", "a.pack"][..], &["formats"]] {
        let whole = Command::new(binary()).args(args).current_dir(dir.path()).output().unwrap();
        let whole: Vec<String> = stdout(&whole).lines().map(str::to_owned).collect();
        for columns in [50, 80] {
            let lines = results(dir.path(), columns, &args.join(" "));
            assert_eq!(words(&lines), words(&whole));
            assert!(lines.len() > whole.len(), "{lines:?}");
        }
        assert_eq!(results(dir.path(), 400, &args.join(" ")), whole);
    }
}

/// A folder that takes a few seconds to convert.
fn slow_source(dir: &Path) {
    many_links(&dir.join("images"), 20_000);
}

#[test]
fn ctrl_c_leaves_a_clean_line_and_exits_with_130() {
    let dir = temp_dir();
    slow_source(dir.path());
    let args = ["convert", "images", "out.pack", "--mode", "encoded", "--quality", "80"];
    for columns in [80, 50] {
        let mut terminal = Terminal::start(dir.path(), columns, &args);
        terminal.wait_for("converting [");
        terminal.press(b"\x03");
        let seen = terminal.end();
        seen.check(130, &["converting ["]);
        let said = seen.screen.lines().last().unwrap().trim_end();
        assert_eq!(said, "packds: interrupted; nothing was written");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn every_command_with_a_bar_leaves_a_clean_line_when_it_is_interrupted() {
    // Images that are slow to draw, to compress and to encode.
    let dir = folder_with_pack(150, 400);
    many_links(&dir.path().join("many"), 20_000);
    let cases: [(&[&str], &str, &str); 11] = [
        (&["verify", "a.pack", "a.pack", "a.pack"], "verifying", "interrupted"),
        (&["bench", "load", "a.pack", "--batch", "16", "--seconds", "9"], "slice 1", "interrupted"),
        (&["bench", "tune", "a.pack", "--batch", "16"], "steps, 1 s", "interrupted"),
        (&["doctor", "a.pack", "--batch", "16"], "loading from", "interrupted"),
        (&["convert", "many", "b.pack", "--dry-run"], "planning", "interrupted"),
        (&["convert", "many", "b.pack"], "planning", "interrupted; nothing was written"),
        (&["export", "a.pack", "b.h5", "--codec", "gzip:9"], "exporting", "interrupted; nothing was written"),
        (
            &["extract", "a.pack", "files", "--force"],
            "extracting",
            "interrupted; the samples written so far are complete",
        ),
        (&["show", "a.pack", "-o", "b.png", "--random", "150", "--size", "400"], "drawing", "interrupted"),
        (&["bench", "formats", "a.pack", "--formats", "npy", "--cache", "warm"], "writing npy", "interrupted"),
        (&["bench", "convert", "many"], "raw, warm-up", "interrupted"),
    ];
    for (args, shown, last) in cases {
        for columns in [50, 80, 200] {
            let mut terminal = Terminal::start(dir.path(), columns, args);
            terminal.wait_for(shown);
            terminal.press(b"\x03");
            let seen = terminal.end();
            // On a fast machine, the command may have finished already.
            if seen.code == Some(0) {
                continue;
            }
            seen.check(130, &[shown]);
            let said = seen.screen.split_whitespace().collect::<Vec<_>>().join(" ");
            // `verify` prints a line for each pack that it has finished.
            assert!(said.contains(&format!("packds: {last}")), "{args:?}: {}", seen.screen);
            assert!(!dir.path().join("b.pack").exists() && !dir.path().join("b.h5").exists());
        }
    }
}

#[test]
fn a_listing_that_is_interrupted_leaves_a_clean_line() {
    let dir = temp_dir();
    // The conversion takes long enough to press a key, because each line's file is looked up.
    fs::copy(fixture("images/folder/cat/a.jpg"), dir.path().join("a.jpg")).unwrap();
    let manifest = "path,label\n".to_owned() + &"a.jpg,0\n".repeat(1_000_000);
    fs::write(dir.path().join("m.csv"), manifest).unwrap();
    let mut terminal = Terminal::start(dir.path(), 80, &["convert", "m.csv", "out.pack"]);
    terminal.wait_for("listing");
    terminal.press(b"\x03");
    let seen = terminal.end();
    seen.check(130, &["listing"]);
    assert_eq!(seen.screen.trim_end(), "packds: interrupted");
}

#[test]
fn what_is_interrupted_while_it_extracts_leaves_whole_files() {
    let dir = folder_with_pack(150, 400);
    let mut terminal = Terminal::start(dir.path(), 80, &["extract", "a.pack", "files"]);
    terminal.wait_for("extracting");
    terminal.press(b"\x03");
    let seen = terminal.end();
    // On a fast machine, the command may have finished already.
    if seen.code == Some(130) {
        seen.check(130, &["extracting"]);
        let said = seen.screen.lines().last().unwrap();
        assert!(said.contains("interrupted; the samples written so far are complete"));
    }
    for name in fs::read_dir(dir.path().join("files")).unwrap() {
        let bytes = fs::read(name.unwrap().path()).unwrap();
        assert_eq!(bytes[bytes.len() - 8..bytes.len() - 4], *b"IEND");
    }
}

/// Whether the process whose id is in this file is running.
fn runs(file: &Path) -> bool {
    let number = fs::read_to_string(file).unwrap();
    Path::new("/proc").join(number.trim()).join("exe").exists()
}

#[test]
fn a_command_that_the_doctor_runs_prints_above_the_progress_and_ends_with_it() {
    let dir = folder_with_pack(3, 64);
    // The shell and its child, which never end by themselves.
    let script = "echo $$ >shell; sleep 1000 & echo $! >child; echo started; printf bar; wait";
    for columns in [50, 80, 200] {
        let mut terminal = Terminal::start(dir.path(), columns, &["doctor", "a.pack", "--", "sh", "-c", script]);
        terminal.wait_for("started");
        terminal.wait_for(", 1 s");
        terminal.press(b"\x03");
        let seen = terminal.end();
        seen.check(130, &["running the command to time its steps"]);
        assert_eq!(seen.screen.trim_end(), "started\nbar\npackds: interrupted");
        assert!(!runs(&dir.path().join("shell")) && !runs(&dir.path().join("child")));
    }
}

#[test]
fn what_a_command_printed_last_is_shown() {
    let dir = folder_with_pack(3, 64);
    let seen = run(dir.path(), 80, &["doctor", "a.pack", "--", "sh", "-c", "echo first; echo last >&2"]);
    seen.check(2, &["running the command to time its steps"]);
    assert!(seen.screen.starts_with("first\nlast\npackds: error: the command took no batch"), "{}", seen.screen);
}
