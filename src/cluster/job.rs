//! A piece of a method's work: what a worker thread runs, and what comes of it.

use super::body::Body;
use super::codec::Raw;
use super::context::{Clock, Context};
use super::erased::{EncodedRequest, EncodedResponse, Erased, ErasedAgent, ErasedServer};
use super::fault::{Doing, Fault, What, guard};
use super::layout::Rank;
use super::method::{AgentId, Progress};
use super::packet::Posted;
use super::record::{Draws, Record};
use super::run::DrawStore;
use crate::number::Number;
use crate::random::Seed;
use std::sync::Arc;
use std::time::Instant;

pub(super) enum Job<N: Number> {
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
        aside: bool,
        /// Seconds that the run's clock leaves out from now on.
        left_out: f64,
    },
    Perform {
        id: AgentId,
        agent: Box<dyn ErasedAgent<N>>,
        request: Arc<Posted>,
        body: Body<N>,
    },
}

pub(super) enum Done<N: Number> {
    ServerMade { server: Box<dyn ErasedServer<N>>, progress: Progress },
    AgentMade { id: AgentId, agent: Box<dyn ErasedAgent<N>> },
    Served { requests: Vec<EncodedRequest<N>>, progress: Progress, records: Vec<Record> },
    ServerSettled { server: Box<dyn ErasedServer<N>>, progress: Progress, seconds: f64, aside: bool, records: Vec<Record> },
    Performed { id: AgentId, request: Arc<Posted>, seconds: f64, report: Raw<u8>, body: Body<N>, records: Vec<Record> },
    AgentSettled { id: AgentId, agent: Box<dyn ErasedAgent<N>>, seconds: f64, records: Vec<Record> },
    Failed(Fault),
}

/// What every job of a rank needs.
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
    /// What travels of these records, and what is stored here.
    fn apart(&self, records: Vec<Record>) -> (Vec<Record>, Vec<Draws>) {
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

impl<N: Number> Job<N> {
    /// Whether this is work of the server, which has a thread of its own.
    pub fn is_servers(&self) -> bool {
        matches!(self, Self::MakeServer { .. } | Self::Serve { .. })
    }

    /// Does the work; `emit` is called once or, where something settles, twice.
    pub fn run(self, bench: &WorkerContext<N>, mut emit: impl FnMut(Done<N>)) {
        if let Err(fault) = self.steps(bench, &mut emit) {
            emit(Done::Failed(fault));
        }
    }

    fn steps(self, bench: &WorkerContext<N>, emit: &mut impl FnMut(Done<N>)) -> Result<(), Fault> {
        let doing = |agent, what| Doing { method: bench.method.name(), rank: bench.rank, agent, what };
        let context = |agent| Context::new(bench.seed, agent, bench.clock.clone());
        match self {
            Self::MakeServer { saved } => {
                let (server, progress) = guard(doing(None, What::Making), || {
                    let server = bench.method.server(saved.as_ref().map(|bytes| bytes.0.as_slice()))?;
                    let progress = server.progress();
                    Ok((server, progress))
                })?;
                emit(Done::ServerMade { server, progress });
            }
            Self::MakeAgent { id, saved } => {
                let agent = guard(doing(Some(id), What::Making), || {
                    bench.method.agent(id, saved.as_ref().map(|bytes| bytes.0.as_slice()))
                })?;
                emit(Done::AgentMade { id, agent });
            }
            Self::Serve { mut server, response, aside, left_out } => {
                bench.clock.leave_out(left_out);
                let since = Instant::now();
                let what = if response.is_some() { What::Receiving } else { What::Starting };
                let mut cx = context(None);
                let (requests, progress) = guard(doing(None, what), || {
                    let requests = match response {
                        Some(response) => server.receive(response, &mut cx)?,
                        None => server.start(&mut cx)?,
                    };
                    Ok((requests, server.progress()))
                })?;
                emit(Done::Served { requests, progress, records: cx.into_records() });
                let mut cx = context(None);
                let progress = guard(doing(None, What::Settling), || {
                    server.after_requests(&mut cx)?;
                    Ok(server.progress())
                })?;
                let seconds = since.elapsed().as_secs_f64();
                emit(Done::ServerSettled { server, progress, seconds, aside, records: cx.into_records() });
            }
            Self::Perform { id, mut agent, request, body } => {
                let mut cx = context(Some(id));
                let since = Instant::now();
                let (report, body) =
                    guard(doing(Some(id), What::Performing(request.id)), || agent.perform(&request.task.0, body, &mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                let (records, draws) = bench.apart(cx.into_records());
                emit(Done::Performed { id, request, seconds, report, body, records });
                let mut cx = context(Some(id));
                let since = Instant::now();
                guard(doing(Some(id), What::Settling), || agent.after_report(&mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                let (records, more) = bench.apart(cx.into_records());
                if let Some(store) = &bench.store {
                    let draws: Vec<Draws> = draws.into_iter().chain(more).collect();
                    guard(doing(Some(id), What::Keeping), || if draws.is_empty() { Ok(()) } else { store.put(draws) })?;
                }
                emit(Done::AgentSettled { id, agent, seconds, records });
            }
        }
        Ok(())
    }
}
