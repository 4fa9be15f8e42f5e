//! Work that takes less time than waking a worker thread for it.

use super::work::{Completed, Work, WorkerContext};
use crate::number::Number;

/// Seconds that work may have taken to be done without a worker the next time: several times what it takes to wake a thread.
const SHORT: f64 = 50e-6;

/// Does short work on the thread that has it.
pub(super) struct ShortWork<N: Number> {
    worker: WorkerContext<N>,
    /// The number of agents that workers can run at the same time.
    parallel: f64,
    /// Seconds that the last work took.
    agents: f64,
    server: f64,
}

impl<N: Number> ShortWork<N> {
    /// With so many worker threads for so many agents. No work counts as short until it has been.
    pub fn new(worker: WorkerContext<N>, threads: usize, agents: u32) -> Self {
        let parallel = threads.min(agents as usize).max(1) as f64;
        Self { worker, parallel, agents: f64::INFINITY, server: f64::INFINITY }
    }

    /// Does the work if work of this kind was short the last time; otherwise returns it.
    pub fn run(&mut self, work: Work<N>) -> Result<Vec<Completed<N>>, Work<N>> {
        let is_short = match work {
            Work::Serve { .. } => self.server < SHORT,
            // Workers would share it among them.
            Work::Perform { .. } => self.agents * self.parallel < SHORT,
            Work::MakeServer { .. } | Work::MakeAgent { .. } => false,
        };
        if !is_short {
            return Err(work);
        }
        let mut all = Vec::with_capacity(2);
        work.run(&self.worker, |completed| all.push(completed));
        all.iter().for_each(|completed| self.observe(completed));
        Ok(all)
    }

    /// Notes how long a work has taken.
    pub fn observe(&mut self, completed: &Completed<N>) {
        match completed {
            Completed::ServerReturned { seconds, .. } => self.server = *seconds,
            Completed::Performed { seconds, .. } => self.agents = *seconds,
            Completed::AgentReturned { seconds, .. } => self.agents += seconds,
            _ => {}
        }
    }
}
