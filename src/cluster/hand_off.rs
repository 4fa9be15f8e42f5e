//! How long it takes on this machine to hand work to a sleeping thread and to hear of its result.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The pause before each measurement, so that the thread falls asleep as between tasks.
const PAUSE: Duration = Duration::from_micros(200);
const MEASUREMENTS: usize = 200;

/// The median of the seconds from sending work to a sleeping thread until its result is received. It is measured once.
pub(super) fn seconds_of_hand_off() -> f64 {
    static SECONDS: OnceLock<f64> = OnceLock::new();
    *SECONDS.get_or_init(measured)
}

fn measured() -> f64 {
    let (work, works) = crossbeam_channel::unbounded::<()>();
    let (result, results) = crossbeam_channel::unbounded();
    let worker = std::thread::spawn(move || works.iter().try_for_each(|()| result.send(())));
    let mut seconds = Vec::with_capacity(MEASUREMENTS);
    for _ in 0..MEASUREMENTS {
        std::thread::sleep(PAUSE);
        let since = Instant::now();
        if work.send(()).is_err() || results.recv().is_err() {
            break;
        }
        seconds.push(since.elapsed().as_secs_f64());
    }
    drop(work);
    drop(worker.join());
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wake_up_in_less_than_a_second() {
        let seconds = seconds_of_hand_off();
        assert!(seconds > 0.0 && seconds < 1.0, "{seconds}");
    }
}
