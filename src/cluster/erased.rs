//! Methods behind one type: the engine sees tasks, reports and states as bytes, and is compiled once for each type of number.

use super::body::Body;
use super::codec::{Raw, decode, encode};
use super::context::Context;
use super::method::{Agent, AgentId, AgentReportOf, Method, Order, Placement, Progress, ResponseOf, Result, Server};
use super::outbox::{Outbox, RequestOf};
use super::run::JobOptions;
use crate::number::{Family, Number, Picked};
use std::sync::Arc;

/// A request as the engine sees it.
pub type EncodedRequest<N> = RequestOf<Raw<u8>, N>;
/// The report of one agent as the engine sees it.
pub type EncodedReport<N> = AgentReportOf<Raw<u8>, N>;
/// The response to a request as the engine sees it.
pub type EncodedResponse<N> = ResponseOf<Raw<u8>, N>;

/// A [`Method`] with types that the engine does not know.
pub trait ErasedMethod<N>: Send + Sync {
    fn name(&self) -> &'static str;
    fn order(&self) -> Order;
    fn agents(&self) -> u32;
    fn placement(&self) -> Placement;
    fn server(&self, saved: Option<&[u8]>) -> Result<Box<dyn ErasedServer<N>>>;
    fn agent(&self, id: AgentId, saved: Option<&[u8]>) -> Result<Box<dyn ErasedAgent<N>>>;
}

/// A [`Server`] of such a method; gives what it posts.
pub trait ErasedServer<N>: Send {
    fn state(&self) -> Result<Raw<u8>>;
    fn start(&mut self, cx: &mut Context) -> Result<Vec<EncodedRequest<N>>>;
    fn receive(&mut self, response: EncodedResponse<N>, cx: &mut Context) -> Result<Vec<EncodedRequest<N>>>;
    fn after_requests(&mut self, cx: &mut Context) -> Result<()>;
    fn progress(&self) -> Progress;
}

/// An [`Agent`] of such a method.
pub trait ErasedAgent<N>: Send {
    fn state(&self) -> Result<Raw<u8>>;
    fn perform(&mut self, task: &[u8], body: Body<N>, cx: &mut Context) -> Result<(Raw<u8>, Body<N>)>;
    fn after_report(&mut self, cx: &mut Context) -> Result<()>;
}

/// A method as the engine takes it.
pub type Erased<N> = Arc<dyn ErasedMethod<N>>;

/// A method as drivers take it, whatever its numbers are. They are compiled for each type of number here: a crate with a method of its
/// own compiles its two halves, and not an engine around them.
pub type AnyMethod = Picked<Methods>;

/// The methods with each type of number.
pub struct Methods;

impl Family for Methods {
    type Of<N: Number> = Erased<N>;
}

/// A method with its name in this run, erased.
struct MethodOf<M>(Arc<M>, &'static str);

/// The server of a method, erased.
struct ServerOf<M: Method>(M::Server);

/// An agent of a method, erased.
struct AgentOf<M: Method>(M::Agent);

/// The method as drivers take it.
pub(super) fn erased<M: Method>(method: Arc<M>, options: &JobOptions) -> AnyMethod {
    M::Number::pick::<Methods>(Arc::new(MethodOf(method, options.name_of::<M>())))
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

/// The requests of a server, with their tasks as bytes.
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
    fn state(&self) -> Result<Raw<u8>> {
        Ok(Raw(encode("an agent's state", &self.0.state())?))
    }

    fn perform(&mut self, task: &[u8], body: Body<M::Number>, cx: &mut Context) -> Result<(Raw<u8>, Body<M::Number>)> {
        let (report, body) = self.0.perform(&decode("a task", task)?, body, cx)?;
        Ok((Raw(encode("a report", &report)?), body))
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        self.0.after_report(cx)
    }
}
