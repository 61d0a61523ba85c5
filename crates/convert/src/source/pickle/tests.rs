//! Accepted and refused pickles.

use std::io::Write;

use super::*;
use crate::source::store::OpenFile;

/// Reads these bytes as a pickle.
fn read(bytes: &[u8]) -> Result<Tree, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let file = OpenFile::open(file.path()).unwrap();
    read_pickle(&file, 0, file.bytes).map_err(|error| error.to_string())
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err()
}

#[test]
fn values_of_all_protocols_are_put_together() {
    // {'a': [1, -2, 2.5], 'b': (True, None, 300)} in protocols 0 and 2.
    let old = b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naF2.5\nasVb\np3\n(I01\nNI300\ntp4\ns.";
    let new = b"\x80\x02}q\x00(X\x01\0\0\0aq\x01]q\x02(K\x01J\xfe\xff\xff\xffG@\x04\0\0\0\0\0\0eX\x01\0\0\0bq\x03\x88NM,\x01\x87q\x04u.";
    for pickle in [&old[..], new] {
        let tree = read(pickle).unwrap();
        let a = tree.items(tree.value(tree.root, "a").unwrap()).unwrap();
        assert_eq!((tree.int(a[0]), tree.int(a[1])), (Some(1), Some(-2)));
        assert_eq!(tree.get(a[2]), &Node::Float(2.5));
        let b = tree.items(tree.value(tree.root, "b").unwrap()).unwrap();
        assert_eq!((tree.int(b[0]), tree.int(b[2])), (Some(1), Some(300)));
    }
    let long = read(b"\x80\x02\x8a\x09\0\0\0\0\0\0\0\x40\0.").unwrap();
    assert_eq!(long.int(long.root), Some(1 << 62));
}

#[test]
fn what_would_be_called_is_named_and_never_called() {
    let error = refused(b"\x80\x02cposix\nsystem\nX\x04\0\0\0true\x85R.");
    assert!(error.contains("calls posix.system"), "{error}");
    assert!(error.contains("byte 26"), "{error}");
    let stack_global = b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.";
    assert!(refused(stack_global).contains("builtins.eval"));
    assert!(refused(b"(S'true'\nios\nsystem\n.").contains("os.system"));
    assert!(refused(b"(cos\nsystem\nS'true'\no.").contains("calls"));
    // A name that is never called is harmless.
    let name = read(b"cos\nsystem\n.").unwrap();
    assert_eq!(name.global(name.root), Some("os.system"));
    // A harmless call must not hide a harmful one.
    assert!(refused(b"ccollections\nOrderedDict\n)R)R.").contains("something without a name"));
}

#[test]
fn pickles_that_make_no_sense_are_malformed() {
    for (pickle, expected) in [
        (&b""[..], "truncated"),
        (b"\x80\x09N.", "protocol 0 to 5"),
        (b"\xff.", "unknown opcode 0xff"),
        (b".", "expected a value on the stack"),
        (b"t.", "expected a mark"),
        (b"(0.", "expected a value"),
        (b"h\x05.", "memo"),
        (b"NNs.", "expected a value"),
        (b"NNNs.", "expected a dictionary"),
        (b"}(Nu.", "expected pairs"),
        (b"B\xff\xff\xff\xff.", "expected 4294967295 bytes, found 1"),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "bytes, found 1"),
        (b"NNb.", "expected an object"),
        (b"Ix\n.", "whole number"),
    ] {
        let error = refused(pickle);
        assert!(error.contains(expected), "{pickle:?}: {error}");
    }
}

#[test]
fn memory_is_bounded_by_the_limits() {
    let mut marks = vec![b'('; MAX_STACK + 1];
    marks.push(b'.');
    assert!(refused(&marks).contains("too many marks"));
    let mut lists = vec![b']'; MAX_NODES + 1];
    lists.push(b'.');
    assert!(refused(&lists).contains("too many values"));
    let mut copies = vec![b'2'; MAX_STACK + 1];
    copies[0] = b'N';
    assert!(refused(&copies).contains("on the stack"));
}
