//! An interrupted conversion leaves nothing under the final name, and nothing that blocks the next one.

#![cfg(test)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packds_convert::{ConvertOptions, ExportOptions, Observer, Phase, Progress, convert, export};
use packds_format::Pack;

use crate::support::{Folder, SamplePack, binary, fixture, many_links, pack, packds, signal, stderr, temp_dir};

/// A folder with enough links to images that converting it takes a few seconds.
fn large_source(dir: &Path) -> PathBuf {
    let source = dir.join("source");
    many_links(&source, 20_000);
    source
}

fn start(source: &Path, out: &Path) -> Child {
    let mut command = Command::new(binary());
    command.arg("convert").arg(source).arg(out).args(["--resize", "short:256", "--crop", "center:224", "--jobs", "1"]);
    // The command has its own process group, so that signals reach the command but not the test.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the working file has content.
fn wait_for_bytes(working: &Path) {
    let started = Instant::now();
    while fs::metadata(working).map_or(0, |m| m.len()) < 1 << 20 {
        assert!(started.elapsed() < Duration::from_secs(60), "the conversion writes nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_with_one_line_and_leaves_nothing() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let out = dir.path().join("out.pack");
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let child = start(&source, &out);
        wait_for_bytes(&dir.path().join(".out.pack.packing"));
        signal(&child, name);
        let result = child.wait_with_output().unwrap();
        assert_eq!(result.status.code(), Some(code), "{}", stderr(&result));
        assert_eq!(stderr(&result), "packds: interrupted; nothing was written\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the source is left");
    }
}

#[test]
fn signals_that_arrive_twice_leave_nothing() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let out = dir.path().join("out.pack");
    // Of two different signals, either may be seen first.
    for (first, second, codes) in [("-INT", "-INT", [130; 2]), ("-HUP", "-HUP", [129; 2]), ("-INT", "-HUP", [129, 130])]
    {
        let child = start(&source, &out);
        wait_for_bytes(&dir.path().join(".out.pack.packing"));
        signal(&child, first);
        signal(&child, second);
        let result = child.wait_with_output().unwrap();
        assert_eq!(stderr(&result), "packds: interrupted; nothing was written\n");
        assert!(result.status.code().is_some_and(|code| codes.contains(&code)), "{:?}", result.status);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the source is left");
    }
}

#[test]
fn a_command_that_does_not_stop_ends_when_it_is_asked_again() {
    let folder = Folder::new();
    SamplePack { n_samples: 20_000, ..SamplePack::default() }.write(&folder, "a.pack");
    let mut command = folder.command(&["labels", "a.pack"]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // The command soon waits for room in the pipe. It ignores the second signal, because that comes too early.
    std::thread::sleep(Duration::from_secs(1));
    let first = Instant::now();
    signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(200));
    // On a busy machine, the second signal may come too late.
    let is_early = first.elapsed() < Duration::from_millis(1500);
    assert!(!is_early || child.try_wait().unwrap().is_none());
    std::thread::sleep(Duration::from_secs(2));
    if child.try_wait().unwrap().is_none() {
        signal(&child, "-INT");
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "packds: ended before it could stop\n");
}

#[test]
fn a_benchmark_that_is_interrupted_removes_its_files() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    let [images, work] = [images.as_path(), dir.path()].map(|path| path.to_str().unwrap());
    let formats = "--formats npy,packds-raw --cache warm --rounds 5";
    let in_work = format!("{formats} --work {work}");
    let out = dir.path().join("new/out");
    let in_out = format!("{formats} --out {}", out.display());
    for (what, options, until, signalled, code) in [
        ("formats", formats, "round 1 of 5", "-INT", 130),
        ("formats", in_work.as_str(), "round 1 of 5", "-TERM", 143),
        // The folders that the command created are removed too.
        ("formats", in_out.as_str(), "round 1 of 5", "-INT", 130),
        ("convert", "--rounds 50", "raw, round 1 of 50", "-INT", 130),
    ] {
        let mut command = Command::new(binary());
        command.args(["bench", what, images]);
        command.args(options.split(' ')).env("TMPDIR", work);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(until) {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended by itself");
        }
        assert_eq!(fs::read_dir(work).unwrap().count(), 1);
        signal(&child, signalled);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest}");
        assert!(rest.contains("packds: interrupted; no"), "{rest}");
        assert_eq!(fs::read_dir(work).unwrap().count(), 0);
    }
}

#[test]
fn a_list_of_labels_that_is_interrupted_ends_with_a_whole_line() {
    let folder = Folder::new();
    SamplePack { n_samples: 20_000, ..SamplePack::default() }.write(&folder, "a.pack");
    let mut command = folder.command(&["labels", "a.pack"]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    out.read_line(&mut seen).unwrap();
    // The rest of the output does not fit in the pipe, so the command is still writing.
    signal(&child, "-INT");
    out.read_to_string(&mut seen).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), stderr(&ended)), (Some(130), "packds: interrupted\n".to_owned()));
    assert!(seen.ends_with(".png\n") && seen.lines().count() < 20_000);
}

