//! Measures copies to the device by size and number of streams, and copies within the device.

use packds_cuda::Stream;
use packds_reader::arena::Arena;

use super::{Bench, Ended, KIB, bytes, name_of, rate};

impl Bench {
    /// Prints the speeds of copies.
    pub(super) fn bus(&self) -> Ended {
        let arena = Arena::new(1, self.largest)?;
        let mut slot = arena.try_take().ok_or("the arena has no slot")?;
        slot.fill(7);
        let device = self.driver.allocate(bytes(2 * self.largest), "copies")?;
        let streams: Vec<Stream> = (0..4).map(|_| self.driver.stream()).collect::<Result<_, _>>()?;
        println!("\npinned host -> device, GB/s");
        println!("{:>9}{:>9}{:>9}{:>9}", "size", "1 stream", "2", "4");
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { self.driver.register(slot.as_ptr(), slot.len())? };
        let mut size = 64 * KIB;
        while size <= self.largest {
            print!("{:>9}", name_of(size));
            for n_streams in [1, 2, 4] {
                let used = &streams[..n_streams];
                let n = (self.largest / size).clamp(1, 64);
                let time = self.time(used, || {
                    for at in 0..n {
                        let offset = at * size;
                        let to = device.plus(bytes(offset));
                        let from = slot[offset..].as_ptr();
                        // SAFETY: source and destination have this many bytes, and `time` waits until the copies are
                        // done.
                        unsafe { self.driver.copy_in(from, to, size, used[at % n_streams])? };
                    }
                    Ok(())
                })?;
                print!("{:>9.2}", rate(n * size, time));
            }
            println!();
            size *= 4;
        }
        let time = self.time(&streams[..1], || {
            let to = device.plus(bytes(self.largest));
            // SAFETY: these are the two halves of one allocation, and `time` waits until the copies are done.
            unsafe { self.driver.copy_within(device, to, self.largest, streams[0]) }
        })?;
        println!(
            "device -> device, {}: {:.1} GB/s copied, {:.1} GB/s read and written",
            name_of(self.largest),
            rate(self.largest, time),
            2.0 * rate(self.largest, time)
        );
        // SAFETY: all copies are done.
        unsafe { self.driver.unregister(slot.as_ptr()) };
        self.give_back(&[device], &streams);
        Ok(())
    }
}
