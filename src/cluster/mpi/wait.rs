//! Waiting that responds at once and burns no core: poll briefly, then nap a sixteenth of the time waited so far.

use crossbeam_channel::Receiver;
use std::time::{Duration, Instant};

/// Poll without napping for this long.
const POLL: Duration = Duration::from_micros(50);
/// The same while a transfer is in flight: naps would stretch it.
const POLL_MOVING: Duration = Duration::from_millis(1);
/// No nap is longer: it bounds what a long wait takes of a core.
const LONGEST_NAP: Duration = Duration::from_millis(10);
/// A nap is this share of the time waited so far: it adds at most 6 % to a wait.
const SHARE: u32 = 16;

/// How long nothing has happened.
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

    /// Something happened.
    pub fn reset(&mut self) {
        self.since = Instant::now();
    }

    /// Waits a moment for a result of this rank's own workers, which ends the nap at once.
    pub fn wait<T>(&self, results: &Receiver<T>, moving: bool) -> Option<T> {
        let waited = self.since.elapsed();
        if waited < if moving { POLL_MOVING } else { POLL } {
            std::thread::yield_now();
            return results.try_recv().ok();
        }
        results.recv_timeout((waited / SHARE).min(LONGEST_NAP)).ok()
    }
}
