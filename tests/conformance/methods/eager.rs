//! A test method like asynchronous elastic coupling: `DEPTH` requests in flight for each agent, handled in the order of arrival.

use super::{rough, stir};
use mpibayes::cluster::{
    Agent, AgentId, Body, Context, Method, Order, Outbox, Progress, Raw, Response, Result, SerializesAs, Server,
};
use mpibayes::methods::Posterior;
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 4;
const TASKS: u64 = 12;
const LEN: usize = 200;

pub struct Eager<const DEPTH: u64>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    center: Raw<f64>,
    /// For each agent, the tasks that it was asked and those that it has done.
    asked: Vec<u64>,
    done: Vec<u64>,
    /// The sum of the whole numbers that agents sent: exact, hence the same in any order.
    total: f64,
}

pub struct EagerServer {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    position: Raw<f64>,
    done: u64,
}

pub struct EagerAgent {
    id: AgentId,
    state: AgentState,
}

impl<const DEPTH: u64> Method for Eager<DEPTH> {
    const NAME: &'static str = "eager";
    type Number = f64;
    type Task = u64;
    type Report = u64;
    type Server = EagerServer;
    type Agent = EagerAgent;

    fn order(&self) -> Order {
        Order::Arrival
    }

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<EagerServer> {
        let none = vec![0; AGENTS as usize];
        let fresh = ServerState { center: Raw(vec![0.0; LEN]), asked: none.clone(), done: none, total: 0.0 };
        Ok(EagerServer { state: saved.unwrap_or(fresh) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<EagerAgent> {
        Ok(EagerAgent { id, state: saved.unwrap_or(AgentState { position: Raw(vec![0.1; LEN]), done: 0 }) })
    }
}

impl EagerServer {
    fn post<const DEPTH: u64>(&mut self, agent: AgentId, out: &mut Outbox<Eager<DEPTH>>) {
        let asked = &mut self.state.asked[agent as usize];
        if *asked < TASKS {
            out.request([agent], *asked).with(self.state.center.0.clone());
            *asked += 1;
        }
    }
}

impl<const DEPTH: u64> Server<Eager<DEPTH>> for EagerServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Eager<DEPTH>>, _cx: &mut Context) -> Result<()> {
        for agent in (0..DEPTH).flat_map(|_| 0..AGENTS) {
            self.post(agent, out);
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<Eager<DEPTH>>, out: &mut Outbox<Eager<DEPTH>>, cx: &mut Context) -> Result<()> {
        let only = response.only()?;
        let done = &mut self.state.done[only.from as usize];
        if only.report != *done {
            return Err(format!("agent {} answered task {} after {done} tasks", only.from, only.report).into());
        }
        *done += 1;
        self.state.total += only.body[0];
        stir(&mut self.state.center.0, &only.body[1..]);
        self.post(only.from, out);
        if self.state.done.iter().sum::<u64>() == TASKS * u64::from(AGENTS) {
            let agents = f64::from(AGENTS);
            let expected = TASKS as f64 * agents * (agents + 1.0) / 2.0;
            if self.state.total != expected {
                return Err(format!("the agents sent {} in all, not {expected}", self.state.total).into());
            }
            cx.record("total", 0, 0, 1, &[self.state.total]);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done.iter().sum(), total: TASKS * u64::from(AGENTS) }
    }
}

impl Posterior<f64> for EagerServer {
    fn posterior(&self) -> (u64, &[f64]) {
        (self.state.done.iter().sum(), &self.state.center.0)
    }
}

impl<const DEPTH: u64> Agent<Eager<DEPTH>> for EagerAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, &task: &u64, center: Body<f64>, cx: &mut Context) -> Result<(u64, Body<f64>)> {
        if task != self.state.done {
            return Err(format!("task {task} came after {} tasks", self.state.done).into());
        }
        self.state.done += 1;
        stir(&mut self.state.position.0, &center);
        stir(&mut self.state.position.0, &rough(cx, Who::Agent(self.id), task, LEN));
        let mut body = vec![f64::from(self.id + 1)];
        body.extend_from_slice(&self.state.position.0);
        Ok((task, body.into()))
    }
}
