//! Worker threads: some for agents, one for the server, so that responses never wait for an agent's task.

use super::work::{Completed, Work, WorkerContext};
use crate::number::Number;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The worker threads of one rank; they end when this is dropped and their work is done.
pub(super) struct Workers<N: Number> {
    agents: Sender<Work<N>>,
    server: Sender<Work<N>>,
    pub results: Receiver<Completed<N>>,
    /// Sends results, also those that do not come from a worker.
    pub report: Sender<Completed<N>>,
    /// Works of agents, and of the server, that were submitted and are not done.
    open_of_agents: Arc<AtomicUsize>,
    open_of_server: Arc<AtomicUsize>,
    /// Threads for agents.
    threads: usize,
}

impl<N: Number> Workers<N> {
    /// Starts `threads` workers for agents and one for the server.
    pub fn start(worker: WorkerContext<N>, threads: usize) -> Self {
        let (agents, agent_jobs) = unbounded::<Work<N>>();
        let (server, server_jobs) = unbounded::<Work<N>>();
        let (report, results) = unbounded();
        let (open_of_agents, open_of_server) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = threads.max(1);
        let of_agents = std::iter::repeat_n((agent_jobs, open_of_agents.clone()), threads);
        for (thread, (jobs, open)) in (1..).zip(of_agents.chain([(server_jobs, open_of_server.clone())])) {
            let (worker, report) = (WorkerContext { thread, ..worker.clone() }, report.clone());
            std::thread::spawn(move || {
                for work in jobs {
                    work.run(&worker, |completed| {
                        // Before it is sent, so that whoever receives the last result sees this work as done.
                        if completed.is_last() {
                            open.fetch_sub(1, Ordering::Relaxed);
                        }
                        // The channel is closed if the run is over.
                        drop(report.send(completed));
                    });
                }
            });
        }
        Self { agents, server, results, report, open_of_agents, open_of_server, threads }
    }

    /// Whether no worker has anything to do.
    pub fn are_idle(&self) -> bool {
        self.open_of_agents.load(Ordering::Relaxed) == 0 && self.open_of_server.load(Ordering::Relaxed) == 0
    }

    /// Whether agents have work for all of their threads.
    pub fn agents_fill_threads(&self) -> bool {
        self.open_of_agents.load(Ordering::Relaxed) >= self.threads
    }

    /// Hands a work to the threads that it is for.
    pub fn submit(&self, work: Work<N>) {
        let (queue, open) = match work.is_for_server() {
            true => (&self.server, &self.open_of_server),
            false => (&self.agents, &self.open_of_agents),
        };
        open.fetch_add(1, Ordering::Relaxed);
        drop(queue.send(work));
    }
}
