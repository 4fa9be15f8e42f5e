//! Back-off while polling MPI: poll briefly unless the threads compute, then nap for a small part of the time waited so far.

use super::super::nap::{Naps, POLL};
use crossbeam_channel::Receiver;
use std::time::{Duration, Instant};

/// Time of polling before the first nap while a message is in flight, which naps would delay.
const POLL_MOVING: Duration = Duration::from_millis(1);

/// What else is going on while a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meanwhile {
    /// No message is in flight, and a thread is free for an agent.
    ThreadsFree,
    /// A message is in flight, and a thread is free.
    Sending,
    /// All threads for agents have work.
    Computing,
    /// All threads have work, and a message is in flight.
    ComputingAndSending,
}

impl Meanwhile {
    pub fn of(is_moving: bool, is_computing: bool) -> Self {
        match (is_moving, is_computing) {
            (false, false) => Self::ThreadsFree,
            (true, false) => Self::Sending,
            (false, true) => Self::Computing,
            (true, true) => Self::ComputingAndSending,
        }
    }

    /// For how long a rank polls before its first nap. Polling takes the time of a core that threads may need.
    fn polling(self) -> Duration {
        match self {
            Self::ThreadsFree | Self::ComputingAndSending => POLL,
            Self::Sending => POLL_MOVING,
            Self::Computing => Duration::ZERO,
        }
    }
}

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
        let waited = self.since.elapsed();
        if waited < meanwhile.polling() {
            std::thread::yield_now();
            return results.try_recv().ok();
        }
        let nap = match meanwhile {
            Meanwhile::Computing => self.naps.while_computing(waited),
            _ => self.naps.after(waited),
        };
        results.recv_timeout(nap).ok()
    }
}
