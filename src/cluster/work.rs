//! A piece of a method's work: what a worker thread runs, and what comes of it.

use super::body::Body;
use super::codec::Raw;
use super::context::{Clock, Context};
use super::erased::{Erased, ErasedAgent, ErasedServer};
use super::fault::{Action, Activity, Fault, guard};
use super::layout::{AgentId, Rank};
use super::method::Progress;
use super::options::DrawStore;
use super::packet::Posted;
use super::record::{Draws, Record};
use super::request::{EncodedRequest, EncodedResponse};
use crate::number::Number;
use crate::random::Seed;
use std::sync::Arc;
use std::time::Instant;

pub(super) enum Work<N: Number> {
    MakeServer {
        saved: Option<Raw<u8>>,
    },
    MakeAgent {
        id: AgentId,
        saved: Option<Raw<u8>>,
    },
    /// The first call of a fresh run where there is no response.
    Serve {
        server: Box<dyn ErasedServer<N>>,
        response: Option<EncodedResponse<N>>,
        /// Whether it is the response to an aside.
        monitoring: bool,
        /// Seconds that the run's clock leaves out from now on.
        excluded: f64,
    },
    Perform {
        id: AgentId,
        agent: Box<dyn ErasedAgent<N>>,
        request: Arc<Posted>,
        body: Body<N>,
    },
}

pub(super) enum Completed<N: Number> {
    ServerMade { server: Box<dyn ErasedServer<N>>, progress: Progress },
    AgentMade { id: AgentId, agent: Box<dyn ErasedAgent<N>> },
    Served { requests: Vec<EncodedRequest<N>>, progress: Progress, records: Vec<Record> },
    ServerReturned { server: Box<dyn ErasedServer<N>>, progress: Progress, seconds: f64, monitoring: bool, records: Vec<Record> },
    Performed { id: AgentId, request: Arc<Posted>, seconds: f64, report: Raw<u8>, body: Body<N>, records: Vec<Record> },
    AgentReturned { id: AgentId, agent: Box<dyn ErasedAgent<N>>, seconds: f64, records: Vec<Record> },
    Failed(Fault),
}

/// Action every work of a rank needs.
pub(super) struct WorkerContext<N: Number> {
    pub method: Erased<N>,
    pub seed: Seed,
    pub rank: Rank,
    pub clock: Clock,
    pub store: Option<Arc<dyn DrawStore>>,
}

impl<N: Number> Clone for WorkerContext<N> {
    fn clone(&self) -> Self {
        Self { method: self.method.clone(), clock: self.clock.clone(), store: self.store.clone(), ..*self }
    }
}

impl<N: Number> WorkerContext<N> {
    /// Action travels of these records, and what is stored here.
    fn split_draws(&self, records: Vec<Record>) -> (Vec<Record>, Vec<Draws>) {
        if self.store.is_none() {
            return (records, Vec::new());
        }
        let (mut travels, mut stays) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Draws(draws) => stays.push(draws),
                Record::Row(_) => travels.push(record),
            }
        }
        (travels, stays)
    }
}

impl<N: Number> Work<N> {
    /// Whether this is work of the server, which has a thread of its own.
    pub fn is_for_server(&self) -> bool {
        matches!(self, Self::MakeServer { .. } | Self::Serve { .. })
    }

    /// Does the work; `emit` is called once or, where something settles, twice.
    pub fn run(self, worker: &WorkerContext<N>, mut emit: impl FnMut(Completed<N>)) {
        if let Err(fault) = self.steps(worker, &mut emit) {
            emit(Completed::Failed(fault));
        }
    }

    fn steps(self, worker: &WorkerContext<N>, emit: &mut impl FnMut(Completed<N>)) -> Result<(), Fault> {
        let activity = |agent, action| Activity { method: worker.method.name(), rank: worker.rank, agent, action };
        let context = |agent| Context::new(worker.seed, agent, worker.clock.clone());
        match self {
            Self::MakeServer { saved } => {
                let (server, progress) = guard(activity(None, Action::Creating), || {
                    let server = worker.method.server(saved.as_ref().map(|bytes| bytes.0.as_slice()))?;
                    let progress = server.progress();
                    Ok((server, progress))
                })?;
                emit(Completed::ServerMade { server, progress });
            }
            Self::MakeAgent { id, saved } => {
                let agent = guard(activity(Some(id), Action::Creating), || {
                    worker.method.agent(id, saved.as_ref().map(|bytes| bytes.0.as_slice()))
                })?;
                emit(Completed::AgentMade { id, agent });
            }
            Self::Serve { mut server, response, monitoring, excluded } => {
                worker.clock.exclude(excluded);
                let since = Instant::now();
                let action = if response.is_some() { Action::Receiving } else { Action::Starting };
                let mut cx = context(None);
                let (requests, progress) = guard(activity(None, action), || {
                    let requests = match response {
                        Some(response) => server.receive(response, &mut cx)?,
                        None => server.start(&mut cx)?,
                    };
                    Ok((requests, server.progress()))
                })?;
                emit(Completed::Served { requests, progress, records: cx.into_records() });
                let mut cx = context(None);
                let progress = guard(activity(None, Action::Following), || {
                    server.after_requests(&mut cx)?;
                    Ok(server.progress())
                })?;
                let seconds = since.elapsed().as_secs_f64();
                emit(Completed::ServerReturned { server, progress, seconds, monitoring, records: cx.into_records() });
            }
            Self::Perform { id, mut agent, request, body } => {
                let mut cx = context(Some(id));
                let since = Instant::now();
                let (report, body) =
                    guard(activity(Some(id), Action::Performing(request.id)), || agent.perform(&request.task.0, body, &mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                let (records, draws) = worker.split_draws(cx.into_records());
                emit(Completed::Performed { id, request, seconds, report, body, records });
                let mut cx = context(Some(id));
                let since = Instant::now();
                guard(activity(Some(id), Action::Following), || agent.after_report(&mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                let (records, more) = worker.split_draws(cx.into_records());
                if let Some(store) = &worker.store {
                    let draws: Vec<Draws> = draws.into_iter().chain(more).collect();
                    guard(activity(Some(id), Action::Recording), || if draws.is_empty() { Ok(()) } else { store.put(draws) })?;
                }
                emit(Completed::AgentReturned { id, agent, seconds, records });
            }
        }
        Ok(())
    }
}
