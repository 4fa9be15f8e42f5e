//! Back-off while polling MPI: poll briefly unless the threads compute, then nap for a small part of the time waited so far.

use super::super::nap::{Meanwhile, Naps};
use crossbeam_channel::Receiver;
use std::time::Instant;

/// The waits of a rank, which become longer until its next event: a message, or a result of a worker.
pub(super) struct Backoff {
    last_event: Instant,
    naps: Naps,
}

impl Backoff {
    /// Also makes the timers of the calling thread more accurate: to 1 µs.
    pub fn new(ranks: u32) -> Self {
        // By default Linux may delay the end of a nap by 50 µs, which is longer than the first naps.
        #[cfg(target_os = "linux")]
        // SAFETY: sets a property of the calling thread, in nanoseconds; takes no pointers.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1000_u64, 0_u64, 0_u64, 0_u64);
        }
        Self { last_event: Instant::now(), naps: Naps::new(ranks) }
    }

    /// Starts anew after an event.
    pub fn reset(&mut self) {
        self.last_event = Instant::now();
    }

    /// Waits for a moment; a result in the channel ends the wait at once.
    pub fn wait<T>(&self, results: &Receiver<T>, meanwhile: Meanwhile) -> Option<T> {
        match self.naps.next(self.last_event.elapsed(), meanwhile) {
            None => {
                std::thread::yield_now();
                results.try_recv().ok()
            }
            Some(nap) => results.recv_timeout(nap).ok(),
        }
    }
}
