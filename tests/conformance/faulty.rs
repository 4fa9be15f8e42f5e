//! Wraps a method to inject a failure at a chosen place.

use mpibayes::cluster::{
    Agent, AgentId, AgentState, Body, Context, Method, Order, Outbox, Placement, Progress, Response, Result, SerializesAs,
    Server, ServerState,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The message of every injected error and panic.
pub const CAUSE: &str = "injected on purpose";

/// A failure to be injected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Injection {
    pub who: Who,
    pub place: Place,
    pub how: How,
    /// Additional seconds of each task of the other agents, so that they are busy when the failure happens.
    pub others_sleep: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    Server,
    Agent(AgentId),
    EveryAgent,
}

/// Where the failure happens; numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    Creating,
    /// The server alone.
    Starting,
    /// The task or response with this number.
    Working(u64),
    /// The work after this report or response.
    Following(u64),
    /// When the state is saved.
    Saving,
    /// In the recorder, at a checkpoint; `who` is the server.
    Recording,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    Error,
    Panic,
    Exit,
    /// A panic on a thread that helps with the task.
    HelperPanic,
    HelperExit,
}

impl How {
    /// Failures on the thread of the task.
    pub const ALL: [Self; 3] = [Self::Error, Self::Panic, Self::Exit];
    pub const ON_HELPERS: [Self; 2] = [Self::HelperPanic, Self::HelperExit];

    pub fn fail(self) -> Result<()> {
        match self {
            Self::Error => Err(CAUSE.into()),
            Self::Panic => panic!("{CAUSE}"),
            Self::Exit => std::process::exit(0),
            // Called from another thread, rayon runs both closures on its own threads.
            Self::HelperPanic => rayon::join(|| Self::Panic.fail(), || ()).0,
            Self::HelperExit => rayon::join(|| Self::Exit.fail(), || ()).0,
        }
    }
}

/// The number of tasks of each agent and, under `None`, the number of responses that the server received.
pub type Workload = BTreeMap<Option<AgentId>, u64>;

pub struct Faulty<M> {
    pub inner: Arc<M>,
    pub injection: Option<Injection>,
    pub workload: Arc<Mutex<Workload>>,
}

/// Injects the failure into the server or an agent.
struct Trap {
    me: Option<AgentId>,
    injection: Option<Injection>,
    workload: Arc<Mutex<Workload>>,
    worked: u64,
}

impl Trap {
    fn set<M>(me: Option<AgentId>, faulty: &Faulty<M>) -> Self {
        Self { me, injection: faulty.injection, workload: faulty.workload.clone(), worked: 0 }
    }

    fn at(&self, place: Place) -> Result<()> {
        match self.injection {
            Some(injection) if injection.place == place && self.applies_to(injection.who) => injection.how.fail(),
            _ => Ok(()),
        }
    }

    fn applies_to(&self, who: Who) -> bool {
        match who {
            Who::Server => self.me.is_none(),
            Who::Agent(id) => self.me == Some(id),
            Who::EveryAgent => self.me.is_some(),
        }
    }

    fn work(&mut self) -> Result<()> {
        if let (Some(injection), Some(_)) = (self.injection, self.me)
            && !self.applies_to(injection.who)
        {
            std::thread::sleep(Duration::from_secs_f64(injection.others_sleep));
        }
        self.at(Place::Working(self.worked))?;
        self.worked += 1;
        self.workload.lock().unwrap().insert(self.me, self.worked);
        Ok(())
    }

    fn after_report(&self) -> Result<()> {
        // The server's work after its start is not counted.
        self.worked.checked_sub(1).map_or(Ok(()), |last| self.at(Place::Following(last)))
    }
}

pub struct FaultyServer<M: Method> {
    inner: M::Server,
    trap: Trap,
}

pub struct FaultyAgent<M: Method> {
    inner: M::Agent,
    trap: Trap,
}

impl<M: Method> Method for Faulty<M> {
    const NAME: &'static str = M::NAME;
    type Number = M::Number;
    type Task = M::Task;
    type Report = M::Report;
    type Server = FaultyServer<M>;
    type Agent = FaultyAgent<M>;

    fn order(&self) -> Order {
        self.inner.order()
    }

    fn agents(&self) -> u32 {
        self.inner.agents()
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn server(&self, saved: Option<ServerState<M>>) -> Result<FaultyServer<M>> {
        let trap = Trap::set(None, self);
        trap.at(Place::Creating)?;
        Ok(FaultyServer { inner: self.inner.server(saved)?, trap })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<M>>) -> Result<FaultyAgent<M>> {
        let trap = Trap::set(Some(id), self);
        trap.at(Place::Creating)?;
        Ok(FaultyAgent { inner: self.inner.agent(id, saved)?, trap })
    }
}

impl<M: Method> FaultyServer<M> {
    fn forward(
        &mut self,
        out: &mut Outbox<Faulty<M>>,
        call: impl FnOnce(&mut M::Server, &mut Outbox<M>) -> Result<()>,
    ) -> Result<()> {
        let mut inner = Outbox::default();
        call(&mut self.inner, &mut inner)?;
        inner.into_requests().into_iter().for_each(|request| out.post(request));
        Ok(())
    }
}

impl<M: Method> Server<Faulty<M>> for FaultyServer<M> {
    type State = ServerState<M>;

    fn state(&self) -> impl SerializesAs<ServerState<M>> {
        // A state cannot fail in any other way than by a panic.
        self.trap.at(Place::Saving).unwrap_or_else(|error| panic!("{error}"));
        self.inner.state()
    }

    fn start(&mut self, out: &mut Outbox<Faulty<M>>, cx: &mut Context) -> Result<()> {
        self.trap.at(Place::Starting)?;
        self.forward(out, |server, out| server.start(out, cx))
    }

    fn receive(&mut self, response: Response<Faulty<M>>, out: &mut Outbox<Faulty<M>>, cx: &mut Context) -> Result<()> {
        self.trap.work()?;
        self.forward(out, |server, out| server.receive(response, out, cx))
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        self.trap.after_report()?;
        self.inner.after_requests(cx)
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}

impl<M: Method> Agent<Faulty<M>> for FaultyAgent<M> {
    type State = AgentState<M>;

    fn state(&self) -> impl SerializesAs<AgentState<M>> {
        self.trap.at(Place::Saving).unwrap_or_else(|error| panic!("{error}"));
        self.inner.state()
    }

    fn perform(&mut self, task: &M::Task, body: Body<M::Number>, cx: &mut Context) -> Result<(M::Report, Body<M::Number>)> {
        self.trap.work()?;
        self.inner.perform(task, body, cx)
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        self.trap.after_report()?;
        self.inner.after_report(cx)
    }
}
