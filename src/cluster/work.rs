//! Units of work for worker threads, and their results.

use super::body::Body;
use super::codec::Raw;
use super::context::{Clock, Context};
use super::erased::{Erased, ErasedAgent, ErasedServer};
use super::fault::{Action, Activity, Fault, guard};
use super::layout::{AgentId, Rank};
use super::method::Progress;
use super::options::DrawStore;
use super::packet::{AgentBytes, Posted};
use super::packing::wire_bytes;
use super::record::{DrawBlock, Record};
use super::request::{EncodedRequest, EncodedResponse, RequestId};
use super::states::{SavedState, StateStore};
use super::timeline::{Doing, SERVER, Timeline};
use crate::number::Number;
use crate::random::Seed;
use std::sync::Arc;
use std::time::Instant;

/// A unit of work.
pub(super) enum Work<N: Number> {
    MakeServer {
        saved: Option<Raw<u8>>,
    },
    MakeAgent {
        id: AgentId,
        saved: Option<SavedState>,
    },
    /// Hands a response to the server; without one, starts the server.
    Serve {
        server: Box<dyn ErasedServer<N>>,
        response: Option<EncodedResponse<N>>,
        /// Whether it is the response to a monitoring request.
        monitoring: bool,
        /// The seconds that the run's clock excludes from now on.
        excluded: f64,
        /// Bytes that agents have received and sent, of the responses so far.
        bytes: AgentBytes,
    },
    Perform {
        id: AgentId,
        agent: Box<dyn ErasedAgent<N>>,
        request: Arc<Posted>,
        body: Body<N>,
        /// Whether the agent has made the body itself, so that it did not travel.
        stayed: bool,
    },
}

/// A result of work.
pub(super) enum Completed<N: Number> {
    ServerMade {
        server: Box<dyn ErasedServer<N>>,
        progress: Progress,
    },
    AgentMade {
        id: AgentId,
        agent: Box<dyn ErasedAgent<N>>,
    },
    Served {
        requests: Vec<EncodedRequest<N>>,
        progress: Progress,
        records: Vec<Record>,
    },
    ServerReturned {
        server: Box<dyn ErasedServer<N>>,
        progress: Progress,
        seconds: f64,
        monitoring: bool,
        records: Vec<Record>,
    },
    Performed {
        id: AgentId,
        request: Arc<Posted>,
        seconds: f64,
        bytes: AgentBytes,
        report: Raw<u8>,
        body: Body<N>,
        records: Vec<Record>,
    },
    AgentReturned {
        id: AgentId,
        agent: Box<dyn ErasedAgent<N>>,
        seconds: f64,
        records: Vec<Record>,
    },
    Failed(Fault),
}

/// What every unit of work of a rank needs.
pub(super) struct WorkerContext<N: Number> {
    pub method: Erased<N>,
    pub seed: Seed,
    pub rank: Rank,
    pub clock: Clock,
    pub store: Option<Arc<dyn DrawStore>>,
    pub states: Option<Arc<dyn StateStore>>,
    pub timeline: Option<Arc<Timeline>>,
    /// The number of the thread in the timeline: 0 for the main thread.
    pub thread: u32,
}

impl<N: Number> Clone for WorkerContext<N> {
    fn clone(&self) -> Self {
        Self {
            method: self.method.clone(),
            clock: self.clock.clone(),
            store: self.store.clone(),
            states: self.states.clone(),
            timeline: self.timeline.clone(),
            ..*self
        }
    }
}

impl<N: Number> WorkerContext<N> {
    /// Notes a span of time that ends now.
    fn note(&self, doing: Doing, agent: Option<AgentId>, request: Option<RequestId>, since: Instant) {
        if let Some(timeline) = &self.timeline {
            let thread = if agent.is_none() { SERVER } else { self.thread };
            timeline.add(doing, thread, agent, request, since);
        }
    }

    /// Separates the records that are sent to rank 0 from the draws that are stored on this rank.
    fn split_draws(&self, records: Vec<Record>) -> (Vec<Record>, Vec<DrawBlock>) {
        if self.store.is_none() {
            return (records, Vec::new());
        }
        let (mut sent, mut stored) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Draws(draws) => stored.push(draws),
                Record::Row(_) => sent.push(record),
            }
        }
        (sent, stored)
    }
}

impl<N: Number> Completed<N> {
    /// Whether it is the last of its work.
    pub fn is_last(&self) -> bool {
        !matches!(self, Self::Served { .. } | Self::Performed { .. })
    }
}

impl<N: Number> Work<N> {
    /// Whether this is work of the server, which has its own thread.
    pub fn is_for_server(&self) -> bool {
        matches!(self, Self::MakeServer { .. } | Self::Serve { .. })
    }

    /// Does the work and emits its results: one, or two if work follows a report or a response.
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
                    let saved = saved.map(|saved| saved.load(worker.states.as_deref())).transpose()?;
                    worker.method.agent(id, saved.as_deref())
                })?;
                emit(Completed::AgentMade { id, agent });
            }
            Self::Serve { mut server, response, monitoring, excluded, bytes } => {
                worker.clock.exclude(excluded);
                let since = Instant::now();
                let action = if response.is_some() { Action::Receiving } else { Action::Starting };
                let mut cx = context(None).with_bytes(bytes);
                let (requests, progress) = guard(activity(None, action), || {
                    let requests = match response {
                        Some(response) => server.receive(response, &mut cx)?,
                        None => server.start(&mut cx)?,
                    };
                    Ok((requests, server.progress()))
                })?;
                emit(Completed::Served { requests, progress, records: cx.into_records() });
                let mut cx = context(None).with_bytes(bytes);
                let progress = guard(activity(None, Action::Following), || {
                    server.after_requests(&mut cx)?;
                    Ok(server.progress())
                })?;
                let seconds = since.elapsed().as_secs_f64();
                worker.note(Doing::Server, None, None, since);
                emit(Completed::ServerReturned { server, progress, seconds, monitoring, records: cx.into_records() });
            }
            Self::Perform { id, mut agent, request, body, stayed } => {
                let mut cx = context(Some(id));
                let received = if stayed { 0 } else { wire_bytes(&body) as u64 };
                let since = Instant::now();
                let (report, body) =
                    guard(activity(Some(id), Action::Performing(request.id)), || agent.perform(&request.task.0, body, &mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                let doing = if request.monitoring { Doing::Evaluation } else { Doing::Task };
                let number = Some(request.id);
                worker.note(doing, Some(id), number, since);
                let (records, draws) = worker.split_draws(cx.into_records());
                let sent = if request.stays() { 0 } else { wire_bytes(&body) as u64 };
                let bytes = AgentBytes { received, sent };
                emit(Completed::Performed { id, request, seconds, bytes, report, body, records });
                let mut cx = context(Some(id));
                let since = Instant::now();
                guard(activity(Some(id), Action::Following), || agent.after_report(&mut cx))?;
                let seconds = since.elapsed().as_secs_f64();
                worker.note(Doing::AfterReport, Some(id), number, since);
                let (mut records, more) = worker.split_draws(cx.into_records());
                let draws: Vec<DrawBlock> = draws.into_iter().chain(more).collect();
                if let Some(store) = worker.store.as_ref().filter(|_| !draws.is_empty()) {
                    let unstored = guard(activity(Some(id), Action::Recording), || store.put(draws))?;
                    records.extend(unstored.into_iter().map(Record::Draws));
                }
                emit(Completed::AgentReturned { id, agent, seconds, records });
            }
        }
        Ok(())
    }
}
