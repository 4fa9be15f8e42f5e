//! Type erasure of methods: the engine sees tasks, reports and states as bytes, so it is compiled once for each number type.

use super::body::Body;
use super::codec::{Raw, decode, encode, encode_to};
use super::context::Context;
use super::fault::Result;
use super::layout::{AgentId, Placement};
use super::method::{Agent, Method, Order, Outbox, Progress, Server};
use super::request::{EncodedRequest, EncodedResponse, ResponseOf};
use crate::number::{ByNumber, Number, PerNumber};
use std::io::Write;
use std::sync::Arc;

/// A [`Method`] without its types.
pub trait ErasedMethod<N>: Send + Sync {
    fn name(&self) -> &'static str;
    fn order(&self) -> Order;
    fn agents(&self) -> u32;
    fn placement(&self) -> Placement;
    fn server(&self, saved: Option<&[u8]>) -> Result<Box<dyn ErasedServer<N>>>;
    fn agent(&self, id: AgentId, saved: Option<&[u8]>) -> Result<Box<dyn ErasedAgent<N>>>;
}

/// A [`Server`] without its types; returns the requests that it posts.
pub trait ErasedServer<N>: Send {
    fn state(&self) -> Result<Raw<u8>>;
    fn start(&mut self, cx: &mut Context) -> Result<Vec<EncodedRequest<N>>>;
    fn receive(&mut self, response: EncodedResponse<N>, cx: &mut Context) -> Result<Vec<EncodedRequest<N>>>;
    fn after_requests(&mut self, cx: &mut Context) -> Result<()>;
    fn progress(&self) -> Progress;
}

/// An [`Agent`] without its types.
pub trait ErasedAgent<N>: Send {
    fn write_state(&self, to: &mut dyn Write) -> Result<()>;
    fn perform(&mut self, task: &[u8], body: Body<N>, cx: &mut Context) -> Result<(Raw<u8>, Body<N>)>;
    fn after_report(&mut self, cx: &mut Context) -> Result<()>;
}

/// A method as the engine sees it.
pub type Erased<N> = Arc<dyn ErasedMethod<N>>;

/// A method of any number type, as drivers take it. Drivers are compiled for each number type in this crate, so that a crate with its
/// own method compiles only the two halves of the method, not the engine.
pub type AnyMethod = ByNumber<Methods>;

/// Erased methods of each number type.
pub struct Methods;

impl PerNumber for Methods {
    type Of<N: Number> = Erased<N>;
}

/// A method with its name in this run.
struct MethodOf<M>(Arc<M>, &'static str);

/// The server of a method.
struct ServerOf<M: Method>(M::Server);

/// An agent of a method.
struct AgentOf<M: Method>(M::Agent);

/// Erases the types of a method, which has this name in messages and checkpoints.
pub fn erase<M: Method>(method: M, name: &'static str) -> AnyMethod {
    erase_shared(Arc::new(method), name)
}

/// The same for a method that is shared.
pub(super) fn erase_shared<M: Method>(method: Arc<M>, name: &'static str) -> AnyMethod {
    M::Number::by_number::<Methods>(Arc::new(MethodOf(method, name)))
}

impl AnyMethod {
    /// The name in messages and checkpoints.
    pub fn name(&self) -> &'static str {
        match self {
            Self::F32(method) => method.name(),
            Self::F64(method) => method.name(),
            Self::I32(method) => method.name(),
        }
    }

    /// The name of its number type.
    pub fn number(&self) -> &'static str {
        match self {
            Self::F32(_) => f32::NAME,
            Self::F64(_) => f64::NAME,
            Self::I32(_) => i32::NAME,
        }
    }
}

impl<M: Method> ErasedMethod<M::Number> for MethodOf<M> {
    fn name(&self) -> &'static str {
        self.1
    }

    fn order(&self) -> Order {
        self.0.order()
    }

    fn agents(&self) -> u32 {
        self.0.agents()
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }

    fn server(&self, saved: Option<&[u8]>) -> Result<Box<dyn ErasedServer<M::Number>>> {
        let saved = saved.map(|bytes| decode("the server's saved state", bytes)).transpose()?;
        Ok(Box::new(ServerOf::<M>(self.0.server(saved)?)))
    }

    fn agent(&self, id: AgentId, saved: Option<&[u8]>) -> Result<Box<dyn ErasedAgent<M::Number>>> {
        let saved = saved.map(|bytes| decode("an agent's saved state", bytes)).transpose()?;
        Ok(Box::new(AgentOf::<M>(self.0.agent(id, saved)?)))
    }
}

/// The posted requests, with their tasks as bytes.
fn encoded<M: Method>(outbox: Outbox<M>) -> Result<Vec<EncodedRequest<M::Number>>> {
    outbox.into_requests().into_iter().map(|request| Ok(request.try_map_task(|task| encode("a task", &task).map(Raw))?)).collect()
}

impl<M: Method> ErasedServer<M::Number> for ServerOf<M> {
    fn state(&self) -> Result<Raw<u8>> {
        Ok(Raw(encode("the server's state", &self.0.state())?))
    }

    fn start(&mut self, cx: &mut Context) -> Result<Vec<EncodedRequest<M::Number>>> {
        let mut outbox = Outbox::default();
        self.0.start(&mut outbox, cx)?;
        encoded::<M>(outbox)
    }

    fn receive(&mut self, response: EncodedResponse<M::Number>, cx: &mut Context) -> Result<Vec<EncodedRequest<M::Number>>> {
        let ResponseOf { reports, sum } = response;
        let reports = reports.into_iter().map(|reported| reported.try_map(|report| decode("a report", &report.0)));
        let response = ResponseOf { reports: reports.collect::<Result<_, _>>()?, sum };
        let mut outbox = Outbox::default();
        self.0.receive(response, &mut outbox, cx)?;
        encoded::<M>(outbox)
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        self.0.after_requests(cx)
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

impl<M: Method> ErasedAgent<M::Number> for AgentOf<M> {
    fn write_state(&self, to: &mut dyn Write) -> Result<()> {
        Ok(encode_to(to, "an agent's state", &self.0.state())?)
    }

    fn perform(&mut self, task: &[u8], body: Body<M::Number>, cx: &mut Context) -> Result<(Raw<u8>, Body<M::Number>)> {
        let (report, body) = self.0.perform(&decode("a task", task)?, body, cx)?;
        Ok((Raw(encode("a report", &report)?), body))
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        self.0.after_report(cx)
    }
}
