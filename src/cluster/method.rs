//! What a distributed method is: a server half and an agent half that talk in tasks and reports, with no communication in them.

use super::body::Body;
use super::codec::{Serializable, SerializesAs};
use super::context::Context;
use super::outbox::Outbox;
use crate::number::Number;

/// The number of an agent: 0, 1, ... up to [`Method::agents`]; says nothing about ranks.
pub type AgentId = u32;

/// Any error of a method; it ends the job with a message that names rank, agent and what was being done.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What methods return.
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

/// The state of a method's server, as a checkpoint keeps it.
pub type ServerState<M> = <<M as Method>::Server as Server<M>>::State;

/// The state of a method's agent, as a checkpoint keeps it.
pub type AgentState<M> = <<M as Method>::Agent as Agent<M>>::State;

/// A distributed method: how its two halves are made. The value is the method's validated configuration.
pub trait Method: Sized + Send + Sync + 'static {
    /// The name in messages and checkpoints, where the job's options give no other: one method may serve several of a user's.
    const NAME: &'static str;
    /// What bodies are made of.
    type Number: Number;
    /// The head of a task: small; large arrays belong in the body.
    type Task: Serializable;
    /// The head of a report: small; always comes back to the server.
    type Report: Serializable;
    /// The half that coordinates.
    type Server: Server<Self>;
    /// The half that owns a data shard.
    type Agent: Agent<Self>;

    /// How many agents: the user's choice, whatever the number of ranks.
    fn agents(&self) -> u32;

    /// In which order the server receives responses.
    fn order(&self) -> Order {
        Order::Posted
    }

    /// How agents are assigned to ranks. Changes nothing but the speed.
    fn placement(&self) -> Placement {
        Placement::Blocks
    }

    /// Makes the server, once, on rank 0; from its saved state when a run is resumed.
    fn server(&self, saved: Option<ServerState<Self>>) -> Result<Self::Server>;

    /// Makes an agent, once, on the rank that hosts it; opens its shard.
    fn agent(&self, id: AgentId, saved: Option<AgentState<Self>>) -> Result<Self::Agent>;
}

/// In which order a server receives the responses to its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the order in which it posted the requests: the same on any number of ranks and threads.
    Posted,
    /// As they come: for asynchronous methods.
    Arrival,
}

/// How agents are dealt over the ranks that host any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Neighbours stay together: best where agents hand states to their neighbours.
    Blocks,
    /// Neighbours sit on different ranks: best where agents are asked one after another and go on working behind their report.
    Cyclic,
}

/// The half that coordinates; lives on rank 0.
pub trait Server<M: Method>: Send {
    /// All that a resumed run needs, and nothing else.
    type State: Serializable;

    /// What a checkpoint keeps.
    fn state(&self) -> impl SerializesAs<Self::State>;

    /// Posts the first requests of a fresh run.
    fn start(&mut self, out: &mut Outbox<M>, cx: &mut Context) -> Result<()>;

    /// One request has been performed by all of its members. The run is over when no request is open and none is posted.
    fn receive(&mut self, response: Response<M>, out: &mut Outbox<M>, cx: &mut Context) -> Result<()>;

    /// Work that runs after the requests are sent.
    fn after_requests(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    /// How far the run is.
    fn progress(&self) -> Progress;
}

/// The half that owns a data shard.
pub trait Agent<M: Method>: Send {
    /// All that a resumed run needs, and nothing else: what can be made again from configuration and shard stays outside.
    type State: Serializable;

    /// What a checkpoint keeps.
    fn state(&self) -> impl SerializesAs<Self::State>;

    /// What evaluations judge, where it lies at agents, and the server has nothing to send.
    fn posterior(&self) -> &[M::Number] {
        &[]
    }

    /// Performs a task. `body` is what the server sent with it, or the parcel that another agent (or a sum over agents) left here.
    fn perform(&mut self, task: &M::Task, body: Body<M::Number>, cx: &mut Context) -> Result<(M::Report, Body<M::Number>)>;

    /// Work that runs after the report is sent, such as the distillation of DSVGD.
    fn after_report(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }
}

/// How far a run is, in units of the method: rounds, sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all.
    pub total: u64,
}

/// One request, performed by all of its members.
pub type Response<M> = ResponseOf<<M as Method>::Report, <M as Method>::Number>;

/// A [`Response`] by what its reports and bodies are made of.
#[derive(Debug)]
pub struct ResponseOf<R, N> {
    /// A report from each member, in agent order.
    pub reports: Vec<AgentReportOf<R, N>>,
    /// The sum of the bodies, folded in agent order, where the request said `sum()`; empty elsewhere.
    pub sum: Body<N>,
}

impl<R, N> ResponseOf<R, N> {
    /// The report of a request that had one member; an error that says so for any other.
    pub fn only(mut self) -> Result<AgentReportOf<R, N>> {
        match (self.reports.pop(), self.reports.len()) {
            (Some(report), 0) => Ok(report),
            (None, _) => Err("expected one report and got none".into()),
            (Some(_), rest) => Err(format!("expected one report and got {}", rest + 1).into()),
        }
    }
}

/// The report of one agent.
pub type AgentReport<M> = AgentReportOf<<M as Method>::Report, <M as Method>::Number>;

/// An [`AgentReport`] by what its report and its body are made of.
#[derive(Debug)]
pub struct AgentReportOf<R, N> {
    /// Who reports.
    pub from: AgentId,
    /// How long the task took: wall seconds, or virtual ones in a simulation.
    pub seconds: f64,
    /// The head of the report.
    pub report: R,
    /// The body, where the request wanted bodies back; empty elsewhere.
    pub body: Body<N>,
}

impl<R, N> AgentReportOf<R, N> {
    pub(super) fn try_map<O, E>(self, read: impl FnOnce(R) -> Result<O, E>) -> Result<AgentReportOf<O, N>, E> {
        let Self { from, seconds, report, body } = self;
        Ok(AgentReportOf { from, seconds, report: read(report)?, body })
    }
}
