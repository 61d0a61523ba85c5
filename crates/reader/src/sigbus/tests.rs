//! Tests that raise SIGBUS. Tests that end the process run in a child process: this test binary again, with a single
//! test.

use std::env;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use memmap2::{Mmap, MmapOptions};

use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Schema};

use super::{default_action, exchange, protect};
use crate::arena::{SlotMut, SlotRef};
use crate::device::{Device, DeviceError, InPlace, Placement, Receiver, Transfer};
use crate::loader::{LoadError, Loader, LoaderBuilder};
use crate::mmap::MappedFile;
use crate::plan::Order;
use crate::storage::Storage;
use crate::{Access, Pack, ReadError, open};

/// Whether the system refuses to install the handler. Only set in processes with a single test.
pub(super) static IS_REFUSED: AtomicBool = AtomicBool::new(false);

const PAGES: usize = 16;

/// A file filled with 7s. It has already been deleted, so other code cannot open it.
fn file() -> (File, usize) {
    let page = rustix::param::page_size();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; PAGES * page]).unwrap();
    (file, page)
}

fn len(n: usize) -> u64 {
    u64::try_from(n).unwrap()
}

/// Runs one of these tests again in a child process. An environment variable marks the child.
fn child(test: &str) -> ExitStatus {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("sigbus::tests::{test}")])
        .env("PACKDS_TEST_CHILD", "1")
        .output()
        .unwrap()
        .status
}

fn is_child() -> bool {
    env::var_os("PACKDS_TEST_CHILD").is_some()
}

/// Reads a page of an unguarded mapping after the file was truncated.
fn fault_elsewhere() {
    let (file, page) = file();
    // SAFETY: this is unsafe on purpose. The file is truncated while it is mapped, and the process ends.
    let map: Mmap = unsafe { MmapOptions::new().map(&file) }.unwrap();
    file.set_len(0).unwrap();
    std::hint::black_box(map[3 * page]);
}

/// Survives the loss of a page in a guarded mapping. This proves that the handler is installed.
fn survive() {
    let (file, page) = file();
    let map = MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(map.bytes()[page], 0);
}

#[test]
fn lost_pages_read_as_zeros_and_are_told() {
    let (file, page) = file();
    let map = MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap();
    assert_eq!((map.bytes()[9 * page], map.first_lost()), (7, None));
    file.set_len(len(3 * page)).unwrap();
    assert_eq!((map.bytes()[2 * page], map.first_lost()), (7, None));
    assert_eq!(map.bytes()[5 * page + 9], 0);
    assert_eq!(map.first_lost(), Some(len(5 * page + 9)));
    assert!(map.bytes()[3 * page..].iter().all(|byte| *byte == 0));
    assert_eq!(map.first_lost(), Some(len(5 * page + 9)));
    assert!(map.bytes()[..3 * page].iter().all(|byte| *byte == 7));
}

#[test]
fn what_is_lost_stays_lost_until_it_is_mapped_again() {
    let (file, page) = file();
    for _ in 0..3 {
        file.set_len(len(PAGES * page)).unwrap();
        let map = MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap();
        assert_eq!(map.first_lost(), None);
        file.set_len(0).unwrap();
        assert_eq!(map.bytes()[0], 0);
        file.set_len(len(PAGES * page)).unwrap();
        assert_eq!((map.bytes()[0], map.first_lost()), (0, Some(0)));
    }
}

#[test]
fn each_of_many_maps_is_guarded_for_itself() {
    let (file, page) = file();
    let maps: Vec<MappedFile> =
        (0..200).map(|_| MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap()).collect();
    file.set_len(len(page)).unwrap();
    for map in maps.iter().skip(1).step_by(2) {
        assert_eq!(map.bytes()[4 * page], 0);
    }
    for (i, map) in maps.iter().enumerate() {
        let expected = (i % 2 == 1).then(|| len(4 * page));
        assert_eq!(map.first_lost(), expected, "{i}");
    }
}

#[test]
fn threads_that_read_while_a_file_is_cut_short_go_on() {
    let (file, page) = file();
    let map = MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let zeros = map.bytes().iter().filter(|byte| **byte == 0).count();
                    // Every thread that read a zero sees the loss, no matter which thread faulted.
                    assert!(zeros == 0 || map.first_lost().is_some());
                    if zeros > 0 {
                        break;
                    }
                    thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            // Other guards are created and dropped at the same time.
            for _ in 0..500 {
                let (file, page) = self::file();
                drop(MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap());
            }
        });
        file.set_len(len(5 * page)).unwrap();
    });
}

