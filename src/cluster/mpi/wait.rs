//! Back-off while polling MPI: poll briefly, then nap for a small part of the time waited so far.

use super::super::nap::Naps;
use crossbeam_channel::Receiver;
use std::time::{Duration, Instant};

/// Time of polling without naps.
const POLL: Duration = Duration::from_micros(50);
/// The same while a message is in flight: naps would delay it.
const POLL_MOVING: Duration = Duration::from_millis(1);
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
    pub fn wait<T>(&self, results: &Receiver<T>, moving: bool) -> Option<T> {
        let waited = self.since.elapsed();
        if waited < if moving { POLL_MOVING } else { POLL } {
            std::thread::yield_now();
            return results.try_recv().ok();
        }
        results.recv_timeout(self.naps.after(waited)).ok()
    }
}
