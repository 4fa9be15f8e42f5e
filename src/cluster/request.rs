//! Requests and responses: a task for a set of agents, where the bodies of their reports go, and what comes back.

use super::body::Body;
use super::codec::Raw;
use super::fault;
use super::layout::AgentId;
use super::ranges::Ranges;
use crate::number::Number;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// The number of a request, and of the transfer that results from it.
pub(super) type RequestId = u64;

/// A request by the types of its task and of the numbers in its body; methods use the alias [`Request`](super::Request).
#[derive(Clone)]
pub struct RequestOf<T, N> {
    /// The members.
    pub(super) to: Ranges,
    pub(super) task: T,
    pub(super) body: Body<N>,
    pub(super) with_transfer: bool,
    pub(super) route: Route,
    pub(super) monitoring: bool,
}

/// Where the bodies of reports go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Route {
    /// Each to the server.
    Back,
    /// Their sum to the server.
    Sum,
    /// Their sum to these agents, without passing through the server.
    SumTo(Ranges),
}

impl Route {
    /// Whether the bodies of these members stay where they are made: one agent sends only to itself.
    pub(super) fn stays_at(&self, members: &Ranges) -> bool {
        matches!(self, Self::SumTo(to) if to.len() == 1 && to == members)
    }
}

impl<T, N: Number> RequestOf<T, N> {
    /// A request without a body; every report's body goes to the server.
    pub(super) fn new(to: impl IntoIterator<Item = AgentId>, task: T) -> Self {
        Self { to: Ranges::new(to), task, body: Body::empty(), with_transfer: false, route: Route::Back, monitoring: false }
    }

    /// The same request with another task: for a method that wraps another.
    pub fn map_task<O>(self, wrap: impl FnOnce(T) -> O) -> RequestOf<O, N> {
        let Ok(request) = self.try_map_task(|task| Ok::<_, Infallible>(wrap(task)));
        request
    }

    pub(super) fn try_map_task<O, E>(self, wrap: impl FnOnce(T) -> Result<O, E>) -> Result<RequestOf<O, N>, E> {
        let Self { to, task, body, with_transfer, route, monitoring } = self;
        Ok(RequestOf { to, task: wrap(task)?, body, with_transfer, route, monitoring })
    }

    /// Sends the same body to every member, once per rank.
    pub fn with(&mut self, body: impl Into<Body<N>>) -> &mut Self {
        self.body = body.into();
        self
    }

    /// Each member takes the oldest transfer that an earlier request promised to it, and waits for it if it has not arrived.
    pub fn with_transfer(&mut self) -> &mut Self {
        self.with_transfer = true;
        self
    }

    /// Marks a request that observes the run without changing it, such as an evaluation. Agents perform it in its turn. Its response
    /// does not hold up any other response, and the run's clock leaves out the time that the ranks spend on it.
    pub fn monitoring(&mut self) -> &mut Self {
        self.monitoring = true;
        self
    }

    /// The bodies are added, in an order that depends on the numbers of the agents alone, and the sum goes to the server.
    pub fn sum(&mut self) -> &mut Self {
        self.route = Route::Sum;
        self
    }

    /// The bodies are added in the same way, and the sum goes directly to these agents as a transfer.
    pub fn sum_to(&mut self, to: impl IntoIterator<Item = AgentId>) -> &mut Self {
        self.route = Route::SumTo(Ranges::new(to));
        self
    }
}

/// A response by the types of its reports and of the numbers in their bodies; methods use the alias [`Response`](super::Response).
#[derive(Debug)]
pub struct ResponseOf<R, N> {
    /// A report from each member, in agent order.
    pub reports: Vec<AgentReportOf<R, N>>,
    /// The sum of the bodies, if the request used [`sum`](RequestOf::sum); otherwise empty.
    pub sum: Body<N>,
}

impl<R, N> ResponseOf<R, N> {
    /// The report of a request to one agent.
    ///
    /// # Errors
    /// If there is no report or more than one.
    pub fn only(mut self) -> fault::Result<AgentReportOf<R, N>> {
        match (self.reports.pop(), self.reports.len()) {
            (Some(report), 0) => Ok(report),
            (None, _) => Err("expected one report and got none".into()),
            (Some(_), others) => Err(format!("expected one report and got {}", others + 1).into()),
        }
    }
}

/// An agent's report by the types of its content and of the numbers in its body; methods use the alias
/// [`AgentReport`](super::AgentReport).
#[derive(Debug)]
pub struct AgentReportOf<R, N> {
    /// The agent.
    pub from: AgentId,
    /// Duration of the task in seconds: wall time, or virtual time in a simulation.
    pub seconds: f64,
    /// The head of the report.
    pub report: R,
    /// The body, if the request has bodies returned to the server; otherwise empty.
    pub body: Body<N>,
}

impl<R, N> AgentReportOf<R, N> {
    pub(super) fn try_map<O, E>(self, read: impl FnOnce(R) -> Result<O, E>) -> Result<AgentReportOf<O, N>, E> {
        let Self { from, seconds, report, body } = self;
        Ok(AgentReportOf { from, seconds, report: read(report)?, body })
    }
}

/// A request with its task as bytes.
pub(super) type EncodedRequest<N> = RequestOf<Raw<u8>, N>;
/// An agent's report as bytes.
pub(super) type EncodedReport<N> = AgentReportOf<Raw<u8>, N>;
/// A response with its reports as bytes.
pub(super) type EncodedResponse<N> = ResponseOf<Raw<u8>, N>;