#[test]
fn a_fault_elsewhere_still_ends_the_process() {
    if is_child() {
        survive();
        fault_elsewhere();
    } else {
        let status = child("a_fault_elsewhere_still_ends_the_process");
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}

#[test]
fn a_signal_that_is_sent_still_ends_the_process() {
    if is_child() {
        exchange(Some(&default_action())).unwrap();
        survive();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::BUS).unwrap();
    } else {
        let status = child("a_signal_that_is_sent_still_ends_the_process");
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}

#[test]
fn an_earlier_handler_gets_what_is_not_ours() {
    extern "C" fn leave(_: libc::c_int) {
        // SAFETY: the function has no safety conditions, and may be called in a signal handler.
        unsafe { libc::_exit(42) }
    }
    if is_child() {
        let mut action = default_action();
        action.sa_sigaction = (leave as extern "C" fn(libc::c_int)) as usize;
        exchange(Some(&action)).unwrap();
        survive();
        fault_elsewhere();
    } else {
        let status = child("an_earlier_handler_gets_what_is_not_ours");
        assert_eq!(status.code(), Some(42), "{status}");
    }
}

#[test]
fn an_earlier_handler_with_a_context_gets_what_is_not_ours() {
    extern "C" fn leave(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the handler before this one passed on the siginfo that it got from the kernel.
        let code = unsafe { (*info).si_code };
        let right = signal == libc::SIGBUS && code == libc::BUS_ADRERR;
        // SAFETY: the function has no safety conditions, and may be called in a signal handler.
        unsafe { libc::_exit(if right { 43 } else { 1 }) }
    }
    if is_child() {
        type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        let mut action = default_action();
        action.sa_sigaction = (leave as Handler) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        exchange(Some(&action)).unwrap();
        survive();
        fault_elsewhere();
    } else {
        let status = child("an_earlier_handler_with_a_context_gets_what_is_not_ours");
        assert_eq!(status.code(), Some(43), "{status}");
    }
}

#[test]
fn an_ignored_signal_stays_ignored_and_a_fault_does_not() {
    if is_child() {
        let mut action = default_action();
        action.sa_sigaction = libc::SIG_IGN;
        exchange(Some(&action)).unwrap();
        survive();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::BUS).unwrap();
        survive();
        fault_elsewhere();
    } else {
        let status = child("an_ignored_signal_stays_ignored_and_a_fault_does_not");
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs a handler, as other code may do at any time.
fn put_in_front(handler: Handler) {
    let mut action = default_action();
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO;
    exchange(Some(&action)).unwrap();
}

/// A handler that ignores previous ones.
extern "C" fn leave(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the function has no safety conditions, and may be called in a signal handler.
    unsafe { libc::_exit(44) }
}

/// Another handler.
extern "C" fn leave_too(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the function has no safety conditions, and may be called in a signal handler.
    unsafe { libc::_exit(47) }
}

/// A handler that restores the previous one and raises the signal again, like Python's `faulthandler`.
extern "C" fn give_way(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let mut ours = default_action();
    ours.sa_sigaction = super::address();
    ours.sa_flags = libc::SA_SIGINFO;
    let _ = exchange(Some(&ours));
    // SAFETY: the function has no safety conditions, and may be called in a signal handler.
    unsafe { libc::raise(signal) };
}

/// A handler that calls the previous one.
extern "C" fn call_before(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    super::handle(signal, info, context);
}

#[test]
fn a_handler_that_comes_later_is_found_behind_again() {
    if is_child() {
        survive();
        put_in_front(leave);
        // A new mapping checks the handler, and so does an explicit call.
        survive();
        put_in_front(leave);
        let (file, page) = file();
        let map = MappedFile::new(file.try_clone().unwrap(), len(PAGES * page)).unwrap();
        put_in_front(leave);
        protect().unwrap();
        file.set_len(0).unwrap();
        assert_eq!((map.bytes()[page], map.first_lost()), (0, Some(len(page))));
        // Signals for other memory are passed to the latest handler.
        put_in_front(leave_too);
        protect().unwrap();
        fault_elsewhere();
    } else {
        let status = child("a_handler_that_comes_later_is_found_behind_again");
        assert_eq!(status.code(), Some(47), "{status}");
    }
}

#[test]
fn a_handler_that_raises_the_signal_again_or_calls_back_does_not_go_round() {
    if is_child() {
        exchange(Some(&default_action())).unwrap();
        survive();
        let is_call = env::var_os("PACKDS_TEST_CALL").is_some();
        put_in_front(if is_call { call_before } else { give_way });
        survive();
        fault_elsewhere();
    } else {
        let name = "a_handler_that_raises_the_signal_again_or_calls_back_does_not_go_round";
        let status = child(name);
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
        let status = Command::new(env::current_exe().unwrap())
            .args(["--exact", &format!("sigbus::tests::{name}")])
            .envs([("PACKDS_TEST_CHILD", "1"), ("PACKDS_TEST_CALL", "1")])
            .output()
            .unwrap()
            .status;
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}

fn is_loading_ahead() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let mut names = threads.filter_map(|thread| {
        // The thread may have ended since the folder was listed.
        std::fs::read_to_string(thread.ok()?.path().join("comm")).ok()
    });
    names.any(|name| name.starts_with("packds-ahead"))
}

#[test]
fn a_handler_that_comes_in_the_middle_of_an_epoch_takes_no_protection_away() {
    if is_child() {
        let (file, loader) = loader_of_one_slot();
        let mut epoch = loader.epoch(0).unwrap();
        let batch = epoch.next().unwrap().unwrap();
        // The prefetching threads read the mapping too. Wait until they end. Otherwise the handler below could be
        // installed just after they checked.
        while is_loading_ahead() {
            thread::yield_now();
        }
        put_in_front(leave);
        file.set_len(4096).unwrap();
        drop(batch);
        let error = epoch.next().unwrap().unwrap_err();
        let is_told = matches!(error, LoadError::Read(ReadError::Changed { .. }));
        assert!(is_told, "{error}");
        // SAFETY: the function has no safety conditions.
        unsafe { libc::_exit(45) }
    } else {
        let status = child("a_handler_that_comes_in_the_middle_of_an_epoch_takes_no_protection_away");
        assert_eq!(status.code(), Some(45), "{status}");
    }
}

#[test]
fn without_a_handler_the_length_of_the_file_is_compared_before_each_batch() {
    if is_child() {
        IS_REFUSED.store(true, Ordering::Relaxed);
        exchange(Some(&default_action())).unwrap();
        let (file, loader) = loader_of_one_slot();
        let mut epoch = loader.epoch(0).unwrap();
        let batch = epoch.next().unwrap().unwrap();
        file.set_len(4096).unwrap();
        drop(batch);
        let error = epoch.next().unwrap().unwrap_err();
        let is_told = matches!(error, LoadError::Read(ReadError::Changed { .. }));
        assert!(is_told, "{error}");
        // SAFETY: the function has no safety conditions.
        unsafe { libc::_exit(46) }
    } else {
        let status = child("without_a_handler_the_length_of_the_file_is_compared_before_each_batch");
        assert_eq!(status.code(), Some(46), "{status}");
    }
}

/// Like the host, but other code installs its own handler each time a batch begins.
#[derive(Debug)]
struct Disturbed;

impl Device for Disturbed {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(self)
    }
}

impl Receiver for Disturbed {
    fn name(&self) -> &'static str {
        "disturbed"
    }

    fn recycle(&self, _: &mut SlotMut) {
        while is_loading_ahead() {
            thread::yield_now();
        }
        put_in_front(leave);
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        assert!(super::is_ours(&exchange(None).unwrap()));
        InPlace.submit(slot, len)
    }
}

