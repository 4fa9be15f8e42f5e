//! Signals on which a run saves its state and stops.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static TERMINATED: AtomicBool = AtomicBool::new(false);

/// Handles SIGUSR1, SIGTERM and SIGINT from now on. A second SIGINT ends the process at once, as by default.
pub fn listen() {
    for (signal, once) in [(libc::SIGUSR1, 0), (libc::SIGTERM, 0), (libc::SIGINT, libc::SA_RESETHAND)] {
        // SAFETY: all zeros are a valid action with an empty mask, and the handler only stores to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ask as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | once;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

extern "C" fn ask(signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
    TERMINATED.fetch_or(signal == libc::SIGTERM, Ordering::Relaxed);
}

/// Asks this process to save its run and stop, as by a signal.
pub fn ask_to_stop() {
    ASKED.store(true, Ordering::Relaxed);
}

/// Whether one of these signals was received.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether SIGTERM was received, after which a launcher waits a second before it kills a process.
pub fn was_terminated() -> bool {
    TERMINATED.load(Ordering::Relaxed)
}
