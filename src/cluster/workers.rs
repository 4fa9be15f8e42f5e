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
    /// Works that were submitted and are not done.
    open: Arc<AtomicUsize>,
    /// Threads for agents.
    threads: usize,
}

impl<N: Number> Workers<N> {
    /// Starts `threads` workers for agents and one for the server.
    pub fn start(worker: WorkerContext<N>, threads: usize) -> Self {
        let (agents, agent_jobs) = unbounded::<Work<N>>();
        let (server, server_jobs) = unbounded::<Work<N>>();
        let (report, results) = unbounded();
        let open = Arc::new(AtomicUsize::new(0));
        for (thread, jobs) in (1..).zip(std::iter::repeat_n(agent_jobs, threads.max(1)).chain([server_jobs])) {
            let (worker, report, open) = (WorkerContext { thread, ..worker.clone() }, report.clone(), open.clone());
            std::thread::spawn(move || {
                for work in jobs {
                    // The channel is closed if the run is over.
                    work.run(&worker, |completed| drop(report.send(completed)));
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
        Self { agents, server, results, report, open, threads: threads.max(1) }
    }

    /// Whether no worker has anything to do.
    pub fn are_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Whether there is work for as many threads as agents have.
    pub fn are_all_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= self.threads
    }

    /// Hands a work to the threads that it is for.
    pub fn submit(&self, work: Work<N>) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let queue = if work.is_for_server() { &self.server } else { &self.agents };
        drop(queue.send(work));
    }
}