#[test]
fn protection_is_looked_at_again_before_the_pieces_of_a_batch_are_filled() {
    if is_child() {
        let (_file, builder) = builder_of_one_slot();
        let loader = builder.device(Arc::new(Disturbed)).build().unwrap();
        let batches = loader.epoch(0).unwrap();
        assert_eq!(batches.map(|batch| batch.unwrap().len()).sum::<usize>(), 64);
        // SAFETY: the function has no safety conditions.
        unsafe { libc::_exit(48) }
    } else {
        let status = child("protection_is_looked_at_again_before_the_pieces_of_a_batch_are_filled");
        assert_eq!(status.code(), Some(48), "{status}");
    }
}

/// A loader that makes no further batch while one is held, and the file that it reads.
fn loader_of_one_slot() -> (File, Loader) {
    let (file, builder) = builder_of_one_slot();
    (file, builder.build().unwrap())
}

/// The builder for [`loader_of_one_slot`]. The column is stored after the body, and only pages that were read are in
/// memory.
fn builder_of_one_slot() -> (File, LoaderBuilder) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    let fields = vec![Field::tensor("x", DType::U8, &[5000]), Field::column("y", DType::I32, &[])];
    let options = PackOptions::new(Schema::new(fields).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for _ in 0..8 {
        let mut block = BlockBuilder::new(writer.schema());
        for _ in 0..8 {
            block.tensor_mut(0).unwrap().fill(7);
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    std::fs::write(&path, writer.finish(FooterParts::default()).unwrap().0).unwrap();
    let pack = Arc::new(open(&path).unwrap());
    let one = std::num::NonZero::new(1).unwrap();
    let loader = Loader::builder(pack).batch(8).order(Order::Sequential);
    let loader = loader.access(Access::Mapped).slots(one).threads(one);
    let file = File::options().write(true).open(&path).unwrap();
    (file, loader)
}
