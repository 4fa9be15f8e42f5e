//! The threads that compute: some for agents, one for the server, so that responses never queue behind an agent's task.

use super::job::{Done, Job, WorkerContext};
use crate::number::Number;
use crossbeam_channel::{Receiver, Sender, unbounded};

/// The worker threads of one rank; they end when this is dropped and their job is done.
pub(super) struct Workers<N: Number> {
    agents: Sender<Job<N>>,
    server: Sender<Job<N>>,
    pub results: Receiver<Done<N>>,
    /// Where results go; also for what did not come from a worker.
    pub report: Sender<Done<N>>,
}

impl<N: Number> Workers<N> {
    /// Starts `threads` workers for agents and one for the server.
    pub fn start(bench: WorkerContext<N>, threads: usize) -> Self {
        let (agents, agent_jobs) = unbounded::<Job<N>>();
        let (server, server_jobs) = unbounded::<Job<N>>();
        let (report, results) = unbounded();
        for jobs in std::iter::repeat_n(agent_jobs, threads.max(1)).chain([server_jobs]) {
            let (bench, report) = (bench.clone(), report.clone());
            std::thread::spawn(move || {
                for job in jobs {
                    // A closed channel means that the run is over and nobody wants the result.
                    job.run(&bench, |done| drop(report.send(done)));
                }
            });
        }
        Self { agents, server, results, report }
    }

    /// Hands a job to the threads that it is for.
    pub fn give(&self, job: Job<N>) {
        let queue = if job.is_servers() { &self.server } else { &self.agents };
        drop(queue.send(job));
    }
}