#[test]
fn a_killed_conversion_leaves_no_pack_and_the_next_one_succeeds() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let (out, working) = (dir.path().join("out.pack"), dir.path().join(".out.pack.packing"));
    let mut child = start(&source, &out);
    wait_for_bytes(&working);
    // While the conversion runs, no other conversion may write the same file.
    let second = packds(&["convert", source.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(2));
    let message = format!("packds: error: {}: another conversion is writing this file\n", out.display());
    assert!(stderr(&second).starts_with(&message), "{}", stderr(&second));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.exists());
    let left = fs::read(&working).unwrap();
    assert!(
        matches!(Pack::open(left), Err(packds_format::FormatError::NoTrailer { .. })),
        "what is left is not a pack"
    );
    let images = fixture("images/same_size");
    let next = packds(&["convert", images.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    assert!(out.exists() && !working.exists());
    assert_eq!(Pack::open(fs::read(&out).unwrap()).unwrap().n_samples(), 20);
}

#[test]
fn a_full_disk_ends_with_one_line_and_leaves_nothing() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let small = dir.path().join("small");
    fs::create_dir(&small).unwrap();
    // A file system of 8 MiB in a separate mount namespace.
    let script = "mount -t tmpfs -o size=8m none \"$1\" || exit 77; \"$2\" convert \"$3\" \"$1/out.pack\" \
                  --resize 224x224; code=$?; ls -A \"$1\"; exit $code";
    let result = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, "sh"])
        .args([&small, &binary(), &source])
        .output();
    match result {
        Ok(result) if result.status.code() == Some(2) => {
            assert!(result.stdout.is_empty(), "left behind: {}", String::from_utf8_lossy(&result.stdout));
            let text = stderr(&result);
            let expected = format!("packds: error: {}: No space left on device", small.join("out.pack").display());
            assert!(text.starts_with(&expected), "{text}");
        }
        // Skipped only if the system does not allow mounting. Anything else is a failure.
        Ok(result) if result.status.code() == Some(77) || stderr(&result).contains("unshare") => {
            println!("SKIPPED: no mount namespaces here: {}", stderr(&result));
        }
        other => panic!("{other:?}"),
    }
}

/// Stops a conversion or an export at this point, after its last task was started.
struct StopAt {
    is_there: fn(&Progress) -> bool,
    reached: AtomicBool,
}

impl StopAt {
    const LATE: [fn(&Progress) -> bool; 2] = [
        |progress| progress.samples == progress.total && progress.phase != Phase::Plan,
        |progress| progress.phase == Phase::Sync,
    ];

    fn new(is_there: fn(&Progress) -> bool) -> Self {
        Self { is_there, reached: AtomicBool::new(false) }
    }
}

impl Observer for StopAt {
    fn progress(&self, progress: Progress) {
        if (self.is_there)(&progress) {
            self.reached.store(true, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

#[test]
fn what_is_stopped_after_the_last_task_replaces_nothing() {
    let (dir, pack) = pack(&[]);
    let source = fixture("images/same_size");
    let opened = Pack::open(fs::read(&pack).unwrap()).unwrap();
    for is_there in StopAt::LATE {
        let options = ConvertOptions { force: true, ..ConvertOptions::default() };
        let before = fs::read(&pack).unwrap();
        let stopped = convert(&source, pack.as_ref(), &options, &StopAt::new(is_there));
        assert_eq!(stopped.unwrap_err().to_string(), "interrupted; nothing was written");
        assert_eq!(fs::read(&pack).unwrap(), before);
        let options = ExportOptions { force: true, ..ExportOptions::default() };
        let target = dir.path().join("a.npy");
        fs::write(&target, "old").unwrap();
        let stopped = export(&opened, &target, &options, &StopAt::new(is_there));
        assert_eq!(stopped.unwrap_err().to_string(), "interrupted; nothing was written");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}

#[test]
fn a_signal_that_was_ignored_before_stays_ignored() {
    let dir = temp_dir();
    many_links(&dir.path().join("source"), 1000);
    // Like `nohup`: the parent ignores the signals before it executes the command.
    let line = format!("trap '' HUP INT; exec '{}' convert source out.pack --resize 224x224", binary().display());
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(dir.path());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    wait_for_bytes(&dir.path().join(".out.pack.packing"));
    signal(&child, "-HUP");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(dir.path().join("out.pack").exists());
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_says_so() {
    let dir = temp_dir();
    many_links(&dir.path().join("source"), 50);
    let run = |limit: &str, args: &str| {
        let line = format!("ulimit -f {limit}; exec '{}' {args}", binary().display());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(dir.path());
        command.output().unwrap()
    };
    let made = run("unlimited", "convert source a.pack");
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let before = fs::read(dir.path().join("a.pack")).unwrap();
    for args in [
        "convert source a.pack --force",
        "export a.pack a.npy",
        "export a.pack a.h5",
        "export a.pack a.parquet --images pixels",
        "export a.pack images --to image-folder",
        "extract a.pack files",
        "subset a.pack b.pack",
        "merge a.pack a.pack b.pack",
    ] {
        let result = run("8", args);
        let said = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{args}: {:?} {said}", result.status);
        assert!(said.contains("File too large"), "{args}: {said}");
        assert!(said.contains("'ulimit -f'"), "{args}: {said}");
    }
    assert_eq!(fs::read(dir.path().join("a.pack")).unwrap(), before);
    let left = fs::read_dir(dir.path()).unwrap();
    let names = left.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["a.pack", "files", "source"]);
}
