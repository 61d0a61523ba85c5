//! Tests which process may write under a working name, and which files are never touched.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::working::{claim, open};
use super::*;

fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (target, working) = (dir.path().join("x.pack"), dir.path().join(".x.pack.packing"));
    (dir, target, working)
}

fn pipe(path: &Path) {
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).unwrap();
}

#[test]
fn a_working_file_opened_before_another_conversion_ends_is_not_taken_for_ours() {
    let (_dir, target, working) = folder();
    let first = Output::create(&target, true).unwrap();
    // The second conversion has opened the file but not yet locked it.
    let opened = open(&working, Kind::File, &target).unwrap().unwrap();
    first.file().write_all(b"whole").unwrap();
    first.commit().unwrap();
    let claimed = claim(opened, &working, Kind::File, &target).unwrap();
    assert!(claimed.is_none(), "the working name no longer refers to this file");
    // The next attempt creates its own file.
    let second = Output::create(&target, true).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"whole");
    second.file().write_all(b"newer").unwrap();
    second.commit().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"newer");
}

#[test]
fn conversions_to_one_name_at_a_time_never_leave_half_a_file() {
    const BYTES: &[u8] = &[7; 4096];
    let (_dir, target, working) = folder();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Ok(output) = Output::create(&target, true) {
                            output.file().write_all(BYTES).unwrap();
                            output.commit().unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if let Ok(found) = fs::read(&target) {
                    assert!(found == BYTES, "{} bytes", found.len());
                }
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Set this before raising any failure, because the reader waits for it.
        ended.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert_eq!(fs::read(&target).unwrap(), BYTES);
    assert!(!working.exists());
}

#[test]
fn what_a_killed_conversion_left_is_used_again() {
    let (_dir, target, working) = folder();
    fs::write(&working, "half").unwrap();
    let output = Output::create(&target, false).unwrap();
    assert_eq!(fs::read(&working).unwrap(), b"");
    output.commit().unwrap();
    fs::remove_file(&target).unwrap();
    fs::create_dir(&working).unwrap();
    fs::write(working.join("half"), "").unwrap();
    let output = Output::create_kind(&target, false, true).unwrap();
    assert_eq!(fs::read_dir(&working).unwrap().count(), 0);
    output.commit().unwrap();
    assert!(target.is_dir());
}

#[test]
fn links_and_pipes_under_the_working_name_are_refused_and_left_alone() {
    let (dir, target, working) = folder();
    let (precious, full) = (dir.path().join("precious"), dir.path().join("full"));
    fs::write(&precious, "precious").unwrap();
    fs::create_dir(&full).unwrap();
    fs::write(full.join("a"), "precious").unwrap();
    let refused = |is_folder: bool, found: &str| {
        let error = Output::create_kind(&target, true, is_folder).err().unwrap();
        let text = error.to_string();
        assert!(text.contains(".x.pack.packing") && text.contains(found), "{text}");
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        assert_eq!(fs::read(full.join("a")).unwrap(), b"precious");
        assert!(!target.exists());
    };
    for linked in [&precious, &full, &dir.path().join("nothing")] {
        symlink(linked, &working).unwrap();
        refused(false, "a symbolic link");
        refused(true, "a symbolic link");
        fs::remove_file(&working).unwrap();
    }
    fs::hard_link(&precious, &working).unwrap();
    refused(false, "hard links");
    refused(true, "a file");
    fs::remove_file(&working).unwrap();
    pipe(&working);
    refused(false, "a pipe");
    refused(true, "a file");
    fs::remove_file(&working).unwrap();
    fs::create_dir(&working).unwrap();
    refused(false, "a folder");
}

#[test]
fn another_users_working_file_is_refused() {
    let (_dir, target, working) = folder();
    fs::write(&working, "theirs").unwrap();
    // Only root can change a file's owner.
    if std::os::unix::fs::chown(&working, Some(65_534), None).is_err() {
        return;
    }
    let error = Output::create(&target, true).err().unwrap().to_string();
    assert!(error.contains("another user"), "{error}");
    assert_eq!(fs::read(&working).unwrap(), b"theirs");
}

#[test]
fn only_regular_files_are_replaced() {
    let (dir, target, _) = folder();
    pipe(&target);
    for force in [false, true] {
        let error = check_output(&target, force).unwrap_err().to_string();
        assert!(
            error.ends_with("this is a pipe, socket or device, but the output must be a regular file or a new name"),
            "{error}"
        );
        assert!(Output::create(&target, force).is_err());
    }
    assert!(fs::metadata(&target).unwrap().file_type().is_fifo());
    let link = dir.path().join("link.pack");
    symlink(&target, &link).unwrap();
    assert!(check_output(&link, true).is_err(), "a link to a pipe");
    fs::remove_file(&target).unwrap();
    let error = check_output(&link, true).unwrap_err().to_string();
    assert!(error.contains("a link to a file that does not exist"), "{error}");
    assert!(check_output(Path::new("/dev/null"), true).is_err());
}

#[test]
fn a_link_is_followed_and_stays() {
    let (dir, link, _) = folder();
    let far = dir.path().join("far");
    fs::create_dir(&far).unwrap();
    let place = far.join("real.pack");
    fs::write(&place, "old").unwrap();
    symlink("far/real.pack", &link).unwrap();
    assert!(matches!(Output::create(&link, false), Err(ConvertError::OutputExists { .. })));
    let output = Output::create(&link, true).unwrap();
    assert!(far.join(".real.pack.packing").exists());
    output.file().write_all(b"new").unwrap();
    output.commit().unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&place).unwrap(), b"new");
    // The output replaces the empty folder that the link points to.
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    let output = Output::create_kind(&link, false, true).unwrap();
    fs::write(output.working().join("a"), "").unwrap();
    output.commit().unwrap();
    assert!(link.is_symlink() && place.join("a").exists());
}
