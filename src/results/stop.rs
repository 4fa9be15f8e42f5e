//! Signals on which a run saves its state and stops.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

static SIGNALED: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);
static TERMINATED: AtomicBool = AtomicBool::new(false);
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// When the first SIGINT came, in milliseconds of a clock that is never set back; 0 if none came.
static INTERRUPTED: AtomicI64 = AtomicI64::new(0);

/// A SIGINT within this many milliseconds of the first is the same one: launchers and `timeout` send it to a process and to its group.
const SAME_INTERRUPT: i64 = 500;

/// A process stops when less than this is left of its time, or earlier if its steps or saves are long.
pub const LEAST_MARGIN: Duration = Duration::from_secs(2);

/// The limit of the time of this process, and when it is over.
static LIMIT: OnceLock<(Duration, Instant)> = OnceLock::new();

/// Sets the time limit of this process, counted from now; only the first call counts.
pub fn limit_time(limit: Duration) {
    // A limit beyond the reach of the clock is none.
    if let Some(end) = Instant::now().checked_add(limit) {
        LIMIT.get_or_init(|| (limit, end));
    }
}

/// The time that is left, if it is limited.
pub fn time_left() -> Option<Duration> {
    LIMIT.get().map(|(_, end)| end.saturating_duration_since(Instant::now()))
}

/// The limit, if there is one.
pub fn time_limit() -> Option<Duration> {
    LIMIT.get().map(|(limit, _)| *limit)
}

/// Handles SIGUSR1, SIGTERM, SIGINT and SIGHUP from now on. A SIGINT more than half a second after the first ends the process
/// at once. If SIGHUP is ignored, as under `nohup`, it stays ignored.
pub fn listen() {
    for signal in [libc::SIGUSR1, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        if signal == libc::SIGHUP && is_ignored(signal) {
            continue;
        }
        // SAFETY: all zeros are a valid action with an empty mask, and the handler only does what is safe in one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ask as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: without a new action, the call only writes the present one, for which all zeros are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

extern "C" fn ask(signal: libc::c_int) {
    if signal == libc::SIGINT {
        let now = milliseconds();
        let first = INTERRUPTED.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err_and(|first| now - first > SAME_INTERRUPT) {
            // SAFETY: both calls are safe in a handler. The signal, which is blocked here, ends the process when the handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            return;
        }
    }
    SIGNALED.store(true, Ordering::Relaxed);
    TERMINATED.fetch_or(signal == libc::SIGTERM, Ordering::Relaxed);
}

/// The milliseconds of a clock that is never set back, above 0.
fn milliseconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time, and is safe in a signal handler.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000 + 1
}

/// Requests that this process saves its run and stops, as after a signal.
pub fn ask_to_stop() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Withdraws such a request, for another run of this process. A signal remains.
pub fn withdraw_request() {
    REQUESTED.store(false, Ordering::Relaxed);
    ANNOUNCED.store(false, Ordering::Relaxed);
}

/// Returns true to the first caller, which tells the user that the run stops.
pub fn claim_announcement() -> bool {
    !ANNOUNCED.swap(true, Ordering::Relaxed)
}

/// Whether one of these signals was received, a stop was requested, or the time is nearly up.
pub fn asked() -> bool {
    SIGNALED.load(Ordering::Relaxed) || REQUESTED.load(Ordering::Relaxed) || time_left().is_some_and(|left| left < LEAST_MARGIN)
}

/// Whether SIGTERM was received, after which a launcher waits a second before it kills a process.
pub fn was_terminated() -> bool {
    TERMINATED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::time::Duration;

    const PAUSE: &str = "MPIBAYES_TEST_PAUSE";

    /// Part of the next test, which runs it in a process of its own.
    #[test]
    fn interrupted_twice() {
        let Ok(pause) = std::env::var(PAUSE) else { return };
        super::listen();
        // SAFETY: plain system calls.
        unsafe { libc::raise(libc::SIGINT) };
        std::thread::sleep(Duration::from_millis(pause.parse().unwrap()));
        unsafe { libc::raise(libc::SIGINT) };
        assert!(super::asked());
    }

    #[test]
    fn a_second_interrupt_ends_the_process_unless_it_comes_at_once() {
        for (pause, signal) in [("0", None), ("700", Some(libc::SIGINT))] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let ended = child.args(["--exact", "results::stop::tests::interrupted_twice"]).env(PAUSE, pause).output().unwrap();
            let said = String::from_utf8_lossy(&ended.stdout);
            assert_eq!(ended.status.signal(), signal, "{said}");
            assert!(signal.is_some() || said.contains("1 passed"), "{said}");
        }
    }
}
