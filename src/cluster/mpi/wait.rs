//! Back-off while polling MPI: poll briefly unless the threads compute, then nap for a small part of the time waited so far.

use super::super::nap::{Meanwhile, Naps};
use crossbeam_channel::Receiver;
use std::time::Instant;

/// The time since the last event.
pub(super) struct Backoff {
    since: Instant,
    naps: Naps,
}

impl Backoff {
    pub fn new(ranks: u32) -> Self {
        // The kernel's default timer slack of 50 µs is longer than the first naps.
        #[cfg(target_os = "linux")]
        // SAFETY: sets a number of the calling thread; takes no pointers.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1000_u64, 0_u64, 0_u64, 0_u64);
        }
        Self { since: Instant::now(), naps: Naps::new(ranks) }
    }

    /// Notes an event.
    pub fn reset(&mut self) {
        self.since = Instant::now();
    }

    /// Waits for a moment; a result of this rank's own workers ends the wait at once.
    pub fn wait<T>(&self, results: &Receiver<T>, meanwhile: Meanwhile) -> Option<T> {
        match self.naps.next(self.since.elapsed(), meanwhile) {
            None => {
                std::thread::yield_now();
                results.try_recv().ok()
            }
            Some(nap) => results.recv_timeout(nap).ok(),
        }
    }
}
