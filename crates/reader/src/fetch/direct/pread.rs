//! Reads with blocking threads. Used if io_uring is not available, for example in many containers.

use packds_system::lock;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use super::engine::{Done, Engine, Request, Source};

/// Number of requests that wait for the disk at a time. It is enough to keep a local disk busy.
const THREADS: usize = 8;

/// A pool of threads. Each handles one request at a time. When it is dropped, they finish their reads and end.
#[derive(Debug)]
pub(super) struct Pread {
    requests: Sender<Request>,
    done: Receiver<Done>,
}

impl Pread {
    pub(super) fn start(source: &Arc<Source>) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel::<Request>();
        let (back, done) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..THREADS {
            let (source, queue, back) = (Arc::clone(source), Arc::clone(&queue), back.clone());
            let work = move || {
                loop {
                    let request = lock(&queue).recv();
                    let Ok(mut request) = request else { return };
                    let result = source.read(&mut request);
                    if back.send((request, result)).is_err() {
                        return;
                    }
                }
            };
            let named = thread::Builder::new().name("packds-pread".to_owned());
            match named.spawn(work) {
                Ok(_) => {}
                // Fewer threads are slower, but correct.
                Err(_) if number > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Self { requests, done })
    }
}

impl Engine for Pread {
    fn depth(&self) -> usize {
        // The queue has space for one extra request per thread, so that no thread waits for its next request.
        2 * THREADS
    }

    fn submit(&mut self, request: Request) {
        // This cannot fail, because threads only end after the sender is dropped.
        let _ = self.requests.send(request);
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        let first = self.done.recv();
        done.push(first.map_err(|_| io::Error::other("the reading threads have ended"))?);
        done.extend(self.done.try_iter());
        Ok(())
    }
}
