//! Methods behind one type: the engine sees tasks, reports and states as bytes, and is compiled once for each type of number.

use super::body::Body;
use super::codec::{Raw, decode, encode};
use super::context::Context;
use super::method::{Agent, AgentId, AnswerOf, Dealing, Method, Order, Progress, ReportedOf, Result, Server};
use super::outbox::{AskOf, Outbox};
use super::run::Plan;
use crate::number::{Family, Number, Picked};
use std::sync::Arc;

/// An ask as the engine sees it.
pub type EncodedAsk<N> = AskOf<Raw<u8>, N>;
/// The report of one agent as the engine sees it.
pub type EncodedReported<N> = ReportedOf<Raw<u8>, N>;
/// The answer to an ask as the engine sees it.
pub type EncodedAnswer<N> = AnswerOf<Raw<u8>, N>;

/// A [`Method`] with types that the engine does not know.
pub trait ErasedMethod<N>: Send + Sync {
    fn name(&self) -> &'static str;
    fn order(&self) -> Order;
    fn agents(&self) -> u32;
    fn dealing(&self) -> Dealing;
    fn server(&self, saved: Option<&[u8]>) -> Result<Box<dyn ErasedServer<N>>>;
    fn agent(&self, id: AgentId, saved: Option<&[u8]>) -> Result<Box<dyn ErasedAgent<N>>>;
}

/// A [`Server`] of such a method; gives what it posts.
pub trait ErasedServer<N>: Send {
    fn state(&self) -> Result<Raw<u8>>;
    fn start(&mut self, cx: &mut Context) -> Result<Vec<EncodedAsk<N>>>;
    fn receive(&mut self, answer: EncodedAnswer<N>, cx: &mut Context) -> Result<Vec<EncodedAsk<N>>>;
    fn settle(&mut self, cx: &mut Context) -> Result<()>;
    fn progress(&self) -> Progress;
}

/// An [`Agent`] of such a method.
pub trait ErasedAgent<N>: Send {
    fn state(&self) -> Result<Raw<u8>>;
    fn perform(&mut self, task: &[u8], body: Body<N>, cx: &mut Context) -> Result<(Raw<u8>, Body<N>)>;
    fn settle(&mut self, cx: &mut Context) -> Result<()>;
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
pub(super) fn erased<M: Method>(method: Arc<M>, plan: &Plan) -> AnyMethod {
    M::Number::pick::<Methods>(Arc::new(MethodOf(method, plan.name_of::<M>())))
}

impl<M: Method> ErasedMethod<M::Number> for MethodOf<M> {
    fn name(&self) -> &'static str {
        self.1
    }

    fn order(&self) -> Order {
        M::ORDER
    }

    fn agents(&self) -> u32 {
        self.0.agents()
    }

    fn dealing(&self) -> Dealing {
        self.0.dealing()
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

/// The asks of a server, with their tasks as bytes.
fn encoded<M: Method>(outbox: Outbox<M>) -> Result<Vec<EncodedAsk<M::Number>>> {
    outbox.into_asks().into_iter().map(|ask| Ok(ask.try_map_task(|task| encode("a task", &task).map(Raw))?)).collect()
}

impl<M: Method> ErasedServer<M::Number> for ServerOf<M> {
    fn state(&self) -> Result<Raw<u8>> {
        Ok(Raw(encode("the server's state", &self.0.state())?))
    }

    fn start(&mut self, cx: &mut Context) -> Result<Vec<EncodedAsk<M::Number>>> {
        let mut outbox = Outbox::default();
        self.0.start(&mut outbox, cx)?;
        encoded::<M>(outbox)
    }

    fn receive(&mut self, answer: EncodedAnswer<M::Number>, cx: &mut Context) -> Result<Vec<EncodedAsk<M::Number>>> {
        let AnswerOf { reports, sum } = answer;
        let reports = reports.into_iter().map(|reported| reported.try_map(|report| decode("a report", &report.0)));
        let answer = AnswerOf { reports: reports.collect::<Result<_, _>>()?, sum };
        let mut outbox = Outbox::default();
        self.0.receive(answer, &mut outbox, cx)?;
        encoded::<M>(outbox)
    }

    fn settle(&mut self, cx: &mut Context) -> Result<()> {
        self.0.settle(cx)
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

    fn settle(&mut self, cx: &mut Context) -> Result<()> {
        self.0.settle(cx)
    }
}
