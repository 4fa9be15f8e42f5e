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
    /// Units of work for agents that are not finished.
    open_of_agents: Arc<AtomicUsize>,
    /// Units of work for the server that are not finished.
    open_of_server: Arc<AtomicUsize>,
    /// Threads for agents.
    threads: usize,
}

impl<N: Number> Workers<N> {
    /// Starts `threads` workers for agents, but at least one, and one for the server.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(worker: WorkerContext<N>, threads: usize) -> Result<Self, String> {
        let (agents, agent_jobs) = unbounded::<Work<N>>();
        let (server, server_jobs) = unbounded::<Work<N>>();
        let (report, results) = unbounded();
        let (open_of_agents, open_of_server) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = threads.max(1);
        let of_agents = std::iter::repeat_n((agent_jobs, open_of_agents.clone()), threads);
        for (thread, (jobs, open)) in (1..).zip(of_agents.chain([(server_jobs, open_of_server.clone())])) {
            let (worker, report) = (WorkerContext { thread, ..worker.clone() }, report.clone());
            let work = move || {
                for work in jobs {
                    work.run(&worker, |completed| {
                        // Counted before sending, so that whoever receives the last result sees this work as done.
                        if completed.is_last() {
                            open.fetch_sub(1, Ordering::Relaxed);
                        }
                        // The channel is closed if the run is over.
                        drop(report.send(completed));
                    });
                }
            };
            std::thread::Builder::new().spawn(work).map_err(|error| {
                format!(
                    "cannot start {} threads: {error}. Use fewer threads, or allow the user more processes (ulimit -u)",
                    threads + 1
                )
            })?;
        }
        Ok(Self { agents, server, results, report, open_of_agents, open_of_server, threads })
    }

    /// Whether no worker has anything to do.
    pub fn are_idle(&self) -> bool {
        self.open_of_agents.load(Ordering::Relaxed) == 0 && self.open_of_server.load(Ordering::Relaxed) == 0
    }

    /// Whether agents have work for all of their threads.
    pub fn agents_fill_threads(&self) -> bool {
        self.open_of_agents.load(Ordering::Relaxed) >= self.threads
    }

    /// Hands a unit of work to the threads that it is for.
    pub fn submit(&self, work: Work<N>) {
        let (queue, open) = match work.is_for_server() {
            true => (&self.server, &self.open_of_server),
            false => (&self.agents, &self.open_of_agents),
        };
        open.fetch_add(1, Ordering::Relaxed);
        drop(queue.send(work));
    }
}
