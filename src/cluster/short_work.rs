//! Work that takes less time than waking a worker thread for it.

use super::layout::AgentId;
use super::method::Order;
use super::work::{Completed, Work, WorkerContext};
use super::workers::Workers;
use crate::number::Number;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seconds of work that are not worth waking a thread, which takes about a fifth of this.
pub(super) const SHORT: f64 = 50e-6;
/// This many times in succession work must have been short before it counts as short.
const TIMES: usize = 3;

/// Does short work on the thread that has it. It is for methods whose responses are taken in the order of the requests: with
/// [`Order::Arrival`] work that is done at once would overtake what workers do.
pub(super) struct ShortWork<N: Number> {
    /// None if no work may be done at once.
    worker: Option<WorkerContext<N>>,
    server: RecentTimes,
    agents: BTreeMap<AgentId, RecentTimes>,
    is_under_way: Arc<AtomicBool>,
}

/// How long the last works took.
#[derive(Default)]
struct RecentTimes(VecDeque<f64>);

impl RecentTimes {
    fn add(&mut self, seconds: f64) {
        self.0.push_back(seconds);
        if self.0.len() > TIMES {
            self.0.pop_front();
        }
    }

    /// The longest of them; infinite if there are too few.
    fn longest(&self) -> f64 {
        if self.0.len() < TIMES { f64::INFINITY } else { self.0.iter().copied().fold(0.0, f64::max) }
    }
}

impl<N: Number> ShortWork<N> {
    pub fn new(worker: WorkerContext<N>) -> Self {
        // Storing draws takes time that is not known.
        let is_possible = worker.method.order() == Order::Posted && worker.store.is_none();
        Self {
            worker: is_possible.then_some(worker),
            server: RecentTimes::default(),
            agents: BTreeMap::new(),
            is_under_way: Arc::default(),
        }
    }

    /// Whether work is being done here, for other threads.
    pub fn is_under_way(&self) -> Arc<AtomicBool> {
        self.is_under_way.clone()
    }

    /// Does works that are expected to be short together, and returns their results; otherwise returns the works. Those that observe the
    /// run are never short: the clock leaves them out as workers do them.
    fn run(&mut self, works: VecDeque<Work<N>>) -> Result<Vec<Completed<N>>, VecDeque<Work<N>>> {
        let Some(worker) = self.worker.as_ref().filter(|_| works.iter().map(|work| self.expected(work)).sum::<f64>() < SHORT)
        else {
            return Err(works);
        };
        let mut all = Vec::with_capacity(2 * works.len());
        self.is_under_way.store(true, Ordering::Relaxed);
        for work in works {
            work.run(worker, |completed| all.push(completed));
        }
        self.is_under_way.store(false, Ordering::Relaxed);
        all.iter().for_each(|completed| self.observe(completed));
        Ok(all)
    }

    /// Does works that are expected to be short together, and returns their results; otherwise hands them to the workers.
    pub fn run_or_submit(&mut self, works: VecDeque<Work<N>>, workers: &Workers<N>) -> Vec<Completed<N>> {
        self.run(works).unwrap_or_else(|works| {
            works.into_iter().for_each(|work| workers.submit(work));
            Vec::new()
        })
    }

    /// The seconds that a work is expected to take.
    fn expected(&self, work: &Work<N>) -> f64 {
        match work {
            Work::Serve { monitoring: false, .. } => self.server.longest(),
            Work::Perform { id, request, .. } if !request.monitoring => {
                self.agents.get(id).map_or(f64::INFINITY, RecentTimes::longest)
            }
            _ => f64::INFINITY,
        }
    }

    /// Notes how long a work has taken.
    pub fn observe(&mut self, completed: &Completed<N>) {
        match completed {
            Completed::ServerReturned { seconds, monitoring: false, .. } => self.server.add(*seconds),
            Completed::Performed { id, request, seconds, .. } if !request.monitoring => {
                self.agents.entry(*id).or_default().add(*seconds);
            }
            Completed::AgentReturned { id, seconds, .. } => {
                if let Some(last) = self.agents.get_mut(id).and_then(|times| times.0.back_mut()) {
                    *last += seconds;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_short_after_it_was_short_three_times() {
        let mut times = RecentTimes::default();
        for (seconds, longest) in
            [(1e-6, f64::INFINITY), (3e-6, f64::INFINITY), (2e-6, 3e-6), (1.0, 1.0), (1e-6, 1.0), (1e-6, 1.0), (2e-6, 2e-6)]
        {
            times.add(seconds);
            assert_eq!(times.longest(), longest);
        }
    }
}
