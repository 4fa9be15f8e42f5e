//! The threads that compute: some for agents, one for the server, so that answers never queue behind an agent's task.

use super::job::{Bench, Done, Job};
use super::method::Method;
use crossbeam_channel::{Receiver, Sender, unbounded};

/// The worker threads of one rank; they end when this is dropped and their job is done.
pub(super) struct Workers<M: Method> {
    agents: Sender<Job<M>>,
    server: Sender<Job<M>>,
    pub results: Receiver<Done<M>>,
    /// Where results go; also for what did not come from a worker.
    pub report: Sender<Done<M>>,
}

impl<M: Method> Workers<M> {
    /// Starts `threads` workers for agents and one for the server.
    pub fn start(bench: Bench<M>, threads: usize) -> Self {
        let (agents, agent_jobs) = unbounded::<Job<M>>();
        let (server, server_jobs) = unbounded::<Job<M>>();
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
    pub fn give(&self, job: Job<M>) {
        let queue = if job.is_servers() { &self.server } else { &self.agents };
        drop(queue.send(job));
    }
}
