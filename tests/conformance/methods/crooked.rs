//! Test methods that break one rule each: controls that the suite must detect.

use super::rough;
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

const AGENTS: u32 = 4;
const ROUNDS: u64 = 6;
const LEN: usize = 100;

/// The broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crooked {
    /// None: the control of the controls.
    Not,
    /// The server adds the bodies in another order on every other run.
    AnotherOrder,
    /// Agents keep a number outside their state.
    Forgets,
    /// Agents use random numbers that depend on the number of tasks in this process, not on an address.
    SharedRandomness,
}

/// Tasks of all runs in this process.
static TASKS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    round: u64,
    sum: Raw<f64>,
}

pub struct CrookedServer {
    backwards: bool,
    state: State,
}

pub struct CrookedAgent {
    wrong: Crooked,
    id: AgentId,
    visits: u64,
}

impl Method for Crooked {
    const NAME: &'static str = "crooked";
    type Number = f64;
    type Task = u64;
    type Report = ();
    type Server = CrookedServer;
    type Agent = CrookedAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<State>) -> Result<CrookedServer> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let backwards = *self == Self::AnotherOrder && RUNS.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        Ok(CrookedServer { backwards, state: saved.unwrap_or(State { round: 0, sum: Raw(vec![0.0; LEN]) }) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<CrookedAgent> {
        Ok(CrookedAgent { wrong: *self, id, visits: 0 })
    }
}

impl Server<Crooked> for CrookedServer {
    type State = State;

    fn state(&self) -> impl SerializesAs<State> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Crooked>, _cx: &mut Context) -> Result<()> {
        out.request(0..AGENTS, 0);
        Ok(())
    }

    fn receive(&mut self, response: Response<Crooked>, out: &mut Outbox<Crooked>, _cx: &mut Context) -> Result<()> {
        let mut bodies: Vec<Body<f64>> = response.reports.into_iter().map(|reported| reported.body).collect();
        if self.backwards {
            bodies.reverse();
        }
        for body in bodies {
            for (sum, &term) in self.state.sum.0.iter_mut().zip(&*body) {
                *sum += term;
            }
        }
        self.state.round += 1;
        if self.state.round < ROUNDS {
            out.request(0..AGENTS, self.state.round);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.round, total: ROUNDS }
    }
}

impl Agent<Crooked> for CrookedAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, _body: Body<f64>, cx: &mut Context) -> Result<((), Body<f64>)> {
        let mut body = rough::<f64>(cx, Who::Agent(self.id), round, LEN);
        self.visits += 1;
        let tasks = TASKS.fetch_add(1, Ordering::Relaxed);
        match self.wrong {
            Crooked::Forgets => body[0] += self.visits as f64,
            Crooked::SharedRandomness => body[0] += tasks as f64,
            Crooked::Not | Crooked::AnotherOrder => {}
        }
        Ok(((), body.into()))
    }
}
