//! A forked child gets an error, and can open the pack again.

#![cfg(test)]

use std::path::Path;

use packds_reader::loader::{LoadError, Loader};
use packds_reader::open;

/// Returns what the child found, as an exit status.
fn in_child(loader: &Loader, epoch: &mut packds_reader::loader::Epoch, path: &Path) -> i32 {
    if !matches!(epoch.next(), Some(Err(LoadError::Forked { .. }))) {
        return 1;
    }
    if !matches!(loader.epoch(1), Err(LoadError::Forked { .. })) {
        return 2;
    }
    let anew = open(path).map_err(LoadError::from);
    let anew = anew.and_then(|pack| Loader::builder(pack).batch(2).build());
    match anew.and_then(|loader| loader.epoch(0)?.collect::<Result<Vec<_>, _>>()) {
        Ok(batches) if !batches.is_empty() => 0,
        _ => 3,
    }
}

#[test]
fn a_forked_child_gets_an_error_and_opens_the_pack_anew() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
    let path = folder.join("short_last_chunk.pack");
    let pack = open(&path).unwrap();
    let loader = Loader::builder(pack).batch(2).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    // SAFETY: the child allocates and starts threads. POSIX allows this only if the parent has a single thread, but
    // glibc makes its allocator usable in the child. The child ends without running this test's destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = in_child(&loader, &mut epoch, &path);
        // SAFETY: this ends the child immediately.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: `status` is writable, and this process created the child.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert!(libc::WIFEXITED(status), "killed by a signal: {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
    // The parent continues.
    assert!(epoch.all(|batch| batch.is_ok()));
}
