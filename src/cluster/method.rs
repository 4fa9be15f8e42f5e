//! The traits of a distributed method: a server and agents that exchange tasks and reports, without any communication code.

use super::body::Body;
use super::codec::{Serializable, SerializesAs};
use super::context::Context;
use super::fault::Result;
use super::layout::{AgentId, Placement};
use super::request::{AgentReportOf, RequestOf, ResponseOf};
use crate::number::Number;

/// The state of a method's server, as saved in checkpoints.
pub type ServerState<M> = <<M as Method>::Server as Server<M>>::State;

/// The state of a method's agent, as saved in checkpoints.
pub type AgentState<M> = <<M as Method>::Agent as Agent<M>>::State;

/// A task for a set of agents, and where the bodies of their reports go.
pub type Request<M> = RequestOf<<M as Method>::Task, <M as Method>::Number>;

/// The reports of all agents of one request.
pub type Response<M> = ResponseOf<<M as Method>::Report, <M as Method>::Number>;

/// The report of one agent.
pub type AgentReport<M> = AgentReportOf<<M as Method>::Report, <M as Method>::Number>;

/// A distributed method: makes its server and its agents. The value is the method's validated configuration.
pub trait Method: Sized + Send + Sync + 'static {
    /// The default name in messages and checkpoints; a run file may give another one ([`erase`](super::erase)).
    const NAME: &'static str;
    /// The number type of bodies.
    type Number: Number;
    /// The head of a task: small; large arrays belong in the body.
    type Task: Serializable;
    /// The head of a report: small; always goes to the server.
    type Report: Serializable;
    /// The half that coordinates.
    type Server: Server<Self>;
    /// The half that owns a data shard.
    type Agent: Agent<Self>;

    /// The number of agents: the user's choice, independent of the number of ranks.
    fn agents(&self) -> u32;

    /// The order in which the server receives responses.
    fn order(&self) -> Order {
        Order::Posted
    }

    /// How agents are placed on ranks; affects speed only.
    fn placement(&self) -> Placement {
        Placement::Blocks
    }

    /// Makes the server, once, on rank 0; from its saved state when a run is resumed.
    fn server(&self, saved: Option<ServerState<Self>>) -> Result<Self::Server>;

    /// Makes an agent, once, on the rank that hosts it, and opens its shard.
    fn agent(&self, id: AgentId, saved: Option<AgentState<Self>>) -> Result<Self::Agent>;
}

/// The order in which a server receives the responses to its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order in which the requests were posted: the same for any number of ranks and threads.
    Posted,
    /// The order of arrival: for asynchronous methods.
    Arrival,
}

/// The half of a method that coordinates; lives on rank 0.
pub trait Server<M: Method>: Send {
    /// Everything that a resumed run needs, and nothing else.
    type State: Serializable;

    /// The state to save in a checkpoint.
    fn state(&self) -> impl SerializesAs<Self::State>;

    /// Posts the first requests of a new run.
    fn start(&mut self, out: &mut Outbox<M>, cx: &mut Context) -> Result<()>;

    /// Handles the reports of all members of one request. The run ends when no request is open and none is posted.
    fn receive(&mut self, response: Response<M>, out: &mut Outbox<M>, cx: &mut Context) -> Result<()>;

    /// Work that runs after the requests are sent.
    fn after_requests(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    /// The progress of the run.
    fn progress(&self) -> Progress;
}

/// The half of a method that owns a data shard.
pub trait Agent<M: Method>: Send {
    /// Everything that a resumed run needs, and nothing else: not what configuration and shard determine.
    type State: Serializable;

    /// The state to save in a checkpoint.
    fn state(&self) -> impl SerializesAs<Self::State>;

    /// The part of the posterior at this agent, for methods whose server has none to send to evaluations.
    fn posterior(&self) -> &[M::Number] {
        &[]
    }

    /// Performs a task. `body` comes from the server, or is a transfer: a sum that went directly to this agent.
    fn perform(&mut self, task: &M::Task, body: Body<M::Number>, cx: &mut Context) -> Result<(M::Report, Body<M::Number>)>;

    /// Work that runs after the report is sent, such as the distillation of DSVGD.
    fn after_report(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }
}

/// The progress of a run in units of its method: rounds, sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in total.
    pub total: u64,
}

impl Progress {
    /// Units that are still to be done.
    pub fn left(self) -> u64 {
        self.total.saturating_sub(self.done)
    }
}

/// Collects the requests that a server posts while it handles one event.
pub struct Outbox<M: Method> {
    requests: Vec<Request<M>>,
}

impl<M: Method> Outbox<M> {
    /// The posted requests, in order: for a method that wraps another.
    pub fn into_requests(self) -> Vec<Request<M>> {
        self.requests
    }

    /// Posts a request that was made elsewhere.
    pub fn post(&mut self, request: Request<M>) {
        self.requests.push(request);
    }

    /// Asks these agents to perform `task`. By default the request has no body, and every report's body goes to the server.
    pub fn request(&mut self, to: impl IntoIterator<Item = AgentId>, task: M::Task) -> &mut Request<M> {
        let place = self.requests.len();
        self.requests.push(RequestOf::new(to, task));
        &mut self.requests[place]
    }
}

impl<M: Method> Default for Outbox<M> {
    fn default() -> Self {
        Self { requests: Vec::new() }
    }
}
