//! Runs side by side, with a word now and then on how far they are.

use mpibayes::cluster::BoxError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A row tells how far it is no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(20);

/// Does something for each item, as many at a time as there are cores; in their order. Threads of their own, as what runs in one may wait
/// for others of the shared pool.
pub fn side_by_side<I: Sync, T: Send>(items: &[I], each: impl Fn(&I) -> Result<T, BoxError> + Sync) -> Result<Vec<T>, BoxError> {
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let told = Mutex::new((0, begun));
    let tell = || {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0 += 1;
        if told.1.elapsed() >= TELL_EVERY {
            told.1 = Instant::now();
            eprintln!("reproduce:   {} of {} runs, {:.0} s", told.0, items.len(), begun.elapsed().as_secs_f64());
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut done = Vec::new();
        while let Some((place, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?))) {
            let result = each(item);
            let failed = result.is_err();
            tell();
            done.push((place, result));
            if failed {
                next.store(items.len(), Ordering::Relaxed);
            }
        }
        done
    };
    let mut all: Vec<(usize, Result<T, BoxError>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(items.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    all.sort_by_key(|(place, _)| *place);
    let count = all.len();
    let results: Vec<T> = all.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
    if count < items.len() { Err("a run has panicked".into()) } else { Ok(results) }
}
