//! The one verb of a server: ask these agents to perform a task, and say where the bodies of their reports go.

use super::body::Body;
use super::method::{AgentId, Method};
use crate::number::Number;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// Collects the requests that a server posts while it handles one event.
pub struct Outbox<M: Method> {
    pub(super) requests: Vec<Request<M>>,
}

/// A task for a set of agents, and what becomes of their bodies.
pub type Request<M> = RequestOf<<M as Method>::Task, <M as Method>::Number>;

/// A [`Request`] by what its task and its bodies are made of.
#[derive(Clone)]
pub struct RequestOf<T, N> {
    /// The members, ascending.
    pub(super) to: Vec<AgentId>,
    pub(super) task: T,
    pub(super) body: Body<N>,
    pub(super) handed: bool,
    pub(super) route: Route,
    pub(super) aside: bool,
}

/// Where the bodies of reports go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Route {
    /// Each to the server.
    Back,
    /// Their sum to the server.
    Sum,
    /// Their sum to these agents (ascending), past the server.
    SumTo(Vec<AgentId>),
}

impl<M: Method> Outbox<M> {
    /// The requests that were posted, in order: for a method that wraps another.
    pub fn into_requests(self) -> Vec<Request<M>> {
        self.requests
    }

    /// Posts a request that was made elsewhere.
    pub fn post(&mut self, request: Request<M>) {
        self.requests.push(request);
    }

    /// Asks these agents to perform `task`. By default nothing goes down with it and every body comes back.
    pub fn request(&mut self, to: impl IntoIterator<Item = AgentId>, task: M::Task) -> &mut Request<M> {
        let mut to: Vec<AgentId> = to.into_iter().collect();
        to.sort_unstable();
        let place = self.requests.len();
        self.requests.push(RequestOf { to, task, body: Body::empty(), handed: false, route: Route::Back, aside: false });
        &mut self.requests[place]
    }
}

impl<M: Method> Default for Outbox<M> {
    fn default() -> Self {
        Self { requests: Vec::new() }
    }
}

impl<T, N: Number> RequestOf<T, N> {
    /// The same request of a method that wraps this one.
    pub fn map_task<O>(self, wrap: impl FnOnce(T) -> O) -> RequestOf<O, N> {
        let Ok(request) = self.try_map_task(|task| Ok::<_, Infallible>(wrap(task)));
        request
    }

    pub(super) fn try_map_task<O, E>(self, wrap: impl FnOnce(T) -> Result<O, E>) -> Result<RequestOf<O, N>, E> {
        let Self { to, task, body, handed, route, aside } = self;
        Ok(RequestOf { to, task: wrap(task)?, body, handed, route, aside })
    }

    /// Sends the same body to every member, once per rank.
    pub fn with(&mut self, body: impl Into<Body<N>>) -> &mut Self {
        self.body = body.into();
        self
    }

    /// Each member takes the oldest parcel that an earlier request promised to it, and waits for it if need be.
    pub fn with_transfer(&mut self) -> &mut Self {
        self.handed = true;
        self
    }

    /// Looks at the run and is no part of it, such as an evaluation. Agents perform it in its turn, but no other response waits for
    /// its response, which comes when it is there; and the run's clock leaves out the time that the ranks spend on it.
    pub fn monitoring(&mut self) -> &mut Self {
        self.aside = true;
        self
    }

    /// The bodies are added in agent order, and the sum goes to the server.
    pub fn sum(&mut self) -> &mut Self {
        self.route = Route::Sum;
        self
    }

    /// The bodies are added in agent order, and the sum goes straight to these agents as a parcel.
    pub fn sum_to(&mut self, to: impl IntoIterator<Item = AgentId>) -> &mut Self {
        let mut to: Vec<AgentId> = to.into_iter().collect();
        to.sort_unstable();
        self.route = Route::SumTo(to);
        self
    }
}
