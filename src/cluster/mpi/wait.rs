//! Back-off while polling MPI: poll briefly, then nap for a sixteenth of the time waited so far.

use crossbeam_channel::Receiver;
use std::time::{Duration, Instant};

/// Time of polling without naps.
const POLL: Duration = Duration::from_micros(50);
/// The same while a message is in flight: naps would delay it.
const POLL_MOVING: Duration = Duration::from_millis(1);
/// The longest nap: bounds the CPU time of a long wait.
const MAX_NAP: Duration = Duration::from_millis(10);
/// A nap is this fraction of the time waited so far, so that naps lengthen a wait by at most 6 %.
const FRACTION: u32 = 16;

/// The time since the last event.
pub(super) struct Backoff {
    since: Instant,
}

impl Backoff {
    pub fn new() -> Self {
        // The kernel's default timer slack of 50 µs is longer than the first naps.
        #[cfg(target_os = "linux")]
        // SAFETY: sets a number of the calling thread; takes no pointers.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1000_u64, 0_u64, 0_u64, 0_u64);
        }
        Self { since: Instant::now() }
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
        results.recv_timeout((waited / FRACTION).min(MAX_NAP)).ok()
    }
}
