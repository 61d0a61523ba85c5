//! The output of another program.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Maximum number of lines that wait to be taken.
const LINES: usize = 1024;

/// The lines of a program, read by a thread. The thread ends when the last process that writes to the pipe has ended.
pub(crate) fn lines(reader: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, lines) = mpsc::sync_channel(LINES);
    let read = move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("packds-piped".to_owned()).spawn(read)?;
    Ok(lines)
}
